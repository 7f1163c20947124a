"""The counts behind an agent's budgets, kept by the store: a new assembly starts no new budget."""

from datetime import datetime, timedelta

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
        tokens, usd = await self._store.read(lambda reader: reader.used_in_tree(run_id))
        return Used(tokens, usd)

    async def spent_since(self, agent: str, since: datetime) -> Spent:
        """See `Ledger.spent_since`."""
        usd, unmeasured = await self._store.read(lambda reader: reader.spent_since(agent, since))
        return Spent(usd, unmeasured)
