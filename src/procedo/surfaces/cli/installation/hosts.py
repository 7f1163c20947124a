"""The hosts, as data: where each keeps its servers, in which form, and what a person does afterwards.

A place is written as the host's own documentation writes it: `~` is the home folder, `$NAME/` a folder that a
variable of the environment names. The first place whose variable is set counts. Nothing is read in here.
"""

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct

__all__ = ["HOSTS", "Form", "Host", "Scope", "Surroundings", "host_file", "host_folders"]


class Form(StrEnum):
    """How a file is written. What a host refuses to read is refused here, too."""

    JSON = "JSON"
    COMMENTED = "JSON with comments"
    JSONC = "JSON with comments and trailing commas"
    TOML = "TOML"


class Scope(StrEnum):
    """Whom an entry is for: the person everywhere, or whoever opens one folder."""

    USER = "user"
    PROJECT = "project"


class Host(Struct, frozen=True):
    """One host. `user` has its places for each platform (values of `sys.platform`, "" for all others).

    `key` is the table of servers in the file; `typed` entries say that they are reached over stdio.
    `found` are places and programs that tell of the host on a machine. `expands` is True when the host replaces
    `$` in what is written.
    """

    name: str
    title: str
    form: Form
    key: str
    user: Mapping[str, tuple[str, ...]]
    project: str | None
    found: tuple[str, ...]
    then: str
    typed: bool = False
    expands: bool = False

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that the host has, the usual one first."""
        return (Scope.USER,) if self.project is None else (Scope.USER, Scope.PROJECT)


def _same(*places: str) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({"": places})


# The app of the Microsoft Store keeps what it believes to be APPDATA in here. `?` : only where the folder is.
_PACKAGED: Final = "?$LOCALAPPDATA/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json"

_ALL: Final = (
    Host(
        name="claude-desktop",
        title="Claude Desktop",
        form=Form.JSON,
        key="mcpServers",
        user={
            "darwin": ("~/Library/Application Support/Claude/claude_desktop_config.json",),
            "win32": (_PACKAGED, "$APPDATA/Claude/claude_desktop_config.json"),
            "": ("$XDG_CONFIG_HOME/Claude/claude_desktop_config.json", "~/.config/Claude/claude_desktop_config.json"),
        },
        project=None,
        found=(),
        then="Quit Claude Desktop (closing its window is not enough) and start it again.",
    ),
    Host(
        name="claude-code",
        title="Claude Code",
        form=Form.JSON,
        key="mcpServers",
        user=_same("$CLAUDE_CONFIG_DIR/.claude.json", "~/.claude.json"),
        project=".mcp.json",
        found=("~/.claude", "claude"),
        then="Start a new session; /mcp shows the server, `claude mcp list` tries it.",
        typed=True,
        expands=True,
    ),
    Host(
        name="cursor",
        title="Cursor",
        form=Form.JSONC,
        key="mcpServers",
        user=_same("~/.cursor/mcp.json"),
        project=".cursor/mcp.json",
        found=("cursor",),
        then="Restart Cursor, then switch the server on under Settings, Tools & MCP.",
        typed=True,
        expands=True,
    ),
    Host(
        name="vscode",
        title="VS Code",
        form=Form.JSONC,
        key="servers",
        user={
            "darwin": ("$VSCODE_PORTABLE/user-data/User/mcp.json", "~/Library/Application Support/Code/User/mcp.json"),
            "win32": ("$VSCODE_PORTABLE/user-data/User/mcp.json", "$APPDATA/Code/User/mcp.json"),
            "": (
                "$VSCODE_PORTABLE/user-data/User/mcp.json",
                "$XDG_CONFIG_HOME/Code/User/mcp.json",
                "~/.config/Code/User/mcp.json",
            ),
        },
        project=".vscode/mcp.json",
        found=("code",),
        then="Run the command `MCP: List Servers`, choose the server and start it.",
        typed=True,
        expands=True,
    ),
    Host(
        name="windsurf",
        title="Windsurf",
        form=Form.JSONC,
        key="mcpServers",
        user=_same("~/.codeium/windsurf/mcp_config.json"),
        project=None,
        found=("windsurf",),
        then="Press the button to refresh in the list of MCP servers of Cascade, or restart Windsurf.",
        expands=True,
    ),
    Host(
        name="zed",
        title="Zed",
        form=Form.JSONC,
        key="context_servers",
        user={
            "win32": ("$APPDATA/Zed/settings.json",),
            "darwin": ("~/.config/zed/settings.json",),
            "": ("$XDG_CONFIG_HOME/zed/settings.json", "~/.config/zed/settings.json"),
        },
        project=".zed/settings.json",
        found=("zed", "zeditor"),
        then="Zed reads it at once; the agent panel's settings show the server with a green dot.",
    ),
    Host(
        name="codex",
        title="Codex",
        form=Form.TOML,
        key="mcp_servers",
        user=_same("$CODEX_HOME/config.toml", "~/.codex/config.toml"),
        project=".codex/config.toml",
        found=("codex",),
        then="Start a new session; /mcp shows the server.",
    ),
    Host(
        name="gemini",
        title="Gemini CLI",
        form=Form.COMMENTED,
        key="mcpServers",
        user=_same("$GEMINI_CLI_HOME/.gemini/settings.json", "~/.gemini/settings.json"),
        project=".gemini/settings.json",
        found=("gemini",),
        then="Start a new session; /mcp shows the server, `gemini mcp list` tries it in a trusted folder.",
        expands=True,
    ),
)
HOSTS: Final[Mapping[str, Host]] = MappingProxyType({host.name: host for host in _ALL})


class Surroundings(Struct, frozen=True):
    """The machine, as far as it decides where files lie. `platform` is a value of `sys.platform`."""

    environ: Mapping[str, str]
    cwd: Path
    platform: str = sys.platform

    @property
    def home(self) -> Path:
        """The home folder of whoever calls."""
        named = self.environ.get("USERPROFILE" if self.platform == "win32" else "HOME")
        return Path(named) if named else Path.home()


def _resolved(place: str, around: Surroundings) -> Path | None:
    """The path of a place, or None when its variable is not set or its folder is wanted and not there."""
    first, _, rest = place.removeprefix("?").partition("/")
    if first == "~":
        return around.home / rest
    named = around.environ.get(first.removeprefix("$"), "").strip()
    if not named and first == "$APPDATA":
        named = str(around.home / "AppData" / "Roaming")
    if not named or (first == "$XDG_CONFIG_HOME" and not Path(named).is_absolute()):
        return None
    path = around.cwd / named / rest
    return None if place.startswith("?") and not path.parent.is_dir() else path


def host_file(host: Host, scope: Scope, around: Surroundings) -> Path:
    """The file that holds the host's servers in this scope. The scope has to be one of the host's."""
    if scope is Scope.PROJECT and host.project is not None:
        return around.cwd / host.project
    places = host.user.get(around.platform, host.user.get("", ()))
    found = [path for place in places if (path := _resolved(place, around)) is not None]
    return found[0]


def host_folders(host: Host, around: Surroundings) -> tuple[Path, ...]:
    """Folders that are there only where the host is, or was."""
    file = host_file(host, Scope.USER, around)
    own = () if file.parent == around.home else (file.parent,)
    return (*own, *(path for place in host.found if place[0] == "~" and (path := _resolved(place, around))))
