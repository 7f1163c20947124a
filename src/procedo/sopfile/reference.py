"""Every field of the format, as data: its name in TOML, its bullet, its type, its meaning.

Reader, problems, writer and documentation all read these tables, so that a field is described once.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

__all__ = [
    "BULLETS",
    "EVENTS",
    "HEADER",
    "MISTAKEN",
    "ORDINARY",
    "POSITION_KEYS",
    "STEP",
    "TABLES",
    "TRIGGERS",
    "Field",
    "Type",
    "is_extension",
]


class Type(StrEnum):
    """What kind of value a field takes, in the words of its problems."""

    TEXT = "text"
    NAME = "a name"
    LIST = "a list of names"
    BOOL = "true or false"
    COUNT = "a whole number, 0 or more"
    POSITIVE = "a whole number, 1 or more"
    JSON = "any JSON value"
    SCHEMA = "a JSON Schema"
    STEPS = "step numbers or ids"
    TARGET = "a step number or id, or `end`"
    GOTO = "`goto:` with a step number or id"
    PORTS = "ports of a switch"
    FAILURE = "`fail`, `retry:n` or `goto:n`"
    CALLS = "planned calls"
    DURATION = "a duration: 90s, 15m, 2h, 1d, or seconds"
    CONDITION = "a condition"
    TEMPLATE = "a `{{…}}` binding"
    WAIT = "a duration, or `until` with a binding"
    VERIFY = "a condition or a capability call"
    POS = "canvas coordinates"
    KIND = "execute, checkpoint, capability, sop or wait"
    MODE = "auto, supervised, step_by_step, priority_based or deterministic"
    PRIORITY = "low, normal, high or critical"
    ADMISSION = "parallel, hold, coalesce or drop"
    REVEAL = "all, titles or current"
    ON_TIMEOUT = "fail, retry or gate"


class Field(Struct, frozen=True):
    """One field. `bullets` are its spellings in `SOP.md`, the first one being written; none: TOML only."""

    name: str
    type: Type
    meaning: str
    bullets: tuple[str, ...] = ()
    default: str = ""
    required: bool = False


def _by_name(*fields: Field) -> Mapping[str, Field]:
    return MappingProxyType({field.name: field for field in fields})


HEADER: Final = _by_name(
    Field("name", Type.TEXT, "The procedure's name; saved in a folder of that name.", required=True),
    Field("description", Type.TEXT, "One line for the catalogue.", required=True),
    Field("version", Type.TEXT, "A label.", default="0.1.0"),
    Field("priority", Type.PRIORITY, "Which steps `priority_based` gates.", default="normal"),
    Field("execution_mode", Type.MODE, "Which steps get a gate.", default="the workspace's"),
    Field("deterministic", Type.BOOL, "True is the same as execution_mode = deterministic.", default="false"),
    Field("cooldown_secs", Type.COUNT, "Seconds after a completed run before the next may start.", default="0"),
    Field("max_concurrent", Type.COUNT, "How many runs may execute at once.", default="1"),
    Field("admission_policy", Type.ADMISSION, "What a start without a free slot gets.", default="parallel"),
    Field("max_pending_approvals", Type.COUNT, "How many runs may wait for a decision; 0 sets no limit.", default="0"),
    Field("agent", Type.NAME, "Performs every step that names no agent.", default="the host"),
    Field("reveal", Type.REVEAL, "How much of the procedure the host sees before its step comes.", default="all"),
    Field("key", Type.TEXT, "An expression over the inputs; one live run for each value."),
    Field("max_per_window", Type.COUNT, "How many runs (of one key value) may start within `window`.", default="0"),
    Field("window", Type.DURATION, "The time that `max_per_window` counts over."),
)

STEP: Final = _by_name(
    Field("number", Type.COUNT, "The step's number; 0 or missing: its position."),
    Field("title", Type.TEXT, "What the step is called."),
    Field("body", Type.TEXT, "What is to be done."),
    Field("id", Type.NAME, "A name by which references may call the step.", ("id",)),
    Field("kind", Type.KIND, "What the step is.", ("kind",), "execute"),
    Field("agent", Type.NAME, "Who performs the step.", ("agent",), "the procedure's"),
    Field("suggested_tools", Type.LIST, "Tools for the step; the allow list when none is given.", ("tools",)),
    Field("scope.allow", Type.LIST, "The only tools offered; empty offers none.", ("allow-tools", "allow_tools")),
    Field("scope.deny", Type.LIST, "Tools that are not offered.", ("deny-tools", "deny_tools")),
    Field(
        "requires_confirmation", Type.BOOL, "A decision is taken before the step.", ("requires_confirmation",), "false"
    ),
    Field("mode", Type.MODE, "Gates this step as that mode would; adds a gate, never removes one.", ("mode",)),
    Field("policy", Type.NAME, "The approval policy of the step's gates.", ("policy",), "a human"),
    Field("gate_prompt", Type.TEXT, "What the approver is asked; `{{a.b}}` reads the step's input.", ("prompt",)),
    Field("edit", Type.NAME, "The one input field that an approver of the checkpoint may amend.", ("edit",)),
    Field("capability", Type.NAME, "Work that the server does itself.", ("capability",)),
    Field("sop", Type.NAME, "Another procedure that is run for this step.", ("sop",)),
    Field("with", Type.JSON, "Arguments of the capability, or inputs of the other procedure.", ("with",)),
    Field("wait", Type.WAIT, "Waits that long, or until a time.", ("wait",)),
    Field("calls", Type.CALLS, "Planned tool calls `{tool, args}`, one bullet for each.", ("call",)),
    Field("schema.input", Type.SCHEMA, "What the step's input must look like.", ("input",)),
    Field("schema.output", Type.SCHEMA, "What the step's output must look like.", ("output",)),
    Field("verify", Type.VERIFY, "Judges the report of the step.", ("verify",)),
    Field("context", Type.STEPS, "Which earlier outputs the step's agent is shown.", ("context",)),
    Field("if", Type.CONDITION, "False: the step is skipped, and routing goes on.", ("if",)),
    Field("routing.when", Type.CONDITION, "False: the step hands on to the next in line.", ("when",)),
    Field("routing.switch", Type.PORTS, "Ports `name>guard>target`; the first that holds is taken.", ("switch",)),
    Field("routing.else", Type.TARGET, "Where a switch without a matching port goes.", ("else",)),
    Field("routing.next", Type.STEPS, "Which steps follow; several run side by side.", ("next",)),
    Field("routing.terminal", Type.BOOL, "Nothing follows the step.", ("terminal",), "false"),
    Field(
        "routing.depends_on",
        Type.STEPS,
        "Steps that must be completed before; several join.",
        ("depends_on", "depends-on"),
    ),
    Field("on_failure", Type.FAILURE, "What follows a failed attempt.", ("on_failure", "on-failure"), "fail"),
    Field("on_deny", Type.GOTO, "Where a denial at the step's gate leads; otherwise it ends the run.", ("on_deny",)),
    Field("timeout", Type.DURATION, "How long one attempt may take.", ("timeout",)),
    Field("on_timeout", Type.ON_TIMEOUT, "What follows when it takes longer.", ("on_timeout",), "fail"),
    Field("for_each", Type.TEMPLATE, "An array; the step runs once for each item, as `{{item}}`.", ("for_each",)),
    Field("max_parallel", Type.POSITIVE, "How many items are worked on at once.", ("max_parallel",), "1"),
    Field("pos", Type.POS, "Canvas coordinates."),
)

BULLETS: Final[Mapping[str, Field]] = MappingProxyType(
    {bullet: field for field in STEP.values() for bullet in field.bullets}
)
"""The field of each bullet key, exactly as it is written."""

TRIGGERS: Final[Mapping[str, Mapping[str, Type]]] = MappingProxyType(
    {
        "manual": {},
        "cron": {"expression": Type.TEXT},
        "mqtt": {"topic": Type.TEXT, "condition": Type.CONDITION},
        "amqp": {"routing_key": Type.TEXT, "condition": Type.CONDITION},
        "filesystem": {"path": Type.TEXT, "events": Type.LIST, "condition": Type.CONDITION},
        "channel": {"channel": Type.TEXT, "alias": Type.TEXT, "condition": Type.CONDITION},
        "webhook": {"path": Type.TEXT},
        "peripheral": {"board": Type.TEXT, "signal": Type.TEXT, "condition": Type.CONDITION},
        "calendar": {"calendar_source": Type.TEXT, "calendar_ids": Type.LIST, "condition": Type.CONDITION},
    }
)
"""The keys of each trigger type; `condition` is tested on the payload."""

EVENTS: Final = ("created", "modified", "deleted", "renamed")
"""What a filesystem trigger may wait for; none named means all."""

POSITION_KEYS: Final = ("step", "x", "y")
TABLES: Final = ("sop", "inputs", "triggers", "positions", "steps")

MISTAKEN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "retry": "on_failure",
        "retries": "on_failure",
        "goto": "next",
        "on_fail": "on_failure",
        "on_error": "on_failure",
        "confirm": "requires_confirmation",
        "confirmation": "requires_confirmation",
        "gate": "requires_confirmation",
        "gated": "requires_confirmation",
        "approval": "requires_confirmation",
        "approval_required": "requires_confirmation",
        "human_approval": "requires_confirmation",
        "needs_confirmation": "requires_confirmation",
        "needs_approval": "requires_confirmation",
        "requires_approval": "requires_confirmation",
        "condition": "when",
        "depends": "depends_on",
        "schema": "output",
        "input_schema": "input",
        "output_schema": "output",
        "allow": "allow-tools",
        "deny": "deny-tools",
        "foreach": "for_each",
        "approve_on_timeout": "on_timeout",
    }
)
"""What authors write, by the bullet that they mean (forms as compared: lower case, underscores)."""

ORDINARY: Final = frozenset({"all", "content", "kid", "model", "net", "police", "width"})
"""Words that are near a key and open ordinary sentences; a bullet that begins with one stays text."""


def is_extension(key: str) -> bool:
    """True for a key that procedo keeps and does not read: it begins with `x-`."""
    return key.startswith("x-") and len(key) > 2
