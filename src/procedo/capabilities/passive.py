"""Capabilities that touch nothing: `noop` and `wait`."""

from typing import Final

from procedo.capabilities.piped import PIPED
from procedo.core.model import Json
from procedo.ports import Capability, CapabilityCall

__all__ = ["LONGEST_WAIT_S", "noop", "wait", "waited_ms"]

LONGEST_WAIT_S: Final = 366 * 86400


def noop() -> Capability:
    """`noop`: hands on what it gets."""

    async def run(call: CapabilityCall) -> Json:
        return call.arguments

    return Capability("noop", "Returns its input unchanged.", True, True, run, pure=True)


def wait() -> Capability:
    """`wait`: a pause of the run.

    The engine keeps it as a durable timer and never calls `run`, which merely says what the timer's result is.
    """

    async def run(call: CapabilityCall) -> Json:
        return {"waited_ms": waited_ms(call.arguments)}

    return Capability(
        "wait",
        "Pauses the run by a timer that outlives the server; give seconds or milliseconds.",
        {
            "type": "object",
            "properties": {
                "seconds": {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT_S},
                "milliseconds": {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT_S * 1000},
                **PIPED,
            },
            "oneOf": [{"required": ["seconds"]}, {"required": ["milliseconds"]}],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"waited_ms": {"type": "integer", "minimum": 0}},
            "required": ["waited_ms"],
            "additionalProperties": False,
        },
        run,
        pure=True,
    )


def waited_ms(arguments: Json) -> int:
    """The length of a `wait` in whole milliseconds, from arguments that fit its schema."""
    length: float = arguments["milliseconds"] if "milliseconds" in arguments else arguments["seconds"] * 1000
    return round(length)
