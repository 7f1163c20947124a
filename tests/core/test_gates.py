"""Gates: which steps have one, who may answer, what each answer causes."""

from datetime import timedelta

import pytest
from engine import BOT, IDA, NOOR, NOW, Desk, person, plain, schema, sop

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.approval import OnExpiry, Policy
from procedo.core.draft import Moment
from procedo.core.model import Kind, Mode, Priority, Step
from procedo.core.state import GateKind, Phase, Principal, PrincipalKind, Source, Status, Verdict
from procedo.errors import BadArgument, Conflict, NotFound, Refused

LOAD, HEAT = altered(plain(2)[0], title="Load kiln", requires_confirmation=True), plain(2)[1]


def gated(**policies: Policy) -> Desk:
    step = altered(LOAD, policy=next(iter(policies), None))
    return Desk(sop(step, HEAT), moment=Moment(NOW, policies=policies)).start()


def reviewed(edit: str | None = None, **changes: object) -> Desk:
    draft = Step(1, "Draft", output_schema=schema(body=str))
    check = altered(Step(2, "Review", kind=Kind.CHECKPOINT, edit=edit), **changes)  # type: ignore[arg-type]  # fields of Step only
    desk = Desk(sop(draft, check, Step(3, "Send"), Step(4, "Apologise"))).start()
    desk.report("1.1", {"title": "T", "body": "old"})
    return desk


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("status", [Phase.COMPLETED, Phase.FAILED, Phase.SKIPPED])
def test_a_report_does_not_pass_a_gate(status: Phase) -> None:
    desk = gated()
    before = desk.state
    with pytest.raises(Refused, match=r"Gate .* waits for a person"):
        desk.report("1.1", "loaded, trust me", status)
    assert desk.state == before
    assert (desk.status, desk.open) == (Status.WAITING_APPROVAL, ["g1"])


def test_a_report_does_not_pass_a_checkpoint() -> None:
    desk = reviewed()
    with pytest.raises(Refused, match="waits for a person"):
        desk.report("2.1", "released, trust me")
    assert desk.status is Status.PAUSED_CHECKPOINT


@pytest.mark.requirement("C2")
def test_a_denial_cancels_with_reason_and_person() -> None:
    desk = gated()
    assert desk.deny(1, why="thermocouple broken") == ["GateResolved", "RunCancelled"]
    end = desk.state.end
    assert end is not None
    assert (end.status, end.reason, end.by, end.denied) == (
        Status.CANCELLED,
        "thermocouple broken",
        "ida (human, cli)",
        True,
    )
    assert desk.deny(1, why="thermocouple broken") == []
    with pytest.raises(Conflict, match="already: deny by ida"):
        desk.approve(1)


@pytest.mark.requirement("C105")
def test_a_denied_checkpoint_cancels_unless_a_route_is_declared() -> None:
    assert reviewed().deny(1) == ["GateResolved", "RunCancelled"]
    routed = reviewed(on_deny=4)
    assert routed.deny(1, why="tone") == ["GateResolved", "Routed", "StepVisited", "ExecutionOpened"]
    assert routed.open == ["4.1"]


@pytest.mark.requirement("C71")
@pytest.mark.parametrize("priority", list(Priority))
@pytest.mark.parametrize("mode", list(Mode))
def test_a_confirmation_is_asked_in_every_mode_and_at_every_priority(mode: Mode, priority: Priority) -> None:
    desk = Desk(sop(LOAD, HEAT, priority=priority), mode).start()
    assert desk.status is Status.WAITING_APPROVAL


@pytest.mark.requirement("C69")
def test_supervised_asks_before_the_first_step_only() -> None:
    desk = Desk(sop(*plain(3)), Mode.SUPERVISED).start()
    assert desk.open == ["g1"]
    desk.approve(1)
    desk.report("1.1")
    assert desk.open == ["2.1"]


@pytest.mark.requirement("C69")
def test_auto_asks_nowhere() -> None:
    assert Desk(sop(*plain(3)), Mode.AUTO).start().open == ["1.1"]


@pytest.mark.requirement("C70")
def test_step_by_step_asks_before_each_step() -> None:
    desk = Desk(sop(*plain(2)), Mode.STEP_BY_STEP).start()
    desk.approve(1)
    desk.report("1.1")
    assert desk.open == ["g2"]


