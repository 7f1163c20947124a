"""Prints a page of the reference as Markdown, made from the tables and parsers that the program itself reads.

With --all every page is written into a folder, with an index; the folder docs/reference of the project is made so.
"""

from argparse import ArgumentParser
from pathlib import Path

from procedo.surfaces.cli.call import Call

EXAMPLES = ("procedo manual", "procedo manual config", "procedo manual --all docs/reference")
_PAGES = (
    "procedures",
    "config",
    "checks",
    "capabilities",
    "tools",
    "commands",
    "errors",
    "events",
    "telemetry",
    "environment",
)


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("about", metavar="PAGE", choices=_PAGES, nargs="?", help=f"one of {', '.join(_PAGES)}")
    which.add_argument("--all", metavar="DIR", type=Path, help="write every page into this folder")


def run(call: Call) -> int:
    """Print it as Markdown."""
    from procedo.surfaces.cli.manual.pages import PAGES, index_page, write

    if (folder := call["all"]) is not None:
        written = write(call.cwd / folder)
        if call.json:
            call.output.value({"folder": str(folder), "files": list(written)})
        else:
            call.output.line(f"{len(written)} pages written to {folder}.")
        return 0
    about = call["about"]
    text = index_page() if about is None else PAGES[about][1]()
    if call.json:
        call.output.value({"about": about or "index", "markdown": text})
    else:
        call.output.line(text)
    return 0
