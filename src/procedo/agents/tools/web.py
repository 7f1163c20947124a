"""`http_request`: one call to a host of the agent's network allowlist."""

from typing import Final

from procedo.agents.parts import SecurityPolicy
from procedo.agents.ports import ToolDenied, ToolFailed
from procedo.capabilities.http_request import http_request
from procedo.config.capability_settings import HttpSettings
from procedo.core.model import Json
from procedo.core.outputs import canonical
from procedo.errors import Refused
from procedo.ports import CapabilityCall

__all__ = ["request"]

_DENIED: Final = frozenset({"host_not_allowed", "bad_url"})
_EVERY_STATUS: Final = [status for status in range(300, 600) if status not in {301, 302, 303, 307, 308}]


async def request(policy: SecurityPolicy, arguments: Json, effect_id: str) -> str:
    """Call it; every status is a result that the model may read. Raises `ports.OutcomeUnknown` as well."""
    settings = HttpSettings(policy.hosts, policy.http_timeout_s, policy.max_bytes)
    call = CapabilityCall({**arguments, "accept_status": _EVERY_STATUS}, "", "", effect_id)
    try:
        result = await http_request(settings).run(call)
    except Refused as error:
        told = error.message.removeprefix("http.request: ")
        raise (ToolDenied if error.code in _DENIED else ToolFailed)(told) from error
    return canonical(result)
