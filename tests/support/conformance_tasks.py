"""Tasks made for the conformance suite, behind the very extension that carries those of runs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import Context, MCPServer, require_client_extension
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)

from procedo.surfaces.mcp.calls import Raw
from procedo.surfaces.mcp.tasks import EXTENSION, Task, declares_tasks

__all__ = ["MadeTasks", "furnish_tasks"]

_REQUIRED: Final = frozenset({"failing_job", "protocol_error_job", "test_tool_with_task"})
_MADE: Final = frozenset({"slow_compute", "confirm_delete", "multi_input", *_REQUIRED})


def _text(text: str, *, wrong: bool = False) -> dict[str, Any]:
    result = CallToolResult(content=[TextContent(type="text", text=text)], is_error=wrong)
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def _question(message: str, name: str, kind: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    request = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))
    return request.model_dump(mode="json", by_alias=True, exclude_none=True)


@dataclass
class _Job:
    """A task that somebody works on. `open` are its questions, `finish` makes its result of the answers."""

    id: str
    open: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    work: "asyncio.Task[Any] | None" = None
    cancelled: bool = False
    made: datetime = field(default_factory=lambda: datetime.now(UTC))

    def now(self) -> Task:
        times = (self.made, self.made)
        if self.cancelled:
            return Task(self.id, "cancelled", *times)
        if self.open:
            return Task(self.id, "input_required", *times, requests=self.open)
        if self.work is None:
            return Task(self.id, "completed", *times, result=_text(f"answers: {self.answers}"))
        if not self.work.done():
            return Task(self.id, "working", *times)
        if self.work.exception() is not None:
            return Task(self.id, "failed", *times, error={"code": -32603, "message": str(self.work.exception())})
        return Task(self.id, "completed", *times, result=self.work.result())


class MadeTasks:
    """See `procedo.surfaces.mcp.tasks.TaskSource`."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}

    async def begin(self, params: CallToolRequestParams, ctx: Raw, call_next: CallNext) -> HandlerResult | Task | None:
        if params.name not in _MADE:
            return None
        if params.name in _REQUIRED:
            require_client_extension(ctx, EXTENSION)
        if not declares_tasks(ctx):
            return None
        given = dict(params.arguments or {})
        if params.name == "test_tool_with_task":
            return await self._escalated(ctx, call_next)
        works: dict[str, Callable[[], Awaitable[Any]]] = {
            "slow_compute": lambda: _later(float(given.get("seconds", 0)), _text(f"computed {given.get('label')}")),
            "failing_job": lambda: _later(0.2, _text("it failed", wrong=True)),
            "protocol_error_job": _broken,
        }
        if params.name in works:
            return self._work(works[params.name])
        questions = {"confirm": _question(f"Delete {given.get('filename')}?", "confirm", "boolean")}
        if params.name == "multi_input":
            questions["name"] = _question("Under which name?", "name", "string")
        return self._keep(_Job(self._new_id(), open=questions))

    async def _escalated(self, ctx: Raw, call_next: CallNext) -> HandlerResult | Task:
        result = await call_next(ctx)
        if isinstance(result, InputRequiredResult) or not isinstance(result, CallToolResult):
            return result
        return self._work(lambda: _later(0.1, result.model_dump(mode="json", by_alias=True, exclude_none=True)))

    def _new_id(self) -> str:
        return f"made-{len(self._jobs) + 1}"

    def _work(self, begin: Callable[[], Awaitable[Any]]) -> Task:
        return self._keep(_Job(self._new_id(), work=asyncio.ensure_future(begin())))

    def _keep(self, job: _Job) -> Task:
        self._jobs[job.id] = job
        return job.now() if job.work is None else Task(job.id, "working", job.made, job.made)

    async def look(self, task_id: str, ctx: Raw) -> Task | None:  # noqa: ARG002  # for everybody
        job = self._jobs.get(task_id)
        return job.now() if job is not None else None

    async def answer(self, task_id: str, responses: Mapping[str, Any], ctx: Raw) -> None:  # noqa: ARG002  # for everybody
        job = self._jobs[task_id]
        for key, response in responses.items():
            if job.open.pop(key, None) is not None:
                job.answers[key] = response

    async def cancel(self, task_id: str, ctx: Raw) -> None:  # noqa: ARG002  # for everybody
        job = self._jobs[task_id]
        if job.now().status in ("working", "input_required"):
            job.cancelled = True
            if job.work is not None:
                job.work.cancel()


async def _later(seconds: float, result: Any) -> Any:
    await asyncio.sleep(seconds)
    return result


async def _broken() -> Any:
    raise RuntimeError("the job broke")


def furnish_tasks(server: MCPServer[Any]) -> None:
    """Add the tools whose calls become tasks, as clients without tasks meet them."""

    @server.tool(structured_output=False)
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    @server.tool(structured_output=False)
    async def slow_compute(seconds: float, label: str = "") -> str:
        await asyncio.sleep(min(seconds, 1))
        return f"computed {label}"

    @server.tool(structured_output=False)
    async def failing_job() -> str:
        return "never called"

    @server.tool(structured_output=False)
    async def protocol_error_job() -> str:
        return "never called"

    @server.tool(structured_output=False)
    async def confirm_delete(filename: str) -> str:
        return f"kept {filename}"

    @server.tool(structured_output=False)
    async def multi_input() -> str:
        return "nothing asked"

    @server.tool(structured_output=False)
    async def test_tool_with_task(ctx: Context) -> str | InputRequiredResult:
        answer = (ctx.input_responses or {}).get("user_name")
        if not isinstance(answer, ElicitResult) or not answer.content:
            schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
            form = ElicitRequestFormParams(message="What is your name?", requested_schema=schema)
            return InputRequiredResult(input_requests={"user_name": ElicitRequest(params=form)})
        return f"Hello, {answer.content['name']}!"
