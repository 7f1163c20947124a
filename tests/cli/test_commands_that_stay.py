"""Commands that follow what others do, and commands that end in the middle."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from commands import Workspace
from host import report

STEPS = """\
1. **First** — Do the first thing.
2. **Second** — Do the second thing.
"""
LIMIT_S = 300.0


@contextmanager
def ending(process: "subprocess.Popen[str]") -> Iterator["subprocess.Popen[str]"]:
    """Nothing is left behind, and nothing is waited for without end."""
    guard = threading.Timer(LIMIT_S, process.kill)
    guard.start()
    try:
        yield process
    finally:
        guard.cancel()
        process.kill()
        process.communicate()


def lines_until(process: "subprocess.Popen[str]", part: str) -> str:
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if part in line:
            return seen
    raise AssertionError(f"{part!r} never came:\n{seen}")


def test_a_run_is_watched_while_it_moves_and_to_its_end(workspace: Workspace) -> None:
    workspace.simple("plain", STEPS)
    run_id = workspace.json("start", "plain")["run_id"]
    with ending(workspace.begin("watch", run_id)) as watching:
        lines_until(watching, "1.1 given to host")
        report(workspace.root, run_id, "1.1", {"n": 1})
        lines_until(watching, "2.1 given to host")
        report(workspace.root, run_id, "2.1", "all done")
        seen = lines_until(watching, f"run {run_id}  plain 0.1.0  completed")
        assert "completed: all done" in seen
        assert watching.wait(LIMIT_S) == 0


def test_a_watched_run_that_is_cancelled_gives_its_exit_code(workspace: Workspace) -> None:
    workspace.simple("plain", STEPS)
    run_id = workspace.json("start", "plain")["run_id"]
    with ending(workspace.begin("watch", run_id, "--json")) as watching:
        lines_until(watching, "execute_step")
        workspace.json("cancel", run_id, "--reason", "enough")
        seen = lines_until(watching, "cancelled")
        assert json.loads(seen.splitlines()[-1])["status"] == "cancelled"
        assert watching.wait(LIMIT_S) == 7


def test_an_interrupt_ends_the_looking_and_not_the_run(workspace: Workspace) -> None:
    workspace.simple("plain", STEPS)
    run_id = workspace.json("start", "plain")["run_id"]
    with ending(workspace.begin("watch", run_id)) as watching:
        lines_until(watching, "1.1 given to host")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(LIMIT_S) == 130
        assert watching.communicate()[1] == ""
    assert workspace.json("status", run_id)["status"] == "running"


def test_new_gates_come_into_a_watched_inbox(kiln: Workspace) -> None:
    with ending(kiln.begin("inbox", "--watch", "--json")) as watching:
        run_id = kiln.json("start", "kiln-firing")["run_id"]
        gate = json.loads(lines_until(watching, run_id))
        assert gate["asks"] == "May the kiln be loaded?"
        watching.send_signal(signal.SIGINT)
        assert watching.wait(LIMIT_S) == 130


def test_the_servers_own_steps_go_on_where_no_server_runs(workspace: Workspace) -> None:
    workspace.simple(
        "noop",
        "1. **Wait** — Wait.\n   - wait: 1s\n2. **Nothing** — Nothing.\n   - kind: capability\n   - capability: noop\n",
    )
    view = workspace.json("start", "noop", "--inputs", '{"a": 1}', "--wait", "240")
    assert view["status"] == "completed"


def test_a_parked_run_is_adopted_from_its_state_file(tmp_path: "os.PathLike[str]") -> None:
    from pathlib import Path

    first, second = Workspace(Path(tmp_path) / "first"), Workspace(Path(tmp_path) / "second")
    for place in (first, second):
        (place.root / "sops").mkdir(parents=True)
    first.simple("answer", "1. **Review** — Read it.\n   - kind: checkpoint\n2. **Send** — Send it.\n")
    parked = first.json("start", "answer", "--inputs", '{"text": "hello"}')
    state_file = parked["actions"][0]["state_file"]
    refused = second.run("resume", "--state", state_file, "--json", typed="y\n")
    assert (refused.code, refused.error["code"]) == (3, "no_terminal")
    assert second.person("resume", "--state", state_file, answers=["n"]).code == 3
    assert second.json("status", "--all")["runs"] == []
    screen = second.person("resume", "--state", state_file, "--json", piped=True)
    assert f"This adopts run {parked['run_id']} of answer with its record of " in screen.text
    adopted = json.loads(screen.piped)
    assert (adopted["run_id"], adopted["status"]) == (parked["run_id"], "paused_checkpoint")
    code = adopted["actions"][0]["context"]["code"]
    assert second.person("approve", code).code == 0
    assert second.json("status", parked["run_id"])["actions"][0]["execution_id"] == "2.1"

    text = Path(state_file).read_text(encoding="utf-8")
    changed = Path(tmp_path) / "changed.json"
    changed.write_text(text.replace("hello", "hacked"), encoding="utf-8")
    third = Workspace(Path(tmp_path) / "third")
    (third.root / "sops").mkdir(parents=True)
    assert "hello" in text
    screen = third.person("resume", "--state", str(changed))
    assert screen.code == 3
    assert "was changed" in screen.text
    assert third.json("status", "--all")["runs"] == []


@pytest.mark.parametrize(("words", "code"), [((), 2), (("run-x", "--state", "f"), 2), (("--state", "nowhere"), 2)])
def test_a_resume_names_one_thing(workspace: Workspace, words: tuple[str, ...], code: int) -> None:
    assert workspace.run("resume", *words).code == code


@pytest.mark.parametrize(("verdict", "after"), [("skip", "running"), ("fail", "failed")])
def test_a_person_says_what_becomes_of_an_interrupted_effect(workspace: Workspace, verdict: str, after: str) -> None:
    (workspace.root / "procedo.toml").write_text(
        '[worker]\nlease = "1s"\n[capabilities.shell]\nenabled = true\nallowed_commands = ["sleep"]\n',
        encoding="utf-8",
    )
    workspace.simple(
        "slow",
        '1. **Act** — Act.\n   - kind: capability\n   - capability: shell.exec\n   - with: {"argv": ["sleep", "50"]}\n'
        "2. **Report** — Tell.\n",
    )
    with ending(workspace.begin("start", "slow", "--key", "once", "--wait", "240")) as acting:
        started = threading.Event()
        while not started.is_set():
            assert acting.poll() is None, acting.communicate()
            export = workspace.run("audit", "export").out
            if "EffectStarted" in export:
                started.set()
        os.killpg(acting.pid, signal.SIGKILL)
        acting.wait(LIMIT_S)
    run_id = workspace.json("start", "slow", "--key", "once", "--wait", "0")["run_id"]
    view = workspace.json("resume", run_id, "--wait", "240")
    (action,) = view["actions"]
    assert action["context"]["kind"] == "interrupted"
    assert action["context"]["answers"] == ["repeat", "skip", "fail"]
    code = action["context"]["code"]
    assert workspace.person("approve", code).code in {2, 3}
    screen = workspace.person("approve", code, "--verdict", verdict)
    assert screen.code == 0, screen.text
    assert workspace.json("status", run_id)["status"] == after
