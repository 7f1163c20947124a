"""An agent of the OpenAI Agents SDK: `python openai_agent.py ORDER PROMPT`.

The order is JSON: `model`, the address of one that speaks the OpenAI responses form, and `command` and `env`, or
`url`. Schemas are made strict where that can be done. Prints the agent's last words.
"""

import asyncio
import json
import sys

from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai import AsyncOpenAI


async def main() -> None:
    order = json.loads(sys.argv[1])
    set_tracing_disabled(True)
    model = OpenAIResponsesModel("play", AsyncOpenAI(base_url=f"{order['model']}/v1", api_key="none"))
    if "url" in order:
        server = MCPServerStreamableHttp(params={"url": order["url"]}, client_session_timeout_seconds=240)
    else:
        command, *args = order["command"]
        params = {"command": command, "args": args, "env": order["env"]}
        server = MCPServerStdio(params=params, client_session_timeout_seconds=240)
    async with server:
        strict = {"convert_schemas_to_strict": True}
        agent = Agent(name="desk", model=model, mcp_servers=[server], mcp_config=strict)
        print((await Runner.run(agent, sys.argv[2])).final_output)


asyncio.run(main())
