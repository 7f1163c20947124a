"""The verbs, and how a command line is read. Only the verb that was called is imported."""

import argparse
import difflib
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from msgspec import Struct

from procedo.errors import BadArgument
from procedo.surfaces.cli.exits import exits_text

__all__ = ["VERBS", "Parser", "Verb", "parse", "split", "top_help", "verb_parser"]


class Verb(Struct, frozen=True):
    """A verb: what it is for in one line, and the module that carries it out."""

    name: str
    summary: str
    module: str
    group: str

    def load(self) -> ModuleType:
        """Import the verb's module."""
        return import_module(f"procedo.surfaces.cli.verbs.{self.module}")


def _verbs(group: str, *rows: tuple[str, str, str]) -> tuple[Verb, ...]:
    return tuple(Verb(name, summary, module, group) for name, module, summary in rows)


VERBS: Final = (
    *_verbs(
        "Begin",
        ("demo", "demo", "watch a procedure run: gate, kill, restart, record"),
        ("new", "new", "make a new procedure"),
        ("serve", "serve", "run the MCP server, for a host or over HTTP"),
        ("install", "install", "put the server into an MCP host, or take it out"),
        ("doctor", "doctor", "look for what is wrong, and say how to mend it"),
    ),
    *_verbs(
        "Procedures",
        ("list", "catalogue", "the procedures, with their problems"),
        ("show", "show", "one procedure or one run in full"),
        ("graph", "graph", "a procedure or a run as a drawing"),
        ("check", "check", "every mistake in the procedures, with its line"),
        ("test", "test", "rehearse a procedure without a model"),
        ("manual", "manual", "the reference: files, tools, verbs, codes, events"),
        ("schema", "schema", "JSON Schemas of the files, for editors"),
    ),
    *_verbs(
        "Runs",
        ("start", "start", "start a run"),
        ("status", "status", "one run, or the runs that need attention"),
        ("watch", "watch", "follow a run until it has ended"),
        ("pause", "pause", "hold a run at its next step"),
        ("resume", "resume", "go on with a run"),
        ("cancel", "cancel", "end a run"),
    ),
    *_verbs(
        "Gates",
        ("inbox", "inbox", "the gates that wait for a person"),
        ("approve", "approve", "let a gate's step go on"),
        ("deny", "deny", "refuse a gate's step"),
        ("revise", "revise", "ask for another draft"),
        ("retract", "retract", "take an answer back"),
    ),
    *_verbs("Access", ("token", "token", "make, list and end the tokens of people and programs")),
    *_verbs(
        "Records",
        ("audit", "audit", "verify or export the record"),
        ("prune", "prune", "delete runs that ended long ago"),
    ),
)
_BY_NAME: Final = {verb.name: verb for verb in VERBS}


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are errors of ours, with the nearest option named."""

    def error(self, message: str) -> NoReturn:
        """Raise `BadArgument`."""
        raise BadArgument("bad_argument", f"{message}.", f"See: {self.prog} --help{self._near(message)}")

    def _near(self, message: str) -> str:
        words = [word for word in message.split() if word.startswith("-")]
        known = [option for action in self._actions for option in action.option_strings]
        near = [match for word in words for match in difflib.get_close_matches(word.split("=")[0], known, n=1)]
        return f"; did you mean {' '.join(near)}?" if near and "unrecognized" in message else ""


def _common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("everywhere")
    group.add_argument(
        "--workspace",
        metavar="DIR",
        type=Path,
        help="the workspace (else PROCEDO_WORKSPACE, else the nearest folder upwards with procedo.toml or sops/)",
    )
    group.add_argument(
        "--token", metavar="SECRET", help="act as the holder of this token, with its roles (better: PROCEDO_TOKEN=…)"
    )
    group.add_argument("--json", action="store_true", help="print JSON; errors too, on standard error")
    group.add_argument("-h", "--help", action="help", help="show this help")


def verb_parser(verb: Verb, module: ModuleType) -> Parser:
    """The parser of a verb's own arguments and of those that every verb has."""
    examples = "\n".join(f"  {line}" for line in module.EXAMPLES)
    parser = Parser(
        prog=f"procedo {verb.name}",
        description=f"{verb.summary[0].upper()}{verb.summary[1:]}.\n\n{(module.__doc__ or '').strip()}",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    define: Callable[[argparse.ArgumentParser], None] = module.arguments
    define(parser)
    _common(parser)
    return parser


def top_help() -> str:
    """The text of `procedo --help`."""
    width = max(len(verb.name) for verb in VERBS)
    lines = ["procedo runs Standard Operating Procedures for AI agents.", "", "usage: procedo VERB [options]"]
    group = ""
    for verb in VERBS:
        if verb.group != group:
            group = verb.group
            lines += ["", f"{group}:"]
        lines.append(f"  {verb.name.ljust(width)}  {verb.summary}")
    lines += ["", "everywhere: --workspace DIR, --json, --help; also: procedo --version", "", exits_text()]
    return "\n".join(lines)


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options before the verb, and the verb with everything behind it."""
    at = 0
    while at < len(argv) and argv[at].startswith("-"):
        at += 2 if argv[at] in {"--workspace", "--token"} else 1
    return list(argv[:at]), list(argv[at:])


def parse(verb_line: Sequence[str], before: Sequence[str] = ()) -> tuple[Verb, ModuleType, dict[str, Any]]:
    """The verb, its module and its arguments by name. Raises `BadArgument`."""
    name, *rest = verb_line
    verb = _BY_NAME.get(name)
    if verb is None:
        near = difflib.get_close_matches(name, _BY_NAME, n=3)
        hint = f"Did you mean {', '.join(near)}?" if near else "See: procedo --help"
        raise BadArgument("unknown_verb", f"There is no verb {name!r}.", hint)
    module = verb.load()
    # Options before the verb mean the same as behind it.
    found = verb_parser(verb, module).parse_args([*before, *rest])
    return verb, module, vars(found)
