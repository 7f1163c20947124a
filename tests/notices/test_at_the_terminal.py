"""What an operator sees of notices: the command in one works, failures are shown by every command that shows gates."""

import json
import shlex
import subprocess
import sys

import pytest
from commands import Workspace
from webhost import WebHost

from procedo.surfaces.cli.output import visible

CONFIG = """
[sop.approval]
request_route = "ops"

[notices.ops]
type = "webhook"
url = "{url}"

[notices.idle]
type = "command"
argv = ["sh"]

[notices.lost]
type = "webhook"
url = {{ env = "NOT_THERE" }}
"""
KILN = "1. **Load kiln** — Load it.\n   - requires_confirmation: true\n"


@pytest.fixture
def workspace(tmp_path_factory: pytest.TempPathFactory, host: WebHost) -> Workspace:
    made = Workspace(tmp_path_factory.mktemp("notices at work"))
    made.simple("kiln-firing", KILN)
    (made.root / "procedo.toml").write_text(CONFIG.format(url=host.url("/hook")), encoding="utf-8")
    return made


@pytest.mark.requirement("C8")
def test_the_command_in_a_notice_works_for_the_person_who_reads_it(workspace: Workspace, host: WebHost) -> None:
    run_id = workspace.json("start", "kiln-firing")["run_id"]
    notice = json.loads(host.seen[0].body)
    assert notice["run"]["id"] == run_id
    program, *words = shlex.split(notice["decide"]["command"])
    assert program == "procedo"
    screen = Workspace(workspace.root.parent).person(*words)
    assert screen.code == 0, screen.text
    assert workspace.json("status", run_id)["actions"][0]["execution_id"] == "1.1"


@pytest.mark.requirement("C88")
def test_a_failed_notice_is_shown_where_gates_are_shown(workspace: Workspace, host: WebHost) -> None:
    host.answers("/hook", 500, b"\x1b[2Jout of ink")
    view = workspace.json("start", "kiln-firing")
    run_id, code = view["run_id"], view["actions"][0]["context"]["code"]
    why = "notice 'ops' failed: "
    assert why in view["actions"][0]["context"]["notices_failed"][0]
    for words in (("inbox",), ("status", run_id)):
        text = workspace.run(*words).out
        assert why in text
        assert text == visible(text)
    assert why in workspace.json("inbox")["gates"][0]["notices_failed"][0]
    screen = workspace.person("approve", code, answers=["n"])
    assert why in screen.text


@pytest.mark.requirement("C88")
def test_doctor_tells_which_notices_cannot_be_delivered(workspace: Workspace) -> None:
    found = workspace.json("doctor")["findings"]
    told = {finding["found"]: finding["state"] for finding in found if finding["about"] == "notices"}
    assert told == {
        "'ops' (webhook)": "ok",
        "'idle' is named by nothing, so nobody is told over it": "warning",
        "'lost' cannot be delivered: there is no value behind env:NOT_THERE": "warning",
    }


@pytest.mark.requirement("C88")
def test_a_server_tells_its_log_at_the_start_which_notices_cannot_be_delivered(workspace: Workspace) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "procedo", "serve"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=workspace.root,
        env=workspace.environment(),
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout == ""
    line = "WARNING procedo.notices: notice 'lost' cannot be delivered as things stand: there is no value behind"
    told = [text.partition(" ")[2] for text in done.stderr.splitlines() if "notice" in text]
    assert told == [f"{line} env:NOT_THERE"]


def test_nobody_is_told_about_a_rehearsal(workspace: Workspace, host: WebHost) -> None:
    (workspace.root / "sops" / "kiln-firing" / "tests.toml").write_text(
        '[[case]]\nname = "c"\nreports = [ { step = 1, output = 1 } ]\ngates = [ { step = 1, answer = "approve" } ]\n'
        'expect = { status = "completed", gates = [1] }\n',
        encoding="utf-8",
    )
    assert workspace.json("test", "kiln-firing")["ok"] is True
    assert host.seen == []
