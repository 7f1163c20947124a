"""Policies beyond group and quorum: breaking the glass, approving by name, the delegation chain, what silence means."""

import pytest
from engine import BOT, IDA, NOOR, NOW, Desk, person, plain, sop

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.approval import OnExpiry, Policy
from procedo.core.draft import Moment
from procedo.core.model import Kind, Step
from procedo.core.state import GateKind, Phase, Principal, PrincipalKind, Source, Status, Verdict
from procedo.errors import BadArgument, Refused

PAIR = Policy("pair", members=frozenset({"noor", "sam"}), group="pharmacists", quorum=2)
NOBODY = Policy("nobody", members=frozenset(), group="nobody")


def gated(policy: Policy, *glass: str, by: Principal = BOT) -> Desk:
    step = altered(plain(1)[0], requires_confirmation=True, policy=policy.name)
    moment = Moment(NOW, policies={policy.name: policy}, break_glass=frozenset(glass))
    return Desk(sop(step, plain(2)[1]), moment=moment).start(by=by)


def break_glass(
    desk: Desk, by: Principal = IDA, why: str = "site down", verdict: Verdict = Verdict.APPROVE
) -> list[str]:
    return desk.do(m.Decide("run-1.g1", verdict, by, comment=why, break_glass=True))


# --- breaking the glass --------------------------------------------------------------------------


@pytest.mark.requirement("break-glass")
@pytest.mark.parametrize(
    ("policy", "overridden"),
    [
        (NOBODY, "is not a member of group 'nobody'"),
        (PAIR, "is not a member of group 'pharmacists'"),
        (altered(PAIR, members=frozenset({"ida", "noor"})), "policy 'pair' asks for 2 different people"),
        (Policy("other", distinct_from=("starter",)), "started this run"),
    ],
)
def test_a_named_person_decides_alone_against_group_quorum_and_roles_with_an_event_of_its_own(
    policy: Policy, overridden: str
) -> None:
    desk = gated(policy, "ida", by=IDA)
    assert break_glass(desk) == ["GlassBroken", "GateResolved", "ExecutionOpened"]
    (broken,) = [event for event in desk.events if isinstance(event, m.GlassBroken)]
    assert (broken.by, broken.reason, broken.policy) == (IDA, "site down", policy.name)
    assert overridden in broken.overridden
    gate = desk.state.gates["run-1.g1"]
    assert (gate.verdict, gate.decided_by, gate.glass_broken) == (Verdict.APPROVE, IDA, True)


@pytest.mark.requirement("break-glass")
@pytest.mark.parametrize(
    ("glass", "by", "why", "told"),
    [
        ((), IDA, "site down", "not one of those who may break the glass"),
        (("noor",), IDA, "site down", "not one of those who may break the glass"),
        (("web:ida",), IDA, "site down", "not one of those who may break the glass"),
        (("ida",), IDA, "  ", "takes a reason"),
        (("ida",), person(" "), "site down", "is no person"),
        (("ida",), Principal(Source.CLI, "ida", PrincipalKind.AGENT), "site down", "is no person"),
        (("desk",), Principal(Source.HOST, "desk", PrincipalKind.HUMAN), "site down", "at a terminal or with a token"),
    ],
)
def test_the_glass_is_not_broken_by_others_and_not_without_a_reason(
    glass: tuple[str, ...], by: Principal, why: str, told: str
) -> None:
    desk = gated(PAIR, *glass)
    before = desk.state
    with pytest.raises(Refused, match=told):
        break_glass(desk, by, why)
    assert desk.state == before
    assert desk.status is Status.WAITING_APPROVAL


def test_the_glass_is_not_broken_where_there_is_no_need() -> None:
    desk = gated(Policy("open"), "ida")
    with pytest.raises(Refused, match="without breaking the glass"):
        break_glass(desk)
    assert desk.approve(1) == ["GateResolved", "ExecutionOpened"]
    assert not desk.state.gates["run-1.g1"].glass_broken


def test_a_missing_policy_is_not_overridden() -> None:
    desk = gated(PAIR, "ida")
    desk.moment = altered(desk.moment, policies={})
    with pytest.raises(Refused, match="policy missing"):
        break_glass(desk)


def test_a_superseded_presentation_is_not_decided_by_breaking_the_glass() -> None:
    desk = gated(PAIR, "ida")
    with pytest.raises(Refused, match="superseded"):
        desk.do(m.Decide("run-1.g1", Verdict.APPROVE, IDA, comment="x", revision=2, break_glass=True))


