"""Frozen values to JSON and back: runs, executions, gates, events.

One codec is compiled for each class, from its type hints, when it is first used. A field that equals its
default is left out. Decoding fails closed: an unknown field, kind or format, a missing field or a value
of the wrong type raises `StoreError`, because a record that is half understood must not drive a run.
"""

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final, TypeVar

from procedo.core.messages import EVENTS, Event
from procedo.core.model import Json, Mode
from procedo.core.state import End, Held, Parent, Pause, Pending, Principal, Run
from procedo.errors import StoreError

__all__ = [
    "FORMAT",
    "Body",
    "Origin",
    "canonical",
    "decode",
    "decode_event",
    "encode",
    "instant",
    "moment",
    "parsed",
    "text",
]

FORMAT: Final = 1
"""The version of everything that this module writes. A change that an older reader would misread raises it."""

T = TypeVar("T")
Encoder: typing.TypeAlias = Callable[[Any], Json]
Decoder: typing.TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a run is from its first moment and for ever; written once."""

    mode: Mode
    host_agent: str
    starter: Principal
    marker: str
    inputs: Json = None
    parent: Parent | None = None
    retry_of: str | None = None

    @classmethod
    def of(cls, run: Run) -> "Origin":
        """The origin of a run."""
        return cls(run.mode, run.host_agent, run.starter, run.marker, run.inputs, run.parent, run.retry_of)


@dataclass(frozen=True, slots=True)
class Body:
    """What is left of a run beside its columns and rows; small, and written with each transition."""

    executors: frozenset[str] = frozenset()
    gate_count: int = 0
    pending: tuple[Pending, ...] = ()
    held: tuple[Held, ...] = ()
    slot_reason: str = ""
    pause: Pause | None = None
    end: End | None = None

    @classmethod
    def of(cls, run: Run) -> "Body":
        """The body of a run."""
        return cls(run.executors, run.gate_count, run.pending, run.held, run.slot_reason, run.pause, run.end)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The compiled codec of one class."""

    encode: Encoder
    decode: Decoder


# --- text ----------------------------------------------------------------------------------------

# Plain ASCII: a text that holds half a surrogate pair is legal in JSON, and SQLite could not keep it.
_TEXT: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False, default=dict)
_CANONICAL: Final = json.JSONEncoder(
    separators=(",", ":"), allow_nan=False, check_circular=False, sort_keys=True, default=dict
)


def _written(encoder: json.JSONEncoder, value: Json) -> str:
    try:
        return encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"A value cannot be kept, because it is no JSON: {error}."
        raise StoreError("not_json", message, "Numbers must be finite, keys text, nesting moderate.") from error


def text(value: Json) -> str:
    """The compact JSON text of a value, its keys in their own order."""
    return _written(_TEXT, value)


def canonical(value: Json) -> str:
    """The one JSON text of a value for hashing: sorted keys, no blanks, ASCII."""
    return _written(_CANONICAL, value)


def parsed(stored: str) -> Json:
    """The value of a stored text."""
    try:
        return json.loads(stored)
    except (TypeError, ValueError, RecursionError) as error:
        raise _unreadable(f"it is no JSON: {error}") from error


def moment(value: datetime) -> str:
    """A time as fixed-width UTC text, so that the order of texts is the order of times."""
    if value.tzinfo is not UTC:
        if value.tzinfo is None:
            raise StoreError("naive_time", f"The time {value.isoformat()} has no time zone.", "Times are UTC.")
        value = value.astimezone(UTC)
    return value.isoformat(timespec="microseconds")[:26] + "Z"


def instant(stored: str) -> datetime:
    """The time of a stored text."""
    try:
        value = datetime.fromisoformat(stored)
    except (TypeError, ValueError) as error:
        raise _unreadable(f"{stored!r} is no time") from error
    if value.tzinfo is None:
        raise _unreadable(f"the time {stored!r} has no time zone")
    return value


def _unreadable(reason: str) -> StoreError:
    hint = "It was changed from outside, or written by a newer procedo: run `procedo audit verify`, or update."
    return StoreError("unreadable_record", f"A stored record cannot be read: {reason}.", hint)


# --- compiling -----------------------------------------------------------------------------------


def _only(kind: type, found: Any) -> StoreError:
    return _unreadable(f"expected {kind.__name__}, found {type(found).__name__}")


def _plain(kind: type) -> Decoder:
    accepted = (int, float) if kind is float else (kind,)

    def decode_plain(value: Any) -> Any:
        if type(value) not in accepted:
            raise _only(kind, value)
        return value

    return decode_plain


def _enumerated(kind: type[StrEnum]) -> Decoder:
    members = {member.value: member for member in kind}

    def decode_enumerated(value: Any) -> StrEnum:
        try:
            return members[value]
        except (KeyError, TypeError) as error:
            raise _unreadable(f"{value!r} is no {kind.__name__}") from error

    return decode_enumerated


def _same(value: Any) -> Any:
    return value


