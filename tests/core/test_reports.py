"""Reports: what a result must be, what becomes of it, and what follows a failure."""

import pytest
from engine import BOT, IDA, NOW, Desk, condition, plain, schema, sop

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.model import FailureRule, Kind, Mode, OnFailure, OnTimeout, Step, Verify
from procedo.core.state import Phase, Status, Verdict
from procedo.errors import Conflict, Refused


def retrying(count: int, **changes: object) -> Step:
    made = altered(plain(1)[0], on_failure=FailureRule(OnFailure.RETRY, count))
    return altered(made, **changes)  # type: ignore[arg-type]  # fields of Step only


@pytest.mark.requirement("C15")
def test_the_same_report_replays_and_another_one_conflicts() -> None:
    desk = Desk(sop(*plain(3))).start()
    desk.report("1.1", "a")
    before = desk.state
    assert desk.report("1.1", "a") == []
    assert desk.state == before
    with pytest.raises(Conflict, match=r"Execution 2\.1 is open"):
        desk.report("1.1", "b")
    with pytest.raises(Refused, match=r"'3.1' is not open"):
        desk.report("3.1", "x")
    assert desk.state == before


@pytest.mark.requirement("C15")
def test_a_late_report_for_an_attempt_that_was_retried_is_refused() -> None:
    first, second = plain(2)
    desk = Desk(sop(first, altered(second, on_failure=FailureRule(OnFailure.RETRY, 1)))).start()
    desk.report("1.1")
    desk.fail("2.1", "it broke")
    assert desk.open == ["2.2"]
    assert desk.fail("2.1", "it broke") == []
    with pytest.raises(Conflict, match=r"Execution 2\.2 is open"):
        desk.report("2.1", "done after all")


@pytest.mark.requirement("C12")
def test_cancel_wins_over_a_late_result() -> None:
    desk = Desk(sop(*plain(3))).start()
    desk.report("1.1")
    desk.do(m.Cancel("oven out of order", IDA))
    with pytest.raises(Conflict, match="The run is cancelled"):
        desk.report("2.1", "done")
    with pytest.raises(Refused, match="already cancelled"):
        desk.do(m.Cancel("again", IDA))
    assert (desk.status, desk.reason) == (Status.CANCELLED, "oven out of order")


@pytest.mark.requirement("C18")
def test_retry_two_means_two_more() -> None:
    desk = Desk(sop(retrying(2))).start()
    assert desk.fail("1.1") == ["ExecutionFailed", "ExecutionOpened"]
    offer = desk.offers[0]
    assert isinstance(offer, m.ExecuteStep)
    assert offer.step.note == "Attempt 2: the attempt before failed (it broke); it may have had effects already."
    desk.fail("1.2")
    assert desk.fail("1.3") == ["ExecutionFailed", "RunFailed"]
    assert desk.reason == "step 1 failed 3 times (retry limit 2): it broke"


@pytest.mark.requirement("C18")
def test_a_success_after_two_failures_goes_on() -> None:
    desk = Desk(sop(retrying(2), altered(plain(2)[1]))).start()
    desk.fail("1.1")
    desk.fail("1.2")
    desk.report("1.3", "good")
    assert desk.open == ["2.1"]


def test_attempts_are_counted_anew_at_each_visit() -> None:
    again = condition("again", "again", True, step=1)
    step = retrying(1, when=again, next=(1,))
    desk = Desk(sop(step)).start()
    desk.fail("1.1")
    desk.report("1.2", {"again": True})
    desk.fail("1.3")
    assert desk.open == ["1.4"]


def test_a_back_off_lasts_as_long_as_it_says() -> None:
    desk = Desk(sop(retrying(1, on_failure=FailureRule(OnFailure.RETRY, 1, backoff_s=30)))).start()
    assert desk.fail("1.1") == ["ExecutionFailed", "ArrivalPended"]
    assert (desk.status, desk.open) == (Status.PENDING, [])
    assert desk.later(29) == []
    assert desk.later(1) == ["ArrivalReleased", "ExecutionOpened"]
    assert desk.open == ["1.2"]


@pytest.mark.requirement("C92")
def test_a_failure_can_go_to_another_step_which_receives_the_failed_output() -> None:
    first, *rest = plain(4)
    desk = Desk(sop(altered(first, on_failure=FailureRule(OnFailure.GOTO, target=4)), *rest)).start()
    desk.report("1.1", {"log": "bang"}, Phase.FAILED)
    offer = desk.offers[0]
    assert isinstance(offer, m.ExecuteStep)
    assert (offer.execution_id, offer.context["input"]) == ("4.1", {"log": "bang"})


@pytest.mark.requirement("C64")
def test_a_failure_ends_the_run_with_its_reason() -> None:
    desk = Desk(sop(*plain(2))).start()
    desk.fail("1.1", "pump jammed")
    assert (desk.status, desk.reason) == (Status.FAILED, "step 1 failed: pump jammed")


