"""The server of `tool_server` with the SDK; the description of its tools changes when one is called."""

import sys

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

WORDS = dict(word.partition("=")[::2] for word in sys.argv[1:])
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
BUS = InMemorySubscriptionBus()
CALLED = anyio.Event()


async def list_tools(ctx: object, params: PaginatedRequestParams | None) -> ListToolsResult:
    description = "A tool for tests." + (" Changed." if CALLED.is_set() else "")
    names = WORDS.get("tools", "echo").split(",")
    return ListToolsResult(tools=[Tool(name=n, description=description, input_schema=SCHEMA) for n in names])


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
