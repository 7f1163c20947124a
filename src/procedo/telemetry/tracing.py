"""Spans by the OpenTelemetry API. Imported only where tracing is switched on."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, Tracer

from procedo.core.session import CallRow, CallState, Outcome, SessionRow, SessionState
from procedo.errors import ProcedoError
from procedo.telemetry.happenings import Commit, Move, Written
from procedo.telemetry.spans import TOOL, TRANSITION, OpenSpan, Shape, Value

__all__ = ["Tracing"]

_KINDS: Final = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "consumer": SpanKind.CONSUMER}
_REMEMBERED: Final = 4096
"""How many effects are remembered with the transition that asked for them."""
_GOOD: Final = (SessionState.RUNNING, SessionState.PARKED, SessionState.COMPLETED)


class _Open:
    def __init__(self, span: Span) -> None:
        self._span = span

    def set(self, attributes: Mapping[str, Value | None]) -> None:
        """See `OpenSpan.set`."""
        self._span.set_attributes(_known(attributes))

    def fail(self, error_type: str) -> None:
        """See `OpenSpan.fail`."""
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(Status(StatusCode.ERROR))


class Tracing:
    """Implements `Spans`."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._asked: OrderedDict[str, SpanContext] = OrderedDict()

    @contextmanager
    def open(
        self, shape: Shape, target: str, attributes: Mapping[str, Value | None], *, job: str | None = None
    ) -> Iterator[OpenSpan]:
        """See `Spans.open`. An exception marks the span with its code or name, and never with its words.

        To be stopped is no failure: work is stopped when its execution is closed, often by its own result.
        """
        asked = None if job is None else self._asked.get(job)
        context = None if asked is None else trace.set_span_in_context(NonRecordingSpan(asked))
        with self._tracer.start_as_current_span(
            _name(shape, target),
            context=context,
            kind=_KINDS[shape.kind],
            attributes=_known(attributes),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            opened = _Open(span)
            try:
                yield opened
            except Exception as error:
                opened.fail(error.code if isinstance(error, ProcedoError) else type(error).__name__)
                raise

    def current(self) -> OpenSpan:
        """See `Spans.current`."""
        return _Open(trace.get_current_span())

    @staticmethod
    def ids() -> Mapping[str, str]:
        """The ids of the span of this task; empty outside of one."""
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return {}
        return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}

    # --- what was committed ----------------------------------------------------------------------

    def committed(self, commit: Commit) -> None:
        """See `Watcher.committed`. A transition is told from its commit, so one that was rolled back has no span."""
        made: list[SpanContext] = []
        began = commit.began_ns
        for move in commit.moves:
            made.append(self._transition(move, began))
            began = move.decided_ns
        for number, job in commit.jobs:
            if number >= 0:
                self._remember(job.id, made[number])
        for written in commit.sessions:
            self._session(written)

    def _transition(self, move: Move, began_ns: int) -> SpanContext:
        after, before = move.after, move.before
        attributes: dict[str, Value | None] = {
            "procedo.command": move.who.command,
            "procedo.run.id": after.id,
            "procedo.sop": after.sop,
            "procedo.status.before": None if before is None else str(before.status),
            "procedo.status.after": str(after.status),
            "procedo.revision": after.revision,
            "procedo.events": len(move.events),
        }
        name, known = _name(TRANSITION, move.who.command), _known(attributes)
        span = self._tracer.start_span(name, start_time=began_ns, attributes=known)
        span.end(move.decided_ns)
        return span.get_span_context()

    def _remember(self, job_id: str, asked: SpanContext) -> None:
        self._asked[job_id] = asked
        if len(self._asked) > _REMEMBERED:
            self._asked.popitem(last=False)

    def _session(self, written: Written) -> None:
        row = written.row
        for call in written.calls:
            if call.schema and call.state is CallState.DONE and call.started_at is None:
                self._not_run(row, call)
        if row.state is SessionState.RUNNING:
            return
        session = self.current()
        session.set(
            {
                "procedo.session.state": str(row.state),
                "gen_ai.usage.input_tokens": row.input_tokens,
                "gen_ai.usage.output_tokens": row.output_tokens,
            }
        )
        if row.state not in _GOOD:
            session.fail(str(row.state))

    def _not_run(self, row: SessionRow, call: CallRow) -> None:
        """A call of a known tool that was answered without running: denied, malformed, or a repeat."""
        where = call.tool.partition(":")[2]
        attributes: dict[str, Value | None] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": where.rpartition("/")[2],
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": row.agent,
            "procedo.tool.server": where.rpartition("/")[0] or None,
            "procedo.run.id": row.run_id,
            "procedo.execution.id": row.execution_id,
            "procedo.outcome": str(call.outcome),
        }
        with self.open(TOOL, where.rpartition("/")[2], attributes) as span:
            if call.outcome is not Outcome.SUCCESS:
                span.fail(str(call.outcome))


def _name(shape: Shape, target: str) -> str:
    return re.sub(r"\{\w+\}", lambda _: target, shape.name, count=1)


def _known(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    return {key: value for key, value in attributes.items() if value is not None}
