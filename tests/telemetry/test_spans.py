"""What a collector receives from the real server: whole trees of spans, and the numbers beside them."""

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk", reason="spans are sent by the SDK, which the extra otel brings")

from collector import Collector, Seen
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import SpanKind, StatusCode
from stdio_process import answer, call, say
from watched import furnish, hosting, listening

from procedo.telemetry.exporting import guarded
from procedo.telemetry.spans import ATTRIBUTES, SPANS

SOON = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
TREE = {
    ("tools/call sop_start", ""),
    ("transition Start", "tools/call sop_start"),
    ("job perform", "transition Start"),
    ("capability template", "job perform"),
    ("transition Finish", "job perform"),
    ("job perform", "transition Finish"),
    ("invoke_agent reviewer", "job perform"),
    ("transition Begin", "invoke_agent reviewer"),
    ("chat scripted", "invoke_agent reviewer"),
    ("execute_tool file_read", "invoke_agent reviewer"),
    ("transition Finish", "invoke_agent reviewer"),
}
CHATS = Counter([("chat scripted", "invoke_agent reviewer")])
"""The second time that the model is asked."""
INTERNAL, SERVER, CLIENT, CONSUMER = 1, 2, 3, 5


def telemetry(collector: Collector, more: str = "") -> str:
    return f'\n[telemetry]\nendpoint = "{collector.address}"\ninterval = "200ms"\n{more}'


def edges(collector: Collector, trace: str) -> Counter[tuple[str, str]]:
    """Every span of a trace with the name of the one above it."""
    found = [span for span in collector.spans if span.trace == trace]
    return Counter((span.name, collector.parent_of(span)) for span in found)


def whole(collector: Collector) -> bool:
    """Whether every span of a run to its gate has arrived: the end of a server waits for a moment only."""
    wanted = Counter(name for name, _ in (Counter(TREE) + CHATS).elements())
    return wanted <= Counter(span.name for span in collector.spans)


def the(collector: Collector, name: str) -> Seen:
    (span,) = collector.named(name)
    return span


@pytest.mark.requirement("telemetry")
def test_a_run_is_one_tree_from_the_call_to_models_tools_and_capabilities(tmp_path: Path) -> None:
    with Collector() as collector:
        place = furnish(tmp_path, telemetry(collector))
        with hosting(place, **SOON) as host:
            view = host.to_the_gate(name="Ada")
            collector.until(whole)
            assert host.end() == 0
    served = the(collector, "tools/call sop_start")
    assert edges(collector, served.trace) == Counter(TREE) + CHATS
    kinds = {span.name.split()[0]: span.kind for span in collector.spans}
    assert kinds["transition"] == kinds["invoke_agent"] == kinds["execute_tool"] == kinds["capability"] == INTERNAL
    assert (kinds["tools/call"], kinds["chat"], kinds["job"]) == (SERVER, CLIENT, CONSUMER)
    assert {span.attributes.get("procedo.run.id", view["run_id"]) for span in collector.spans} == {view["run_id"]}
    assert [span for span in collector.spans if span.failed] == []


def test_spans_carry_what_is_documented_and_nothing_else(tmp_path: Path) -> None:
    with Collector() as collector:
        place = furnish(tmp_path, telemetry(collector))
        with hosting(place, **SOON) as host:
            run_id = host.to_the_gate(name="Ada")["run_id"]
            collector.until(whole)
            host.end()
    assert the(collector, "transition Start").attributes == {
        "procedo.command": "Start",
        "procedo.run.id": run_id,
        "procedo.sop": "shipping",
        "procedo.status.after": "running",
        "procedo.revision": 1,
        "procedo.events": 3,
    }
    first, second = collector.named("transition Finish")
    assert (first.attributes["procedo.status.before"], second.attributes["procedo.status.after"]) == (
        "running",
        "waiting_approval",
    )
    whose = {"gen_ai.agent.name": "reviewer", "procedo.run.id": run_id, "procedo.execution.id": "2.1"}
    assert the(collector, "invoke_agent reviewer").attributes == {
        **whose,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": f"{run_id}:2.1",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.usage.input_tokens": 220,
        "gen_ai.usage.output_tokens": 30,
        "procedo.sop": "shipping",
        "procedo.session.state": "completed",
    }
    assert collector.named("chat scripted")[0].attributes == {
        **whose,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
    }
    assert the(collector, "execute_tool file_read").attributes == {
        **whose,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "file_read",
        "gen_ai.tool.type": "function",
        "procedo.outcome": "success",
    }
    assert the(collector, "capability template").attributes == {
        "procedo.capability": "template",
        "procedo.run.id": run_id,
        "procedo.execution.id": "1.1",
        "procedo.outcome": "success",
    }
    shapes = {shape.name.partition(" ")[0]: set(shape.attributes) for shape in SPANS}
    for span in collector.spans:
        allowed = shapes.get(span.name.partition(" ")[0], shapes["tools/call"])
        assert set(span.attributes) <= allowed & set(ATTRIBUTES), span.name
    assert {resource["service.name"] for resource in collector.resources} == {"procedo"}