@pytest.mark.parametrize(
    ("priority", "gates"), [(Priority.LOW, 1), (Priority.NORMAL, 1), (Priority.HIGH, 2), (Priority.CRITICAL, 2)]
)
def test_priority_based_asks_at_every_step_of_an_urgent_procedure(priority: Priority, gates: int) -> None:
    desk = Desk(sop(*plain(2), priority=priority), Mode.PRIORITY_BASED).start()
    desk.approve(1)
    desk.report("1.1")
    assert desk.state.gate_count == gates


@pytest.mark.requirement("C24")
@pytest.mark.parametrize(
    ("mode", "own", "gated_second"),
    [
        (Mode.STEP_BY_STEP, Mode.AUTO, True),
        (Mode.AUTO, Mode.SUPERVISED, True),
        (Mode.AUTO, Mode.STEP_BY_STEP, True),
        (Mode.AUTO, Mode.AUTO, False),
    ],
)
def test_the_mode_of_a_step_only_tightens(mode: Mode, own: Mode, gated_second: bool) -> None:
    first, second = plain(2)
    desk = Desk(sop(first, altered(second, mode=own)), mode).start()
    if mode is Mode.STEP_BY_STEP:
        desk.approve(1)
    desk.report("1.1")
    assert any(name.startswith("g") for name in desk.open) is gated_second


@pytest.mark.requirement("C57")
@pytest.mark.parametrize("mode", list(Mode))
def test_kinds_mean_the_same_in_every_mode(mode: Mode) -> None:
    steps = (
        altered(plain(1)[0], requires_confirmation=True),
        Step(2, "Look", kind=Kind.CHECKPOINT),
        Step(3, "Note", kind=Kind.CAPABILITY, capability="noop"),
    )
    desk = Desk(sop(*steps), mode).start()
    seen = [desk.status]
    desk.approve(1)
    desk.report("1.1", {"a": 1})
    seen.append(desk.status)
    desk.approve(2)
    assert seen == [Status.WAITING_APPROVAL, Status.PAUSED_CHECKPOINT]
    if desk.state.open_gates:
        desk.approve(3)
    assert [e.performer.value for e in desk.state.open_executions] == ["server"]


@pytest.mark.requirement("C72")
def test_an_approved_step_is_offered_and_leaves_one_decision() -> None:
    desk = gated()
    assert desk.approve(1) == ["GateResolved", "ExecutionOpened"]
    assert (desk.status, desk.open) == (Status.RUNNING, ["1.1"])
    gate = desk.state.gates["run-1.g1"]
    assert (gate.verdict, gate.decided_by, gate.decided_at) == (Verdict.APPROVE, IDA, NOW)
    assert desk.approve(1) == []


@pytest.mark.requirement("C73")
def test_a_gate_at_step_five_offers_step_five() -> None:
    desk = Desk(sop(plain(1)[0], Step(5, "Far", requires_confirmation=True))).start()
    desk.report("1.1")
    desk.approve(1)
    assert desk.open == ["5.1"]


@pytest.mark.requirement("C4")
def test_the_model_decides_nothing() -> None:
    desk = gated()
    before = desk.state
    with pytest.raises(Refused, match="not a person"):
        desk.approve(1, by=BOT)
    assert desk.state == before
    assert desk.approve(1) == ["GateResolved", "ExecutionOpened"]


def test_an_agent_decides_where_a_policy_names_it() -> None:
    desk = gated(bots=Policy("bots", agents=frozenset({"checker"})))
    checker = Principal(Source.HTTP, "checker", PrincipalKind.AGENT)
    with pytest.raises(Refused, match="names no agent"):
        desk.approve(1, by=BOT)
    assert desk.approve(1, by=checker) == ["GateResolved", "ExecutionOpened"]


def test_nobody_without_an_identity_decides() -> None:
    desk = gated()
    with pytest.raises(Refused, match="no identity"):
        desk.approve(1, by=person("  "))


@pytest.mark.requirement("separation")
def test_the_executor_of_a_run_does_not_decide_in_it() -> None:
    first, second = plain(2)
    desk = Desk(sop(first, altered(second, requires_confirmation=True))).start()
    desk.report("1.1", by=IDA)
    for same_person in (IDA, person("IDA", Source.WEB)):
        with pytest.raises(Refused, match="the executor never decides"):
            desk.approve(1, by=same_person)
    assert desk.approve(1, by=NOOR) == ["GateResolved", "ExecutionOpened"]


PAIR = Policy("pharmacists", members=frozenset({"ida", "noor"}), group="pharmacists", quorum=2)


