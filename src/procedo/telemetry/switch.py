"""Whether telemetry leaves this process, and where it goes: `[telemetry]` and the variables that OpenTelemetry defines.

A variable wins over the file. Neither: nothing is sent.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from msgspec import Struct

from procedo.config.telemetry import TelemetrySettings
from procedo.errors import Refused

__all__ = ["Wanted", "check_installed", "missing", "wanted"]

_BASE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"
_TIMEOUTS: Final = tuple(f"OTEL_EXPORTER_OTLP_{part}TIMEOUT" for part in ("", "TRACES_", "METRICS_"))
_PROTOCOL: Final = "http/protobuf"
_NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


class Wanted(Struct, frozen=True):
    """Where spans and metrics go, as whole addresses; None: that signal is not sent.

    `interval_s` and `timeout_s` None: a variable says it, and the SDK reads it.
    """

    traces: str | None
    metrics: str | None
    service_name: str
    interval_s: float | None
    timeout_s: float | None


def wanted(settings: TelemetrySettings, environ: Mapping[str, str]) -> Wanted | None:
    """What is switched on, or None. Raises `Refused` for a protocol that is not spoken here."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    traces = _address("TRACES", "v1/traces", settings.traces, settings.endpoint, environ)
    metrics = _address("METRICS", "v1/metrics", settings.metrics, settings.endpoint, environ)
    if traces is None and metrics is None:
        return None
    name = environ.get("OTEL_SERVICE_NAME", "").strip() or settings.service_name
    interval_s = None if environ.get(_INTERVAL) else settings.interval_s
    timeout_s = None if any(environ.get(variable) for variable in _TIMEOUTS) else settings.timeout_s
    return Wanted(traces, metrics, name, interval_s, timeout_s)


def _address(signal: str, path: str, on: bool, endpoint: str | None, environ: Mapping[str, str]) -> str | None:
    exporter = environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    if exporter == "none" or not on:
        return None
    own = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "").strip()
    base = environ.get(_BASE, "").strip() or endpoint
    if not own and not base:
        return None
    _check_spoken(signal, exporter, environ)
    return own or f"{str(base).rstrip('/')}/{path}"


def _check_spoken(signal: str, exporter: str, environ: Mapping[str, str]) -> None:
    if exporter not in ("", "otlp"):
        message = f"OTEL_{signal}_EXPORTER is {exporter!r}, and procedo exports by OTLP alone."
        raise Refused("telemetry_exporter", message, "Set it to otlp or to none.")
    general = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip()
    protocol = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "").strip() or general or _PROTOCOL
    if protocol != _PROTOCOL:
        message = f"OTLP is asked for over {protocol!r}, and procedo speaks {_PROTOCOL}."
        hint = f"Set OTEL_EXPORTER_OTLP_PROTOCOL={_PROTOCOL} and the collector's HTTP port, usually 4318."
        raise Refused("telemetry_protocol", message, hint)


def missing() -> str | None:
    """The package that would be needed to send and is not installed."""
    for name in _NEEDED:
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return name
    return None


def check_installed() -> None:
    """Raises `Refused` when the packages that send are not there: what was asked for is not left out silently."""
    name = missing()
    if name is not None:
        message = f"Telemetry is configured, and the package {name} that sends it is not installed."
        hint = "pip install 'procedo[otel]', or switch it off: no endpoint, or OTEL_SDK_DISABLED=true."
        raise Refused("telemetry_missing", message, hint)
