"""The server as a process: what it prints, how it ends, and that nothing is lost between two of them."""

import json
import os
import re
import signal
import socket
import threading
import urllib.error
from pathlib import Path

import pytest
from commands import Workspace
from mcp_host import KILN, workspace
from served_process import LIMIT_S, Browser, ask_host, call, forked, serving


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    workspace(tmp_path, {"kiln-firing": KILN})
    return Workspace(tmp_path)


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
