"""What a session asks a person about its calls, and the answers that it finds. A question is known by its content.

So an answer is for exactly what was shown: other arguments, or another interruption of the same call, are
another question.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from procedo.agents.parts import Actor
from procedo.core.model import Json
from procedo.core.outputs import digest
from procedo.core.session import CallRow
from procedo.core.state import Gate, GateKind, Verdict

__all__ = ["Question", "Questions"]


class Question(Struct, frozen=True):
    """A call that waits for a person: which kind of gate, what is asked, and what the person sees."""

    call: CallRow
    kind: GateKind
    why: str
    content: Json


class Questions:
    """The questions of one session; `gates` are those that were asked already, as they are stored now."""

    def __init__(self, actor: Actor, gates: Iterable[Gate] = ()) -> None:
        self._actor = actor
        self._gates: Sequence[Gate] = tuple(gates)

    def may_call(self, call: CallRow, offered: str, why: str) -> Question:
        """The question whether a call may be made."""
        actor = self._actor
        asked = f"May {actor.acting} call {offered} in step {actor.execution.partition('.')[0]}? {why}."
        return Question(call, GateKind.TOOL_CALL, asked, self._shown(call))

    def interrupted(self, call: CallRow, offered: str) -> Question:
        """The question what is to be done about a call that may or may not have acted."""
        why = f"{offered} was called by {self._actor.acting}, and its result is not known"
        return Question(call, GateKind.INTERRUPTED, why, {**self._shown(call), "attempt": call.attempts})

    def _shown(self, call: CallRow) -> dict[str, Json]:
        actor = self._actor
        return {
            "tool": call.offered,
            "identity": call.tool,
            "arguments": call.arguments,
            "arguments_digest": call.digest,
            "acting": actor.acting,
            "delegating": actor.delegating,
        }

    def answer(self, question: Question) -> Gate | None:
        """The gate at which exactly this was answered, or None."""
        wanted = digest(question.content)
        for gate in reversed(self._gates):
            same = (gate.call, gate.kind) == (question.call.key, question.kind) and digest(gate.content) == wanted
            if same:
                return None if gate.live else gate
        return None

    def granted(self, call: CallRow) -> bool:
        """True when a person allowed this very call, arguments included, for the rest of the session."""
        return any(
            gate.lasting
            and gate.kind is GateKind.TOOL_CALL
            and gate.verdict is Verdict.APPROVE
            and gate.content["arguments_digest"] == call.digest
            for gate in self._gates
        )
