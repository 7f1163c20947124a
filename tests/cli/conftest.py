from pathlib import Path

import pytest
from commands import Workspace

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
