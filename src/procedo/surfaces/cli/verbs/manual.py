"""Prints the manual of the files: every key, field, trigger and problem code, made from the tables that read them."""

from argparse import ArgumentParser

from procedo.surfaces.cli.call import Call

EXAMPLES = ("procedo manual", "procedo manual config")


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "about",
        choices=["procedures", "config"],
        nargs="?",
        default="procedures",
        help="procedures (SOP.toml, SOP.md), or config (procedo.toml); procedures when absent",
    )


def run(call: Call) -> int:
    """Print it as Markdown."""
    if call["about"] == "config":
        from procedo.config import reference as text
    else:
        from procedo.sopfile.manual import manual as text
    if call.json:
        call.output.value({"about": call["about"], "markdown": text()})
    else:
        call.output.line(text())
    return 0