def test_a_denial_may_break_the_glass_too() -> None:
    desk = gated(NOBODY, "ida")
    assert break_glass(desk, verdict=Verdict.DENY) == ["GlassBroken", "GateResolved", "RunCancelled"]


def test_no_glass_is_broken_to_take_a_vote_back() -> None:
    with pytest.raises(BadArgument, match="no glass to break"):
        break_glass(gated(PAIR, "ida"), verdict=Verdict.RETRACT)


def test_the_same_again_is_answered_as_before() -> None:
    desk = gated(PAIR, "ida")
    break_glass(desk)
    assert break_glass(desk) == []


# --- approving by name ---------------------------------------------------------------------------

NIGHTLY = Policy("nightly", auto_approve=True)


def test_a_policy_that_approves_by_itself_says_so_in_an_event_of_its_own() -> None:
    desk = gated(NIGHTLY)
    assert desk.open == ["1.1"]
    kinds = [type(event).__name__ for event in desk.events if "Gate" in type(event).__name__ or "Auto" in str(event)]
    assert kinds == ["GateOpened", "AutoApproved", "GateResolved"]
    gate = desk.state.gates["run-1.g1"]
    assert gate.decided_by == Principal(Source.SYSTEM, "policy nightly", PrincipalKind.SYSTEM)
    assert gate.comment == "policy 'nightly' approves by itself"


def test_a_checkpoint_is_released_by_such_a_policy_and_hands_its_input_on() -> None:
    check = Step(2, "Review", kind=Kind.CHECKPOINT, policy="nightly")
    moment = Moment(NOW, policies={"nightly": NIGHTLY})
    desk = Desk(sop(plain(1)[0], check, altered(plain(3)[2], requires_confirmation=True)), moment=moment).start()
    desk.report("1.1", {"a": 1})
    assert (desk.output_of("2.1"), desk.open) == ({"a": 1}, ["g2"])


def test_it_does_so_by_name_only_and_not_as_the_default() -> None:
    step = altered(plain(1)[0], requires_confirmation=True)
    desk = Desk(sop(step), moment=Moment(NOW, default_policy=NIGHTLY)).start()
    assert desk.open == ["g1"]


def test_a_gate_that_waits_already_is_not_approved_by_a_policy_that_changes() -> None:
    desk = gated(altered(NIGHTLY, auto_approve=False, timeout_s=60))
    desk.moment = altered(desk.moment, policies={"nightly": altered(NIGHTLY, timeout_s=60)})
    assert desk.later(60) == ["GateReminded"]
    assert desk.open == ["g1"]


def test_a_question_about_what_happened_is_never_answered_by_a_policy() -> None:
    step = Step(1, "Post", kind=Kind.CAPABILITY, capability="post", policy="nightly")
    desk = Desk(sop(step), moment=Moment(NOW, policies={"nightly": NIGHTLY})).start()
    desk.do(m.Begin("1.1", 1, repeatable=False))
    desk.do(m.Begin("1.1", 2, repeatable=False))
    (gate,) = desk.state.open_gates
    assert (gate.kind, gate.verdict) == (GateKind.INTERRUPTED, None)


def test_a_paused_run_goes_no_further_by_such_a_policy() -> None:
    first, second = plain(2)
    second = altered(second, requires_confirmation=True, policy="nightly")
    desk = Desk(sop(first, second), moment=Moment(NOW, policies={"nightly": NIGHTLY})).start()
    desk.do(m.Hold(IDA))
    desk.report("1.1")
    assert (desk.status, desk.open) == (Status.PAUSED, [])
    desk.do(m.Release(IDA))
    assert desk.open == ["2.1"]


# --- the delegation chain ------------------------------------------------------------------------

OUTSIDE = Policy("outside", distinct_from=("delegation",))


def started(by: Principal, *lineage: str) -> Desk:
    first, second = plain(2)
    made = sop(first, altered(second, requires_confirmation=True, policy="outside"))
    desk = Desk(made, moment=Moment(NOW, policies={"outside": OUTSIDE}))
    desk.do(m.Start("run-1", None, by, desk.mode, "host", "marker", lineage=frozenset(lineage)))
    return desk


