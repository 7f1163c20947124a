"""Every problem: text in, problems out, with their lines. A code without a row fails."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from definitions import HEADER, files, problems_of, surroundings, told

from procedo.core.altered import altered
from procedo.core.approval import Policy
from procedo.sopfile import CODES, Library, Problem, Surroundings
from procedo.sopfile.folder import LARGEST_FILE

ON_DISK = {"duplicate-name", "extra-file", "file-too-large", "link-out", "unreadable-file"}
"""Codes that need real files; the tests below this table have them."""


@dataclass(frozen=True)
class Row:
    """A definition with one mistake: what stands below `## Steps` (None: no SOP.md), and the header."""

    code: str
    line: int
    steps: str | None = "1. **Load**\n"
    header: str = HEADER
    file: str = "SOP.md"
    around: Surroundings | None = None


def h(code: str, line: int, more: str, steps: str | None = "1. **Load**\n", around: Surroundings | None = None) -> Row:
    """A mistake in the header; `more` begins on line 4."""
    return Row(code, line, steps, HEADER + more, "SOP.toml", around)


def s(code: str, line: int, *bullets: str, rest: str = "2. **Fire**\n", around: Surroundings | None = None) -> Row:
    """A mistake in the first step, whose bullets begin on line 3."""
    text = "1. **Load**\n" + "".join(f"   - {bullet}\n" for bullet in bullets)
    return Row(code, line, text + rest, around=around)


FORK = "next: 2, 3"
# A workspace in which agents have tools of their own: smith the pump, noor the valve and a lamp.
HELD = {"smith": {"pump"}, "noor": {"valve", "lamp"}}
AGENTS = altered(
    surroundings(agents=["host", *HELD], tools=None),
    holds=lambda agent, tool: tool in HELD.get(agent, ()),
    disabled=frozenset({"noor"}),
)
TWO = "2. **Fire**\n   - terminal: true\n3. **Cool**\n   - terminal: true\n"

ROWS = [
    # the header
    h("toml-syntax", 4, "oops\n"),
    h("unknown-key", 4, 'exection_mode = "auto"\n'),
    h("unknown-key", 4, "cooldown = 60\n"),
    h("unknown-key", 6, '[[triggers]]\ntype = "channel"\ntopic = "x"\nchannel = "mail"\n'),
    h("unknown-key", 4, "[inputs.service]\ntype = 'string'\n"),
    h("unknown-key", 6, "[[steps]]\ntitle = 'x'\nretry = 3\n", None),
    h("unknown-key", 6, "[[steps]]\ntitle = 'x'\nrouting = { nxt = 1 }\n", None),
    h("unknown-key", 4, "[sopp]\n"),
    h("bad-value", 4, 'priority = "urgent"\n'),
    h("bad-value", 4, 'execution_mode = "automatic"\n'),
    h("bad-value", 4, "max_concurrent = true\n"),
    h("bad-value", 4, "cooldown_secs = -1\n"),
    h("bad-value", 4, 'max_concurrent = "2"\n'),
    h("bad-value", 5, '[[triggers]]\ntype = "crom"\n'),
    h("missing-key", 4, '[[triggers]]\ntype = "cron"\n'),
    h("bad-value", 7, '[[triggers]]\ntype = "filesystem"\npath = "/in"\nevents = ["touched"]\n'),
    h("toml-syntax", 1, f"x-deep = {'[' * 5000}{']' * 5000}\n"),
    h("toml-syntax", 1, f"x-deep = {'[' * 80}{']' * 80}\n"),
    h("missing-key", 4, "max_per_window = 3\n"),
    h("missing-key", 4, 'window = "1h"\n'),
    h("field-conflict", 4, 'execution_mode = "auto"\ndeterministic = true\n'),
    h("admits-none", 4, "max_concurrent = 0\n"),
    h("approval-by-timeout", 4, 'approval_timeout_action = "auto_approve"\n'),
    h("trigger-not-served", 4, '[[triggers]]\ntype = "webhook"\npath = "/in"\n'),
    h("trigger-not-served", 4, '[[triggers]]\ntype = "cron"\nexpression = "0 5 * * *"\n'),
    h("bad-condition", 4, 'key = "inputs.("\n'),
    h("bad-condition", 4, 'key = "steps.a + 1"\n'),
    h("bad-binding", 4, 'key = "{{steps.1}}"\n'),
    h("bad-condition", 4, '[[triggers]]\ntype = "mqtt"\ntopic = "x"\ncondition = "$.n >"\n'),
    h("bad-schema", 4, "[inputs]\ntype = 5\n"),
    h("bad-default", 4, "[inputs]\n[inputs.properties.n]\ntype = 'integer'\ndefault = 'many'\n"),
    h("schema-keyword", 4, "[inputs]\n[inputs.properties.n]\ntyp = 'integer'\n"),
    h("schema-format", 4, "[inputs]\n[inputs.properties.n]\nformat = 'roman-numeral'\n"),
    h("unknown-agent", 4, 'agent = "smiht"\n'),
    h("no-effect", 4, "[[positions]]\nstep = 9\nx = 1\ny = 2\n"),
    h("steps-twice", 4, "[[steps]]\ntitle = 'x'\n"),
    h("no-steps", 1, "", None),
    h("duplicate-number", 7, "[[steps]]\nnumber = 2\ntitle = 'x'\n[[steps]]\nnumber = 2\ntitle = 'y'\n", None),
    Row("bad-name", 2, header='[sop]\nname = "../oven"\ndescription = "d"\n', file="SOP.toml"),
    Row("missing-key", 1, header='[sop]\nname = "oven"\n', file="SOP.toml"),
    Row("missing-sop-table", 1, header="x-a = 1\n", file="SOP.toml"),
    Row("no-steps", 1, "only text\n", file="SOP.toml"),
    # the structure of SOP.md
    Row("blank-title", 2, "1.\n2. **B**\n"),
    Row("title-text", 2, "1. Please **load** it\n"),
    Row("step-number", 3, "1. **A**\n3. **B**\n"),
    Row("step-marker", 3, "1. **A**\n1) no step\n"),
    Row("stray-field", 2, "- tools: pump\n1. **A**\n"),
    Row("stray-field", 3, "1. **A**\n        - tools: pump\n"),
    s("misspelt-bullet", 3, "Tools: pump"),
    s("repeated-bullet", 4, "mode: auto", "mode: supervised"),
    s("nested-value", 3, "tools:\n     - pump"),
    # values of bullets
    s("bad-value", 3, "kind: exectue"),
    s("bad-value", 3, "mode: automatic"),
    s("bad-value", 3, "requires_confirmation: yes"),
    s("bad-value", 3, "next: soon, now and then"),
    s("bad-value", 3, "on_failure: rety:3"),
    s("bad-value", 3, "on_failure: retry:many"),
    s("bad-value", 3, "on_failure: backoff:30s"),
    s("bad-value", 3, "timeout: soon"),
    s("bad-value", 3, "timeout: 0"),
    s("bad-value", 3, "call: pump it"),
    s("bad-value", 3, 'call: {"args": {}}'),
    s("bad-value", 3, "switch: only a name"),
    s("bad-value", 3, "id: 9th"),
    s("bad-value", 3, "for_each: all of them"),
    s("bad-value", 3, "wait: until tomorrow"),
    s("bad-value", 3, 'with: {"a": }'),
    s("bad-value", 3, f"with: {'[' * 5000}{']' * 5000}"),
    s("bad-value", 3, f"with: {'[' * 80}{']' * 80}"),
    s("bad-value", 3, "max_parallel: 0", "for_each: {{inputs.n}}"),
    s("approval-by-timeout", 4, "timeout: 5m", "on_timeout: approve"),
    s("reserved-form", 3, "verify: agent:judge"),
    s("bad-schema", 3, 'output: {"type": 5}'),
    s("bad-schema", 3, "input: an object"),
    s("bad-schema", 3, 'output: {"$ref": "https://example.com/schema.json"}'),
    s("bad-condition", 3, "when: $.steps.1.n >"),
    s("bad-condition", 3, "when: inputs.wet =="),
    s("bad-condition", 3, "if: weather.wet == true"),
    s("bad-condition", 3, "when: $.steps.9.n == 1"),
    s("bad-condition", 3, 'when: steps["9"].n == 1'),
    s("no-effect", 3, "when: $.wet == true"),
    s("bad-binding", 3, "prompt: {{inputs.a"),
    s("bad-binding", 3, 'call: {"tool": "pump", "args": "{{calls.0}}"}'),
    Row("bad-binding", 4, "1. **A** first\n   second\n   third {{oops}}\n"),
    # references
    s("unknown-step", 3, "next: 9"),
    s("unknown-step", 3, "next: fire"),
    s("unknown-step", 3, "depends_on: 9"),
    s("unknown-step", 3, "on_failure: goto:99"),
    s("unknown-step", 3, "on_deny: goto:99"),
    s("unknown-step", 3, "switch: a>$.inputs.x == 1>9; b>>2"),
    s("unknown-step", 3, "context: 9"),
    s("unknown-step", 3, "prompt: {{steps.9}}"),
    s("duplicate-id", 5, "id: a", rest="2. **Fire**\n   - id: a\n"),
    s("unknown-agent", 3, "agent: smiht"),
    s("unknown-policy", 3, "policy: owner"),
    s("unknown-tool", 3, "tools: forklift.move"),
    s("unknown-tool", 3, "deny-tools: fs"),
    s("unknown-tool", 4, "agent: smith", "tools: pump, ladder", around=AGENTS),
    s("unknown-tool", 4, "agent: smith", 'call: {"tool": "ladder", "args": {}}', around=AGENTS),
    s("tool-not-held", 4, "agent: smith", "tools: valve", around=AGENTS),
    s("tool-not-held", 4, "agent: smith", "allow-tools: pump, valve", around=AGENTS),
    s("disabled-agent", 3, "agent: noor", around=AGENTS),
    s("unknown-capability", 3, "capability: text.rendr"),
    s("capability-off", 3, "capability: disk.wipe"),
    s("bad-arguments", 4, "capability: text.render", 'with: {"text": 5}'),
    s("unknown-sop", 3, "sop: glase"),
    s("sop-recursion", 3, "sop: kiln-firing"),
    s(
        "unsatisfiable-policy",
        3,
        "policy: pair",
        around=surroundings(policies=[Policy("pair", frozenset({"ida", "cli:IDA"}), "pair", 2)]),
    ),
    s(
        "break-glass-policy",
        3,
        "policy: pair",
        around=surroundings(policies=[Policy("pair", frozenset({"ida"}), "pair", 2)], break_glass=["noor"]),
    ),
    s(
        "auto-approve",
        3,
        "policy: nightly",
        around=surroundings(policies=[Policy("nightly", auto_approve=True)]),
    ),
    # fields against each other
    s("field-conflict", 4, "capability: text.render", "sop: glaze"),
    s("field-conflict", 4, "kind: checkpoint", "sop: glaze"),
    s("missing-key", 3, "kind: capability"),
    s("no-effect", 3, "on_timeout: retry"),
    s("no-effect", 3, "max_parallel: 2"),
    s("no-effect", 3, "with: 1"),
    s("no-effect", 3, "edit: body"),
    s("no-effect", 4, "allow-tools: valve", "tools: pump, valve"),
    s("no-effect", 4, "next: 2", "terminal: true"),
    s("port-never-taken", 3, "switch: all>>2; some>$.inputs.x == 1>2"),
    s("edit-without-object", 5, "kind: checkpoint", 'input: {"properties": {"title": {}}}', "edit: body"),
    s("call-denied", 4, "deny-tools: pump", 'call: {"tool": "pump"}'),
    # the ways through
    s("unreachable-step", 4, "next: 3", rest="2. **Fire**\n3. **Cool**\n"),
    s("endless-loop", 4, rest="2. **Fire**\n   - next: 1\n"),
    s("dependency-cycle", 3, "depends_on: 2", rest="2. **Fire**\n   - depends_on: 1\n"),
    s("unsatisfiable-dependency", 3, "depends_on: 2"),
    s(
        "dependency-uncertain",
        6,
        "switch: a>$.inputs.x == 1>2; b>>3",
        rest="2. **Fire**\n3. **Cool**\n   - depends_on: 2\n",
    ),
    s("fork-without-join", 3, FORK, rest=TWO),
    s("when-beside-switch", 3, "when: $.inputs.x == 1", "switch: a>$.inputs.x == 1>2; b>>2"),
    s("next-beside-switch", 3, "next: 2", "switch: a>$.inputs.x == 1>2; b>>2"),
    s("independent-steps", 6, rest="2. **Fire**\n   - depends_on: 1\n3. **Cool**\n   - depends_on: 1\n"),
    # what is read
    Row("binding-order", 3, "1. **A**\n   {{steps.1}}\n"),
    Row("binding-order", 3, "1. **A**\n   {{steps.2}}\n2. **B**\n"),
    s("binding-order", 3, "context: 2"),
    Row(
        "binding-uncertain",
        5,
        "1. **A**\n   - switch: a>$.inputs.x == 1>2; b>>3\n2. **B**\n3. **C** {{steps.2}}\n",
    ),
    Row(
        "ungated-effect",
        5,
        '1. **A**\n2. **B**\n   - capability: mail.send\n   - with: {"text": "{{inputs.message}}"}\n',
        HEADER + 'execution_mode = "auto"\n',
    ),
]


@pytest.mark.requirement("C14", "C25", "C36", "C96", "C99")
@pytest.mark.parametrize("row", ROWS, ids=[f"{number}-{row.code}" for number, row in enumerate(ROWS)])
def test_a_mistake_is_told_with_its_file_line_and_code(row: Row) -> None:
    assert (row.file, row.line, row.code) in told(row.steps, row.header, row.around)


def test_every_code_has_a_row() -> None:
    shown = {row.code for row in ROWS} | ON_DISK | {"missing-header"}
    assert shown == set(CODES)


def test_a_definition_without_mistakes_has_no_problems() -> None:
    steps = """1. **Load** the pots
   - output: {"type": "object", "required": ["count"]}