def test_a_trace_that_the_client_began_goes_on_here(tmp_path: Path) -> None:
    trace, above = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with Collector() as collector:
        place = furnish(tmp_path, telemetry(collector))
        with hosting(place, **SOON) as host:
            asked = call(9, "sop_start", name="shipping", inputs={"name": "Ada"}, wait_s=45)
            asked["params"]["_meta"] = {"traceparent": f"00-{trace}-{above}-01"}
            say(host.process, asked)
            answer(host.process, 9)
            collector.until(whole)
            host.end()
    served = the(collector, "tools/call sop_start")
    assert (served.trace, served.parent) == (trace, above)
    assert the(collector, "invoke_agent reviewer").trace == trace


def test_over_http_a_decision_and_a_report_are_traced_and_the_numbers_arrive(tmp_path: Path) -> None:
    with Collector() as collector:
        place = furnish(tmp_path, telemetry(collector))
        with listening(place, **SOON) as server:
            view = server.call("sop_start", name="shipping", inputs={"name": "Ada"}, wait_s=45)
            place.person("approve", view["actions"][0]["context"]["code"])
            view = server.call("sop_resume", run_id=view["run_id"], wait_s=45)
            (action,) = view["actions"]
            report = {"execution_id": action["execution_id"], "status": "completed", "output": "shipped"}
            assert server.call("sop_advance", run_id=view["run_id"], **report)["status"] == "completed"
            done = (("sop", "shipping"), ("status", "completed"))
            collector.until(lambda c: c.has("transition Report", "tools/call sop_advance"))
            collector.until(lambda c: done in c.metrics.get("procedo.runs.ended", {}))
            collector.until(lambda c: c.metrics.get("procedo.runs", {}).get((("status", "completed"),)) == 1)
            assert server.end() == 143
    report_span = the(collector, "transition Report")
    assert collector.parent_of(report_span) == "tools/call sop_advance"
    assert report_span.attributes["procedo.status.after"] == "completed"
    # The decision was committed by the command, in a process of its own.
    assert collector.parent_of(the(collector, "transition Decide")) == ""
    assert len({resource["service.instance.id"] for resource in collector.resources}) == 2
    assert collector.metrics["procedo.agent.tokens"] == {
        (("agent", "reviewer"), ("direction", "input"), ("model", "scripted")): 220,
        (("agent", "reviewer"), ("direction", "output"), ("model", "scripted")): 30,
    }
    assert collector.metrics["gen_ai.client.token.usage"][
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "scripted"),
        ("gen_ai.request.model", "scripted"),
        ("gen_ai.token.type", "input"),
    ] == 2  # fmt: skip


