"""The client of FastMCP: `python fastmcp_client.py ORDER`, then a tool call on each line of the input.

The order is JSON: `command` and `env`, or `url`. Prints the tools, then for each call the answer as it came.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def main() -> None:
    order = json.loads(sys.argv[1])
    if "url" in order:
        transport = StreamableHttpTransport(order["url"])
    else:
        command, *args = order["command"]
        transport = StdioTransport(command, args, env=order["env"])
    async with Client(transport, init_timeout=240) as client:
        print(json.dumps(sorted(tool.name for tool in await client.list_tools())), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            call = json.loads(line)
            result = await client.call_tool(call["tool"], call["arguments"], raise_on_error=False)
            content = [part.model_dump(mode="json") for part in result.content]
            print(json.dumps({"content": content, "structured_content": result.structured_content}), flush=True)


asyncio.run(main())
