import pytest
from definitions import compiled, files, problems_of, told

from procedo.core.model import FailureRule, Kind, Mode, OnFailure, OnTimeout, Scope
from procedo.sopfile import compile_files


@pytest.mark.requirement("C113")
def test_every_bullet_sets_its_field() -> None:
    sop = compiled("""
1. **Load** — Put the pots in.
   - id: load
   - kind: execute
   - agent: smith
   - tools: pump, valve
   - deny-tools: crane
   - requires_confirmation: TRUE
   - mode: step_by_step
   - policy: owners
   - prompt: Load {{title}}?
   - input: {"type": "object"}
   - output: {"type": "object", "required": ["count"]}
   - verify: output.count > 0
   - when: $.steps.1.count > 2
   - next: 3, 2
   - on_failure: retry:3 backoff:30s goto:3
   - on_deny: goto:stop
   - timeout: 15m
   - on_timeout: retry
   - if: inputs.wet == false
   - call: {"tool": "pump", "args": {"n": "{{inputs.n}}"}}
   - call: {"tool": "valve", "args": {"of": "{{calls.0.id}}"}}
   - x-owner: kiln team
2. **Each** pot
   - for_each: {{steps.load.pots}}
   - max_parallel: 4
   - context: load
   - terminal: true
3. **Stop**
   - id: stop
   - depends_on: 1, 2
   - allow-tools:
   - switch: hot>$.steps.1.t > 900>4; cold>>end
4. **Cool** down
   - wait: 2h
5. **Until** morning
   - wait: until {{inputs.morning}}
6. **Ask**
   - kind: approval
   - edit: body
7. **Glaze**
   - sop: glaze
   - with: {"kiln": "{{inputs.kiln}}"}
8. **Send**
   - capability: mail.send
   - with: to = 1
   - verify: capability:text.render {"text": "{{steps.1.count}}"}
""")
    load, each, stop, cool, until, ask, glaze, send = sop.steps
    assert (load.id, load.kind, load.agent, load.tools) == ("load", Kind.EXECUTE, "smith", ("pump", "valve"))
    assert load.scope == Scope(("pump", "valve"), ("crane",))
    assert (load.requires_confirmation, load.mode, load.policy) == (True, Mode.STEP_BY_STEP, "owners")
    assert load.gate_prompt == "Load {{input.title}}?"
    assert load.input_schema is not None
    assert load.input_schema.source == {"type": "object"}
    assert load.output_schema is not None
    assert load.output_schema.source["required"] == ["count"]
    assert load.verify is not None
    assert load.verify.condition is not None
    assert load.when is not None
    assert load.when.refs == frozenset({1})
    assert load.next == (3, 2)
    assert load.on_failure == FailureRule(OnFailure.RETRY, 3, 30.0, 3)
    assert (load.on_deny, load.timeout_s, load.on_timeout) == (3, 900.0, OnTimeout.RETRY)
    assert load.precondition is not None
    assert load.precondition.source == "inputs.wet == false"
    assert load.calls[1] == {"tool": "valve", "args": {"of": "{{calls.0.id}}"}}
    assert load.extensions == {"x-owner": "kiln team"}
    assert load.body == "Put the pots in."
    assert (each.for_each, each.max_parallel, each.sees, each.terminal) == ("{{steps.1.pots}}", 4, (1,), True)
    assert each.reads == frozenset({1})
    assert (stop.depends_on, stop.scope.allow) == ((1, 2), ())
    assert [(port.name, port.when and port.when.source, port.target) for port in stop.switch] == [
        ("hot", "$.steps.1.t > 900", 4),
        ("cold", None, None),
    ]
    assert (cool.kind, cool.wait_s) == (Kind.WAIT, 7200.0)
    assert (until.kind, until.wait_until) == (Kind.WAIT, "{{inputs.morning}}")
    assert (ask.kind, ask.edit) == (Kind.CHECKPOINT, "body")
    assert (glaze.kind, glaze.sub_sop, glaze.arguments) == (Kind.SOP, "glaze", {"kiln": "{{inputs.kiln}}"})
    assert (send.kind, send.capability, send.arguments) == (Kind.CAPABILITY, "mail.send", "to = 1")
    assert send.verify is not None
    assert send.verify.arguments == {"text": "{{steps.1.count}}"}
    assert send.reads == frozenset({1})


