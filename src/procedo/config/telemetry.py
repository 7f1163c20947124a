"""What the server tells about itself: the tables `[telemetry]` and `[logging]`."""

from msgspec import Struct

from procedo.config.document import Document

__all__ = ["LoggingSettings", "TelemetrySettings", "logging_settings", "telemetry_settings"]


class TelemetrySettings(Struct, frozen=True):
    """Where OpenTelemetry data goes: `endpoint` is a collector's OTLP/HTTP address, None for nowhere.

    `interval_s` is the pause between two exports of metrics, `timeout_s` the time for one export.
    """

    endpoint: str | None = None
    service_name: str = "procedo"
    traces: bool = True
    metrics: bool = True
    interval_s: float = 60.0
    timeout_s: float = 10.0


class LoggingSettings(Struct, frozen=True):
    """How log lines look, and from which level on; None: `info` with --http, else `warning`."""

    format: str = "text"
    level: str | None = None


def telemetry_settings(document: Document) -> TelemetrySettings:
    """Read `[telemetry]`."""
    return TelemetrySettings(
        endpoint=document.value("telemetry", "endpoint"),
        service_name=document.value("telemetry", "service_name"),
        traces=document.value("telemetry", "traces"),
        metrics=document.value("telemetry", "metrics"),
        interval_s=document.value("telemetry", "interval"),
        timeout_s=document.value("telemetry", "timeout"),
    )


def logging_settings(document: Document) -> LoggingSettings:
    """Read `[logging]`."""
    return LoggingSettings(document.value("logging", "format"), document.value("logging", "level"))