@pytest.mark.requirement("C68")
def test_a_skipped_step_takes_the_success_path_without_an_output() -> None:
    desk = Desk(sop(*plain(3)), inputs={"a": 1}).start()
    desk.report("1.1", {"b": 2})
    desk.report("2.1", "not needed", Phase.SKIPPED)
    offer = desk.offers[0]
    assert isinstance(offer, m.ExecuteStep)
    assert (offer.execution_id, offer.context["input"]) == ("3.1", {"b": 2})
    assert desk.state.steps[2].completed is None


@pytest.mark.requirement("C19")
@pytest.mark.parametrize("output", ["done", {}, {"ticket": 12}, {"error": "502"}])
def test_an_output_that_breaks_its_schema_is_a_failed_attempt(output: object) -> None:
    desk = Desk(sop(retrying(1, output_schema=schema(ticket=str)))).start()
    assert desk.report("1.1", output) == ["ExecutionFailed", "ExecutionOpened"]
    closing = desk.state.executions["1.1"].closing
    assert closing is not None
    assert "expected" in closing.reason


@pytest.mark.requirement("C95")
def test_a_right_output_after_a_wrong_one_goes_on() -> None:
    desk = Desk(sop(retrying(1, output_schema=schema(ticket=str)), plain(2)[1])).start()
    desk.report("1.1", {"ticket": 12})
    assert desk.open == ["1.2"]
    desk.report("1.2", {"ticket": "T-12"})
    assert desk.open == ["2.1"]


@pytest.mark.parametrize(
    "told",
    [
        '{"ticket": "T-12"}',
        '"{\\"ticket\\": \\"T-12\\"}"',
        'Here you are:\n```json\n{"ticket": "T-12"}\n```\nDone.',
        'The ticket is {"ticket": "T-12"}.',
    ],
)
def test_one_value_inside_prose_is_taken(told: str) -> None:
    desk = Desk(sop(altered(plain(1)[0], output_schema=schema(ticket=str)))).start()
    desk.report("1.1", told)
    assert (desk.status, desk.state.last_output) == (Status.COMPLETED, {"ticket": "T-12"})


def test_two_values_inside_prose_are_refused() -> None:
    desk = Desk(sop(altered(plain(1)[0], output_schema=schema(ticket=str)))).start()
    desk.report("1.1", 'Either {"ticket": "T-1"} or {"ticket": "T-2"}.')
    assert (desk.status, "exactly one JSON value" in desk.reason) == (Status.FAILED, True)


def test_without_a_schema_nothing_is_taken_out_of_prose() -> None:
    desk = Desk(sop(*plain(1))).start()
    desk.report("1.1", 'Done: {"a": 1}')
    assert desk.state.last_output == 'Done: {"a": 1}'


@pytest.mark.requirement("C20")
def test_an_input_that_breaks_the_schema_of_a_step_fails_the_run_before_it() -> None:
    desk = Desk(sop(altered(plain(1)[0], input_schema=schema(weight=float))), inputs={"weight": "heavy"}).start()
    assert desk.status is Status.FAILED
    assert desk.reason == "the input of step 1 breaks its schema: weight: expected float, got str"
    assert desk.state.executions == {}


@pytest.mark.requirement("C27")
def test_a_step_has_a_deadline() -> None:
    desk = Desk(sop(altered(plain(1)[0], timeout_s=1.0))).start()
    assert desk.later(0.9) == []
    assert desk.later(0.1) == ["ExecutionFailed", "RunFailed"]
    assert desk.reason == "step 1 exceeded 1s"
    with pytest.raises(Refused):
        desk.report("1.1", "late")


def test_a_deadline_can_give_the_step_again() -> None:
    desk = Desk(sop(altered(plain(1)[0], timeout_s=1.0, on_timeout=OnTimeout.RETRY))).start()
    assert desk.later(1) == ["ExecutionFailed", "ExecutionOpened"]
    desk.later(1)
    assert desk.later(1)[-1] == "RunFailed"


def test_a_deadline_can_ask_a_person() -> None:
    desk = Desk(sop(altered(plain(1)[0], timeout_s=60.0, on_timeout=OnTimeout.GATE))).start()
    assert desk.later(60) == ["ExecutionHalted", "GateOpened"]
    with pytest.raises(Refused, match="halted"):
        desk.report("1.1", "late")
    assert desk.approve(1) == ["GateResolved", "ExecutionExtended"]
    desk.report("1.1", "in time now")
    assert desk.status is Status.COMPLETED


def test_a_denied_extension_fails_the_step() -> None:
    desk = Desk(sop(altered(plain(1)[0], timeout_s=60.0, on_timeout=OnTimeout.GATE))).start()
    desk.later(60)
    desk.deny(1)
    assert desk.status is Status.FAILED


def test_a_verification_judges_the_report() -> None:
    verify = Verify(condition=condition("ok", "ok", True, step=None))
    good = Desk(sop(altered(plain(1)[0], verify=verify)), inputs={"ok": True}).start()
    assert good.report("1.1", "x") == ["OutputClaimed", "ExecutionCompleted", "Routed", "RunCompleted"]
    bad = Desk(sop(altered(plain(1)[0], verify=verify)), inputs={"ok": False}).start()
    assert bad.report("1.1", "x") == ["OutputClaimed", "ExecutionFailed", "RunFailed"]
    assert bad.reason == "step 1 failed: verification failed: ok is false"


