"""One value of a field: from TOML, from the text of a bullet, and back to text.

The same value comes out of both forms, and every form that is not understood is an `Unreadable` with a
hint; nothing becomes a default. References stay as they are written: a number or an id.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Final

from procedo.core.model import Admission, Json, Kind, Mode, OnTimeout, Priority, Reveal
from procedo.sopfile import routevalues as routes
from procedo.sopfile.problems import nearest
from procedo.sopfile.reference import Type
from procedo.sopfile.valueforms import Unreadable, count, duration, plain_json, read_json, told

__all__ = ["from_bullet", "from_toml"]

_WORDS: Final[Mapping[Type, tuple[str, ...]]] = {
    Type.KIND: tuple(kind.value for kind in Kind),
    Type.MODE: tuple(mode.value for mode in Mode),
    Type.PRIORITY: tuple(priority.value for priority in Priority),
    Type.ADMISSION: tuple(policy.value for policy in Admission),
    Type.REVEAL: tuple(reveal.value for reveal in Reveal),
    Type.ON_TIMEOUT: tuple(action.value for action in OnTimeout),
}


# --- the two ways in -----------------------------------------------------------------------------


def from_toml(kind: Type, value: Json) -> Json:
    """The value of a TOML key. Raises `Unreadable`."""
    if (reader := _FROM_TOML.get(kind)) is not None:
        return reader(value)
    if kind in _WORDS:
        return _word(kind, value)
    if not isinstance(value, str):
        raise Unreadable(f"expected {kind.value}, got {told(value)}")
    if kind is Type.NAME:
        return value.strip() or None
    return value if kind is Type.TEXT else from_bullet(kind, value)


def from_bullet(kind: Type, text: str) -> Json:
    """The value of a bullet; None where a blank means that the field is unset. Raises `Unreadable`."""
    if (reader := _FROM_BULLET.get(kind)) is not None:
        return reader(text.strip())
    if kind in _WORDS:
        return _word(kind, text.strip())
    return text.strip() or None


# --- readers -------------------------------------------------------------------------------------


def _word(kind: Type, value: Json) -> Json:
    words = _WORDS[kind]
    if value in words:
        return value
    if kind is Type.KIND and value == "approval":
        return Kind.CHECKPOINT.value
    if kind is Type.ON_TIMEOUT and isinstance(value, str) and "approv" in value.casefold():
        raise Unreadable(f"{value!r}: silence is not consent", "use fail, retry or gate", "approval-by-timeout")
    near = nearest(value, words) if isinstance(value, str) else ""
    hint = f"did you mean {near}?" if near else ""
    raise Unreadable(f"expected {kind.value}, got {told(value)}", hint)


def _list_from_toml(value: Json) -> Json:
    if isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value):
        return tuple(item.strip() for item in value)
    raise Unreadable(f"expected a list of names, got {told(value)}")


def _list_from_text(text: str) -> Json:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _bool(value: Json) -> Json:
    if isinstance(value, bool):
        return value
    raise Unreadable(f"expected true or false, got {told(value)}", "write true or false, without quotes")


def _bool_from_text(text: str) -> Json:
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    raise Unreadable(f"expected true or false, got {told(text)}")


def _count_from_toml(least: int) -> Callable[[Json], Json]:
    read = count(least)

    def strict(value: Json) -> Json:
        if isinstance(value, str):
            hint = f"write a whole number, {least} or more, without quotes"
            raise Unreadable(f"expected a whole number, got the text {told(value)}", hint)
        return read(value)

    return strict


def _json_from_text(text: str) -> Json:
    """JSON, else an inline TOML value, else the text itself."""
    if not text:
        raise Unreadable("a value is missing", "write it on the line of the bullet")
    try:
        return read_json(text)
    except Unreadable:
        raise
    except ValueError as error:
        wrong = str(error)
    if "\n" not in text:
        try:
            return plain_json(tomllib.loads(f"value = {text}")["value"])
        except (tomllib.TOMLDecodeError, RecursionError):
            pass
    if text[0] in "{[":
        raise Unreadable(f"neither JSON nor TOML: {wrong}", "write one JSON value")
    return text


def _schema_from_text(text: str) -> Json:
    value = _json_from_text(text)
    if isinstance(value, str):
        raise Unreadable(f"expected a JSON Schema, got the text {told(value)}", "", "bad-schema")
    return value


def _call(value: Json) -> Json:
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str) or not value["tool"].strip():
        raise Unreadable(f"a planned call is one object with `tool` and `args`, got {told(value)}")
    if unknown := [key for key in value if key not in ("tool", "args", "pinned")]:
        raise Unreadable(f"unknown key {unknown[0]!r} in a planned call", "it has tool, args, pinned", "unknown-key")
    return plain_json(value)


def _calls_from_toml(value: Json) -> Json:
    if not isinstance(value, list):
        raise Unreadable(f"expected an array of planned calls, got {told(value)}")
    return tuple(_call(item) for item in value)


def _calls_from_text(text: str) -> Json:
    try:
        value = read_json(text)
    except Unreadable:
        raise
    except ValueError as error:
        raise Unreadable(f"a planned call is one JSON object: {error}", '{"tool": "…", "args": {…}}') from error
    return (_call(value),)


def _wait(value: Json) -> Json:
    if isinstance(value, str) and (found := re.fullmatch(r"until\s+(.+)", value.strip(), re.DOTALL)):
        return {"until": found.group(1).strip()}
    return {"for_s": duration(value)}


def _verify_from_text(text: str) -> Json:
    if text.startswith("agent:"):
        hint = "use a condition over output, or capability:<id>"
        raise Unreadable("verifier agents are not available in this version", hint, "reserved-form")
    if found := re.fullmatch(r"capability:\s*(\S+)(.*)", text, re.DOTALL):
        rest = found.group(2).strip()
        return {"capability": found.group(1), "with": _json_from_text(rest) if rest else None}
    if not text:
        raise Unreadable("a condition or a capability call is missing")
    return {"condition": text}


def _verify_from_toml(value: Json) -> Json:
    if isinstance(value, str):
        return _verify_from_text(value.strip())
    if isinstance(value, dict) and "agent" in value:
        return _verify_from_text("agent:")
    if isinstance(value, dict) and isinstance(value.get("capability"), str) and set(value) <= {"capability", "with"}:
        return {"capability": value["capability"], "with": plain_json(value.get("with"))}
    raise Unreadable(f"expected a condition or {{capability, with}}, got {told(value)}")


def _pos(value: Json) -> Json:
    if isinstance(value, dict) and set(value) == {"x", "y"} and all(_is_number(item) for item in value.values()):
        return (float(value["x"]), float(value["y"]))
    raise Unreadable(f"expected {{x, y}} with numbers, got {told(value)}")


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _condition_from_text(text: str) -> Json:
    if not text:
        raise Unreadable("a condition is missing")
    return text


_FROM_TOML: Final[Mapping[Type, Callable[[Json], Json]]] = {
    Type.LIST: _list_from_toml,
    Type.BOOL: _bool,
    Type.COUNT: _count_from_toml(0),
    Type.POSITIVE: _count_from_toml(1),
    Type.JSON: plain_json,
    Type.SCHEMA: plain_json,
    Type.STEPS: routes.steps,
    Type.TARGET: routes.target,
    Type.GOTO: routes.goto,
    Type.PORTS: routes.ports_from_toml,
    Type.FAILURE: routes.failure_from_toml,
    Type.CALLS: _calls_from_toml,
    Type.DURATION: duration,
    Type.WAIT: _wait,
    Type.VERIFY: _verify_from_toml,
    Type.POS: _pos,
}
_FROM_BULLET: Final[Mapping[Type, Callable[[str], Json]]] = {
    Type.LIST: _list_from_text,
    Type.BOOL: _bool_from_text,
    Type.COUNT: count(0),
    Type.POSITIVE: count(1),
    Type.JSON: _json_from_text,
    Type.SCHEMA: _schema_from_text,
    Type.STEPS: routes.steps_from_text,
    Type.TARGET: routes.target,
    Type.GOTO: routes.goto,
    Type.PORTS: routes.ports_from_text,
    Type.FAILURE: routes.failure_from_text,
    Type.CALLS: _calls_from_text,
    Type.DURATION: duration,
    Type.WAIT: _wait,
    Type.VERIFY: _verify_from_text,
    Type.CONDITION: _condition_from_text,
    Type.TEMPLATE: _condition_from_text,
}
