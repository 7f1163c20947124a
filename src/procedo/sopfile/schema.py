"""The JSON Schema of `SOP.toml`, made from the tables of fields, so that editors complete and check it."""

from collections.abc import Iterable, Mapping
from typing import Final

from procedo.core.model import Admission, Json, Kind, Mode, OnTimeout, Priority, Reveal
from procedo.sopfile.reference import HEADER, POSITION_KEYS, STEP, TRIGGERS, Field, Type

__all__ = ["definition_schema"]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Final[Json] = {"type": "string"}
_COUNT: Final[Json] = {"type": "integer", "minimum": 0}
_POSITIVE: Final[Json] = {"type": "integer", "minimum": 1}
_DURATION: Final[Json] = {
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^(\s*\d+(\.\d+)?\s*(ms|s|m|h|d))+\s*$"}]
}
_STEP: Final[Json] = {"anyOf": [_COUNT, {"type": "string", "minLength": 1}]}
_CALL: Final[Json] = {
    "type": "object",
    "properties": {"tool": {"type": "string", "minLength": 1}, "args": True, "pinned": True},
    "required": ["tool"],
    "additionalProperties": False,
}
_PORT: Final[Json] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "when": _TEXT, "goto": _STEP},
    "required": ["name", "goto"],
    "additionalProperties": False,
}
_FORMS: Final[Mapping[Type, Json]] = {
    Type.TEXT: _TEXT,
    Type.NAME: _TEXT,
    Type.LIST: {"type": "array", "items": {"type": "string", "minLength": 1}},
    Type.BOOL: {"type": "boolean"},
    Type.COUNT: _COUNT,
    Type.POSITIVE: _POSITIVE,
    Type.JSON: True,
    Type.SCHEMA: {"type": ["object", "boolean"]},
    Type.STEPS: {"anyOf": [_STEP, {"type": "array", "items": _STEP}]},
    Type.TARGET: _STEP,
    Type.GOTO: _STEP,
    Type.PORTS: {"type": "array", "items": _PORT},
    Type.FAILURE: {"type": ["string", "object"]},
    Type.CALLS: {"type": "array", "items": _CALL},
    Type.DURATION: _DURATION,
    Type.CONDITION: _TEXT,
    Type.TEMPLATE: {"type": "string", "pattern": r"\{\{.*\}\}"},
    Type.WAIT: {"type": ["string", "number", "object"]},
    Type.VERIFY: {"type": ["string", "object"]},
    Type.POS: {"type": ["array", "object"]},
    Type.KIND: {"enum": [*(str(kind) for kind in Kind), "approval"]},
    Type.MODE: {"enum": [str(mode) for mode in Mode]},
    Type.PRIORITY: {"enum": [str(priority) for priority in Priority]},
    Type.ADMISSION: {"enum": [str(policy) for policy in Admission]},
    Type.REVEAL: {"enum": [str(reveal) for reveal in Reveal]},
    Type.ON_TIMEOUT: {"enum": [str(action) for action in OnTimeout]},
}


def definition_schema() -> Json:
    """The schema: every table and field with its form and meaning. Keys that begin with `x-` are kept and not read."""
    return {
        "$schema": _DIALECT,
        "title": "SOP.toml",
        **_object(
            {
                "sop": _table(HEADER.values()),
                "inputs": {"type": "object", "description": "JSON Schema of the start inputs."},
                "steps": {"type": "array", "items": _table(STEP.values())},
                "triggers": {"type": "array", "items": {"oneOf": [_trigger(name) for name in TRIGGERS]}},
                "positions": {"type": "array", "items": _object({key: {"type": "number"} for key in POSITION_KEYS})},
            }
        ),
        "required": ["sop"],
    }


def _object(properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": {"^x-.": True},
        "additionalProperties": False,
    }


def _table(fields: Iterable[Field]) -> Json:
    table = _object({})
    for field in fields:
        place = table
        *above, name = field.name.split(".")
        for part in above:
            place = place["properties"].setdefault(part, _object({}))
        place["properties"][name] = _described(field)
        if field.required:
            place.setdefault("required", []).append(name)
    return table


def _described(field: Field) -> Json:
    form = _FORMS[field.type]
    described = {} if form is True else dict(form)
    told = f"{field.meaning} Without it: {field.default}." if field.default else field.meaning
    return {**described, "description": told}


def _trigger(name: str) -> Json:
    settings = {key: _FORMS[kind] for key, kind in TRIGGERS[name].items()}
    return {**_object({"type": {"const": name}, **settings}), "required": ["type"]}
