"""What stood at a gate before what stands there now."""

from procedo.core.model import Json
from procedo.core.state import Gate, Verdict
from procedo.runs import History

__all__ = ["previous"]


def previous(history: History, gate: Gate) -> Json:
    """What was presented before what is presented now: an earlier revision, or the draft that was sent back."""
    seen: list[Json] = []
    for record in history.records:
        data = record.data if isinstance(record.data, dict) else {}
        opened = data.get("gate")
        if isinstance(opened, dict) and opened.get("id") == gate.id:
            seen.append(opened.get("content"))
        elif data.get("gate_id") == gate.id and "content" in data:
            seen.append(data["content"])
    older = [content for content in seen if content != gate.content]
    if older:
        return older[-1]
    sent_back = [g for g in history.gates if g.step == gate.step and g.verdict is Verdict.REVISE and g.id != gate.id]
    return sent_back[-1].content if sent_back else None