@pytest.mark.requirement("separation")
@pytest.mark.parametrize(
    "barred",
    [
        pytest.param(person("starter", Source.WEB), id="who started it, at another door"),
        pytest.param(person("some-client", Source.HOST), id="the person at the host that executed it"),
        pytest.param(person("smith"), id="an agent of the run that this one came from"),
    ],
)
def test_nobody_in_the_delegation_chain_decides_at_whatever_door(barred: Principal) -> None:
    desk = started(person("starter"), "agent:host:smith")
    desk.report("1.1", by=BOT)
    with pytest.raises(Refused, match="in this run's delegation chain"):
        desk.approve(1, by=barred)
    assert desk.approve(1, by=NOOR) == ["GateResolved", "ExecutionOpened"]


def test_who_executed_a_failed_run_does_not_decide_in_the_one_that_takes_it_up() -> None:
    step = altered(plain(1)[0], requires_confirmation=True)
    desk = Desk(sop(step))
    lineage = frozenset({IDA.key})
    desk.do(m.Start("run-2", None, NOOR, desk.mode, "host", "marker", retry_of="run-1", lineage=lineage))
    with pytest.raises(Refused, match="the executor never decides"):
        desk.do(m.Decide("run-2.g1", Verdict.APPROVE, IDA))
    assert desk.do(m.Decide("run-2.g1", Verdict.APPROVE, NOOR)) == ["GateResolved", "ExecutionOpened"]


# --- out of band ---------------------------------------------------------------------------------


@pytest.mark.requirement("C74")
def test_a_gate_that_is_out_of_band_takes_no_answer_from_the_calling_host() -> None:
    desk = gated(Policy("far", out_of_band=True, agents=frozenset({"checker"})))
    for who in (
        Principal(Source.HOST, "ida", PrincipalKind.HUMAN),
        Principal(Source.HTTP, "ida", PrincipalKind.HUMAN),
        Principal(Source.HOST, "checker", PrincipalKind.AGENT),
    ):
        with pytest.raises(Refused, match="decided away from the calling host"):
            desk.approve(1, by=who)
    assert desk.approve(1, by=person("ida", Source.WEB)) == ["GateResolved", "ExecutionOpened"]


# --- silence, at every kind of gate --------------------------------------------------------------

LIMITED = Policy("limited", timeout_s=60, on_expiry=OnExpiry.REMIND, reminders=1)


def asked(kind: GateKind) -> Desk:
    """A run that waits at a gate of this kind, under a policy with a limit of a minute."""
    moment = Moment(NOW, policies={"limited": LIMITED})
    if kind is GateKind.APPROVAL:
        return Desk(sop(altered(plain(1)[0], requires_confirmation=True, policy="limited")), moment=moment).start()
    if kind is GateKind.CHECKPOINT:
        return Desk(sop(Step(1, "Look", kind=Kind.CHECKPOINT, policy="limited")), moment=moment).start()
    if kind is GateKind.INTERRUPTED:
        step = Step(1, "Post", kind=Kind.CAPABILITY, capability="post", policy="limited")
        desk = Desk(sop(step), moment=moment).start()
        desk.do(m.Begin("1.1", 1, repeatable=False))
        desk.do(m.Begin("1.1", 2, repeatable=False))
        return desk
    step = Step(1, "Ask", agent="smith", policy="limited")
    desk = Desk(sop(step), moment=moment).start()
    desk.do(m.Begin("1.1", 1, repeatable=False))
    desk.do(m.Ask("1.1", 1, "call-1", GateKind.TOOL_CALL, "May it?", {"arguments": {}}))
    return desk


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("kind", [GateKind.APPROVAL, GateKind.CHECKPOINT, GateKind.INTERRUPTED, GateKind.TOOL_CALL])
def test_silence_reminds_and_then_says_no_at_every_kind_of_gate(kind: GateKind) -> None:
    desk = asked(kind)
    (gate,) = desk.state.open_gates
    assert gate.kind is kind
    assert "GateReminded" in desk.later(60)
    assert desk.state.gates[gate.id].open
    assert "GateResolved" in desk.later(60)
    resolved = desk.state.gates[gate.id]
    no = Verdict.FAIL if kind is GateKind.INTERRUPTED else Verdict.DENY
    assert (resolved.verdict, resolved.expired) == (no, True)
    assert resolved.decided_by is not None
    assert resolved.decided_by.kind is PrincipalKind.SYSTEM


def test_an_interrupted_effect_that_nobody_answers_about_is_failed_and_not_repeated() -> None:
    desk = asked(GateKind.INTERRUPTED)
    desk.later(60)
    desk.later(60)
    assert desk.status is Status.FAILED
    assert desk.state.executions["1.1"].phase is Phase.FAILED
    assert not [event for event in desk.events if isinstance(event, m.EffectRepeated)]
