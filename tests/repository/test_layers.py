import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT, plain_environment

pytestmark = pytest.mark.requirement("layers")

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def contracts(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = plain_environment(PYTHONPATH=str(folder / "src"))
    return subprocess.run(
        [sys.executable, "-c", LINT], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )


def test_the_contracts_hold() -> None:
    found = contracts(ROOT)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("core/model.py", "import procedo.ports", "Imports go one way"),
        ("runs.py", "import procedo.stores.memory", "Imports go one way"),
        ("surfaces/cli/main.py", "import procedo.stores.sqlite", "No surface knows a store"),
        ("stores/memory.py", "import procedo.runs", "A store knows the ports"),
        ("helpers.py", "", "Imports go one way"),
    ],
)
def test_a_wrong_import_breaks_a_contract(tmp_path: Path, module: str, line: str, broken: str) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / "src" / "procedo" / module
    path.write_text((path.read_text(encoding="utf-8") if path.exists() else "") + f"\n{line}\n", encoding="utf-8")
    found = contracts(tmp_path)
    assert found.returncode == 1
    assert f"{broken}" in "".join(text for text in found.stdout.splitlines() if text.endswith("BROKEN"))
