"""The OpenTelemetry SDK, set up to send spans and metrics by OTLP over HTTP. Imported only where that is wanted.

Sending happens in threads of the SDK with bounded queues: a collector that is slow or gone holds up no run, and
what it does not take is dropped. Whatever leaves passes `guarded`.
"""

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import anyio
import anyio.to_thread
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, Status

from procedo.credential_shapes import masked_text
from procedo.telemetry.instruments import INSTRUMENTS, Instrument, Kind
from procedo.telemetry.meters import Labels, Meters
from procedo.telemetry.spans import ATTRIBUTES
from procedo.telemetry.switch import Wanted
from procedo.telemetry.tracing import Tracing

__all__ = ["Exporting", "guarded"]

CLOSE_S: Final = 2.0
"""How long the end of the server waits for what is still to be sent, in seconds."""
_LONGEST: Final = 256
_SCOPE: Final = "procedo"
_TOOL: Final = re.compile(r"sop_[a-z]{1,16}")
_NO_SUCH_METHOD: Final = "-32601"

_Plain: TypeAlias = str | bool | int | float | tuple[str, ...]


def guarded(span: ReadableSpan) -> ReadableSpan:
    """The span with the attributes that are known, credentials masked, and without events and words of errors."""
    attributes = {key: _plain(value) for key, value in (span.attributes or {}).items() if key in ATTRIBUTES}
    name = masked_text(span.name)[:_LONGEST]
    if span.kind is SpanKind.SERVER and "error.type" in attributes:
        name, attributes = _refused(name, attributes)
    return ReadableSpan(
        name=name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=attributes,
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _refused(name: str, attributes: Mapping[str, _Plain]) -> tuple[str, dict[str, _Plain]]:
    """A refused message without what may be the caller's words alone: a tool, prompt or method that nobody knows."""
    method, tool = str(attributes.get("mcp.method.name")), attributes.get("gen_ai.tool.name")
    unknown = {"gen_ai.prompt.name"}
    if attributes.get("rpc.response.status_code") == _NO_SUCH_METHOD:
        unknown |= {"mcp.method.name", "gen_ai.tool.name"}
        name = "unknown method"
    elif tool is None or _TOOL.fullmatch(str(tool)) is None:
        unknown.add("gen_ai.tool.name")
        name = method
    return name, {key: value for key, value in attributes.items() if key not in unknown}


def _plain(value: object) -> _Plain:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(masked_text(str(item))[:_LONGEST] for item in value)
    return masked_text(str(value))[:_LONGEST]


class _Guard(SpanExporter):
    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send what may leave."""
        return self._inner.export([guarded(span) for span in spans])

    def shutdown(self) -> None:
        """End."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is kept here."""
        return self._inner.force_flush(timeout_millis)


class _Instruments:
    """A `Sink`: the same instruments by the OpenTelemetry API."""

    def __init__(self, meter: Meter, meters: Meters) -> None:
        self._counters: dict[Instrument, Counter] = {}
        self._histograms: dict[Instrument, Histogram] = {}
        for one in INSTRUMENTS:
            if one.kind is Kind.COUNTER:
                self._counters[one] = meter.create_counter(one.name, one.unit, one.meaning)
            elif one.kind is Kind.HISTOGRAM:
                self._histograms[one] = meter.create_histogram(
                    one.name, one.unit, one.meaning, explicit_bucket_boundaries_advisory=one.buckets
                )
            else:
                meter.create_observable_gauge(one.name, [_observer(one, meters)], one.unit, one.meaning)

    def add(self, instrument: Instrument, amount: float, labels: Labels) -> None:
        """See `Sink.add`."""
        self._counters[instrument].add(amount, dict(zip(instrument.labels, labels, strict=True)))

    def record(self, instrument: Instrument, value: float, labels: Labels) -> None:
        """See `Sink.record`."""
        self._histograms[instrument].record(value, dict(zip(instrument.labels, labels, strict=True)))


def _observer(one: Instrument, meters: Meters) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_: CallbackOptions) -> Iterable[Observation]:
        known = meters.samples.get(one, {})
        return [Observation(n, dict(zip(one.labels, labels, strict=True))) for labels, n in known.items()]

    return observe


class Exporting:
    """What sends. `tracing` is None where spans are not wanted."""

    def __init__(self, wanted: Wanted, meters: Meters, version: str) -> None:
        resource = Resource.create(
            {
                "service.name": wanted.service_name,
                "service.version": version,
                "service.instance.id": uuid.uuid4().hex,
            }
        )
        self._closing: list[Callable[[], object]] = []
        self.tracing: Tracing | None = None
        if wanted.traces is not None:
            spans = OTLPSpanExporter(endpoint=wanted.traces, timeout=wanted.timeout_s)
            provider = TracerProvider(resource=resource, shutdown_on_exit=False)
            provider.add_span_processor(BatchSpanProcessor(_Guard(spans)))
            # The SDK of MCP asks the API for its tracer, so the provider is everybody's in this process.
            trace.set_tracer_provider(provider)
            self.tracing = Tracing(provider.get_tracer(_SCOPE, version))
            self._closing.append(provider.shutdown)
        if wanted.metrics is not None:
            numbers = OTLPMetricExporter(endpoint=wanted.metrics, timeout=wanted.timeout_s)
            pause_ms = None if wanted.interval_s is None else wanted.interval_s * 1000
            reader = PeriodicExportingMetricReader(numbers, export_interval_millis=pause_ms)
            counted = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
            metrics.set_meter_provider(counted)
            meters.sink = _Instruments(counted.get_meter(_SCOPE, version), meters)
            self._closing.append(counted.shutdown)

    async def close(self) -> None:
        """Send what is left, for at most `CLOSE_S` seconds; what takes longer is given up with the process."""
        threads = [threading.Thread(target=close, name="procedo-telemetry", daemon=True) for close in self._closing]
        for thread in threads:
            thread.start()
        until = time.monotonic() + CLOSE_S

        def wait() -> None:
            for thread in threads:
                thread.join(max(until - time.monotonic(), 0.0))

        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(wait)
