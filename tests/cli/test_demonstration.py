import json
import re
from pathlib import Path

import pytest
from commands import Done, Workspace


@pytest.mark.requirement("demo", "C4", "C28", "C32")
def test_the_demonstration_runs_to_its_end(performed: tuple[Done, Path]) -> None:
    done, _ = performed
    assert done.code == 0, done.out + done.err
    value = done.value
    assert value["ok"] is True
    assert value["skipped"] == []
    assert len(value["shown"]) == 9
    assert value["output"] == {"url": "https://example.org/news/2.4.0"}


@pytest.mark.requirement("demo")
def test_people_see_what_happens(tmp_path: Path) -> None:
    done = Workspace(tmp_path, {"TMPDIR": str(tmp_path)}).run("demo", "--keep")
    assert done.code == 0, done.out + done.err
    assert done.err == ""
    text = done.out
    for part in (
        "SIGKILL to process",
        "[y/N] y",
        "exit code 3",
        "May reviewer call archive__file_review in step 3?",
        "in the middle of the call",
        "records of 1 runs: intact",
        "Refused.",
        "Nothing was decided: a call of the model decides nothing.",
    ):
        assert part in text, part
    kept = re.search(r"The workspace is kept: (\S+)", text)
    assert kept is not None
    workspace = Workspace(Path(kept[1]))
    (run,) = workspace.json("status", "--all")["runs"]
    assert run["status"] == "completed"
    history = workspace.json("show", run["run_id"])
    assert [(e["execution_id"], e["phase"]) for e in history["executions"]] == [
        ("1.1", "completed"),
        ("2.1", "completed"),
        ("3.1", "completed"),
        ("4.1", "completed"),
        ("5.1", "completed"),
    ]
    assert [(gate["kind"], gate["verdict"], gate["comment"]) for gate in history["gates"]] == [
        ("tool_call", "approve", "the archive is public"),
        ("approval", "approve", "seen with the team"),
    ]
    (transcript,) = workspace.json("show", run["run_id"], "--step", "3")
    assert (transcript["session"]["state"], transcript["session"]["scripted"]) == ("completed", True)
    calls = [entry for entry in transcript["entries"] if entry["entry"] == "call"]
    # The first call was cut off by the kill and repeated, as its tool is declared; the second acted once.
    assert [(c["offered"], c["outcome"], c["verdict"], c["attempts"]) for c in calls] == [
        ("archive__look_up", "success", "auto", 2),
        ("archive__file_review", "success", "ask", 1),
        ("step_output", "success", "", 0),
    ]
    assert (Path(kept[1]) / "reviews.md").read_text() == "2.4.0: clear, and in the usual form\n"


@pytest.mark.requirement("demo")
def test_the_demonstration_leaves_nothing_behind(performed: tuple[Done, Path]) -> None:
    done, place = performed
    assert done.code == 0, done.err
    assert list(place.iterdir()) == []


def test_a_demonstration_that_fails_says_so(tmp_path: Path) -> None:
    """With a server that cannot start there is nothing to show, and the exit code tells it."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys\nif 'serve' in sys.argv or '-m' in sys.orig_argv and 'serve' in sys.orig_argv:\n    sys.exit(9)\n"
    )
    from repository import ROOT

    path = f"{broken}:{ROOT / 'src'}"
    done = Workspace(tmp_path, {"PYTHONPATH": path}).run("demo", "--fast", "--json")
    assert done.code == 1
    assert json.loads(done.err.splitlines()[-1])["code"] == "demo_failed"
