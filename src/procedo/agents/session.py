"""The loop that carries out a contract. Every state that it can be in is a row.

One turn looks at the last message only: a request is sent to the model; a response with calls has them
answered; a response without calls is the end, or is sent back with what was wrong with it. A session that
waits for a person has nothing in memory and goes on in any process.
"""

from collections.abc import Sequence
from typing import Final

import anyio
from pydantic_ai.messages import ModelRequest, ModelResponse

from procedo.agents.contract import Contract
from procedo.agents.dialogue import LIBRARY, dump, first_request, is_nudge, load, nudge, results, spoken
from procedo.agents.ending import Ending
from procedo.agents.excerpt import excerpt
from procedo.agents.finalcall import OUTPUT_TOOL, Found, read_output, read_text
from procedo.agents.journal import Journal
from procedo.agents.limits import Limits
from procedo.agents.questions import Question
from procedo.agents.toolcalls import Broken, ToolCalls
from procedo.agents.turns import Turns
from procedo.core.altered import altered
from procedo.core.outputs import canonical
from procedo.core.session import CallRow, CallState, Outcome, SessionState
from procedo.errors import ProcedoError
from procedo.ports import Clock

__all__ = ["Session"]

_UNFINISHED: Final = frozenset({"length", "content_filter"})


class Session:
    """One activation of a session: from where its rows stand to its end, or to a question."""

    def __init__(
        self, contract: Contract, journal: Journal, turns: Turns, calls: ToolCalls, limits: Limits, clock: Clock
    ) -> None:
        self._contract = contract
        self._journal = journal
        self._turns = turns
        self._calls = calls
        self._limits = limits
        self._clock = clock

    async def carry_out(self) -> Ending:
        """Go on until the end or a question. Raises `Conflict` when another worker has taken over, or it was ended."""
        ending: Ending | None = None
        failure: Exception | None = None

        async def go() -> None:
            nonlocal ending, failure
            try:
                ending = await self._loop()
            # It leaves as itself below, not inside the group's own error.
            except Exception as error:  # noqa: BLE001  # raised again below, unchanged
                failure = error
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(go)
            await self._clock.sleep(self._limits.seconds_left)
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if ending is None:
            await self._journal.settle(f"cut off because {self._limits.out_of_time}")
            ending = Ending(SessionState.EXHAUSTED, reason=self._limits.out_of_time)
        return ending

    async def _loop(self) -> Ending:
        seed = self._contract.seed
        if not self._journal.messages:
            await self._say(first_request(seed.instructions, seed.context))
        while True:
            self._journal.check_going_on()
            last = load(self._journal.messages[-1])
            ending = await (self._turns.take() if isinstance(last, ModelRequest) else self._react(last))
            if ending is not None:
                return ending

    async def _say(self, request: ModelRequest) -> None:
        await self._journal.write(messages=[self._journal.message("request", dump(request), LIBRARY)])

    # --- its answers -----------------------------------------------------------------------------

    async def _react(self, response: ModelResponse) -> Ending | None:
        if limit := await self._limits.after_response():
            return Ending(SessionState.EXHAUSTED, reason=limit)
        text, parts = spoken(response)
        if parts:
            return await self._answer_calls()
        schema, retries = self._contract.seed.output_schema, self._contract.runtime.output_retries
        if response.finish_reason in _UNFINISHED or not text:
            why = f"Your answer was cut off ({response.finish_reason})." if text else "Your answer was empty."
            return await self._send_back(f"{why} Give the whole result of the step, shorter if need be.", 1)
        if schema is None:
            place = f"the transcript of {self._contract.actor.execution} in run {self._contract.actor.run}"
            return Ending(SessionState.COMPLETED, output=excerpt(text, self._contract.runtime.result_chars, place)[0])
        found = read_text(schema, text)
        if told := self._objection(found):
            return await self._send_back(f"The result has to be given by calling {OUTPUT_TOOL}: {told}.", retries)
        return Ending(SessionState.COMPLETED, output=found.value)

    def _objection(self, found: Found) -> str:
        """Why a result is not taken, or nothing."""
        if found.violations:
            return str(found.violations[0])
        size, limit = len(canonical(found.value)), self._contract.runtime.result_chars
        return f"it has {size} characters, and {limit} is the limit" if size > limit else ""

    def _misses(self) -> int:
        """How often a result was sent back so far, in a text or as the output call alone."""
        calls = self._journal.calls.values()
        rejected = [c for c in calls if self._is_final(c) and c.outcome is Outcome.FAILED]
        alone = [call for call in rejected if len(self._journal.calls_of(call.turn)) == 1]
        return len(alone) + sum(map(is_nudge, self._journal.messages))

    async def _send_back(self, told: str, allowed: int) -> Ending | None:
        """Tell the model what was wrong with its answer, as often as is allowed."""
        misses = self._misses()
        if misses >= allowed:
            return Ending(SessionState.FAILED, reason=f"no usable answer after {misses + 1} attempts: {told}")
        await self._say(nudge(self._contract.seed.instructions, told))
        return None

    def _is_final(self, call: CallRow) -> bool:
        return call.offered == OUTPUT_TOOL and self._contract.seed.output_schema is not None

    async def _answer_calls(self) -> Ending | None:
        turn = self._journal.head.turns
        calls = self._journal.calls_of(turn)
        for call in filter(self._is_final, calls):
            ending = await self._final_call(call, alone=len(calls) == 1)
            if ending is not None:
                return ending
        try:
            questions = await self._answered([call for call in calls if not self._is_final(call)])
        except Broken as error:
            return Ending(SessionState.FAILED, reason=str(error))
        if questions:
            return Ending(SessionState.PARKED, questions=tuple(questions))
        await self._say(results(self._contract.seed.instructions, self._journal.calls_of(turn)))
        return None

    async def _final_call(self, call: CallRow, *, alone: bool) -> Ending | None:
        """The output call counts only alone in its response; it passes no gate and is no repeat of anything."""
        found = read_output(self._contract.seed.output_schema, call.arguments)
        if call.state is CallState.DONE and call.outcome is not Outcome.SUCCESS:
            return None
        told = self._objection(found) if alone else f"call {OUTPUT_TOOL} alone, when everything else is done"
        if not told:
            await self._close(call, Outcome.SUCCESS, "accepted")
            return Ending(SessionState.COMPLETED, output=found.value)
        await self._close(call, Outcome.FAILED, told)
        misses = self._misses()
        if alone and misses > self._contract.runtime.output_retries:
            return Ending(SessionState.FAILED, reason=f"no usable answer after {misses} attempts: {told}")
        return None

    async def _close(self, call: CallRow, outcome: Outcome, text: str) -> None:
        if call.state is not CallState.DONE:
            row = altered(call, state=CallState.DONE, outcome=outcome, text=text, ended_at=self._clock.now())
            await self._journal.write(calls=[row])

    async def _answered(self, calls: Sequence[CallRow]) -> list[Question]:
        """Answer the calls of a turn; the same call twice waits for the first, and is answered alike."""
        first: dict[str, CallRow] = {}
        for call in calls:
            first.setdefault(call.digest, call)
        questions = await self._side_by_side([call for call in first.values() if call.state is not CallState.DONE])
        for call in calls:
            known = first[call.digest]
            if call is known or call.state is CallState.DONE:
                continue
            if self._calls.repeats(call):
                questions += await self._side_by_side([call])
            else:
                await self._calls.answer_alike(call, self._journal.calls[known.turn, known.index])
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

        # As many run at once as there are slots; those that wait for one get it in their order.
        async with anyio.create_task_group() as group:
            for call in calls:
                group.start_soon(one, call)
        if failures:
            raise failures[0]
        return questions
