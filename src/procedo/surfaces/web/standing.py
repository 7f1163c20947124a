"""How a run stands now, in words for the page."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from procedo.core import messages as m
from procedo.core.model import Json
from procedo.core.state import Status
from procedo.runs import Snapshot
from procedo.surfaces.redaction import masked, masked_text
from procedo.surfaces.web.words import actor, blocks, shown

__all__ = ["Now", "standing", "status_words"]


class Now(Struct, frozen=True):
    """One thing that is the case; `gate` is the id of a gate that waits."""

    text: str
    gate: str = ""


def status_words(status: Status) -> str:
    """A status as it is read."""
    return str(status).replace("_", " ")


def standing(snapshot: Snapshot) -> tuple[Now, ...]:
    """What happens now in a run, or how it ended."""
    return tuple(_all(snapshot))


def _all(snapshot: Snapshot) -> Iterator[Now]:
    pause = snapshot.run.pause
    if pause is not None:
        yield Now(f"The run is paused by {actor(pause.by)}{_because(pause.reason)}.")
    for action in snapshot.actions:
        yield _one(action)
    for child in snapshot.children:
        yield from (Now(f"In {child.run.sop}: {now.text}", now.gate) for now in _all(child))


def _because(reason: str) -> str:
    return f": {shown(masked_text(reason))}" if reason else ""


def _one(action: m.Action) -> Now:
    match action:
        case m.ExecuteStep():
            return Now(f"{_step(action.step)}{_item(action.context)} is with {action.step.agent}.")
        case m.DeterministicStep():
            return Now(f"{_step(action.step)} is with {action.step.agent}.")
        case m.WaitApproval() | m.CheckpointWait():
            return Now(f"{_step(action.step)} waits for a decision.", action.gate.id)
        case m.PendingStep():
            return Now(f"Step {action.step} cannot begin yet: {shown(masked_text(action.reason))}.")
        case m.Delegated():
            return Now(f"{_step(action.step)} is in progress ({action.agent or 'the server'}).")
        case m.Ended():
            return Now(_ended(action))


def _step(offer: m.StepOffer) -> str:
    return f"Step {offer.number}, {shown(masked_text(offer.title))},"


def _item(context: Mapping[str, Json]) -> str:
    number, count = context.get("item_number"), context.get("item_count")
    return f" item {number} of {count}," if number is not None else ""


def _ended(action: m.Ended) -> str:
    if action.status is Status.COMPLETED:
        output = "; ".join(f"{block.name}: {block.text}".lstrip(": ") for block in blocks(masked(action.output)))
        return f"The run is completed{'' if not output else f' with {output[:400]}'}."
    by = f" by {actor(action.by)}" if action.status is Status.CANCELLED and action.by else ""
    return f"The run is {action.status}{by}{_because(action.reason)}."
