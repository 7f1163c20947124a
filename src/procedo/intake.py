"""What comes in from outside is whole, fits, and is not too large; or it is refused, and nothing was changed."""

from typing import Final

from procedo.core.model import Json, Sop
from procedo.core.outputs import canonical
from procedo.errors import BadArgument

__all__ = ["DEEPEST", "check_size", "checked_inputs", "key_of"]

DEEPEST: Final = 100
"""How deep a value may be nested: what is deeper could be stored, and then neither masked nor shown."""


def checked_inputs(sop: Sop, inputs: Json, limit: int) -> Json:
    """The inputs with their defaults. Raises `BadArgument` when they do not fit the schema or are too large."""
    value = inputs
    if sop.inputs is not None:
        value = {} if inputs is None else inputs
        if isinstance(value, dict):
            value = {**sop.inputs.defaults, **value}
        violations = sop.inputs.schema.violations(value)
        if violations:
            told = "; ".join(str(v) for v in violations)
            hint = f"sop_describe({sop.name!r}) shows the schema; no run was started."
            places = [(one.path, one.expected, one.found) for one in violations]
            raise BadArgument("bad_inputs", f"The inputs of {sop.name!r} do not fit: {told}.", hint, places)
    check_size("The inputs", value, limit)
    return value


def check_size(what: str, value: Json, limit: int) -> None:
    """A value is kept whole or refused whole.

    Raises `BadArgument` for what is no JSON value, larger than `limit` bytes, or nested deeper than `DEEPEST`.
    """
    many = what.endswith("s")
    try:
        text = canonical(value)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise BadArgument("not_json", f"{what} {'are' if many else 'is'} no JSON value: {error}.") from error
    if size > limit:
        message = f"{what} {'have' if many else 'has'} {size} bytes, the limit is {limit}; nothing was changed."
        raise BadArgument("too_large", message, "Put the data where the steps can read it, and pass its place.")
    # Counting brackets is quick, and few values have so many that their depth has to be looked at.
    if text.count("[") + text.count("{") > DEEPEST and _too_deep(value):
        message = f"{what} {'are' if many else 'is'} nested deeper than {DEEPEST}; nothing was changed."
        raise BadArgument("too_large", message, "Make the value flatter.")


def _too_deep(value: Json) -> bool:
    level: list[Json] = [value]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def key_of(sop: Sop, inputs: Json) -> str | None:
    """The key of a start, of which one run may be live. Raises `BadArgument` when it cannot be made of the inputs."""
    if sop.key is None:
        return None
    try:
        return canonical(sop.key.value({"inputs": inputs}))
    except ValueError as error:
        message = f"The key {sop.key.source!r} of {sop.name!r} has no value for these inputs: {error}."
        raise BadArgument("no_key", message, "Give the inputs that the key is made of.") from error
