"""One tool call of a session, from the model's words to a stored result.

The order of the checks: result known, name, arguments, interrupted before, ruling and approval, repeat of an
earlier call, budget, slot, write-ahead, run, cap, result. Arguments are validated before anybody is asked, so
that no approver ever sees unvalidated ones; what is started is written before it happens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import anyio

from procedo.agents.contract import Contract
from procedo.agents.journal import Journal
from procedo.agents.parts import OnInterrupted, Tool
from procedo.agents.policy import Verdict as Ruled
from procedo.agents.policy import judge, repeatable
from procedo.agents.ports import Connections, Ledger, ToolDenied, ToolFailed
from procedo.core.model import Json
from procedo.core.outputs import digest
from procedo.core.session import CallRow, CallState, Outcome
from procedo.core.state import Gate, GateKind, Verdict
from procedo.jsonschemas import compile_schema
from procedo.ports import Clock, OutcomeUnknown

__all__ = ["Broken", "Question", "ToolCalls"]

_GRANTED = (Verdict.APPROVE, Verdict.AMEND)


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits for a person: which kind of gate, what is asked, and what the person sees."""

    call: CallRow
    kind: GateKind
    why: str
    content: Json


class Broken(Exception):
    """A person decided that the step fails because of an interrupted call."""


class ToolCalls:
    """Answers the calls of one session. `gates` are the session's gates as they are stored now."""

    def __init__(
        self, contract: Contract, journal: Journal, connections: Connections, ledger: Ledger, clock: Clock
    ) -> None:
        self._contract = contract
        self._journal = journal
        self._connections = connections
        self._ledger = ledger
        self._clock = clock
        self._slots = anyio.CapacityLimiter(max(1, contract.runtime.parallel_calls))
        self.gates: Mapping[tuple[str, GateKind], Gate] = {}

    async def answer(self, call: CallRow) -> Question | None:
        """Bring a call to its end, or return what has to be asked first. Raises `Broken`."""
        if call.state is CallState.DONE:
            return None
        tool = self._contract.tool(call.offered)
        if tool is None:
            names = ", ".join(tool.offered for tool in self._contract.tools) or "none"
            await self._done(call, Outcome.FAILED, f"no such tool: {call.offered!r}; available: {names}")
            return None
        told = _unfit(tool, call.arguments)
        if told:
            await self._done(call, Outcome.FAILED, told)
            return None
        if call.state is CallState.STARTED:
            return await self._interrupted(call, tool)
        return await self._judged(call, tool)

    async def _interrupted(self, call: CallRow, tool: Tool) -> Question | None:
        """The call was started and its result is not known: nothing is repeated silently."""
        if repeatable(tool, call.arguments):
            await self._run(call, tool)
            return None
        asking = self._contract.runtime.on_interrupted is OnInterrupted.GATE and self._contract.approvals.askable
        if not asking:
            await self._done(call, Outcome.INTERRUPTED, "interrupted: it may or may not have acted; not repeated")
            return None
        gate = self.gates.get((call.key, GateKind.INTERRUPTED))
        if gate is None or gate.live:
            why = f"{tool.offered} was called and its result is not known"
            return Question(call, GateKind.INTERRUPTED, why, self._shown(call))
        if gate.verdict is Verdict.REPEAT:
            await self._run(call, tool)
        elif gate.verdict is Verdict.FAIL:
            raise Broken(gate.comment or f"the outcome of {tool.offered} is unknown")
        else:
            await self._done(call, Outcome.INTERRUPTED, "interrupted: a person said to go on without its result")
        return None

    async def _judged(self, call: CallRow, tool: Tool) -> Question | None:
        ruling = judge(self._contract, tool, call.arguments)
        verdict, reason = ruling.verdict, ruling.reason
        if verdict is Ruled.AUTO and self._was_interrupted(call) and not repeatable(tool, call.arguments):
            reason = f"an earlier {tool.offered!r} with these arguments may have acted already"
            verdict = Ruled.ASK if self._contract.approvals.askable else Ruled.DENY
        if verdict is Ruled.DENY:
            await self._done(replace(call, verdict="deny"), Outcome.DENIED, reason)
            return None
        if verdict is Ruled.ASK and not self._granted_before(call):
            return await self._asked(replace(call, verdict="ask"), tool, reason)
        await self._run(replace(call, verdict=verdict.value), tool)
        return None

    async def _asked(self, call: CallRow, tool: Tool, reason: str) -> Question | None:
        gate = self.gates.get((call.key, GateKind.TOOL_CALL))
        if gate is None or gate.live:
            actor = self._contract.actor
            why = f"May {actor.acting} call {tool.offered} in step {actor.execution.partition('.')[0]}? {reason}."
            return Question(call, GateKind.TOOL_CALL, why, self._shown(call))
        if gate.verdict not in _GRANTED:
            told = gate.comment or gate.withdrawn or "no reason was given"
            await self._done(call, Outcome.DENIED, f"denied by a person: {told}")
            return None
        if gate.verdict is Verdict.AMEND:
            told = _unfit(tool, gate.value)
            if told:
                await self._done(call, Outcome.FAILED, f"the arguments that a person put in do not fit: {told}")
                return None
            call = replace(call, arguments=gate.value, digest=digest([call.tool, gate.value]), amended=True)
        await self._run(call, tool)
        return None

    def _shown(self, call: CallRow) -> Json:
        actor = self._contract.actor
        return {
            "tool": call.offered,
            "identity": call.tool,
            "arguments": call.arguments,
            "arguments_digest": call.digest,
            "acting": actor.acting,
            "delegating": actor.delegating,
        }

    def _granted_before(self, call: CallRow) -> bool:
        """True when a person allowed this very call, arguments included, for the rest of the session."""
        return any(
            gate.lasting and gate.verdict is Verdict.APPROVE and _digest_at(gate) == call.digest
            for gate in self.gates.values()
        )

    def _others(self, call: CallRow) -> Sequence[CallRow]:
        same = [row for row in self._journal.calls.values() if row.digest == call.digest]
        return [row for row in same if (row.turn, row.index) < (call.turn, call.index)]

    def _was_interrupted(self, call: CallRow) -> bool:
        return any(row.outcome is Outcome.INTERRUPTED for row in self._others(call))

    async def _run(self, call: CallRow, tool: Tool) -> None:
        if await self._is_repeat(call, tool):
            return
        limit = self._contract.security.actions_per_hour
        actor = self._contract.actor
        effect = f"{actor.run}:{actor.execution}:{call.key}"
        if limit is not None and not await self._ledger.take_action(actor.acting, effect, limit, self._clock.now()):
            await self._done(call, Outcome.DENIED, f"the budget of {limit} actions per hour is used up")
            return
        async with self._slots:
            now = self._clock.now()
            call = replace(call, state=CallState.STARTED, started_at=now, attempts=call.attempts + 1)
            await self._journal.write(calls=[call])
            await self._perform(call, tool, effect)

    async def _is_repeat(self, call: CallRow, tool: Tool) -> bool:
        exempt = tool.repeats or call.tool in self._contract.runtime.dedup_exempt
        if exempt or call.attempts or not any(row.outcome is Outcome.SUCCESS for row in self._others(call)):
            return False
        await self._done(call, Outcome.SUCCESS, "repeat of an earlier identical call; its result above still holds")
        return True

    async def _perform(self, call: CallRow, tool: Tool, effect: str) -> None:
        try:
            with anyio.fail_after(tool.time_limit_s):
                text, outcome = await self._connections.call(tool.id, call.arguments, effect), Outcome.SUCCESS
        except TimeoutError:
            text, outcome = f"no answer within {tool.time_limit_s:g} s; it may have acted", Outcome.INTERRUPTED
        except OutcomeUnknown as error:
            text, outcome = f"{error}; it may have acted", Outcome.INTERRUPTED
        except ToolDenied as error:
            text, outcome = str(error), Outcome.DENIED
        except (ToolFailed, ValueError, OSError) as error:
            text, outcome = str(error) or type(error).__name__, Outcome.FAILED
        except anyio.get_cancelled_exc_class():
            # It was cut off in the middle, so what it did is not known; a short write outlives the cancellation.
            with anyio.CancelScope(shield=True):
                await self._done(call, Outcome.INTERRUPTED, "cancelled while it ran; it may have acted")
            raise
        with anyio.CancelScope(shield=True):
            await self._done(call, outcome, text)

    async def _done(self, call: CallRow, outcome: Outcome, text: str) -> None:
        limit = self._contract.runtime.result_chars
        sent, left_out = _capped(text, limit, self._contract.actor.run, call)
        row = replace(
            call,
            state=CallState.DONE,
            outcome=outcome,
            text=sent,
            full=text if left_out else "",
            left_out=left_out,
            ended_at=self._clock.now(),
        )
        await self._journal.write(calls=[row])


def _unfit(tool: Tool, arguments: Json) -> str:
    """What is wrong with the arguments, in one line; empty when they fit."""
    if not isinstance(arguments, dict):
        return f"the arguments of {tool.offered} have to be one JSON object"
    violations = compile_schema(tool.input_schema).violations(arguments)
    return f"the arguments of {tool.offered} do not fit: {violations[0]}" if violations else ""


def _digest_at(gate: Gate) -> Json:
    return gate.content.get("arguments_digest") if isinstance(gate.content, dict) else None


def _capped(text: str, limit: int, run_id: str, call: CallRow) -> tuple[str, int]:
    """The beginning and the end of a long text, and how many characters are left out between them."""
    if len(text) <= limit:
        return text, 0
    head, tail = limit * 3 // 4, limit // 4
    left_out = len(text) - head - tail
    note = f"\n[{left_out} characters left out; the whole text is in the record of run {run_id}, call {call.key}]\n"
    return f"{text[:head]}{note}{text[len(text) - tail :]}", left_out
