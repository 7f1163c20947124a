"""Codecs of frozen structs, compiled from their type hints when they are first used.

A field that equals its default is left out. Decoding fails closed: an unknown or missing field, or a value of the
wrong type, raises `StoreError`, because a record that is half understood must not drive a run.
"""

import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from procedo.core.model import Json
from procedo.errors import StoreError
from procedo.stores.jsontext import instant, moment, quoted, text, unreadable

__all__ = ["Shape", "shape"]

_Raw: typing.TypeAlias = Callable[[Json], str]
_Write: typing.TypeAlias = Callable[[Any, _Raw], str]
_Decode: typing.TypeAlias = Callable[[Any], Any]


class Shape(Struct, frozen=True):
    """The compiled codec of one type. `write` gets the function that writes raw JSON values."""

    write: _Write
    decode: _Decode


def _only(kind: type, found: Any) -> StoreError:
    return unreadable(f"expected {kind.__name__}, found {type(found).__name__}")


def _plain(kind: type, write: Callable[[Any], str]) -> Shape:
    accepted = (int, float) if kind is float else (kind,)

    def decode_plain(value: Any) -> Any:
        if type(value) not in accepted:
            raise _only(kind, value)
        return value

    return Shape(lambda value, _: write(value), decode_plain)


def _enumerated(kind: type[StrEnum]) -> Shape:
    members = {member.value: member for member in kind}
    written = {member: quoted(member.value) for member in kind}

    def decode_enumerated(value: Any) -> StrEnum:
        try:
            return members[value]
        except (KeyError, TypeError) as error:
            raise unreadable(f"{value!r} is no {kind.__name__}") from error

    return Shape(lambda value, _: written[value], decode_enumerated)


def _optional(inner: Shape) -> Shape:
    write, decode_inner = inner.write, inner.decode
    return Shape(
        lambda value, raw: "null" if value is None else write(value, raw),
        lambda value: None if value is None else decode_inner(value),
    )


def _sequence(inner: Shape) -> Shape:
    write, decode_inner = inner.write, inner.decode

    def decode_sequence(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _only(list, value)
        return tuple(map(decode_inner, value))

    return Shape(lambda value, raw: f"[{','.join([write(item, raw) for item in value])}]", decode_sequence)


def _decode_set(value: Any) -> frozenset[str]:
    if type(value) is not list or not all(type(item) is str for item in value):
        raise unreadable("expected a list of texts")
    return frozenset(value)


def _mapping(key: type, inner: Shape) -> Shape:
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
            raise unreadable(f"a key is no {key.__name__}") from error

    return Shape(write_mapping, decode_mapping)


def _generic(hint: Any) -> Shape:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2 and arguments[1] is types.NoneType:
        return _optional(shape(arguments[0]))
    if origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        return _sequence(shape(arguments[0]))
    if hint == frozenset[str]:
        return Shape(lambda value, _: f"[{','.join(map(quoted, sorted(value)))}]", _decode_set)
    if origin is Mapping and arguments[0] in (int, str):
        return _mapping(arguments[0], shape(arguments[1]))
    raise TypeError(f"no codec for {hint!r}")


_RAW: Final = Shape(lambda value, raw: raw(value), lambda value: value)
_SCALARS: Final[Mapping[Any, Shape]] = {
    Any: _RAW,
    str: _plain(str, quoted),
    int: _plain(int, str),
    float: _plain(float, text),
    bool: _plain(bool, lambda value: "true" if value else "false"),
    datetime: Shape(lambda value, _: f'"{moment(value)}"', instant),
}
_shapes: Final[dict[Any, Shape]] = dict(_SCALARS)


def shape(hint: Any) -> Shape:
    """The codec of a type. Raises `TypeError` for a type that no record has."""
    known = _shapes.get(hint)
    if known is None:
        known = _shapes[hint] = _made(hint)
    return known


def _made(hint: Any) -> Shape:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _enumerated(hint)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _compiled(hint)
    return _generic(hint)


def _default(one: Any) -> Any:
    if one.default is not NODEFAULT:
        return one.default
    return NODEFAULT if one.default_factory is NODEFAULT else one.default_factory()


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
        names[f"write{place}"] = shape(hint).write
        # Raw JSON is compared by identity: `0`, `0.0` and `False` are equal and not the same.
        test = f"item is not default{place}" + ("" if hint is Any else f" and item != default{place}")
        lines += [f"    item = value.{one.name}", f"    if {'True' if default is NODEFAULT else test}:"]
        lines += [f"        parts.append('{quoted(one.name)}:' + {_inlined(hint, place)})"]
    lines += ["    return '{' + ','.join(parts) + '}'"]
    exec("\n".join(lines), names)  # noqa: S102  # made of our own field names only
    return names["write_record"]  # type: ignore[no-any-return]  # defined in the line above


def _compiled(cls: type[Any]) -> Shape:
    hints = typing.get_type_hints(cls)
    decoders = {one.name: shape(hints[one.name]).decode for one in fields(cls)}

    def decode_record(record: Any) -> Any:
        if type(record) is not dict:
            raise _only(cls, record)
        try:
            return cls(**{name: decoders[name](item) for name, item in record.items()})
        except KeyError as error:
            raise unreadable(f"{cls.__name__} has no field {error.args[0]!r}") from error
        except TypeError as error:
            raise unreadable(f"{cls.__name__}: {error}") from error

    return Shape(_writer(cls, hints), decode_record)
