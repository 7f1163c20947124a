"""One tool call of a session, from the model's words to a stored result.

The order of the checks: result known, interrupted before, name, arguments, ruling and approval, repeat of an
earlier call, slot, budget, write-ahead, run, cap, result. Arguments are validated before anybody is asked, so
that no approver ever sees unvalidated ones; what is started is written before it happens.
"""

from collections.abc import Sequence
from typing import Final

import anyio

from procedo.agents.contract import Contract
from procedo.agents.excerpt import excerpt
from procedo.agents.journal import Journal
from procedo.agents.parts import Effect, OnInterrupted, Tool
from procedo.agents.policy import Verdict as Ruled
from procedo.agents.policy import judge, only_reads, repeatable
from procedo.agents.ports import Connections, Ledger, ToolDenied, ToolFailed
from procedo.agents.questions import Question, Questions
from procedo.agents.toolschema import compile_tool_schema
from procedo.core.altered import altered
from procedo.core.characters import spelled_out
from procedo.core.model import Json
from procedo.core.outputs import canonical, digest
from procedo.core.session import CallRow, CallState, Outcome
from procedo.core.state import Gate, Verdict
from procedo.ports import Clock, OutcomeUnknown

__all__ = ["Broken", "ToolCalls"]

_MOST_CALLS: Final = 64
"""How many calls of one turn are looked at: each may be a question to a person."""
_GRANTED: Final = (Verdict.APPROVE, Verdict.AMEND)
_KEPT: Final = "\n\t\u200c\u200d"
"""Line ends, tabs, and what parts or joins letters in some scripts and emoji: the model writes it back as it is."""


class Broken(Exception):
    """A person decided that the step fails because of an interrupted call."""


