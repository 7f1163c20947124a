"""One connection to one MCP server: listed once, its tools pinned, called without going round the pins.

No callback is passed, so the server is told that it can ask nothing of us; its instructions are never read.
"""

import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import anyio
from anyio.abc import TaskStatus

from procedo.agents.identity import schema_digest
from procedo.agents.parts import ServerBinding, Transport
from procedo.agents.ports import ToolFailed
from procedo.agents.servers.child import Complaints, child
from procedo.causes import causes
from procedo.core.model import Json
from procedo.core.outputs import canonical
from procedo.credential_shapes import MASK, masked_text
from procedo.credentials import Missing, Secret, SecretRef, resolve
from procedo.ports import OutcomeUnknown

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp.types import CallToolResult, RequestParamsMeta
    from mcp.types import Tool as ServerTool

__all__ = ["Link", "Listed", "Unreachable", "schema_of"]

_PAGES: Final = 100
_LONGEST_REASON: Final = 300
_SHORTEST_SECRET: Final = 6
"""What is shorter is found in ordinary words, and would tear holes into them."""


class Unreachable(Exception):
    """A server cannot be reached, or does not answer as one."""


Listed = Mapping[str, "ServerTool"]


def schema_of(tool: "ServerTool") -> str:
    """The digest that a server's tool is pinned by."""
    return schema_digest(tool.name, tool.description or "", tool.input_schema)


