"""What every store checks before it saves a transition. Nothing is written when one of these fails."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct

from procedo.core.altered import altered
from procedo.core.messages import Event
from procedo.core.model import EMPTY
from procedo.core.state import Run
from procedo.errors import Conflict, StoreError
from procedo.ports import StoredKey

__all__ = ["Position", "as_loaded", "check", "key_taken", "sealed"]


class Position(Struct, frozen=True):
    """How far a stored run has come."""

    revision: int
    seq: int
    head_hash: str
    ended: bool


_FIXED: Final = (
    "id", "sop", "digest", "version", "mode", "host_agent", "starter", "marker", "inputs", "started_at", "key",
    "parent", "retry_of", "pins",
)  # fmt: skip
_fixed: Final = attrgetter(*_FIXED)


def check(stored: Position | None, before: Run | None, after: Run, events: Sequence[Event]) -> None:
    """Raise `Conflict` when the run has moved on since `before`, `StoreError` when the change is not whole."""
    _check_revision(stored, before, after)
    expected = len(events) + (0 if stored is None else stored.seq)
    if not events or after.seq != expected:
        message = f"Run {after.id} counts {after.seq} events, and {len(events)} new ones make {expected}."
        raise StoreError("wrong_count", message, "A transition has at least one event, and each event counts once.")
    if before is not None:
        _check_kept(before, after)


def _check_revision(stored: Position | None, before: Run | None, after: Run) -> None:
    hint = "Nothing was changed. Read the run again: somebody else was first."
    revision = 0 if stored is None else stored.revision
    if stored is not None and stored.ended:
        raise Conflict("run_ended", f"Run {after.id} has ended and never changes.", "Nothing was changed.")
    seen = (0, "") if before is None else (before.revision, before.head_hash)
    if seen != ((0, "") if stored is None else (stored.revision, stored.head_hash)):
        message = f"Run {after.id} is at revision {revision}, and this change was made for revision {seen[0]}."
        raise Conflict("stale_revision", message, hint)
    if after.revision != revision + 1:
        message = f"Run {after.id} is at revision {revision}, and this change would make it {after.revision}."
        raise Conflict("stale_revision", message, hint)


def _check_kept(before: Run, after: Run) -> None:
    """What is fixed stays, and what is open does not vanish unsaid."""
    if _fixed(before) != _fixed(after):
        changed = [name for name in _FIXED if getattr(before, name) != getattr(after, name)]
        raise StoreError("origin_changed", f"Run {after.id} cannot change its {', '.join(changed)}.")
    lost = [*(before.executions.keys() - after.executions.keys()), *(before.gates.keys() - after.gates.keys())]
    if lost:
        message = f"Run {after.id} lost {', '.join(sorted(lost))} without a word about how it ended."
        raise StoreError("lost", message)


def key_taken(known: StoredKey) -> Conflict:
    """The refusal of an idempotency key that came with something else before."""
    message = f"The idempotency key {known.key!r} was used before, and made run {known.run_id}."
    return Conflict("key_taken", message, "Use a new key for another start.")


def sealed(run: Run, head: bytes) -> Run:
    """The run as it is after its transition was written."""
    return altered(run, head_hash=head.hex())


def as_loaded(run: Run) -> Run:
    """The run as a later command finds it: with what is open, and without step states."""
    executions = {execution.id: execution for execution in run.open_executions}
    gates = {gate.id: gate for gate in run.gates.values() if gate.live}
    return altered(run, executions=executions, gates=gates, steps=EMPTY)
