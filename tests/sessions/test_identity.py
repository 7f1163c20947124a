"""Who acts for whom, what a step's agent hears, and what its caller gets back."""

import inspect
import json

import pytest
from mcp_host import connected
from pydantic_ai.messages import ModelRequest, UserPromptPart
from session_bench import ASKABLE, HEADLESS, Bench, Hands, Talk, answer, call, config, said, step

from procedo.agents.brief import brief_of
from procedo.agents.dialogue import first_request
from procedo.agents.ports import Delegation, StepBrief
from procedo.agents.registry import Registry
from procedo.core.model import Scope
from procedo.core.session import SessionState
from procedo.core.state import Status
from procedo.driver import Driver
from procedo.runs import Surface
from procedo.surfaces.mcp.server import build_server

pytestmark = pytest.mark.anyio

READ = call("file_read", path="a")
TWO = """
[agents.writer]
model_provider = "scripted.own"
risk_profile = "writing"
instructions = "You write."
[risk_profiles.writing]
allowed_tools = ["file_write"]
auto_approve = ["file_write"]
"""
CONVERSATION = "MARKER-of-the-host's-conversation"


@pytest.mark.requirement("C120", "session-identity")
@pytest.mark.parametrize(
    ("agent", "more", "reasons"),
    [
        ("reviewer", "enabled = false", ["the agent 'reviewer' is disabled"]),
        ("reviewr", "", ["there is no agent 'reviewr' (known: reviewer)"]),
        (
            "reviewer",
            'enabled = false\ninstructions_file = "gone.md"',
            ["the agent 'reviewer' is disabled", "gone.md cannot be read"],
        ),
    ],
)
async def test_an_agent_that_cannot_be_assembled_is_refused_with_every_reason_and_nothing_runs(
    bench: Bench, agent: str, more: str, reasons: list[str]
) -> None:
    bench.procedure(step())
    talk, hands = Talk([said(READ), said("never")]), Hands({"file_read": answer})
    if agent == "reviewr":
        # It was there when the run started, and is gone when its step comes.
        bench.configure(config(more=TWO.replace("[agents.writer]", "[agents.reviewr]")))
        bench.procedure(step(agent="reviewr"))
    async with bench.opened(talk, hands) as desk:
        run_id = (await desk.start()).run.id
    text = config(agent=more)
    bench.configure(text.replace('instructions = "You review."\n', "") if "instructions_file" in more else text)
    async with bench.opened(talk, hands, run_id=run_id) as desk:
        assert (await desk.work()).run.status is Status.FAILED
        reason = await desk.failure()
        assert reason.startswith(f"agent {agent!r} is refused: Agent {agent!r} cannot be assembled: ")
        for one in reasons:
            assert one in reason
        history = await desk.app.runs.history(desk.run_id)
        (session,) = history.sessions
        assert (session.agent, session.state, session.turns, session.calls) == (agent, SessionState.REFUSED, 0, 0)
        assert [r.kind for r in history.records if r.kind in ("SessionBegan", "EffectStarted")] == []
        assert {r.acting for r in history.records} == {HEADLESS.principal.key, "system:system:procedo"}
        (execution,) = history.executions
        assert (execution.agent, execution.closing is not None and execution.closing.by) == (
            agent,
            "system:system:procedo",
        )
    assert (talk.heard, hands.made) == ([], [])


@pytest.mark.requirement("session-identity")
async def test_every_record_of_a_session_names_the_acting_and_the_delegating_agent_and_the_root(bench: Bench) -> None:
    bench.configure(config(ask=["file_read"]))
    async with bench.opened([said(READ)], {"file_read": answer}) as desk:
        await desk.start()
        await desk.work()
        history = await desk.app.runs.history(desk.run_id)
        mine = [r for r in history.records if r.acting == "agent:system:reviewer"]
        assert [r.kind for r in mine] == ["SessionBegan", "ExecutionHalted", "GateOpened"]
        for record in mine:
            assert (record.delegating, record.root) == ("agent:host:host", "agent:host:agent")
            assert record.run_id == desk.run_id
        assert {r.execution_id for r in mine} <= {"1.1", None}
        began, (session,) = mine[0].data, history.sessions
        assert (began["agent"], began["delegating"], began["depth"]) == ("reviewer", "host", 1)
        assert began["contract"] == session.contract_digest
        identity = (
            session.agent,
            session.delegating,
            session.root,
            session.depth,
            session.run_id,
            session.execution_id,
        )
        assert identity == ("reviewer", "host", "agent:host:agent", 1, desk.run_id, "1.1")
        actor = session.contract["actor"]
        assert (actor["acting"], actor["delegating"], actor["root"], actor["depth"]) == identity[:4]
        assert (actor["run"], actor["execution"], actor["lineage"]) == (desk.run_id, "1.1", [desk.run_id])


