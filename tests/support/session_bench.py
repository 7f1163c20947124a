"""A workspace whose first step belongs to an agent, opened as often as a test likes, worked by one hand-driven worker.

Each opening is a process's view of the same store. The model is a script, or a function of the library's test model;
the tools are the real ones, or functions of the test behind the same port.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from host import HOST
from moved_clock import MovedClock
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from procedo.agents.contract import Contract
from procedo.agents.models.exchange import Exchange
from procedo.agents.parts import ToolId
from procedo.agents.ports import Ceiling, Connections, Delegation, Door, Model, StepBrief
from procedo.agents.registry import Registry
from procedo.app import App, RandomIds, assemble
from procedo.config import load
from procedo.core.model import Json
from procedo.core.session import CallRow, Transcript
from procedo.core.state import Gate, Principal, PrincipalKind, Source, Verdict
from procedo.driver import Driver
from procedo.ports import Claim, Store
from procedo.runs import Surface
from procedo.sessions import Sessions
from procedo.stores.sqlite import SqliteStore
from procedo.transition import Snapshot

__all__ = [
    "ASKABLE",
    "HEADLESS",
    "IDA",
    "Bench",
    "Desk",
    "Hands",
    "Talk",
    "answer",
    "call",
    "calls",
    "config",
    "said",
    "script",
    "step",
]

ASKABLE = Surface(HOST.principal, route="the inbox")
HEADLESS = HOST
IDA = Surface(Principal(Source.CLI, "ida", PrincipalKind.HUMAN), host=False)

Say: TypeAlias = Callable[[list[ModelMessage], AgentInfo], ModelResponse]
Tool: TypeAlias = Callable[..., Awaitable[str]]


def config(
    *,
    tools: Sequence[str] = ("file_read", "file_write", "http_request"),
    auto: Sequence[str] = ("file_read", "file_write", "http_request"),
    ask: Sequence[str] = (),
    agent: str = "",
    risk: str = "",
    runtime: str = "",
    provider: str = 'script = "script.toml"',
    kind: str = "scripted",
    more: str = "",
) -> str:
    """A `procedo.toml` with the agent `reviewer`. Each argument adds to its table."""
    return f"""
[agents.reviewer]
model_provider = "{kind}.own"
risk_profile = "careful"
runtime_profile = "short"
instructions = "You review."
{agent}
[risk_profiles.careful]
allowed_tools = {list(tools)}
auto_approve = {list(auto)}
always_ask = {list(ask)}
allowed_commands = ["ls"]
allowed_hosts = ["example.org"]
sandbox_enabled = false
{risk}
[runtime_profiles.short]
{runtime}
[providers.models.{kind}.own]
{provider}
{more}
"""


COMPATIBLE = 'model = "m"\nendpoint = "http://127.0.0.1:9/v1"\n'
"""An endpoint that is never asked: where a function speaks, the binding says how."""


def script(*turns: str) -> str:
    """A script of these turns, each the lines of one."""
    return "".join(f"[[turns]]\n{turn}\n" for turn in turns)


def call(tool: str, **args: Any) -> ToolCallPart:
    """A call as a model makes it; without an id of its own."""
    return ToolCallPart(tool, args, tool_call_id=f"id-{tool}-{len(args)}-{sorted(args.items())!r}"[:60])


def said(*parts: ToolCallPart | str, **more: Any) -> ModelResponse:
    """A response with these calls and texts."""
    return ModelResponse([TextPart(part) if isinstance(part, str) else part for part in parts], **more)


@dataclass
class Talk:
    """What a model says, turn by turn; the newest request and what was known about it are kept."""

    responses: list[ModelResponse | Exception]
    heard: list[list[ModelMessage]] = field(default_factory=list)
    infos: list[AgentInfo] = field(default_factory=list)
    before: Callable[[], Awaitable[None]] | None = None

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.heard.append(list(messages))
        self.infos.append(info)
        if self.before is not None:
            await self.before()
        following = self.responses[len(self.heard) - 1]
        if isinstance(following, Exception):
            raise following
        return following

    def last_heard(self) -> list[tuple[str, str, str]]:
        """The tool returns of the newest request: name, outcome, content."""
        parts = [part for part in self.heard[-1][-1].parts if isinstance(part, ToolReturnPart)]
        return [(str(part.tool_name), part.outcome, str(part.content)) for part in parts]


@dataclass
class Hands(Connections):
    """Tools as functions of the test, by name; every call is kept with its effect id."""

    tools: Mapping[str, Tool]
    made: list[tuple[str, Json]] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)

    @property
    def changed(self) -> tuple[str, ...]:
        return ()

    async def call(self, identity: ToolId, arguments: Json, effect_id: str) -> str:
        self.made.append((identity.name, arguments))
        self.effects.append(effect_id)
        return await self.tools[identity.name](**arguments)


async def answer(text: str = "done", **_: Json) -> str:
    """A tool that says this, whatever it is called with."""
    return text


@dataclass
class Place:
    """The workbench of a test: contracts are the registry's, model and tools what a test gives, or the real ones."""

    registry: Registry
    talk: Talk | None = None
    hands: Hands | None = None
    contracts: list[Contract] = field(default_factory=list)
    opened_tools: list[Connections] = field(default_factory=list)

    @asynccontextmanager
    async def opened(
        self,
        alias: str,
        *,
        surface: Door,
        ceiling: Ceiling,
        step: StepBrief,
        delegation: Delegation,
        recorded: Json | None,
    ) -> AsyncIterator[tuple[Contract, Connections]]:
        async with self.registry.opened(
            alias, surface=surface, ceiling=ceiling, step=step, delegation=delegation, recorded=recorded
        ) as (contract, tools):
            self.contracts.append(contract)
            self.opened_tools.append(tools)
            yield contract, tools if self.hands is None else self.hands

    def model(self, contract: Contract) -> Model:
        if self.talk is None:
            return self.registry.model(contract)
        return Exchange(contract.provider, FunctionModel(self.talk, model_name="function"), None)