2. **Fire** {{steps.1.count}} pots
   - requires_confirmation: true
   - prompt: Fire them?
"""
    assert told(steps, HEADER + 'x-owner = "kiln team"\n') == []


def test_ten_different_mistakes_are_all_named_with_their_lines() -> None:
    header = """[sop]
name = "kiln-firing"
description = "Fire a kiln"
exection_mode = "auto"
priority = "urgent"

[[triggers]]
type = "channel"
channel = "mail"
topic = "x"
"""
    steps = """1. **Load** the pots {{steps.3.count}}
   - Tools: pump
   - next: 7
2. **Fire**
   - kind: exectue
   - output: {"type": 5}
   - when: $.steps.2.done ==
3. **Cool**
   - depends_on: 4
4. **Unload** {{stepz.1}}
   - depends_on: 3
   - policy: nobody
"""
    errors = [problem for problem in problems_of(files(steps, header)) if problem.severity == "error"]
    assert [(p.file, p.line, p.code) for p in errors] == [
        ("SOP.md", 2, "binding-order"),
        ("SOP.md", 3, "misspelt-bullet"),
        ("SOP.md", 4, "unknown-step"),
        ("SOP.md", 6, "bad-value"),
        ("SOP.md", 7, "bad-schema"),
        ("SOP.md", 8, "bad-condition"),
        ("SOP.md", 10, "dependency-cycle"),
        ("SOP.md", 11, "bad-binding"),
        ("SOP.md", 12, "dependency-cycle"),
        ("SOP.md", 13, "unknown-policy"),
        ("SOP.toml", 4, "unknown-key"),
        ("SOP.toml", 5, "bad-value"),
        ("SOP.toml", 10, "unknown-key"),
    ]


def test_a_problem_reads_as_place_severity_code_message_and_hint() -> None:
    (problem,) = problems_of(files("1. **A**\n", HEADER + "cooldown = 60\n"))
    assert str(problem) == (
        "SOP.toml:4: error[unknown-key]: unknown key 'cooldown' in [sop] (did you mean cooldown_secs?)"
    )


@pytest.mark.parametrize(
    ("header", "bullet", "says"),
    [
        ('cooldown_secs = "soon"\n', "", "write a whole number, 0 or more, without quotes"),
        ('deterministic = "yes"\n', "", "write true or false, without quotes"),
        ("", "on_failure: retry:2 backof:5s", "did you mean backoff?"),
        ("", "on_failure: rety:3", "did you mean retry?"),
        ("", "on_failure: retry:2 later", "write fail, retry:3, retry:3 backoff:30s or goto:7"),
        ("", "if: inputs.foo = 3", "`=` compares nothing; compare with `==`, at character 12"),
    ],
)
def test_a_value_that_is_not_understood_is_told_with_the_form_that_is_right(
    header: str, bullet: str, says: str
) -> None:
    (found,) = problems_of(files(f"1. **A**\n   - {bullet or 'text'}\n", HEADER + header))
    assert says in str(found)


@pytest.mark.parametrize("heading", ["# Steps", "### Steps", "## Steps:"])
def test_steps_below_another_heading_are_told_once_at_that_heading(heading: str) -> None:
    text = f"About.\n\n{heading}\n\n1. **A**\n"
    (found,) = problems_of({"SOP.toml": HEADER, "SOP.md": text})
    assert (found.file, found.line, found.code, found.hint) == ("SOP.md", 3, "no-steps", "write `## Steps`")
    assert problems_of({"SOP.toml": HEADER, "SOP.md": text.replace(heading, "## Steps")}) == ()


# --- problems that need files --------------------------------------------------------------------


def of_library(root: Path) -> list[tuple[str, int, str]]:
    entries = Library(root, surroundings).entries()
    return [(Path(p.file).relative_to(root).as_posix(), p.line, p.code) for entry in entries for p in entry.problems]


def put(folder: Path, header: str | None = HEADER, steps: str | bytes | None = "## Steps\n1. **A**\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if header is not None:
        (folder / "SOP.toml").write_text(header)
    if steps is not None:
        (folder / "SOP.md").write_bytes(steps if isinstance(steps, bytes) else steps.encode())
    return folder


@pytest.mark.requirement("C56")
def test_two_procedures_of_one_name_are_both_refused_and_name_each_other(tmp_path: Path) -> None:
    put(tmp_path / "a")
    put(tmp_path / "b")
    first, second = Library(tmp_path, surroundings).entries()
    assert (first.sop, second.sop) == (None, None)
    assert [str(tmp_path / "b") in str(first.problems[0]), str(tmp_path / "a") in str(second.problems[0])] == [True] * 2
    assert of_library(tmp_path) == [("a/SOP.toml", 2, "duplicate-name"), ("b/SOP.toml", 2, "duplicate-name")]


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    text = "## Steps\n1. **A**\n"
    put(tmp_path / "fits", steps=text + " " * (LARGEST_FILE - len(text)))
    assert of_library(tmp_path) == []
    put(tmp_path / "fits", steps=text + " " * (LARGEST_FILE - len(text) + 1))
    assert ("fits/SOP.md", 0, "file-too-large") in of_library(tmp_path)


@pytest.mark.requirement("library-links")
def test_links_out_of_the_library_are_not_followed(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside")
    root = tmp_path / "sops"
    put(root / "inside", steps=None)
    (root / "inside" / "SOP.md").symlink_to(outside / "SOP.md")
    (root / "whole").symlink_to(outside)
    found = of_library(root)
    assert ("inside/SOP.md", 0, "link-out") in found
    assert ("whole/whole", 0, "link-out") in found
    assert [entry.sop for entry in Library(root, surroundings).entries()] == [None, None]


def test_a_file_that_is_no_text_is_told_with_its_line(tmp_path: Path) -> None:
    put(tmp_path / "a", steps=b"## Steps\n1. **A** \xff\n")
    assert ("a/SOP.md", 2, "unreadable-file") in of_library(tmp_path)


@pytest.mark.requirement("C37")
def test_the_missing_half_is_named(tmp_path: Path) -> None:
    put(tmp_path / "only-steps", header=None)
    put(tmp_path / "no-steps", header=HEADER, steps=None)
    assert of_library(tmp_path) == [("no-steps/SOP.toml", 1, "no-steps"), ("only-steps/SOP.toml", 0, "missing-header")]


def test_a_file_that_is_not_read_is_told(tmp_path: Path) -> None:
    folder = put(tmp_path / "a")
    (folder / "other.sop.md").write_text("# Other\n")
    assert of_library(tmp_path) == [("a/other.sop.md", 0, "extra-file")]


def test_problems_sort_by_place() -> None:
    assert Problem("a", 2, "x", "error", "m") < Problem("a", 10, "a", "error", "m") < Problem("b", 1, "a", "note", "m")


def test_a_policy_that_nobody_can_satisfy_is_told_with_the_way_out() -> None:
    pair = Policy("pair", frozenset({"ida"}), "pair", 2)
    texts = files("1. **Load** the pots\n   - policy: pair\n")
    (without,) = [p for p in problems_of(texts, surroundings(policies=[pair])) if "policy" in p.code]
    assert (without.code, without.severity) == ("unsatisfiable-policy", "error")
    assert "[sop.approval] break_glass" in without.hint
    around = surroundings(policies=[pair], break_glass=["noor", "ida"])
    (within,) = [p for p in problems_of(texts, around) if "policy" in p.code]
    assert (within.code, within.severity) == ("break-glass-policy", "warning")
    assert "only ida, noor can decide: procedo approve GATE --break-glass --comment WHY" in within.hint


def test_a_group_that_tokens_may_name_is_not_unsatisfiable() -> None:
    policy = Policy("pair", frozenset(), "pair", 2, by_token=True)
    texts = files("1. **Load** the pots\n   - policy: pair\n")
    assert [p for p in problems_of(texts, surroundings(policies=[policy])) if "policy" in p.code] == []


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    "line", ["auto_approve = true", 'approval_timeout_action = "auto_approve"', 'break_glass = ["ida"]']
)
def test_a_definition_cannot_ask_to_be_approved(line: str) -> None:
    found = problems_of(files("1. **Load** the pots\n", f"{HEADER}{line}\n"))
    (problem,) = found
    assert (problem.severity, problem.code in {"approval-by-timeout", "unknown-key"}) == ("error", True)


def test_the_tools_of_the_host_are_its_own_and_what_an_agent_has_is_no_problem() -> None:
    steps = (
        "1. **Load**\n   - tools: ladder\n2. **Fire**\n   - agent: smith\n   - tools: pump\n   - deny-tools: ladder\n"
    )
    assert [code for _, _, code in told(steps, around=AGENTS)] == []
