"""The MCP adapters of LangChain: `python langchain_adapters.py ORDER`, then a tool call on each line of the input.

The order is JSON: `command` and `env`, or `url`. Prints the tools, then for each call what a model is given for it.
"""

import asyncio
import json
import sys

from langchain_core.messages import ToolMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


async def main() -> None:
    order = json.loads(sys.argv[1])
    if "url" in order:
        connection = {"transport": "streamable_http", "url": order["url"]}
    else:
        command, *args = order["command"]
        connection = {"transport": "stdio", "command": command, "args": args, "env": order["env"]}
    async with MultiServerMCPClient({"procedo": connection}).session("procedo") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        print(json.dumps(sorted(tools)), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            call = json.loads(line)
            wanted = {"type": "tool_call", "id": "1", "name": call["tool"], "args": call["arguments"]}
            message = await tools[call["tool"]].ainvoke(wanted)
            assert isinstance(message, ToolMessage)
            print(json.dumps(message.content), flush=True)


asyncio.run(main())
