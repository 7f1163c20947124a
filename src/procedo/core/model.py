"""What a procedure is, once it has been read and compiled.

Only frozen values live here. Conditions and schemas arrive as callables that the loader compiled, so
that the core needs neither a JSON Schema nor a CEL library. Nothing in here reads a file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

__all__ = [
    "EMPTY",
    "Admission",
    "Condition",
    "Expression",
    "FailureRule",
    "Inputs",
    "Json",
    "Kind",
    "Mode",
    "OnFailure",
    "OnTimeout",
    "Port",
    "Priority",
    "Reveal",
    "Schema",
    "Scope",
    "Sop",
    "Step",
    "Trigger",
    "Truth",
    "Verify",
    "Violation",
]

Json: TypeAlias = Any
"""A JSON value. Spelled `Any` because a recursive alias makes every access a cast."""

EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


class Kind(StrEnum):
    """What a step is. Every kind means the same in every mode."""

    EXECUTE = "execute"
    CHECKPOINT = "checkpoint"
    CAPABILITY = "capability"
    SOP = "sop"
    WAIT = "wait"


class Mode(StrEnum):
    """Which steps get a gate; see `routing.gate_needed`."""

    AUTO = "auto"
    SUPERVISED = "supervised"
    STEP_BY_STEP = "step_by_step"
    PRIORITY_BASED = "priority_based"
    DETERMINISTIC = "deterministic"


class Priority(StrEnum):
    """Feeds `priority_based` gating; it never removes a gate."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    CRITICAL = "critical"


class Admission(StrEnum):
    """What happens to a start when the procedure has no free slot."""

    PARALLEL = "parallel"
    HOLD = "hold"
    COALESCE = "coalesce"
    DROP = "drop"


class Reveal(StrEnum):
    """How much of the procedure the host's model sees before its step comes."""

    ALL = "all"
    TITLES = "titles"
    CURRENT = "current"


class OnFailure(StrEnum):
    """What follows a failed attempt."""

    FAIL = "fail"
    RETRY = "retry"
    GOTO = "goto"


class OnTimeout(StrEnum):
    """What follows a step that exceeded its time."""

    FAIL = "fail"
    RETRY = "retry"
    GATE = "gate"


class Violation(Struct, frozen=True):
    """One place where a value breaks its schema, told as path, expected and found."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        where = self.path or "value"
        return f"{where}: expected {self.expected}, got {self.found}"


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON Schema (2020-12) compiled at load. `violations` returns nothing when the value is valid."""

    source: Json
    violations: Callable[[Json], tuple[Violation, ...]] = field(compare=False)

    @property
    def wants_string(self) -> bool:
        """True when the schema asks for a string, so that no JSON is mined out of a text."""
        return isinstance(self.source, dict) and self.source.get("type") == "string"


class Truth(Struct, frozen=True):
    """The answer of a condition; `note` explains an answer that a reader might not expect."""

    value: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition compiled at load.

    `test` gets `{"inputs": …, "steps": {"<n>": output}, "run": {…}, "item": …}` and never raises.
    `refs` are the steps whose outputs it reads; None means that they cannot be known before it runs.
    """

    source: str
    test: Callable[[Mapping[str, Json]], Truth] = field(compare=False)
    refs: frozenset[int] | None = frozenset()


@dataclass(frozen=True, slots=True)
class Expression:
    """A value computed from the inputs alone (`key` of a procedure). Raises `ValueError` when it cannot be."""

    source: str
    value: Callable[[Mapping[str, Json]], Json] = field(compare=False)


class Port(Struct, frozen=True):
    """One way out of a switch. `when` None is the catch-all; `target` None ends the branch (`else: end`)."""

    name: str
    when: Condition | None
    target: int | None


class FailureRule(Struct, frozen=True):
    """`on_failure`: `retries` further attempts, `backoff_s` seconds before each; then `target` or the run fails."""

    kind: OnFailure = OnFailure.FAIL
    retries: int = 0
    backoff_s: float = 0.0
    target: int | None = None


class Scope(Struct, frozen=True):
    """Which tools a step offers. `allow` None means the agent's own list; an empty tuple means none."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


