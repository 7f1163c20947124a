"""One value of a field: from TOML, from the text of a bullet, and back to text.

The same value comes out of both forms, and every form that is not understood is an `Unreadable` with a
hint; nothing becomes a default. References stay as they are written: a number or an id.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, time
from typing import Final, TypeAlias

from procedo.core.model import Admission, Json, Kind, Mode, OnTimeout, Priority, Reveal
from procedo.duration import seconds
from procedo.sopfile.problems import nearest
from procedo.sopfile.reference import Type

__all__ = ["END", "ID", "Reference", "Unreadable", "duration", "from_bullet", "from_toml", "plain_json", "reference"]

Reference: TypeAlias = "int | str"
END: Final = "end"
ID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")

_LONGEST: Final = 10 * 366 * 86400
_FAILURE: Final = re.compile(r"(retry|goto|backoff)\s*[:\s]\s*(\S+)")
_WORDS: Final[Mapping[Type, tuple[str, ...]]] = {
    Type.KIND: tuple(kind.value for kind in Kind),
    Type.MODE: tuple(mode.value for mode in Mode),
    Type.PRIORITY: tuple(priority.value for priority in Priority),
    Type.ADMISSION: tuple(policy.value for policy in Admission),
    Type.REVEAL: tuple(reveal.value for reveal in Reveal),
    Type.ON_TIMEOUT: tuple(action.value for action in OnTimeout),
}


class Unreadable(ValueError):
    """A value that a field cannot take; `code` is that of the problem."""

    def __init__(self, message: str, hint: str = "", code: str = "bad-value") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


# --- the two ways in -----------------------------------------------------------------------------


def from_toml(kind: Type, value: Json) -> Json:
    """The value of a TOML key. Raises `Unreadable`."""
    if (reader := _FROM_TOML.get(kind)) is not None:
        return reader(value)
    if kind in _WORDS:
        return _word(kind, value)
    if not isinstance(value, str):
        raise Unreadable(f"expected {kind.value}, got {_told(value)}")
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


def reference(value: Json) -> Reference:
    """A step reference: a number from 1, or an id. Raises `Unreadable`."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    text = value.strip() if isinstance(value, str) else ""
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    if ID.fullmatch(text):
        return text
    raise Unreadable(f"expected a step number or id, got {_told(value)}")


