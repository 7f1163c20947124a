"""Writes in a store in memory. A transaction that fails is undone step by step."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from procedo.core.access import Login, Token
from procedo.core.altered import altered
from procedo.core.messages import Event
from procedo.core.notice import Telling
from procedo.core.retention import forgotten
from procedo.core.state import Run
from procedo.ports import Attribution, Claim, Definition, Job, Record, StoredKey
from procedo.stores.chain import GENESIS, Link, linked, recorded
from procedo.stores.codec import encode_event
from procedo.stores.jsontext import parsed
from procedo.stores.memory_reader import Contents, Kept, MemoryReader, StoredJob
from procedo.stores.memory_sessions import MemorySessionWriter
from procedo.stores.revision import Position, as_loaded, check, key_taken, sealed

__all__ = ["MemoryWriter"]


def _records(common: Link, first: int, events: Sequence[Event], earlier: Sequence[Record]) -> list[Record]:
    told = [encode_event(event) for event in events]
    links = linked(common, first, told, bytes.fromhex(earlier[-1].hash) if earlier else GENESIS)
    return [
        recorded(common, seq, kind, parsed(written), hashed)
        for seq, ((kind, written), hashed) in enumerate(zip(told, links, strict=True), first)
    ]


class MemoryWriter(MemoryReader, MemorySessionWriter):
    """A `Writer` of the contents. `undo` holds how to take each step back."""

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self.undo: list[Callable[[], Any]] = []
        self.put_some_jobs = False
        """Whether there is a job now that could be claimed earlier than was known before."""

    def _put(self, place: dict[Any, Any], key: Any, value: Any) -> None:
        if key in place:
            old = place[key]
            self.undo.append(lambda: place.__setitem__(key, old))
        else:
            self.undo.append(lambda: place.pop(key))
        place[key] = value

    def save(self, before: Run | None, after: Run, events: Sequence[Event], who: Attribution, now: datetime) -> Run:
        """See `Writer.save`."""
        kept = self._contents.runs.get(after.id)
        position = None
        if kept is not None:
            stored = kept.run
            position = Position(stored.revision, stored.seq, stored.head_hash, stored.end is not None)
        check(position, before, after, events)
        if kept is None:
            kept = Kept(self._number(), after)
            self._put(self._contents.runs, after.id, kept)
        common = Link(after.id, after.revision, now, who)
        records = _records(common, after.seq - len(events) + 1, events, kept.records)
        after = sealed(after, bytes.fromhex(records[-1].hash))
        self.undo.append(partial(setattr, kept, "run", kept.run))
        self.undo.append(partial(kept.records.__delitem__, slice(len(kept.records), None)))
        kept.run = as_loaded(after)
        kept.records += records
        self._keep(kept.executions, after.executions)
        self._keep(kept.gates, after.gates)
        self._keep(kept.steps, after.steps)
        return after

    def _keep(self, place: dict[Any, Any], entries: Mapping[Any, Any]) -> None:
        for key, value in entries.items():
            if place.get(key) is not value:
                self._put(place, key, value)

    def _number(self) -> int:
        self._contents.numbers += 1
        return self._contents.numbers

    def put_definition(self, definition: Definition) -> None:
        """See `Writer.put_definition`."""
        if definition.digest not in self._contents.definitions:
            self._put(self._contents.definitions, definition.digest, definition)

    def put_key(self, key: StoredKey) -> None:
        """See `Writer.put_key`."""
        known = self.key(key.scope, key.key)
        if known is not None and known != key:
            raise key_taken(known)
        self._put(self._contents.keys, (key.scope, key.key), key)

    def put_jobs(self, jobs: Sequence[Job]) -> None:
        """See `Writer.put_jobs`."""
        self.put_some_jobs = True
        for job in jobs:
            if job.id not in self._contents.jobs:
                self._put(self._contents.jobs, job.id, StoredJob(self._number(), job, job.due_at))

    def claim_job(self, owner: str, now: datetime, until: datetime) -> Claim | None:
        """See `Writer.claim_job`."""
        ready = [one for one in self._contents.jobs.values() if not one.done and (one.ready_at or now) <= now]
        if not ready:
            return None
        stored = min(ready, key=lambda one: (one.ready_at is not None, one.ready_at or now, one.number))
        taken = altered(stored, owner=owner, fence=stored.fence + 1, ready_at=until)
        self._put(self._contents.jobs, stored.job.id, taken)
        return Claim(stored.job, taken.fence, until, taken.fence)

    def _change_job(self, claim: Claim, **changes: Any) -> bool:
        stored = self._contents.jobs.get(claim.job.id)
        if stored is None or stored.done or stored.owner is None or stored.fence != claim.fence:
            return False
        self._put(self._contents.jobs, claim.job.id, altered(stored, **changes))
        return True

    def renew_job(self, claim: Claim, now: datetime, until: datetime) -> bool:
        """See `Writer.renew_job`."""
        del now  # only the fence counts: a claim that ran out and that nobody else took is still the newest
        return self._change_job(claim, ready_at=until)

    def finish_job(self, claim: Claim) -> bool:
        """See `Writer.finish_job`."""
        return self._change_job(claim, done=True, owner=None, job=altered(claim.job, payload=None))

    def postpone_job(self, claim: Claim, due_at: datetime) -> bool:
        """See `Writer.postpone_job`."""
        self.put_some_jobs = True
        return self._change_job(claim, owner=None, ready_at=due_at, job=altered(claim.job, due_at=due_at))

    def prune(self, ended_before: datetime) -> int:
        """See `Writer.prune`."""
        contents = self._contents
        ended = {kept.run.id for kept in contents.runs.values() if kept.run.end and kept.run.end.at < ended_before}
        old = forgotten(ended, self._parents())
        runs = {run_id: kept for run_id, kept in contents.runs.items() if run_id not in old}
        keys = {name: key for name, key in contents.keys.items() if key.run_id not in old}
        jobs = {name: stored for name, stored in contents.jobs.items() if stored.job.run_id not in old}
        used = {digest for kept in runs.values() for digest in (kept.run.digest, *kept.run.pins.values())}
        definitions = {digest: one for digest, one in contents.definitions.items() if digest in used}
        owners = {run_id: owner for run_id, owner in contents.owners.items() if run_id not in old}
        tellings = {place: telling for place, telling in contents.tellings.items() if telling.run_id not in old}
        left = {"runs": runs, "keys": keys, "jobs": jobs, "definitions": definitions, "owners": owners}
        left |= {"tellings": tellings}
        for place in [place for place in contents.sessions.transcripts if place[0] in old]:
            transcript = contents.sessions.transcripts.pop(place)
            self.undo.append(partial(contents.sessions.transcripts.__setitem__, place, transcript))
        for name, entries in left.items():
            self.undo.append(partial(setattr, contents, name, getattr(contents, name)))
            setattr(contents, name, entries)
        return len(old)

    def touch(self) -> None:
        """See `Writer.touch`. There is no disk that could refuse it."""

    def put_owner(self, run_id: str, owner: str) -> None:
        """See `Writer.put_owner`."""
        if run_id in self._contents.runs:
            self._put(self._contents.owners, run_id, owner)

    def put_token(self, token: Token) -> None:
        """See `Writer.put_token`."""
        known = self._contents.tokens.get(token.id)
        if known is None:
            self._put(self._contents.tokens, token.id, token)
        elif known.revoked_at is None:
            self._put(self._contents.tokens, token.id, altered(known, revoked_at=token.revoked_at))

    def put_telling(self, telling: Telling) -> None:
        """See `Writer.put_telling`."""
        if telling.run_id in self._contents.runs:
            self._put(self._contents.tellings, (telling.run_id, telling.gate_id, telling.route), telling)

    def put_login(self, login: Login) -> None:
        """See `Writer.put_login`."""
        for digest, known in tuple(self._contents.logins.items()):
            if known.expires_at < login.created_at:
                self.drop_login(digest)
        self._put(self._contents.logins, login.digest, login)

    def drop_login(self, digest: str) -> None:
        """See `Writer.drop_login`."""
        known = self._contents.logins.pop(digest, None)
        if known is not None:
            self.undo.append(partial(self._contents.logins.__setitem__, digest, known))
