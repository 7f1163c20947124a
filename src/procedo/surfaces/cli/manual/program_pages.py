"""The pages about the program: its verbs, its errors, its environment, and the events of the record."""

import argparse
from collections.abc import Iterator
from textwrap import dedent

from msgspec.structs import fields

from procedo.core.events import EVENTS
from procedo.errors import ProcedoError
from procedo.surfaces.cli.exits import EXITS
from procedo.surfaces.cli.manual.environment import VARIABLES
from procedo.surfaces.cli.manual.error_codes import ERROR_CODES, KINDS
from procedo.surfaces.cli.manual.markdown import code, page, table
from procedo.surfaces.cli.parser import VERBS, Verb, verb_parser
from procedo.surfaces.cli.verbs.audit import LINE

__all__ = ["commands_page", "environment_page", "errors_page", "events_page"]


def commands_page() -> str:
    """Every verb with its arguments, options and examples."""
    blocks: list[str] = []
    common: list[argparse.Action] = []
    for verb in VERBS:
        parser = verb_parser(verb, verb.load())
        own, common = _actions(parser)
        blocks += [f"## {verb.name}", *_about(verb)]
        if own:
            blocks.append(table(("argument", "meaning"), map(_row, own)))
        blocks.append("\n".join(["```sh", *verb.load().EXAMPLES, "```"]))
    exits = ((str(number), meaning) for number, meaning in EXITS.items())
    return page(
        "Reference: commands",
        "Every verb of `procedo`, with its arguments. `procedo VERB --help` says the same.",
        "## Everywhere",
        table(("argument", "meaning"), map(_row, common)),
        "`procedo --version` prints the version.",
        "## Exit codes",
        table(("code", "meaning"), exits),
        "With `--json` a failure is one line of JSON on standard error, with `code`, `message` and `hint`; the codes "
        "are told in [errors](errors.md).",
        *blocks,
    )


def _about(verb: Verb) -> Iterator[str]:
    # What a module says of itself is written for `--help`, where an indented example stands as it is.
    for part in dedent(verb.load().__doc__ or "").strip().split("\n\n"):
        lines = part.splitlines()
        if all(line.startswith("  ") for line in lines):
            yield "\n".join(["```text", *(line[2:] for line in lines), "```"])
        else:
            yield " ".join(part.split())


def _actions(parser: argparse.ArgumentParser) -> tuple[list[argparse.Action], list[argparse.Action]]:
    """The verb's own arguments, and those of every verb."""
    groups = parser._action_groups  # argparse offers no other way to its groups
    common = [action for group in groups if group.title == "everywhere" for action in group._group_actions]
    return [action for action in parser._actions if action not in common], common


def _row(action: argparse.Action) -> tuple[str, str]:
    value = action.metavar if isinstance(action.metavar, str) else ""
    if not value and action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        optional = action.nargs in {"?", "*"}
        name = value or action.dest.upper()
        many = " …" if action.nargs in {"*", "+"} else ""
        return (code(f"[{name}{many}]" if optional else f"{name}{many}"), action.help or "")
    takes = "" if action.nargs == 0 else f" {value or action.dest.upper()}"
    required = " (required)" if action.required else ""
    return (", ".join(code(f"{option}{takes}") for option in action.option_strings) + required, action.help or "")


def errors_page() -> str:
    """Every error code, and how each kind of error is answered at each door."""
    from procedo.surfaces.mcp.calls import protocol_error
    from procedo.surfaces.web.pages import status_of

    kinds = []
    for kind, meaning in KINDS.items():
        example = kind("code", "")
        protocol = protocol_error(example).error.code
        kinds.append((code(kind.__name__), meaning, str(kind.exit_code), str(protocol), str(status_of(example))))
    blocks: list[str] = []
    for about in dict.fromkeys(row.about for row in ERROR_CODES.values()):
        rows = (
            (code(name), ", ".join(kind.__name__ for kind in row.kinds), _exit(row.kinds), row.meaning)
            for name, row in ERROR_CODES.items()
            if row.about == about
        )
        blocks += [f"## {about}", table(("code", "kind", "exit code", "meaning"), rows)]
    return page(
        "Reference: errors",
        "Every error code, and how an error is answered. A message says what is wrong, and mostly what would be right; "
        "programs read the code. An error has changed nothing.",
        "## Kinds",
        table(("kind", "meaning", "exit code", "protocol error", "page status"), kinds),
        "- **A tool call** is answered with `isError: true` and one text: `[code] message hint`. A failed report of a "
        "step is no error: it is a good call.\n"
        "- **Resources, prompts and subscriptions** answer with the JSON-RPC error of the column above; its `data` has "
        "the `code`.\n"
        "- **The pages** answer with the HTTP status of the last column; `not_authorised`, `not_permitted` and "
        "`bad_token` with 403. `/mcp` answers 401 without a token that lives, and `/ready` 503 while the store "
        "does not answer.\n"
        "- **The command line** prints `error:` and `hint:` and ends with the exit code; all of these are in "
        "[commands](commands.md#exit-codes).",
        *blocks,
        "SQLite's own errors carry SQLite's name in small letters, such as `sqlite_full`.",
    )


def _exit(kinds: tuple[type[ProcedoError], ...]) -> str:
    return ", ".join(dict.fromkeys(str(kind.exit_code) for kind in kinds))


def environment_page() -> str:
    """Every variable of the environment that is read."""
    rows = ((code(name), meaning) for name, meaning in VARIABLES.items())
    return page(
        "Reference: environment variables",
        "Every variable that procedo reads by itself. `procedo.toml` may name others, for secrets and for the programs "
        "of agents; those alone are read beside these.",
        table(("variable", "meaning"), rows),
    )


def events_page() -> str:
    """Every event of the record."""
    rows = []
    for kind in EVENTS:
        names = ", ".join(code(field.name) for field in fields(kind))
        rows.append((code(kind.__name__), (kind.__doc__ or "").strip(), names))
    return page(
        "Reference: events of the record",
        "Everything that can happen in a run, as `procedo audit export` writes it: one line of JSON for each event, "
        "which is never changed and never loses a field.",
        "## A line",
        table(
            ("key", "meaning"),
            ((code(key), meaning) for key, meaning in LINE.items()),
        ),
        "## Events",
        table(("event", "meaning", "fields"), rows),
    )
