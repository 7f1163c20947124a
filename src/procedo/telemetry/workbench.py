"""An agent's workbench whose model requests and tool calls have spans. Imported with the first step of an agent."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from procedo.agents.contract import Contract
from procedo.agents.parts import Tool, ToolId
from procedo.agents.ports import (
    Answer,
    Ceiling,
    Connections,
    Delegation,
    Door,
    Model,
    ModelFailed,
    Settings,
    StepBrief,
    ToolDenied,
    ToolFailed,
    Workbench,
)
from procedo.core.model import Json
from procedo.telemetry.spans import MODEL, TOOL, Spans, Value

__all__ = ["TracedWorkbench"]

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

_PROVIDERS: Final = {"openai": "openai", "anthropic": "anthropic"}
"""Providers with a name of their own in the conventions; another kind keeps our name for it."""


def _whose(contract: Contract) -> dict[str, Value | None]:
    actor = contract.actor
    return {
        "gen_ai.agent.name": actor.acting,
        "procedo.run.id": actor.run,
        "procedo.execution.id": actor.execution,
    }


def _provider(contract: Contract) -> str:
    return _PROVIDERS.get(contract.provider.type, contract.provider.type)


class _TracedModel:
    """Implements `Model`."""

    def __init__(self, inner: Model, contract: Contract, spans: Spans) -> None:
        self._inner = inner
        self._contract = contract
        self._spans = spans

    async def request(
        self, messages: "Sequence[ModelMessage]", settings: Settings, tools: Sequence[Tool], output: Json | None
    ) -> Answer:
        """See `Model.request`."""
        asked = self._contract.provider.model
        attributes: dict[str, Value | None] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _provider(self._contract),
            "gen_ai.request.model": asked,
            "gen_ai.request.temperature": settings.temperature,
            "gen_ai.request.max_tokens": settings.max_output_tokens,
            **_whose(self._contract),
        }
        with self._spans.open(MODEL, asked, attributes) as span:
            try:
                answer = await self._inner.request(messages, settings, tools, output)
            except asyncio.CancelledError:
                span.fail("cancelled")
                raise
            except ModelFailed as error:
                span.fail(str(error.status) if error.status is not None else type(error).__name__)
                raise
            usage = answer.usage
            span.set(
                {
                    "gen_ai.response.model": answer.model or None,
                    "gen_ai.response.finish_reasons": (answer.finish_reason,) if answer.finish_reason else None,
                    "gen_ai.usage.input_tokens": None if usage is None else usage.input_tokens,
                    "gen_ai.usage.output_tokens": None if usage is None else usage.output_tokens,
                }
            )
            return answer


class _TracedConnections:
    """Implements `Connections`."""

    def __init__(self, inner: Connections, contract: Contract, spans: Spans) -> None:
        self._inner = inner
        self._contract = contract
        self._spans = spans

    @property
    def changed(self) -> tuple[str, ...]:
        """See `Connections.changed`."""
        return self._inner.changed

    async def call(self, identity: ToolId, arguments: Json, effect_id: str) -> str:
        """See `Connections.call`."""
        attributes: dict[str, Value | None] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": identity.name,
            "gen_ai.tool.type": "function",
            "procedo.tool.server": identity.server or None,
            **_whose(self._contract),
        }
        with self._spans.open(TOOL, identity.name, attributes) as span:
            outcome = "interrupted"
            try:
                text = await self._inner.call(identity, arguments, effect_id)
                outcome = "success"
            except asyncio.CancelledError:
                span.fail("cancelled")
                raise
            except ToolDenied:
                outcome = "denied"
                raise
            except (ToolFailed, ValueError, OSError):
                outcome = "failed"
                raise
            finally:
                span.set({"procedo.outcome": outcome})
            return text


class TracedWorkbench:
    """Implements `Workbench` over another one."""

    def __init__(self, inner: Workbench, spans: Spans) -> None:
        self._inner = inner
        self._spans = spans

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
        """See `Workbench.opened`."""
        async with self._inner.opened(
            alias, surface=surface, ceiling=ceiling, step=step, delegation=delegation, recorded=recorded
        ) as (contract, connections):
            yield contract, _TracedConnections(connections, contract, self._spans)

    def model(self, contract: Contract) -> Model:
        """See `Workbench.model`."""
        attributes = {"gen_ai.provider.name": _provider(contract), "gen_ai.request.model": contract.provider.model}
        self._spans.current().set(attributes)
        return _TracedModel(self._inner.model(contract), contract, self._spans)
