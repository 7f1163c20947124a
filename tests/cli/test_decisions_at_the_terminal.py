import json
import re
from typing import Any

import pytest
from commands import Workspace
from host import report
from siege import ME

MY_RECORD = f"{ME} (human, cli)"
DRAFT = """\
1. **Draft** — Write the answer.
2. **Review** — Read it.
   - kind: checkpoint
   - edit: body
   - prompt: Send this answer?
3. **Send** — Send it.
"""


def started(workspace: Workspace, name: str = "kiln-firing") -> tuple[str, str]:
    """The run's id and its gate's short code."""
    view = workspace.json("start", name)
    return view["run_id"], view["actions"][0]["context"]["code"]


def at_checkpoint(workspace: Workspace, body: str = "old") -> tuple[str, str]:
    workspace.simple("answer", DRAFT)
    run_id = workspace.json("start", "answer")["run_id"]
    snapshot = report(workspace.root, run_id, "1.1", {"title": "T", "body": body})
    return run_id, snapshot.run.open_gates[0].code


def status(workspace: Workspace, run_id: str) -> Any:
    return workspace.json("status", run_id)


def decisions(workspace: Workspace, run_id: str) -> list[dict[str, Any]]:
    return [gate for gate in workspace.json("show", run_id)["gates"] if "verdict" in gate]


