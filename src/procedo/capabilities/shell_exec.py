"""`shell.exec`: one allowed program with its arguments. There is no shell and no command line to be split.

What is allowed is decided on the resolved path: a plain name is looked up on the server's PATH, and a
path is allowed when it is listed or is where a listed name leads to.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from procedo.capabilities import process
from procedo.capabilities.piped import PIPED
from procedo.config.capability_settings import ShellSettings
from procedo.core.model import Json
from procedo.errors import BadArgument, Refused
from procedo.ports import Capability, CapabilityCall, OutcomeUnknown

__all__ = ["Enclose", "located", "shell_exec"]

Enclose: TypeAlias = Callable[[Sequence[str], Path], Sequence[str]]

_TOLD: Final = 500
_INPUT: Final[Json] = {
    "type": "object",
    "properties": {
        "argv": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "The program and its arguments, each by itself.",
        },
        "stdin": {"type": "string", "description": "Text for its standard input; empty when absent."},
        "cwd": {"type": "string", "description": "Where it runs: a folder of the workspace."},
        "accept_exit": {
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": 255},
            "description": "Exit codes besides 0 that are a good result too.",
        },
        "idempotent": {"type": "boolean", "description": "True when the same call twice does no harm."},
        **PIPED,
    },
    "required": ["argv"],
    "additionalProperties": False,
}
_OUTPUT: Final[Json] = {
    "type": "object",
    "properties": {
        "exit_code": {"type": "integer"},
        "stdout": {"type": "string"},
        "stderr": {"type": "string"},
        "cut": {
            "type": "array",
            "items": {"enum": ["stdout", "stderr"]},
            "description": "Present when only the beginning of these outputs was kept.",
        },
    },
    "required": ["exit_code", "stdout", "stderr"],
    "additionalProperties": False,
}


def shell_exec(settings: ShellSettings, environ: Mapping[str, str], enclose: Enclose | None = None) -> Capability:
    """The capability. `environ` is where PATH and the variables that are passed on come from.

    `enclose` puts a command into a sandbox: it gets the command with its program's path, and the working folder.
    """

    async def run(call: CapabilityCall) -> Json:
        return await _call(settings, environ, enclose, call.arguments)

    return Capability(
        "shell.exec",
        "Runs an allowed program and returns its exit code and outputs as text. An exit code other than 0 is a "
        "failed attempt unless accept_exit lists it.",
        _INPUT,
        _OUTPUT,
        run,
        objection=_objection(settings),
        repeats=_repeats,
    )


def _objection(settings: ShellSettings) -> str | None:
    if os.name != "posix":
        return "this system has no process groups, and without them a program could outlive its step"
    if not settings.enabled:
        return 'it is off; in procedo.toml: [capabilities.shell] enabled = true, allowed_commands = ["git"]'
    if not settings.allowed_commands:
        return 'no command is allowed; in procedo.toml: [capabilities.shell] allowed_commands = ["git"]'
    return None


def _repeats(arguments: Json) -> bool:
    return isinstance(arguments, dict) and arguments.get("idempotent") is True


async def _call(settings: ShellSettings, environ: Mapping[str, str], enclose: Enclose | None, arguments: Json) -> Json:
    argv: list[str] = arguments["argv"]
    if any("\0" in word for word in argv):
        raise BadArgument("bad_argument", "shell.exec: an argument holds a NUL character.")
    program = _program(settings, environ, argv[0])
    stdin: str = arguments.get("stdin", "")
    folder = _folder(settings, arguments.get("cwd", "."))
    command = [str(program), *argv[1:]]
    try:
        ending = await process.run(
            command if enclose is None else enclose(command, folder),
            stdin=stdin.encode(),
            cwd=folder,
            env={name: environ[name] for name in sorted(settings.env) if name in environ},
            timeout_s=settings.timeout_s,
            limit=settings.max_output_bytes,
        )
    except OSError as error:
        raise Refused("not_started", f"shell.exec: {argv[0]} cannot be started: {error.strerror or error}.") from error
    return _judged(ending, argv[0], arguments, settings.timeout_s)


def _judged(ending: process.Ending, name: str, arguments: Json, timeout_s: float) -> Json:
    said = " ".join((ending.stderr or ending.stdout)[-_TOLD:].split())
    behind = f": {said}" if said else ""
    if not ending.in_time or ending.code < 0:
        why = f"was stopped by signal {-ending.code}" if ending.in_time else f"did not end within {timeout_s:g} s"
        if not _repeats(arguments):
            raise OutcomeUnknown(f"shell.exec: {name} {why}; it may have acted{behind}")
        raise Refused("command_stopped", f"shell.exec: {name} {why}{behind}.")
    if ending.code != 0 and ending.code not in arguments.get("accept_exit", ()):
        raise Refused("command_failed", f"shell.exec: {name} ended with exit code {ending.code}{behind}.")
    result = {"exit_code": ending.code, "stdout": ending.stdout, "stderr": ending.stderr}
    return {**result, "cut": list(ending.cut)} if ending.cut else result


def _program(settings: ShellSettings, environ: Mapping[str, str], name: str) -> Path:
    """The path of an allowed program. Raises `Refused`."""
    wanted = located(name, environ)
    allowed = {located(listed, environ) for listed in settings.allowed_commands}
    if wanted is None and name in settings.allowed_commands:
        raise Refused("command_not_found", f"shell.exec: {name!r} is allowed, but there is no such program.")
    if wanted is None or wanted not in allowed:
        hint = f"Allowed: {', '.join(sorted(settings.allowed_commands))}."
        raise Refused("command_not_allowed", f"shell.exec: the command {name!r} is not allowed.", hint)
    return wanted


def located(name: str, environ: Mapping[str, str]) -> Path | None:
    """Where a program lies, its folder without links, or None.

    The last link is kept: many programs are links to one that decides by its name what it is.
    """
    if "/" in name:
        candidates = [Path(name)] if name.startswith("/") else []
    else:
        # An entry that is empty or relative would mean the server's working folder.
        folders = [entry for entry in environ.get("PATH", os.defpath).split(os.pathsep) if entry.startswith("/")]
        candidates = [Path(folder) / name for folder in folders] if name not in {"", ".", ".."} else []
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.parent.resolve() / candidate.name
    return None


def _folder(settings: ShellSettings, named: str) -> Path:
    """The working folder, inside the workspace whatever links say. Raises `Refused`."""
    if "\0" in named:
        raise BadArgument("bad_argument", "shell.exec: cwd holds a NUL character.")
    folder = (settings.cwd / named).resolve()
    if not folder.is_relative_to(settings.root.resolve()):
        raise Refused("outside", f"shell.exec: cwd {named!r} is outside of the workspace.", "Use a folder inside it.")
    if not folder.is_dir():
        raise Refused("no_folder", f"shell.exec: cwd {named!r} is no folder.", "Create it before this step.")
    return folder
