"""A host agent for tests: reports steps through the application, as the MCP tools do."""

import asyncio
from pathlib import Path
from typing import Any, Final

from procedo.app import open_app
from procedo.core.state import Principal, PrincipalKind, Source
from procedo.runs import Surface
from procedo.transition import Snapshot

__all__ = ["HOST", "report", "waited"]

HOST: Final = Surface(Principal(Source.HOST, "agent", PrincipalKind.AGENT))
LONGEST_S: Final = 120.0


async def _report(root: Path, run_id: str, execution_id: str, output: Any, status: str) -> Snapshot:
    async with open_app(root) as app:
        await app.runs.advance(run_id, execution_id, status, output, HOST)
        return await app.runs.wait(run_id, HOST, LONGEST_S)


def report(root: Path, run_id: str, execution_id: str, output: Any = None, status: str = "completed") -> Snapshot:
    """Report an execution, and wait for the run's next stop."""
    return asyncio.run(_report(root, run_id, execution_id, output, status))


async def _waited(root: Path, run_id: str) -> Snapshot:
    async with open_app(root) as app:
        return await app.runs.wait(run_id, HOST, LONGEST_S)


def waited(root: Path, run_id: str) -> Snapshot:
    """The run at its next stop."""
    return asyncio.run(_waited(root, run_id))
