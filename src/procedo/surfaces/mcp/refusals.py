"""Tells the log which tool calls were refused, and with which code. Nothing of what was said in them is told."""

import re
from collections.abc import Mapping
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext

from procedo.surfaces.mcp.contracts import CONTRACTS
from procedo.telemetry.lines import CALL_REFUSED
from procedo.telemetry.logbook import say

__all__ = ["Refusals"]

_TOOLS: Final = frozenset(contract.name for contract in CONTRACTS)
_CODE: Final = re.compile(r"(?:Error executing tool \w+: )?\[([a-z][a-z_]{0,63})\]")
_RUN: Final = re.compile(r"run-[0-9a-z]{8,40}")


class Refusals(ServerMiddleware[Any]):
    """Looks at every answer to a tool call."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass the message on, and tell when its answer is a refusal."""
        result = await call_next(ctx)
        # By now an answer is what travels.
        if ctx.method == "tools/call" and isinstance(result, Mapping) and result.get("isError") is True:
            params = ctx.params or {}
            code = _CODE.match(_said(result))
            say(
                CALL_REFUSED,
                {
                    "tool": params["name"] if params.get("name") in _TOOLS else None,
                    "code": code.group(1) if code is not None else "error",
                    "run": _run((params.get("arguments") or {}).get("run_id")),
                },
            )
        return result


def _said(result: Mapping[str, Any]) -> str:
    texts = [part.get("text", "") for part in result.get("content", ()) if part.get("type") == "text"]
    return texts[0] if texts else ""


def _run(given: object) -> str | None:
    """A run id as it was given, when it is one."""
    return given if isinstance(given, str) and _RUN.fullmatch(given) else None
