"""Every span and attribute, as data, and how spans are opened. What is not in these tables is not exported.

The OpenTelemetry API and SDK are reached by `tracing` and `exporting` alone; without them `NO_SPANS` stands here.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from procedo.telemetry.happenings import Commit

__all__ = [
    "ATTRIBUTES",
    "CAPABILITY",
    "CLIENT",
    "JOB",
    "MODEL",
    "NOTICE",
    "NO_SPANS",
    "SERVER",
    "SESSION",
    "SPANS",
    "TOOL",
    "TRANSITION",
    "OpenSpan",
    "Shape",
    "Spans",
    "Value",
    "reference",
]

Value: TypeAlias = str | int | float | bool | tuple[str, ...]

ATTRIBUTES: Final[Mapping[str, str]] = {
    "procedo.run.id": "The run. The one attribute by which all spans of a run are found, whatever trace they are in.",
    "procedo.sop": "The name of the procedure.",
    "procedo.execution.id": "The execution, such as `3.2`.",
    "procedo.command": "What was asked of the run: `Start`, `Report`, `Decide`, `Tick`, …",
    "procedo.status.before": "The run's status before the transition; absent when it began.",
    "procedo.status.after": "The run's status after it.",
    "procedo.revision": "The run's revision after it.",
    "procedo.events": "How many events were committed.",
    "procedo.job.kind": "What an effect is: `perform`, `verify`, `tick`, `notice`, …",
    "procedo.job.attempt": "Which attempt at the effect it is, from 1.",
    "procedo.session.state": "How the agent's session ended, or `parked`.",
    "procedo.capability": "The capability.",
    "procedo.notice.route": "The route of a notice.",
    "procedo.outcome": "How a call ended: `success`, `failed`, `denied`, or `interrupted` (it may have acted).",
    "procedo.tool.server": "The MCP server of a tool.",
    "error.type": "Why a span failed: the code of a refusal, an HTTP status, or the name of an exception.",
    "gen_ai.operation.name": "`execute_tool`, `invoke_agent` or `chat`.",
    "gen_ai.provider.name": "Who serves the model.",
    "gen_ai.agent.name": "The agent's alias.",
    "gen_ai.conversation.id": "The session: run and execution.",
    "gen_ai.request.model": "The model that was asked for.",
    "gen_ai.request.max_tokens": "The limit of the answer.",
    "gen_ai.request.temperature": "The temperature, where the agent has one.",
    "gen_ai.response.model": "The model that answered.",
    "gen_ai.response.finish_reasons": "Why it ended.",
    "gen_ai.usage.input_tokens": "Tokens in; of a session: of all its answered requests so far.",
    "gen_ai.usage.output_tokens": "Tokens out, likewise.",
    "gen_ai.tool.name": "The tool.",
    "gen_ai.tool.type": "`function`.",
    "gen_ai.prompt.name": "The prompt of a `prompts/get`.",
    "mcp.method.name": "The method of an MCP message.",
    "mcp.protocol.version": "The protocol revision of the client.",
    "jsonrpc.request.id": "The id of the request.",
    "rpc.response.status_code": "The JSON-RPC error code.",
}
"""The attributes that leave the process. No input, output, prompt, argument, result or person is among them."""


class Shape(Struct, frozen=True):
    """One kind of span: its name (`{…}` is filled in), kind, parent in words, attributes, and what it covers."""

    name: str
    kind: str
    parent: str
    attributes: tuple[str, ...]
    meaning: str


_OF_RUN: Final = ("procedo.run.id", "procedo.execution.id")
TRANSITION: Final = Shape(
    "transition {command}",
    "internal",
    "the call or job that caused it",
    ("procedo.command", "procedo.run.id", "procedo.sop", "procedo.status.before", "procedo.status.after",
     "procedo.revision", "procedo.events"),
    "One committed transition, from the begin of its transaction to the commit.",
)  # fmt: skip
JOB: Final = Shape(
    "job {kind}",
    "consumer",
    "the transition that asked for it, when this process committed that; else none",
    ("procedo.job.kind", "procedo.job.attempt", *_OF_RUN, "error.type"),
    "One attempt at an effect behind a transition.",
)
SESSION: Final = Shape(
    "invoke_agent {agent}",
    "internal",
    "its job",
    ("gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.conversation.id", "gen_ai.provider.name",
     "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", *_OF_RUN,
     "procedo.sop", "procedo.session.state", "error.type"),
    "One activation of an agent's session, from its assembly to its end or to a question.",
)  # fmt: skip
MODEL: Final = Shape(
    "chat {model}",
    "client",
    "its session",
    ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.agent.name", "gen_ai.request.model",
     "gen_ai.request.max_tokens", "gen_ai.request.temperature", "gen_ai.response.model",
     "gen_ai.response.finish_reasons", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", *_OF_RUN,
     "error.type"),
    "One request to a model.",
)  # fmt: skip
TOOL: Final = Shape(
    "execute_tool {tool}",
    "internal",
    "its session",
    ("gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.agent.name", "procedo.tool.server",
     *_OF_RUN, "procedo.outcome", "error.type"),
    "One tool call of an agent that ran. What was denied before it ran is a span without duration.",
)  # fmt: skip
CAPABILITY: Final = Shape(
    "capability {id}",
    "internal",
    "its job",
    ("procedo.capability", *_OF_RUN, "procedo.outcome", "error.type"),
    "One call of a capability by the server itself.",
)
NOTICE: Final = Shape(
    "notice {route}",
    "client",
    "its job",
    ("procedo.notice.route", "procedo.outcome", "error.type"),
    "One attempt to deliver a notice.",
)
SERVER: Final = Shape(
    "tools/call {tool}",
    "server",
    "the `traceparent` in `_meta` of the request, when the client sends one",
    ("mcp.method.name", "mcp.protocol.version", "jsonrpc.request.id", "gen_ai.operation.name", "gen_ai.tool.name",
     "gen_ai.prompt.name", "error.type", "rpc.response.status_code"),
    "One message of a client; made by the MCP SDK, for every method.",
)  # fmt: skip
CLIENT: Final = Shape(
    "MCP send {method} {tool}",
    "client",
    "the `execute_tool` span of the call, or the session",
    ("mcp.method.name", "jsonrpc.request.id", "error.type", "rpc.response.status_code"),
    "One message to an MCP server of an agent; made by the MCP SDK, which sends `traceparent` along.",
)

SPANS: Final = (SERVER, TRANSITION, JOB, SESSION, MODEL, TOOL, CLIENT, CAPABILITY, NOTICE)


class OpenSpan(Protocol):
    """A span that is under way."""

    def set(self, attributes: Mapping[str, Value | None]) -> None:
        """Set attributes; those that are None are left out."""

    def fail(self, error_type: str) -> None:
        """Mark it as failed."""


class Spans(Protocol):
    """Opens spans. It is a watcher, too: transitions become spans when they are committed."""

    def committed(self, commit: Commit) -> None:
        """See `Watcher.committed`."""

    def open(
        self, shape: Shape, target: str, attributes: Mapping[str, Value | None], *, job: str | None = None
    ) -> AbstractContextManager[OpenSpan]:
        """A span over a block. `job` names the effect whose transition is its parent."""

    def current(self) -> OpenSpan:
        """The span of this task."""


class _Nothing:
    def set(self, attributes: Mapping[str, Value | None]) -> None:
        """Nothing is kept."""

    def fail(self, error_type: str) -> None:
        """Nothing is kept."""


class _NoSpans:
    _nothing: Final = _Nothing()

    def committed(self, commit: Commit) -> None:
        """Nothing is made of it."""

    @contextmanager
    def open(
        self,
        shape: Shape,  # noqa: ARG002  # a protocol's
        target: str,  # noqa: ARG002  # a protocol's
        attributes: Mapping[str, Value | None],  # noqa: ARG002  # a protocol's
        *,
        job: str | None = None,  # noqa: ARG002  # a protocol's
    ) -> Iterator[OpenSpan]:
        """No span."""
        yield self._nothing

    def current(self) -> OpenSpan:
        """No span."""
        return self._nothing


NO_SPANS: Final = _NoSpans()


def reference() -> str:
    """The tables of spans and of attributes in Markdown, for the documentation."""
    spans = [
        f"| `{one.name}` | {one.kind} | {one.parent} | {', '.join(f'`{name}`' for name in one.attributes)} "
        f"| {one.meaning} |"
        for one in SPANS
    ]
    attributes = [f"| `{name}` | {meaning} |" for name, meaning in ATTRIBUTES.items()]
    return "\n".join(
        [
            "| span | kind | parent | attributes | covers |",
            "|---|---|---|---|---|",
            *spans,
            "",
            "| attribute | meaning |",
            "|---|---|",
            *attributes,
            "",
        ]
    )
