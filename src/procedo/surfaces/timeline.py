"""A run's record as sentences: one line for each thing that happened."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from procedo.core.model import Json

__all__ = ["record_line"]

_SHORT: Final = 60


def _brief(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    text = " ".join(text.split())
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


def _who(data: Any) -> str:
    by = data.get("by")
    return by.get("subject", "nobody") if isinstance(by, dict) else str(by or "nobody")


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _routed(data: Any) -> str:
    targets = ", ".join(map(str, data["targets"])) or "the end of its branch"
    return f"step {data['step']} leads to {targets} ({data['rule']})"


def _resolved(data: Any) -> str:
    late = ", because nobody answered in time" if data.get("expired") else f" by {_who(data)}"
    return f"gate {data['gate_id']}: {data['verdict']}{late}{_because(data.get('comment', ''))}"


def _opened(data: Any) -> str:
    execution = data["execution"]
    attempt = execution["arrival"].get("attempt", 1)
    return f"{execution['id']} given to {execution['agent']}" + (f", attempt {attempt}" if attempt > 1 else "")


def _gate(data: Any) -> str:
    gate = data["gate"]
    return f"gate {gate['code']} opened at step {gate['arrival']['step']}{_because(gate.get('prompt', ''))}"


def _started(data: Any) -> str:
    inputs = data.get("inputs")
    given = "" if inputs is None else f" with {_brief(inputs)}"
    return f"{data['sop']} {data['version']} started by {_who(data)}{given}"


def _reported(what: str) -> Callable[[Any], str]:
    return lambda data: (
        f"{data['execution_id']} {what}{_because(_brief(data.get('reason') or data.get('output') or ''))}"
    )


def _reach(limits: Any) -> str:
    named = {what: limits.get(what) for what in ("sops", "agents")}
    return " and ".join(f"{what} {', '.join(found) or 'none'}" for what, found in named.items() if found is not None)


_SENTENCES: Final[Mapping[str, Callable[[Any], str]]] = {
    "RunStarted": _started,
    "ReachNarrowed": lambda d: f"keeps within {'; '.join(map(_reach, d['reach']))}",
    "StepVisited": lambda d: f"step {d['step']} reached",
    "StepPassedOver": lambda d: f"step {d['step']} passed over{_because(d['reason'])}",
    "ArrivalPended": lambda d: f"step {d['pending']['arrival']['step']} has to wait",
    "ArrivalReleased": lambda d: f"step {d['step']} goes on",
    "DispatchHeld": lambda d: f"step {d['held']['arrival']['step']} held back{_because(d.get('slot', ''))}",
    "DispatchesReleased": lambda _: "what was held back goes on",
    "GateOpened": _gate,
    "VoteCast": lambda d: f"gate {d['gate_id']}: {d['vote']['principal']['subject']} answered {d['vote']['verdict']}",
    "VoteRetracted": lambda d: f"gate {d['gate_id']}: {_who(d)} took the answer back",
    "GlassBroken": lambda d: f"gate {d['gate_id']}: {_who(d)} broke the glass, although {d['overridden']}",
    "AutoApproved": lambda d: f"gate {d['gate_id']}: policy {d['policy']} approves by itself",
    "GateResolved": _resolved,
    "RevisionAsked": lambda d: f"gate {d['gate_id']}: {_who(d)} asked for another draft{_because(d['guidance'])}",
    "GatePresented": lambda d: f"gate {d['gate_id']} has a new draft",
    "RevisionFailed": lambda d: f"gate {d['gate_id']}: no new draft came about{_because(d['reason'])}",
    "GateReminded": lambda d: f"gate {d['gate_id']} asked again",
    "GateWithdrawn": lambda d: f"gate {d['gate_id']} withdrawn{_because(d['reason'])}",
    "FanOpened": lambda d: f"step {d['arrival']['step']} begins over {len(d['items'])} items",
    "ItemOpened": lambda d: f"step {d['step']}, item {d['item'] + 1}",
    "FanGathered": lambda d: f"step {d['step']} has all its items",
    "ExecutionOpened": _opened,
    "EffectStarted": lambda d: f"{d['execution_id']} is about to act",
    "SessionBegan": lambda d: f"{d['execution_id']}: agent {d['agent']} is at work for {d['delegating']}",
    "EffectRepeated": lambda d: f"{d['execution_id']} acts again{_because(d['reason'])}",
    "ExecutionHalted": lambda d: f"{d['execution_id']} halted{_because(d['reason'])}",
    "ExecutionResumed": lambda d: f"{d['execution_id']} goes on after an answer",
    "ExecutionExtended": lambda d: f"{d['execution_id']} has more time",
    "OutputClaimed": lambda d: f"{d['execution_id']} reported, to be verified",
    "ExecutionCompleted": _reported("completed"),
    "ExecutionFailed": _reported("failed"),
    "ExecutionSkipped": _reported("skipped"),
    "Routed": _routed,
    "RunHeld": lambda d: f"paused by {_who(d)}{_because(d.get('reason', ''))}",
    "RunReleased": lambda d: f"pause ended by {_who(d)}",
    "RunCompleted": lambda d: f"completed{_because(_brief(d.get('output') or ''))}",
    "RunFailed": lambda d: f"failed{_because(d['reason'])}",
    "RunCancelled": lambda d: f"{'denied' if d.get('denied') else 'cancelled'} by {_who(d)}{_because(d['reason'])}",
}


def record_line(kind: str, data: Json) -> str:
    """What one record says. A kind without a sentence, or data that was cut for display, is shown as it is."""
    sentence = _SENTENCES.get(kind)
    if sentence is None or not isinstance(data, dict) or data.get("cut") is True:
        return f"{kind} {_brief(data)}"
    return sentence(data)