@dataclass
class Desk:
    """One process's view: its application, its worker, and the run that the test is about."""

    app: App
    driver: Driver
    place: Place
    run_id: str = ""

    async def start(self, surface: Surface = ASKABLE, inputs: Json = None, name: str = "review") -> Snapshot:
        snapshot = await self.app.runs.start(name, inputs, surface)
        self.run_id = snapshot.run.id
        return snapshot

    async def claim(self) -> Claim | None:
        now = self.app.clock.now()
        return await self.app.store.write(lambda w: w.claim_job("worker", now, now + timedelta(seconds=10)))

    async def work(self) -> Snapshot:
        """Perform every job that is due, one after the other."""
        while (claim := await self.claim()) is not None:
            await self.driver.perform(claim)
            done = claim
            await self.app.store.write(lambda w, done=done: w.finish_job(done))  # type: ignore[misc]  # bound at once
        return await self.look()

    async def look(self) -> Snapshot:
        return await self.app.runs.look(self.run_id)

    async def transcript(self, execution: str = "1.1", run_id: str = "") -> Transcript:
        found = await self.app.runs.transcript(run_id or self.run_id, execution)
        assert found is not None
        return found

    async def calls(self) -> list[tuple[str, str, str | None]]:
        """The calls so far: key, offered name, outcome."""
        return calls(await self.transcript())

    async def gates(self) -> tuple[Gate, ...]:
        return tuple(gate for gate in (await self.app.runs.history(self.run_id)).gates if gate.open)

    async def decide(self, verdict: Verdict, gate: Gate | None = None, **more: Any) -> Snapshot:
        """Let ida answer at a gate, the only open one when none is named."""
        if gate is None:
            (gate,) = await self.gates()
        return await self.app.runs.decide(gate.id, verdict, IDA, **more)

    async def failure(self) -> str:
        """Why the step failed."""
        history = await self.app.runs.history(self.run_id)
        closing = history.executions[0].closing
        assert closing is not None
        return closing.reason


def calls(transcript: Transcript) -> list[tuple[str, str, str | None]]:
    """The calls of a transcript: key, offered name, outcome."""

    def shown(row: CallRow) -> tuple[str, str, str | None]:
        return row.key, row.offered, None if row.outcome is None else row.outcome.value

    return [shown(row) for row in transcript.calls]


def step(more: str = "", body: str = "Review the change.", agent: str = "reviewer") -> str:
    """One step of an agent with more bullets."""
    bullets = "".join(f"   - {line}\n" for line in more.splitlines() if line)
    return f"1. **Review** — {body}\n   - agent: {agent}\n{bullets}"


class Bench:
    """A workspace folder and its time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = MovedClock()
        self.environ = {"PATH": "/usr/bin:/bin"}
        self.configure(config())
        self.script(script('text = "fine"'))
        self.procedure(step())

    def configure(self, text: str) -> None:
        (self.root / "procedo.toml").write_text(text, encoding="utf-8")

    def script(self, text: str) -> None:
        (self.root / "script.toml").write_text(text, encoding="utf-8")

    def procedure(self, steps: str, name: str = "review", header: str = "") -> None:
        folder = self.root / "sops" / name
        folder.mkdir(parents=True, exist_ok=True)
        head = f'[sop]\nname = "{name}"\ndescription = "d"\nexecution_mode = "auto"\nmax_concurrent = 9\n{header}'
        (folder / "SOP.toml").write_text(head, encoding="utf-8")
        (folder / "SOP.md").write_text(f"## Steps\n\n{steps}\n", encoding="utf-8")

    @asynccontextmanager
    async def opened(
        self,
        talk: Sequence[ModelResponse | Exception] | Talk | None = None,
        hands: Mapping[str, Tool] | Hands | None = None,
        *,
        store: Store | None = None,
        run_id: str = "",
        stopping: Callable[[], bool] = lambda: False,
    ) -> AsyncIterator[Desk]:
        """The workspace as a new process sees it. A store that is given stays open."""
        settings = load(self.root)
        kept: Store = await SqliteStore.open(settings.data_dir / "procedo.db") if store is None else store
        try:
            app = assemble(settings, kept, self.clock, RandomIds())
            spoken = talk if isinstance(talk, Talk) or talk is None else Talk(list(talk))
            held = hands if isinstance(hands, Hands) or hands is None else Hands(hands)
            place = Place(Registry(settings, self.environ), spoken, held)
            sessions = Sessions(place, app.runs, kept, self.clock, stopping)
            yield Desk(app, Driver(app.runs, kept, app.capabilities, sessions.carry_out), place, run_id)
        finally:
            if store is None:
                with anyio.CancelScope(shield=True):
                    await kept.close()
