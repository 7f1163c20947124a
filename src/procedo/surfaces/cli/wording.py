"""Advice as commands: what names a tool of the server said with the command, and the commands of a gate."""

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["as_command", "decisions"]

_VERBS: Final = {
    "list": "list",
    "describe": "show",
    "start": "start",
    "status": "status",
    "cancel": "cancel",
    "resume": "resume",
    "approve": "approve",
}
_TOOL: Final = re.compile(r"\bsop_(\w+)(?:\((['\"])([^'\"()]*)\2\))?")


def _said(found: re.Match[str]) -> str:
    verb = _VERBS.get(found[1])
    if verb is None:
        return found[0]
    return f"procedo {verb} {found[3]}" if found[3] else f"procedo {verb}"


def as_command(text: str) -> str:
    """The text with `sop_describe('x')` written as `procedo show x`; tools without a command stay as they are."""
    return _TOOL.sub(_said, text.replace("sop_status without run_id", "sop_status"))


_DECISIONS: Final = {
    "approve": "procedo approve {}",
    "deny": "procedo deny {}",
    "amend": "procedo approve {} --amend TEXT",
    "revise": 'procedo revise {} "GUIDANCE"',
}


def decisions(code: str, answers: Iterable[str]) -> str:
    """The commands that answer a gate, one for each answer that it takes now."""
    return "  |  ".join(
        _DECISIONS.get(answer, f"procedo approve {{}} --verdict {answer}").format(code) for answer in answers
    )
