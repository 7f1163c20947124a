"""A workspace with every kind of thing that telemetry is about, and a host that plays a run of it to its end."""

import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commands import Workspace
from stdio_process import HELLO, READY, answer, call, say

__all__ = ["BOUND_S", "Hosted", "Listening", "furnish", "hosting", "listening"]

BOUND_S = 240.0
CONFIG = """
[agents.reviewer]
model_provider = "scripted.demo"
risk_profile = "careful"
runtime_profile = "short"

[risk_profiles.careful]
allowed_tools = ["file_read", "file_write"]
always_ask = []
excluded_tools = []

[runtime_profiles.short]

[providers.models.scripted.demo]
script = "script.toml"
"""
SCRIPT = """
[[turns]]
calls = [{ tool = "file_read", args = { path = "change.md" } }]
tokens = [100, 10]

[[turns]]
text = "The change is fine."
tokens = [120, 20]
"""
STEPS = """
1. **Write the letter**
   - kind: capability
   - capability: template
   - with: {"text": "Dear {{inputs.name}}"}

2. **Review** — Review change.md.
   - agent: reviewer

3. **Ship** — Ship it.
   - requires_confirmation: true
"""


def furnish(folder: Path, more: str = "", *, script: str = SCRIPT) -> Workspace:
    """Write the workspace."""
    (folder / "procedo.toml").write_text(CONFIG + more, encoding="utf-8")
    (folder / "script.toml").write_text(script, encoding="utf-8")
    (folder / "change.md").write_text("All of it is good.\n", encoding="utf-8")
    place = Workspace(folder)
    place.simple("shipping", STEPS)
    return place


@dataclass
class Hosted:
    """A server on two pipes with a host at the other end; `lines` is what it wrote to standard error so far."""

    process: "subprocess.Popen[str]"
    lines: list[str] = field(default_factory=list)
    _number: int = 1
    _said: threading.Condition = field(default_factory=threading.Condition)

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured answer of a tool, or its text when it was refused."""
        self._number += 1
        say(self.process, call(self._number, tool, **arguments))
        result = answer(self.process, self._number)
        return result["content"][0]["text"] if result.get("isError") else result["structuredContent"]

    def to_the_gate(self, **inputs: Any) -> Any:
        """Start a run and wait until it stands at its gate."""
        view = self.call("sop_start", name="shipping", inputs=inputs, wait_s=45)
        assert [action["action"] for action in view["actions"]] == ["wait_approval"], view
        return view

    def until(self, word: str) -> None:
        """Wait until a line holds this word."""
        with self._said:
            assert self._said.wait_for(lambda: any(word in line for line in self.lines), BOUND_S), self.lines

    def end(self) -> int:
        """Close the connection as a host does; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(BOUND_S)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._said:
                self.lines.append(line.rstrip("\n"))
                self._said.notify_all()


@contextmanager
def _running(place: Workspace, words: list[str], pipe: int, environ: dict[str, str]) -> Iterator[Hosted]:
    """`procedo serve` as a real process, listened to until it is killed; `pipe` is what its host's two ends are."""
    process = subprocess.Popen(
        [sys.executable, "-m", "procedo", "serve", *words],
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place.root,
        env=place.environment(**environ),
        start_new_session=True,
    )
    hosted = Hosted(process)
    hearing = threading.Thread(target=hosted._listen, daemon=True)
    guard = threading.Timer(2 * BOUND_S, process.kill)
    try:
        hearing.start()
        guard.start()
        yield hosted
    finally:
        guard.cancel()
        process.kill()
        process.wait(BOUND_S)
        hearing.join(BOUND_S)
        for end in (process.stdin, process.stdout, process.stderr):
            if end is not None:
                end.close()


@contextmanager
def hosting(place: Workspace, **environ: str) -> Iterator[Hosted]:
    """`procedo serve` as a real process, greeted in the older revision."""
    with _running(place, [], subprocess.PIPE, environ) as hosted:
        say(hosted.process, HELLO, READY)
        answer(hosted.process, 1)
        yield hosted


@dataclass
class Listening:
    """A server over HTTP; `lines` is what it wrote to standard error so far."""

    process: "subprocess.Popen[str]"
    origin: str
    lines: list[str]

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """The status and the body of an answer."""
        request = urllib.request.Request(self.origin + path, headers=headers)  # noqa: S310  # our own server
        try:
            with urllib.request.urlopen(request, timeout=BOUND_S) as found:  # noqa: S310  # our own server
                return found.status, found.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured answer of a tool, in the newer revision."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "desk", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = call(1, tool, **arguments)
        body["params"]["_meta"] = meta
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        request = urllib.request.Request(f"{self.origin}/mcp", json.dumps(body).encode(), headers)  # noqa: S310  # our own server
        with urllib.request.urlopen(request, timeout=BOUND_S) as found:  # noqa: S310  # our own server
            text = found.read().decode()
        said = next((line[6:] for line in text.splitlines() if line.startswith("data: {")), text)
        return json.loads(said)["result"]["structuredContent"]

    def end(self) -> int:
        """Ask it to end; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(BOUND_S)


@contextmanager
def listening(place: Workspace, *words: str, **environ: str) -> Iterator[Listening]:
    """`procedo serve --http` as a real process at a free port."""
    with _running(place, ["--http", "--port", "0", *words], subprocess.DEVNULL, environ) as hosted:
        hosted.until("inbox at ")
        said = next(line for line in hosted.lines if "inbox at " in line)
        yield Listening(hosted.process, said.rpartition("inbox at ")[2].removesuffix("/inbox"), hosted.lines)
