"""Sending the person at the host to the inbox page, for gates that are not decided at this host.

The client only opens an address; what is decided there is decided by whoever logs in there. The address holds no
secret, and saying yes to the client's question decides nothing.
"""

from typing import Any, Final

from mcp.server.mcpserver import Context
from mcp.types import ElicitRequest, ElicitRequestURLParams, ElicitResult, InputRequiredResult

from procedo.core.characters import plain
from procedo.core.state import Gate
from procedo.errors import ProcedoError
from procedo.surfaces.gates import may_decide, what_is_asked
from procedo.surfaces.mcp.asking import Looked, look
from procedo.surfaces.mcp.callers import engine

__all__ = ["NOT_SENT", "sent_elsewhere"]

NOT_SENT: Final = None
_KEY: Final = "inbox"
_MODERN: Final = "2026-07-28"


async def sent_elsewhere(gate_id: Any, ctx: Context) -> InputRequiredResult | tuple[Looked, str] | None:
    """Ask the client to open the gate's page.

    Answers with what the client has still to do, or with the gate and what became of asking; `NOT_SENT` when the
    gate may be decided here, no page is served, or the client opens no addresses.
    """
    looked = await _looked(gate_id, ctx)
    if looked is None:
        return NOT_SENT
    gate, policy = looked.gate, looked.snapshot.policies.get(looked.gate.id)
    address = engine(ctx).inbox.of_gate(gate.id)
    if policy is None or not policy.out_of_band or not gate.open or address is None or not _opens_addresses(ctx):
        return NOT_SENT
    action = await _asked(ctx, gate, address)
    if action is None:
        return InputRequiredResult(input_requests={_KEY: _request(gate, address)})
    shown = "was put before the user" if action == "accept" else "was offered to the user, who did not open it"
    where = f"It is decided by {may_decide(policy, gate)}, there or in {looked.surface.route}. Do not poll."
    return looked, f"Nothing was decided: the inbox page of gate {gate.code} {shown}. {where}"


async def _looked(gate_id: Any, ctx: Context) -> Looked | None:
    """The gate, if there is one that this caller may see; what is wrong with the call is told by the tool itself."""
    if not isinstance(gate_id, str):
        return None
    try:
        return await look(gate_id, ctx)
    except ProcedoError:
        return None


def _opens_addresses(ctx: Context) -> bool:
    capabilities = ctx.client_capabilities
    return (
        capabilities is not None and capabilities.elicitation is not None and capabilities.elicitation.url is not None
    )


async def _asked(ctx: Context, gate: Gate, address: str) -> str | None:
    """What the person answered; None when the client has to be asked first by way of the result."""
    if (ctx.protocol_version or "") < _MODERN:
        return (await ctx.elicit_url(_message(gate), address, f"{gate.id}:{gate.revision}")).action
    answer = (ctx.input_responses or {}).get(_KEY)
    return answer.action if isinstance(answer, ElicitResult) else None


def _message(gate: Gate) -> str:
    """Built from the gate alone, so that it reads the same each time."""
    return f"{plain(what_is_asked(gate))}\nGate {gate.code} is decided on the inbox page, after logging in there."


def _request(gate: Gate, address: str) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestURLParams(message=_message(gate), url=address))