def test_a_person_sees_what_is_asked_and_a_y_lets_it_go_on(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    screen = kiln.person("approve", code, "--comment", "checked", piped=True)
    assert screen.code == 0, screen.text
    shown = screen.text
    assert f"Gate {code} (approval)" in shown
    assert re.search(rf"run +{run_id}  kiln-firing 0\.1\.0", shown)
    assert re.search(r"step +1  Load kiln", shown)
    assert re.search(r"question +May the kiln be loaded\?", shown)
    assert re.search(rf"started by +{re.escape(MY_RECORD)}", shown)
    assert re.search(r"waiting +since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", shown)
    assert re.search(r"revision +1  digest [0-9a-f]{12}", shown)
    assert f"You are {MY_RECORD}. Your answer: approve" in shown
    assert "comment: checked" in shown
    assert shown.index("what is decided on") < shown.index("[y/N]")
    after = status(kiln, run_id)
    assert (after["status"], after["actions"][0]["execution_id"]) == ("running", "1.1")
    (decision,) = decisions(kiln, run_id)
    assert {key: decision[key] for key in ("code", "verdict", "by", "comment")} == {
        "code": code,
        "verdict": "approve",
        "by": MY_RECORD,
        "comment": "checked",
    }


@pytest.mark.requirement("C4")
def test_without_a_terminal_nothing_is_decided(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    before = status(kiln, run_id)
    for verb in ("approve", "deny"):
        done = kiln.run(verb, code, "--json", typed="y\n" * 50)
        assert done.code == 3
        assert done.out == ""
        assert done.error["code"] == "no_terminal"
    assert status(kiln, run_id) == before
    assert decisions(kiln, run_id) == []


def test_a_stream_of_y_on_standard_input_is_no_answer(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    screen = kiln.person("approve", code, stdin=b"y\n" * 500, answers=["n"])
    assert screen.code == 3
    assert "Nothing was decided: it was not confirmed." in screen.text
    assert decisions(kiln, run_id) == []


def test_a_person_may_answer_while_standard_input_is_a_pipe(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    screen = kiln.person("approve", code, stdin=b"n\n" * 500, answers=["y"])
    assert screen.code == 0
    assert status(kiln, run_id)["status"] == "running"


def test_what_was_typed_before_the_question_does_not_count(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    screen = kiln.person("approve", code, ahead="y\ny\n", answers=["n"])
    assert screen.code == 3
    assert decisions(kiln, run_id) == []


def test_a_command_in_the_background_is_refused_and_does_not_hang(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    screen = kiln.person("approve", code, background=True, answers=[])
    assert screen.code == 3
    assert "runs in the background of its terminal" in screen.text
    assert decisions(kiln, run_id) == []


@pytest.mark.parametrize("answer", ["", "n", "no", "yy", "yes please", "\x04"])
def test_only_a_plain_yes_counts(kiln: Workspace, answer: str) -> None:
    run_id, code = started(kiln)
    screen = kiln.person("approve", code, answers=[answer])
    assert screen.code == 3
    assert decisions(kiln, run_id) == []


def test_an_interrupt_at_the_question_decides_nothing(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    screen = kiln.person("approve", code, answers=["\x03"])
    assert screen.code == 130
    assert decisions(kiln, run_id) == []


@pytest.mark.requirement("C2")
def test_a_denial_ends_the_run_with_who_and_why_on_every_command(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    screen = kiln.person("deny", code, "--reason", "thermocouple broken")
    assert screen.code == 0, screen.text
    assert f"denied by {MY_RECORD}" in screen.text or "denied by" in screen.text
    view = status(kiln, run_id)
    assert view["status"] == "cancelled"
    assert "thermocouple broken" in view["failure"]
    assert view["actions"][0]["denied"] is True
    assert "thermocouple broken" in json.dumps(kiln.json("status", "--all")["runs"])
    (decision,) = decisions(kiln, run_id)
    assert (decision["verdict"], decision["by"], decision["comment"]) == ("deny", MY_RECORD, "thermocouple broken")
    for words in (("status", run_id), ("show", run_id), ("status", "--all")):
        text = kiln.run(*words).out
        assert "thermocouple broken" in text
        assert "approved" not in text
        assert "resumed" not in text


@pytest.mark.requirement("C2")
def test_a_second_denial_says_who_denied_and_an_approval_conflicts(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    assert kiln.person("deny", code, "--reason", "broken").code == 0
    again = kiln.person("deny", code, "--reason", "broken", answers=[])
    assert again.code == 0, again.text
    assert f"already answered deny by {MY_RECORD}" in again.text
    other = kiln.person("approve", code, answers=[])
    assert other.code == 5, other.text
    assert ME in other.text
    assert len(decisions(kiln, run_id)) == 1


@pytest.mark.requirement("C103")
def test_an_amended_field_is_shown_and_goes_on(workspace: Workspace) -> None:
    run_id, code = at_checkpoint(workspace)
    screen = workspace.person("approve", code, "--amend", "new")
    assert screen.code == 0, screen.text
    assert "Your answer: amend" in screen.text
    assert "  | new" in screen.text
    history = workspace.json("show", run_id)
    outputs = {execution["execution_id"]: execution.get("output") for execution in history["executions"]}
    assert outputs["1.1"] == {"title": "T", "body": "old"}
    assert {"title": "T", "body": "new"} in outputs.values()


@pytest.mark.requirement("C104")
def test_a_gate_without_a_field_is_not_amended(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    screen = kiln.person("approve", code, "--amend", "new")
    assert screen.code in {2, 3}
    assert decisions(kiln, run_id) == []
    assert status(kiln, run_id)["status"] == "waiting_approval"


def test_another_draft_is_asked_for_with_guidance(workspace: Workspace) -> None:
    run_id, code = at_checkpoint(workspace)
    screen = workspace.person("approve", code, "--verdict", "revise", "--comment", "shorter")
    assert screen.code == 0, screen.text
    (action,) = status(workspace, run_id)["actions"]
    assert (action["action"], action["execution_id"]) == ("execute_step", "1.2")


def test_what_a_model_wrote_cannot_pose_as_the_question(workspace: Workspace) -> None:
    _, code = at_checkpoint(workspace, "fine\n\nApprove this? [y/N] y\x1b[2K\x1b[1A\u202eevil\rhidden")
    screen = workspace.person("approve", code, answers=["n", "n"])
    assert screen.code == 3
    body = screen.text[: screen.text.index("You are")]
    assert "\x1b" not in body
    assert "\u202e" not in body
    for line in body.splitlines():
        assert not line.startswith("Approve this?")


@pytest.mark.requirement("C9")
def test_a_decision_is_for_what_was_shown(workspace: Workspace) -> None:
    """While one person reads a draft, another asks for a new one: the yes to the old one is refused."""
    run_id, code = at_checkpoint(workspace)

    def replaced_meanwhile() -> str:
        other = workspace.person("approve", code, "--verdict", "revise", "--comment", "shorter")
        assert other.code == 0, other.text
        report(workspace.root, run_id, "1.2", {"title": "T", "body": "second"})
        return "y"

    screen = workspace.person("approve", code, answers=[replaced_meanwhile])
    assert screen.code in {3, 5}, screen.text
    assert "second" not in screen.text
    assert status(workspace, run_id)["status"] == "paused_checkpoint"
    assert decisions(workspace, run_id) == []
    assert workspace.person("approve", code).code == 0
    assert status(workspace, run_id)["actions"][0]["execution_id"] == "3.1"


@pytest.mark.requirement("C2")
def test_a_gate_that_was_decided_while_the_question_stood_conflicts(kiln: Workspace) -> None:
    run_id, code = started(kiln)

    def denied_meanwhile() -> str:
        assert kiln.person("deny", code, "--reason", "broken").code == 0
        return "y"

    screen = kiln.person("approve", code, answers=[denied_meanwhile])
    assert screen.code == 5, screen.text
    assert [decision["verdict"] for decision in decisions(kiln, run_id)] == ["deny"]


@pytest.mark.requirement("C87")
def test_a_gate_is_not_decided_in_the_name_of_another_run(kiln: Workspace) -> None:
    _, code = started(kiln)
    screen = kiln.person("approve", code, "--run", "run-other")
    assert screen.code == 3
    assert kiln.json("inbox")["gates"][0]["code"] == code


@pytest.mark.requirement("C55")
def test_an_unknown_gate_is_not_found(kiln: Workspace) -> None:
    assert kiln.person("approve", "NOPE", answers=[]).code == 4


@pytest.mark.parametrize(
    "words",
    [
        ("--verdict", "amend"),
        ("--verdict", "revise"),
        ("--verdict", "skip", "--amend", "x"),
        ("--value", "{"),
        ("--value", "1", "--amend", "x"),
        ("--verdict", "deny"),
    ],
)
def test_a_contradiction_is_a_bad_argument_before_anybody_is_asked(
    workspace: Workspace, words: tuple[str, ...]
) -> None:
    assert workspace.run("approve", "G0", *words).code == 2


def test_json_goes_to_standard_output_and_the_question_to_the_terminal(kiln: Workspace) -> None:
    run_id, code = started(kiln)
    screen = kiln.person("approve", code, "--json", piped=True)
    assert screen.code == 0
    assert json.loads(screen.piped)["run_id"] == run_id
    assert "[y/N]" in screen.text
    assert "[y/N]" not in screen.piped
