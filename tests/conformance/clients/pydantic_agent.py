"""An agent of Pydantic AI: `python pydantic_agent.py ORDER PROMPT`.

The order is JSON: `model`, the address of one that speaks the OpenAI chat form, and `command` and `env`, or `url`.
Prints the agent's last words.
"""

import asyncio
import json
import sys

from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main() -> None:
    order = json.loads(sys.argv[1])
    if "url" in order:
        transport = StreamableHttpTransport(order["url"])
    else:
        command, *args = order["command"]
        transport = StdioTransport(command, args, env=order["env"])
    model = OpenAIChatModel("play", provider=OpenAIProvider(base_url=f"{order['model']}/v1", api_key="none"))
    async with Agent(model, toolsets=[MCPToolset(transport, init_timeout=240)]) as agent:
        print((await agent.run(sys.argv[2])).output)


asyncio.run(main())
