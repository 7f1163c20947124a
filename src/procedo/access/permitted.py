"""The verbs of a run as one caller may use them: the one place where roles and limits are brought to bear.

Each verb names its role here. A verb without an entry (what the driver calls, what is added later) does not
work through here at all, since this object holds nothing of what the verbs stand on.
"""

from collections.abc import Mapping

from procedo.access.reached import within
from procedo.core.access import Access, Role
from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.core.session import Transcript
from procedo.core.state import Status, Verdict
from procedo.errors import NotFound, Refused
from procedo.ports import Filter, OpenGate, Record, Summary
from procedo.runs import History, Runs, Snapshot, Surface
from procedo.waiting import Progress

__all__ = ["Permitted"]


class Permitted(Runs):
    """`Runs` behind a caller's roles and limits. Every verb raises `Refused` (`not_permitted`) without its role.

    What is beyond the caller's limits does not exist here, and what the caller starts or moves on takes them over.
    """

    def __init__(self, runs: Runs, access: Access) -> None:
        self._runs = within(runs, access.reach)
        self._access = access

    def _at(self, surface: Surface) -> Surface:
        return altered(surface, reach=self._access.reach)

    async def start(self, name: str, inputs: Json, surface: Surface, *, idempotency_key: str | None = None) -> Snapshot:
        """See `Runs.start`."""
        self._access.require(Role.OPERATE)
        try:
            return await self._runs.start(name, inputs, self._at(surface), idempotency_key=idempotency_key)
        except NotFound as error:
            if error.code != "unknown_run":
                raise
            # Admission led to a live run that this caller cannot see.
            message = f"A live run of {name!r} stands for this start, and it belongs to somebody else."
            raise Refused("others_run", message, "Start again when it has ended.") from error

    async def look(self, run_id: str) -> Snapshot:
        """See `Runs.look`."""
        self._access.require(Role.VIEW)
        return await self._runs.look(run_id)

    async def advance(self, run_id: str, execution_id: str, status: str, output: Json, surface: Surface) -> Snapshot:
        """See `Runs.advance`."""
        self._access.require(Role.OPERATE)
        return await self._runs.advance(run_id, execution_id, status, output, self._at(surface))

    async def decide(
        self,
        reference: str,
        verdict: Verdict,
        surface: Surface,
        *,
        value: Json = None,
        comment: str = "",
        revision: int | None = None,
        digest: str | None = None,
        run_id: str | None = None,
        lasting: bool = False,
        break_glass: bool = False,
    ) -> Snapshot:
        """See `Runs.decide`."""
        self._access.require(Role.APPROVE)
        return await self._runs.decide(
            reference,
            verdict,
            self._at(surface),
            value=value,
            comment=comment,
            revision=revision,
            digest=digest,
            run_id=run_id,
            lasting=lasting,
            break_glass=break_glass,
        )

    async def cancel(self, run_id: str, reason: str, surface: Surface) -> Snapshot:
        """See `Runs.cancel`."""
        self._access.require(Role.OPERATE)
        return await self._runs.cancel(run_id, reason, self._at(surface))

    async def hold(self, run_id: str, reason: str, surface: Surface) -> Snapshot:
        """See `Runs.hold`."""
        self._access.require(Role.OPERATE)
        return await self._runs.hold(run_id, reason, self._at(surface))

    async def resume(self, run_id: str, surface: Surface, *, retry: int | None = None) -> Snapshot:
        """See `Runs.resume`."""
        self._access.require(Role.OPERATE)
        return await self._runs.resume(run_id, self._at(surface), retry=retry)

    async def adopt(self, snapshot: Json, surface: Surface) -> Snapshot:
        """See `Runs.adopt`."""
        self._access.require(Role.OPERATE)
        if self._access.reach:
            # Whatever the file says of its run, nobody here has moved it within these limits.
            message = "Whoever is limited to some procedures or agents adopts no runs."
            raise Refused("not_permitted", message, "Somebody without such limits does that.")
        return await self._runs.adopt(snapshot, surface)

    async def state(self, run_id: str, surface: Surface) -> Snapshot:
        """See `Runs.state`."""
        self._access.require(Role.VIEW)
        return await self._runs.state(run_id, self._at(surface))

    async def wait(
        self,
        run_id: str,
        surface: Surface,
        wait_s: float,
        progress: Progress | None = None,
        *,
        past: int | None = None,
    ) -> Snapshot:
        """See `Runs.wait`."""
        self._access.require(Role.VIEW)
        return await self._runs.wait(run_id, self._at(surface), wait_s, progress, past=past)

    async def gate(self, reference: str) -> tuple[OpenGate, Snapshot]:
        """See `Runs.gate`."""
        self._access.require(Role.VIEW)
        return await self._runs.gate(reference)

    async def inbox(self, surface: Surface, *, mine: bool = False) -> tuple[OpenGate, ...]:
        """See `Runs.inbox`."""
        self._access.require(Role.VIEW)
        return await self._runs.inbox(self._at(surface), mine=mine)

    async def list(self, wanted: Filter) -> tuple[Summary, ...]:
        """See `Runs.list`."""
        self._access.require(Role.VIEW)
        return await self._runs.list(wanted)

    async def history(self, run_id: str) -> History:
        """See `Runs.history`."""
        self._access.require(Role.VIEW)
        return await self._runs.history(run_id)

    async def timeline(self, run_id: str, after: int = 0, limit: int | None = None) -> tuple[Record, ...]:
        """See `Runs.timeline`."""
        self._access.require(Role.VIEW)
        return await self._runs.timeline(run_id, after, limit)

    async def accounted(self, snapshot: Snapshot) -> Snapshot:
        """See `Runs.accounted`."""
        self._access.require(Role.VIEW)
        return await self._runs.accounted(snapshot)

    async def transcript(self, run_id: str, execution_id: str) -> Transcript | None:
        """See `Runs.transcript`."""
        self._access.require(Role.VIEW)
        return await self._runs.transcript(run_id, execution_id)

    async def counts(self) -> Mapping[Status, int]:
        """See `Runs.counts`."""
        self._access.require(Role.VIEW)
        return await self._runs.counts()
