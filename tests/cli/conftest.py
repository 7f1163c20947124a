from pathlib import Path

import pytest
from commands import Done, Workspace

KILN = """\
1. **Load kiln** — Put the pieces in.
   - requires_confirmation: true
   - prompt: May the kiln be loaded?

2. **Heat to 980** — Heat it up.
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An empty workspace."""
    (tmp_path / "sops").mkdir()
    return Workspace(tmp_path)


@pytest.fixture
def kiln(workspace: Workspace) -> Workspace:
    """A workspace with one procedure that begins with a gate."""
    workspace.simple("kiln-firing", KILN)
    return workspace


@pytest.fixture(scope="session")
def performed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """How the demonstration ended, and its folder for temporary files; it is long, so one is for all."""
    place = tmp_path_factory.mktemp("place")
    here = Workspace(tmp_path_factory.mktemp("here"), {"TMPDIR": str(place)})
    return here.fresh("demo", "--fast", "--json"), place