def duration(value: Json) -> float:
    """Seconds. Raises `Unreadable`."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    try:
        length = seconds(value)
    except ValueError as error:
        raise Unreadable(f"expected a duration, got {_told(value)}", "write 90s, 15m, 2h, 1d, or seconds") from error
    if not 0 < length <= _LONGEST:
        raise Unreadable(f"{_told(value)} is no usable duration", "more than 0 and at most ten years")
    return length


def plain_json(value: Json) -> Json:
    """A TOML value as JSON: dates and times become their text."""
    if isinstance(value, dict):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_json(item) for item in value]
    return value.isoformat() if isinstance(value, date | time) else value


# --- readers -------------------------------------------------------------------------------------


def _told(value: Json) -> str:
    text = json.dumps(plain_json(value), ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


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
    raise Unreadable(f"expected {kind.value}, got {_told(value)}", hint)


def _list_from_toml(value: Json) -> Json:
    if isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value):
        return tuple(item.strip() for item in value)
    raise Unreadable(f"expected a list of names, got {_told(value)}")


def _list_from_text(text: str) -> Json:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _bool(value: Json) -> Json:
    if isinstance(value, bool):
        return value
    raise Unreadable(f"expected true or false, got {_told(value)}", "write it without quotes")


def _bool_from_text(text: str) -> Json:
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    raise Unreadable(f"expected true or false, got {_told(text)}")


def _count(least: int) -> Callable[[Json], Json]:
    def read(value: Json) -> Json:
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**53:
            return value
        raise Unreadable(f"expected a whole number, {least} or more, got {_told(value)}")

    return read


def _count_from_toml(least: int) -> Callable[[Json], Json]:
    read = _count(least)

    def strict(value: Json) -> Json:
        if isinstance(value, str):
            raise Unreadable(f"expected a whole number, got the text {_told(value)}", "write it without quotes")
        return read(value)

    return strict


def _json_from_text(text: str) -> Json:
    """JSON, else an inline TOML value, else the text itself."""
    if not text:
        raise Unreadable("a value is missing", "write it on the line of the bullet")
    try:
        return json.loads(text)
    except ValueError as error:
        wrong = str(error)
    if "\n" not in text:
        try:
            return plain_json(tomllib.loads(f"value = {text}")["value"])
        except tomllib.TOMLDecodeError:
            pass
    if text[0] in "{[":
        raise Unreadable(f"neither JSON nor TOML: {wrong}", "write one JSON value")
    return text


def _schema_from_text(text: str) -> Json:
    value = _json_from_text(text)
    if isinstance(value, str):
        raise Unreadable(f"expected a JSON Schema, got the text {_told(value)}", "", "bad-schema")
    return value


def _steps(value: Json) -> Json:
    if isinstance(value, str):
        value = [item for item in value.split(",") if item.strip()]
    items = value if isinstance(value, list) else [value]
    if not items:
        return ()
    return tuple(dict.fromkeys(reference(item) for item in items))


def _steps_from_text(text: str) -> Json:
    if not text:
        raise Unreadable("a step is missing", "write numbers or ids, separated by commas")
    return _steps(text)


def _target(value: Json) -> Json:
    return END if isinstance(value, str) and value.strip() == END else reference(value)


def _goto(value: Json) -> Json:
    if isinstance(value, dict) and set(value) == {"goto"}:
        inner = value["goto"]
        value = inner["step"] if isinstance(inner, dict) and set(inner) == {"step"} else inner
    if isinstance(value, str):
        found = re.fullmatch(r"\s*goto\s*[:\s]\s*(\S+)\s*", value)
        if found is None:
            raise Unreadable(f"expected `goto:` with a step, got {_told(value)}", "write goto:7")
        value = found.group(1)
    return reference(value)


def _ports_from_toml(value: Json) -> Json:
    if not isinstance(value, list) or not all(isinstance(port, dict) for port in value):
        raise Unreadable(f"expected an array of ports, got {_told(value)}", "[[steps.routing.switch]]")
    return tuple(_port(port) for port in value)


def _port(port: Mapping[str, Json]) -> Json:
    known = ("name", "when", "goto")
    if unknown := [key for key in port if key not in known]:
        near = nearest(unknown[0], known)
        raise Unreadable(
            f"unknown key {unknown[0]!r} in a port", f"did you mean {near}?" if near else "", "unknown-key"
        )
    name, when = port.get("name"), port.get("when", "")
    if not isinstance(name, str) or not name.strip():
        raise Unreadable("a port has no name")
    if not isinstance(when, str):
        raise Unreadable(f"the guard of port {name!r} is no text")
    if "goto" not in port:
        raise Unreadable(f"port {name!r} has no target", "goto = a step number or id, or end")
    return {"name": name.strip(), "when": when.strip() or None, "goto": _target(port["goto"])}


def _ports_from_text(text: str) -> Json:
    ports = tuple(_port_from_text(part) for part in _split_outside_quotes(text, ";") if part.strip())
    if not ports:
        raise Unreadable("a switch needs ports", "name>guard>target; other>>target")
    return ports


def _port_from_text(text: str) -> Json:
    """`name>guard>target`: the name ends at the first `>`, the target begins at the last, so a guard may hold more."""
    parts = _split_outside_quotes(text, ">")
    if len(parts) < 3:
        raise Unreadable(f"port {text.strip()!r} is not name>guard>target", "an empty guard is the catch-all: other>>4")
    name, guard, target = parts[0].strip(), ">".join(parts[1:-1]).strip(), parts[-1].strip()
    if not name:
        raise Unreadable(f"port {text.strip()!r} has no name")
    try:
        goto = _target(target)
    except Unreadable as error:
        hint = "the text behind the last `>` is the target; the form in SOP.toml has no such limit"
        raise Unreadable(f"port {name!r} has no target: {error.message}", hint) from error
    return {"name": name, "when": guard or None, "goto": goto}


def _split_outside_quotes(text: str, sign: str) -> list[str]:
    parts, start, quote = [], 0, ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == sign:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _failure_from_text(text: str) -> Json:
    rule: dict[str, Json] = {"retries": 0, "backoff_s": 0.0, "goto": None}
    if text == "fail":
        return rule
    found = dict(_FAILURE.findall(text))
    if not found or _FAILURE.sub("", text).strip() or not found.keys() & {"retry", "goto"}:
        near = nearest(
            text.split(":", maxsplit=1)[0].split(maxsplit=1)[0] if text.split() else "", ("fail", "retry", "goto")
        )
        hint = f"did you mean {near}?" if near else "write fail, retry:3, retry:3 backoff:30s or goto:7"
        raise Unreadable(f"expected `fail`, `retry:n` or `goto:n`, got {_told(text)}", hint)
    return _failure(found, rule)


def _failure(found: Mapping[str, Json], rule: dict[str, Json]) -> Json:
    if "retry" in found:
        rule["retries"] = _count(1)(found["retry"])
    if "backoff" in found:
        if "retry" not in found:
            raise Unreadable("backoff without retry", "write retry:3 backoff:30s")
        rule["backoff_s"] = duration(found["backoff"])
    if "goto" in found:
        rule["goto"] = reference(found["goto"])
    return rule


def _failure_from_toml(value: Json) -> Json:
    if isinstance(value, str):
        return _failure_from_text(value.strip())
    shapes: Mapping[str, tuple[str, ...]] = {"retry": ("max", "backoff"), "goto": ("step",)}
    if not isinstance(value, dict) or not value or not all(isinstance(item, dict) for item in value.values()):
        raise Unreadable(f"expected fail, {{retry={{max=n}}}} or {{goto={{step=n}}}}, got {_told(value)}")
    for word, table in value.items():
        if word not in shapes or not set(table) <= set(shapes[word]) or shapes[word][0] not in table:
            raise Unreadable(f"{word!r} is not understood here", "{retry={max=3, backoff='30s'}} or {goto={step=7}}")
    found = {word: table[shapes[word][0]] for word, table in value.items()}
    if "backoff" in value.get("retry", {}):
        found["backoff"] = value["retry"]["backoff"]
    return _failure(found, {"retries": 0, "backoff_s": 0.0, "goto": None})


def _call(value: Json) -> Json:
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str) or not value["tool"].strip():
        raise Unreadable(f"a planned call is one object with `tool` and `args`, got {_told(value)}")
    if unknown := [key for key in value if key not in ("tool", "args", "pinned")]:
        raise Unreadable(f"unknown key {unknown[0]!r} in a planned call", "it has tool, args, pinned", "unknown-key")
    return plain_json(value)


def _calls_from_toml(value: Json) -> Json:
    if not isinstance(value, list):
        raise Unreadable(f"expected an array of planned calls, got {_told(value)}")
    return tuple(_call(item) for item in value)


def _calls_from_text(text: str) -> Json:
    try:
        value = json.loads(text)
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
    raise Unreadable(f"expected a condition or {{capability, with}}, got {_told(value)}")


def _pos(value: Json) -> Json:
    if isinstance(value, dict) and set(value) == {"x", "y"} and all(_is_number(item) for item in value.values()):
        return (float(value["x"]), float(value["y"]))
    raise Unreadable(f"expected {{x, y}} with numbers, got {_told(value)}")


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
    Type.STEPS: _steps,
    Type.TARGET: _target,
    Type.GOTO: _goto,
    Type.PORTS: _ports_from_toml,
    Type.FAILURE: _failure_from_toml,
    Type.CALLS: _calls_from_toml,
    Type.DURATION: duration,
    Type.WAIT: _wait,
    Type.VERIFY: _verify_from_toml,
    Type.POS: _pos,
}
_FROM_BULLET: Final[Mapping[Type, Callable[[str], Json]]] = {
    Type.LIST: _list_from_text,
    Type.BOOL: _bool_from_text,
    Type.COUNT: _count(0),
    Type.POSITIVE: _count(1),
    Type.JSON: _json_from_text,
    Type.SCHEMA: _schema_from_text,
    Type.STEPS: _steps_from_text,
    Type.TARGET: _target,
    Type.GOTO: _goto,
    Type.PORTS: _ports_from_text,
    Type.FAILURE: _failure_from_text,
    Type.CALLS: _calls_from_text,
    Type.DURATION: duration,
    Type.WAIT: _wait,
    Type.VERIFY: _verify_from_text,
    Type.CONDITION: _condition_from_text,
    Type.TEMPLATE: _condition_from_text,
}
