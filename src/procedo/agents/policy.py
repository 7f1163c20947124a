"""Whether a call runs by itself, is asked for, or is denied. Pure: a verdict from the contract and the arguments.

The order of the rules: what the agent's level or the high-risk block forbids is denied whatever else is
written; `always_ask` wins over everything that would let the call run; then the level, medium risk and
`auto_approve`. A question that nobody can answer is a denial, with a reason that the model can use.
"""

from enum import StrEnum

from msgspec import Struct

from procedo.agents.contract import Contract
from procedo.agents.parts import Effect, Level, Origin, Tool
from procedo.agents.risk import Risk, command_risk
from procedo.core.model import Json

__all__ = ["Ruling", "Verdict", "judge", "only_reads", "repeatable"]


class Verdict(StrEnum):
    """What happens with a call."""

    AUTO = "auto"
    ASK = "ask"
    DENY = "deny"


class Ruling(Struct, frozen=True):
    """The verdict and why; for a denial the reason is what the model is told."""

    verdict: Verdict
    reason: str


def repeatable(tool: Tool, arguments: Json) -> bool:
    """True when an interrupted call may be repeated without asking: by its declaration, or by these arguments."""
    return tool.effect.repeatable or _asks_only(tool, arguments)


def judge(contract: Contract, tool: Tool, arguments: Json) -> Ruling:
    """The ruling on a call whose arguments are valid against the tool's schema already.

    A tool outside of the frozen set is denied. The hourly budget is not judged here: the ledger counts it
    when the call begins.
    """
    if not contract.holds(tool.id):
        return Ruling(Verdict.DENY, f"the tool {tool.offered!r} is not available")
    risk = _risk(tool, arguments)
    if (why := _forbidden(contract, tool, arguments, risk)) is not None:
        return Ruling(Verdict.DENY, why)
    why = _question(contract, tool, risk)
    if why is None:
        return Ruling(Verdict.AUTO, f"level {contract.approvals.level} lets it run")
    if not contract.approvals.askable:
        told = f"{tool.offered!r} needs a person's approval and nobody can be asked; go on without it"
        return Ruling(Verdict.DENY, told)
    return Ruling(Verdict.ASK, why)


def _risk(tool: Tool, arguments: Json) -> Risk:
    if tool.id.origin is Origin.BUILT_IN and tool.id.name == "shell":
        return command_risk(arguments["argv"])
    return Risk.LOW


def _forbidden(contract: Contract, tool: Tool, arguments: Json, risk: Risk) -> str | None:
    if contract.security.block_high_risk and risk is Risk.HIGH:
        return f"{arguments['argv'][0]!r} with these arguments is a high-risk command, and those are blocked"
    if contract.approvals.level is Level.READONLY and not only_reads(tool, arguments):
        return f"this agent may only read, and {tool.offered!r} may change something"
    return None


def only_reads(tool: Tool, arguments: Json) -> bool:
    """True when this call changes nothing: by its declaration, or by these arguments."""
    return tool.effect is Effect.READ_ONLY or _asks_only(tool, arguments)


def _asks_only(tool: Tool, arguments: Json) -> bool:
    """True for a web request that by its method changes nothing."""
    if tool.id.origin is not Origin.BUILT_IN or tool.id.name != "http_request":
        return False
    return arguments.get("method", "GET") in {"GET", "HEAD"}


def _question(contract: Contract, tool: Tool, risk: Risk) -> str | None:
    """Why a person has to be asked, or None."""
    approvals = contract.approvals
    if tool.id.key in approvals.always_ask:
        return f"{tool.offered!r} is always asked for"
    if contract.security.ask_medium_risk and risk is not Risk.LOW:
        return f"the command is of {risk} risk"
    if approvals.level is Level.FULL or tool.id.key in approvals.auto:
        return None
    return f"{tool.offered!r} is not approved in advance"
