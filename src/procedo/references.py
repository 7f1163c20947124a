"""What the words of a caller refer to: a gate by its id or short code, a procedure by its name."""

import difflib

from procedo.errors import NotFound, Refused
from procedo.ports import Filter, OpenGate, Reader

__all__ = ["check_name", "gate_of"]


def gate_of(reader: Reader, reference: str) -> OpenGate:
    """The gate of an id or short code. Raises `NotFound`, or `Refused` for a code of several gates."""
    found = reader.find_gate(reference.strip())
    if not found:
        raise NotFound("unknown_gate", f"There is no gate {reference!r}.", "The inbox lists the open gates.")
    still_open = [g for g in found if g.gate.open]
    if len(found) > 1 and len(still_open) != 1:
        named = ", ".join(g.gate.id for g in found)
        raise Refused("ambiguous_gate", f"Several gates have the code {reference!r}: {named}.", "Use the whole id.")
    return still_open[0] if still_open else found[0]


def check_name(name: str, known: set[str], reader: Reader) -> None:
    """Raises `NotFound` with near names for a procedure that neither the library nor any run knows."""
    known = known | {summary.sop for summary in reader.runs(Filter())}
    if name not in known:
        near = difflib.get_close_matches(name, sorted(known), 3)
        hint = f"Did you mean {', '.join(near)}?" if near else "sop_list shows the names."
        raise NotFound("unknown_sop", f"There is no procedure {name!r}.", hint, near)
