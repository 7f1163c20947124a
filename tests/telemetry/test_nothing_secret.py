"""Secrets go in by every way there is, and are looked for in everything that leaves: spans, metrics, log lines."""

import json
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk", reason="what leaves is sent by the SDK, which the extra otel brings")

from collector import Collector
from watched import furnish, listening

# Words that look like nothing in particular, so that no mask for shapes can be what keeps them in.
WORDS = {
    "input": "zinnober-input",
    "file": "zinnober-file",
    "argument": "zinnober-argument",
    "answer": "zinnober-answer",
    "prompt": "zinnober-prompt",
    "instructions": "zinnober-instructions",
    "output": "zinnober-output",
    "failure": "zinnober-failure",
    "comment": "zinnober-comment",
    "reason": "zinnober-reason",
    "printed": "zinnober-printed",
    "unknown tool": "zinnober-tool",
    "header": "zinnober-header",
}
SHAPED = "sk-zinnober0123456789"
NAMES = {"execute_tool file_read", "execute_tool file_write", "capability shell.exec"}
SCRIPT = f"""
[[turns]]
calls = [
    {{ tool = "file_read", args = {{ path = "change.md" }} }},
    {{ tool = "{WORDS["unknown tool"]}", args = {{ a = "{WORDS["argument"]}" }} }},
    {{ tool = "file_write", args = {{ path = "{WORDS["argument"]}.md", content = "{WORDS["argument"]}" }} }},
]

[[turns]]
text = "{WORDS["answer"]} {SHAPED}"
"""
STEPS = f"""
1. **Run** — Run it.
   - kind: capability
   - capability: shell.exec
   - with: {{"argv": ["sh", "-c", "echo {WORDS["printed"]} >&2; exit 3"]}}
   - on_failure: goto:2

2. **Review** — {WORDS["prompt"]} {{{{inputs.name}}}}
   - agent: reviewer

3. **Ship** — Ship it.
   - requires_confirmation: true

4. **Tell** — Tell it.
"""
SETTINGS = """
[capabilities.shell]
enabled = true
allowed_commands = ["sh"]

[logging]
format = "json"
level = "info"
"""


@pytest.mark.requirement("telemetry-secret")
def test_nothing_that_went_in_comes_out_in_a_span_a_metric_or_a_line(tmp_path: Path) -> None:
    with Collector() as collector:
        sending = f'[telemetry]\nendpoint = "{collector.address}"\ninterval = "200ms"\n'
        place = furnish(tmp_path, f"{SETTINGS}{sending}", script=SCRIPT)
        config = (tmp_path / "procedo.toml").read_text()
        speaking = f'runtime_profile = "short"\ninstructions = "{WORDS["instructions"]}"'
        (tmp_path / "procedo.toml").write_text(config.replace('runtime_profile = "short"', speaking, 1))
        (tmp_path / "change.md").write_text(WORDS["file"])
        place.simple("secret", STEPS)
        headers = {"OTEL_EXPORTER_OTLP_HEADERS": f"x-key={WORDS['header']}", "OTEL_BSP_SCHEDULE_DELAY": "100"}
        with listening(place, **headers) as server:
            view = server.call(
                "sop_start", name="secret", inputs={"name": WORDS["input"], "password": SHAPED}, wait_s=45
            )
            run_id, (action,) = view["run_id"], view["actions"]
            # May the agent write? Then: may step 3 begin?
            for _ in range(2):
                place.person("approve", action["context"]["code"], "--comment", WORDS["comment"])
                (action,) = server.call("sop_resume", run_id=run_id, wait_s=45)["actions"]
            report = {"execution_id": action["execution_id"], "status": "completed", "output": WORDS["output"]}
            (action,) = server.call("sop_advance", run_id=run_id, **report)["actions"]
            report = {"execution_id": action["execution_id"], "status": "failed", "output": WORDS["failure"]}
            assert server.call("sop_advance", run_id=run_id, **report)["status"] == "failed"
            second = server.call("sop_start", name="secret", inputs={"name": "x"}, wait_s=0)
            server.call("sop_cancel", run_id=second["run_id"], reason=WORDS["reason"])
            page = server.get("/metrics")[1]
            collector.until(lambda c: c.has(*NAMES, "transition Report", "transition Cancel", "invoke_agent reviewer"))
            server.end()
        record = json.dumps(place.run("audit", "export", run_id).out) + place.run("show", run_id, "--json").out
    lines = "\n".join(line for line in server.lines if line.startswith("{"))
    left = {"spans and metrics": b"\n".join(collector.raw).decode(errors="replace"), "page": page, "lines": lines}
    secrets = {**WORDS, "credential": SHAPED}
    found = [(where, what) for where, text in left.items() for what, word in secrets.items() if word in text]
    assert found == []
    # The control: they were there, and what happened with them was told.
    assert [what for what in ("input", "comment", "failure", "answer") if WORDS[what] not in record] == []
    events = [json.loads(line).get("event") for line in lines.splitlines()]
    assert {"step_failed", "run_failed", "run_cancelled", "gate_opened", "session_ended"} <= set(events)
    failed = next(json.loads(line) for line in lines.splitlines() if '"step_failed"' in line)
    assert failed["reason"] == "shell.exec: sh ended with exit code 3"
    assert {span.name for span in collector.spans} >= NAMES
