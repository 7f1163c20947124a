"""What a session needs of the registry, of a model and of the store, as Protocols. No implementation lives here.

A session gets its `Contract` and its tools from `Workbench.opened`, and the model of the contract from `model`.
Nothing else reaches a model or a tool.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from procedo.agents.contract import Contract
from procedo.agents.parts import Tool, ToolId
from procedo.core.model import Json, Scope
from procedo.core.reach import BOUNDLESS, Reaches

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse

__all__ = [
    "UNBOUNDED",
    "Answer",
    "Ceiling",
    "Connections",
    "Delegation",
    "Door",
    "Ledger",
    "Model",
    "ModelFailed",
    "ModelRefused",
    "Settings",
    "Spent",
    "StepBrief",
    "ToolDenied",
    "ToolFailed",
    "Usage",
    "Used",
    "Workbench",
]


# --- assembling ---------------------------------------------------------------------------------------


class Door(Protocol):
    """The parent surface, as far as approvals need it; `runs.Surface` is one."""

    @property
    def can_ask(self) -> bool:
        """True when a person can be asked there."""

    @property
    def route(self) -> str:
        """The live operator route in words; empty: there is none."""


class Ceiling(Struct, frozen=True):
    """What a caller may hand on at most: every scope in here has to admit a tool, and every reach the agent.

    It is stored with the run.
    """

    scopes: tuple[Scope, ...]
    reach: Reaches = BOUNDLESS


UNBOUNDED = Ceiling(())
"""No caller narrows anything. It has to be written out; there is no ceiling by omission."""


class StepBrief(Struct, frozen=True):
    """What the session is for: the step as it is shown to its agent, framed data included, and its scope.

    `output_schema` None: the final text is the output.
    """

    text: str
    scope: Scope
    output_schema: Json | None


class Delegation(Struct, frozen=True):
    """For whom the agent acts: who delegates (an alias), the root principal's key, run, execution, depth from 1.

    `lineage` are the runs above this one; the run itself is always added.
    """

    delegating: str
    root: str
    run: str
    execution: str
    depth: int = 1
    lineage: tuple[str, ...] = ()


# --- models -------------------------------------------------------------------------------------------


class Settings(Struct, frozen=True):
    """What is asked of one request beyond its messages. None: the key is not sent."""

    temperature: float | None
    max_output_tokens: int | None
    parallel_calls: bool
    timeout_s: float


class Usage(Struct, frozen=True):
    """Tokens of one request as the provider told them."""

    input_tokens: int
    output_tokens: int


class Answer(Struct, frozen=True):
    """What a model answered. `usage` None: unmeasured, which is not zero. `cost_usd` None: unknown, which is not free.

    `provider` and `model` are what the provider reported; `scripted` marks answers out of a file.
    """

    response: "ModelResponse"
    usage: Usage | None
    cost_usd: Decimal | None
    provider: str
    model: str
    finish_reason: str | None
    scripted: bool


class ModelFailed(Exception):
    """The provider could not be reached or answered with an error; the same request may be sent again."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ModelRefused(ModelFailed):
    """The provider refuses this request for good (bad key, unknown model, a script at its end): no retry helps."""


class Model(Protocol):
    """A model of one contract, built and checked at assembly."""

    async def request(
        self,
        messages: "Sequence[ModelMessage]",
        settings: Settings,
        tools: Sequence[Tool],
        output: Json | None,
    ) -> Answer:
        """Send the messages as they are, nothing repaired or reordered, and wait for the whole answer.

        `output` is the step's output schema: it is offered as the tool `step_output` (a schema that is no
        object is wrapped in `{"value": …}`) and text alone is then not asked for. None: text is the answer.
        Raises `ModelFailed` or `ModelRefused`.
        """


# --- tools --------------------------------------------------------------------------------------------


class ToolFailed(Exception):
    """The call failed and is known not to have acted, or its tool says so; the model may try again."""


class ToolDenied(Exception):
    """The call is outside of the contract or the security policy; nothing ran."""


class Connections(Protocol):
    """The open tools of one contract: built-in ones and those of its servers, one path for all."""

    @property
    def changed(self) -> tuple[str, ...]:
        """Tools whose pin no longer fits since this was opened; a later assembly will be refused for it."""

    async def call(self, identity: ToolId, arguments: Json, effect_id: str) -> str:
        """Run one tool and give its whole text; the session caps it.

        The frozen set is checked again here. `effect_id` is how a peer can recognise a repeat. Raises `ToolDenied`,
        `ToolFailed`, `ports.OutcomeUnknown`.
        """


# --- the store ----------------------------------------------------------------------------------------


class Spent(Struct, frozen=True):
    """What an agent has spent. `unmeasured` counts requests whose cost is not known."""

    usd: Decimal
    unmeasured: int


class Used(Struct, frozen=True):
    """What all sessions of a run, of those above it and of their sub-runs have used, as far as it was measured."""

    tokens: int
    usd: Decimal


class Ledger(Protocol):
    """The counts behind an agent's budgets. They live in the store, so a new assembly starts no new budget."""

    async def take_action(self, agent: str, call: str, limit: int, now: datetime) -> bool:
        """Count one action of this hour (the sixty minutes before `now`), unless `limit` are counted already.

        The same `call` key is counted once. False: the budget is used up, and nothing was counted.
        """

    async def used_in(self, run_id: str) -> Used:
        """What is used of a budget that a run shares with the runs above it and with all their sub-runs."""

    async def spent_since(self, agent: str, since: datetime) -> Spent:
        """What the agent has cost since then, over all runs."""


# --- the whole ----------------------------------------------------------------------------------------


class Workbench(Protocol):
    """What the registry gives to sessions (implemented by `registry.Registry`)."""

    def opened(
        self,
        alias: str,
        *,
        surface: Door,
        ceiling: Ceiling,
        step: StepBrief,
        delegation: Delegation,
        recorded: Json | None,
    ) -> AbstractAsyncContextManager[tuple[Contract, Connections]]:
        """Assemble an agent for one execution and open its tools, or raise `NotAssembled` with every reason.

        Authority is agent ∩ ceiling ∩ step scope. `recorded` is the `Contract.record()` of the session
        that is resumed (None: it begins): any difference refuses, and is told. The tools are open over the very
        connections that they were listed and pinned on; nothing of them outlives the context.
        """

    def model(self, contract: Contract) -> Model:
        """The model of a contract. Raises `NotAssembled` when its key or package has gone since."""
