"""Runs, executions, gates and events to JSON and back.

Decoding fails closed: an unknown kind, field or format raises `StoreError`.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from procedo.core.messages import EVENTS, Event
from procedo.core.model import EMPTY, Json, Mode, Scope
from procedo.core.reach import BOUNDLESS, Reaches
from procedo.core.state import End, Held, Parent, Pause, Pending, Principal, Run
from procedo.stores.jsontext import canonical, text, unreadable
from procedo.stores.shapes import shape

__all__ = ["FORMAT", "Body", "Origin", "decode", "decode_event", "encode", "encode_event"]

FORMAT: Final = 1
"""The version of everything that this module writes. A change that an older reader would misread raises it."""

T = TypeVar("T")


class Origin(Struct, frozen=True):
    """What a run is from its first moment and for ever; written once."""

    mode: Mode
    host_agent: str
    starter: Principal
    marker: str
    inputs: Json = None
    can_ask: bool = False
    route: str = ""
    ceiling: tuple[Scope, ...] = ()
    parent: Parent | None = None
    retry_of: str | None = None
    pins: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    lineage: frozenset[str] = frozenset()

    @classmethod
    def of(cls, run: Run) -> "Origin":
        """The origin of a run."""
        return cls(
            mode=run.mode,
            host_agent=run.host_agent,
            starter=run.starter,
            marker=run.marker,
            inputs=run.inputs,
            can_ask=run.can_ask,
            route=run.route,
            ceiling=run.ceiling,
            parent=run.parent,
            retry_of=run.retry_of,
            pins=run.pins,
            lineage=run.lineage,
        )


class Body(Struct, frozen=True):
    """What is left of a run beside its columns and rows; small, and written with each transition.

    `executions` and `gates` are the ids of what is open or live, in the order of opening.
    """

    executions: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    executors: frozenset[str] = frozenset()
    gate_count: int = 0
    pending: tuple[Pending, ...] = ()
    held: tuple[Held, ...] = ()
    slot_reason: str = ""
    pause: Pause | None = None
    end: End | None = None
    reach: Reaches = BOUNDLESS

    @classmethod
    def of(cls, run: Run) -> "Body":
        """The body of a run."""
        return cls(
            tuple(execution.id for execution in run.open_executions),
            tuple(gate.id for gate in run.gates.values() if gate.live),
            run.executors,
            run.gate_count,
            run.pending,
            run.held,
            run.slot_reason,
            run.pause,
            run.end,
            run.reach,
        )


_EVENTS: Final[Mapping[str, type[Any]]] = {kind.__name__: kind for kind in EVENTS}


def encode(value: Any) -> str:
    """A frozen value as the text of a JSON object, in which JSON values keep the order of their keys."""
    return shape(type(value)).write(value, text)


def encode_event(event: Event) -> tuple[str, str]:
    """The kind of an event, and its data as canonical JSON text."""
    return type(event).__name__, shape(type(event)).write(event, canonical)


def decode(cls: type[T], record: Json, version: int = FORMAT) -> T:
    """The value of a JSON object that `encode` made. Raises `StoreError` for anything else."""
    if version != FORMAT:
        raise unreadable(f"its format is {version}, and this procedo reads format {FORMAT}")
    return shape(cls).decode(record)  # type: ignore[no-any-return]  # the shape of a class gives its values


def decode_event(kind: str, data: Json, version: int = FORMAT) -> Event:
    """The event of a record's kind and data."""
    cls = _EVENTS.get(kind)
    if cls is None:
        raise unreadable(f"no event is called {kind!r}")
    return decode(cls, data, version)  # type: ignore[no-any-return]  # every class in the table is an event
