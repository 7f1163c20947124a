"""The JSON Schema of `procedo.toml`, made from the table of keys, so that editors complete and check it."""

from typing import Final

from procedo.config.key import Key
from procedo.config.keys import KEYS
from procedo.core.model import Json

__all__ = ["config_schema"]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_NAME: Final = "^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$"


def config_schema() -> Json:
    """The schema: every table, key, form, default and meaning. Unknown keys are errors, as they are when it is read."""
    schema = _table()
    for key in KEYS:
        table = schema
        for part in key.table.split("."):
            table = _below(table, part)
        _add(table, key)
    return {"$schema": _DIALECT, "title": "procedo.toml", **schema}


def _table() -> dict[str, Json]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _below(table: Json, part: str) -> Json:
    """The schema of the table one step down: a chosen name, a list of tables, or a plain one."""
    if part.startswith("<"):
        if "patternProperties" not in table:
            table["patternProperties"] = {_NAME: _table()}
        return table["patternProperties"][_NAME]
    if part.endswith("[]"):
        listed = table["properties"].setdefault(part.removesuffix("[]"), {"type": "array", "items": _table()})
        return listed["items"]
    return table["properties"].setdefault(part, _table())


def _add(table: Json, key: Key) -> None:
    described: dict[str, Json] = {**key.form.schema, "description": key.meaning}
    if (shown := _default(key)) is not None:
        described["default"] = shown
    table["properties"][key.name] = described
    if key.required:
        table.setdefault("required", []).append(key.name)


def _default(key: Key) -> Json:
    """The default as it would be written, or None where it is to write nothing."""
    value = key.default
    if key.required or value is None or value in ((), {}):
        return None
    if isinstance(value, tuple):
        return [str(item) for item in value]
    return value if isinstance(value, bool | int | float) else str(value)
