"""Ending well: a server that stops loses nothing, doubles nothing, and leaves its work to others at once."""

import json
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from chat_server import said
from commands import Workspace
from http_server import BOUND_S, served
from mcp_host import PLAIN, FixedClock, User, only, workspace
from served_process import LIMIT_S, Browser, Running, call, forked, request, serving

pytestmark = pytest.mark.requirement("http-end")
ACCEPT = {"accept": "application/json, text/event-stream"}
MODERN = {**ACCEPT, "mcp-protocol-version": "2026-07-28"}
PATIENT = '[worker]\nlease = "1h"\n'
"""Work that a server does not give back would stay with it for longer than any test lasts."""
AGENT = (
    PATIENT
    + """
[agents.reviewer]
model_provider = "openai_compatible.own"
risk_profile = "careful"
[risk_profiles.careful]
allowed_tools = []
[providers.models.openai_compatible.own]
model = "m"
endpoint = "ENDPOINT"
"""
)
REVIEW = {
    "SOP.toml": '[sop]\nname = "review"\ndescription = "d"\nexecution_mode = "auto"\nmax_concurrent = 9\n',
    "SOP.md": "## Steps\n\n1. **Review** — Review it.\n   - agent: reviewer\n",
}


@pytest.mark.anyio
async def test_a_server_that_stops_is_not_ready_and_refuses_what_is_new(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.web() as web:
        assert (await web.get("/ready")).json() == {"status": "ok"}
        server.app.stopping.set()
        server.refuse()
        ready = await web.get("/ready")
        assert (ready.status_code, ready.json()) == (503, {"status": "unavailable", "reason": "stopping"})
        assert (await web.get("/health")).json() == {"status": "ok"}
        for answer in (await web.post("/mcp", json={}), await web.get("/mcp"), await web.get("/inbox")):
            assert (answer.status_code, answer.headers["retry-after"], answer.headers["connection"]) == (
                503,
                "1",
                "close",
            )
        refused = await web.post("/mcp", json=request("sop_list"))
        assert refused.json() == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {
                "code": -32603,
                "message": "This server is stopping: nothing was done. Send the same request again.",
                "data": {"code": "stopping"},
            },
        }


