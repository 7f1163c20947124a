import copy
from dataclasses import replace
from pathlib import Path

import pytest
from definitions import HEADER
from hypothesis import given
from hypothesis import strategies as st
from repository import ROOT

from procedo.errors import BadArgument, Conflict, Refused
from procedo.sopfile.definition import read_source
from procedo.sopfile.problems import Findings
from procedo.sopfile.reference import HEADER as HEADER_FIELDS
from procedo.sopfile.reference import STEP
from procedo.sopfile.source import Mark, SopSource, StepSource
from procedo.sopfile.write import render, save

MODEL = """# what this is
x-file = [1, 2]

[sop]
name = "kiln-firing"
description = "Fire \\"a\\" kiln"
version = "2.1"
priority = "critical"
execution_mode = "deterministic"
deterministic = true
cooldown_secs = 60
max_concurrent = 3 # two kilns and a spare
admission_policy = "coalesce"
max_pending_approvals = 5
agent = "smith"
reveal = "titles"
# one firing for each kiln
key = "inputs.kiln"
max_per_window = 5
window = "90m"
x-owner = { team = "kiln", phone = "1" }

[inputs]
type = "object"
[inputs.properties.kiln]
type = "string"
"x-secret name" = true

[[triggers]]
type = "mqtt"
topic = "kiln/#"
condition = "$.t > 900"
x-why = "sensor"

# where it stands
[[positions]]
step = 1
x = 10
y = 20.5

[x-table]
a = { b = 1 }
# the end
"""

STEPS = """# Kiln firing

Text before.

## Steps

Not a step.

1. **Load** — Put the pots in.

   Second paragraph.
   - id: load
   - agent: smith
   - tools: pump, valve
   - allow-tools: pump
   - deny-tools:
   - requires_confirmation: true
   - mode: step_by_step
   - policy: owners
   - prompt: Load {{title}}?
   - note: bring gloves
   - input: {"type": "object"}
   - output: {"type": "object", "required": ["count"]}
   - verify: output.count > 0
   - when: $.steps.1.count > 2
   - next: 3, load
   - on_failure: retry:3 backoff:90s goto:3
   - on_deny: goto:stop
   - timeout: 15m
   - on_timeout: retry
   - if: inputs.wet == false
   - call: {"tool": "pump", "args": {"n": "{{inputs.n}}"}}
   - call: {"tool": "valve"}
   - x-owner: kiln team
   - x-list: [1, null]

   ```
   - tools: in a fence
   ```
2. **Each** pot
   - for_each: {{steps.load.pots}}
   - max_parallel: 4
   - context: load, 1
   - terminal: true
3. **Stop**
   - id: stop
   - depends_on: 1, 2
   - switch: hot>$.steps.1.t > 900>4; cold>>end
   - else: 5
4. **Cool** down
   - wait: 2h
5. **Until** morning
   - wait: until {{inputs.morning}}
6. **Ask**
   - kind: checkpoint
   - edit: body
7. **Glaze**
   - sop: glaze
   - with: {"kiln": null}
8. **Send**
   - capability: mail.send
   - with: plain text
   - verify: capability:text.render {"text": "x"}

## Notes

Text after.
"""


def read(texts: dict[str, str]) -> SopSource:
    findings = Findings()
    source = read_source(texts, "", findings)
    assert source is not None
    assert not findings.failed, findings.problems()
    return source


def both() -> SopSource:
    return read({"SOP.toml": MODEL, "SOP.md": STEPS})


@pytest.mark.requirement("C38")
def test_every_field_survives_writing_and_reading() -> None:
    source = both()
    written = {name for step in source.steps for name in step.fields}
    assert written == set(STEP) - {"number", "title", "body", "pos"}
    assert set(source.header) == set(HEADER_FIELDS)
    again = read(render(source))
    assert again == source
    assert render(again) == render(source)


@pytest.mark.requirement("C38")
def test_comments_stay_above_their_keys() -> None:
    text = render(both())["SOP.toml"]
    lines = text.splitlines()
    assert lines[0] == "# what this is"
    assert lines[lines.index("# two kilns and a spare") + 1] == "max_concurrent = 3"
    assert lines[lines.index("# one firing for each kiln") + 1] == 'key = "inputs.kiln"'
    assert lines[lines.index("# where it stands") + 1] == "[[positions]]"
    assert lines[-1] == "# the end"


@pytest.mark.requirement("C38")
def test_steps_of_the_header_survive_as_well() -> None:
    source = both()
    steps = tuple(replace(step, number=step.number * 10, fields=without_null(step)) for step in source.steps)
    moved = replace(
        source,
        steps=tuple(replace(step, extensions={"x-a": {"b": "c"}}) for step in steps),
        markdown=False,
        before="",
        after="",
    )
    files = render(moved)
    assert set(files) == {"SOP.toml"}
    assert read(files) == moved


