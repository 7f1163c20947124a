"""Our server as a process at the end of two pipes, spoken to line by line in the older revision."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

from commands import Workspace
from forked import Piped

SERVER = Path(__file__).parent / "stdio_server.py"
BOUND_S = 240
Process: TypeAlias = subprocess.Popen[str] | Piped

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "desk", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


@contextmanager
def served(folder: Path) -> Iterator[subprocess.Popen[str]]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(SERVER), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(BOUND_S)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def forked(folder: Path, *, agents: bool = False) -> Piped:
    """The server as `procedo serve` starts it, for tests that start many of them."""
    return Piped(("serve",), cwd=folder, environ=Workspace(folder).environment(), agents=agents)


def pipes(process: Process) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def say(process: Process, *messages: dict[str, Any]) -> None:
    stdin, _ = pipes(process)
    for message in messages:
        stdin.write(json.dumps(message) + "\n")
    stdin.flush()


def answer(process: Process, number: int) -> Any:
    """The answer with that number; every line before it has to be JSON as well."""
    _, stdout = pipes(process)
    while True:
        line = stdout.readline()
        assert line, "the server ended"
        message = json.loads(line)
        if message.get("id") == number:
            return message["result"]


def started(process: Process) -> str:
    say(process, HELLO, READY)
    answer(process, 1)
    say(process, call(2, "sop_start", name="plain", inputs={"a": 1}))
    run_id: str = answer(process, 2)["structuredContent"]["run_id"]
    return run_id
