"""What the SDK hands to a handler of its lower layer, as our doors want it; and our errors as the protocol's."""

from typing import Any, Final, TypeAlias

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

from procedo.core.model import Json
from procedo.errors import BadArgument, InvalidSop, NotFound, ProcedoError, Refused
from procedo.surfaces.mcp.strict import told

__all__ = ["Raw", "at_the_door", "protocol_error"]

Raw: TypeAlias = ServerRequestContext[Any, Any]

_CODES: Final = ((NotFound, INVALID_PARAMS), (BadArgument, INVALID_PARAMS), (InvalidSop, INVALID_PARAMS))


def at_the_door(ctx: Raw) -> Context:
    """The call as the doors know it."""
    return Context(request_context=ctx)


def protocol_error(error: ProcedoError, **data: Json) -> MCPError:
    """An error where there is no tool result to carry it: what does not exist and what is malformed is -32602."""
    default = INVALID_REQUEST if isinstance(error, Refused) else INTERNAL_ERROR
    code = next((code for kind, code in _CODES if isinstance(error, kind)), default)
    return MCPError(code=code, message=told(error), data={"code": error.code, **data})
