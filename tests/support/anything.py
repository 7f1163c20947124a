"""Arbitrary values of the frozen classes that are stored, from their type hints."""

import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

__all__ = ["anything", "json_values"]


def json_values() -> st.SearchStrategy[Any]:
    """JSON values, halves of surrogate pairs included."""
    texts = st.text(st.characters(exclude_categories=()), max_size=5)
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
    )


_SCALARS: Mapping[Any, st.SearchStrategy[Any]] = {
    Any: json_values(),
    str: st.text(max_size=8),
    int: st.integers(0, 1000),
    float: st.floats(0, 1000),
    bool: st.booleans(),
    datetime: st.datetimes(timezones=st.just(UTC)),
}


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(hint)
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = typing.get_type_hints(hint)
        return st.builds(hint, **{one.name: anything(hints[one.name]) for one in fields(hint)})
    return _generic(typing.get_origin(hint), typing.get_args(hint))


def _generic(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(st.none() if one is types.NoneType else anything(one) for one in arguments))
    if origin is tuple:
        return st.lists(anything(arguments[0]), max_size=3).map(tuple)
    if origin is frozenset:
        return st.frozensets(anything(arguments[0]), max_size=3)
    if origin is Mapping:
        return st.dictionaries(anything(arguments[0]), anything(arguments[1]), max_size=3)
    raise TypeError(f"nothing is known about {origin}[{arguments}]")
