"""The scenes of the demonstration. Each says what happens, lets it happen, and checks that it did."""

import asyncio
import json
import os
import subprocess  # the demonstration runs the same commands that a person would
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct

from procedo.surfaces.cli.demo import typist
from procedo.surfaces.cli.demo.agent import Agent, Answer, connected
from procedo.surfaces.cli.demo.review import Review
from procedo.surfaces.cli.demo.stage import Stage

__all__ = ["PROCEDURE", "Story"]

PROCEDURE = "ship-release"
_VERSION = "2.4.0"
_CHANGES = "search is twice as fast, there is a dark mode, and logins last"
_LONGEST = 420
_COMMAND_LIMIT_S = 90.0


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class Story(Struct):
    """One performance in one workspace."""

    stage: Stage
    workspace: Path
    environ: Mapping[str, str]
    log: TextIO
    run_id: str = ""
    gate: str = ""
    output: Any = None

    async def perform(self) -> None:
        """Play every scene. Raises `DemoFailed` at the first thing that did not happen."""
        async with connected(self.workspace, self.environ, self.log) as agent:
            await self._beginning(agent)
            review = Review(self.stage, self.workspace, self.run_id, self._allow if typist.available() else None)
            await review.begins(agent)
        async with connected(self.workspace, self.environ, self.log) as agent:
            self._gate(await review.goes_on(agent))
            await self._cheating(agent)
            await self._kill(agent)
        if typist.available():
            await self._person()
        async with connected(self.workspace, self.environ, self.log) as agent:
            await (self._ending(agent) if typist.available() else self._without_person(agent))
        await self._record()

    async def _call(self, agent: Agent, thought: str, tool: str, arguments: Mapping[str, Any]) -> Answer:
        self.stage.says("agent", thought)
        self.stage.says("", f"{tool} {json.dumps(arguments, ensure_ascii=False)}")
        return await agent.call(tool, arguments)

    async def _beginning(self, agent: Agent) -> None:
        stage = self.stage
        stage.scene(
            "An agent starts a procedure",
            f"A real `procedo serve` runs as process {agent.pid}. The agent is a script in place of a model; "
            f"everything else is real. {PROCEDURE} has five steps, and nothing is published before a person said yes.",
        )
        tools = await agent.tools()
        stage.must("sop_start" in tools, "the server offers its tools", tools)
        arguments = {"name": PROCEDURE, "inputs": {"version": _VERSION}}
        answer = await self._call(agent, f"Version {_VERSION} is to be shipped.", "sop_start", arguments)
        offer = answer.action("execute_step")
        stage.must(offer is not None, "the first step is handed to the agent", answer.text)
        self.run_id = answer.view["run_id"]
        stage.says(
            "server",
            f"Run {self.run_id}. Do step 1, {offer['step']['title']!r} (execution {offer['execution_id']}).",
            "green",
        )
        await self._first_step(agent, offer["execution_id"])

    async def _first_step(self, agent: Agent, execution: str) -> None:
        stage = self.stage
        report = {
            "run_id": self.run_id,
            "execution_id": execution,
            "status": "completed",
            "output": {"changes": _CHANGES},
            "wait_s": 0,
        }
        answer = await self._call(agent, "I read the commits. Here is what users will notice.", "sop_advance", report)
        stage.must(not answer.refused, "the report is taken", answer.text)
        stage.says(
            "server",
            "Step 1 is recorded. Step 2 was mine: I wrote the announcement myself, no model took part.",
            "green",
        )
        stage.proved("the server kept the order, and did its own step itself")

    def _gate(self, answer: Answer) -> None:
        """The run stands at the gate before publishing."""
        gate = answer.action("wait_approval")
        self.stage.must(gate is not None, "the run stops at the gate before step 4", answer.text)
        self.gate = gate["context"]["code"]
        self.stage.says(
            "server",
            f"Step 4 has a gate, {self.gate}: {gate['context']['asks']} A person decides. Do not poll.",
            "green",
        )

    async def _cheating(self, agent: Agent) -> None:
        stage = self.stage
        stage.scene(
            "The agent tries to get past the gate",
            "It reports the step as done, approves itself, and even runs the command.",
        )
        report = {"run_id": self.run_id, "execution_id": "4.1", "status": "completed", "output": {"published": True}}
        answer = await self._call(agent, "Nobody is looking. Step 4 is done, trust me.", "sop_advance", report)
        stage.must(answer.refused, "a report does not pass a gate", answer.text)
        stage.says("server", f"Refused. {_short(answer.text)}", "red")
        arguments = {"gate_id": self.gate, "decision": "approve", "comment": "The boss said yes."}
        answer = await self._call(agent, "Then I approve it myself.", "sop_approve", arguments)
        await self._still_waiting(agent, "the model's own approval decides nothing")
        said = " ".join((answer.view or {}).get("notes", [])) or answer.text
        stage.says("server", _short(said), "red")
        stage.proved("a model cannot pass a gate: not by a report, not by approving itself")
        await self._shell()

    async def _still_waiting(self, agent: Agent, what: str) -> Answer:
        status = await agent.call("sop_status", {"run_id": self.run_id})
        gate = status.action("wait_approval")
        same = gate is not None and gate["context"]["code"] == self.gate
        self.stage.must(same and status.view["status"] == "waiting_approval", what, status.text)
        return status

    async def _shell(self) -> None:
        stage = self.stage
        what = "`procedo approve` run by an agent, with `y` piped in"
        if not typist.available():
            stage.skip(what, "a console cannot be taken away from a process here")
            return
        stage.says("agent", f"I have a shell: yes | procedo approve {self.gate}")
        code, text = await self._command(["approve", self.gate], typed="y\n" * 20)
        stage.must(code == 3, "a command without a terminal decides nothing (exit code 3)", f"exit code {code}: {text}")
        stage.says("shell", f"exit code {code}. {_short(text)}", "red")
        stage.proved("a shell is no person: without a terminal the command is refused")

    async def _kill(self, agent: Agent) -> None:
        stage = self.stage
        stage.scene(
            "The server is killed", "No warning and no clean-up, in the middle of the run. Then it is started again."
        )
        sent = agent.kill()
        stage.must(await agent.silent(), "a killed server answers nothing")
        stage.says("system", f"{sent} to process {agent.pid}: it answers nothing any more", "yellow")
        async with connected(self.workspace, self.environ, self.log) as again:
            stage.must(again.pid != agent.pid, "another process serves now", again.pid)
            stage.says("system", f"`procedo serve` runs again, as process {again.pid}", "yellow")
            await self._still_waiting(again, "the gate outlives the process")
            stage.says(
                "server",
                f"Run {self.run_id} still waits at gate {self.gate}.",
                "green",
            )
        stage.proved("killed with no warning, the run stood where it stood")

    async def _person(self) -> None:
        stage = self.stage
        stage.scene("A person decides", "About publishing, after seeing everything that it is about.")
        await self._approve(self.gate, "seen with the team")
        stage.proved("a person at a terminal decided, after seeing what it was about")

    async def _allow(self, gate: str, comment: str) -> None:
        """Let the person allow a call; the session goes on in the server."""
        await self._approve(gate, comment, wait_s=0)

    async def _approve(self, gate: str, comment: str, wait_s: int = 5) -> None:
        """Let the person answer, in a terminal of their own."""
        stage = self.stage
        stage.says("person", f"$ procedo approve {gate}", "blue")
        seen: list[str] = []

        def show(text: str) -> None:
            seen.append(text)
            stage.terminal(text)

        words = ["approve", gate, "--workspace", str(self.workspace), "--comment", comment, "--wait", str(wait_s)]
        code = await asyncio.to_thread(
            typist.typed,
            words,
            "y",
            cwd=self.workspace,
            environ={**self.environ, "NO_COLOR": "1"},
            line=show,
            before_typing=lambda: stage.wait(3),
        )
        stage.must(code == 0, "the person's yes is taken", f"exit code {code}: {' '.join(seen[-3:])}")

    async def _ending(self, agent: Agent) -> None:
        stage = self.stage
        stage.scene("The agent goes on", "One more server process hands out step 4, and the run comes to its end.")
        answer = await self._call(agent, "Has somebody decided?", "sop_resume", {"run_id": self.run_id})
        for thought, output in (
            (f"Approved. I publish {_VERSION}.", {"published": True}),
            ("I tell the users.", {"url": f"https://example.org/news/{_VERSION}"}),
        ):
            offer = answer.action("execute_step")
            stage.must(offer is not None, "the next step is handed to the agent", answer.text)
            stage.says("server", f"Do step {offer['step']['number']}, {offer['step']['title']!r}.", "green")
            arguments = {
                "run_id": self.run_id,
                "execution_id": offer["execution_id"],
                "status": "completed",
                "output": output,
            }
            answer = await self._call(agent, thought, "sop_advance", arguments)
        stage.must(answer.view["status"] == "completed", "the run is completed", answer.text)
        self.output = answer.view["output"]
        stage.says("server", f"Completed. Output: {json.dumps(self.output, ensure_ascii=False)}", "green")
        stage.proved("the run came to its end over several server processes")

    async def _without_person(self, agent: Agent) -> None:
        self.stage.skip("the decision at the gate, and the steps behind it", "pseudo-terminals do not exist here")
        answer = await self._call(
            agent, "Then I end the run.", "sop_cancel", {"run_id": self.run_id, "reason": "demonstration"}
        )
        self.stage.must(answer.view["status"] == "cancelled", "the run is cancelled", answer.text)

    async def _record(self) -> None:
        stage = self.stage
        stage.scene(
            "The record",
            "Every transition was written with its state in one commit, each record chained to the one before.",
        )
        stage.says("person", "$ procedo audit verify", "blue")
        code, text = await self._command(["audit", "verify"])
        stage.must(code == 0, "the record verifies", f"exit code {code}: {text}")
        stage.says("shell", text.strip(), "green")
        stage.proved("the record of everything verifies")

    async def _command(self, words: Sequence[str], typed: str = "") -> tuple[int, str]:
        """Run a command of ours in a session of its own, so that no terminal is near."""

        def go() -> tuple[int, str]:
            # The words are our own: the interpreter, this package, and a verb with its arguments.
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-m", "procedo", *words, "--workspace", str(self.workspace)],
                input=typed, capture_output=True, text=True, encoding="utf-8", timeout=_COMMAND_LIMIT_S,
                env={**self.environ, "NO_COLOR": "1"}, cwd=self.workspace, start_new_session=os.name == "posix",
                check=False,
            )  # fmt: skip
            return done.returncode, done.stdout + done.stderr

        return await asyncio.to_thread(go)
