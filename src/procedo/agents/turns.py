"""The model's turns of a session: what is sent, what comes back, what it cost.

A request is written before it is sent. It has no effect to repeat, so it is sent again when it was lost.
"""

from collections.abc import Sequence
from typing import Final

import anyio
from pydantic_ai.messages import ToolCallPart

from procedo.agents.contract import Contract
from procedo.agents.dialogue import LIBRARY, arguments_of, dump, fitting, load, own, size_of, spoken
from procedo.agents.ending import Ending
from procedo.agents.journal import Journal
from procedo.agents.limits import Limits
from procedo.agents.ports import Answer, Model, ModelFailed, ModelRefused, Settings
from procedo.core.altered import altered
from procedo.core.outputs import digest
from procedo.core.session import CallRow, Message, SessionState, TurnRow
from procedo.ports import Clock

__all__ = ["Turns"]

_SENDS: Final = 3
"""How often one request is sent while the provider cannot be reached."""
_PAUSE_S: Final = 1.0


class Turns:
    """Takes one turn after the other, within the limits."""

    def __init__(self, contract: Contract, journal: Journal, model: Model, limits: Limits, clock: Clock) -> None:
        self._contract = contract
        self._journal = journal
        self._model = model
        self._limits = limits
        self._clock = clock
        self._lost = 0

    async def take(self) -> Ending | None:
        """Send what was said so far and store the answer; None, or the end when no answer is to be had."""
        if limit := await self._limits.before_request():
            return Ending(SessionState.EXHAUSTED, reason=limit)
        runtime, provider = self._contract.runtime, self._contract.provider
        offered = [[tool.offered, tool.description, tool.input_schema] for tool in self._contract.tools]
        room = runtime.context_tokens - size_of([*offered, self._contract.seed.output_schema])
        sent = fitting(self._journal.messages, room, runtime.history_messages)
        if sent is None:
            reason = f"context_tokens {runtime.context_tokens}: the step, its tools and its newest turn do not fit"
            return Ending(SessionState.EXHAUSTED, reason=reason)
        settings = Settings(
            provider.temperature, provider.max_output_tokens, runtime.parallel_calls > 1, provider.timeout_s
        )
        turn = TurnRow(
            turn=self._journal.head.turns + 1,
            request_digest=self._digest(sent, settings),
            model_asked=provider.model,
            at=self._clock.now(),
            scripted=provider.scripted,
        )
        await self._journal.write(turns=[turn])
        try:
            answer = await self._request(sent, settings)
        except ModelFailed as error:
            await self._journal.write(turns=[altered(turn, lost=True)], head=self._unheard())
            return Ending(SessionState.FAILED, reason=f"the model {provider.model!r} gave no answer: {error}")
        await self._heard(turn, answer)
        return None

    def _digest(self, sent: Sequence[Message], settings: Settings) -> str:
        tools = [tool.id.schema for tool in self._contract.tools]
        return digest([[message.data for message in sent], settings.temperature, settings.max_output_tokens, tools])

    def _unheard(self) -> dict[str, int]:
        """The counts of the head with the requests that got no answer: what they used nobody knows."""
        head, lost = self._journal.head, self._lost
        self._lost = 0
        return {"unmeasured": head.unmeasured + lost, "unpriced": head.unpriced + lost}

    async def _request(self, sent: Sequence[Message], settings: Settings) -> Answer:
        """Send one request, again after a while when the provider could not be reached; it has no effect to repeat."""
        messages, output = [load(message) for message in sent], self._contract.seed.output_schema
        failure = ModelFailed("it was not asked")
        for attempt in range(1, _SENDS + 1):
            try:
                with anyio.fail_after(settings.timeout_s):
                    return await self._model.request(messages, settings, self._contract.tools, output)
            except ModelRefused:
                raise
            except TimeoutError:
                self._lost += 1
                failure = ModelFailed(f"no answer within {settings.timeout_s:g} s")
            except ModelFailed as error:
                self._lost += error.status is None
                failure = error
            if attempt < _SENDS:
                await self._clock.sleep(_PAUSE_S * attempt)
        raise failure

    async def _heard(self, turn: TurnRow, answer: Answer) -> None:
        """Store the response, what it cost, and the calls that it asks for, in one commit."""
        response = own(answer.response, turn.turn)
        usage = answer.usage
        answered = altered(
            turn,
            answered=True,
            provider=answer.provider,
            model=answer.model,
            input_tokens=usage.input_tokens if usage is not None else None,
            output_tokens=usage.output_tokens if usage is not None else None,
            cost_usd=str(answer.cost_usd) if answer.cost_usd is not None else None,
            finish_reason=answer.finish_reason,
            seconds=(self._clock.now() - turn.at).total_seconds(),
            scripted=answer.scripted,
        )
        _, parts = spoken(response)
        calls = [self._row(turn.turn, index, part) for index, part in enumerate(parts)]
        unheard, sums = self._unheard(), self._journal.sums(answered)
        sums["calls"] = self._journal.head.calls + len(calls)
        sums |= {key: sums[key] + count - getattr(self._journal.head, key) for key, count in unheard.items()}
        message = self._journal.message("response", dump(response), LIBRARY)
        await self._journal.write(messages=[message], turns=[answered], calls=calls, head=sums)

    def _row(self, turn: int, index: int, part: ToolCallPart) -> CallRow:
        tool = self._contract.tool(part.tool_name)
        key = tool.id.key if tool is not None else part.tool_name
        arguments = arguments_of(part)
        return CallRow(
            turn=turn,
            index=index,
            call_id=part.tool_call_id,
            tool=key,
            offered=part.tool_name,
            schema=tool.id.schema if tool is not None else "",
            arguments=arguments,
            digest=digest([key, arguments]),
            at=self._clock.now(),
        )
