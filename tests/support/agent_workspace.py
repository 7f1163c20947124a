"""A workspace with agents, for tests: the text of its `procedo.toml`, and a registry over it."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from procedo.agents.connections import OpenTools
from procedo.agents.contract import Contract
from procedo.agents.ports import UNBOUNDED, Ceiling, Delegation, StepBrief
from procedo.agents.refusal import Cause, NotAssembled
from procedo.agents.registry import Registry
from procedo.config import load
from procedo.core.model import Json, Scope

SERVER: Final = str(Path(__file__).with_name("tool_server.py"))
DELEGATION: Final = Delegation("host", "human:cli:ada", "run-1", "2.1")
STEP: Final = StepBrief("Review the change.", Scope(), None)


@dataclass(frozen=True, slots=True)
class At:
    """A surface, as far as approvals need it."""

    can_ask: bool = False
    route: str = "the operator's terminal (procedo inbox)"


HEADLESS: Final = At(route="")


def toml(
    *,
    agent: str = "",
    risk: str = 'allowed_tools = ["file_read"]',
    runtime: str = "",
    provider: str = "scripted.demo",
    more: str = "",
) -> str:
    """A `procedo.toml` with one agent `reviewer`; each argument adds lines to its table."""
    return f"""
[agents.reviewer]
model_provider = "{provider}"
risk_profile = "careful"
runtime_profile = "short"
{agent}
[risk_profiles.careful]
{risk}
[runtime_profiles.short]
{runtime}
[providers.models.scripted.demo]
script = "script.toml"
{more}
"""


def server(name: str, *words: str, more: str = "") -> str:
    """A `[[mcp.servers]]` table of a real server program, which a busy machine may take long to start."""
    arguments = ", ".join(f'"{word}"' for word in (SERVER, *words))
    patience = "" if "connect_timeout_secs" in more else "connect_timeout_secs = 120"
    return f"""
[[mcp.servers]]
name = "{name}"
command = "{sys.executable}"
args = [{arguments}]
{patience}
{more}
"""


def bundle(*servers: str, name: str = "all", exclude: str = "") -> str:
    """A bundle of servers."""
    listed = ", ".join(f'"{one}"' for one in servers)
    return f"\n[mcp_bundles.{name}]\nservers = [{listed}]\nexclude = [{exclude}]\n"


def workspace(
    folder: Path,
    text: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    script: str = '[[turns]]\ntext = "done"\n',
) -> Registry:
    """Write the files and open the registry."""
    (folder / "procedo.toml").write_text(toml() if text is None else text)
    (folder / "script.toml").write_text(script)
    return Registry(load(folder), {"PATH": "/usr/bin:/bin"} if environ is None else environ)


async def assemble(
    registry: Registry,
    alias: str = "reviewer",
    *,
    surface: At | None = None,
    ceiling: Ceiling = UNBOUNDED,
    step: StepBrief = STEP,
    delegation: Delegation = DELEGATION,
    recorded: Json | None = None,
) -> Contract:
    """Assemble with what most tests do not care about filled in."""
    return await registry.assemble(
        alias, surface=surface or At(), ceiling=ceiling, step=step, delegation=delegation, recorded=recorded
    )


@asynccontextmanager
async def open_tools(registry: Registry, alias: str = "reviewer") -> AsyncIterator[OpenTools]:
    """The open tools of an agent that was assembled with what most tests do not care about."""
    async with registry.opened(
        alias, surface=At(), ceiling=UNBOUNDED, step=STEP, delegation=DELEGATION, recorded=None
    ) as (_, tools):
        yield tools


async def refused(registry: Registry, alias: str = "reviewer", **wanted: object) -> dict[Cause, str]:
    """The reasons of a refusal, by kind; an agent that is assembled fails the test."""
    try:
        contract = await assemble(registry, alias, **wanted)  # type: ignore[arg-type]  # handed on as they are
    except NotAssembled as error:
        return {reason.cause: reason.message for reason in error.reasons}
    raise AssertionError(f"it was assembled: {contract}")


def offered(contract: Contract) -> list[str]:
    """The names that the model sees."""
    return [tool.offered for tool in contract.tools]
