"""`json.validate`: a value against a JSON Schema."""

from procedo.capabilities.piped import PIPED
from procedo.core.model import Json
from procedo.errors import Refused
from procedo.jsonschemas import compile_schema
from procedo.ports import Capability, CapabilityCall

__all__ = ["json_validate"]


def json_validate() -> Capability:
    """The capability. A value that does not fit is a failure that tells path, expected and found."""
    return Capability(
        "json.validate",
        "Checks a value by a JSON Schema: `value` when it is given, else the piped value.",
        {
            "type": "object",
            "properties": {
                "schema": {"type": ["object", "boolean"], "description": "JSON Schema 2020-12, complete in itself."},
                "value": {"description": "What is checked."},
                **PIPED,
            },
            "required": ["schema"],
            "anyOf": [{"required": ["value"]}, {"required": ["input"]}],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"valid": {"const": True}, "value": True},
            "required": ["valid", "value"],
            "additionalProperties": False,
        },
        _run,
        pure=True,
    )


async def _run(call: CapabilityCall) -> Json:
    arguments = call.arguments
    value = arguments["value"] if "value" in arguments else arguments["input"]
    try:
        schema = compile_schema(arguments["schema"])
    except ValueError as error:
        hint = "Correct the schema of this step; the value was not judged."
        raise Refused("malformed_schema", f"json.validate: {error}.", hint) from error
    if broken := schema.violations(value):
        raise Refused("invalid_value", f"json.validate: the value does not fit: {'; '.join(map(str, broken))}.")
    return {"valid": True, "value": value}
