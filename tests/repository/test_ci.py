import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT, commands, plain_environment, readme

SCRIPT = ROOT / ".ci" / "run"


def lines() -> list[str]:
    return [line for line in SCRIPT.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


@pytest.mark.requirement("readme")
def test_the_checks_install_and_test_as_the_readme_says() -> None:
    (documented,) = [command for command in commands(readme()) if command.endswith("pytest")]
    run = lines()
    install = next(line for line in run if line.startswith("python3 -m venv"))
    assert documented == f"{install} && {run[-1]}"


def test_the_checks_are_all_there_and_the_tests_come_last() -> None:
    tools = [line.removeprefix(".venv/bin/") for line in lines() if line.startswith(".venv/bin/")]
    assert tools == ["ruff check", "ruff format --check", "mypy", "lint-imports", "pytest"]
    assert lines()[0] == "set -euo pipefail"
    assert os.access(SCRIPT, os.X_OK)


def session(folder: Path, *, ci: bool) -> subprocess.CompletedProcess[str]:
    # Where CI is set pytest repeats every reason in its summary, whole: `-rN` leaves the summary out everywhere.
    environment = {k: v for k, v in plain_environment().items() if not k.startswith(("PROCEDO", "PYTEST"))}
    environment |= {"PYTHONPATH": str(ROOT / "tests" / "support"), **({"PROCEDO_CI": "1"} if ci else {})}
    options = ["-q", "-p", "no_skips", "-rN", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


SKIPS = {
    "test_marked": "import pytest\n@pytest.mark.skip(reason='no docker here')\ndef test_x(): ...\n",
    "test_inside": "import pytest\ndef test_x(): pytest.skip('no docker here')\n",
    "test_module": "import pytest\npytest.skip('no docker here', allow_module_level=True)\n",
}


def test_a_skipped_test_fails_the_checks_and_not_a_developer(tmp_path: Path) -> None:
    for name, source in SKIPS.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    expected = "import pytest\n@pytest.mark.xfail\ndef test_x(): assert False\n"
    (tmp_path / "test_expected.py").write_text(expected, encoding="utf-8")

    strict = session(tmp_path, ci=True)
    assert strict.returncode != 0
    assert strict.stdout.count("no docker here. Nothing is optional under PROCEDO_CI=1.") == len(SKIPS)
    assert "test_expected" not in strict.stdout

    relaxed = session(tmp_path, ci=False)
    assert (relaxed.returncode, "3 skipped, 1 xfailed" in relaxed.stdout) == (0, True)
