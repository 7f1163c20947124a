"""What switches telemetry on and off, and what is refused."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from watched import furnish

from procedo.config import load
from procedo.config.telemetry import TelemetrySettings
from procedo.errors import Refused
from procedo.telemetry.observing import observe
from procedo.telemetry.switch import Wanted, check_installed, wanted

OFF = TelemetrySettings()
ON = TelemetrySettings(endpoint="http://collector:4318/")
T, M = "http://collector:4318/v1/traces", "http://collector:4318/v1/metrics"
BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("settings", "environ", "found"),
    [
        (OFF, {}, None),
        (OFF, {"OTEL_SERVICE_NAME": "x"}, None),
        (ON, {}, Wanted(T, M, "procedo", 60.0, 10.0)),
        (ON, {"OTEL_SDK_DISABLED": "true"}, None),
        (ON, {"OTEL_SDK_DISABLED": "false"}, Wanted(T, M, "procedo", 60.0, 10.0)),
        (OFF, {BASE: "http://collector:4318"}, Wanted(T, M, "procedo", 60.0, 10.0)),
        (ON, {BASE: "http://o"}, Wanted("http://o/v1/traces", "http://o/v1/metrics", "procedo", 60.0, 10.0)),
        (ON, {"OTEL_SERVICE_NAME": "ops"}, Wanted(T, M, "ops", 60.0, 10.0)),
        (ON, {"OTEL_TRACES_EXPORTER": "none"}, Wanted(None, M, "procedo", 60.0, 10.0)),
        (ON, {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, None),
        (OFF, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/x"}, Wanted("http://t/x", None, "procedo", 60.0, 10.0)),
        (TelemetrySettings("http://collector:4318", metrics=False), {}, Wanted(T, None, "procedo", 60.0, 10.0)),
        (ON, {"OTEL_METRIC_EXPORT_INTERVAL": "5"}, Wanted(T, M, "procedo", None, 10.0)),
        (ON, {"OTEL_EXPORTER_OTLP_TIMEOUT": "5"}, Wanted(T, M, "procedo", 60.0, None)),
    ],
)  # fmt: skip
def test_a_variable_wins_over_the_file_and_neither_sends_nothing(
    settings: TelemetrySettings, environ: Mapping[str, str], found: Wanted | None
) -> None:
    assert wanted(settings, environ) == found


@pytest.mark.parametrize(
    ("environ", "code"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "telemetry_protocol"),
        ({"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json"}, "telemetry_protocol"),
        ({"OTEL_TRACES_EXPORTER": "jaeger"}, "telemetry_exporter"),
    ],
)
def test_what_is_not_spoken_is_refused_and_not_left_out(environ: Mapping[str, str], code: str) -> None:
    with pytest.raises(Refused) as refused:
        wanted(ON, environ)
    assert refused.value.code == code
    assert wanted(OFF, environ) is None


def test_a_missing_package_is_refused_with_what_would_be_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(Refused, match=r"opentelemetry\.sdk that sends it is not installed") as refused:
        check_installed()
    assert refused.value.code == "telemetry_missing"
    assert "procedo[otel]" in refused.value.hint


@pytest.mark.requirement("telemetry")
def test_a_server_that_cannot_send_what_is_configured_does_not_start(tmp_path: Path) -> None:
    place = furnish(tmp_path, '[telemetry]\nendpoint = "http://127.0.0.1:4318"\n')
    missing = "import sys; sys.modules['opentelemetry.sdk'] = None"
    program = f"{missing}; from procedo.surfaces.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "serve"],
        input="", capture_output=True, text=True, cwd=place.root, env=place.environment(), check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "pip install 'procedo[otel]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_does_its_work_without_telemetry_where_the_package_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(furnish(tmp_path, '[telemetry]\nendpoint = "http://127.0.0.1:4318"\n').root)
    assert observe(load(furnish(tmp_path).root), {}, server=False) is None
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    assert observe(settings, {}, server=False) is None
    with pytest.raises(Refused):
        observe(settings, {}, server=True)
