"""An MCP server over stdio as a program, whose one acting tool asks the test before each of its steps.

`python pay_server.py PORT LEDGER`: `pay` connects to the port and says `called`; told to go on it writes a line into
the ledger and says `acted`; told again it answers. `look` answers at once. A closed connection means: stay like this.
"""

import sys
from pathlib import Path

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool

PORT, LEDGER = int(sys.argv[1]), Path(sys.argv[2])
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "additionalProperties": False}


async def list_tools(ctx: object, params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name=n, description=f"To {n}.", input_schema=SCHEMA) for n in ("look", "pay")])


async def call_tool(ctx: object, params: CallToolRequestParams) -> CallToolResult:
    if params.name == "pay":
        await pay(str((params.arguments or {}).get("to")))
    return CallToolResult(content=[TextContent(type="text", text=f"{params.name}: done")])


async def pay(to: str) -> None:
    async with await anyio.connect_tcp("127.0.0.1", PORT) as line:
        await line.send(b"called\n")
        await line.receive()
        with LEDGER.open("a") as ledger:  # noqa: ASYNC230  # a line of a few bytes
            ledger.write(f"paid {to}\n")
        await line.send(b"acted\n")
        await line.receive()


async def serve() -> None:
    server = Server("pay", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(serve)
