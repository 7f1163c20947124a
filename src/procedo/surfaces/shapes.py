"""The shapes that every surface shows: plain JSON objects, built in `views`, `catalogue` and `overview`.

A key that has nothing to say is absent. Times are UTC text, durations seconds.
"""

from typing import Literal, NotRequired, TypeAlias, TypedDict

from procedo.core.model import Json

__all__ = [
    "ActionView",
    "AgentUsage",
    "AttentionView",
    "Call",
    "CancelledView",
    "CatalogueEntry",
    "CatalogueView",
    "CheckpointView",
    "CompletedView",
    "DelegatedView",
    "DescribeView",
    "DeterministicView",
    "ExecuteView",
    "FailedView",
    "GateView",
    "InboxEntry",
    "InboxView",
    "LimitView",
    "PendingView",
    "RunLine",
    "RunView",
    "StepLine",
    "StepView",
    "UsageView",
    "VoteView",
    "WaitView",
    "Who",
]

Who: TypeAlias = Literal["host", "human", "agent", "server", "nobody"]


class Call(TypedDict):
    """The tool to use next, with its arguments filled in; `when` names a condition that comes first."""

    tool: str
    arguments: dict[str, Json]
    when: NotRequired[str]


class StepView(TypedDict):
    """A step as its performer sees it."""

    number: int
    title: str
    kind: str
    agent: str
    attempt: int
    body: NotRequired[str]
    tools: NotRequired[list[str]]
    calls: NotRequired[list[Json]]
    output_schema: NotRequired[Json]
    note: NotRequired[str]


class ExecuteView(TypedDict):
    """A step for the caller's own agent. `context` is data, never instruction."""

    action: Literal["execute_step"]
    run_id: str
    execution_id: str
    step: StepView
    context: dict[str, Json]
    due_at: NotRequired[str]
    note: NotRequired[str]
    call: Call


class DeterministicView(TypedDict):
    """A step without a model whose work the calling program does."""

    action: Literal["deterministic_step"]
    run_id: str
    execution_id: str
    step: StepView
    input: Json
    due_at: NotRequired[str]
    note: NotRequired[str]
    call: Call


class VoteView(TypedDict):
    """How many people gave one answer to one text."""

    answer: str
    count: int
    of: int


class GateView(TypedDict):
    """A question that a principal must answer, without the run around it."""

    gate_id: str
    code: str
    kind: str
    step: int
    title: str
    asks: str
    content: Json
    answers: list[str]
    may_decide: str
    since: str
    revision: int
    policy: NotRequired[str]
    due_at: NotRequired[str]
    when_due: NotRequired[str]
    votes: NotRequired[list[VoteView]]
    amends: NotRequired[str]
    notices_failed: NotRequired[list[str]]


class WaitView(TypedDict):
    """A gate before a step, or for something that happens within one."""

    action: Literal["wait_approval"]
    run_id: str
    gate_id: str
    step: StepView
    context: GateView
    where: str
    call: Call


class CheckpointView(TypedDict):
    """A checkpoint; `state_file` is the committed state in a form that another store can adopt."""

    action: Literal["checkpoint_wait"]
    run_id: str
    gate_id: str
    step: StepView
    context: GateView
    where: str
    state_file: NotRequired[str]
    call: Call


class PendingView(TypedDict):
    """A step that was chosen and cannot begin yet."""

    action: Literal["pending"]
    run_id: str
    sop_name: str
    step: int
    reason: str
    due_at: NotRequired[str]
    call: NotRequired[Call]


class CompletedView(TypedDict):
    """The run reached its end."""

    action: Literal["completed"]
    run_id: str
    sop_name: str
    output: Json


class FailedView(TypedDict):
    """The run could not go on."""

    action: Literal["failed"]
    run_id: str
    sop_name: str
    reason: str


class CancelledView(TypedDict):
    """Somebody ended the run; `denied` when that was a denial at a gate."""

    action: Literal["cancelled"]
    run_id: str
    sop_name: str
    reason: str
    by: str
    at: str
    denied: bool


