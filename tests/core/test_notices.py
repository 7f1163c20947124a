"""Which moments of a gate are told, and over which routes."""

import pytest
from engine import IDA, NOW, Desk, plain, sop

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.approval import OnExpiry, Policy
from procedo.core.draft import Moment
from procedo.core.effects import EffectKind, effects
from procedo.core.evolve import evolve
from procedo.core.machine import decide
from procedo.core.model import Kind, Step
from procedo.core.notice import Occasion, Routing
from procedo.core.state import Gate, Run, Verdict

GATED = sop(altered(plain(1)[0], requires_confirmation=True), Step(2, "Step 2"))
ROUTES = {"ops": frozenset(Occasion), "boss": frozenset(Occasion), "desk": frozenset({Occasion.RESOLVED})}


def told(desk: Desk, command: m.Command) -> list[tuple[str, str | None]]:
    """The notices that a command causes, as gate and occasion."""
    before: Run | None = desk.run
    events = decide(desk.sop, before, command, desk.moment)
    after = before
    for event in events:
        after = evolve(after, event, desk.moment.now)
    assert after is not None
    desk.run = after
    found = [e for e in effects(before, after, events) if e.kind is EffectKind.NOTICE]
    assert len({e.id for e in found}) == len(found)
    return [(e.subject.rpartition(".")[2], e.occasion) for e in found]


def test_opening_and_deciding_are_told_once_each() -> None:
    desk = Desk(GATED)
    start = m.Start("run-1", None, IDA, desk.mode, "host", "marker")
    assert told(desk, start) == [("g1", Occasion.OPENED)]
    approve = m.Decide("run-1.g1", Verdict.APPROVE, IDA)
    assert told(desk, approve) == [("g1", Occasion.RESOLVED)]
    assert told(desk, approve) == []


def test_a_vote_and_its_retraction_are_not_told() -> None:
    policies = {"two": Policy("two", quorum=2)}
    step = altered(plain(1)[0], requires_confirmation=True, policy="two")
    desk = Desk(sop(step), moment=Moment(NOW, policies=policies)).start()
    assert told(desk, m.Decide("run-1.g1", Verdict.APPROVE, IDA)) == []
    assert told(desk, m.Decide("run-1.g1", Verdict.RETRACT, IDA)) == []


def test_a_gate_that_is_void_with_its_run_is_told_as_resolved() -> None:
    desk = Desk(GATED).start()
    assert told(desk, m.Cancel("enough", IDA)) == [("g1", Occasion.RESOLVED)]


def test_a_gate_that_stops_waiting_for_a_limit_is_no_reminder() -> None:
    step = altered(plain(1)[0], requires_confirmation=True, policy="gone")
    policies = {"gone": Policy("gone", timeout_s=60)}
    desk = Desk(sop(step), moment=Moment(NOW, policies=policies)).start()
    desk.moment = altered(desk.moment, policies={})
    desk.moment = altered(desk.moment, now=desk.moment.now.replace(hour=13))
    assert told(desk, m.Tick()) == []


def test_checkpoints_are_told_like_gates() -> None:
    desk = Desk(sop(Step(1, "Look", kind=Kind.CHECKPOINT)))
    assert told(desk, m.Start("run-1", {}, IDA, desk.mode, "host", "marker")) == [("g1", Occasion.OPENED)]


def gate(reminders: int = 0) -> Gate:
    run = Desk(GATED).start().state
    return altered(run.gates["run-1.g1"], reminders=reminders)


OWN = Policy("own", request_route="boss", escalation_route="ops", on_expiry=OnExpiry.ESCALATE)


@pytest.mark.parametrize(
    ("occasion", "policy", "reminders", "routes"),
    [
        (Occasion.OPENED, None, 0, ["ops"]),
        (Occasion.OPENED, Policy(), 0, ["ops"]),
        (Occasion.OPENED, OWN, 0, ["boss"]),
        (Occasion.PRESENTED, OWN, 0, ["boss"]),
        (Occasion.REMINDED, OWN, 1, ["boss"]),
        (Occasion.ESCALATED, OWN, 1, ["ops"]),
        (Occasion.ESCALATED, Policy(), 1, ["boss"]),
        (Occasion.RESOLVED, OWN, 0, ["boss"]),
        (Occasion.RESOLVED, OWN, 1, ["boss", "ops"]),
        (Occasion.RESOLVED, altered(OWN, on_expiry=OnExpiry.REMIND), 1, ["boss"]),
        (Occasion.RESOLVED, altered(OWN, escalation_route="boss"), 1, ["boss"]),
        (Occasion.OPENED, altered(OWN, request_route="desk"), 0, []),
        (Occasion.RESOLVED, altered(OWN, request_route="desk"), 0, ["desk"]),
    ],
)
def test_a_moment_goes_over_the_route_that_is_for_it(
    occasion: Occasion, policy: Policy | None, reminders: int, routes: list[str]
) -> None:
    routing = Routing(ROUTES, request="ops", escalation="boss")
    assert routing.routes(occasion, gate(reminders), policy) == routes


def test_without_an_escalation_route_those_who_were_asked_are_told() -> None:
    assert Routing(ROUTES, request="ops").routes(Occasion.ESCALATED, gate(1), Policy()) == ["ops"]
    assert Routing().routes(Occasion.OPENED, gate(), Policy()) == []


def test_a_gate_that_a_policy_approves_as_it_opens_is_told_to_nobody() -> None:
    step = altered(plain(1)[0], requires_confirmation=True, policy="nightly")
    moment = Moment(NOW, policies={"nightly": Policy("nightly", auto_approve=True)})
    desk = Desk(sop(step), moment=moment)
    assert told(desk, m.Start("run-1", None, IDA, desk.mode, "host", "marker")) == []
    assert desk.state.gates["run-1.g1"].verdict is Verdict.APPROVE
