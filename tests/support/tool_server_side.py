"""The server of `tool_server` with the SDK: one tool, whose description changes when it is called."""

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
BUS = InMemorySubscriptionBus()
CALLED = anyio.Event()


async def list_tools(ctx: object, params: PaginatedRequestParams | None) -> ListToolsResult:
    description = "A tool for tests." + (" Changed." if CALLED.is_set() else "")
    return ListToolsResult(tools=[Tool(name="echo", description=description, input_schema=SCHEMA)])


async def call_tool(ctx: object, params: CallToolRequestParams) -> CallToolResult:
    CALLED.set()
    await BUS.publish(ToolsListChanged())
    text = str((params.arguments or {}).get("text", ""))
    return CallToolResult(content=[TextContent(type="text", text=f"{params.name}: {text}")])


async def serve() -> None:
    server = Server(
        "tests", on_list_tools=list_tools, on_call_tool=call_tool, on_subscriptions_listen=ListenHandler(BUS)
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
