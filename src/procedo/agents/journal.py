"""A session's rows as it writes them: the head and whatever changed with it, in one transaction each.

Only the holder of the newest claim writes; everybody else is told so by a `Conflict`.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import anyio

from procedo.agents.ending import PutDown
from procedo.core.altered import altered
from procedo.core.model import EMPTY, Json
from procedo.core.session import CallRow, Message, SessionRow, SessionState, Transcript, TurnRow, cut_off
from procedo.ports import Clock, Store

__all__ = ["Journal"]


class Journal:
    """What is stored of one session, and how more is added to it."""

    def __init__(self, store: Store, clock: Clock, known: Transcript, stopping: Callable[[], bool]) -> None:
        self._store = store
        self._clock = clock
        self.head = known.session
        self.messages = list(known.messages)
        self.turns = {turn.turn: turn for turn in known.turns}
        self.calls = {(call.turn, call.index): call for call in known.calls}
        self._since = clock.now()
        self._stopping = stopping

    def check_going_on(self) -> None:
        """Raises `PutDown` when this process ends, and nothing further is to be begun in it."""
        if self._stopping():
            raise PutDown

    @classmethod
    async def open(
        cls,
        store: Store,
        clock: Clock,
        row: SessionRow,
        known: Transcript | None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> "Journal":
        """Take a session over under the claim and contract of `row`, or begin it.

        A request that was under way when its process ended has used tokens that nobody counted.
        """
        if known is None:
            journal = cls(store, clock, Transcript(row), stopping)
            await journal.write()
            return journal
        head = altered(known.session, fence=row.fence)
        if row.contract is not None:
            head = altered(head, contract=row.contract, contract_digest=row.contract_digest, scripted=row.scripted)
        lost = sum(1 for turn in known.turns if not turn.answered and not turn.lost)
        head = altered(
            head,
            state=SessionState.RUNNING,
            reason="",
            unmeasured=head.unmeasured + lost,
            unpriced=head.unpriced + lost,
        )
        journal = cls(store, clock, altered(known, session=head), stopping)
        await journal.write(turns=[altered(turn, lost=True) for turn in known.turns if not turn.answered])
        return journal

    async def write(
        self,
        *,
        messages: Sequence[Message] = (),
        turns: Sequence[TurnRow] = (),
        calls: Sequence[CallRow] = (),
        head: Mapping[str, Any] = EMPTY,
    ) -> None:
        """Commit rows together with the head, whose changed fields are in `head`.

        Raises `Conflict` when the session was taken over or ended by others. A cancellation does not come in
        between: what is committed and what is known here stay the same.
        """
        now = self._clock.now()
        seconds = self.head.seconds + (now - self._since).total_seconds()
        row = altered(self.head, active_at=now, seconds=seconds, **head)
        with anyio.CancelScope(shield=True):
            await self._store.write(lambda writer: writer.put_session(row, messages, turns, calls))
        self.head, self._since = row, now
        self.messages += messages
        self.turns |= {turn.turn: turn for turn in turns}
        self.calls |= {(call.turn, call.index): call for call in calls}

    async def settle(self, why: str) -> None:
        """Close the calls that were started and will have no result: each may or may not have acted."""
        calls = cut_off(self.calls.values(), why, self._clock.now())
        if calls:
            await self.write(calls=calls)

    def message(self, kind: str, data: Json, library: str) -> Message:
        """The next message, not yet written."""
        return Message(len(self.messages) + 1, kind, data, library, self._clock.now())

    def calls_of(self, turn: int) -> tuple[CallRow, ...]:
        """The calls of one model turn, in the order in which the model made them."""
        return tuple(call for key, call in sorted(self.calls.items()) if key[0] == turn)

    def sums(self, turn: TurnRow) -> dict[str, Any]:
        """The sums of the head with one more answered turn."""
        head = self.head
        measured = turn.input_tokens is not None and turn.output_tokens is not None
        return {
            "turns": head.turns + 1,
            "input_tokens": head.input_tokens + (turn.input_tokens or 0),
            "output_tokens": head.output_tokens + (turn.output_tokens or 0),
            "unmeasured": head.unmeasured + (0 if measured else 1),
            "unpriced": head.unpriced + (0 if turn.cost_usd is not None else 1),
            "cost_usd": str(Decimal(head.cost_usd) + Decimal(turn.cost_usd or 0)),
        }
