"""A field's value as it is written: the text of its bullets, and its value in TOML. The way back of `values`."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from procedo.core.model import Json
from procedo.sopfile.reference import Type

__all__ = ["bullets", "toml_value"]

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def bullets(kind: Type, value: Json) -> tuple[str, ...]:
    """What stands behind the key of each bullet; planned calls have one bullet each."""
    if kind is Type.CALLS:
        return tuple(_compact(call) for call in value)
    return (_BULLET.get(kind, str)(value),)


def toml_value(kind: Type, value: Json) -> Json:
    """What stands behind the equals sign."""
    return _TOML[kind](value) if kind in _TOML else value


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _duration(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds!r}s"


def _failure(rule: Mapping[str, Json]) -> str:
    words = [f"retry:{rule['retries']}"] if rule["retries"] else []
    if rule["backoff_s"]:
        words.append(f"backoff:{_duration(rule['backoff_s'])}")
    if rule["goto"] is not None:
        words.append(f"goto:{rule['goto']}")
    return " ".join(words) or "fail"


def _failure_table(rule: Mapping[str, Json]) -> Json:
    table: dict[str, Json] = {}
    if rule["retries"]:
        backoff = {"backoff": _duration(rule["backoff_s"])} if rule["backoff_s"] else {}
        table["retry"] = {"max": rule["retries"], **backoff}
    if rule["goto"] is not None:
        table["goto"] = {"step": rule["goto"]}
    return table or "fail"


def _wait(value: Mapping[str, Json]) -> str:
    return f"until {value['until']}" if "until" in value else _duration(value["for_s"])


def _verify(value: Mapping[str, Json]) -> str:
    if "capability" not in value:
        return str(value["condition"])
    arguments = "" if value["with"] is None else f" {_compact(value['with'])}"
    return f"capability:{value['capability']}{arguments}"


def _verify_table(value: Mapping[str, Json]) -> Json:
    return _without_none(value) if "capability" in value else value["condition"]


def _ports(value: Iterable[Mapping[str, Json]]) -> str:
    return "; ".join(f"{port['name']}>{port['when'] or ''}>{port['goto']}" for port in value)


def _without_none(value: Mapping[str, Json]) -> Json:
    return {name: item for name, item in value.items() if item is not None}


_BULLET: Final[Mapping[Type, Callable[[Json], str]]] = {
    Type.LIST: ", ".join,
    Type.STEPS: lambda value: ", ".join(map(str, value)),
    Type.BOOL: lambda value: "true" if value else "false",
    Type.JSON: _compact,
    Type.SCHEMA: _compact,
    Type.PORTS: _ports,
    Type.GOTO: lambda value: f"goto:{value}",
    Type.DURATION: _duration,
    Type.WAIT: _wait,
    Type.FAILURE: _failure,
    Type.VERIFY: _verify,
}
_TOML: Final[Mapping[Type, Callable[[Json], Json]]] = {
    Type.LIST: list,
    Type.STEPS: list,
    Type.CALLS: list,
    Type.PORTS: lambda value: [_without_none(port) for port in value],
    Type.POS: lambda value: {"x": value[0], "y": value[1]},
    Type.GOTO: lambda value: f"goto:{value}",
    Type.DURATION: _duration,
    Type.WAIT: _wait,
    Type.FAILURE: _failure_table,
    Type.VERIFY: _verify_table,
}