@pytest.mark.requirement("C5")
@pytest.mark.requirement("C83")
@pytest.mark.requirement("C86")
def test_people_are_counted_and_not_connections() -> None:
    desk = gated(pharmacists=PAIR)
    assert desk.approve(1, by=IDA) == ["VoteCast"]
    assert desk.approve(1, by=person("ida", Source.HTTP)) == []
    assert desk.approve(1, by=person("IDA ")) == []
    with pytest.raises(Refused, match="not a member"):
        desk.approve(1, by=person("mo"))
    assert len(desk.state.gates["run-1.g1"].votes) == 1
    assert desk.status is Status.WAITING_APPROVAL
    assert desk.approve(1, by=NOOR) == ["GateResolved", "ExecutionOpened"]


@pytest.mark.requirement("C78")
def test_who_is_not_in_the_group_decides_nothing() -> None:
    desk = gated(cooks=Policy("cooks", members=frozenset({"ida"}), group="cooks"))
    before = desk.state
    for verdict in (Verdict.APPROVE, Verdict.DENY):
        with pytest.raises(Refused, match="not a member of group 'cooks'"):
            desk.answer(1, verdict, by=NOOR)
    assert desk.state == before
    assert desk.approve(1, by=IDA) == ["GateResolved", "ExecutionOpened"]


@pytest.mark.requirement("C79")
def test_one_denial_of_a_member_is_enough() -> None:
    assert gated(pharmacists=PAIR).deny(1, by=IDA) == ["GateResolved", "RunCancelled"]


@pytest.mark.requirement("C80")
def test_a_missing_policy_refuses_and_keeps_the_gate() -> None:
    desk = gated(cooks=Policy("cooks"))
    desk.moment = altered(desk.moment, policies={})
    with pytest.raises(Refused, match="policy missing"):
        desk.approve(1)
    assert desk.status is Status.WAITING_APPROVAL


@pytest.mark.requirement("C82")
def test_the_vote_of_a_former_member_lapses() -> None:
    desk = gated(pharmacists=PAIR)
    desk.approve(1, by=IDA)
    desk.moment = altered(desk.moment, policies={"pharmacists": altered(PAIR, members=frozenset({"noor", "mo"}))})
    assert desk.approve(1, by=NOOR) == ["VoteCast"]
    assert desk.approve(1, by=person("mo")) == ["GateResolved", "ExecutionOpened"]


@pytest.mark.requirement("C85")
def test_a_member_of_one_source_is_no_member_from_another() -> None:
    desk = gated(one=Policy("one", members=frozenset({"http:sam"}), group="one"))
    with pytest.raises(Refused, match="not a member"):
        desk.approve(1, by=person("sam", Source.CLI))
    assert desk.approve(1, by=person("sam", Source.HTTP)) == ["GateResolved", "ExecutionOpened"]


@pytest.mark.requirement("C10")
def test_votes_are_for_one_text() -> None:
    draft = Step(1, "Draft")
    desk = Desk(
        sop(draft, Step(2, "Review", kind=Kind.CHECKPOINT, edit="body", policy="pharmacists")),
        moment=Moment(NOW, policies={"pharmacists": PAIR}),
    ).start()
    desk.report("1.1", {"body": "Closed Monday"})
    assert desk.answer(1, Verdict.AMEND, IDA, "Closed Tuesday") == ["VoteCast"]
    assert desk.approve(1, by=NOOR) == ["VoteCast"]
    assert desk.status is Status.PAUSED_CHECKPOINT
    assert desk.answer(1, Verdict.AMEND, NOOR, "Closed Tuesday")[0] == "GateResolved"


@pytest.mark.requirement("C52")
def test_a_vote_can_be_taken_back_until_the_gate_is_resolved() -> None:
    desk = gated(pharmacists=PAIR)
    desk.approve(1, by=IDA)
    assert desk.answer(1, Verdict.RETRACT, IDA) == ["VoteRetracted"]
    assert desk.state.gates["run-1.g1"].votes == ()
    assert desk.approve(1, by=NOOR) == ["VoteCast"]
    desk.approve(1, by=IDA)
    with pytest.raises(Conflict, match="answered already"):
        desk.answer(1, Verdict.RETRACT, IDA)


@pytest.mark.requirement("C101")
@pytest.mark.requirement("C102")
def test_a_released_checkpoint_hands_its_input_on() -> None:
    desk = reviewed()
    desk.approve(1)
    assert (desk.open, desk.output_of("2.1")) == (["3.1"], {"title": "T", "body": "old"})
    first = Desk(sop(Step(1, "Look", kind=Kind.CHECKPOINT), Step(2, "Go")), inputs={"a": 1}).start()
    first.approve(1)
    assert first.output_of("1.1") == {"a": 1}


