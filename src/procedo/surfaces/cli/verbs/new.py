"""Makes a procedure of three steps with a gate, ready to be changed: `SOP.toml`, `SOP.md`, and a rehearsal of it.

It goes into the workspace; where there is none yet, into `sops/` of the present folder. Nothing is ever overwritten.
"""

import re
from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from procedo.errors import BadArgument, Conflict
from procedo.surfaces.cli.call import Call

EXAMPLES = ("procedo new weekly-report", 'procedo new weekly-report --description "Numbers to the team, every Monday"')
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

_HEADER: Final = """\
[sop]
name = {name}
description = {description}
version = "0.1.0"
execution_mode = "auto"

# What a run is started with, as JSON Schema.
[inputs]
type = "object"
required = ["subject"]
additionalProperties = false

[inputs.properties.subject]
type = "string"
description = "What this run is about"
"""
_STEPS: Final = """\
# {title}

## Steps

1. **Prepare** — Collect what is needed for {{{{inputs.subject}}}}. Report a `summary` of it.
   - output: {{"type": "object", "required": ["summary"], "properties": {{"summary": {{"type": "string"}}}}}}

2. **Carry out** — Do it as it was prepared. This step begins only after a person has said yes.
   - requires_confirmation: true
   - prompt: Carry this out? {{{{steps.1.summary}}}}
   - context: 1

3. **Report** — Tell in two sentences what was done and how it ended.
   - terminal: true
"""
_REHEARSAL: Final = """\
# Played by `procedo test {name}`: what each step reports, what each gate answers, and what is to come of it.
[[case]]
name = "carried out after a yes"
inputs = {{ subject = "a first try" }}
reports = [
  {{ step = 1, output = {{ summary = "ready" }} }},
  {{ step = 2, output = "done" }},
  {{ step = 3, output = "It was done. It went well." }},
]
gates = [{{ step = 2, answer = "approve" }}]
expect = {{ status = "completed", path = [1, 2, 3], gates = [2] }}

[[case]]
name = "a no ends it"
inputs = {{ subject = "a first try" }}
reports = [{{ step = 1, output = {{ summary = "not ready" }} }}]
gates = [{{ step = 2, answer = "deny", comment = "not today" }}]
expect = {{ status = "cancelled", path = [1], gates = [2] }}
"""


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("name", metavar="NAME", help="its name: small letters, digits, and - _ .")
    parser.add_argument("--description", metavar="TEXT", help="what it is for, in one line")


def _quoted(text: str) -> str:
    """A TOML basic string."""
    escaped = "".join(f"\\u{ord(c):04X}" if ord(c) < 0x20 or c in '"\\\x7f' else c for c in text)
    return f'"{escaped}"'


def _folder(call: Call) -> Path:
    """Where procedures live: the configured folder, or a new `sops` here where no workspace was ever made."""
    from procedo.config import find_workspace, load
    from procedo.config.workspace import VARIABLE, user_data_folder

    workspace = find_workspace(call["workspace"], call.environ, call.cwd)
    named = call["workspace"] is not None or call.environ.get(VARIABLE, "").strip()
    import sys

    if not named and workspace == user_data_folder(call.environ, sys.platform):
        return load(call.cwd).sops_dir
    return load(workspace).sops_dir


def _write(folder: Path, texts: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=False)
        for name, text in texts.items():
            with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except FileExistsError as error:
        raise Conflict(
            "exists", f"{folder} is there already.", "Choose another name; nothing is overwritten."
        ) from error
    except OSError as error:
        message = f"{folder} cannot be made: {error.strerror}."
        raise BadArgument(
            "not_writable", message, "Name a workspace that you may write to with --workspace."
        ) from error


def run(call: Call) -> int:
    """Make it."""
    name: str = call["name"]
    if not _NAME.fullmatch(name):
        message = f"{name!r} is no plain name."
        raise BadArgument("bad_argument", message, "Use small letters, digits, and - _ . such as weekly-report.")
    title = name.replace("-", " ").replace("_", " ").capitalize()
    folder = _folder(call) / name
    description = call["description"] or f"{title}: say here in one line what it is for."
    _write(
        folder,
        {
            "SOP.toml": _HEADER.format(name=_quoted(name), description=_quoted(description)),
            "SOP.md": _STEPS.format(title=title),
            "tests.toml": _REHEARSAL.format(name=name),
        },
    )
    if call.json:
        call.output.value({"name": name, "folder": str(folder), "files": ["SOP.toml", "SOP.md", "tests.toml"]})
        return 0
    call.output.line(f"{call.output.style('green', 'made')}  {folder}")
    call.output.pairs(
        [
            ("edit", str(folder / "SOP.md")),
            ("check", f"procedo check {name}"),
            ("see it", f"procedo graph {name}"),
            ("test", f"procedo test {name}"),
            ("start", f'procedo start {name} --input subject="a first try"'),
        ]
    )
    return 0
