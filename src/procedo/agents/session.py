"""The loop that carries out a contract. Every state that it can be in is a row.

One turn looks at the last message only: a request is sent to the model; a response with calls has them
answered; a response without calls is the end, or is sent back once with what was wrong with it. A
session that waits for a person has nothing in memory and goes on in any process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

import anyio
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart

from procedo.agents.contract import Contract
from procedo.agents.dialogue import LIBRARY, dump, first_request, fitting, load, nudge, results, spoken, with_own_ids
from procedo.agents.finalcall import OUTPUT_TOOL, read_output, read_text
from procedo.agents.journal import Journal
from procedo.agents.ports import Answer, Ledger, Model, ModelFailed, ModelRefused, Settings
from procedo.agents.toolcalls import Broken, Question, ToolCalls
from procedo.core.model import Json
from procedo.core.outputs import digest
from procedo.core.session import CallRow, CallState, Message, Outcome, SessionState, TurnRow
from procedo.errors import ProcedoError
from procedo.ports import Clock

__all__ = ["Ending", "Session"]

_UNFINISHED: Final = frozenset({"length", "content_filter"})
_SENDS: Final = 3
"""How often one request is sent while the provider cannot be reached."""
_PAUSE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended, or (`questions`) what it waits for."""

    state: SessionState
    output: Json = None
    reason: str = ""
    questions: tuple[Question, ...] = ()


