"""`/metrics`: what a scraper reads, over restarts and processes, and who may read it."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_server import Served, bearer, reserved, served
from prometheus_client.parser import text_string_to_metric_families
from watched import BOUND_S, Listening, furnish, listening

from procedo.core.reach import Reach
from procedo.errors import Refused, StoreError
from procedo.surfaces.http.metrics import MetricsPage, check_open
from procedo.telemetry.instruments import GATE_WAIT, INSTRUMENTS, MOST_SERIES, OTHER, TOOL_CALLS, TRANSITIONS, Kind
from procedo.telemetry.meters import Meters

Numbers = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(text: str) -> Numbers:
    """Every sample of a page, as the parser of Prometheus' own client reads it."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def key(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(labels.items()))


def told(server: Listening, sample: tuple[str, tuple[tuple[str, str], ...]]) -> str:
    """The page, once it has this sample: a commit is counted a moment after it can be seen."""
    until = time.monotonic() + BOUND_S
    while sample not in read((answer := server.get("/metrics"))[1]):
        assert time.monotonic() < until, answer
    assert answer[0] == 200
    return answer[1]


@pytest.mark.requirement("metrics")
def test_the_page_counts_what_happened_and_what_stands_holds_over_a_restart(tmp_path: Path) -> None:
    place = furnish(tmp_path)
    with listening(place) as server:
        view = server.call("sop_start", name="shipping", inputs={"name": "Ada"}, wait_s=45)
        text = told(server, key("procedo_sessions_total", agent="reviewer", state="completed"))
        families = {family.name: family for family in text_string_to_metric_families(text)}
        assert set(families) == {one.prometheus.removesuffix("_total") for one in INSTRUMENTS}
        assert {families[one.prometheus.removesuffix("_total")].type for one in INSTRUMENTS} == set(Kind)
        numbers = read(text)
        server.end()
    agent = {"agent": "reviewer", "model": "scripted"}
    expected = {
        key("procedo_runs", status="waiting_approval"): 1,
        key("procedo_runs", status="completed"): 0,
        key("procedo_gates_open", policy="human"): 1,
        key("procedo_runs_started_total", sop="shipping"): 1,
        key("procedo_transitions_total", command="Start"): 1,
        key("procedo_transitions_total", command="Finish"): 2,
        key("procedo_agent_tokens_total", **agent, direction="input"): 220,
        key("procedo_agent_tokens_total", **agent, direction="output"): 30,
        key("procedo_agent_cost_usd_total", **agent): 0,
        key("procedo_agent_requests_total", **agent, outcome="answered"): 2,
        key("procedo_agent_tool_calls_total", agent="reviewer", outcome="success"): 1,
        key("procedo_sessions_total", agent="reviewer", state="completed"): 1,
        key("procedo_capability_calls_total", capability="template", outcome="success"): 1,
        key("procedo_steps_duration_seconds_count", sop="shipping", performer="agent", outcome="completed"): 1,
    }
    assert {name: numbers.get(name) for name in expected} == expected
    assert numbers[key("procedo_gates_oldest_age_seconds", policy="human")] >= 0
    assert view["run_id"] not in text

    with listening(place) as server:
        again = read(server.get("/metrics")[1])
    assert again[key("procedo_runs", status="waiting_approval")] == 1
    assert again[key("procedo_gates_open", policy="human")] == 1
    assert key("procedo_runs_started_total", sop="shipping") not in again


# --- who may read it ------------------------------------------------------------------------------


@asynccontextmanager
async def answers(server: Served, **headers: str) -> AsyncIterator[Any]:
    async with server.web(**headers) as web:
        yield await web.get("/metrics")


async def status(server: Served, **headers: str) -> int:
    async with answers(server, **headers) as answer:
        code: int = answer.status_code
        return code


