"""The shapes of a run's past, as every surface shows it; see `shapes` for the rules."""

from typing import NotRequired, TypedDict

from procedo.core.model import Json
from procedo.surfaces.shapes import RunView

__all__ = ["DecisionView", "ExecutionView", "HistoryView", "RecordView"]


class ExecutionView(TypedDict):
    """One attempt of one step."""

    execution_id: str
    step: int
    title: str
    attempt: int
    phase: str
    performer: str
    agent: str
    opened_at: str
    closed_at: NotRequired[str]
    by: NotRequired[str]
    reason: NotRequired[str]
    output: NotRequired[Json]
    notes: NotRequired[list[str]]


class DecisionView(TypedDict):
    """One gate and what became of it."""

    gate_id: str
    code: str
    kind: str
    step: int
    asks: str
    opened_at: str
    revision: int
    verdict: NotRequired[str]
    by: NotRequired[str]
    at: NotRequired[str]
    expired: NotRequired[bool]
    break_glass: NotRequired[bool]
    withdrawn: NotRequired[str]
    comment: NotRequired[str]


class RecordView(TypedDict):
    """One line of the record."""

    seq: int
    at: str
    kind: str
    acting: str
    execution_id: NotRequired[str]
    data: Json


class HistoryView(TypedDict):
    """Everything that happened in a run."""

    run: RunView
    started_at: str
    started_by: str
    inputs: Json
    executions: list[ExecutionView]
    gates: list[DecisionView]
    records: list[RecordView]
