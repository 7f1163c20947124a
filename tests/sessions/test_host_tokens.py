import json
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT


@pytest.mark.requirement("host-tokens")
def test_delegated_steps_cost_the_host_a_fraction_of_doing_them(tmp_path: Path) -> None:
    bench = ROOT / "tests" / "bench" / "host_tokens.py"
    environ = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(bench), "--json"], capture_output=True, text=True, env=environ, check=False
    )
    assert done.returncode == 0, done.stderr
    five, ten = json.loads(done.stdout)
    for one in (five, ten):
        assert one["host_tokens"] > 10_000
        assert 0 < one["percent"] <= one["goal_percent"] == 15