class ToolCalls:
    """Answers the calls of one session."""

    def __init__(
        self,
        contract: Contract,
        journal: Journal,
        connections: Connections,
        ledger: Ledger,
        clock: Clock,
        questions: Questions,
    ) -> None:
        self._contract = contract
        self._journal = journal
        self._connections = connections
        self._ledger = ledger
        self._clock = clock
        self._questions = questions
        self._slots = anyio.CapacityLimiter(max(1, contract.runtime.parallel_calls))

    async def answer(self, call: CallRow) -> Question | None:
        """Bring a call to its end, or return what has to be asked first. Raises `Broken`."""
        if call.state is CallState.DONE:
            return None
        tool = self._contract.tool(call.offered)
        if call.state is CallState.STARTED:
            return await self._interrupted(call, tool)
        if call.index >= _MOST_CALLS:
            told = f"not run: a turn may have {_MOST_CALLS} calls, and this one is beyond them; make fewer at once"
            await self._done(call, Outcome.FAILED, told)
            return None
        if tool is None:
            names = ", ".join(tool.offered for tool in self._contract.tools) or "none"
            await self._done(call, Outcome.FAILED, f"no such tool: {call.offered!r}; available: {names}")
            return None
        told = _unfit(tool, call.arguments)
        if told:
            await self._done(call, Outcome.FAILED, told)
            return None
        return await self._judged(call, tool)

    async def answer_alike(self, call: CallRow, first: CallRow) -> None:
        """Answer a call that stands twice in one turn as the first of the two was answered."""
        if call.state is CallState.WAITING and first.outcome is not None:
            text = f"the same call stands in this turn already: {first.text}"
            await self._done(altered(call, verdict=first.verdict), first.outcome, text)

    def repeats(self, call: CallRow) -> bool:
        """True when the same call again is meant to run again (a clock, a poll)."""
        tool = self._contract.tool(call.offered)
        return tool is not None and (tool.repeats or call.tool in self._contract.runtime.dedup_exempt)

    # --- interrupted -----------------------------------------------------------------------------

    async def _interrupted(self, call: CallRow, tool: Tool | None) -> Question | None:
        """The call was started and its result is not known: nothing is repeated silently."""
        if tool is not None and repeatable(tool, call.arguments):
            await self._run(call, tool)
            return None
        asking = self._contract.runtime.on_interrupted is OnInterrupted.GATE and self._contract.approvals.askable
        if tool is None or not asking:
            await self._done(call, Outcome.INTERRUPTED, "interrupted: it may or may not have acted; not repeated")
            return None
        question = self._questions.interrupted(call, tool.offered)
        gate = self._questions.answer(question)
        if gate is None:
            return question
        if gate.verdict is Verdict.REPEAT:
            await self._run(call, tool)
        elif gate.verdict is Verdict.FAIL:
            raise Broken(gate.comment or f"the outcome of {tool.offered} is unknown")
        else:
            await self._done(call, Outcome.INTERRUPTED, "interrupted: a person said to go on without its result")
        return None

    # --- ruling and approval ---------------------------------------------------------------------

    async def _judged(self, call: CallRow, tool: Tool) -> Question | None:
        ruling = judge(self._contract, tool, call.arguments)
        verdict, reason, granted = ruling.verdict, ruling.reason, self._questions.granted(call)
        if verdict is not Ruled.DENY and self._was_interrupted(call) and not repeatable(tool, call.arguments):
            # Whoever allowed it before did not know that it may have happened already.
            reason, granted = f"an earlier {tool.offered!r} with these arguments may have acted already", False
            verdict = Ruled.ASK if self._contract.approvals.askable else Ruled.DENY
        if verdict is Ruled.DENY:
            await self._done(altered(call, verdict="deny"), Outcome.DENIED, reason)
            return None
        if verdict is Ruled.ASK and not granted and self._repeated(call, tool) is None:
            return await self._asked(altered(call, verdict="ask"), tool, reason)
        await self._run(altered(call, verdict=verdict.value), tool)
        return None

    async def _asked(self, call: CallRow, tool: Tool, reason: str) -> Question | None:
        question = self._questions.may_call(call, tool.offered, reason)
        gate = self._questions.answer(question)
        if gate is None:
            return question
        if gate.verdict not in _GRANTED:
            await self._done(call, Outcome.DENIED, _refusal(gate))
            return None
        if gate.verdict is Verdict.AMEND:
            told = _unfit(tool, gate.value)
            if told:
                await self._done(call, Outcome.FAILED, f"the arguments that a person put in do not fit: {told}")
                return None
            call = altered(call, arguments=gate.value, digest=digest([call.tool, gate.value]), amended=True)
            ruling = judge(self._contract, tool, call.arguments)
            if ruling.verdict is Ruled.DENY:
                await self._done(call, Outcome.DENIED, f"with the arguments that a person put in: {ruling.reason}")
                return None
        await self._run(call, tool)
        return None

    # --- repeats ---------------------------------------------------------------------------------

    def _earlier(self, call: CallRow) -> Sequence[CallRow]:
        rows = sorted(self._journal.calls.items())
        return [row for place, row in rows if place < (call.turn, call.index)]

    def _was_interrupted(self, call: CallRow) -> bool:
        """True when this very call may have happened, and has not succeeded since."""
        outcomes = [row.outcome for row in self._earlier(call) if row.digest == call.digest]
        known = [one for one in outcomes if one in (Outcome.INTERRUPTED, Outcome.SUCCESS)]
        return bool(known) and known[-1] is Outcome.INTERRUPTED

    def _repeated(self, call: CallRow, tool: Tool) -> CallRow | None:
        """The earlier success that answers this call as well.

        What reads is read again once something may have changed since.
        """
        if self.repeats(call) or call.attempts:
            return None
        earlier = self._earlier(call)
        same = [n for n, row in enumerate(earlier) if row.digest == call.digest and row.outcome is Outcome.SUCCESS]
        if not same:
            return None
        if tool.effect is Effect.READ_ONLY and any(map(self._may_have_changed, earlier[same[-1] + 1 :])):
            return None
        return earlier[same[-1]]

    def _may_have_changed(self, row: CallRow) -> bool:
        tool = self._contract.tool(row.offered)
        return row.started_at is not None and (tool is None or tool.effect is not Effect.READ_ONLY)

    # --- running ---------------------------------------------------------------------------------

    async def _run(self, call: CallRow, tool: Tool) -> None:
        known = self._repeated(call, tool)
        if known is not None:
            text = f"repeat of an earlier identical call, which was not run again; its result still holds: {known.text}"
            await self._done(call, Outcome.SUCCESS, text)
            return
        limit = self._contract.security.actions_per_hour
        actor = self._contract.actor
        effect = f"{actor.run}:{actor.execution}:{call.key}"
        async with self._slots:
            self._journal.check_going_on()
            now = self._clock.now()
            limited = limit is not None and not only_reads(tool, call.arguments)
            if limited and not await self._ledger.take_action(actor.acting, effect, limit or 0, now):
                await self._done(call, Outcome.DENIED, f"the budget of {limit} actions per hour is used up")
                return
            call = altered(call, state=CallState.STARTED, started_at=now, attempts=call.attempts + 1)
            await self._journal.write(calls=[call])
            text, outcome = await self._performed(call, tool, effect)
            # A result that exists is never lost to a cancellation.
            with anyio.CancelScope(shield=True):
                await self._done(call, outcome, f"{_amendment(call)}{text}")

    async def _performed(self, call: CallRow, tool: Tool, effect: str) -> tuple[str, Outcome]:
        """What the tool says. Cut off in the middle there is no result: the row says that it was started."""
        try:
            with anyio.fail_after(tool.time_limit_s):
                return await self._connections.call(tool.id, call.arguments, effect), Outcome.SUCCESS
        except TimeoutError:
            return f"no answer within {tool.time_limit_s:g} s; it may have acted", Outcome.INTERRUPTED
        except OutcomeUnknown as error:
            return str(error), Outcome.INTERRUPTED
        except ToolDenied as error:
            return str(error), Outcome.DENIED
        except (ToolFailed, ValueError, OSError) as error:
            return str(error) or type(error).__name__, Outcome.FAILED

    async def _done(self, call: CallRow, outcome: Outcome, text: str) -> None:
        place = f"the record of run {self._contract.actor.run}, call {call.key} of {self._contract.actor.execution}"
        # Half a surrogate pair can be neither kept nor sent; the name of a file may hold one.
        text = text.encode(errors="backslashreplace").decode()
        sent, left_out = excerpt(_shown(text), self._contract.runtime.result_chars, place)
        row = altered(
            call,
            state=CallState.DONE,
            outcome=outcome,
            text=sent,
            full=text if sent != text else "",
            left_out=left_out,
            ended_at=self._clock.now(),
        )
        await self._journal.write(calls=[row])


def _unfit(tool: Tool, arguments: Json) -> str:
    """What is wrong with the arguments, in one line; empty when they fit."""
    if not isinstance(arguments, dict):
        return f"the arguments of {tool.offered} have to be one JSON object"
    violations = compile_tool_schema(tool.input_schema).violations(arguments)
    return f"the arguments of {tool.offered} do not fit: {violations[0]}" if violations else ""


def _shown(text: str) -> str:
    """A result as the model is told it: with nothing invisible in it. A file's own line ends stay what they are."""
    return "\r\n".join(spelled_out(part, _KEPT) for part in text.split("\r\n"))


def _refusal(gate: Gate) -> str:
    """What a model is told that may not make a call."""
    if gate.expired:
        return "no decision was available in time; go on without this call"
    if gate.withdrawn:
        return f"no decision was taken: {gate.withdrawn}"
    return f"denied by a person: {gate.comment or 'no reason was given'}"


def _amendment(call: CallRow) -> str:
    return f"[a person changed the arguments to {canonical(call.arguments)}]\n" if call.amended else ""
