"""The scenes of the other agent: its session in the server, the kill in the middle of it, and the question it asks."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from procedo.surfaces.cli.demo.agent import Agent, Answer
from procedo.surfaces.cli.demo.archive import FILED, LOOKING
from procedo.surfaces.cli.demo.stage import Stage

__all__ = ["Review"]

_LIMIT_S = 180.0
"""For a machine that has much else to do: the demonstration is the first thing that somebody sees of procedo."""
_GLANCE_S = 0.05
_WAIT_S = 15
_PATIENCE = 4


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _until(seen: Callable[[], bool]) -> bool:
    """Whether it was seen before the audience would have left."""
    try:
        async with asyncio.timeout(_LIMIT_S):
            while not seen():  # noqa: ASYNC110  # processes and files tell nobody of their coming and going
                await asyncio.sleep(_GLANCE_S)
    except TimeoutError:
        return False
    return True


class Review(Struct):
    """Step 3 of the procedure. `ask` lets the person answer at a gate; None where there is no terminal for one."""

    stage: Stage
    workspace: Path
    run_id: str
    ask: Callable[[str, str], Awaitable[None]] | None

    async def begins(self, agent: Agent) -> None:
        """The reviewer is at work inside the server, and the server is killed."""
        stage = self.stage
        stage.scene(
            "Another agent does its step",
            "Step 3 is for the agent 'reviewer'. The server assembles it from its own registry, with two tools of a "
            "real MCP server, and runs its session itself. Its model is a script, and every record says so.",
        )
        sign = self.workspace / LOOKING
        seen = await _until(sign.exists)
        answer = await agent.call("sop_status", {"run_id": self.run_id, "wait_s": 0})
        stage.must(seen, "the reviewer calls a tool of its server", answer.text)
        delegated = answer.action("delegated")
        stage.must(delegated is not None, "the step is with the reviewer", answer.text)
        stage.says("server", f"Step 3 is with {delegated['agent']}, since {delegated['since']}. Follow it.", "green")
        archive = int(sign.read_text(encoding="ascii"))
        stage.says("system", f"the reviewer looks something up in the archive, process {archive}", "yellow")
        sent = agent.kill()
        stage.must(await agent.silent(), "a killed server answers nothing")
        stage.says("system", f"{sent} to process {agent.pid}, in the middle of the call", "yellow")
        stage.must(await _until(lambda: not _alive(archive)), "the tool's process is not left behind")
        stage.proved("another agent's step ran in the server, with that agent's own tools")

    async def goes_on(self, agent: Agent) -> Answer:
        """A new server takes the session up; it asks a person, and the step comes to its end."""
        stage = self.stage
        stage.says("system", f"`procedo serve` runs again, as process {agent.pid}", "yellow")
        answer = await self._settled(agent)
        if self.ask is None:
            stage.skip("the reviewer's question", "pseudo-terminals do not exist here")
            return answer
        gate: Any = answer.action("wait_approval")
        stage.must(gate is not None and gate["context"]["kind"] == "tool_call", "the reviewer asks", answer.text)
        stage.says("server", f"The session went on. Gate {gate['context']['code']}: {gate['context']['asks']}", "green")
        stage.must(not (self.workspace / FILED).exists(), "nothing is filed before a person said yes")
        stage.scene(
            "A person is asked about one call",
            "In a terminal of their own. It is a pseudo-terminal here, so that you can watch; this is also the limit: "
            "a program that allocates one acts as the user whose account it has.",
        )
        await self.ask(gate["context"]["code"], "the archive is public")
        answer = await self._settled(agent)
        filed = (self.workspace / FILED).read_text(encoding="utf-8").splitlines()
        stage.must(len(filed) == 1, "the review is filed once", filed)
        said = "look_up" in answer.text or "is out" in answer.text
        stage.must(not said, "the host hears nothing of the reviewer's own conversation", answer.text)
        stage.says(
            "server", "Step 3 is done. What its session said and did stays here: procedo show RUN --step 3", "green"
        )
        stage.proved("killed in the middle of a session, it went on, asked a person, and acted once")
        return answer

    async def _settled(self, agent: Agent) -> Answer:
        """The run when a person or the agent at the host has something to do."""
        for _ in range(_PATIENCE):
            answer = await agent.call("sop_status", {"run_id": self.run_id, "wait_s": _WAIT_S})
            if answer.action("delegated") is None:
                break
        self.stage.must(answer.action("delegated") is None, "the session comes to its next stop", answer.text)
        return answer
