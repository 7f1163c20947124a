"""How an activation of a session ends."""

from dataclasses import dataclass

from procedo.agents.questions import Question
from procedo.core.model import Json
from procedo.core.session import SessionState

__all__ = ["Ending"]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended, or (`questions`) what it waits for."""

    state: SessionState
    output: Json = None
    reason: str = ""
    questions: tuple[Question, ...] = ()