@pytest.mark.parametrize(
    ("written", "title", "body"),
    [
        ("1. **Heat** — to 980", "Heat", "to 980"),
        ("1. **Heat** - to 980", "Heat", "to 980"),
        ("1. **Heat** to 980", "Heat", "to 980"),
        ("1. **Heat**\n   to 980", "Heat", "to 980"),
        ("1. Heat to 980", "Heat to 980", ""),
        ("1. Heat\nto 980", "Heat", "to 980"),
        ("1. **A**\n   one\n   - note: gloves\n   two", "A", "one\n- note: gloves\ntwo"),
        ("1. **A**\n   - kind: execute\n   after the bullet", "A", "after the bullet"),
        ("1. **A** x\n\n   ```\n   - tools: no\n   ```", "A", "x\n\n```\n- tools: no\n```"),
        ("1. **A**\n   - Gloves:\n     - tools: no field", "A", "- Gloves:\n  - tools: no field"),
        ("1. **A**\n   1. first\n   2. second", "A", "1. first\n2. second"),
        ("1. **A**\n\n   ### Detail\n   text", "A", "### Detail\ntext"),
        ("1. **A**\n### Outside\ntext", "A", "### Outside\ntext"),
        ("1. **A**\n- kind: execute\n- plain", "A", "- plain"),
        ("1. **A**\n   > - tools: quoted", "A", "> - tools: quoted"),
    ],
)
def test_title_and_body_follow_the_structure_of_markdown(written: str, title: str, body: str) -> None:
    (step,) = compiled(written + "\n").steps
    assert (step.title, step.body, step.tools, step.kind) == (title, body, (), Kind.EXECUTE)


def test_steps_are_numbered_by_order_and_only_the_section_counts() -> None:
    text = """# T

1. **No step**

## steps

Intro

1. **A**
1. **B**

## Notes

1. no

## Steps

1. **C**
"""
    sop = compile_files({"SOP.toml": '[sop]\nname="a"\ndescription="b"\n', "SOP.md": text}, "a")
    assert [(step.number, step.title) for step in sop.steps] == [(1, "A"), (2, "B"), (3, "C")]


def test_bullets_need_no_exact_indentation() -> None:
    steps = "".join(f"{n}. **S{n}**\n   - tools: pump\n- mode: auto\n" for n in range(1, 13))
    assert [(step.tools, step.mode) for step in compiled(steps).steps] == [(("pump",), Mode.AUTO)] * 12


@pytest.mark.requirement("C33")
def test_misspelt_bullets_are_problems_with_their_line_and_the_nearest_key() -> None:
    found = problems_of(
        {
            "SOP.toml": '[sop]\nname = "a"\ndescription = "b"\n',
            "SOP.md": """## Steps

1. **A**
   - require_confirmation: true
   - Tools: pump
   - on-fail: retry:2
   - retry: 3
   - note: bring gloves
   - contact: the duty officer
   - then: close the door
   - suggested_tools: pump
   - tools : pump
   - deny_tool: pump
   - nxet: 1
""",
        }
    )
    assert [(p.line, p.code, p.hint.split("`")[1]) for p in found] == [
        (4, "misspelt-bullet", "requires_confirmation:"),
        (5, "misspelt-bullet", "tools:"),
        (6, "misspelt-bullet", "on_failure:"),
        (7, "misspelt-bullet", "on_failure:"),
        (11, "misspelt-bullet", "tools:"),
        (12, "misspelt-bullet", "tools:"),
        (13, "misspelt-bullet", "deny-tools:"),
        (14, "misspelt-bullet", "next:"),
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("- gate: true", (3, "misspelt-bullet", "did you mean `requires_confirmation:`?")),
        ("- approval: human", (3, "misspelt-bullet", "did you mean `requires_confirmation:`?")),
        ("- requires_confirmation = true", (3, "misspelt-bullet", "did you mean `requires_confirmation:`?")),
        ("- timeout = 5m", (3, "misspelt-bullet", "did you mean `timeout:`?")),
        ("requires_confirmation: true", (3, "stray-field", "write `- requires_confirmation: …`")),
        ("\n   requires_confirmation: true", (4, "stray-field", "write `- requires_confirmation: …`")),
        ("Pay.\n   gate: true", (4, "stray-field", "write `- requires_confirmation: …`")),
        ("Pay.\n   timeout = 5m", (4, "stray-field", "write `- timeout: …`")),
        ("- id: pay\n   requires_confirmation: true", (4, "stray-field", "write `- requires_confirmation: …`")),
        ("- prompt: Pay?\n     kind: checkpoint", (4, "stray-field", "write `- kind: …`")),
        ("- bring gloves\n     kind: checkpoint", (4, "stray-field", "write `- kind: …`")),
        ("- id: pay\n     - requires_confirmation: true", (4, "nested-value", "indent it as far as `id:`")),
        ("- id: pay\n     - gate: true", (4, "nested-value", "indent it as far as `id:`")),
    ],
)
def test_a_gate_in_a_place_or_form_that_is_not_read_is_an_error_and_not_text(
    lines: str, expected: tuple[int, str, str]
) -> None:
    (found,) = problems_of(files(f"1. **Pay**\n   {lines}\n"))
    assert (found.line, found.code, found.severity) == (*expected[:2], "error")
    assert found.hint.startswith(expected[2])