@pytest.mark.requirement("C103")
def test_an_amended_field_goes_on_and_the_original_stays_in_the_record() -> None:
    desk = reviewed(edit="body")
    desk.answer(1, Verdict.AMEND, IDA, "new")
    assert desk.output_of("2.1") == {"title": "T", "body": "new"}
    assert desk.output_of("1.1") == {"title": "T", "body": "old"}
    assert desk.state.gates["run-1.g1"].verdict is Verdict.AMEND


@pytest.mark.requirement("C104")
def test_a_gate_without_an_editable_field_takes_no_amendment() -> None:
    desk = reviewed()
    before = desk.state
    with pytest.raises(Refused, match="no field to amend"):
        desk.answer(1, Verdict.AMEND, IDA, "new")
    assert desk.state == before


def test_an_answer_that_the_gate_does_not_take_is_refused_with_those_it_takes() -> None:
    with pytest.raises(BadArgument, match="approve, deny"):
        gated().answer(1, Verdict.REPEAT)


def test_a_superseded_presentation_is_refused_without_handing_out_the_new_one() -> None:
    desk = gated()
    gate = desk.state.gates["run-1.g1"]
    for stale in ({"revision": 2}, {"digest": "0" * 32}):
        with pytest.raises(Refused, match="superseded") as caught:
            desk.do(m.Decide(gate.id, Verdict.APPROVE, IDA, **stale))
        assert gate.digest not in str(caught.value)
    assert desk.do(m.Decide(gate.id, Verdict.APPROVE, IDA, revision=1, digest=gate.digest))[0] == "GateResolved"


def test_an_unknown_gate_is_not_found() -> None:
    with pytest.raises(NotFound, match=r"no gate run-1\.g7"):
        gated().approve(7)


TIMED = Policy("timed", timeout_s=1, reminders=2)


@pytest.mark.requirement("C3")
@pytest.mark.requirement("C75")
@pytest.mark.parametrize("priority", [Priority.LOW, Priority.CRITICAL])
def test_silence_is_not_consent(priority: Priority) -> None:
    step = altered(LOAD, policy="timed")
    policies = {"timed": altered(TIMED, on_expiry=OnExpiry.ESCALATE)}
    desk = Desk(sop(step, HEAT, priority=priority), moment=Moment(NOW, policies=policies)).start()
    assert desk.later(0.5) == []
    assert desk.later(0.5) == ["GateReminded"]
    assert desk.later(0.5) == []
    gate = desk.state.gates["run-1.g1"]
    assert (desk.status, gate.reminders, gate.due_at) == (
        Status.WAITING_APPROVAL,
        1,
        NOW + timedelta(seconds=2),
    )


def test_after_the_last_reminder_a_gate_is_denied() -> None:
    desk = gated(timed=TIMED)
    desk.later(1)
    desk.later(1)
    assert desk.later(1) == ["GateResolved", "RunCancelled"]
    with pytest.raises(Conflict, match="expired"):
        desk.approve(1)


def test_a_policy_that_denies_in_time_denies_once() -> None:
    desk = gated(timed=altered(TIMED, on_expiry=OnExpiry.DENY))
    assert desk.later(1) == ["GateResolved", "RunCancelled"]
    assert desk.later(1) == []
    assert "nobody answered within 1 s" in desk.reason


@pytest.mark.requirement("C77")
def test_a_limit_of_zero_never_times_out() -> None:
    desk = gated(open_end=Policy("open_end", timeout_s=0))
    assert desk.later(10_000_000) == []
    assert desk.status is Status.WAITING_APPROVAL


def test_a_starter_that_a_policy_excludes_does_not_decide() -> None:
    policy = Policy("two", distinct_from=("starter", "executor"))
    desk = Desk(sop(altered(LOAD, policy="two"), HEAT), moment=Moment(NOW, policies={"two": policy})).start(by=IDA)
    with pytest.raises(Refused, match="started this run"):
        desk.approve(1, by=IDA)
    assert desk.approve(1, by=NOOR) == ["GateResolved", "ExecutionOpened"]


def asked_again(guidance: str = "Tuesday, not Monday") -> Desk:
    desk = reviewed()
    assert desk.answer(1, Verdict.REVISE, IDA, why=guidance) == ["RevisionAsked", "ExecutionOpened"]
    return desk