def test_a_verification_that_cannot_be_made_never_passes() -> None:
    verify = Verify(condition=condition("ok", "ok", True, note="no such field"))
    desk = Desk(sop(altered(plain(1)[0], verify=verify)), inputs={}).start()
    assert desk.report("1.1", "x") == ["OutputClaimed", "ExecutionHalted", "GateOpened"]
    assert desk.approve(1) == ["GateResolved", "ExecutionCompleted", "Routed", "RunCompleted"]
    assert desk.state.last_output == "x"


def test_the_verdict_of_a_capability_is_applied_once() -> None:
    desk = Desk(sop(altered(plain(1)[0], verify=Verify(capability="json.validate")))).start()
    assert desk.report("1.1", "x") == ["OutputClaimed"]
    assert desk.report("1.1", "x") == []
    with pytest.raises(Conflict):
        desk.report("1.1", "y")
    assert desk.do(m.Judge("1.1", "pass")) == ["ExecutionCompleted", "Routed", "RunCompleted"]
    with pytest.raises(Refused, match="already completed"):
        desk.do(m.Judge("1.1", "fail"))


SERVER = Step(1, "Call", kind=Kind.CAPABILITY, capability="shell.exec")


def test_an_interrupted_effect_asks_before_it_happens_again() -> None:
    desk = Desk(sop(SERVER, plain(2)[1])).start()
    assert desk.do(m.Begin("1.1", 1, repeatable=False)) == ["EffectStarted"]
    assert desk.do(m.Begin("1.1", 2, repeatable=False)) == ["ExecutionHalted", "GateOpened"]
    assert desk.status is Status.WAITING_APPROVAL
    assert desk.answer(1, Verdict.REPEAT) == ["GateResolved", "EffectRepeated"]
    assert desk.do(m.Begin("1.1", 3, repeatable=False)) == ["EffectStarted"]
    assert desk.do(m.Finish("1.1", 3, Phase.COMPLETED, "ok"))[0] == "ExecutionCompleted"


@pytest.mark.parametrize(("verdict", "status"), [(Verdict.SKIP, Status.RUNNING), (Verdict.FAIL, Status.FAILED)])
def test_an_interrupted_effect_can_be_skipped_or_failed(verdict: Verdict, status: Status) -> None:
    desk = Desk(sop(SERVER, plain(2)[1])).start()
    desk.do(m.Begin("1.1", 1, repeatable=False))
    desk.do(m.Begin("1.1", 2, repeatable=False))
    desk.answer(1, verdict)
    assert desk.status is status


def test_a_repeatable_effect_is_repeated_without_asking() -> None:
    desk = Desk(sop(SERVER)).start()
    desk.do(m.Begin("1.1", 1, repeatable=True))
    assert desk.do(m.Begin("1.1", 2, repeatable=True)) == ["EffectRepeated", "EffectStarted"]


def test_the_result_of_a_lost_claim_is_refused() -> None:
    desk = Desk(sop(SERVER)).start()
    desk.do(m.Begin("1.1", 1, repeatable=True))
    desk.do(m.Begin("1.1", 2, repeatable=True))
    with pytest.raises(Conflict, match="not the newest"):
        desk.do(m.Finish("1.1", 1, Phase.COMPLETED, "late"))
    assert desk.do(m.Finish("1.1", 2, Phase.COMPLETED, "mine"))[0] == "ExecutionCompleted"


def test_the_caller_does_not_report_what_the_server_does() -> None:
    desk = Desk(sop(SERVER)).start()
    with pytest.raises(Refused, match="performed by the server"):
        desk.report("1.1", "done", by=BOT)


def test_a_wait_ends_when_its_time_has_come() -> None:
    desk = Desk(sop(Step(1, "Rest", kind=Kind.WAIT, wait_s=600.0), plain(2)[1])).start()
    assert desk.later(599) == []
    assert desk.later(1)[0] == "ExecutionCompleted"
    assert (desk.output_of("1.1"), desk.open) == ({"waited_ms": 600_000}, ["2.1"])


def test_a_wait_until_takes_its_moment_from_the_inputs() -> None:
    step = Step(1, "Rest", kind=Kind.WAIT, wait_until="{{inputs.at}}")
    desk = Desk(sop(step), inputs={"at": "2026-03-01T12:00:05Z"}).start()
    assert desk.later(5)[0] == "ExecutionCompleted"
    wrong = Desk(sop(step), inputs={"at": "tomorrow"}).start()
    assert (wrong.status, "ISO 8601" in wrong.reason) == (Status.FAILED, True)


@pytest.mark.requirement("C22")
def test_nothing_is_completed_that_nobody_did() -> None:
    desk = Desk(sop(*plain(1)), Mode.DETERMINISTIC, inputs={"a": 1}).start()
    assert desk.later(100_000) == []
    offer = desk.offers[0]
    assert isinstance(offer, m.DeterministicStep)
    assert (offer.execution_id, offer.input) == ("1.1", {"a": 1})
    assert desk.state.started_at == NOW
