import json
import os
import subprocess
import sys
from pathlib import Path

from mcp_host import workspace

FORBIDDEN = {
    "aiosqlite",
    "cel",
    "hypothesis",
    "jinja2",
    "jsonschema",
    "markdown_it",
    "opentelemetry.sdk",
    "pydantic_ai",
    "procedo.agents",
    "procedo.surfaces.cli",
    "procedo.surfaces.web",
    "procedo.telemetry.exporting",
    "procedo.telemetry.tracing",
}
PROBE = """
import asyncio, json, sys
from pathlib import Path
from procedo.app import open_app
from procedo.surfaces.mcp.server import build_server
from procedo.telemetry.logs import log_to_stderr

async def main():
    async with open_app(Path(sys.argv[1]), announce=True) as app:
        build_server(app)
        eval(sys.argv[2])
    print(json.dumps(sorted(sys.modules)))

log_to_stderr()
asyncio.run(main())
"""


def loaded(folder: Path, then: str = "None") -> list[str]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(folder), then],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    names: list[str] = json.loads(done.stdout)
    return names


def test_a_server_that_has_started_has_loaded_only_what_it_needs(tmp_path: Path) -> None:
    names = loaded(workspace(tmp_path))
    assert "mcp.server.mcpserver" in names
    assert [name for name in names for unwanted in FORBIDDEN if f"{name}.".startswith(f"{unwanted}.")] == []


def test_a_library_is_loaded_only_when_a_procedure_needs_it(tmp_path: Path) -> None:
    """The control to the test above: what it looks for is there once it is used."""
    assert "markdown_it" in loaded(workspace(tmp_path), "app.library.entries()")
