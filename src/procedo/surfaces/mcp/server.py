"""The MCP server of one application: its tools, resources and prompts, and what clients are told about it."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from anyio import CancelScope, create_task_group, sleep
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.exceptions import MCPError

from procedo.errors import ProcedoError
from procedo.surfaces.mcp.asking import look, unanswered
from procedo.surfaces.mcp.callers import Door, Pipe, Whole, engine
from procedo.surfaces.mcp.contracts import CONTRACTS, INSTRUCTIONS, Contract
from procedo.surfaces.mcp.elsewhere import NOT_SENT, sent_elsewhere
from procedo.surfaces.mcp.handlers import install
from procedo.surfaces.mcp.news import News
from procedo.surfaces.mcp.picture import DRAWN, META, RunPicture
from procedo.surfaces.mcp.refusals import Refusals
from procedo.surfaces.mcp.runtasks import RunTasks
from procedo.surfaces.mcp.secret import state_keys
from procedo.surfaces.mcp.strict import StrictTool, told
from procedo.surfaces.mcp.tasks import Tasks, TaskSource
from procedo.surfaces.mcp.tools import TOOLS, run_reply

__all__ = ["build_server", "built_tools"]

NAME: Final = "procedo"
"""Sealed state carries this name: renaming the server voids questions that are open at clients."""

_BEAT_S: Final = 8.0
_UNFIT: Final = "The host sent an answer that does not fit the form"


class AskingTool(StrictTool):
    """A tool that, in the older protocol revision, waits for a person inside the call: it shows signs of life."""

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        """Run the tool, with progress while a person thinks."""
        outcome: Any = None
        async with create_task_group() as group:
            group.start_soon(_beat, context)
            group.start_soon(_until_stopping, engine(context).stopping, group.cancel_scope)
            try:
                outcome = await sent_elsewhere(arguments.get("gate_id"), context)
                if outcome is NOT_SENT:
                    outcome = await super().run(arguments, context, convert_result)
                elif isinstance(outcome, tuple):
                    looked, note = outcome
                    outcome = run_reply(looked.snapshot, looked.surface, note)
            except (ToolError, MCPError) as error:
                # Raised below: leaving a task group would wrap it.
                outcome = error
                if _is_malformed(error):
                    outcome = await _unanswered(arguments.get("gate_id"), context, _UNFIT)
            group.cancel_scope.cancel()
        if outcome is None:
            # Nothing else leaves the group without an outcome.
            outcome = await _unanswered(
                arguments.get("gate_id"), context, "The server is stopping: the question is closed"
            )
        if isinstance(outcome, ToolError | MCPError):
            raise outcome
        return outcome


def _is_malformed(error: Exception) -> bool:
    """True when the SDK could not read the client's answer to the question.

    Only the SDK's own refusals have another refusal as their cause; what we refuse ourselves has none.
    """
    return isinstance(error, ToolError) and isinstance(error.__cause__, ToolError)


async def _unanswered(gate_id: Any, context: Context[Any, Any], why: str) -> Any:
    try:
        looked = await look(gate_id, context)
    except ProcedoError as error:
        return ToolError(told(error))
    door, note = unanswered(looked, why)
    return run_reply(looked.snapshot, door, note)


async def _until_stopping(stopping: asyncio.Event, scope: CancelScope) -> None:
    await stopping.wait()
    scope.cancel()


async def _beat(context: Context[Any, Any]) -> None:
    count = 0
    while True:
        await sleep(_BEAT_S)
        count += 1
        await context.report_progress(count, None, "waiting for the person's answer")


def _tool(function: Callable[..., Any], contract: Contract) -> StrictTool:
    kind = AskingTool if contract.name == "sop_approve" else StrictTool
    tool = kind.from_function(
        function,
        name=contract.name,
        title=contract.title,
        description=contract.description,
        annotations=contract.annotations,
        structured_output=False,
        meta=dict(META) if contract.name in DRAWN else None,
    )
    if not isinstance(tool, StrictTool):
        raise TypeError(f"{type(tool)} is not the kind of tool that was asked for")
    tool.tighten(contract.output)
    return tool


def built_tools() -> list[StrictTool]:
    """The tools as they are advertised, in their order; every server has the same."""
    functions = {function.__name__: function for function in TOOLS}
    return [_tool(functions[contract.name], contract) for contract in CONTRACTS]


async def _once(stopping: asyncio.Event, then: Callable[[], None]) -> None:
    await stopping.wait()
    then()


def _version() -> str:
    try:
        return version("procedo")
    except PackageNotFoundError:
        # A source tree that was never installed.
        return "0+source"


def build_server(
    app: Whole,
    *,
    closed: Callable[[], None] = lambda: None,
    door: Door | None = None,
    verifier: TokenVerifier | None = None,
    auth: AuthSettings | None = None,
    tasks: Sequence[TaskSource] = (),
) -> MCPServer[Door]:
    """The server for an open application, which outlives it. `closed` is called when the last request has ended.

    Without a `door` every caller is the host that started this process. `verifier` and `auth` are for HTTP.
    `tasks` are sources of tasks beside those of runs.
    """

    @asynccontextmanager
    async def lifespan(_: MCPServer[Door]) -> AsyncIterator[Door]:
        beside = [asyncio.create_task(news.run()), asyncio.create_task(_once(app.stopping, end_of_news))]
        try:
            yield door or Pipe(app)
        finally:
            for task in beside:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            closed()

    bus = InMemorySubscriptionBus()
    news = News(app, bus)
    server: MCPServer[Door] = MCPServer(
        NAME,
        title="procedo",
        instructions=INSTRUCTIONS,
        version=_version(),
        tools=[*built_tools()],
        lifespan=lifespan,
        token_verifier=verifier,
        auth=auth,
        request_state_security=RequestStateSecurity(codec=state_keys(app.settings, os.environ)),
        log_level="WARNING",
        middleware=[Refusals()],
        subscriptions=bus,
        extensions=[Tasks([RunTasks(app), *tasks]), RunPicture()],
    )
    end_of_news = install(server, news)
    return server