@pytest.mark.requirement("C9")
def test_a_revision_asks_the_drafting_step_again_and_voids_the_old_draft() -> None:
    desk = asked_again()
    seen = desk.state.gates["run-1.g1"]
    offer = desk.offers[0]
    assert isinstance(offer, m.ExecuteStep)
    assert (offer.execution_id, offer.step.note) == ("1.2", "An approver asks for a new draft: Tuesday, not Monday")
    with pytest.raises(Refused, match="superseded"):
        desk.approve(1, by=NOOR)
    assert desk.report("1.2", {"title": "T", "body": "new"}) == ["ExecutionCompleted", "GatePresented"]
    assert (desk.open, desk.state.gates["run-1.g1"].revision) == (["g1"], 2)
    with pytest.raises(Refused, match="superseded"):
        desk.do(m.Decide("run-1.g1", Verdict.APPROVE, NOOR, revision=1, digest=seen.digest))
    desk.do(m.Decide("run-1.g1", Verdict.APPROVE, NOOR, revision=2))
    assert (desk.open, desk.output_of("2.1")) == (["3.1"], {"title": "T", "body": "new"})


def test_a_failed_redraft_leaves_the_old_draft_to_be_answered() -> None:
    desk = asked_again()
    assert desk.fail("1.2") == ["ExecutionFailed", "RevisionFailed"]
    assert (desk.status, desk.state.gates["run-1.g1"].revision) == (Status.PAUSED_CHECKPOINT, 1)
    desk.approve(1)
    assert desk.output_of("2.1") == {"title": "T", "body": "old"}


def test_a_gate_takes_three_revisions_and_no_more() -> None:
    desk = reviewed()
    for n in (2, 3, 4):
        desk.answer(1, Verdict.REVISE, IDA, why="again")
        desk.report(f"1.{n}", {"title": "T", "body": str(n)})
    with pytest.raises(BadArgument, match="approve, deny"):
        desk.answer(1, Verdict.REVISE, IDA, why="again")
    desk.approve(1)
    assert desk.output_of("2.1") == {"title": "T", "body": "4"}


def test_a_revision_needs_guidance_and_a_draft_of_a_model() -> None:
    with pytest.raises(BadArgument, match="say in the comment"):
        reviewed().answer(1, Verdict.REVISE, IDA)
    with pytest.raises(BadArgument, match="no answer at gate"):
        Desk(sop(Step(1, "Look", kind=Kind.CHECKPOINT))).start().answer(1, Verdict.REVISE, IDA, why="again")


def test_a_run_can_be_cancelled_while_a_new_draft_is_made() -> None:
    desk = asked_again()
    desk.do(m.Cancel("enough", IDA))
    gate = desk.state.gates["run-1.g1"]
    assert (gate.withdrawn, gate.live) == ("the run is cancelled", False)


def session() -> Desk:
    desk = Desk(sop(altered(plain(1)[0], agent="reviewer", timeout_s=60.0))).start()
    desk.do(m.Begin("1.1", 1, repeatable=False))
    return desk


def ask(call: str, fence: int = 1) -> m.Ask:
    content = {"tool": "pay", "arguments": {"amount": 5}}
    return m.Ask("1.1", fence, call, GateKind.TOOL_CALL, "May reviewer pay?", content)


def test_a_session_parks_for_each_of_its_calls_and_goes_on_with_each_answer() -> None:
    desk = session()
    assert desk.do(ask("0.0")) == ["ExecutionHalted", "GateOpened"]
    assert desk.do(ask("0.0")) == []
    assert desk.do(ask("0.1")) == ["GateOpened"]
    assert (desk.status, desk.state.holds_slot) == (Status.WAITING_APPROVAL, False)
    desk.later(30)
    assert desk.approve(1) == ["GateResolved", "ExecutionResumed"]
    assert desk.state.executions["1.1"].due_at == NOW + timedelta(seconds=90)
    assert desk.deny(2, why="too much") == ["GateResolved"]
    assert desk.do(m.Begin("1.1", 2, repeatable=False)) == ["EffectStarted"]
    with pytest.raises(Conflict, match="not the newest"):
        desk.do(ask("1.0", fence=1))


def test_an_amended_tool_call_has_its_new_arguments_at_the_gate() -> None:
    desk = session()
    desk.do(ask("0.0"))
    with pytest.raises(BadArgument, match="new arguments as an object"):
        desk.answer(1, Verdict.AMEND, IDA, "3")
    desk.answer(1, Verdict.AMEND, IDA, {"amount": 3})
    assert desk.state.gates["run-1.g1"].value == {"amount": 3}
