"""The environment variables that are read; a test compares them with the code."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["VARIABLES"]

VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PROCEDO_WORKSPACE": "The workspace, where `--workspace` is not given.",
        "PROCEDO_TOKEN": "A token: every verb acts as its holder, with its roles.",
        "NO_COLOR": "With any value nothing is coloured.",
        "TERM": "`dumb`: nothing is coloured.",
        "PATH": "Where programs without a path are looked for; MCP servers of agents are given it.",
        "HOME": "Where the user's data folder lies, which is the workspace of last resort.",
        "XDG_DATA_HOME": "Linux: the user's data folder, when it is not `~/.local/share`.",
        "LOCALAPPDATA": "Windows: the user's data folder.",
        "PYTHONPATH": "`procedo demo` hands it on to the processes that it starts.",
    }
)
