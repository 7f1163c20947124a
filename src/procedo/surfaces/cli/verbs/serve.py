"""Speaks MCP on standard input and output until the client closes it; a host starts this command itself.

With --http it listens at an address instead, for MCP clients at /mcp and for people at /inbox. It listens on this
machine alone unless tokens or an OAuth issuer say who may come in. With --inbox the page for people stands beside a
server on standard input and output. The code to log in is printed to standard error, works once and for ten
minutes. Its limit: an agent with a shell of your account can read what your account can read.
"""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from procedo.errors import BadArgument
from procedo.surfaces.cli.call import Call
from procedo.surfaces.cli.person import operator

if TYPE_CHECKING:
    from procedo.surfaces.http.serving import Desk

EXAMPLES = (
    "procedo serve --workspace /srv/operations",
    "procedo serve --inbox  # the page for people beside it",
    "procedo serve --http  # MCP and inbox at http://127.0.0.1:8321",
    "procedo serve --http --host 10.0.0.5  # needs tokens or [http.oauth]",
)
_LAST_PORT = 65_535


def arguments(parser: ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "--pid-file", metavar="FILE", type=Path, help="write the process id there while the server runs"
    )
    door = parser.add_mutually_exclusive_group()
    door.add_argument("--http", action="store_true", help="listen for HTTP, with the inbox page, instead")
    door.add_argument("--inbox", action="store_true", help="show the inbox page on this machine, too")
    parser.add_argument("--host", metavar="ADDRESS", help="with --http: where to listen (127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, help="with --http (8321) or --inbox (a free one)")


def _write_pid(file: Path) -> None:
    try:
        file.write_text(f"{os.getpid()}\n", encoding="ascii")
    except OSError as error:
        message = f"The process id cannot be written to {file}: {error.strerror}."
        raise BadArgument("not_writable", message, "Name a file in a folder that you may write to.") from error


def _check(call: Call) -> None:
    if call.holder is not None:
        message = "A server acts for whoever calls it, and never as the holder of a token."
        raise BadArgument("bad_argument", message, "Start it without --token and without PROCEDO_TOKEN.")
    if call["host"] is not None and not call["http"]:
        raise BadArgument("bad_argument", "--host goes with --http.", "The inbox beside a host stays on this machine.")
    port = call["port"]
    if port is not None and not (call["http"] or call["inbox"]):
        raise BadArgument("bad_argument", "--port goes with --http or --inbox.", "Standard input needs none.")
    if port is not None and not 0 <= port <= _LAST_PORT:
        raise BadArgument("bad_argument", f"{port} is no port.", f"Ports go up to {_LAST_PORT}; 0 takes a free one.")


def _desk(call: Call) -> "Desk":
    from procedo.surfaces.http.serving import Desk

    return Desk(operator().subject, call.notes.line)


def _serve_http(call: Call, workspace: Path) -> int:
    from procedo.app import open_app
    from procedo.surfaces.http.serving import DEFAULT_PORT, serve_http

    port = DEFAULT_PORT if call["port"] is None else call["port"]
    return serve_http(
        lambda: open_app(workspace, announce=True, log_level="info"),
        _desk(call),
        host=call["host"] or "127.0.0.1",
        port=port,
    )


def _serve_host(call: Call, workspace: Path, last: Callable[[], None]) -> int:
    from procedo.app import open_app
    from procedo.surfaces.mcp.stdio import serve_stdio

    if sys.stdin.isatty():
        call.notes.line("This is an MCP server on standard input and output, to be started by an MCP host. ^C ends it.")
    if not call["inbox"]:
        return serve_stdio(lambda: open_app(workspace, announce=True), last=last)
    from procedo.surfaces.http.serving import beside

    desk, port = _desk(call), call["port"] or 0
    return serve_stdio(lambda: beside(open_app(workspace, announce=True), desk, port=port), last=last)


def run(call: Call) -> int:
    """Serve."""
    _check(call)
    workspace = call.workspace()
    file: Path | None = call["pid_file"]

    def forget() -> None:
        if file is not None:
            file.unlink(missing_ok=True)

    if file is not None:
        _write_pid(file)
    try:
        if call["http"]:
            return _serve_http(call, workspace)
        # After a signal the process is left from inside, and the file has to be gone by then.
        return _serve_host(call, workspace, forget)
    finally:
        forget()
