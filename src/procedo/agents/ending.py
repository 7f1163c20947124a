"""How an activation of a session ends."""

from msgspec import Struct

from procedo.agents.questions import Question
from procedo.core.model import Json
from procedo.core.session import SessionState
from procedo.errors import Refused

__all__ = ["Ending", "PutDown"]


class PutDown(Refused):
    """The process ends: the session was put down between two steps, and any process takes it up from its rows."""

    def __init__(self) -> None:
        super().__init__("put_down", "The session was put down, because its process ends.", "It is taken up again.")


class Ending(Struct, frozen=True):
    """How a session ended, or (`questions`) what it waits for."""

    state: SessionState
    output: Json = None
    reason: str = ""
    questions: tuple[Question, ...] = ()
