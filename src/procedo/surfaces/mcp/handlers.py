"""Resources, prompts, completion and subscriptions as handlers of the SDK's lower layer.

They stand there because the upper layer lists without saying who asks, and completes without it; and here every
answer depends on the door. What is not ours goes on to the SDK's own handlers.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from mcp.server.connection import Connection
from mcp.server.lowlevel import NotificationOptions
from mcp.server.lowlevel import Server as LowLevel
from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import ListenHandler
from mcp.types import (
    CompleteRequestParams,
    CompleteResult,
    EmptyResult,
    GetPromptRequestParams,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct

from procedo.errors import NotFound, ProcedoError
from procedo.surfaces import links
from procedo.surfaces.mcp.callers import Door, engine
from procedo.surfaces.mcp.calls import Raw, at_the_door, protocol_error
from procedo.surfaces.mcp.completion import completed
from procedo.surfaces.mcp.listpages import paged
from procedo.surfaces.mcp.news import News
from procedo.surfaces.mcp.prompts import listed_prompts, prompt
from procedo.surfaces.mcp.resources import TEMPLATES, exists, listed_resources, read

__all__ = ["install"]

Behind = Callable[[Raw, Any], Awaitable[Any]]
"""The SDK's own handler of the same request."""


class Beside(Struct, frozen=True):
    """What handlers stand beside: the server they are part of, and who tells its subscribers."""

    server: MCPServer[Door]
    news: News


_Handler = Callable[[Raw, Any, Beside, Behind], Awaitable[Any]]


def install(server: MCPServer[Door], news: News) -> Callable[[], None]:
    """Let the server answer these requests for our own addresses and names.

    What is returned ends every stream of news in good order, so that its client listens elsewhere.
    """
    lower: LowLevel[Any] = server._lowlevel_server  # the upper layer hands none of these requests its context
    beside = Beside(server, news)
    listen = lower.get_request_handler("subscriptions/listen")
    for method, params, handler in _HANDLERS:
        entry = lower.get_request_handler(method)
        behind = _nothing if entry is None else entry.handler
        lower.add_request_handler(method, params, partial(_answered, handler, beside, behind))
    # No constructor takes these flags: an older client would not be told that lists are announced.
    announced = NotificationOptions(prompts_changed=True, resources_changed=True)
    lower.create_initialization_options = partial(lower.create_initialization_options, announced)  # type: ignore[method-assign]  # see above
    return listen.handler.close if listen is not None and isinstance(listen.handler, ListenHandler) else lambda: None


async def _nothing(_: Raw, __: Any) -> Any:
    raise protocol_error(NotFound("unknown_resource", "Nothing has that address."))


async def _answered(handler: _Handler, beside: Beside, behind: Behind, ctx: Raw, params: Any) -> Any:
    try:
        return await handler(ctx, params, beside, behind)
    except ProcedoError as error:
        uri = getattr(params, "uri", None)
        raise protocol_error(error, **({} if uri is None else {"uri": uri})) from error


def _connection(ctx: Raw) -> Connection:
    # The session of one request goes with it; what an older client subscribed to lasts as long as its connection.
    return ctx.session._connection


