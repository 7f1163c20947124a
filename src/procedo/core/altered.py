"""Frozen values with other values in some fields: `dataclasses.replace` at a quarter of its price.

A transition makes a dozen copies of a run, so this is most of what it costs to decide. It works for dataclasses
with slots that neither compute fields nor check anything when they are made; others are refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, TypeVar

__all__ = ["altered"]

T = TypeVar("T")

_Copy = Callable[[Any], Any]
_Put = Callable[[Any, Any], None]
_plans: Final[dict[type[Any], tuple[_Copy, Mapping[str, _Put]]]] = {}


def _plan(cls: type[Any]) -> tuple[_Copy, Mapping[str, _Put]]:
    """How to copy a value of this class, spelled out field by field as `dataclasses` does, and how to set a field."""
    names = [one.name for one in fields(cls) if one.init]
    if hasattr(cls, "__post_init__") or set(names) != set(cls.__dict__.get("__slots__", ())):
        raise TypeError(f"{cls.__name__} is no plain value with slots")
    puts: dict[str, _Put] = {name: cls.__dict__[name].__set__ for name in names}
    known: dict[str, Any] = {"new": object.__new__, "cls": cls, **{f"put_{name}": put for name, put in puts.items()}}
    lines = [f"    put_{name}(made, value.{name})" for name in names]
    exec("\n".join(["def copy(value):", "    made = new(cls)", *lines, "    return made"]), known)  # noqa: S102  # made of our own field names only
    return known["copy"], puts


def altered(value: T, /, **changes: Any) -> T:
    """The value with these fields changed. Raises `KeyError` for a field that it does not have."""
    cls = type(value)
    plan = _plans.get(cls)
    if plan is None:
        plan = _plans[cls] = _plan(cls)
    copy, puts = plan
    made: T = copy(value)
    for name, item in changes.items():
        puts[name](made, item)
    return made
