"""Values that say where a step leads: lists of steps, targets, the ports of a switch, failure rules."""

import re
from collections.abc import Mapping
from typing import Final

from procedo.core.model import Json
from procedo.sopfile.problems import nearest
from procedo.sopfile.valueforms import Unreadable, count, duration, reference, told

__all__ = [
    "END",
    "failure_from_text",
    "failure_from_toml",
    "goto",
    "ports_from_text",
    "ports_from_toml",
    "steps",
    "steps_from_text",
    "target",
]

END: Final = "end"

_FAILURE: Final = re.compile(r"(retry|goto|backoff)\s*[:\s]\s*(\S+)")


def steps(value: Json) -> Json:
    """Step references: one, an array, or a text with commas. Doubles count once."""
    if isinstance(value, str):
        value = [item for item in value.split(",") if item.strip()]
    items = value if isinstance(value, list) else [value]
    if not items:
        return ()
    return tuple(dict.fromkeys(reference(item) for item in items))


def steps_from_text(text: str) -> Json:
    """Step references in a bullet; at least one."""
    if not text:
        raise Unreadable("a step is missing", "write numbers or ids, separated by commas")
    return steps(text)


def target(value: Json) -> Json:
    """A step reference, or `end`."""
    return END if isinstance(value, str) and value.strip() == END else reference(value)


def goto(value: Json) -> Json:
    """The step that `goto:7`, a table or a plain reference names."""
    if isinstance(value, dict) and set(value) == {"goto"}:
        inner = value["goto"]
        value = inner["step"] if isinstance(inner, dict) and set(inner) == {"step"} else inner
    if isinstance(value, str):
        found = re.fullmatch(r"\s*goto\s*[:\s]\s*(\S+)\s*", value)
        if found is None:
            raise Unreadable(f"expected `goto:` with a step, got {told(value)}", "write goto:7")
        value = found.group(1)
    return reference(value)


def ports_from_toml(value: Json) -> Json:
    """The ports of a switch, as an array of tables."""
    if not isinstance(value, list) or not all(isinstance(port, dict) for port in value):
        raise Unreadable(f"expected an array of ports, got {told(value)}", "[[steps.routing.switch]]")
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
    return {"name": name.strip(), "when": when.strip() or None, "goto": target(port["goto"])}


def ports_from_text(text: str) -> Json:
    """The ports of a switch in a bullet, separated by semicolons."""
    ports = tuple(_port_from_text(part) for part in _split_outside_quotes(text, ";") if part.strip())
    if not ports:
        raise Unreadable("a switch needs ports", "name>guard>target; other>>target")
    return ports


def _port_from_text(text: str) -> Json:
    """`name>guard>target`: the name ends at the first `>`, the target begins at the last, so a guard may hold more."""
    parts = _split_outside_quotes(text, ">")
    if len(parts) < 3:
        raise Unreadable(f"port {text.strip()!r} is not name>guard>target", "an empty guard is the catch-all: other>>4")
    name, guard = parts[0].strip(), ">".join(parts[1:-1]).strip()
    if not name:
        raise Unreadable(f"port {text.strip()!r} has no name")
    try:
        where = target(parts[-1])
    except Unreadable as error:
        hint = "the text behind the last `>` is the target; the form in SOP.toml has no such limit"
        raise Unreadable(f"port {name!r} has no target: {error.message}", hint) from error
    return {"name": name, "when": guard or None, "goto": where}


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


def failure_from_text(text: str) -> Json:
    """A failure rule: `fail`, `retry:3 backoff:30s`, `goto:7`, or retry and goto together."""
    rule: dict[str, Json] = {"retries": 0, "backoff_s": 0.0, "goto": None}
    if text == "fail":
        return rule
    found = dict(_FAILURE.findall(text))
    rest = _FAILURE.sub("", text).strip()
    if not found or rest or not found.keys() & {"retry", "goto"}:
        words = ("fail", "retry", "backoff", "goto")
        unknown = re.match(r"[^\s:]+", rest)
        near = nearest(unknown.group(), words) if unknown and unknown.group() not in words else ""
        hint = f"did you mean {near}?" if near else "write fail, retry:3, retry:3 backoff:30s or goto:7"
        raise Unreadable(f"expected `fail`, `retry:n` or `goto:n`, got {told(text)}", hint)
    return _failure(found, rule)


def _failure(found: Mapping[str, Json], rule: dict[str, Json]) -> Json:
    if "retry" in found:
        rule["retries"] = count(1)(found["retry"])
    if "backoff" in found:
        if "retry" not in found:
            raise Unreadable("backoff without retry", "write retry:3 backoff:30s")
        rule["backoff_s"] = duration(found["backoff"])
    if "goto" in found:
        rule["goto"] = reference(found["goto"])
    return rule


def failure_from_toml(value: Json) -> Json:
    """A failure rule as text or as a table."""
    if isinstance(value, str):
        return failure_from_text(value.strip())
    shapes: Mapping[str, tuple[str, ...]] = {"retry": ("max", "backoff"), "goto": ("step",)}
    if not isinstance(value, dict) or not value or not all(isinstance(item, dict) for item in value.values()):
        raise Unreadable(f"expected fail, {{retry={{max=n}}}} or {{goto={{step=n}}}}, got {told(value)}")
    for word, table in value.items():
        if word not in shapes or not set(table) <= set(shapes[word]) or shapes[word][0] not in table:
            raise Unreadable(f"{word!r} is not understood here", "{retry={max=3, backoff='30s'}} or {goto={step=7}}")
    found = {word: table[shapes[word][0]] for word, table in value.items()}
    if "backoff" in value.get("retry", {}):
        found["backoff"] = value["retry"]["backoff"]
    return _failure(found, {"retries": 0, "backoff_s": 0.0, "goto": None})
