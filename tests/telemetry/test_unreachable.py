"""A collector that is gone, or that takes a connection and never answers, holds up nothing."""

import socket
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk", reason="what cannot be sent is the SDK's, which the extra otel brings")

from collector import Collector
from watched import furnish, hosting


def settings(address: str) -> str:
    # Each export may take longer than any test waits, and there is always one under way.
    return f'\n[telemetry]\nendpoint = "{address}"\ninterval = "100ms"\ntimeout = "10m"\n'


@pytest.mark.requirement("telemetry-harmless")
def test_a_run_goes_on_and_the_process_ends_while_a_collector_never_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        place = furnish(tmp_path, settings(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        with hosting(place, OTEL_BSP_SCHEDULE_DELAY="50") as host:
            assert host.to_the_gate(name="Ada")["status"] == "waiting_approval"
            assert host.end() == 0
    assert [line for line in host.lines if "Traceback" in line or "File" in line] == []


@pytest.mark.requirement("telemetry-harmless")
def test_a_collector_that_is_gone_is_told_once_and_without_its_traces(tmp_path: Path) -> None:
    with socket.socket() as mute:
        # The port is held, so that nobody else takes it, and nobody listens there.
        mute.bind(("127.0.0.1", 0))
        place = furnish(tmp_path, settings(f"http://127.0.0.1:{mute.getsockname()[1]}"))
        with hosting(place, OTEL_BSP_SCHEDULE_DELAY="50") as host:
            host.until("telemetry is not delivered")
            assert host.to_the_gate(name="Ada")["status"] == "waiting_approval"
            assert host.end() == 0
    (told,) = [line for line in host.lines if "session" not in line and "gate" not in line]
    assert told.endswith('WARNING telemetry is not delivered  cause="the collector cannot be reached"')


def test_a_collector_that_refuses_is_told_with_its_status(tmp_path: Path) -> None:
    with Collector(status=401) as collector:
        place = furnish(tmp_path, settings(collector.address))
        with hosting(place, OTEL_BSP_SCHEDULE_DELAY="50") as host:
            host.until('cause="the collector answers 401"')
            assert host.end() == 0