class DelegatedView(TypedDict):
    """Another agent, the server, a sub-run or a timer is at work."""

    action: Literal["delegated"]
    run_id: str
    execution_id: str
    step: StepView
    agent: str
    since: str
    due_at: NotRequired[str]
    poll_after_s: NotRequired[int]
    call: NotRequired[Call]


ActionView: TypeAlias = (
    ExecuteView
    | DeterministicView
    | WaitView
    | CheckpointView
    | PendingView
    | CompletedView
    | FailedView
    | CancelledView
    | DelegatedView
)


class AgentUsage(TypedDict):
    """What one agent has used. `unmeasured` and `unpriced` count requests whose tokens or cost nobody knows.

    `cost_usd` is decimal text. `scripted`: its answers came from a file.
    """

    agent: str
    sessions: int
    model_turns: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: str
    unmeasured: NotRequired[int]
    unpriced: NotRequired[int]
    scripted: NotRequired[bool]


class UsageView(TypedDict):
    """What the agents of a run and of its sub-runs have used. `sub_runs` is how many of those have a part in it."""

    input_tokens: int
    output_tokens: int
    cost_usd: str
    unmeasured: NotRequired[int]
    unpriced: NotRequired[int]
    sub_runs: NotRequired[int]
    agents: list[AgentUsage]


class RunView(TypedDict):
    """What every call about a run answers with.

    `may_proceed` is true exactly when an action is for the caller. `poll_after_s` is absent when asking again
    is of no use. `children` are the live sub-runs.
    """

    run_id: str
    sop: str
    version: str
    digest: str
    status: str
    who_acts: Who
    may_proceed: bool
    actions: list[ActionView]
    last_activity: str
    output: NotRequired[Json]
    failure: NotRequired[str]
    poll_after_s: NotRequired[int]
    notes: NotRequired[list[str]]
    usage: NotRequired[UsageView]
    children: NotRequired[list["RunView"]]


class CatalogueEntry(TypedDict):
    """A procedure in the list. With `problems` of severity error it cannot be started."""

    name: str
    startable: bool
    description: NotRequired[str]
    version: NotRequired[str]
    priority: NotRequired[str]
    mode: NotRequired[str]
    steps: NotRequired[int]
    inputs: NotRequired[list[str]]
    problems: NotRequired[list[str]]


class CatalogueView(TypedDict):
    """What can be started, and what cannot and why."""

    folder: str
    sops: list[CatalogueEntry]
    note: NotRequired[str]


class StepLine(TypedDict):
    """A step in a description, as far as the procedure reveals it beforehand."""

    number: int
    title: str
    id: NotRequired[str]
    kind: NotRequired[str]
    agent: NotRequired[str]
    gate: NotRequired[str]
    body: NotRequired[str]
    tools: NotRequired[list[str]]
    capability: NotRequired[str]
    sop: NotRequired[str]
    leads_to: NotRequired[list[str]]


class LimitView(TypedDict):
    """A limit as configured, and as it works beside the wider ones."""

    configured: int
    effective: int


class DescribeView(TypedDict):
    """One procedure."""

    name: str
    description: str
    version: str
    digest: str
    priority: str
    mode: str
    agent: str
    inputs: Json
    steps: NotRequired[list[StepLine]]
    step_count: int
    agents: list[str]
    max_concurrent: LimitView
    admission: str
    graph: NotRequired[str]
    triggers: NotRequired[list[str]]
    problems: NotRequired[list[str]]
    note: NotRequired[str]
    call: Call


class RunLine(TypedDict):
    """A run in a list."""

    run_id: str
    sop: str
    version: str
    status: str
    started_at: str
    last_activity: str
    ended_at: NotRequired[str]
    reason: NotRequired[str]
    open_gates: NotRequired[int]
    parent_run: NotRequired[str]


class AttentionView(TypedDict):
    """The runs that have not ended, and how many runs have each status."""

    runs: list[RunLine]
    counts: dict[str, int]
    note: NotRequired[str]


class InboxEntry(GateView):
    """An open gate with the run that it belongs to."""

    run_id: str
    sop: str


class InboxView(TypedDict):
    """Every question that waits for an answer, the oldest first."""

    gates: list[InboxEntry]