@pytest.mark.requirement("C117")
async def test_a_steps_agent_hears_its_own_instructions_and_the_step_and_nothing_of_its_caller(bench: Bench) -> None:
    """A caller can say things to the server only as inputs and reports, and those come in frames."""
    bench.procedure("1. **Write** — Write.\n2. **Review** — Look at {{steps.1.text}}.\n   - agent: reviewer\n")
    talk = Talk([said(READ), said("fine")])
    async with bench.opened(talk, {"file_read": answer}) as desk:
        async with connected(build_server(desk.app), "auto", name=CONVERSATION) as host:
            view = await host.call("sop_start", name="review", inputs={"n": 1}, wait_s=0)
            desk.run_id = view["run_id"]
            await host.call(
                "sop_advance",
                run_id=desk.run_id,
                execution_id="1.1",
                status="completed",
                output={"text": "DRAFT"},
                wait_s=0,
            )
            await desk.work()
        marker = (await desk.look()).run.marker
    for messages in talk.heard:
        assert CONVERSATION not in repr(messages)
    (first,) = talk.heard[0]
    assert isinstance(first, ModelRequest)
    assert first.instructions == "You review."
    (context,) = [str(part.content) for part in first.parts if isinstance(part, UserPromptPart)]
    assert context.startswith("Procedure review, step 2 of 2: Review\n")
    assert f"Look at <data-{marker}>DRAFT</data-{marker}>." in context
    # The newest request ends with what the step's own call gave, under the same instructions.
    newest = talk.heard[1][-1]
    assert isinstance(newest, ModelRequest)
    assert newest.instructions == "You review."


@pytest.mark.requirement("C117")
def test_there_is_no_parameter_through_which_a_conversation_could_come_in() -> None:
    def named(function: object) -> list[str]:
        return [name for name in inspect.signature(function).parameters if name != "self"]  # type: ignore[arg-type]  # each is callable

    for door in (Registry.opened, Registry.assemble):
        assert named(door) == ["alias", "surface", "ceiling", "step", "delegation", "recorded"]
    assert named(StepBrief) == ["text", "scope", "output_schema"]
    assert named(Delegation) == ["delegating", "root", "run", "execution", "depth", "lineage"]
    assert named(brief_of) == ["sop", "run", "execution"]
    assert named(first_request) == ["instructions", "context"]


@pytest.mark.requirement("C117")
@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_caller_gets_the_final_output_and_nothing_of_the_transcript(bench: Bench, era: str) -> None:
    bench.procedure(step() + "2. **End** — Go on.\n")
    bench.configure(config(agent="", runtime=""))
    inside = "INSIDE-the-session"
    talk = [said(f"{inside} I think", call("file_read", path=inside)), said("the final words")]

    async def tells(**_: object) -> str:
        return f"{inside} result"

    async with bench.opened(talk, {"file_read": tells}) as desk, connected(build_server(desk.app), era) as host:
        started = await host.result("sop_start", name="review", wait_s=0)
        desk.run_id = json.loads(json.dumps(started.structured_content))["run_id"]
        await desk.work()
        answers = [
            await host.result("sop_status", run_id=desk.run_id, wait_s=0),
            await host.result("sop_resume", run_id=desk.run_id, wait_s=0),
            await host.result(
                "sop_advance", run_id=desk.run_id, execution_id="2.1", status="completed", output="done", wait_s=0
            ),
        ]
        assert inside in repr(await desk.transcript())
    for one in answers:
        assert inside not in repr(one)
        assert "You review." not in repr(one)
    assert "the final words" in repr(answers[1])