def without_null(step: StepSource) -> dict[str, Mark]:
    fields = dict(step.fields)
    if fields.get("with") == Mark({"kiln": None}):
        fields["with"] = Mark({"kiln": "a", "lines": 'one\ntwo \\ """ three\n'})
    return {**fields, "pos": Mark((1.0, 2.5))}


@pytest.mark.requirement("C38")
@pytest.mark.parametrize("folder", sorted(path.parent.name for path in (ROOT / "sops").glob("*/SOP.toml")))
def test_the_examples_survive_writing_and_reading(folder: str) -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "sops" / folder).glob("SOP.*")}
    source = read(texts)
    assert read(render(source)) == source


def test_what_cannot_be_read_back_is_refused() -> None:
    source = read({"SOP.toml": HEADER, "SOP.md": "## Steps\n1. **A**\n"})
    for step in (
        StepSource(1, "A ** B"),
        StepSource(1, "A", "text\n- tools: pump"),
        StepSource(1, ""),
        StepSource(7, "A"),
        StepSource(1, "A", fields={"gate_prompt": Mark("one\n\ntwo")}),
    ):
        with pytest.raises(Refused, match="cannot be written"):
            render(replace(source, steps=(step,)))
    assert render(replace(source, steps=(StepSource(1, "A", "text\n- note: pump"),)))["SOP.md"]


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]) | st.just("\n"), max_size=40)


@given(
    title=texts,
    body=texts,
    prompt=texts,
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner, max_size=2), max_leaves=4
    ),
)
def test_whatever_is_written_reads_back_the_same_or_is_refused(
    title: str, body: str, prompt: str, value: object
) -> None:
    source = read({"SOP.toml": HEADER, "SOP.md": "## Steps\n1. **A**\n"})
    fields = {"gate_prompt": Mark(prompt), "with": Mark(value)}
    for markdown in (True, False):
        wanted = replace(source, markdown=markdown, steps=(StepSource(1, title, body, fields),))
        try:
            files = render(wanted)
        except Refused:
            continue
        assert read_source(files, "", Findings()) == replace(wanted, before="## Steps\n" if markdown else "")


# --- files ---------------------------------------------------------------------------------------


def on_disk(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.requirement("C38")
def test_saving_writes_both_files_into_the_folder_of_the_name(tmp_path: Path) -> None:
    source = both()
    folder = save(tmp_path, None, source)
    assert folder == tmp_path / "kiln-firing"
    assert on_disk(folder) == render(source)
    (folder / "picture.svg").write_text("<svg/>")
    shorter = replace(source, steps=source.steps[:1], header={**source.header, "version": Mark("3")})
    shorter = replace(shorter, steps=(StepSource(1, "Only"),))
    assert save(tmp_path, folder, shorter) == folder
    assert on_disk(folder) == {**render(shorter), "picture.svg": "<svg/>"}


@pytest.mark.requirement("C38")
def test_renaming_moves_the_folder_and_never_onto_another(tmp_path: Path) -> None:
    source = both()
    folder = save(tmp_path, None, source)
    renamed = replace(source, header={**source.header, "name": Mark("glaze-firing")})
    assert save(tmp_path, folder, renamed) == tmp_path / "glaze-firing"
    assert not folder.exists()
    save(tmp_path, None, source)
    before = {path: on_disk(path) for path in tmp_path.iterdir()}
    with pytest.raises(Conflict, match="is there already"):
        save(tmp_path, tmp_path / "glaze-firing", source)
    with pytest.raises(Conflict, match="is there already"):
        save(tmp_path, None, source)
    assert {path: on_disk(path) for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["../oven", "a/b", "", ".", ".hidden", "a\\b", "x" * 101, " a"])
def test_only_plain_names_are_saved(tmp_path: Path, name: str) -> None:
    source = replace(both(), header={**both().header, "name": Mark(name)})
    with pytest.raises(BadArgument):
        save(tmp_path, None, source)
    assert list(tmp_path.iterdir()) == []


def test_when_the_second_file_cannot_be_written_the_first_is_as_before(tmp_path: Path) -> None:
    source = both()
    folder = save(tmp_path, None, source)
    before = (folder / "SOP.toml").read_text()
    (folder / "SOP.md").unlink()
    (folder / "SOP.md").mkdir()
    (folder / "SOP.md" / "in-the-way").write_text("x")
    changed = replace(source, header={**source.header, "version": Mark("9")})
    with pytest.raises(Refused, match="cannot be written"):
        save(tmp_path, folder, changed)
    assert (folder / "SOP.toml").read_text() == before
    assert sorted(path.name for path in folder.iterdir()) == ["SOP.md", "SOP.toml"]


def test_reading_changes_nothing_that_it_is_given() -> None:
    texts_given = {"SOP.toml": MODEL, "SOP.md": STEPS}
    kept = copy.deepcopy(texts_given)
    read(texts_given)
    assert texts_given == kept