def test_what_goes_wrong_is_marked_with_its_code_and_without_its_words(tmp_path: Path) -> None:
    script = '[[turns]]\ncalls = [{ tool = "file_read", args = { path = "gone.md" } }]\n'
    with Collector() as collector:
        place = furnish(tmp_path, telemetry(collector), script=script)
        with hosting(place, **SOON) as host:
            run_id = host.call("sop_start", name="shipping", inputs={"name": "Ada"}, wait_s=45)["run_id"]
            assert "[not_open]" in host.call("sop_advance", run_id=run_id, execution_id="9.1", status="failed")
            named = ("execute_tool file_read", "invoke_agent reviewer", "tools/call sop_advance")
            collector.until(lambda c: c.has(*named))
            host.end()
    tool, session = the(collector, "execute_tool file_read"), the(collector, "invoke_agent reviewer")
    assert (tool.failed, tool.attributes["procedo.outcome"], tool.attributes["error.type"]) == (
        True,
        "failed",
        "ToolFailed",
    )
    assert (session.failed, session.attributes["error.type"]) == (True, "failed")
    refused = the(collector, "tools/call sop_advance")
    assert (refused.failed, refused.attributes["error.type"]) == (True, "tool_error")
    assert {(span.message, span.events) for span in collector.spans} == {("", 0)}


def test_whatever_a_library_puts_into_a_span_leaves_without_words_and_credentials() -> None:
    provider = TracerProvider()
    with provider.get_tracer("x").start_as_current_span("tools/call sk-abcdefgh12345678") as span:
        span.set_attributes({"mcp.method.name": "tools/call", "http.url": "http://x/?pin=4711"})
        span.set_attribute("gen_ai.tool.name", "Bearer abcdefgh12345678")
        span.record_exception(ValueError("the pin is 4711"))
        span.set_status(StatusCode.ERROR, "the pin is 4711")
    assert isinstance(span, ReadableSpan)
    clean = guarded(span)
    assert clean.name == "tools/call [masked]"
    assert dict(clean.attributes or {}) == {"mcp.method.name": "tools/call", "gen_ai.tool.name": "Bearer [masked]"}
    assert (clean.status.status_code, clean.status.description, tuple(clean.events)) == (StatusCode.ERROR, None, ())
    assert (clean.context, clean.start_time, clean.end_time) == (span.context, span.start_time, span.end_time)


REFUSED = {
    "an unknown tool": (
        {"mcp.method.name": "tools/call", "gen_ai.tool.name": "pin-4711", "error.type": "tool_error"},
        "tools/call",
        {"mcp.method.name": "tools/call", "error.type": "tool_error"},
    ),
    "a known tool": (
        {"mcp.method.name": "tools/call", "gen_ai.tool.name": "sop_start", "error.type": "tool_error"},
        "tools/call sop_start",
        {"mcp.method.name": "tools/call", "gen_ai.tool.name": "sop_start", "error.type": "tool_error"},
    ),
    "an unknown prompt": (
        {"mcp.method.name": "prompts/get", "gen_ai.prompt.name": "pin-4711", "error.type": "-32602"},
        "prompts/get",
        {"mcp.method.name": "prompts/get", "error.type": "-32602"},
    ),
    "an unknown method": (
        {"mcp.method.name": "pin-4711", "error.type": "-32601", "rpc.response.status_code": "-32601"},
        "unknown method",
        {"error.type": "-32601", "rpc.response.status_code": "-32601"},
    ),
}


@pytest.mark.parametrize(("attributes", "name", "expected"), REFUSED.values(), ids=REFUSED)
def test_names_that_the_caller_alone_knows_stay_here(
    attributes: dict[str, str], name: str, expected: dict[str, str]
) -> None:
    target = attributes.get("gen_ai.tool.name") or attributes.get("gen_ai.prompt.name")
    given = " ".join(filter(None, (attributes["mcp.method.name"], target)))
    tracer = TracerProvider().get_tracer("x")
    with tracer.start_as_current_span(given, kind=SpanKind.SERVER, attributes=attributes) as span:
        pass
    assert isinstance(span, ReadableSpan)
    assert (guarded(span).name, dict(guarded(span).attributes or {})) == (name, expected)


def test_a_caller_s_inventions_reach_no_collector(tmp_path: Path) -> None:
    with Collector() as collector, hosting(furnish(tmp_path, telemetry(collector)), **SOON) as host:
        host.call("sop_invented", pin="4711")
        host.call("invented")
        host.call("sop_list")
        collector.until(lambda c: c.has("tools/call", "tools/call sop_list"))
        assert host.end() == 0
    assert {span.name for span in collector.spans if span.name.startswith("tools/call")} >= {
        "tools/call",
        "tools/call sop_list",
    }
    assert [span.name for span in collector.spans if span.name == "tools/call invented"] == []
