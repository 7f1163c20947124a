"""Every metric, as data: the meters, the Prometheus page, OpenTelemetry and the documentation read this table.

No label holds a run, an execution, a gate or a person, so that the number of series is bounded by what is configured.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

__all__ = [
    "CAPABILITIES",
    "COST",
    "GATES_CLOSED",
    "GATES_OPEN",
    "GATE_AGE",
    "GATE_WAIT",
    "GENAI_DURATION",
    "GENAI_TOKENS",
    "INSTRUMENTS",
    "JOBS",
    "JOBS_WAITING",
    "MODEL_REQUESTS",
    "MOST_SERIES",
    "NOTICES",
    "NOTICES_UNDELIVERED",
    "OTHER",
    "RUNS",
    "RUNS_ENDED",
    "RUNS_STARTED",
    "SESSIONS",
    "STEP_DURATION",
    "TOKENS",
    "TOOL_CALLS",
    "TRANSITIONS",
    "Instrument",
    "Kind",
    "reference",
]

MOST_SERIES: Final = 500
"""How many label sets one metric has at most; what comes beyond is counted under `OTHER`."""
OTHER: Final = "other"


class Kind(StrEnum):
    """What a metric is. A gauge is read from the store; the others count what this process did since it began."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


_UNITS: Final = {"s": "seconds", "USD": "usd"}
_SECONDS: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 43200.0, 86400.0, 604800.0)
_CALL_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS: Final = tuple(float(4**power) for power in range(14))


class Instrument(Struct, frozen=True):
    """One metric: its OpenTelemetry name, unit (UCUM) and labels, and what it means. `buckets` for histograms."""

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()

    @property
    def prometheus(self) -> str:
        """The name on the Prometheus page: with the unit behind it, and `_total` for a counter."""
        parts = [self.name.replace(".", "_")]
        if self.unit in _UNITS:
            parts.append(_UNITS[self.unit])
        if self.kind is Kind.COUNTER:
            parts.append("total")
        return "_".join(parts)


def _gauge(name: str, unit: str, labels: tuple[str, ...], meaning: str) -> Instrument:
    return Instrument(name, Kind.GAUGE, unit, labels, meaning)


def _counter(name: str, unit: str, labels: tuple[str, ...], meaning: str) -> Instrument:
    return Instrument(name, Kind.COUNTER, unit, labels, meaning)


RUNS: Final = _gauge("procedo.runs", "{run}", ("status",), "Runs in the store by status.")
GATES_OPEN: Final = _gauge("procedo.gates.open", "{gate}", ("policy",), "Gates that wait for a decision.")
GATE_AGE: Final = _gauge(
    "procedo.gates.oldest.age", "s", ("policy",), "How long the gate that waits longest has been waiting."
)
JOBS_WAITING: Final = _gauge(
    "procedo.jobs.waiting", "{job}", ("kind",), "Effects that are due and that no process has taken up."
)
NOTICES_UNDELIVERED: Final = _gauge(
    "procedo.notices.undelivered", "{notice}", ("route",), "Notices about gates that have not reached their place."
)
RUNS_STARTED: Final = _counter("procedo.runs.started", "{run}", ("sop",), "Runs that began.")
RUNS_ENDED: Final = _counter("procedo.runs.ended", "{run}", ("sop", "status"), "Runs that ended.")
TRANSITIONS: Final = _counter("procedo.transitions", "{transition}", ("command",), "Committed transitions.")
GATES_CLOSED: Final = _counter(
    "procedo.gates.closed", "{gate}", ("policy", "verdict"), "Gates that were decided, expired or withdrawn."
)
GATE_WAIT: Final = Instrument(
    "procedo.gates.wait", Kind.HISTOGRAM, "s", ("policy",), "From the opening of a gate to its end.", _SECONDS
)
STEP_DURATION: Final = Instrument(
    "procedo.steps.duration",
    Kind.HISTOGRAM,
    "s",
    ("sop", "performer", "outcome"),
    "From the opening of an execution to its end, waiting for people included.",
    _SECONDS,
)
SESSIONS: Final = _counter(
    "procedo.sessions", "{session}", ("agent", "state"), "Sessions of agents that ended or were parked."
)
TOKENS: Final = _counter(
    "procedo.agent.tokens", "{token}", ("agent", "model", "direction"), "Tokens of model requests, as providers count."
)
COST: Final = _counter(
    "procedo.agent.cost", "USD", ("agent", "model"), "What model requests cost, where the price is known."
)
MODEL_REQUESTS: Final = _counter(
    "procedo.agent.requests", "{request}", ("agent", "model", "outcome"), "Requests to models: answered or lost."
)
TOOL_CALLS: Final = _counter("procedo.agent.tool_calls", "{call}", ("agent", "outcome"), "Tool calls of agents.")
CAPABILITIES: Final = _counter(
    "procedo.capability.calls", "{call}", ("capability", "outcome"), "Calls of capabilities by the server itself."
)
NOTICES: Final = _counter("procedo.notices", "{notice}", ("route", "outcome"), "Attempts to deliver a notice.")
JOBS: Final = _counter("procedo.jobs", "{attempt}", ("kind", "outcome"), "Attempts at effects: done, or put off.")
GENAI_TOKENS: Final = Instrument(
    "gen_ai.client.token.usage",
    Kind.HISTOGRAM,
    "{token}",
    ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.token.type"),
    "Tokens of each model request, by the conventions for generative AI.",
    _TOKENS,
)
GENAI_DURATION: Final = Instrument(
    "gen_ai.client.operation.duration",
    Kind.HISTOGRAM,
    "s",
    ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"),
    "Time of each answered model request, by the conventions for generative AI.",
    _CALL_SECONDS,
)

INSTRUMENTS: Final = (
    RUNS,
    GATES_OPEN,
    GATE_AGE,
    JOBS_WAITING,
    NOTICES_UNDELIVERED,
    RUNS_STARTED,
    RUNS_ENDED,
    TRANSITIONS,
    STEP_DURATION,
    GATES_CLOSED,
    GATE_WAIT,
    SESSIONS,
    MODEL_REQUESTS,
    TOKENS,
    COST,
    TOOL_CALLS,
    CAPABILITIES,
    NOTICES,
    JOBS,
    GENAI_TOKENS,
    GENAI_DURATION,
)


def reference() -> str:
    """The table of metrics in Markdown, for the documentation."""
    rows = [
        f"| `{one.prometheus}` | `{one.name}` | {one.kind} | {', '.join(f'`{name}`' for name in one.labels)} "
        f"| {one.meaning} |"
        for one in INSTRUMENTS
    ]
    head = ["| at `/metrics` | in OpenTelemetry | kind | labels | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])
