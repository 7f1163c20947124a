"""The registry of capabilities, and the one place where arguments and results are checked.

What `get` hands out is checked already: its `run` validates the arguments by the input schema before
anything happens and the result by the output schema afterwards, so no caller can go around it.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from procedo.capabilities.http_request import http_request
from procedo.capabilities.json_validate import json_validate
from procedo.capabilities.passive import noop, wait
from procedo.capabilities.shell_exec import shell_exec
from procedo.capabilities.template import template
from procedo.config.capability_settings import CapabilitySettings
from procedo.core.altered import altered
from procedo.core.model import Json, Schema, Violation
from procedo.errors import BadArgument, Refused
from procedo.jsonschemas import compile_schema
from procedo.ports import Capability, CapabilityCall, OutcomeUnknown

__all__ = ["Registry", "built_in", "checked"]


def built_in(settings: CapabilitySettings, environ: Mapping[str, str]) -> "Registry":
    """The capabilities that come with procedo. `environ` is where commands are looked up and variables come from."""
    return Registry(
        (
            noop(),
            wait(),
            json_validate(),
            template(),
            http_request(settings.http),
            shell_exec(settings.shell, environ),
        )
    )


class Registry:
    """Capabilities by id (implements `ports.Capabilities`). Raises `ValueError` when two have the same id."""

    def __init__(self, capabilities: Iterable[Capability]) -> None:
        known: dict[str, Capability] = {}
        for capability in capabilities:
            if capability.id in known:
                raise ValueError(f"two capabilities have the id {capability.id!r}")
            known[capability.id] = checked(capability)
        self._known = MappingProxyType(dict(sorted(known.items())))

    def get(self, capability_id: str) -> Capability | None:
        """The capability with this id."""
        return self._known.get(capability_id)

    def all(self) -> tuple[Capability, ...]:
        """Every capability, by id."""
        return tuple(self._known.values())

    async def call(self, capability: Capability, call: CapabilityCall) -> Json:
        """Perform one call of a capability of this registry; raises what its checked `run` raises."""
        return await self._known[capability.id].run(call)


def checked(capability: Capability) -> Capability:
    """The same capability, with a `run` that refuses what it cannot take and does not hand on what it must not give.

    `run` raises `Refused` when the capability is not usable in this workspace, `BadArgument` when the
    arguments break the input schema, and, when the result breaks the output schema, `Refused` for
    repeatable work and `OutcomeUnknown` for any other, because that has acted by then.
    """
    schemas: dict[str, Schema] = {}

    def violations(name: str, source: Json, value: Json) -> Sequence[Violation]:
        if name not in schemas:  # compiled at first use: most starts of the program call nothing
            schemas[name] = compile_schema(source)
        return schemas[name].violations(value)

    async def run(call: CapabilityCall) -> Json:
        if capability.objection is not None:
            raise Refused("unavailable", f"{capability.id} cannot be used here: {capability.objection}")
        if broken := violations("input", capability.input_schema, call.arguments):
            message = f"{capability.id}: the arguments do not fit: {'; '.join(map(str, broken))}."
            raise BadArgument("invalid_arguments", message)
        result = await capability.run(call)
        if broken := violations("output", capability.output_schema, result):
            message = f"{capability.id}: the result breaks its own schema: {'; '.join(map(str, broken))}."
            if capability.repeatable(call.arguments):
                raise Refused("invalid_result", message)
            raise OutcomeUnknown(message)
        return result

    return altered(capability, run=run)
