"""Where a call comes in, and what is told there of a run's past."""

from msgspec import Struct

from procedo.core.model import Scope
from procedo.core.reach import BOUNDLESS, Reaches
from procedo.core.session import SessionRow
from procedo.core.state import Execution, Gate, Principal
from procedo.ports import Record, Summary
from procedo.transition import Snapshot

__all__ = ["History", "Surface"]


class Surface(Struct, frozen=True):
    """Where a call came in: its principal, whether a person can be asked there, and its operator route in words.

    `ceiling` are the scopes beyond which nothing that it starts may go; empty: no limit beyond the agents' own.
    `reach` are the caller's limits, which what it starts or moves on takes over.
    """

    principal: Principal
    can_ask: bool = False
    route: str = ""
    host: bool = True
    ceiling: tuple[Scope, ...] = ()
    reach: Reaches = BOUNDLESS


class History(Struct, frozen=True):
    """Everything that is known of a run, in the order of happening; `children` are all its sub-runs, ended ones too."""

    snapshot: Snapshot
    executions: tuple[Execution, ...]
    gates: tuple[Gate, ...]
    records: tuple[Record, ...]
    sessions: tuple[SessionRow, ...] = ()
    children: tuple[Summary, ...] = ()