@pytest.mark.anyio
async def test_a_server_whose_store_takes_no_records_is_not_ready(tmp_path: Path) -> None:
    # Without a worker, which would end with its store.
    async with served(tmp_path, clock=FixedClock()) as server, server.web() as web:
        other = sqlite3.connect(tmp_path / ".procedo" / "procedo.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answers = []

        async def ask() -> None:
            answers.append(await web.get("/ready"))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(ask)
        assert [(answer.status_code, answer.json()["reason"]) for answer in answers] == [(503, "store_busy")] * 3
        assert (await web.get("/health")).status_code == 200
        other.execute("ROLLBACK")
        other.close()
        with anyio.fail_after(BOUND_S):
            while (await web.get("/ready")).status_code != 200:
                await anyio.lowlevel.checkpoint()
        await server.app.store.close()
        closed = await web.get("/ready")
        assert (closed.status_code, closed.json()["reason"]) == (503, "store_closed")


@pytest.mark.anyio
async def test_a_question_at_the_host_is_closed_and_the_gate_stays_open(tmp_path: Path) -> None:
    asked = anyio.Event()

    class Silent(User):
        async def __call__(self, *_: Any) -> Any:
            asked.set()
            await anyio.sleep_forever()

    # In the newer revision no call lasts while a person thinks.
    async with served(tmp_path) as server:
        async with server.host("legacy", await server.token("ida", "operate", "approve"), Silent()) as host:
            gate = only(await host.call("sop_start", name="kiln-firing"))["gate_id"]
            views = []

            async def ask() -> None:
                views.append(await host.call("sop_approve", gate_id=gate))

            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await asked.wait()
                server.app.stopping.set()
        assert "The server is stopping: the question is closed" in views[0]["notes"][0]
        assert (await server.app.runs.gate(gate))[0].gate.open


class Model:
    """A model that thinks until it is let go. `asked` once somebody waits for it."""

    def __init__(self) -> None:
        self.asked, self.free = threading.Event(), threading.Event()
        self.endpoint = ""


@contextmanager
def thinking() -> Iterator[Model]:
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            model.asked.set()
            model.free.wait(LIMIT_S)
            data = json.dumps(said("fine")).encode()
            try:
                self.send_response(200)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                """Whoever asked has gone."""

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.endpoint = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield model
    finally:
        model.free.set()
        server.shutdown()
        thread.join()
        server.server_close()


def listened(running: Running, began: threading.Event) -> list[Any]:
    """A stream of news, to its end."""
    body = request("")
    body["method"] = "subscriptions/listen"
    body["params"] = {"_meta": body["params"]["_meta"], "notifications": {"resourcesListChanged": True}}
    found = []
    headers = {**MODERN, "mcp-method": "subscriptions/listen"}
    with httpx2.stream("POST", f"{running.origin}/mcp", json=body, headers=headers, timeout=LIMIT_S) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
                began.set()
    return found


def older_news(running: Running, began: threading.Event) -> int:
    """The stream of an older client, to its end; answers with how many lines came."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "d", "version": "1"}}
    url = f"{running.origin}/mcp"
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    first = httpx2.post(url, json=begin, headers=ACCEPT, timeout=LIMIT_S)
    session = {**ACCEPT, "mcp-session-id": first.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    with httpx2.stream("GET", url, headers=session, timeout=LIMIT_S) as answer:
        began.set()
        return len([line for line in answer.iter_lines() if line.startswith("data: ")])


def watched(running: Running, began: threading.Event) -> str:
    """A page that keeps itself up to date, to its end."""
    browser = Browser(running.origin)
    browser.post("/inbox/login", credential=running.code, next="")
    with browser._open(f"{running.origin}/inbox/events", timeout=LIMIT_S) as stream:
        stream.readline()
        began.set()
        return str(stream.read().decode())


def test_everything_that_is_open_ends_in_good_order_and_another_server_takes_the_work_over(tmp_path: Path) -> None:
    with thinking() as model:
        workspace(tmp_path, {"review": REVIEW, "plain": PLAIN}, AGENT.replace("ENDPOINT", model.endpoint))
        place = Workspace(tmp_path)
        with (
            serving(place, "--http", "--port", "0") as first,
            ThreadPoolExecutor() as pool,
            socket.create_connection(("127.0.0.1", int(first.origin.rpartition(":")[2]))) as half,
        ):
            half.sendall(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\n\r\nx")
            waiting = pool.submit(call, first, "sop_start", name="review", wait_s=45)
            began = [threading.Event() for _ in range(3)]
            newer = pool.submit(listened, first, began[0])
            older = pool.submit(older_news, first, began[1])
            page = pool.submit(watched, first, began[2])
            assert all(event.wait(LIMIT_S) for event in (*began, model.asked))
            assert first.end(signal.SIGTERM) == 143
            view = waiting.result(LIMIT_S)
            assert (view["status"], view["who_acts"]) == ("running", "agent")
            news = [one.get("method", "result") for one in newer.result(LIMIT_S)]
            assert news == ["notifications/subscriptions/acknowledged", "result"]
            assert older.result(LIMIT_S) == 0
            assert "bye" not in page.result(LIMIT_S)
        model.free.set()
        with serving(place, "--http", "--port", "0", begin=forked) as second:
            view = call(second, "sop_status", run_id=view["run_id"], wait_s=45)
        assert (view["status"], view["output"]) == ("completed", "fine")
        assert place.run("audit", "verify").code == 0


class Client:
    """A client that sends each call again, to whichever server answers, until it has an answer."""

    def __init__(self, origins: list[str]) -> None:
        self.origins = origins
        self.refused: list[int] = []

    def call(self, tool: str, /, **arguments: Any) -> Any:
        turn = 0
        while True:
            turn += 1
            origin = self.origins[turn % len(self.origins)]
            headers = {**MODERN, "mcp-method": "tools/call", "mcp-name": tool}
            try:
                answer = httpx2.post(f"{origin}/mcp", json=request(tool, **arguments), headers=headers, timeout=LIMIT_S)
            except httpx2.TransportError:
                continue
            if answer.status_code == 503:
                self.refused.append(503)
                continue
            text = answer.text if answer.text.startswith("{") else answer.text.rpartition("data: ")[2]
            return json.loads(text)["result"]["structuredContent"]


def worked_off(client: Client, number: int) -> str:
    """A run from its start to its end."""
    view = client.call("sop_start", name="plain", inputs={"n": number}, idempotency_key=f"key-{number}", wait_s=0)
    for step in (1, 2, 3):
        view = client.call(
            "sop_advance", run_id=view["run_id"], execution_id=f"{step}.1", status="completed", output=number, wait_s=0
        )
    assert (view["status"], view["output"]) == ("completed", number)
    return str(view["run_id"])


@contextmanager
def held(origin: str) -> Iterator[None]:
    """While the block lasts, nobody else answers where a server has ended."""
    with socket.socket() as mute:
        mute.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # somebody may have been faster
            mute.bind(("127.0.0.1", int(origin.rpartition(":")[2])))
        yield


def test_under_load_a_client_that_tries_again_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    many = {**PLAIN, "SOP.toml": PLAIN["SOP.toml"].replace("max_concurrent = 4", "max_concurrent = 99")}
    workspace(tmp_path, {"plain": many}, "[sop]\nmax_concurrent_total = 99\n")
    place = Workspace(tmp_path)
    with serving(place, "--http", "--port", "0", begin=forked) as steady, ThreadPoolExecutor(6) as pool:
        runs: list[str] = []
        for turn in range(3):
            with serving(place, "--http", "--port", "0", begin=forked) as ending:
                clients = [Client([steady.origin, ending.origin]) for _ in range(12)]
                working = [pool.submit(worked_off, one, 12 * turn + n) for n, one in enumerate(clients)]
                working[0].result(LIMIT_S)
                assert ending.end(signal.SIGTERM) == 143
                with held(ending.origin):
                    runs += [one.result(LIMIT_S) for one in working]
    assert len(set(runs)) == 36
    listed = place.json("status", "--all")
    assert {one["run_id"] for one in listed["runs"]} == set(runs)
    assert listed["counts"]["completed"] == 36
    assert place.run("audit", "verify").code == 0
