from pathlib import Path

import pytest

from procedo.config import load
from procedo.config.held_tools import can_hold

TEXT = """
[agents.reviewer]
model_provider = "scripted.a"
risk_profile = "careful"
mcp_bundles = ["docs"]
[agents.anything]
model_provider = "scripted.a"
risk_profile = "broad"
[risk_profiles.careful]
allowed_tools = ["file_read", "docs__*", "issues__read", "shut__x"]
excluded_tools = ["docs__delete", "file_write"]
[risk_profiles.broad]
allowed_tools = ["*"]
excluded_tools = ["shell"]
[providers.models.scripted.a]
script = "a.toml"
[[mcp.servers]]
name = "docs"
command = "x"
[[mcp.servers]]
name = "issues"
command = "x"
[[mcp.servers]]
name = "shut"
command = "x"
[mcp_bundles.docs]
servers = ["docs", "issues", "shut"]
exclude = ["shut"]
"""


@pytest.mark.parametrize(
    ("agent", "tool", "expected"),
    [
        ("reviewer", "file_read", True),
        ("reviewer", "file_write", False),
        ("reviewer", "shell", False),
        ("reviewer", "docs__search", True),
        ("reviewer", "docs__*", True),
        ("reviewer", "docs__delete", False),
        ("reviewer", "issues__read", True),
        ("reviewer", "issues__*", True),
        ("reviewer", "issues__write", False),
        ("reviewer", "shut__x", False),
        ("reviewer", "gone__x", False),
        ("reviewer", "fly", False),
        ("reviewer", "*", True),
        ("anything", "file_write", True),
        ("anything", "shell", False),
        ("anything", "docs__search", False),
        ("nobody", "file_read", False),
    ],
)
def test_what_an_agent_can_have_is_read_off_its_tables(tmp_path: Path, agent: str, tool: str, expected: bool) -> None:
    (tmp_path / "procedo.toml").write_text(TEXT)
    assert can_hold(load(tmp_path).agents, agent, tool) is expected