@pytest.mark.anyio
@pytest.mark.requirement("metrics")
async def test_once_there_are_tokens_one_with_the_role_view_and_no_limits_is_needed(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert await status(server) == 401
        assert await status(server, **bearer("ptk_wrong")) == 401
        assert await status(server, **bearer(await server.token("ida", "view"))) == 200
        assert await status(server, **bearer(await server.token("bot", "operate", kind="agent"))) == 200
        limited = await server.token("eve", "view", reach=Reach(sops=("plain",)))
        assert await status(server, **bearer(limited)) == 403
        assert await status(server, **bearer(await server.token("old", "view", lifetime_s=0.001))) == 401
        async with answers(server) as refused:
            assert refused.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
            assert "procedo_" not in refused.text


@pytest.mark.anyio
async def test_without_tokens_it_is_open_on_this_machine_until_one_is_made(tmp_path: Path) -> None:
    async with served(tmp_path, protected=False) as server:
        assert await status(server) == 200
        async with server.web() as web:
            assert (await web.post("/metrics")).status_code == 405
        await server.token("ida", "view")
        assert await status(server) == 401


@pytest.mark.anyio
async def test_it_can_be_open_to_this_machine_beside_tokens_but_under_its_own_names_alone(tmp_path: Path) -> None:
    config = '[http]\nopen_metrics = true\npublic_url = "https://ops.example"\n'
    async with served(tmp_path, config) as server:
        assert await status(server) == 200
        # What came through a proxy is from elsewhere.
        assert await status(server, host="ops.example") == 401
        # A page of another site that looked up its own name as ours.
        assert await status(server, host="evil.example") == 421


@pytest.mark.parametrize(("host", "is_refused"), [("127.0.0.1", False), ("localhost", False), ("10.0.0.5", True)])
def test_open_numbers_are_refused_where_a_network_could_read_them(host: str, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(Refused, match="can be reached from other machines") as refused:
            check_open(True, host)
        assert refused.value.code == "open_metrics"
    else:
        check_open(True, host)
    check_open(False, host)


@pytest.mark.anyio
async def test_a_store_that_cannot_be_read_is_unavailable_and_not_empty(tmp_path: Path) -> None:
    async def broken() -> str:
        raise StoreError("locked", "It is locked.")

    async with served(tmp_path, protected=False) as server:
        page = MetricsPage(broken, server.app.tokens, None, frozenset({"here"}))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(page), base_url="http://here") as web:
            answer = await web.get("/metrics")
    assert (answer.status_code, answer.json()) == (503, {"error": "unavailable", "error_description": "locked"})


# --- the text -------------------------------------------------------------------------------------


def test_labels_are_escaped_and_buckets_add_up() -> None:
    meters = Meters()
    meters.add(TRANSITIONS, 2, 'a"b\\c\nd')
    for seconds in (0.05, 0.1, 3.0, 1e9):
        meters.record(GATE_WAIT, seconds, "human")
    numbers = read(meters.page())
    assert numbers[key("procedo_transitions_total", command='a"b\\c\nd')] == 2
    name = "procedo_gates_wait_seconds"
    counts = [
        numbers[key(f"{name}_bucket", policy="human", le=le)] for le in ("0.1", "0.5", "1", "5", "604800", "+Inf")
    ]
    assert counts == [2, 2, 2, 3, 3, 4]
    assert numbers[key(f"{name}_count", policy="human")] == 4
    assert numbers[key(f"{name}_sum", policy="human")] == pytest.approx(1e9 + 3.15)


def test_a_metric_has_no_more_series_than_its_bound() -> None:
    meters = Meters()
    for number in range(MOST_SERIES + 50):
        meters.add(TOOL_CALLS, 1, f"agent-{number}", "success")
    meters.add(TOOL_CALLS, 1, "agent-0", "success")
    series = {name: value for name, value in read(meters.page()).items() if name[0] == TOOL_CALLS.prometheus}
    assert len(series) == MOST_SERIES + 1
    assert series[key(TOOL_CALLS.prometheus, agent=OTHER, outcome=OTHER)] == 50
    assert series[key(TOOL_CALLS.prometheus, agent="agent-0", outcome="success")] == 2


def test_no_label_names_a_run_an_execution_a_gate_or_a_person() -> None:
    labels = {label for one in INSTRUMENTS for label in one.labels}
    assert labels == {
        "agent", "capability", "command", "direction", "gen_ai.operation.name", "gen_ai.provider.name",
        "gen_ai.request.model", "gen_ai.token.type", "kind", "model", "outcome", "performer", "policy", "route",
        "sop", "state", "status", "verdict",
    }  # fmt: skip


@pytest.mark.anyio
async def test_the_numbers_are_of_everybody_and_a_second_server_shows_the_same(tmp_path: Path) -> None:
    async with served(tmp_path, protected=False) as first:
        async with first.host("auto") as host:
            await host.call("sop_start", name="kiln-firing")
        async with reserved(tmp_path, protected=False) as second, answers(second) as answer:
            assert read(answer.text)[key("procedo_runs", status="waiting_approval")] == 1