def _optional(inner: _Shape) -> _Shape:
    encode_inner, decode_inner = inner.encode, inner.decode
    return _Shape(
        lambda value: None if value is None else encode_inner(value),
        lambda value: None if value is None else decode_inner(value),
    )


def _sequence(inner: _Shape) -> _Shape:
    encode_inner, decode_inner = inner.encode, inner.decode

    def decode_sequence(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _only(list, value)
        return tuple(map(decode_inner, value))

    return _Shape(lambda value: list(map(encode_inner, value)), decode_sequence)


def _set_of_text(value: Any) -> frozenset[str]:
    if type(value) is not list or not all(type(item) is str for item in value):
        raise _unreadable("expected a list of texts")
    return frozenset(value)


def _mapping(key: type, inner: _Shape) -> _Shape:
    encode_inner, decode_inner = inner.encode, inner.decode

    def decode_mapping(value: Any) -> dict[Any, Any]:
        if type(value) is not dict:
            raise _only(dict, value)
        try:
            return {key(name): decode_inner(item) for name, item in value.items()}
        except ValueError as error:
            raise _unreadable(f"a key is no {key.__name__}") from error

    return _Shape(lambda value: {str(name): encode_inner(item) for name, item in value.items()}, decode_mapping)


def _generic(hint: Any) -> _Shape:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2 and arguments[1] is types.NoneType:
        return _optional(_shape(arguments[0]))
    if origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        return _sequence(_shape(arguments[0]))
    if hint == frozenset[str]:
        return _Shape(sorted, _set_of_text)
    if origin is Mapping and arguments[0] in (int, str):
        return _mapping(arguments[0], _shape(arguments[1]))
    raise TypeError(f"no codec for {hint!r}")


_shapes: Final[dict[Any, _Shape]] = {}


def _shape(hint: Any) -> _Shape:
    known = _shapes.get(hint)
    if known is None:
        known = _shapes[hint] = _made(hint)
    return known


def _made(hint: Any) -> _Shape:
    if hint is Any:
        return _Shape(_same, _same)
    if hint in (str, int, float, bool):
        return _Shape(_same, _plain(hint))
    if hint is datetime:
        return _Shape(moment, instant)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _Shape(str, _enumerated(hint))
    if is_dataclass(hint) and isinstance(hint, type):
        return _compiled(hint)
    return _generic(hint)


def _default(one: Any) -> Any:
    if one.default is not MISSING:
        return one.default
    return MISSING if one.default_factory is MISSING else one.default_factory()


def _compiled(cls: type[Any]) -> _Shape:
    hints = typing.get_type_hints(cls)
    names = [one.name for one in fields(cls)]
    shapes = {name: _shape(hints[name]) for name in names}
    specs = [(n, _default(one), hints[n] is Any, shapes[n].encode) for n, one in zip(names, fields(cls), strict=True)]
    # `attrgetter` of one name gives the bare value, of several a tuple.
    get: Callable[[Any], Any] = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    decoders = {name: shape.decode for name, shape in shapes.items()}

    def encode_record(value: Any) -> dict[str, Json]:
        record = {}
        for (name, default, raw, encode_field), item in zip(specs, get(value), strict=True):
            # Raw JSON is compared by identity: `0`, `0.0` and `False` are equal and not the same.
            if item is default or (not raw and item == default):
                continue
            record[name] = encode_field(item)
        return record

    def decode_record(record: Any) -> Any:
        if type(record) is not dict:
            raise _only(cls, record)
        try:
            return cls(**{name: decoders[name](item) for name, item in record.items()})
        except KeyError as error:
            raise _unreadable(f"{cls.__name__} has no field {error.args[0]!r}") from error
        except TypeError as error:
            raise _unreadable(f"{cls.__name__}: {error}") from error

    if not names:
        return _Shape(lambda _: {}, decode_record)
    return _Shape(encode_record, decode_record)


# --- the public side -----------------------------------------------------------------------------

_EVENTS: Final[Mapping[str, type[Any]]] = {kind.__name__: kind for kind in EVENTS}


def encode(value: Any) -> dict[str, Json]:
    """A frozen value as a JSON object; fields that equal their default are left out."""
    return _shape(type(value)).encode(value)  # type: ignore[no-any-return]  # the shape of a class makes objects


def decode(cls: type[T], record: Json, version: int = FORMAT) -> T:
    """The value of a JSON object that `encode` made. Raises `StoreError` for anything else."""
    if version != FORMAT:
        raise _unreadable(f"its format is {version}, and this procedo reads format {FORMAT}")
    return _shape(cls).decode(record)  # type: ignore[no-any-return]  # the shape of a class gives its values


def decode_event(kind: str, data: Json, version: int = FORMAT) -> Event:
    """The event of a record's kind and data."""
    cls = _EVENTS.get(kind)
    if cls is None:
        raise _unreadable(f"no event is called {kind!r}")
    return decode(cls, data, version)  # type: ignore[no-any-return]  # every class in the table is an event
