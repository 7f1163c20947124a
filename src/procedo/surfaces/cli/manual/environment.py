"""The environment variables that are read; a test compares them with the code."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["VARIABLES"]

VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PROCEDO_WORKSPACE": "The workspace, where `--workspace` is not given.",
        "PROCEDO_TOKEN": "A token: every verb acts as its holder, with its roles.",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "Where telemetry goes; also `OTEL_EXPORTER_OTLP_TRACES_…` and `…_METRICS_…`.",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "How it is sent; `http/protobuf` alone is offered.",
        "OTEL_METRIC_EXPORT_INTERVAL": "Milliseconds between two exports of metrics.",
        "OTEL_SDK_DISABLED": "`true`: no telemetry.",
        "OTEL_SERVICE_NAME": "The name of the service in telemetry.",
        "NO_COLOR": "With any value nothing is coloured.",
        "TERM": "`dumb`: nothing is coloured.",
        "PATH": "Where programs without a path are looked for; MCP servers of agents are given it.",
        "HOME": "Where the user's data folder lies, which is the workspace of last resort.",
        "XDG_DATA_HOME": "Linux: the user's data folder, when it is not `~/.local/share`.",
        "LOCALAPPDATA": "Windows: the user's data folder.",
        "PYTHONPATH": "`procedo demo` hands it on to the processes that it starts.",
    }
)
