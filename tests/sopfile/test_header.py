import pytest
from definitions import HEADER, compiled, told

from procedo.core.model import Admission, Kind, Mode, Priority, Reveal

WHOLE = """x-file = "kept"

[sop]
name = "kiln-firing"
description = "Fire a kiln"
version = "2.1"
priority = "critical"
execution_mode = "step_by_step"
cooldown_secs = 60
max_concurrent = 3
admission_policy = "coalesce"
max_pending_approvals = 5
agent = "smith"
reveal = "titles"
key = "inputs.kiln"
max_per_window = 5
window = "1h"
x-owner = "kiln team"

[inputs]
type = "object"
required = ["kiln"]
[inputs.properties.kiln]
type = "string"
[inputs.properties.t]
type = "number"
default = 980

[[triggers]]
type = "mqtt"
topic = "kiln/+"
condition = "$.t > 900"

[[positions]]
step = 1
x = 10
y = 20.5
"""


def test_every_key_of_the_header_is_read() -> None:
    sop = compiled("1. **A**\n", WHOLE)
    assert (sop.name, sop.description, sop.version) == ("kiln-firing", "Fire a kiln", "2.1")
    assert (sop.priority, sop.mode, sop.admission) == (Priority.CRITICAL, Mode.STEP_BY_STEP, Admission.COALESCE)
    assert (sop.cooldown_s, sop.max_concurrent, sop.max_pending_approvals) == (60.0, 3, 5)
    assert (sop.agent, sop.reveal, sop.max_per_window, sop.window_s) == ("smith", Reveal.TITLES, 5, 3600.0)
    assert sop.inputs is not None
    assert sop.inputs.defaults == {"t": 980}
    assert [str(v) for v in sop.inputs.schema.violations({"t": "hot"})] == [
        "kiln: expected a value, got nothing",
        "t: expected number, got string",
    ]
    (trigger,) = sop.triggers
    assert (trigger.type, trigger.settings, trigger.served) == ("mqtt", {"topic": "kiln/+"}, False)
    assert trigger.condition is not None
    assert trigger.condition.test({"t": 950}).value
    assert sop.positions == {1: (10.0, 20.5)}
    assert sop.extensions == {"x-file": "kept", "x-owner": "kiln team"}


def test_what_is_not_said_has_its_default() -> None:
    sop = compiled("1. **A**\n")
    assert (sop.version, sop.priority, sop.mode, sop.admission) == ("0.1.0", Priority.NORMAL, None, Admission.PARALLEL)
    assert (sop.cooldown_s, sop.max_concurrent, sop.max_pending_approvals, sop.agent) == (0.0, 1, 0, None)
    assert (sop.inputs, sop.key, sop.max_per_window, sop.reveal, sop.triggers) == (None, None, 0, Reveal.ALL, ())


def test_deterministic_true_is_the_mode() -> None:
    assert compiled("1. **A**\n", HEADER + "deterministic = true\n").mode is Mode.DETERMINISTIC
    assert compiled("1. **A**\n", HEADER + "deterministic = false\n").mode is None


STEPS = """
[[steps]]
title = "Load"
body = "Put it in"
suggested_tools = ["pump"]
requires_confirmation = true
schema = { input = { type = "object" }, output = { type = "object" } }
scope = { allow = ["pump"], deny = ["valve"] }
on_failure = { retry = { max = 2, backoff = "10s" }, goto = { step = 5 } }
on_deny = { goto = { step = 5 } }
timeout = 90
calls = [{ tool = "pump", args = { n = 1 } }]
pos = { x = 1, y = 2 }
x-note = { a = 1 }

[steps.routing]
when = "$.steps.1.n > 0"
next = [5]
depends_on = []

[[steps]]
number = 5
id = "render"
kind = "capability"
capability = "text.render"
with = { text = "hi" }
verify = { capability = "text.render", with = { text = "x" } }

[[steps.routing.switch]]
name = "high"
when = "$.steps.5.level > 3"
goto = 9

[[steps.routing.switch]]
name = "low"
goto = "end"

[[steps]]
number = 9
kind = "checkpoint"
edit = "text"
gate_prompt = "{{text}}?"
"""


@pytest.mark.requirement("C54")
def test_steps_in_the_header_keep_their_numbers_and_take_the_same_fields() -> None:
    load, render, ask = compiled(None, HEADER + STEPS).steps
    assert (load.number, load.title, load.tools, load.scope.deny) == (1, "Load", ("pump",), ("valve",))
    assert (load.next, load.depends_on, load.timeout_s, load.on_deny) == ((5,), (), 90.0, 5)
    assert (load.on_failure.retries, load.on_failure.backoff_s, load.on_failure.target) == (2, 10.0, 5)
    assert load.calls == ({"tool": "pump", "args": {"n": 1}},)
    assert load.extensions == {"x-note": {"a": 1}}
    assert (render.number, render.title, render.kind) == (5, "text.render", Kind.CAPABILITY)
    assert [(port.name, port.target, port.when is None) for port in render.switch] == [
        ("high", 9, False),
        ("low", None, True),
    ]
    assert render.switch[0].when is not None
    assert render.switch[0].when.test({"steps": {"5": {"level": 4}}}).value
    assert (ask.number, ask.title, ask.edit, ask.gate_prompt) == (9, "checkpoint", "text", "{{input.text}}?")


def test_lines_in_the_header_are_those_of_the_keys() -> None:
    more = STEPS.replace('tools = ["pump"]', 'tools = ["crane"]').replace("goto = 9", "goto = 8")
    assert [found for found in told(None, HEADER + more) if found[2] in ("unknown-tool", "unknown-step")] == [
        ("SOP.toml", 8, "unknown-tool"),
        ("SOP.toml", 32, "unknown-step"),
    ]


@pytest.mark.requirement("C24")
def test_an_unknown_mode_word_is_an_error_for_the_procedure_and_for_a_step() -> None:
    assert told("1. **A**\n", HEADER + 'execution_mode = "supervized"\n') == [("SOP.toml", 4, "bad-value")]
    assert told("1. **A**\n   - mode: supervized\n") == [("SOP.md", 3, "bad-value")]
    assert told("1. **A**\n   - mode: supervised\n", HEADER + 'execution_mode = "auto"\n') == []


@pytest.mark.requirement("C3")
def test_a_definition_cannot_ask_for_approval_by_timeout() -> None:
    for key in ('approval_timeout_action = "auto_approve"', "auto_approve = true", "approve_on_timeout = true"):
        assert told("1. **A**\n", f"{HEADER}{key}\n") == [("SOP.toml", 4, "approval-by-timeout")]
    assert told("1. **A**\n   - timeout: 5m\n   - on_timeout: auto_approve\n") == [("SOP.md", 4, "approval-by-timeout")]
    assert told("1. **A**\n   - timeout: 5m\n   - on_timeout: gate\n") == []


@pytest.mark.parametrize(
    ("written", "seconds"), [("90", 90.0), ('"90s"', 90.0), ('"15m"', 900.0), ('"2h"', 7200.0), ('"1d"', 86400.0)]
)
def test_durations_are_seconds_or_have_a_unit(written: str, seconds: float) -> None:
    sop = compiled(None, f'{HEADER}[[steps]]\ntitle = "A"\ntimeout = {written}\n')
    assert sop.steps[0].timeout_s == seconds
    bullet = written.strip('"')
    assert compiled(f"1. **A**\n   - timeout: {bullet}\n").steps[0].timeout_s == seconds
