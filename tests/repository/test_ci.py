import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT, commands, readme

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


def session(folder: Path, test: str, *, ci: bool) -> subprocess.CompletedProcess[str]:
    (folder / "test_optional.py").write_text(test, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PROCEDO", "PYTEST"))}
    environment |= {"PYTHONPATH": str(ROOT / "tests" / "support"), **({"PROCEDO_CI": "1"} if ci else {})}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no_skips", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


SKIPS = {
    "a test": "import pytest\n@pytest.mark.skip(reason='no docker here')\ndef test_x(): ...\n",
    "in a test": "import pytest\ndef test_x(): pytest.skip('no docker here')\n",
    "a module": "import pytest\npytest.skip('no docker here', allow_module_level=True)\n",
}


@pytest.mark.parametrize("test", SKIPS.values(), ids=SKIPS)
def test_a_skipped_test_fails_the_checks_and_not_a_developer(tmp_path: Path, test: str) -> None:
    strict, relaxed = session(tmp_path, test, ci=True), session(tmp_path, test, ci=False)
    assert strict.returncode != 0
    assert "no docker here" in strict.stdout
    assert relaxed.returncode in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    found = session(tmp_path, "import pytest\n@pytest.mark.xfail\ndef test_x(): assert False\n", ci=True)
    assert found.returncode == 0, found.stdout
