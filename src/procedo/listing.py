"""Runs in a list: which are wanted, and what is told of each."""

from datetime import datetime

from msgspec import Struct

from procedo.core.state import Principal, Status

__all__ = ["Filter", "Summary"]


class Filter(Struct, frozen=True):
    """Which runs to list. `live` True lists those that have not ended, False those that have."""

    sop: str | None = None
    live: bool | None = None
    status: Status | None = None
    limit: int = 50


class Summary(Struct, frozen=True):
    """A run in a list."""

    run_id: str
    sop: str
    version: str
    digest: str
    status: Status
    reason: str
    started_at: datetime
    active_at: datetime
    ended_at: datetime | None
    open_gates: int
    parent_run: str | None
    key: str | None
    starter: Principal