class Session:
    """One activation of a session: from where its rows stand to its end, or to a question."""

    def __init__(
        self, contract: Contract, journal: Journal, model: Model, calls: ToolCalls, ledger: Ledger, clock: Clock
    ) -> None:
        self._contract = contract
        self._journal = journal
        self._model = model
        self._calls = calls
        self._ledger = ledger
        self._clock = clock

    async def carry_out(self) -> Ending:
        """Go on until the end or a question. Raises `Conflict` when another worker has taken over."""
        left = self._contract.runtime.wall_time_s - self._journal.head.seconds
        with anyio.move_on_after(max(0.0, left)):
            return await self._loop()
        return Ending(SessionState.EXHAUSTED, reason=f"wall_time_s {self._contract.runtime.wall_time_s:g} is used up")

    async def _loop(self) -> Ending:
        seed = self._contract.seed
        if not self._journal.messages:
            await self._say(first_request(seed.instructions, seed.context))
        while True:
            last = load(self._journal.messages[-1])
            ending = await (self._ask_model() if isinstance(last, ModelRequest) else self._react(last))
            if ending is not None:
                return ending

    async def _say(self, request: ModelRequest) -> None:
        await self._journal.write(messages=[self._journal.message("request", dump(request), LIBRARY)])

    # --- the model -------------------------------------------------------------------------------

    async def _ask_model(self) -> Ending | None:
        limit = await self._limit_reached()
        if limit:
            return Ending(SessionState.EXHAUSTED, reason=limit)
        runtime, provider = self._contract.runtime, self._contract.provider
        history = [load(message) for message in self._journal.messages]
        messages = fitting(history, runtime.context_tokens, runtime.history_messages)
        if messages is None:
            reason = f"context_tokens {runtime.context_tokens}: the step and its newest turn do not fit"
            return Ending(SessionState.EXHAUSTED, reason=reason)
        settings = Settings(
            provider.temperature, provider.max_output_tokens, runtime.parallel_calls > 1, provider.timeout_s
        )
        turn = TurnRow(
            turn=self._journal.head.turns + 1,
            request_digest=self._digest(messages, settings),
            model_asked=provider.model,
            at=self._clock.now(),
            scripted=provider.scripted,
        )
        await self._journal.write(turns=[turn])
        try:
            answer = await self._request(messages, settings)
        except ModelFailed as error:
            return Ending(SessionState.FAILED, reason=f"the model {provider.model!r} gave no answer: {error}")
        await self._heard(turn, answer)
        return None

    def _digest(self, messages: Sequence[ModelMessage], settings: Settings) -> str:
        tools = [tool.id.schema for tool in self._contract.tools]
        return digest([[dump(message) for message in messages], settings.temperature, tools])

    async def _request(self, messages: Sequence[ModelMessage], settings: Settings) -> Answer:
        """Send one request, again after a while when the provider could not be reached; it has no effect to repeat."""
        seed = self._contract.seed
        for attempt in range(1, _SENDS + 1):
            try:
                return await self._model.request(messages, settings, self._contract.tools, seed.output_schema)
            except ModelRefused:
                raise
            except ModelFailed:
                if attempt == _SENDS:
                    raise
                await self._clock.sleep(_PAUSE_S * attempt)
        raise ModelFailed("no attempt was made")

    async def _heard(self, turn: TurnRow, answer: Answer) -> None:
        """Store the response, what it cost, and the calls that it asks for, in one commit."""
        response = with_own_ids(answer.response, turn.turn)
        usage = answer.usage
        answered = replace(
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
        sums = self._journal.sums(answered)
        sums["calls"] = self._journal.head.calls + len(calls)
        message = self._journal.message("response", dump(response), LIBRARY)
        await self._journal.write(messages=[message], turns=[answered], calls=calls, head=sums)

    def _row(self, turn: int, index: int, part: ToolCallPart) -> CallRow:
        tool = self._contract.tool(part.tool_name)
        key = OUTPUT_TOOL if part.tool_name == OUTPUT_TOOL else tool.id.key if tool is not None else part.tool_name
        try:
            arguments: Json = part.args_as_dict()
        except (ValueError, AssertionError):
            arguments = part.args
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

    async def _limit_reached(self) -> str:
        runtime, head = self._contract.runtime, self._journal.head
        if head.turns >= runtime.iterations:
            return f"iterations {runtime.iterations} are used up"
        tokens = head.input_tokens + head.output_tokens
        if runtime.total_tokens is not None and tokens >= runtime.total_tokens:
            return f"total_tokens {runtime.total_tokens} are used up ({tokens})"
        if runtime.cost_usd is not None and Decimal(head.cost_usd) >= runtime.cost_usd:
            return f"cost_usd {runtime.cost_usd} is used up ({head.cost_usd})"
        if runtime.cost_usd_per_day is not None:
            midnight = self._clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
            spent = await self._ledger.spent_since(self._contract.actor.acting, midnight)
            if spent.usd >= runtime.cost_usd_per_day:
                return f"cost_usd_per_day {runtime.cost_usd_per_day} is used up ({spent.usd})"
        return ""

    # --- its answers -----------------------------------------------------------------------------

    async def _react(self, response: ModelResponse) -> Ending | None:
        text, parts = spoken(response)
        if parts:
            return await self._answer_calls(parts)
        if response.finish_reason in _UNFINISHED or not text:
            why = f"Your answer was cut off ({response.finish_reason})." if text else "Your answer was empty."
            return await self._send_back(f"{why} Give the whole result of the step, shorter if need be.", 1)
        schema = self._contract.seed.output_schema
        if schema is None:
            return Ending(SessionState.COMPLETED, output=text[: self._contract.runtime.result_chars])
        found = read_text(schema, text)
        if found.violations:
            told = f"The result has to be given by calling {OUTPUT_TOOL}: {found.violations[0]}."
            return await self._send_back(told, self._contract.runtime.output_retries)
        return Ending(SessionState.COMPLETED, output=found.value)

    async def _send_back(self, told: str, allowed: int) -> Ending | None:
        """Tell the model what was wrong with its answer, as often as is allowed."""
        sent = sum(1 for message in self._journal.messages if _is_nudge(message)) - 1
        if sent >= allowed:
            return Ending(SessionState.FAILED, reason=f"no usable answer after {sent + 1} attempts: {told}")
        await self._say(nudge(self._contract.seed.instructions, told))
        return None

    async def _answer_calls(self, parts: Sequence[ToolCallPart]) -> Ending | None:
        turn = self._journal.head.turns
        calls = self._journal.calls_of(turn)
        final = [
            call for call in calls if call.offered == OUTPUT_TOOL and self._contract.seed.output_schema is not None
        ]
        if final:
            ending = await self._final_calls(final, alone=len(parts) == 1)
            if ending is not None:
                return ending
        rest = [call for call in self._journal.calls_of(turn) if call.state is not CallState.DONE]
        try:
            questions = await self._answered(rest)
        except Broken as error:
            return Ending(SessionState.FAILED, reason=str(error))
        if questions:
            return Ending(SessionState.PARKED, questions=tuple(questions))
        await self._say(results(self._contract.seed.instructions, self._journal.calls_of(turn)))
        return None

    async def _final_calls(self, final: Sequence[CallRow], *, alone: bool) -> Ending | None:
        """The output call counts only alone in its response; it passes no gate and is no repeat of anything."""
        for call in final:
            if call.state is CallState.DONE:
                continue
            found = read_output(self._contract.seed.output_schema, call.arguments)
            if alone and not found.violations:
                await self._close(call, Outcome.SUCCESS, "accepted")
                return Ending(SessionState.COMPLETED, output=found.value)
            told = f"call {OUTPUT_TOOL} alone, when everything else is done" if not alone else str(found.violations[0])
            await self._close(call, Outcome.FAILED, told)
        rejected = [c for c in self._journal.calls.values() if c.offered == OUTPUT_TOOL and c.outcome is Outcome.FAILED]
        if len(rejected) > self._contract.runtime.output_retries:
            reason = f"the output broke its schema {len(rejected)} times: {rejected[-1].text}"
            return Ending(SessionState.FAILED, reason=reason)
        return None

    async def _close(self, call: CallRow, outcome: Outcome, text: str) -> None:
        row = replace(call, state=CallState.DONE, outcome=outcome, text=text, ended_at=self._clock.now())
        await self._journal.write(calls=[row])

    async def _answered(self, calls: Sequence[CallRow]) -> list[Question]:
        """Answer calls side by side; the same call twice in one turn waits for the first."""
        first: dict[str, CallRow] = {}
        for call in calls:
            first.setdefault(call.digest, call)
        questions = await self._side_by_side(list(first.values()))
        for call in calls:
            if call is not first[call.digest]:
                questions += await self._side_by_side([call])
        return sorted(questions, key=lambda question: question.call.index)

    async def _side_by_side(self, calls: Sequence[CallRow]) -> list[Question]:
        questions: list[Question] = []
        failures: list[ProcedoError | Broken] = []

        async def one(call: CallRow) -> None:
            try:
                question = await self._calls.answer(call)
            # A refusal leaves as itself, not inside the group's own error; the calls beside it finish first.
            except (ProcedoError, Broken) as error:
                failures.append(error)
            else:
                questions.extend([question] if question is not None else [])

        async with anyio.create_task_group() as group:
            for call in calls:
                group.start_soon(one, call)
        if failures:
            raise failures[0]
        return questions


def _is_nudge(message: Message) -> bool:
    """True for a request that says something itself, the first one included, rather than answering calls."""
    if message.kind != "request":
        return False
    return any(part.get("part_kind") == "user-prompt" for part in message.data.get("parts", ()))
