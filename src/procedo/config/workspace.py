"""Which folder is the workspace."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from procedo.config.document import FILE_NAME
from procedo.errors import BadArgument

__all__ = ["VARIABLE", "find_workspace", "user_data_folder"]

VARIABLE: Final = "PROCEDO_WORKSPACE"
_SOPS: Final = "sops"


def find_workspace(argument: Path | None, environ: Mapping[str, str], cwd: Path) -> Path:
    """The workspace as an absolute path.

    In this order: the argument; `PROCEDO_WORKSPACE`; the nearest folder from `cwd` upwards that has a
    `procedo.toml` or a `sops` folder; the user's data folder, which need not exist yet. Raises
    `BadArgument` when a folder was named that does not exist: a misspelt path is no new workspace.
    """
    if argument is not None:
        return _existing(argument, cwd, "--workspace")
    if named := environ.get(VARIABLE, "").strip():
        return _existing(Path(named), cwd, VARIABLE)
    start = cwd.resolve()
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file() or (folder / _SOPS).is_dir():
            return folder
    return user_data_folder(environ, sys.platform)


def user_data_folder(environ: Mapping[str, str], platform: str) -> Path:
    """Where the user's own data lies on this platform (a value of `sys.platform`), with our name at the end."""
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    if platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return (Path(local) if local else home / "AppData" / "Local") / "procedo"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "procedo"
    # The specification of these folders says that a relative value is to be ignored.
    stated = Path(environ.get("XDG_DATA_HOME", ""))
    return (stated if stated.is_absolute() else home / ".local" / "share") / "procedo"


def _existing(named: Path, cwd: Path, source: str) -> Path:
    try:
        folder = (cwd / named.expanduser()).resolve()
    except RuntimeError as error:  # `~` of a user that does not exist
        raise BadArgument(
            "no_workspace", f"{source} names {named}, which has no home.", "Write the path in full."
        ) from error
    if not folder.is_dir():
        raise BadArgument("no_workspace", f"{source} names {folder}, which is no folder.", "Create it first.")
    return folder
