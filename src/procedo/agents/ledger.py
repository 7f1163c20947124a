"""The counts behind an agent's budgets, kept by the store: a new assembly starts no new budget."""

from datetime import datetime, timedelta
from decimal import Decimal

from procedo.agents.ports import Spent, Used
from procedo.ports import Store

__all__ = ["StoreLedger"]


class StoreLedger:
    """A `Ledger` over a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take_action(self, agent: str, call: str, limit: int, now: datetime) -> bool:
        """See `Ledger.take_action`."""
        since = now - timedelta(hours=1)
        return await self._store.write(lambda writer: writer.take_action(agent, call, limit, since, now))

    async def used_in(self, run_id: str) -> Used:
        """See `Ledger.used_in`."""
        sessions = await self._store.read(lambda reader: reader.sessions(run_id))
        tokens = sum(session.input_tokens + session.output_tokens for session in sessions)
        return Used(tokens, sum((Decimal(session.cost_usd) for session in sessions), Decimal(0)))

    async def spent_since(self, agent: str, since: datetime) -> Spent:
        """See `Ledger.spent_since`."""
        usd, unmeasured = await self._store.read(lambda reader: reader.spent_since(agent, since))
        return Spent(usd, unmeasured)
