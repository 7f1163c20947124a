"""For every problem code an example that has it, and what to do about it. Documentation and tests read this table.

An example is as small as it can be: lines of the header, bullets of a step, whole steps, or words about files.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from msgspec import Struct

__all__ = ["REMEDIES", "Place", "Remedy"]

Place: TypeAlias = Literal["header", "bullets", "steps", "files"]


class Remedy(Struct, frozen=True):
    """An example of a problem, what kind of lines it consists of, and what would be right."""

    place: Place
    example: str
    remedy: str


def _of(place: Place, **rows: tuple[str, str]) -> dict[str, Remedy]:
    return {code.replace("_", "-"): Remedy(place, example, remedy) for code, (example, remedy) in rows.items()}


_HEADER: Final = _of(
    "header",
    admits_none=("max_concurrent = 0", "Set it to 1 or more."),
    approval_by_timeout=(
        'approval_timeout_action = "auto_approve"',
        "Leave it out. A policy of `procedo.toml` may approve by itself.",
    ),
    bad_default=(
        '[inputs.properties.n]\ntype = "integer"\ndefault = "many"',
        "Give a default that the schema allows.",
    ),
    missing_key=('[[triggers]]\ntype = "cron"', "Add the key that the message names."),
    schema_format=(
        '[inputs.properties.n]\nformat = "roman-numeral"',
        "Use a format that JSON Schema defines, or a `pattern`.",
    ),
    schema_keyword=('[inputs.properties.n]\ntyp = "integer"', "Correct the key; the message names the nearest one."),
    toml_syntax=("name = refund", "Correct it at the line: texts stand in quotes."),
    trigger_not_served=(
        '[[triggers]]\ntype = "webhook"\npath = "/in"',
        "Start the procedure from outside, such as by `procedo start`.",
    ),
    unknown_key=("cooldown = 60", "Use the key that the message names, or begin a key of your own with `x-`."),
)
_BULLETS: Final = _of(
    "bullets",
    auto_approve=("policy: nightly", "Nothing, when that is what you want: nobody is asked at this gate."),
    bad_arguments=('capability: template\nwith: {"text": 5}', "Give what the capability's input schema wants."),
    bad_binding=("prompt: Pay {{inputs.amount?", "Close it, and name `inputs`, `steps.N`, `run`, `item` or `calls`."),
    bad_condition=(
        "if: inputs.days = 3",
        "Compare with `==`; name `inputs`, `steps` or `run` alone.",
    ),
    bad_schema=('output: {"type": 5}', "Write a JSON Schema (2020-12) that refers to nothing outside of itself."),
    bad_value=("kind: exectue", "Use one of the forms that the message lists."),
    break_glass_policy=("policy: pair", "Add members to the group; until then only an emergency decision passes."),
    call_denied=('deny-tools: pump\ncall: {"tool": "pump"}', "Allow the tool in the step, or plan no call of it."),
    capability_off=("capability: shell.exec", "Switch it on in `procedo.toml`, or use another capability."),
    disabled_agent=("agent: retired", "Enable the agent in `procedo.toml`, or name another one."),
    edit_without_object=(
        'kind: checkpoint\ninput: {"properties": {"title": {}}}\nedit: body',
        "Name a field that the step's input has.",
    ),
    field_conflict=("kind: checkpoint\nsop: mailing", "Keep one of the two."),
    misspelt_bullet=("Tools: pump", "Write the key as the message says, or reword the sentence."),
    nested_value=("tools:\n  - pump", "Write the value behind the colon: `tools: pump, valve`."),
    next_beside_switch=(
        "next: 2\nswitch: small>inputs.n < 10>2; large>>3",
        "Leave `next` out; a last port without a condition takes the rest.",
    ),
    no_effect=("on_timeout: retry", "Add what it belongs to (here `timeout`), or leave it out."),
    port_never_taken=("switch: all>>2; some>inputs.n < 10>3", "Put the port without a condition last."),
    repeated_bullet=("mode: auto\nmode: supervised", "Keep one."),
    reserved_form=(
        "verify: agent:judge",
        "Verify with a condition or a capability; let a later step of that agent judge.",
    ),
    sop_recursion=("sop: refund", "Repeat steps with `next`; a procedure does not start itself."),
    tool_not_held=("agent: smith\ntools: valve", "Give the tool to the agent in `procedo.toml`, or name another tool."),
    unknown_agent=("agent: smiht", "Correct the name, or add the agent to `procedo.toml`."),
    unknown_capability=("capability: htp.request", "Use a [capability](capabilities.md) that exists."),
    unknown_policy=("policy: owner", "Correct the name, or add the policy to `procedo.toml`."),
    unknown_sop=("sop: mailling", "Correct the name, or add the procedure to the library."),
    unknown_step=("next: 9", "Name a step by its number or id."),
    unknown_tool=("tools: forklift.move", "Correct the name, or give an agent that tool."),
    unsatisfiable_dependency=("depends_on: 2", "Wait only for steps that can come before."),
    unsatisfiable_policy=("policy: pair", "Add members to the group, or lower the quorum."),
    when_beside_switch=(
        "when: inputs.n > 0\nswitch: small>inputs.n < 10>2; large>>3",
        "Nothing, when a false `when` is to pass the switch over; else put the condition into the ports.",
    ),
)
_STEPS: Final = _of(
    "steps",
    binding_order=("1. **Pay** — Pay {{steps.2.amount}}.\n2. **Check**", "Read outputs of earlier steps alone."),
    binding_uncertain=(
        "1. **Ask**\n   - switch: yes>inputs.n > 1>2; no>>3\n2. **Count**\n3. **Tell** — It was {{steps.2}}.",
        "Let every way come through the step that is read, or do not read it.",
    ),
    blank_title=("1.\n2. **Pay**", "Write a title: `1. **Check**`."),
    dependency_cycle=(
        "1. **A**\n   - depends_on: 2\n2. **B**\n   - depends_on: 1",
        "Take one of the dependencies away.",
    ),
    dependency_uncertain=(
        "1. **Ask**\n   - switch: yes>inputs.n > 1>2; no>>3\n2. **Count**\n3. **Tell**\n   - depends_on: 2",
        "Wait for steps alone that every way runs through.",
    ),
    duplicate_id=("1. **A**\n   - id: check\n2. **B**\n   - id: check", "Give each step an id of its own."),
    endless_loop=("1. **A**\n2. **B**\n   - next: 1", "Let a `switch` lead out of the circle, or mark an end."),
    fork_without_join=(
        "1. **A**\n   - next: 2, 3\n2. **B**\n   - terminal: true\n3. **C**\n   - terminal: true",
        "Let a step with `depends_on: 2, 3` join them, when something follows both.",
    ),
    independent_steps=(
        "1. **A**\n2. **B**\n   - depends_on: 1\n3. **C**\n   - depends_on: 1",
        "Write `next: 2, 3` at the first one to run them side by side.",
    ),
    step_marker=("1. **A**\n1) B", "Write a step as `2. **B**`."),
    step_number=("1. **A**\n3. **B**", "Number steps in their order; references mean the position."),
    stray_field=("- tools: pump\n1. **A**", "Indent the bullet below its step, by three blanks."),
    title_text=("1. Please **load** it", "Begin the step with its title in bold."),
    ungated_effect=(
        '1. **A**\n2. **B**\n   - capability: http.request\n   - with: {"method": "POST", "url": "{{inputs.address}}"}',
        "Put a gate before it: `requires_confirmation: true`.",
    ),
    unreachable_step=("1. **A**\n   - next: 3\n2. **B**\n3. **C**", "Let a step lead to it, or take it out."),
)
_FILES: Final = _of(
    "files",
    bad_name=('`name = "../refund"`', "Use one word of letters, digits, `-`, `_` and `.`."),
    duplicate_name=('Two folders with `name = "refund"`', "Give each procedure a name of its own."),
    duplicate_number=("Two `[[steps]]` with `number = 2`", "Give each step a number of its own."),
    extra_file=("A `.sop.md` file beside `SOP.toml`", "Move it to a folder of its own."),
    file_too_large=("A `SOP.md` of several megabytes", "Move the details to files that the steps name."),
    link_out=("A `SOP.md` that links to `/etc/refund.md`", "Put the file itself there."),
    missing_header=("A `SOP.md` alone", "Add a `SOP.toml` with `[sop]`, `name` and `description`."),
    missing_sop_table=("A `SOP.toml` that begins with `name =`", "Put `[sop]` above it."),
    no_steps=("A `SOP.md` without `## Steps`", "Write `## Steps` and a numbered list below it."),
    steps_twice=("`[[steps]]` beside a `SOP.md`", "Keep the steps in one of the files."),
    unreadable_file=("A `SOP.md` in Latin-1", "Save it as UTF-8, and let the server read it."),
)

REMEDIES: Final[Mapping[str, Remedy]] = MappingProxyType({**_HEADER, **_BULLETS, **_STEPS, **_FILES})
"""By problem code; the same codes as in `problems.CODES`."""
