"""The entry point: reads the command line, runs one verb, and turns every expected error into words and a code."""

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from procedo.errors import BadArgument, InvalidConfig, InvalidSop, NotFound, ProcedoError
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.output import Output, standard
from procedo.surfaces.cli.parser import parse, split, top_help
from procedo.surfaces.cli.wording import as_command

__all__ = ["main"]

_WITHOUT_WORKSPACE = frozenset({"demo", "install", "manual", "schema"})
"""Verbs that touch nobody's runs, so that there is nowhere to look a token up."""

_YOUNG = 20_000
"""How many objects are made before garbage is looked for. Nearly all that a start makes stays: with the usual 700 a
tenth of the start goes by in looking."""
_INTERRUPTED = 130
_BROKEN_PIPE = 141


def _error_value(error: ProcedoError) -> dict[str, object]:
    value: dict[str, object] = {
        "code": error.code,
        "message": as_command(error.message),
        "hint": as_command(error.hint),
    }
    if isinstance(error, NotFound) and error.near:
        value["near"] = list(error.near)
    if isinstance(error, InvalidSop | InvalidConfig) and error.problems:
        value["problems"] = list(error.problems)
    return value


def _complain(error: ProcedoError, notes: Output) -> int:
    if notes.json:
        notes.record(_error_value(error))
        return error.exit_code
    notes.line(f"{notes.style('red', 'error:')} {as_command(error.message)}")
    if isinstance(error, InvalidSop | InvalidConfig):
        for problem in error.problems:
            notes.line(f"  {problem}")
    if error.hint:
        notes.line(f"{notes.style('dim', 'hint:')} {as_command(error.hint)}")
    return error.exit_code


def _dispatch(argv: Sequence[str], out: Output, notes: Output) -> int:
    before, verb_line = split(argv)
    if "--version" in before:
        from procedo.surfaces.cli.versions import procedo_version

        out.line(f"procedo {procedo_version()}")
        return 0
    if not verb_line or verb_line == ["help"]:
        asked = bool(verb_line) or "--help" in before or "-h" in before
        if unknown := [word for word in before if word not in {"-h", "--help", "--json"}]:
            raise BadArgument("bad_argument", f"{unknown[0]} needs a verb behind it.", "See: procedo --help")
        (out if asked else notes).line(top_help())
        return 0 if asked else BadArgument.exit_code
    if verb_line[0] == "help":
        verb_line = [*verb_line[1:2], "--help"]
    verb, module, arguments = parse(verb_line, before)
    call = Call(arguments, out, notes, os.environ, Path.cwd())
    if verb.name not in _WITHOUT_WORKSPACE:
        from procedo.surfaces.cli.credential import identified

        call = identified(call)
    code: int = module.run(call)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
    words = list(sys.argv[1:] if argv is None else argv)
    json = "--json" in words
    out = Output.of(standard(sys.stdout), os.environ, json=json)
    notes = Output.of(standard(sys.stderr), os.environ, json=json)
    try:
        return _dispatch(words, out, notes)
    except ProcedoError as error:
        return _complain(error, notes)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader went away; nothing more can be said, also not by the interpreter at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
