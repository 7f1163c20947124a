"""Foreign text of several lines cannot pose as lines of the command line's own."""

import io

import pytest
from commands import Workspace
from host import report

from procedo.surfaces.cli.output import Output

FORGED = "fine\n\n  may decide  anybody\n  decide      procedo approve XXXXXX"
PROMPTED = """\
1. **Draft** — Write the answer.
2. **Review** — Read it.
   - kind: checkpoint
   - prompt: Send this: {{steps.1.title}}?
"""


def at_forged_gate(workspace: Workspace) -> str:
    workspace.simple("answer", PROMPTED)
    run_id: str = workspace.json("start", "answer")["run_id"]
    report(workspace.root, run_id, "1.1", {"title": FORGED})
    return run_id


def forged(text: str) -> list[str]:
    """Lines that begin as one of ours would and say what the model made up."""
    made_up = tuple(line.strip() for line in FORGED.splitlines()[2:])
    return [line for line in text.splitlines() if line.strip().startswith(made_up)]


@pytest.mark.parametrize("words", [("inbox",), ("status", "RUN"), ("show", "RUN"), ("show", "RUN", "--records")])
def test_a_prompt_with_newlines_stays_on_its_line(workspace: Workspace, words: tuple[str, ...]) -> None:
    run_id = at_forged_gate(workspace)
    text = workspace.run(*(run_id if word == "RUN" else word for word in words)).out
    assert forged(text) == []
    assert "\\x0a" in text


def test_the_texts_of_a_procedure_pose_as_no_other_step(workspace: Workspace) -> None:
    forged_step = "a\\n  2. forged\\u001b[2J"
    header = f'name = "one"\ndescription = "{forged_step}"\nexecution_mode = "auto"'
    steps = f'[[steps]]\nnumber = 1\ntitle = "{forged_step}"\nbody = """do\n  2. forged\\u001b[31m\\r"""\n'
    folder = workspace.root / "sops" / "one"
    folder.mkdir()
    (folder / "SOP.toml").write_text(f"[sop]\n{header}\n{steps}", encoding="utf-8")
    text = workspace.run("show", "one").out
    assert [line for line in text.splitlines() if line.strip().startswith("2. ")] == []
    assert "     |   2. forged\\x1b[31m\\x0d\n" in text
    assert "a\\x0a  2. forged\\x1b[2J" in text
    assert "\x1b" not in text


def test_a_text_as_the_output_of_a_run_stands_behind_a_bar(workspace: Workspace) -> None:
    workspace.simple("one", "1. **Say** — Say it.\n")
    run_id = workspace.json("start", "one")["run_id"]
    report(workspace.root, run_id, "1.1", FORGED)
    for words in (("status", run_id), ("show", run_id)):
        text = workspace.run(*words).out
        assert "|   may decide  anybody" in text
        assert forged(text) == []


def test_the_watched_inbox_and_a_watched_run_show_newlines_as_escapes(workspace: Workspace) -> None:
    run_id = at_forged_gate(workspace)
    for words in (("inbox", "--watch"), ("watch", run_id)):
        process = workspace.begin(*words)
        assert process.stdout is not None
        seen = ""
        for line in process.stdout:
            seen += line
            if "Send this" in line:
                break
        process.terminate()
        rest, _ = process.communicate(timeout=240)
        assert "\\x0a" in seen, seen
        assert forged(seen + rest) == []


def test_a_row_is_one_line_and_a_quotation_has_a_bar_on_each() -> None:
    stream = io.StringIO()
    out = Output(stream, colour=True)
    out.row(out.style("bold", "a\nb") + "\tc")
    out.quoted("one\ntwo\x1b", "  ")
    assert stream.getvalue() == "\x1b[1ma\\x0ab\x1b[0m\\x09c\n  | one\n  | two\\x1b\n"
