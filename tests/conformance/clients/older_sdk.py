"""The client of the Python SDK's line 1.x: `python older_sdk.py ORDER`, then a tool call on each line.

The order is JSON: `command` and `env`, or `url`. Prints the tools, then for each call the answer as it came.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def streams(order):
    if "url" in order:
        async with streamable_http_client(order["url"]) as (read, write, _):
            yield read, write
    else:
        command, *args = order["command"]
        async with stdio_client(StdioServerParameters(command=command, args=args, env=order["env"])) as both:
            yield both


async def main() -> None:
    async with streams(json.loads(sys.argv[1])) as (read, write), ClientSession(read, write) as session:
        told = await session.initialize()
        assert told.protocolVersion == "2025-11-25"
        print(json.dumps(sorted(tool.name for tool in (await session.list_tools()).tools)), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            call = json.loads(line)
            result = await session.call_tool(call["tool"], call["arguments"])
            print(result.model_dump_json(include={"content", "structuredContent"}), flush=True)


asyncio.run(main())
