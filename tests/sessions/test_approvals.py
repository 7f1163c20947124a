"""Calls that need a person: what is asked, who answers, and what an answer is good for."""

import pytest
from session_bench import ASKABLE, HEADLESS, Bench, Hands, Talk, answer, call, config, said

from procedo.core.state import GateKind, Status, Verdict
from procedo.errors import BadArgument
from procedo.runs import Surface

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("call-approvals")]

READ, WRITE = call("file_read", path="a"), call("file_write", path="a", content="b")
TOOLS = {"file_read": answer, "file_write": answer}
ASKING_HOST = Surface(HEADLESS.principal, can_ask=True)
BEFORE = Talk([said(READ), said("x")])


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("surface", [ASKABLE, ASKING_HOST, HEADLESS], ids=["route", "host asks", "headless"])
@pytest.mark.parametrize(("verdict", "wanted"), [("auto", "success"), ("ask", "success"), ("deny", "denied")])
async def test_the_ruling_the_surface_and_a_restart_decide_together(
    bench: Bench, verdict: str, wanted: str, surface: Surface, restarted: bool
) -> None:
    lists = {"auto": ["file_write"], "ask": [], "deny": ["file_write"]}
    level = 'level = "readonly"\n' if verdict == "deny" else ""
    bench.configure(config(auto=lists[verdict], risk=level, tools=["file_read", "http_request", "file_write"]))
    if verdict == "deny":
        bench.configure(config(auto=["http_request"], risk=level, tools=["http_request"]))
    wanted_call = call("http_request", url="https://example.org", method="POST") if verdict == "deny" else WRITE
    hands = Hands({**TOOLS, "http_request": answer})
    talk = [said(wanted_call), said("x")]
    async with bench.opened(talk, hands) as desk:
        await desk.start(surface)
        status = (await desk.work()).run.status
        if verdict == "ask" and surface is not HEADLESS:
            assert status is Status.WAITING_APPROVAL
            assert hands.made == []
            if not restarted:
                await desk.decide(Verdict.APPROVE)
                status = (await desk.work()).run.status
        run_id = desk.run_id
    if status is Status.WAITING_APPROVAL:
        async with bench.opened([said("x")], hands, run_id=run_id) as desk:
            assert (await desk.work()).run.status is Status.WAITING_APPROVAL
            await desk.decide(Verdict.APPROVE)
            status = (await desk.work()).run.status
    assert status is Status.COMPLETED
    outcome = "denied" if verdict == "ask" and surface is HEADLESS else wanted
    assert len(hands.made) == (outcome == "success")
    async with bench.opened(run_id=run_id) as desk:
        assert [shown[2] for shown in await desk.calls()] == [outcome]


async def test_a_denial_is_told_with_its_reason_and_the_session_goes_on(bench: Bench) -> None:
    bench.configure(config(auto=[]))
    talk, hands = Talk([said(READ), said("well")]), Hands(TOOLS)
    async with bench.opened(talk, hands) as desk:
        await desk.start()
        await desk.work()
        await desk.decide(Verdict.DENY, comment="not this file")
        assert (await desk.work()).run.status is Status.COMPLETED
    assert talk.last_heard() == [("file_read", "denied", "denied by a person: not this file")]
    assert hands.made == []


async def test_the_other_calls_of_a_turn_finish_before_the_session_waits(bench: Bench) -> None:
    bench.configure(config(auto=["file_read"]))
    async with bench.opened([said(WRITE, READ), said("x")], TOOLS) as desk:
        await desk.start()
        await desk.work()
        assert await desk.calls() == [("1.0", "file_write", None), ("1.1", "file_read", "success")]


@pytest.mark.parametrize("restarted", [False, True])
async def test_answers_accumulate_one_runs_its_call_and_the_session_waits_for_the_other(
    bench: Bench, restarted: bool
) -> None:
    bench.configure(config(auto=[]))
    hands = Hands(TOOLS)
    async with bench.opened([said(READ, WRITE), said("x")], hands) as desk:
        await desk.start()
        await desk.work()
        reading, writing = await desk.gates()
        await desk.decide(Verdict.APPROVE, writing)
        if not restarted:
            await desk.work()
        run_id = desk.run_id
    async with bench.opened([said("x")], hands, run_id=run_id) as desk:
        snapshot = await desk.work()
        assert [name for name, _ in hands.made] == ["file_write"]
        assert snapshot.run.status is Status.WAITING_APPROVAL
        assert [gate.id for gate in await desk.gates()] == [reading.id]
        await desk.decide(Verdict.APPROVE)
        assert (await desk.work()).run.status is Status.COMPLETED
        assert [name for name, _ in hands.made] == ["file_write", "file_read"]
        returned = desk.place.talk
        assert returned is not None
        assert [name for name, _, _ in returned.last_heard()] == ["file_read", "file_write"]


async def test_an_answer_that_comes_while_the_session_works_is_not_asked_again(bench: Bench) -> None:
    """Both are answered before the session has taken up the first answer."""
    bench.configure(config(auto=[]))
    hands = Hands(TOOLS)
    async with bench.opened([said(READ, WRITE), said("x")], hands) as desk:
        await desk.start()
        await desk.work()
        first, second = await desk.gates()

        async def reads(**_: object) -> str:
            await desk.decide(Verdict.APPROVE, second)
            return "done"

        hands.tools = {**TOOLS, "file_read": reads}
        await desk.decide(Verdict.APPROVE, first)
        snapshot = await desk.work()
        assert snapshot.run.status is Status.COMPLETED
        assert len((await desk.app.runs.history(desk.run_id)).gates) == 2
    assert [name for name, _ in hands.made] == ["file_read", "file_write"]