class Link:
    """A connection that is served in a task of its own; see `serve`."""

    def __init__(self, server: ServerBinding, environ: Mapping[str, str], root: Path) -> None:
        self.server = server
        self._environ = environ
        self._root = root
        self._complaints = Complaints()
        self._secrets: list[Secret] = []
        self._closing = anyio.Event()
        self._client: Client | None = None
        self._stale = False
        self.listed: Listed = {}
        self.failure = ""

    async def open(self, group: "anyio.abc.TaskGroup") -> None:
        """Connect and list, within the server's time. Raises `Unreachable`."""
        with anyio.move_on_after(self.server.connect_timeout_s):
            await group.start(self._serve)
            if not self.failure:
                return
        why = self.failure or f"it did not answer within {self.server.connect_timeout_s:g} s"
        self.close()
        raise Unreachable(self._told(why))

    def close(self) -> None:
        """Let the connection end; the group that serves it waits for that."""
        self._closing.set()

    async def _serve(self, *, task_status: TaskStatus[None]) -> None:
        import httpx2
        from mcp import Client, MCPError
        from mcp.types import ServerNotification, ToolListChangedNotification

        async def noted(message: ServerNotification | Exception) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._stale = True

        started = False
        try:
            async with Client(self._transport(), message_handler=noted, cache=None) as client:
                self._client = client
                await self._list()
                started = True
                task_status.started()
                async with anyio.create_task_group() as watching:
                    watching.start_soon(self._watch, client)
                    await self._closing.wait()
                    watching.cancel_scope.cancel()
        except* (
            OSError, MCPError, httpx2.HTTPError, ValueError, RuntimeError, Missing, Unreachable,
            anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream,
        ) as errors:  # fmt: skip
            self.failure = _first(errors) or "the connection failed"
        finally:
            self._client = None
        self.failure = self.failure or "the connection is closed"
        if not started:
            task_status.started()

    async def _watch(self, client: "Client") -> None:
        """Hear of a changed list where that has to be asked for; older connections tell it by themselves."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                self._stale = True  # what changed before anybody listened is not told
                async for _ in changes:
                    self._stale = True

    # --- how it is reached --------------------------------------------------------------------------

    def _transport(self) -> AbstractAsyncContextManager["TransportStreams"]:
        return self._http() if self.server.transport is Transport.HTTP else self._stdio()

    def _stdio(self) -> AbstractAsyncContextManager["TransportStreams"]:
        path = self._environ.get("PATH", "")
        program = shutil.which(self.server.command, path=path)
        if program is None:
            raise Unreachable(f"there is no program {self.server.command!r}")
        env = {"PATH": path, **self._words(self.server.env)}
        return child([program, *self.server.args], env, self._root, self._complaints)

    @asynccontextmanager
    async def _http(self) -> AsyncIterator["TransportStreams"]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        timeout = httpx2.Timeout(self.server.connect_timeout_s, read=self.server.tool_timeout_s)
        async with (
            # No proxies or credentials out of the environment: the server gets what the contract says.
            httpx2.AsyncClient(headers=self._words(self.server.headers), trust_env=False, timeout=timeout) as client,
            streamable_http_client(self.server.url, http_client=client) as streams,
        ):
            yield streams

    def _words(self, words: Mapping[str, str | SecretRef]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in words.items():
            if isinstance(value, SecretRef):
                secret = resolve(value, self._environ, self._root)
                self._secrets.append(secret)
                found[name] = secret.reveal()
            else:
                found[name] = value
        return found

    def _told(self, why: str) -> str:
        """The reason and the child's last words, without anything secret."""
        said = self._complaints.text()
        text = masked_text(self._clean(f"{why}; it said: {said}" if said else why))
        return text if len(text) <= _LONGEST_REASON else f"{text[:100]}…{text[-(_LONGEST_REASON - 101) :]}"

    def _clean(self, text: str) -> str:
        """The text without the credentials that the server was given: no model and no record is to see them."""
        for secret in self._secrets:
            if len(value := secret.reveal()) >= _SHORTEST_SECRET:
                # As it is, and as it stands inside of JSON.
                text = text.replace(value, MASK).replace(json.dumps(value, ensure_ascii=False)[1:-1], MASK)
        return text

    def _shows_secret(self, tool: "ServerTool") -> bool:
        """True when what goes to a model and into the contract would hold a credential of the server."""
        shown = json.dumps([tool.name, tool.description, tool.input_schema], ensure_ascii=False)
        return self._clean(shown) != shown

    # --- its tools ----------------------------------------------------------------------------------

    async def _list(self) -> None:
        client = self._connected()
        tools: dict[str, ServerTool] = {}
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            for tool in page.tools:
                if tool.name in tools:
                    raise Unreachable(f"it lists two tools called {tool.name!r}")
                if self._shows_secret(tool):
                    raise Unreachable("its list of tools shows a credential that it was given")
                tools[tool.name] = tool
            if not (cursor := page.next_cursor):
                self.listed = tools
                self._stale = False
                return
        raise Unreachable(f"its list of tools has more than {_PAGES} pages")

    def _connected(self) -> "Client":
        if self._client is None:
            raise ToolFailed(f"the connection to the server {self.server.name!r} is lost: {self._told(self.failure)}")
        return self._client

    def _lost(self) -> None:
        """What is asked of a server that is gone reaches nobody, and is known not to have acted."""
        self._client = None
        self.failure = self.failure or "the server is gone"

    async def fresh(self) -> Listed:
        """The list, read again when the server said that it changed."""
        if self._stale:
            self._connected()
            await self._list()
        return self.listed

    async def call(self, name: str, arguments: Json, effect_id: str) -> str:
        """Call a tool and give its text. Raises `ToolFailed`, `OutcomeUnknown`."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolResult

        client = self._connected()
        try:
            # Not `client.call_tool`: that lists again by itself and sends twice.
            result = await client.session.call_tool(
                name,
                arguments,
                read_timeout_seconds=self.server.tool_timeout_s,
                meta=cast("RequestParamsMeta", {"procedo/effect-id": effect_id}),
                allow_input_required=True,
                allow_claimed=False,
            )
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                self._lost()
            if error.code in {CONNECTION_CLOSED, REQUEST_TIMEOUT}:
                raise OutcomeUnknown(f"{name} on {self.server.name!r}: {error}; it may have acted") from error
            raise ToolFailed(self._clean(f"{name} on {self.server.name!r}: {error}")) from error
        except (RuntimeError, ValueError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            if isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError):
                self._lost()
            # The answer came and cannot be read, or breaks the tool's own output schema, or none came.
            told = self._clean(_said(error) or "no answer")
            raise OutcomeUnknown(f"{name} on {self.server.name!r}: {told}; it may have acted") from error
        if not isinstance(result, CallToolResult):
            raise ToolFailed(f"{name} on {self.server.name!r} asks a question, and nobody answers one in here")
        text = self._clean(_text(result))
        if result.is_error:
            raise ToolFailed(text or f"{name} on {self.server.name!r} failed without a reason")
        return text


def _text(result: "CallToolResult") -> str:
    from mcp.types import EmbeddedResource, ResourceLink, TextContent, TextResourceContents

    parts: list[str] = []
    for part in result.content:
        if isinstance(part, TextContent):
            parts.append(part.text)
        elif isinstance(part, EmbeddedResource) and isinstance(part.resource, TextResourceContents):
            parts.append(part.resource.text)
        elif isinstance(part, ResourceLink):
            parts.append(f"[resource {part.uri}]")
        else:
            parts.append(f"[{part.type}, not shown]")
    if not parts and result.structured_content is not None:
        return canonical(result.structured_content)
    return "\n".join(parts)


def _first(errors: BaseExceptionGroup[BaseException]) -> str:
    error = next(causes(errors))
    return _said(error) or type(error).__name__


def _said(error: BaseException) -> str:
    """What an error says; of an answer that is none, where it first differs from one."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"its answer cannot be read, at {'.'.join(map(str, first['loc'])) or 'its top'}: {first['msg']}"