class Verify(Struct, frozen=True):
    """Proof instead of a claim: exactly one of a condition or a capability call judges the report.

    A condition sees the reported value as `output`. A capability gets `arguments` with the reported value
    under `output` and `input`; it passes when the call succeeds, unless its result says otherwise with
    `{"verdict": "pass" | "fail" | "cannot_evaluate", "reason": …}`.
    """

    condition: Condition | None = None
    capability: str | None = None
    arguments: Json = None


class Step(Struct, frozen=True):
    """One step, with every reference resolved to a step number.

    `next` with several numbers forks; `depends_on` with several numbers joins. `sees` are the steps
    whose outputs its agent is shown besides the predecessor's. `reads` are all steps whose outputs
    are needed to open it (bindings, conditions, `sees`).
    """

    number: int
    title: str
    body: str = ""
    id: str | None = None
    kind: Kind = Kind.EXECUTE
    agent: str | None = None
    tools: tuple[str, ...] = ()
    scope: Scope = Scope()
    requires_confirmation: bool = False
    mode: Mode | None = None
    policy: str | None = None
    gate_prompt: str | None = None
    edit: str | None = None
    capability: str | None = None
    arguments: Json = None
    has_arguments: bool = False
    sub_sop: str | None = None
    wait_s: float | None = None
    wait_until: str | None = None
    calls: tuple[Json, ...] = ()
    input_schema: Schema | None = None
    output_schema: Schema | None = None
    precondition: Condition | None = None
    when: Condition | None = None
    switch: tuple[Port, ...] = ()
    next: tuple[int, ...] = ()
    terminal: bool = False
    depends_on: tuple[int, ...] = ()
    on_failure: FailureRule = FailureRule()
    on_deny: int | None = None
    timeout_s: float | None = None
    on_timeout: OnTimeout = OnTimeout.FAIL
    for_each: str | None = None
    max_parallel: int = 1
    verify: Verify | None = None
    sees: tuple[int, ...] = ()
    reads: frozenset[int] = frozenset()
    extensions: Mapping[str, Json] = msgspec.field(default_factory=dict)
    line: int = 0

    @property
    def is_gate(self) -> bool:
        """True for a checkpoint: the step itself is the decision."""
        return self.kind is Kind.CHECKPOINT


class Inputs(Struct, frozen=True):
    """The start inputs: schema and the defaults that are filled in when a key is absent."""

    schema: Schema
    defaults: Mapping[str, Json] = msgspec.field(default_factory=dict)


class Trigger(Struct, frozen=True):
    """A declared trigger. `served` is False when nothing in this server feeds it."""

    type: str
    settings: Mapping[str, Json] = msgspec.field(default_factory=dict)
    condition: Condition | None = None
    served: bool = False


class Sop(Struct, frozen=True, dict=True):
    """A procedure: pinned in each run by `digest`, the hash of its files' content.

    `steps` are in running order and have unique numbers, gaps allowed. `mode` None means that the
    workspace's default applies at start. Times are seconds.
    """

    name: str
    description: str
    steps: tuple[Step, ...]
    digest: str
    version: str = "0.1.0"
    priority: Priority = Priority.NORMAL
    mode: Mode | None = None
    agent: str | None = None
    cooldown_s: float = 0.0
    max_concurrent: int = 1
    admission: Admission = Admission.PARALLEL
    max_pending_approvals: int = 0
    inputs: Inputs | None = None
    key: Expression | None = None
    max_per_window: int = 0
    window_s: float = 0.0
    reveal: Reveal = Reveal.ALL
    triggers: tuple[Trigger, ...] = ()
    positions: Mapping[int, tuple[float, float]] = msgspec.field(default_factory=dict)
    extensions: Mapping[str, Json] = msgspec.field(default_factory=dict)

    @cached_property
    def by_number(self) -> Mapping[int, Step]:
        """The steps by their numbers."""
        return {step.number: step for step in self.steps}

    @cached_property
    def forking(self) -> tuple[Step, ...]:
        """The steps that are followed by several at once."""
        return tuple(step for step in self.steps if len(step.next) > 1)

    @cached_property
    def footprints(self) -> dict[int, frozenset[int]]:
        """What each step can read, computed when it is first asked for (by `routing`)."""
        return {}

    @cached_property
    def _following(self) -> Mapping[int, int]:
        return dict(pairwise(step.number for step in self.steps))

    def after(self, number: int) -> int | None:
        """The number of the step that stands next in line, or None at the end."""
        return self._following.get(number)
