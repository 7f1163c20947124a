"""The result of a session under an output schema: the call that gives it, or the one value in a text."""

from typing import Final

from msgspec import Struct

from procedo.core.model import Json, Violation
from procedo.core.outputs import recover
from procedo.jsonschemas import compile_schema

__all__ = ["OUTPUT_TOOL", "Found", "offered_schema", "read_output", "read_text"]

OUTPUT_TOOL: Final = "step_output"


class Found(Struct, frozen=True):
    """A value, and how it breaks the schema if it does."""

    value: Json
    violations: tuple[Violation, ...]


def _is_object(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object"


def offered_schema(schema: Json) -> Json:
    """The schema of the call's arguments: they are an object, so any other value is wrapped in `value`."""
    if _is_object(schema):
        return schema
    return {"type": "object", "properties": {"value": schema}, "required": ["value"], "additionalProperties": False}


def read_output(schema: Json, arguments: Json) -> Found:
    """The result in the arguments of the output call."""
    if not isinstance(arguments, dict):
        return Found(arguments, (Violation("", "a JSON object", "something else"),))
    if not _is_object(schema):
        if set(arguments) != {"value"}:
            return Found(arguments, (Violation("", "an object with the key value", ", ".join(arguments) or "nothing"),))
        arguments = arguments["value"]
    return Found(arguments, compile_schema(schema).violations(arguments))


def read_text(schema: Json, text: str) -> Found:
    """The result in a text, where the text holds exactly one value that fits."""
    return Found(*recover(compile_schema(schema), text))
