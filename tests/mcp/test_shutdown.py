import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp_host import workspace
from stdio_process import BOUND_S, HELLO, READY, SERVER, answer, call, forked, pipes, say, served, started

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")


def close_input(process: subprocess.Popen[str]) -> None:
    pipes(process)[0].close()


def by_signal(number: int) -> Callable[[subprocess.Popen[str]], None]:
    return lambda process: process.send_signal(number)


ENDINGS = [
    pytest.param(close_input, 0, id="end of input"),
    pytest.param(by_signal(signal.SIGTERM), 143, id="SIGTERM"),
    pytest.param(by_signal(signal.SIGINT), 130, id="SIGINT"),
    pytest.param(by_signal(signal.SIGHUP), 129, id="SIGHUP"),
]


@pytest.mark.parametrize(("ending", "code"), ENDINGS)
def test_the_server_ends_cleanly_and_nothing_is_lost(
    tmp_path: Path, ending: Callable[[subprocess.Popen[str]], None], code: int
) -> None:
    workspace(tmp_path)
    with served(tmp_path) as process:
        run_id = started(process)
        ending(process)
        assert process.wait(BOUND_S) == code
        _, stdout = pipes(process)
        assert stdout.read() == ""
        assert process.stderr is not None
        assert process.stderr.read() == ""
    with forked(tmp_path) as process:
        say(process, HELLO, READY, call(2, "sop_resume", run_id=run_id))
        view = answer(process, 2)["structuredContent"]
        assert (view["status"], view["actions"][0]["execution_id"]) == ("running", "1.1")
        assert view["actions"][0]["context"] == {"inputs": {"a": 1}}


@pytest.mark.parametrize(("ending", "code"), ENDINGS)
def test_the_server_ends_while_a_call_waits(
    tmp_path: Path, ending: Callable[[subprocess.Popen[str]], None], code: int
) -> None:
    slow = {
        "SOP.toml": '[sop]\nname = "slow"\ndescription = "d"\nexecution_mode = "auto"\n',
        "SOP.md": "## Steps\n\n1. **Rest** — Wait.\n   - kind: capability\n   - capability: wait\n"
        '   - with: {"seconds": 3600}\n',
    }
    workspace(tmp_path, {"slow": slow})
    with served(tmp_path) as process:
        say(process, HELLO, READY)
        answer(process, 1)
        message = call(2, "sop_start", name="slow", wait_s=45)
        message["params"]["_meta"] = {"progressToken": "p"}
        say(process, message)
        _, stdout = pipes(process)
        progress = json.loads(stdout.readline())
        assert progress["method"] == "notifications/progress"
        ending(process)
        assert process.wait(BOUND_S) == code
        for line in stdout.read().splitlines():
            json.loads(line)


def test_the_server_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    """The parent dies while somebody else holds the pipes open, so no end of input comes."""
    workspace(tmp_path)
    path = os.pathsep.join(entry for entry in sys.path if entry)
    parent = (
        "import os, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, {str(SERVER)!r}, {str(tmp_path)!r}])\n"
        "print(child.pid, file=sys.stderr, flush=True)\n"
        "child.wait()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", parent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    child = int(process.stderr.readline())
    say(process, HELLO)
    answer(process, 1)
    process.kill()
    process.wait(BOUND_S)
    # Its standard output stays open as long as the child lives.
    assert process.stdout.read() == ""
    deadline = time.monotonic() + BOUND_S
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            break
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def test_a_store_that_cannot_open_refuses_the_start(tmp_path: Path) -> None:
    workspace(tmp_path)
    (tmp_path / ".procedo").write_text("a file stands where the folder should be", encoding="utf-8")
    with served(tmp_path) as process:
        assert process.wait(BOUND_S) == 1
        assert pipes(process)[1].read() == ""
        assert process.stderr is not None
        assert "StoreError" in process.stderr.read()
