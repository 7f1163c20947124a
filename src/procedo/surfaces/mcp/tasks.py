"""The tasks extension, for clients that declare it: a call may answer with a task, which is looked at until it ends.

What a task is comes from the sources; here stands how it travels. A client that does not declare the extension, or
speaks an older revision, sees no difference.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from mcp.server.context import CallNext, HandlerResult
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import HEADER_MISMATCH, INVALID_PARAMS, CallToolRequestParams, RequestParams
from msgspec import Struct
from pydantic import Field

from procedo.core.model import Json
from procedo.errors import ProcedoError
from procedo.surfaces.mcp.calls import Raw, protocol_error

__all__ = ["EXTENSION", "Task", "TaskSource", "Tasks", "declares_tasks"]

EXTENSION: Final = "io.modelcontextprotocol/tasks"
_REVISIONS: Final = frozenset({"2026-07-28"})
_NAME_HEADER: Final = "mcp-name"


class Task(Struct, frozen=True):
    """A task at one moment. `requests` are questions by key, `result` that of the call, `error` one of the protocol."""

    id: str
    status: str
    created_at: datetime
    updated_at: datetime
    poll_ms: int = 1_000
    result: Json = None
    error: Json = None
    requests: Mapping[str, Json] | None = None

    def head(self) -> dict[str, Json]:
        """The fields that a task always has. It lives as long as what it stands for, so no end is stated."""
        return {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _iso(self.created_at),
            "lastUpdatedAt": _iso(self.updated_at),
            "ttlMs": None,
            "pollIntervalMs": self.poll_ms,
        }

    def detail(self) -> dict[str, Json]:
        """Everything, by status."""
        more = {"result": self.result, "error": self.error, "inputRequests": self.requests}
        return self.head() | {key: value for key, value in more.items() if value is not None}


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TaskSource(Protocol):
    """Where tasks of one kind come from."""

    async def begin(self, params: CallToolRequestParams, ctx: Raw, call_next: CallNext) -> HandlerResult | Task | None:
        """Carry out a call: its result or a task; None when the call is not of this kind."""

    async def look(self, task_id: str, ctx: Raw) -> Task | None:
        """The task as it is now; None for an id that is not of this kind, or not for this caller."""

    async def answer(self, task_id: str, responses: Mapping[str, Any], ctx: Raw) -> None:
        """Take answers to the questions of a task that was looked at; keys that are not open are passed over."""

    async def cancel(self, task_id: str, ctx: Raw) -> None:
        """End a task that was looked at; one that has ended stays as it is."""


class _TaskParams(RequestParams):
    task_id: str = Field(alias="taskId")


class _UpdateParams(_TaskParams):
    input_responses: dict[str, Any] = Field(alias="inputResponses")


def declares_tasks(ctx: Raw) -> bool:
    """True when this caller can be answered with a task."""
    capabilities = ctx.session.client_capabilities
    declared = capabilities.extensions if capabilities is not None else None
    return ctx.protocol_version in _REVISIONS and declared is not None and EXTENSION in declared


class Tasks(Extension):
    """Serves tasks of these sources."""

    identifier = EXTENSION

    def __init__(self, sources: Sequence[TaskSource]) -> None:
        self._sources = tuple(sources)

    def methods(self) -> Sequence[MethodBinding]:
        """get, update and cancel; there is no list, and the result comes with get."""
        return (
            MethodBinding("tasks/get", _TaskParams, self._get, _REVISIONS),
            MethodBinding("tasks/update", _UpdateParams, self._update, _REVISIONS),
            MethodBinding("tasks/cancel", _TaskParams, self._cancel, _REVISIONS),
        )

    async def intercept_tool_call(self, params: CallToolRequestParams, ctx: Raw, call_next: CallNext) -> HandlerResult:
        """Answer with a task where a source makes one of the call."""
        for source in self._sources:
            outcome = await source.begin(params, ctx, call_next)
            if isinstance(outcome, Task):
                return {"resultType": "task", **outcome.head()}
            if outcome is not None:
                return outcome
        return await call_next(ctx)

    async def _get(self, ctx: Raw, params: _TaskParams) -> HandlerResult:
        _, task = await self._found(ctx, params)
        return {"resultType": "complete", **task.detail()}

    async def _update(self, ctx: Raw, params: _UpdateParams) -> HandlerResult:
        source, task = await self._found(ctx, params)
        await _translated(source.answer(task.id, params.input_responses, ctx))
        return {"resultType": "complete"}

    async def _cancel(self, ctx: Raw, params: _TaskParams) -> HandlerResult:
        source, task = await self._found(ctx, params)
        await _translated(source.cancel(task.id, ctx))
        return {"resultType": "complete"}

    async def _found(self, ctx: Raw, params: _TaskParams) -> tuple[TaskSource, Task]:
        require_client_extension(ctx, EXTENSION)
        named = ctx.request.headers.get(_NAME_HEADER) if ctx.request is not None else None
        if named is not None and named != params.task_id:
            raise MCPError(HEADER_MISMATCH, f"The header Mcp-Name says {named!r}, the call {params.task_id!r}.")
        for source in self._sources:
            task = await _translated(source.look(params.task_id, ctx))
            if task is not None:
                return source, task
        raise MCPError(INVALID_PARAMS, f"There is no task {params.task_id!r}.")


async def _translated(work: Any) -> Any:
    try:
        return await work
    except ProcedoError as error:
        raise protocol_error(error) from error