@pytest.mark.requirement("C115")
async def test_a_step_of_the_acting_agent_needs_no_assembly_and_another_agents_step_reuses_nothing(
    bench: Bench,
) -> None:
    bench.configure(config(more=TWO))
    bench.procedure(
        "1. **Mine** — Do it.\n   - agent: host\n2. **Nobody's** — Do it.\n"
        "3. **Review** — Do it.\n   - agent: reviewer\n4. **Write** — Do it.\n   - agent: writer\n"
        "5. **Review again** — Do it.\n   - agent: reviewer\n"
    )
    talk = Talk([said("a"), said("b"), said("c")])
    async with bench.opened(talk, {}) as desk:
        started = await desk.start()
        assert [e.performer for e in started.run.open_executions] == ["host"]
        await desk.app.runs.advance(desk.run_id, "1.1", "completed", None, ASKABLE)
        await desk.work()
        assert desk.place.contracts == []
        await desk.app.runs.advance(desk.run_id, "2.1", "completed", None, ASKABLE)
        assert (await desk.work()).run.status is Status.COMPLETED
        first, second, third = desk.place.contracts
    assert [c.actor.acting for c in (first, second, third)] == ["reviewer", "writer", "reviewer"]
    assert [[tool.name for tool in info.function_tools] for info in talk.infos] == [
        ["file_read", "file_write", "http_request"],
        ["file_write"],
        ["file_read", "file_write", "http_request"],
    ]
    assert [messages[0].instructions for messages in talk.heard] == ["You review.", "You write.", "You review."]  # type: ignore[union-attr]  # each is a request
    assert [len(messages) for messages in talk.heard] == [1, 1, 1]


@pytest.mark.requirement("C115", "C122", "session-identity")
async def test_a_sub_run_carries_the_ceiling_the_depth_and_the_lineage_of_what_started_it(bench: Bench) -> None:
    bench.procedure(step(), name="inner")
    bench.procedure("1. **Below** — Do it.\n   - sop: inner\n   - allow-tools: file_read, file_write\n", name="outer")
    ceiling = (Scope(allow=("file_read", "http_request")),)
    surface = Surface(ASKABLE.principal, route="the inbox", ceiling=ceiling)
    talk = Talk([said("fine")])
    async with bench.opened(talk, {}) as desk:
        await desk.start(surface, name="outer")
        assert (await desk.work()).run.status is Status.COMPLETED
        (contract,) = desk.place.contracts
        child = contract.actor.run
        assert (contract.actor.depth, contract.actor.lineage) == (2, (desk.run_id, child))
        assert contract.actor.root == "agent:host:agent"
        assert [tool.offered for tool in contract.tools] == ["file_read"]
        run = (await desk.app.runs.look(child)).run
        assert run.ceiling == (*ceiling, Scope(allow=("file_read", "file_write")))
    assert [tool.name for tool in talk.infos[0].function_tools] == ["file_read"]


@pytest.mark.requirement("C122")
async def test_without_a_ceiling_the_same_agent_has_all_of_its_tools(bench: Bench) -> None:
    talk = Talk([said("fine")])
    async with bench.opened(talk, {}) as desk:
        await desk.start()
        await desk.work()
    assert [tool.name for tool in talk.infos[0].function_tools] == ["file_read", "file_write", "http_request"]


@pytest.mark.requirement("session-identity")
async def test_delegations_end_at_the_depth_that_the_agent_allows(bench: Bench) -> None:
    bench.configure(config(runtime="max_delegation_depth = 1"))
    bench.procedure(step(), name="inner")
    bench.procedure("1. **Below** — Do it.\n   - sop: inner\n", name="outer")
    async with bench.opened([said("fine")], {}) as desk:
        await desk.start(name="outer")
        snapshot = await desk.work()
        assert snapshot.run.end is not None
        assert "the delegation is 2 deep, the limit is 1" in snapshot.run.end.reason
        await desk.start(name="inner")
        assert (await desk.work()).run.status is Status.COMPLETED


@pytest.mark.requirement("C120", "session-identity")
async def test_a_driver_without_a_registry_fails_the_step_and_runs_nothing(bench: Bench) -> None:
    async with bench.opened([said("fine")], {}) as desk:
        for driver, status in (
            (Driver(desk.app.runs, desk.app.store, desk.app.capabilities), Status.FAILED),
            (desk.driver, Status.COMPLETED),
        ):
            await desk.start()
            claim = await desk.claim()
            assert claim is not None
            await driver.perform(claim)
            assert (await desk.look()).run.status is status
            history = await desk.app.runs.history(desk.run_id)
            assert len(history.sessions) == (status is Status.COMPLETED)
            if status is Status.FAILED:
                assert (
                    "agent 'reviewer' cannot be assembled: this server has no agent of that name"
                    in await desk.failure()
                )
                assert "agent:system:reviewer" not in {record.acting for record in history.records}
