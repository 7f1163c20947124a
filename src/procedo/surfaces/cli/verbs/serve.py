"""Speaks MCP on standard input and output until the client closes it; a host starts this command itself."""

import os
from argparse import ArgumentParser
from pathlib import Path

from procedo.errors import BadArgument
from procedo.surfaces.cli.call import Call

EXAMPLES = ("procedo serve", "procedo serve --workspace /srv/operations")


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "--pid-file", metavar="FILE", type=Path, help="write the process id there while the server runs"
    )


def _write_pid(file: Path) -> None:
    try:
        file.write_text(f"{os.getpid()}\n", encoding="ascii")
    except OSError as error:
        message = f"The process id cannot be written to {file}: {error.strerror}."
        raise BadArgument("not_writable", message, "Name a file in a folder that you may write to.") from error


def run(call: Call) -> int:
    """Serve."""
    from procedo.app import open_app
    from procedo.surfaces.mcp.stdio import serve_stdio

    workspace = call.workspace()
    file: Path | None = call["pid_file"]

    def forget() -> None:
        if file is not None:
            file.unlink(missing_ok=True)

    if file is not None:
        _write_pid(file)
    try:
        # After a signal the process is left from inside, and the file has to be gone by then.
        return serve_stdio(lambda: open_app(workspace, worker=True), last=forget)
    finally:
        forget()
