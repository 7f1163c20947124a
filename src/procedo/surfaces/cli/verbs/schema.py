"""Prints the JSON Schema of a file, so that editors complete and check it."""

import json
from argparse import ArgumentParser

from procedo.surfaces.cli.call import Call

EXAMPLES = ("procedo schema procedo.toml > procedo.schema.json", "procedo schema SOP.toml > sop.schema.json")
FILES = ("procedo.toml", "SOP.toml")


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("file", choices=FILES, metavar="FILE", help=f"which file: {' or '.join(FILES)}")


def run(call: Call) -> int:
    """Print it; with or without `--json` it is the schema itself."""
    if call["file"] == "SOP.toml":
        from procedo.sopfile.schema import definition_schema as schema
    else:
        from procedo.config.schema import config_schema as schema
    if call.json:
        call.output.value(schema())
    else:
        call.output.line(json.dumps(schema(), indent=2, ensure_ascii=False))
    return 0
