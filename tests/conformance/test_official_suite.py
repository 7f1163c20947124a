"""The official conformance suite of the protocol, both revisions, against our real application over HTTP."""

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from conformance_fixtures import furnish
from conformance_tasks import MadeTasks, furnish_tasks
from mcp_host import workspace
from node_tools import node, packages

from procedo.app import open_app
from procedo.surfaces.http.addresses import Addresses, listen
from procedo.surfaces.http.door import HttpDoor
from procedo.surfaces.http.serving import http_server
from procedo.surfaces.mcp.server import build_server

pytestmark = pytest.mark.requirement("conformance-suite")
BOUND_S = 600
TASKS = frozenset(
    f"tasks-{name}"
    for name in (
        "capability-negotiation", "dispatch-and-envelope", "lifecycle", "mrtr-composition", "mrtr-input",
        "request-headers", "request-state-removal", "required-task-error", "status-notifications", "wire-fields",
    )
)  # fmt: skip
# Streams that a server closes and clients resume belong to the older revision alone and need a store of events,
# which procedo does not keep: a run is read again instead. The suite does not score this scenario.
NOT_SERVED = frozenset({"server-sse-polling"})


def suite() -> list[str]:
    """The command of the suite."""
    name = "@modelcontextprotocol/conformance"
    return [node(), str(packages(name) / "node_modules" / name / "dist" / "index.js")]


async def _serve(folder: Path, ready: Event, port: list[int], stop: Event) -> None:
    async with open_app(folder) as app:
        door = HttpDoor(app, anonymous=True, route="the inbox page")
        server = build_server(app, door=door, tasks=[MadeTasks()])
        furnish_tasks(server)
        furnish(server)
        sock = listen("127.0.0.1", 0)
        port.append(sock.getsockname()[1])
        addresses = Addresses.of("127.0.0.1", port[0], app.settings.serving)
        asgi = server.streamable_http_app(
            streamable_http_path="/mcp", transport_security=addresses.security, host="127.0.0.1"
        )
        serving = http_server(asgi, lifespan=True)
        running = asyncio.create_task(serving.serve(sockets=[sock]))
        ready.set()
        await asyncio.to_thread(stop.wait)
        serving.should_exit = True
        await running


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The application with the fixtures of the suite, in a thread; gives its address."""
    ready, stop, port = Event(), Event(), list[int]()
    thread = Thread(target=lambda: asyncio.run(_serve(workspace(folder), ready, port, stop)))
    thread.start()
    try:
        assert ready.wait(BOUND_S)
        yield f"http://127.0.0.1:{port[0]}/mcp"
    finally:
        stop.set()
        thread.join(BOUND_S)


def judged(command: list[str], results: Path, url: str, revision: str) -> tuple[int, dict[str, list[str]]]:
    """The verdict (0: conformant), and what failed in each scenario that was run."""
    arguments = ["server", "--url", url, "--requirements", revision, "-o", str(results)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=BOUND_S, check=False)
    found = dict[str, list[str]]()
    for file in sorted(results.rglob("checks.json")):
        name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name)
        checks = json.loads(file.read_text(encoding="utf-8"))
        found[name] = [f"{c['id']}: {c.get('errorMessage')}" for c in checks if c["status"] == "FAILURE"]
    assert found, done.stdout[-4000:] + done.stderr[-4000:]
    return done.returncode, found


@pytest.mark.parametrize(("revision", "least"), [("2025-11-25", 30), ("2026-07-28", 45)])
def test_every_scenario_of_a_revision_passes(tmp_path: Path, revision: str, least: int) -> None:
    command = suite()
    with served(tmp_path) as url:
        verdict, found = judged(command, tmp_path / "out", url, revision)
    assert {name: wrong for name, wrong in found.items() if wrong and name not in NOT_SERVED} == {}
    assert verdict == 0
    assert len(found) >= least
    assert revision != "2026-07-28" or found.keys() >= TASKS
