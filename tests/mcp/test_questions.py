"""Questions to the person at a host: across restarts, across people, and while the world moves on."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult, InputRequiredResult
from mcp_host import ERAS, User, connected, desk, only, says, text_of

from procedo.core.state import Principal, PrincipalKind, Source, Verdict
from procedo.runs import Surface
from procedo.surfaces.mcp import server
from procedo.surfaces.mcp.server import build_server

pytestmark = pytest.mark.anyio
IDA = Surface(Principal(Source.CLI, "ida", PrincipalKind.HUMAN), host=False)
MODEL = Surface(Principal(Source.HOST, "desk", PrincipalKind.AGENT))
BOUND_S = 240

PHARMACY = """
[sop.approval.groups.pharmacists]
members = ["ida", "noor"]

[sop.approval.policies.two]
required_group = "pharmacists"
quorum = 2
"""
RELEASE = {
    "SOP.toml": '[sop]\nname = "vaccine-release"\ndescription = "d"\nexecution_mode = "auto"\n',
    "SOP.md": "## Steps\n\n1. **Release** — Release it.\n   - requires_confirmation: true\n   - policy: two\n",
}


@pytest.mark.requirement("C5", "C86")
@pytest.mark.parametrize("era", ERAS)
async def test_people_are_counted_and_not_connections(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era, sops={"vaccine-release": RELEASE}, config=PHARMACY) as at:
        async with at.host(User([says("approve")]), name="ida") as host:
            gate_id = only(await host.call("sop_start", name="vaccine-release"))["gate_id"]
            view = await host.call("sop_approve", gate_id=gate_id)
            assert only(view)["context"]["votes"] == [{"answer": "approve", "count": 1, "of": 2}]
        for name in ("ida", "IDA "):
            async with at.host(User([says("approve")]), name=name) as host:
                view = await host.call("sop_approve", gate_id=gate_id)
                assert view["status"] == "waiting_approval"
                assert only(view)["context"]["votes"] == [{"answer": "approve", "count": 1, "of": 2}]
        async with at.host(User([says("approve")]), name="sam") as host:
            view = await host.call("sop_approve", gate_id=gate_id, comment="I am noor")
            assert only(view)["context"]["votes"] == [{"answer": "approve", "count": 1, "of": 2}]
        async with at.host(User([says("approve")]), name="noor") as host:
            view = await host.call("sop_approve", gate_id=gate_id)
            assert only(view)["execution_id"] == "1.1"


async def test_an_answer_counts_after_a_restart_of_the_server(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        user = User()
        async with connected(build_server(at.app), "auto", user) as host:
            gate_id = only(await host.call("sop_start", name="kiln-firing"))["gate_id"]
            asked = await host.client.session.call_tool("sop_approve", {"gate_id": gate_id}, allow_input_required=True)
            assert isinstance(asked, InputRequiredResult)
            assert asked.input_requests is not None
            (key,) = asked.input_requests
        async with connected(build_server(at.app), "auto", user) as host:
            result = await host.client.call_tool(
                "sop_approve",
                {"gate_id": gate_id},
                input_responses={key: says("approve")},
                request_state=asked.request_state,
            )
            assert only(result.structured_content)["execution_id"] == "1.1"


async def test_an_answer_to_a_gate_that_was_decided_meanwhile_changes_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host(User()) as host:
        gate_id = only(await host.call("sop_start", name="kiln-firing"))["gate_id"]
        asked = await host.client.session.call_tool("sop_approve", {"gate_id": gate_id}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        assert asked.input_requests is not None
        (key,) = asked.input_requests
        await at.app.runs.decide(gate_id, Verdict.DENY, IDA, comment="no clay left")
        result = await host.client.call_tool(
            "sop_approve",
            {"gate_id": gate_id},
            input_responses={key: says("approve")},
            request_state=asked.request_state,
        )
        view: Any = result.structured_content
        assert (view["status"], only(view)["reason"]) == ("cancelled", "no clay left")
        assert "deny by ida" in view["notes"][0]


async def test_an_answer_for_one_gate_does_not_count_at_another(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host(User()) as host:
        first = only(await host.call("sop_start", name="kiln-firing"))["gate_id"]
        asked = await host.client.session.call_tool("sop_approve", {"gate_id": first}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        assert asked.input_requests is not None
        (key,) = asked.input_requests
        await at.app.runs.cancel(first.rpartition(".")[0], "make room", IDA)
        second = only(await host.call("sop_start", name="kiln-firing"))["gate_id"]
        with pytest.raises(Exception, match="requestState"):
            await host.client.session.call_tool(
                "sop_approve",
                {"gate_id": second},
                input_responses={key: says("approve")},
                request_state=asked.request_state,
                allow_input_required=True,
            )
        (gate,) = await at.app.runs.inbox(IDA)
        assert gate.gate.id == second


@pytest.mark.parametrize("era", ERAS)
async def test_the_first_decision_stands_when_the_person_answers_too_late(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era) as at:

        async def slow(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
            (found,) = await at.app.runs.inbox(IDA)
            await at.app.runs.decide(found.gate.id, Verdict.DENY, IDA, comment="no")
            return says("approve")

        async with connected(build_server(at.app), era, slow) as host:
            started = await host.call("sop_start", name="kiln-firing")
            result = await host.result("sop_approve", gate_id=only(started)["gate_id"])
            assert "deny by ida" in text_of(result)
            assert (await host.call("sop_status", run_id=started["run_id"]))["status"] == "cancelled"


async def test_a_call_that_waits_for_a_person_shows_signs_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_BEAT_S", 0.01)
    heard = anyio.Event()
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)
        if len(told) == 3:
            heard.set()

    async def thinks(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        with anyio.fail_after(BOUND_S):
            await heard.wait()
        return says("approve")

    async with desk(tmp_path, "legacy") as at, connected(build_server(at.app), "legacy", thinks) as host:
        gate_id = only(await host.call("sop_start", name="kiln-firing"))["gate_id"]
        result = await host.client.call_tool("sop_approve", {"gate_id": gate_id}, progress_callback=hear)
        assert only(result.structured_content)["execution_id"] == "1.1"
        assert told == sorted(set(told))


@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_decides_only_where_a_policy_names_it(tmp_path: Path, era: str) -> None:
    config = '[sop.approval.policies.bots]\nagents = ["deploy-bot"]\n'
    sop = {
        "SOP.toml": '[sop]\nname = "far"\ndescription = "d"\nexecution_mode = "auto"\n',
        "SOP.md": "## Steps\n\n1. **Pay** — Pay.\n   - requires_confirmation: true\n   - policy: bots\n",
    }
    async with desk(tmp_path, era, sops={"far": sop}, config=config) as at:
        async with at.host(name="other-bot") as host:
            gate_id = only(await host.call("sop_start", name="far"))["gate_id"]
            view = await host.call("sop_approve", gate_id=gate_id, decision="approve")
            assert view["status"] == "waiting_approval"
        async with at.host(name="deploy-bot") as host:
            assert "[missing_decision]" in await host.refused("sop_approve", gate_id=gate_id)
            view = await host.call("sop_approve", gate_id=gate_id, decision="approve", comment="checks are green")
            assert only(view)["execution_id"] == "1.1"
        (gate,) = (await at.app.runs.history(view["run_id"])).gates
        assert gate.decided_by == Principal(Source.HOST, "deploy-bot", PrincipalKind.AGENT)


@pytest.mark.requirement("C9")
@pytest.mark.parametrize("era", ERAS)
async def test_an_answer_to_an_older_presentation_does_not_count_even_if_the_draft_is_the_same(
    tmp_path: Path, era: str
) -> None:
    async with desk(tmp_path, era) as at:
        asked: list[str] = []

        async def slow(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
            asked.append(params.message)
            if len(asked) > 1:
                return says("deny", "both are rude")
            (found,) = await at.app.runs.inbox(IDA)
            await at.app.runs.decide(found.gate.id, Verdict.REVISE, IDA, comment="friendlier")
            await at.app.runs.advance(found.run_id, "1.2", "completed", {"body": "old"}, MODEL)
            return says("approve")

        async with connected(build_server(at.app), era, slow) as host:
            run_id = (await host.call("sop_start", name="letter"))["run_id"]
            view = await host.call(
                "sop_advance", run_id=run_id, execution_id="1.1", status="completed", output={"body": "old"}
            )
            result = await host.result("sop_approve", gate_id=only(view)["gate_id"])
            now = await host.call("sop_status", run_id=run_id)
    if era == "legacy":
        assert "[superseded]" in text_of(result)
        assert (now["status"], only(now)["context"]["revision"]) == ("paused_checkpoint", 2)
    else:
        # The newer revision asks the question again, and the second answer is the one that counts.
        assert ["revision 1," in asked[0], "revision 2," in asked[1]] == [True, True]
        assert (now["status"], only(now)["reason"]) == ("cancelled", "both are rude")
