"""The server as a process: what it prints, how it ends, and that nothing is lost between two of them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from commands import Workspace
from forked import Piped
from mcp_host import KILN, workspace

LIMIT_S = 60


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


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    workspace(tmp_path, {"kiln-firing": KILN})
    return Workspace(tmp_path)


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


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
@pytest.mark.requirement("http-end")
def test_a_signal_ends_the_server_in_good_order(place: Workspace, number: int, expected: int) -> None:
    with serving(place, "--http", "--port", "0") as running:
        assert json.loads(Browser(running.origin).get("/ready")) == {"status": "ok"}
        assert running.end(number) == expected
        assert running.process.stdout is not None
        assert running.process.stdout.read() == ""
    assert place.run("audit", "verify").code == 0


@pytest.mark.requirement("http-end")
def test_a_signal_ends_the_server_while_a_page_and_a_call_are_open(place: Workspace) -> None:
    with serving(place, "--http", "--port", "0") as running:
        browser = Browser(running.origin)
        browser.post("/inbox/login", credential=running.code, next="")
        opened = threading.Event()

        def listen() -> None:
            with browser._open(f"{running.origin}/inbox/events", timeout=LIMIT_S) as stream:
                stream.readline()
                opened.set()
                stream.read()

        listener = threading.Thread(target=listen)
        listener.start()
        assert opened.wait(LIMIT_S)
        run_id = call(running, "sop_start", name="kiln-firing")["run_id"]
        with socket.create_connection(("127.0.0.1", int(running.origin.rpartition(":")[2]))) as half:
            half.sendall(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\n\r\nx")
            assert running.end(signal.SIGTERM) == 143
        listener.join(LIMIT_S)
        assert not listener.is_alive()
    assert place.json("status", run_id)["status"] == "waiting_approval"


def test_a_gate_is_decided_on_the_page_and_the_next_server_goes_on(place: Workspace) -> None:
    with serving(place, "--http", "--port", "0", begin=forked) as first:
        view = call(first, "sop_start", name="kiln-firing")
        browser = Browser(first.origin)
        browser.post("/inbox/login", credential=first.code, next="")
        page = browser.approve(f"/inbox/gates/{view['actions'][0]['gate_id']}")
        assert "Approved" in page
        os.killpg(first.process.pid, signal.SIGKILL)
    with serving(place, "--http", "--port", "0", begin=forked) as second:
        view = call(second, "sop_resume", run_id=view["run_id"])
        assert view["actions"][0]["execution_id"] == "1.1"


def test_the_inbox_beside_a_host_decides_and_the_host_sees_it(place: Workspace) -> None:
    action = place.json("start", "kiln-firing")["actions"][0]
    code, run_id = action["context"]["code"], action["run_id"]
    with serving(place, "--inbox", begin=forked) as running:
        browser = Browser(running.origin)
        browser.post("/inbox/login", credential=running.code, next="")
        (path,) = set(re.findall(r'href="(/inbox/gates/[^"]+)"', browser.get("/inbox")))
        assert code in browser.get(path)
        assert "Approved" in browser.approve(path)
        assert ask_host(running, run_id)["actions"][0]["execution_id"] == "1.1"
        with pytest.raises(urllib.error.HTTPError) as missing:
            browser.get("/mcp")
        missing.value.close()
        assert missing.value.code == 404, "MCP is spoken on standard input alone"
        assert running.process.stdin is not None
        running.process.stdin.close()
        assert running.process.wait(LIMIT_S) == 0, "the end of input is the end, also with the page open"
    assert place.json("inbox")["gates"] == []


def test_a_signal_ends_a_host_server_with_its_inbox(place: Workspace) -> None:
    with serving(place, "--inbox") as running:
        assert "Log in" in Browser(running.origin).get("/inbox")
        assert running.end(signal.SIGTERM) == 143


def test_an_address_for_others_is_refused_without_tokens(place: Workspace) -> None:
    done = place.run("serve", "--http", "--host", "0.0.0.0", "--port", "0")  # noqa: S104  # refused
    assert (done.code, "public_url" in done.err) == (3, True)
    (place.root / "procedo.toml").write_text('[http]\npublic_url = "https://ops.example"\n')
    done = place.run("serve", "--http", "--host", "0.0.0.0", "--port", "0")  # noqa: S104  # refused
    assert (done.code, "no token and no OAuth issuer" in done.err) == (3, True)


MISTAKES = {
    "a host without http": ("--host", "127.0.0.1"),
    "a port without a page": ("--port", "1"),
    "no port": ("--http", "--port", "70000"),
    "two doors": ("--http", "--inbox"),
}


@pytest.mark.parametrize("words", MISTAKES.values(), ids=MISTAKES)
def test_options_that_do_not_go_together_are_told(place: Workspace, words: tuple[str, ...]) -> None:
    assert place.run("serve", *words).code == 2
