"""The limits of a session, read off its rows: what is used up ends it as exhausted, with the limit and its value."""

from decimal import Decimal
from typing import Final

from msgspec import Struct

from procedo.agents.contract import Contract
from procedo.agents.journal import Journal
from procedo.agents.ports import Ledger, Used
from procedo.ports import Clock

__all__ = ["Limits"]


_OWN: Final = " by the agents of this run and its sub-runs"
_ABOVE: Final = " by the agents of the run above and its sub-runs"


class _Budget(Struct, frozen=True):
    name: str
    limit: int | Decimal
    used: int | Decimal
    by: str

    def told(self, how: str) -> str:
        verb = "are" if self.name.endswith("tokens") else "is"
        return f"{self.name} {self.limit} {verb} {how}{self.by} ({self.used})"


class Limits:
    """What a session may still use."""

    def __init__(self, contract: Contract, journal: Journal, ledger: Ledger, clock: Clock) -> None:
        self._runtime = contract.runtime
        self._agent = contract.actor.acting
        self._of = contract.actor.run
        self._sharing = _OWN if contract.actor.depth == 1 else _ABOVE
        self._journal = journal
        self._ledger = ledger
        self._clock = clock

    @property
    def seconds_left(self) -> float:
        """How long it may still be at work; waiting for people does not count."""
        return max(0.0, self._runtime.wall_time_s - self._journal.head.seconds)

    @property
    def out_of_time(self) -> str:
        """The limit that ends a session which worked too long."""
        return f"wall_time_s {self._runtime.wall_time_s:g} is used up"

    async def before_request(self) -> str:
        """The limit that forbids another request to the model, or nothing."""
        if self._journal.head.turns >= self._runtime.iterations:
            return f"iterations {self._runtime.iterations} are used up"
        return next((one.told("used up") for one in await self._budgets() if one.used >= one.limit), "")

    async def after_response(self) -> str:
        """The limit that a response has exceeded, or that cannot be held because it was not measured; or nothing."""
        exceeded = (one.told("exceeded") for one in await self._budgets() if one.used > one.limit)
        return self._unmeasured() or next(exceeded, "")

    async def _budgets(self) -> list[_Budget]:
        """Each budget that is limited, and what is used of it."""
        runtime, head = self._runtime, self._journal.head
        run = await self._run()
        found: list[tuple[str, int | Decimal | None, int | Decimal, str]] = [
            ("total_tokens", runtime.total_tokens, head.input_tokens + head.output_tokens, ""),
            ("cost_usd", runtime.cost_usd, Decimal(head.cost_usd), ""),
            ("cost_usd_per_day", runtime.cost_usd_per_day, await self._today(), ""),
            ("run_tokens", runtime.run_tokens, run.tokens, self._sharing),
            ("run_cost_usd", runtime.run_cost_usd, run.usd, self._sharing),
        ]
        return [_Budget(name, limit, used, by) for name, limit, used, by in found if limit is not None]

    def _unmeasured(self) -> str:
        runtime = self._runtime
        answered = [turn for turn in self._journal.turns.values() if turn.answered]
        tokens = {"total_tokens": runtime.total_tokens, "run_tokens": runtime.run_tokens}
        costs = (runtime.cost_usd, runtime.run_cost_usd, runtime.cost_usd_per_day)
        for name, limit in tokens.items():
            if limit is not None and any(turn.input_tokens is None for turn in answered):
                return f"{name} {limit} cannot be held: the provider tells no usage"
        limited = next((limit for limit in costs if limit is not None), None)
        if limited is not None and any(turn.cost_usd is None for turn in answered):
            return f"a cost of {limited} USD cannot be held: what an answer cost is not known"
        return ""

    async def _today(self) -> Decimal:
        if self._runtime.cost_usd_per_day is None:
            return Decimal(0)
        midnight = self._clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        return (await self._ledger.spent_since(self._agent, midnight)).usd

    async def _run(self) -> Used:
        if self._runtime.run_tokens is None and self._runtime.run_cost_usd is None:
            return Used(0, Decimal(0))
        return await self._ledger.used_in(self._of)
