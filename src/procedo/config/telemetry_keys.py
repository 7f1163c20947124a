"""The keys of `[telemetry]` and `[logging]`: what the server tells about itself, and to whom."""

from typing import Final

from procedo.config import forms
from procedo.config.key import Key
from procedo.config.serving_keys import address

__all__ = ["TELEMETRY_KEYS"]

_TELEMETRY: Final = "telemetry"
_LOGGING: Final = "logging"

TELEMETRY_KEYS: Final = (
    Key(
        _TELEMETRY,
        "endpoint",
        address("web address", path=True),
        None,
        "The OTLP/HTTP address of an OpenTelemetry collector, such as http://127.0.0.1:4318; without it nothing is "
        "sent. `OTEL_EXPORTER_OTLP_ENDPOINT` wins over it.",
    ),
    Key(_TELEMETRY, "service_name", forms.name(), "procedo", "The `service.name`; `OTEL_SERVICE_NAME` wins over it."),
    Key(_TELEMETRY, "traces", forms.flag(), True, "Whether spans are sent."),
    Key(_TELEMETRY, "metrics", forms.flag(), True, "Whether metrics are sent."),
    Key(_TELEMETRY, "interval", forms.duration(0.1, 3600), 60.0, "The pause between two exports of metrics."),
    Key(_TELEMETRY, "timeout", forms.duration(0.1, 600), 10.0, "Time for one export."),
    Key(_LOGGING, "format", forms.word(("text", "json")), "text", "How log lines on standard error look."),
    Key(
        _LOGGING,
        "level",
        forms.word(("debug", "info", "warning", "error")),
        None,
        "From which level on a server writes log lines: without it from info with --http, else from warning.",
    ),
)
