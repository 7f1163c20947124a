"""A host as the tests play it: a client at our server, in memory or over a real pipe, that may ask its user."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jsonschema import validate
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.session import ElicitationFnT
from mcp.server import MCPServer
from mcp.types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    TextContent,
)

from procedo.app import App, open_app
from procedo.surfaces.mcp.contracts import CONTRACTS
from procedo.surfaces.mcp.server import build_server

ERAS = ("legacy", "auto")

KILN = {
    "SOP.toml": """
[sop]
name = "kiln-firing"
description = "Fire the kiln"
execution_mode = "supervised"
""",
    "SOP.md": """
## Steps

1. **Load kiln** — Put the ware on the shelves.
   - requires_confirmation: true
2. **Heat to 980** — Follow the curve.
""",
}
PLAIN = {
    "SOP.toml": """
[sop]
name = "plain"
description = "Three steps"
execution_mode = "auto"
max_concurrent = 4
""",
    "SOP.md": """
## Steps

1. **First** — Do the first thing.
2. **Second** — Do the second thing.
3. **Third** — Do the third thing.
""",
}
LETTER = {
    "SOP.toml": """
[sop]
name = "letter"
description = "Write and send a letter"
execution_mode = "auto"
""",
    "SOP.md": """
## Steps

1. **Draft** — Write the letter.
2. **Judge** — Look at it.
   - kind: checkpoint
   - edit: body
3. **Send** — Send it.
""",
}
ALL: Mapping[str, Mapping[str, str]] = {"kiln-firing": KILN, "plain": PLAIN, "letter": LETTER}


def workspace(folder: Path, sops: Mapping[str, Mapping[str, str]] = ALL, config: str = "") -> Path:
    """A workspace with these procedures by folder name."""
    (folder / "procedo.toml").write_text(config, encoding="utf-8")
    (folder / "sops").mkdir()
    for name, files in sops.items():
        (folder / "sops" / name).mkdir()
        for file, text in files.items():
            (folder / "sops" / name / file).write_text(text, encoding="utf-8")
    return folder


class FixedClock:
    """A time that stands until somebody moves it."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Nobody waits in a time that stands."""
        raise AssertionError(f"slept {seconds} s in a time that stands")


class CountedIds:
    """Ids that can be foretold."""

    def __init__(self) -> None:
        self.count = 0

    def run_id(self) -> str:
        self.count += 1
        return f"run-{self.count}"

    def marker(self) -> str:
        return f"mark{self.count}"


@dataclass
class User:
    """The person at the host: `answers` are given in turn, and what was asked is kept."""

    answers: list[ElicitResult] = field(default_factory=list)
    asked: list[ElicitRequestFormParams] = field(default_factory=list)

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG002  # the SDK names it
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        return self.answers[len(self.asked) - 1]


def says(decision: str, comment: str = "", **more: str) -> ElicitResult:
    """An answer at a gate."""
    return ElicitResult(action="accept", content={"decision": decision, "comment": comment, **more})


@dataclass
class Host:
    """One connected client."""

    client: Client

    async def result(self, tool: str, /, **arguments: Any) -> CallToolResult:
        """What the tool answers."""
        return await self.client.call_tool(tool, arguments)

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """The structured answer of a call that goes well, as it would travel."""
        result = await self.result(tool, **arguments)
        assert not result.is_error, text_of(result)
        view = json.loads(json.dumps(result.structured_content))
        (contract,) = [contract for contract in CONTRACTS if contract.name == tool]
        validate(view, contract.output)
        return view

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        """The text of a refusal."""
        result = await self.result(tool, **arguments)
        assert result.is_error, text_of(result)
        assert result.structured_content is None
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    """The text of an answer."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@asynccontextmanager
async def connected(
    server: MCPServer[Any], era: str, user: ElicitationFnT | None = None, name: str = "desk"
) -> AsyncIterator[Host]:
    """A host at a server in this process; with a user it can ask."""
    info = Implementation(name=name, version="1")
    async with Client(server, mode=era, client_info=info, elicitation_callback=user) as client:
        yield Host(client)


@dataclass
class Desk:
    """An open application, and hosts that come to it."""

    app: App
    era: str

    def host(self, user: ElicitationFnT | None = None, name: str = "desk") -> AbstractAsyncContextManager[Host]:
        """A host that is connected while the block lasts."""
        return connected(build_server(self.app), self.era, user, name)


@asynccontextmanager
async def desk(
    folder: Path,
    era: str = "auto",
    sops: Mapping[str, Mapping[str, str]] = ALL,
    config: str = "",
    settings: Callable[[], Mapping[str, Any]] = dict,
) -> AsyncIterator[Desk]:
    """An application in a new workspace."""
    async with open_app(workspace(folder, sops, config), **settings()) as app:
        yield Desk(app, era)


def only(view: Any) -> Any:
    """The one action of a run view."""
    (action,) = view["actions"]
    return action
