"""A collector of OpenTelemetry data, as far as tests need one: OTLP over HTTP, protobuf, on this machine."""

import gzip
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["Collector", "Seen"]

BOUND_S = 240.0


@dataclass(frozen=True)
class Seen:
    """A span that arrived."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    failed: bool
    events: int
    message: str
    seconds: float


@dataclass
class Collector:
    """Receives until the block ends. `raw` is everything that arrived, byte for byte after decompression."""

    spans: list[Seen] = field(default_factory=list)
    metrics: dict[str, dict[tuple[tuple[str, Any], ...], Any]] = field(default_factory=dict)
    resources: list[dict[str, Any]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    status: int = 200

    def __post_init__(self) -> None:
        self._came = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Collector":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(BOUND_S)

    def until(self, wanted: Callable[["Collector"], bool]) -> None:
        """Wait until what arrived is enough."""
        with self._came:
            assert self._came.wait_for(lambda: wanted(self), BOUND_S), sorted(span.name for span in self.spans)

    def named(self, name: str) -> list[Seen]:
        return [span for span in self.spans if span.name == name]

    def has(self, *names: str) -> bool:
        known = {span.name for span in self.spans}
        return set(names) <= known

    def parent_of(self, span: Seen) -> str:
        """The name of the span above; empty for a root."""
        return next((one.name for one in self.spans if (one.trace, one.id) == (span.trace, span.parent)), "")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector._take(self.path, body)
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Tests have nothing to tell on standard error."""

        return Handler

    def _take(self, path: str, body: bytes) -> None:
        with self._came:
            self.raw.append(body)
            if path == "/v1/traces":
                self._traces(body)
            elif path == "/v1/metrics":
                self._metrics(body)
            self._came.notify_all()

    def _traces(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            self.resources.append(_pairs(resource.resource.attributes))
            for scope in resource.scope_spans:
                self.spans += [_seen(span) for span in scope.spans]

    def _metrics(self, body: bytes) -> None:
        request = ExportMetricsServiceRequest.FromString(body)
        for resource in request.resource_metrics:
            self.resources.append(_pairs(resource.resource.attributes))
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points = getattr(metric, metric.WhichOneof("data")).data_points
                    series = self.metrics.setdefault(metric.name, {})
                    series |= {tuple(sorted(_pairs(point.attributes).items())): _number(point) for point in points}


def _seen(span: Any) -> Seen:
    return Seen(
        name=span.name,
        kind=span.kind,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        attributes=_pairs(span.attributes),
        failed=span.status.code == 2,
        events=len(span.events),
        message=span.status.message,
        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
    )


def _pairs(attributes: Iterable[Any]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return tuple(_value(item) for item in found.values) if kind == "array_value" else found


def _number(point: Any) -> Any:
    if hasattr(point, "bucket_counts"):
        return point.count
    return getattr(point, point.WhichOneof("value"))