async def test_a_grant_is_used_once(bench: Bench) -> None:
    bench.configure(config(auto=[], runtime='tool_call_dedup_exempt = ["file_read"]'))
    async with bench.opened([said(READ), said(READ), said("x")], TOOLS) as desk:
        await desk.start()
        await desk.work()
        await desk.decide(Verdict.APPROVE)
        assert (await desk.work()).run.status is Status.WAITING_APPROVAL


async def test_a_grant_for_the_session_covers_the_same_call_and_no_other(bench: Bench) -> None:
    bench.configure(config(auto=[], runtime='tool_call_dedup_exempt = ["file_read"]'))
    other = call("file_read", path="b")
    hands = Hands(TOOLS)
    async with bench.opened([said(READ), said(READ), said(other), said("x")], hands) as desk:
        await desk.start()
        await desk.work()
        await desk.decide(Verdict.APPROVE, lasting=True)
        await desk.work()
        assert hands.made == [("file_read", {"path": "a"}), ("file_read", {"path": "a"})]
        (gate,) = await desk.gates()
        assert gate.content["arguments"] == {"path": "b"}


async def test_a_grant_ends_with_its_session(bench: Bench) -> None:
    bench.configure(config(auto=[]))
    async with bench.opened([said(READ), said("x"), said(READ), said("x")], TOOLS) as desk:
        await desk.start()
        await desk.work()
        await desk.decide(Verdict.APPROVE, lasting=True)
        assert (await desk.work()).run.status is Status.COMPLETED
        await desk.start()
        assert (await desk.work()).run.status is Status.WAITING_APPROVAL


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_amended_call_runs_with_the_persons_arguments_and_the_model_is_told(
    bench: Bench, restarted: bool
) -> None:
    bench.configure(config(auto=[]))
    talk, hands = Talk([said(WRITE), said("x")]), Hands(TOOLS)
    async with bench.opened(talk, hands) as desk:
        await desk.start()
        await desk.work()
        await desk.decide(Verdict.AMEND, value={"path": "a", "content": "better"})
        run_id = desk.run_id
        if not restarted:
            await desk.work()
    if restarted:
        talk = Talk([said("x")])
        async with bench.opened(talk, hands, run_id=run_id) as desk:
            await desk.work()
    assert hands.made == [("file_write", {"path": "a", "content": "better"})]
    told = '[a person changed the arguments to {"content":"better","path":"a"}]\ndone'
    assert talk.last_heard() == [("file_write", "success", told)]
    async with bench.opened(run_id=run_id) as desk:
        (row,) = (await desk.transcript()).calls
        assert (row.amended, row.arguments) == (True, {"path": "a", "content": "better"})


async def test_amended_arguments_pass_the_same_checks(bench: Bench) -> None:
    bench.configure(config(auto=[]))
    talk, hands = Talk([said(WRITE), said("x")]), Hands(TOOLS)
    async with bench.opened(talk, hands) as desk:
        await desk.start()
        await desk.work()
        with pytest.raises(BadArgument, match="as an object"):
            await desk.decide(Verdict.AMEND, value="better")
        await desk.decide(Verdict.AMEND, value={"path": 7})
        await desk.work()
    assert hands.made == []
    assert talk.last_heard()[0][1] == "failed"
    assert "the arguments that a person put in do not fit" in talk.last_heard()[0][2]


async def test_a_policy_and_a_limit_of_the_risk_profile_hold_at_the_gate(bench: Bench) -> None:
    risk = '[risk_profiles.careful.approval_route]\npolicy = "owners"\ntimeout_secs = 60\n'
    more = (
        '[sop.approval.groups.owners]\nmembers = ["ida"]\n[sop.approval.policies.owners]\nrequired_group = "owners"\n'
    )
    bench.configure(config(auto=[], more=risk + more))
    talk, hands = Talk([said(READ), said("well")]), Hands(TOOLS)
    async with bench.opened(talk, hands) as desk:
        await desk.start()
        await desk.work()
        (gate,) = await desk.gates()
        assert (gate.policy, gate.kind) == ("owners", GateKind.TOOL_CALL)
        bench.clock.pass_by(61)
        await desk.app.runs.state(desk.run_id, ASKABLE)
        assert (await desk.work()).run.status is Status.COMPLETED
    assert talk.last_heard() == [("file_read", "denied", "no decision was available in time; go on without this call")]
    assert hands.made == []


async def test_a_run_that_ends_while_a_question_is_open_ends_the_session_with_it(bench: Bench) -> None:
    bench.configure(config(auto=[]))
    async with bench.opened([said(READ)], TOOLS) as desk:
        await desk.start()
        await desk.work()
        (gate,) = await desk.gates()
        await desk.app.runs.cancel(desk.run_id, "no longer wanted", ASKABLE)
        session = (await desk.transcript()).session
        assert (session.state, session.reason) == ("cancelled", "the run is cancelled")
        gates = (await desk.app.runs.history(desk.run_id)).gates
        assert [(one.id, one.withdrawn) for one in gates] == [(gate.id, "the run is cancelled")]