@pytest.mark.parametrize(
    "lines",
    [
        "next: open the valve",
        "when: the alarm rings",
        "tools: a pump and gloves",
        "input: see the sheet",
        "**timeout**: 5m",
        "if x == 3 stop",
        "```\n   requires_confirmation: true\n   ```",
        "- bring gloves\n     - two pairs: one for you",
        "- a == b",
        "- **timeout** = 5m",
        "- net = gross less tax",
    ],
)
def test_lines_that_only_begin_like_a_field_stay_text(lines: str) -> None:
    text = f"1. **Pay**\n   {lines}\n"
    assert told(text) == []
    assert compiled(text).steps[0].body == lines.replace("\n   ", "\n")


@pytest.mark.parametrize(
    "bullet",
    [
        "note: bring gloves",
        "Check the manual: it is on the shelf",
        "contents: two pots",
        "content: two pots",
        "Model: Kiln 3000",
        "all: wear gloves",
        "**Tools**: a pump",
        "http://example.com/tools",
        "`mode`: as agreed",
        "exit: by the north door",
    ],
)
def test_ordinary_bullets_stay_text(bullet: str) -> None:
    (step,) = compiled(f"1. **A**\n   - {bullet}\n").steps
    assert step.body == f"- {bullet}"


@pytest.mark.requirement("C54")
def test_a_guard_in_a_bullet_may_hold_comparison_signs() -> None:
    for guard in ("$.steps.1.level > 3", "$.steps.1.level >= 3", 'steps["1"].level > 3 && steps["1"].level < 9'):
        step = compiled(f"1. **A**\n   - switch: high>{guard}>2; low>>2\n2. **B**\n").steps[0]
        port = step.switch[0]
        assert port.when is not None
        assert (port.when.source, port.target) == (guard, 2)
        assert [port.when.test({"steps": {"1": {"level": level}}}).value for level in (5, 1)] == [True, False]


@pytest.mark.requirement("C54")
def test_a_port_without_target_is_an_error_with_its_line() -> None:
    assert told("1. **A**\n   - switch: high>$.steps.1.level > 3\n") == [("SOP.md", 3, "bad-condition")]
    assert told("1. **A**\n   - switch: high>$.steps.1.level >= 3\n") == [("SOP.md", 3, "bad-value")]


def test_a_schema_may_stand_in_a_fence_below_its_bullet() -> None:
    (step,) = compiled(
        '1. **A**\n   - output:\n     ```json\n     {"type":\n      "object"}\n     ```\n   body\n'
    ).steps
    assert step.output_schema is not None
    assert (step.output_schema.source, step.body) == ({"type": "object"}, "body")


def test_windows_line_ends_and_tabs_read_the_same() -> None:
    plain = compiled("1. **A**\n   - tools: pump\n   text\n2. **B**\n").steps
    assert compiled("1. **A**\r\n   - tools: pump\r\n   text\r\n2. **B**\r\n").steps == plain
    assert compiled("1. **A**\n\t- tools: pump\n\ttext\n2. **B**\n").steps[0].tools == ("pump",)
