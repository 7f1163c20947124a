"""What the server writes to standard error, as text for people and as JSON lines."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT
from watched import furnish, hosting, listening

from procedo.core.events import EVENTS
from procedo.errors import Refused, StoreError
from procedo.telemetry.lines import CALL_REFUSED, EVENT_LINES, LINES, RUN_STARTED, SILENT
from procedo.telemetry.logbook import say
from procedo.telemetry.logs import log_to_stderr
from procedo.telemetry.reasons import ELSEWHERE, told

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def test_every_event_has_a_line_or_is_silent_on_purpose() -> None:
    spoken = {kind.__name__ for kind in EVENT_LINES}
    assert {kind.__name__ for kind in EVENTS} == spoken | SILENT
    assert spoken & SILENT == set()
    assert len({line.event for line in LINES}) == len(LINES)


@pytest.mark.requirement("log-lines")
def test_json_lines_tell_a_run_from_its_start_to_its_end(tmp_path: Path) -> None:
    place = furnish(tmp_path, '[logging]\nformat = "json"\n')
    with listening(place) as server:
        view = server.call("sop_start", name="shipping", inputs={"name": "Ada"}, wait_s=45)
        code = view["actions"][0]["context"]["code"]
        place.person("approve", code)
        run_id = view["run_id"]
        action = server.call("sop_resume", run_id=run_id, wait_s=45)["actions"][0]
        report = {"execution_id": action["execution_id"], "status": "completed", "output": "shipped"}
        server.call("sop_advance", run_id=run_id, **report)
        server.end()
    told_lines: list[dict[str, Any]] = [json.loads(line) for line in server.lines if line.startswith("{")]
    # The other lines are for the person who started it.
    assert [line.split(":")[0] for line in server.lines if not line.startswith("{")] == ["procedo", "procedo"]
    by_event = {line["event"]: line for line in told_lines}
    assert [line["event"] for line in told_lines] == [
        "server_started", "run_started", "session_started", "session_ended", "gate_opened", "run_completed",
        "server_ended",
    ]  # fmt: skip
    assert all(re.fullmatch(TIME, line["time"]) and line["level"] == "info" for line in told_lines)
    assert by_event["server_started"]["address"] == f"{server.origin}/mcp"
    assert by_event["server_started"]["workspace"] == str(tmp_path)
    assert {line["run"] for line in told_lines if "run" in line} == {run_id}
    gate = {name: by_event["gate_opened"][name] for name in ("gate", "step", "kind", "policy", "code", "sop")}
    assert gate == {
        "gate": f"{run_id}.g1", "step": 3, "kind": "approval", "policy": "human", "code": code, "sop": "shipping",
    }  # fmt: skip
    session = by_event["session_ended"]
    assert (session["execution"], session["agent"], session["state"], session["turns"], session["input_tokens"]) == (
        "2.1", "reviewer", "completed", 2, 220,
    )  # fmt: skip


@pytest.mark.requirement("log-lines")
def test_text_lines_are_for_people_and_refusals_and_cancellations_are_told(tmp_path: Path) -> None:
    place = furnish(tmp_path, '[logging]\nlevel = "info"\n')
    with hosting(place) as host:
        run_id = host.to_the_gate(name="Ada")["run_id"]
        host.call("sop_advance", run_id=run_id, execution_id="9.1", status="completed", output="x")
        host.call("sop_cancel", run_id=run_id, reason="it is not needed")
        host.end()
    assert all(re.match(f"{TIME} (INFO|WARNING) +[a-z ]+  [a-z_]+=", line) for line in host.lines), host.lines
    refused = next(line for line in host.lines if "call refused" in line)
    assert refused.endswith(f"INFO    call refused  tool=sop_advance code=not_open run={run_id}")
    assert sum("INFO    run cancelled  run=" in line for line in host.lines) == 1
    assert "it is not needed" not in "\n".join(host.lines)


def test_a_host_hears_warnings_alone_unless_the_settings_say_more(tmp_path: Path) -> None:
    with hosting(furnish(tmp_path)) as host:
        host.to_the_gate(name="Ada")
        host.end()
    assert host.lines == []


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("", ""),
        ("step 2 visited 256 times (limit 256)", "step 2 visited 256 times (limit 256)"),
        ("step 2 failed: the PIN is 4711", f"step 2 failed; {ELSEWHERE}"),
        (
            "step 2 failed 3 times (retry limit 2): the PIN is 4711",
            f"step 2 failed 3 times (retry limit 2); {ELSEWHERE}",
        ),
        (
            "step 1 failed: shell.exec: git ended with exit code 3: fatal: the PIN is 4711.",
            "step 1 failed: shell.exec: git ended with exit code 3",
        ),
        (
            "step 1 failed: the output breaks its schema: pin: expected 1, got 4711",
            "step 1 failed: the output breaks its schema",
        ),
        (
            "step 2 failed: agent 'reviewer' is exhausted: iterations 3 are used up",
            "step 2 failed: agent 'reviewer' is exhausted: iterations 3 are used up",
        ),
        ("step 2 failed: agent 'reviewer' is failed: the PIN is 4711", "step 2 failed: agent 'reviewer' is failed"),
        ("the PIN is 4711", ELSEWHERE),
    ],
)  # fmt: skip
def test_of_a_reason_only_the_words_of_the_server_are_told(reason: str, shown: str) -> None:
    assert told(reason) == shown


# --- the handler ----------------------------------------------------------------------------------


@pytest.fixture
def restored() -> Any:
    """The log as it was before."""
    root, own = logging.getLogger(), logging.getLogger("procedo")
    before = (list(root.handlers), root.level, own.level)
    yield
    root.handlers[:], level, own_level = before
    root.setLevel(level)
    own.setLevel(own_level)


@pytest.mark.usefixtures("restored")
def test_an_error_is_told_by_its_kind_and_its_places_and_its_words_at_debug_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fault() -> None:
        raise KeyError("PIN 4711")

    for level in ("warning", "debug"):
        log_to_stderr("text", level)
        try:
            fault()
        except KeyError:
            logging.getLogger("procedo.carrier").exception("job %s met a fault", "run-abcdefgh:1.1")
        logging.getLogger("procedo.carrier").warning("tried again: %s", Refused("deferred", "The PIN is 4711."))
        logging.getLogger("procedo.carrier").warning("not written: %s", StoreError("full", "The disk is full."))
    quiet, loud = capsys.readouterr().err.split("The disk is full.\n")[:2]
    assert "KeyError\n    test_log_lines.py:" in quiet
    assert "tried again: [deferred]" in quiet
    assert "4711" not in quiet
    assert "KeyError: 'PIN 4711'" in loud
    assert "tried again: The PIN is 4711." in loud


@pytest.mark.usefixtures("restored")
def test_json_lines_hold_the_run_also_where_it_stands_in_the_words_alone(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("json", "info", lambda: {"trace_id": "t", "span_id": "s"})
    logging.getLogger("procedo.carrier").warning("job %s is stopped", "run-abcdefgh:1.1")
    say(CALL_REFUSED, {"tool": "sop_start", "code": "bad_argument", "secret": "PIN 4711"})
    logging.getLogger("httpx").info("GET http://x/?token=abc")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["run"], first["message"], first["trace_id"]) == (
        "run-abcdefgh",
        "job run-abcdefgh:1.1 is stopped",
        "t",
    )
    assert {name: second[name] for name in second if name != "time"} == {
        "level": "info", "logger": "procedo.events", "event": "call_refused", "message": "call refused",
        "tool": "sop_start", "code": "bad_argument", "trace_id": "t", "span_id": "s",
    }  # fmt: skip


@pytest.mark.usefixtures("restored")
def test_credentials_are_masked_whoever_says_them(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr()
    logging.getLogger("anybody").warning("calling with %s", "Bearer abcdefgh12345678")
    assert "abcdefgh12345678" not in (shown := capsys.readouterr().err)
    assert "calling with Bearer [masked]" in shown


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_terminal_would_obey_is_shown_and_not_obeyed(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = "agent:host:d\x1b[2Jö\u202esk\x9b1m\u2028\x7fé"
    log_to_stderr(form, "info")
    say(RUN_STARTED, {"run": "run-abcdefgh", "by": name})
    logging.getLogger("procedo.carrier").warning("not taken: %s", name)
    shown = capsys.readouterr().err
    escaped = "d\\u001b[2Jö\\u202esk\\u009b1m"
    assert shown.count(escaped) == 2
    assert [c for c in shown if not c.isprintable()] == ["\n", "\n"]
    if form == "json":
        assert json.loads(shown.splitlines()[0])["by"] == name


def test_the_lines_in_the_document_are_lines_that_are_written() -> None:
    text = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")
    shown = re.findall(rf"^{TIME} ([A-Z]+) +(.*?)  (.*)$", text, re.MULTILINE)
    known = {line.text: line for line in LINES}
    assert len(shown) == 4
    for level, words, fields in shown:
        line = known[words]
        assert logging.getLevelName(line.level) == level
        assert set(re.findall(r"([a-z_]+)=", re.sub(r'"[^"]*"', "", fields))) <= set(line.fields)
