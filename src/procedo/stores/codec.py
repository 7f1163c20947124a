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
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
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
    "encode_event",
    "instant",
    "moment",
    "parsed",
    "quoted",
    "text",
]

FORMAT: Final = 1
"""The version of everything that this module writes. A change that an older reader would misread raises it."""

T = TypeVar("T")
_Raw: typing.TypeAlias = Callable[[Json], str]
_Write: typing.TypeAlias = Callable[[Any, _Raw], str]
_Decode: typing.TypeAlias = Callable[[Any], Any]


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
    """What is left of a run beside its columns and rows; small, and written with each transition.

    `executions` and `gates` are the ids of what is open, in the order of opening.
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

    @classmethod
    def of(cls, run: Run) -> "Body":
        """The body of a run."""
        return cls(
            tuple(execution.id for execution in run.open_executions),
            tuple(gate.id for gate in run.open_gates),
            run.executors,
            run.gate_count,
            run.pending,
            run.held,
            run.slot_reason,
            run.pause,
            run.end,
        )


@dataclass(frozen=True, slots=True)
class _Shape:
    """The compiled codec of one type. `write` gets the function that writes raw JSON values."""

    write: _Write
    decode: _Decode


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


@lru_cache(maxsize=512)  # a transition writes the same time several times
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


def _plain(kind: type, write: Callable[[Any], str]) -> _Shape:
    accepted = (int, float) if kind is float else (kind,)

    def decode_plain(value: Any) -> Any:
        if type(value) not in accepted:
            raise _only(kind, value)
        return value

    return _Shape(lambda value, _: write(value), decode_plain)


def _enumerated(kind: type[StrEnum]) -> _Shape:
    members = {member.value: member for member in kind}
    written = {member: quoted(member.value) for member in kind}

    def decode_enumerated(value: Any) -> StrEnum:
        try:
            return members[value]
        except (KeyError, TypeError) as error:
            raise _unreadable(f"{value!r} is no {kind.__name__}") from error

    return _Shape(lambda value, _: written[value], decode_enumerated)


def _optional(inner: _Shape) -> _Shape:
    write, decode_inner = inner.write, inner.decode
    return _Shape(
        lambda value, raw: "null" if value is None else write(value, raw),
        lambda value: None if value is None else decode_inner(value),
    )


def _sequence(inner: _Shape) -> _Shape:
    write, decode_inner = inner.write, inner.decode

    def decode_sequence(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _only(list, value)
        return tuple(map(decode_inner, value))

    return _Shape(lambda value, raw: f"[{','.join([write(item, raw) for item in value])}]", decode_sequence)


def _decode_set(value: Any) -> frozenset[str]:
    if type(value) is not list or not all(type(item) is str for item in value):
        raise _unreadable("expected a list of texts")
    return frozenset(value)


def _mapping(key: type, inner: _Shape) -> _Shape:
    write, decode_inner = inner.write, inner.decode

    def write_mapping(value: Mapping[Any, Any], raw: _Raw) -> str:
        ordered = sorted((str(name), item) for name, item in value.items())
        return "{" + ",".join([f"{quoted(name)}:{write(item, raw)}" for name, item in ordered]) + "}"

    def decode_mapping(value: Any) -> dict[Any, Any]:
        if type(value) is not dict:
            raise _only(dict, value)
        try:
            return {key(name): decode_inner(item) for name, item in value.items()}
        except ValueError as error:
            raise _unreadable(f"a key is no {key.__name__}") from error

    return _Shape(write_mapping, decode_mapping)


def _generic(hint: Any) -> _Shape:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2 and arguments[1] is types.NoneType:
        return _optional(_shape(arguments[0]))
    if origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        return _sequence(_shape(arguments[0]))
    if hint == frozenset[str]:
        return _Shape(lambda value, _: f"[{','.join(map(quoted, sorted(value)))}]", _decode_set)
    if origin is Mapping and arguments[0] in (int, str):
        return _mapping(arguments[0], _shape(arguments[1]))
    raise TypeError(f"no codec for {hint!r}")


_RAW: Final = _Shape(lambda value, raw: raw(value), lambda value: value)
_SCALARS: Final[Mapping[Any, _Shape]] = {
    Any: _RAW,
    str: _plain(str, quoted),
    int: _plain(int, str),
    float: _plain(float, text),
    bool: _plain(bool, lambda value: "true" if value else "false"),
    datetime: _Shape(lambda value, _: f'"{moment(value)}"', instant),
}
_shapes: Final[dict[Any, _Shape]] = dict(_SCALARS)


def _shape(hint: Any) -> _Shape:
    known = _shapes.get(hint)
    if known is None:
        known = _shapes[hint] = _made(hint)
    return known


def _made(hint: Any) -> _Shape:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _enumerated(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return _compiled(hint)
    return _generic(hint)


def _default(one: Any) -> Any:
    if one.default is not MISSING:
        return one.default
    return MISSING if one.default_factory is MISSING else one.default_factory()


def _inlined(hint: Any, place: int) -> str:
    """The expression that writes a field; the commonest types need no call of ours."""
    if hint is Any:
        return "raw(item)"
    return "quoted(item)" if hint is str else f"write{place}(item, raw)"


def _writer(cls: type[Any], hints: Mapping[str, Any]) -> _Write:
    """The writer of a class, spelled out field by field as `dataclasses` does: a loop costs three times as much.

    Fields come sorted, so that the text is canonical when `raw` is.
    """
    names: dict[str, Any] = {"quoted": quoted}
    lines = ["def write_record(value, raw):", "    parts = []"]
    for place, one in enumerate(sorted(fields(cls), key=lambda one: one.name)):
        hint = hints[one.name]
        default = names[f"default{place}"] = _default(one)
        names[f"write{place}"] = _shape(hint).write
        # Raw JSON is compared by identity: `0`, `0.0` and `False` are equal and not the same.
        test = f"item is not default{place}" + ("" if hint is Any else f" and item != default{place}")
        lines += [f"    item = value.{one.name}", f"    if {'True' if default is MISSING else test}:"]
        lines += [f"        parts.append('{quoted(one.name)}:' + {_inlined(hint, place)})"]
    lines += ["    return '{' + ','.join(parts) + '}'"]
    exec("\n".join(lines), names)  # noqa: S102  # made of our own field names only
    return names["write_record"]  # type: ignore[no-any-return]  # defined in the line above


def _compiled(cls: type[Any]) -> _Shape:
    hints = typing.get_type_hints(cls)
    decoders = {one.name: _shape(hints[one.name]).decode for one in fields(cls)}

    def decode_record(record: Any) -> Any:
        if type(record) is not dict:
            raise _only(cls, record)
        try:
            return cls(**{name: decoders[name](item) for name, item in record.items()})
        except KeyError as error:
            raise _unreadable(f"{cls.__name__} has no field {error.args[0]!r}") from error
        except TypeError as error:
            raise _unreadable(f"{cls.__name__}: {error}") from error

    return _Shape(_writer(cls, hints), decode_record)


# --- the public side -----------------------------------------------------------------------------

_EVENTS: Final[Mapping[str, type[Any]]] = {kind.__name__: kind for kind in EVENTS}


def encode(value: Any) -> str:
    """A frozen value as the text of a JSON object, in which JSON values keep the order of their keys."""
    return _shape(type(value)).write(value, text)


def encode_event(event: Event) -> tuple[str, str]:
    """The kind of an event, and its data as canonical JSON text."""
    return type(event).__name__, _shape(type(event)).write(event, canonical)


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
