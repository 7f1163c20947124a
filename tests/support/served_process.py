"""The HTTP server as a real process, a browser of the simplest kind, and calls by hand."""

import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode

from commands import Workspace
from forked import Piped

__all__ = ["LIMIT_S", "Browser", "Running", "ask_host", "call", "forked", "interpreted", "request", "serving"]

LIMIT_S = 240


@dataclass
class Running:
    """A server process; `lines` is what it said when it was ready."""

    process: "subprocess.Popen[str] | Piped"
    origin: str
    code: str

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)


def interpreted(place: Workspace, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "procedo", "serve", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place.root,
        env=place.environment(), start_new_session=True,
    )  # fmt: skip


def forked(place: Workspace, *words: str) -> Piped:
    return Piped(("serve", *words), cwd=place.root, environ=place.environment())


@contextmanager
def serving(
    place: Workspace, *words: str, begin: "Callable[..., subprocess.Popen[str] | Piped]" = interpreted
) -> Iterator[Running]:
    """A server until the block ends; a forked one where its end is not what is looked at."""
    with begin(place, *words) as process:
        guard = threading.Timer(LIMIT_S, process.kill)
        guard.start()
        try:
            assert process.stderr is not None
            first, second = process.stderr.readline(), process.stderr.readline()
            origin = re.search(r"inbox at (http://[^ ]+)/inbox", first)
            code = re.search(r"code (\w{4}-\w{4}) \(works once", second)
            assert origin is not None and code is not None, (first, second, process.stderr.read())  # noqa: PT018  # one look
            yield Running(process, origin.group(1), code.group(1))
        finally:
            guard.cancel()
            process.kill()


class Browser:
    """A client that keeps cookies."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar())).open

    def get(self, path: str) -> str:
        with self._open(self._origin + path, timeout=LIMIT_S) as answer:
            return str(answer.read().decode())

    def post(self, path: str, **fields: str) -> str:
        request = urllib.request.Request(self._origin + path, urlencode(fields).encode(), {"origin": self._origin})  # noqa: S310  # our own server
        with self._open(request, timeout=LIMIT_S) as answer:
            return str(answer.read().decode())

    def approve(self, path: str) -> str:
        """Press the button on a gate's page."""
        found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', self.get(path)))
        return self.post(path, **found, verdict="approve", comment="from the page")


def request(tool: str, **arguments: Any) -> dict[str, Any]:
    """A tool call of the newer revision as it travels."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "desk", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def ask_host(running: Running, run_id: str) -> Any:
    """Ask the server on its standard input for a run's next step."""
    assert running.process.stdin is not None
    assert running.process.stdout is not None
    running.process.stdin.write(json.dumps(request("sop_resume", run_id=run_id)) + "\n")
    running.process.stdin.flush()
    return json.loads(running.process.stdout.readline())["result"]["structuredContent"]


def call(running: Running, tool: str, **arguments: Any) -> Any:
    """One tool call of a client that speaks the newer revision, by hand."""
    headers = {
        "content-type": "application/json", "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool,
    }  # fmt: skip
    sent = urllib.request.Request(f"{running.origin}/mcp", json.dumps(request(tool, **arguments)).encode(), headers)  # noqa: S310  # our own server
    with urllib.request.urlopen(sent, timeout=LIMIT_S) as answer:  # noqa: S310  # our own server
        text = answer.read().decode()
    body = text if text.startswith("{") else text.rpartition("data: ")[2]
    return json.loads(body)["result"]["structuredContent"]