async def _tell_of_lists(ctx: Raw, news: News) -> None:
    """Whoever reads a list in an older revision is told when lists change. In the newer one clients ask for it."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        await news.join(_connection(ctx))


def _cursor(params: PaginatedRequestParams | None) -> str | None:
    return None if params is None else params.cursor


async def _list_resources(
    ctx: Raw, params: PaginatedRequestParams, beside: Beside, behind: Behind
) -> ListResourcesResult:
    await _tell_of_lists(ctx, beside.news)
    ours, others = listed_resources(at_the_door(ctx)), await behind(ctx, params)
    # The order is that of the keys: ours by name, the rest behind them.
    found = [
        (f"{rank} {one.name} {one.uri}", one) for rank, some in enumerate((*ours, others.resources)) for one in some
    ]
    page, cursor = paged(found, _cursor(params))
    return ListResourcesResult(resources=page, next_cursor=cursor)


async def _list_templates(
    ctx: Raw, params: PaginatedRequestParams, _: Beside, behind: Behind
) -> ListResourceTemplatesResult:
    engine(at_the_door(ctx))
    others = await behind(ctx, params)
    return ListResourceTemplatesResult(resource_templates=[*TEMPLATES, *others.resource_templates])


async def _read(ctx: Raw, params: ReadResourceRequestParams, _: Beside, behind: Behind) -> Any:
    if not params.uri.startswith(links.SCHEME):
        return await behind(ctx, params)
    return ReadResourceResult(contents=list(await read(at_the_door(ctx), params.uri)))


async def _list_prompts(ctx: Raw, params: PaginatedRequestParams, beside: Beside, behind: Behind) -> ListPromptsResult:
    await _tell_of_lists(ctx, beside.news)
    ours, others = listed_prompts(at_the_door(ctx)), await behind(ctx, params)
    found = [(f"{rank} {one.name}", one) for rank, some in enumerate((ours, others.prompts)) for one in some]
    page, cursor = paged(found, _cursor(params))
    return ListPromptsResult(prompts=page, next_cursor=cursor)


async def _get_prompt(ctx: Raw, params: GetPromptRequestParams, beside: Beside, behind: Behind) -> Any:
    others = {known.name for known in await beside.server.list_prompts()}
    if params.name in others:
        return await behind(ctx, params)
    return prompt(at_the_door(ctx), params.name, params.arguments or {})


async def _complete(ctx: Raw, params: CompleteRequestParams, _: Beside, __: Behind) -> CompleteResult:
    return CompleteResult(completion=await completed(at_the_door(ctx), params))


async def _readable(ctx: Raw, uri: str) -> bool:
    """True for what is not ours to judge, and for what this caller could read."""
    return not uri.startswith(links.SCHEME) or await exists(at_the_door(ctx), uri)


async def _listen(ctx: Raw, params: SubscriptionsListenRequestParams, beside: Beside, behind: Behind) -> Any:
    engine(at_the_door(ctx))
    asked = params.notifications
    # What the caller cannot read is not followed, so that news tells nobody of other people's runs.
    uris = [uri for uri in asked.resource_subscriptions or () if await _readable(ctx, uri)]
    narrowed = params.model_copy(
        update={"notifications": asked.model_copy(update={"resource_subscriptions": uris or None})}
    )
    async with beside.news.followed(uri for uri in uris if uri.startswith(links.SCHEME)):
        return await behind(ctx, narrowed)


async def _subscribe(ctx: Raw, params: SubscribeRequestParams, beside: Beside, _: Behind) -> EmptyResult:
    if not await _readable(ctx, params.uri):
        raise NotFound("unknown_resource", f"There is no resource {params.uri}.", "resources/list names some.")
    await beside.news.subscribe(_connection(ctx), params.uri)
    return EmptyResult()


async def _unsubscribe(ctx: Raw, params: UnsubscribeRequestParams, beside: Beside, _: Behind) -> EmptyResult:
    beside.news.unsubscribe(_connection(ctx), params.uri)
    return EmptyResult()


_HANDLERS: Final[tuple[tuple[str, type[Any], _Handler], ...]] = (
    ("resources/list", PaginatedRequestParams, _list_resources),
    ("resources/templates/list", PaginatedRequestParams, _list_templates),
    ("resources/read", ReadResourceRequestParams, _read),
    ("resources/subscribe", SubscribeRequestParams, _subscribe),
    ("resources/unsubscribe", UnsubscribeRequestParams, _unsubscribe),
    ("prompts/list", PaginatedRequestParams, _list_prompts),
    ("prompts/get", GetPromptRequestParams, _get_prompt),
    ("completion/complete", CompleteRequestParams, _complete),
    ("subscriptions/listen", SubscriptionsListenRequestParams, _listen),
)
