"""The limits of a session, read off its rows: what is used up ends it as exhausted, with the limit and its value."""

from decimal import Decimal

from procedo.agents.contract import Contract
from procedo.agents.journal import Journal
from procedo.agents.ports import Ledger
from procedo.ports import Clock

__all__ = ["Limits"]


class Limits:
    """What a session may still use."""

    def __init__(self, contract: Contract, journal: Journal, ledger: Ledger, clock: Clock) -> None:
        self._runtime = contract.runtime
        self._agent = contract.actor.acting
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
        runtime, head = self._runtime, self._journal.head
        if head.turns >= runtime.iterations:
            return f"iterations {runtime.iterations} are used up"
        if runtime.total_tokens is not None and self._tokens >= runtime.total_tokens:
            return f"total_tokens {runtime.total_tokens} are used up ({self._tokens})"
        if runtime.cost_usd is not None and self._cost >= runtime.cost_usd:
            return f"cost_usd {runtime.cost_usd} is used up ({self._cost})"
        spent = await self._today()
        if runtime.cost_usd_per_day is not None and spent >= runtime.cost_usd_per_day:
            return f"cost_usd_per_day {runtime.cost_usd_per_day} is used up ({spent})"
        return ""

    async def after_response(self) -> str:
        """The limit that a response has exceeded, or that cannot be held because it was not measured; or nothing."""
        runtime = self._runtime
        answered = [turn for turn in self._journal.turns.values() if turn.answered]
        if runtime.total_tokens is not None:
            if self._tokens > runtime.total_tokens:
                return f"total_tokens {runtime.total_tokens} are exceeded ({self._tokens})"
            if any(turn.input_tokens is None for turn in answered):
                return f"total_tokens {runtime.total_tokens} cannot be held: the provider tells no usage"
        if runtime.cost_usd is not None and self._cost > runtime.cost_usd:
            return f"cost_usd {runtime.cost_usd} is exceeded ({self._cost})"
        limited = runtime.cost_usd if runtime.cost_usd is not None else runtime.cost_usd_per_day
        if limited is not None and any(turn.cost_usd is None for turn in answered):
            return f"a cost of {limited} USD cannot be held: what an answer cost is not known"
        spent = await self._today()
        if runtime.cost_usd_per_day is not None and spent > runtime.cost_usd_per_day:
            return f"cost_usd_per_day {runtime.cost_usd_per_day} is exceeded ({spent})"
        return ""

    @property
    def _tokens(self) -> int:
        return self._journal.head.input_tokens + self._journal.head.output_tokens

    @property
    def _cost(self) -> Decimal:
        return Decimal(self._journal.head.cost_usd)

    async def _today(self) -> Decimal:
        if self._runtime.cost_usd_per_day is None:
            return Decimal(0)
        midnight = self._clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        return (await self._ledger.spent_since(self._agent, midnight)).usd
