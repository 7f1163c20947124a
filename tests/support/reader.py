"""Somebody who follows a page of the documents: writes its files, types its commands, looks at what comes."""

import asyncio
import contextlib
import json
import os
import re
import select
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
from commands import LIMIT_S, Workspace
from documents import Block, Deed, parts
from forked import Piped
from likeness import Likeness
from mcp import Client, StdioServerParameters
from web_page import Page

from procedo.app import open_app
from procedo.config import load
from procedo.sopfile import Problem
from procedo.surfaces.cli.person import operator

__all__ = ["Reader"]

ELSEWHERE: Final = frozenset({"transcript", "/transcript", "tools", "/tools"})
"""Comments that mark what other tests look at."""

ANSWERED: Final = frozenset({"approve", "deny", "revise", "retract", "prune"})
SHELL: Final = re.compile(r"[|&;<>$`]|^(?!procedo )")
INVENTED_CODE: Final = re.compile(r"\bK7QF(?:2M)?\b")
INVENTED_RUN: Final = re.compile(r"\brun-(?:4f|7k3)\b…?")
ACCOUNT: Final = "ida"


@dataclass
class Reader:
    """`page` is from the root of the repository; `root` is the folder that the reader begins in."""

    page: str
    root: Path
    like: Likeness = field(default_factory=Likeness)
    said: str = ""
    codes: list[str] = field(default_factory=list)
    beside: list[Piped] = field(default_factory=list)
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.root

    def follow(self) -> None:
        """Do what the page says, from its beginning to its end; fails at the first line that is not so."""
        before: Block | None = None
        try:
            for part in parts(self.page):
                try:
                    if isinstance(part, Deed):
                        self._do(part)
                    else:
                        self._block(part, before)
                        before = part
                except Exception as error:
                    error.add_note(f"{self.page}, line {part.line}")
                    raise
            self._procedures()
        finally:
            for server in self.beside:
                self._end(server)

    @property
    def _here(self) -> Workspace:
        return Workspace(self.folder, {"HOME": str(self.root)})

    # --- blocks ----------------------------------------------------------------------------------

    def _block(self, block: Block, before: Block | None) -> None:
        if block.note in ELSEWHERE or block.note.startswith("not run: "):
            return
        if block.file:
            self._write(block)
            return
        treatments: dict[str, Callable[[], None]] = {
            "sh": lambda: self._type(block),
            "toml": lambda: self._configuration(block.text),
            "json": lambda: self._host(json.loads(block.text)),
            "python": lambda: exec(compile(block.text, self.page, "exec"), {}),  # noqa: S102  # it is what the page shows
        }
        if block.language == "text" and before is not None and before.language == "sh" and not before.file:
            self.like.compare(block.text, self._as_told(self.said))
            return
        assert block.language in treatments, (
            f"nobody knows what to do with this block of {block.language!r}: name its file in the paragraph before, "
            "put it behind its command, or say <!-- not run: why -->"
        )
        treatments[block.language]()

    def _as_told(self, text: str) -> str:
        """The account that runs the tests is called as in the documents."""
        return text.replace(f"{operator().subject} (human", f"{ACCOUNT} (human").replace(str(self.root), "…")

    def _write(self, block: Block) -> None:
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        match path.suffix:
            case ".toml":
                tomllib.loads(block.text)
            case ".json":
                json.loads(block.text)
        if path.name == "procedo.toml":
            load(path.parent)
        if path.name == ".mcp.json":
            self._host(json.loads(block.text))

    def _configuration(self, text: str) -> None:
        """A configuration by itself: it loads, and the page's workspace keeps its own."""
        alone = self.root / ".alone"
        alone.mkdir(exist_ok=True)
        (alone / "procedo.toml").write_text(text, encoding="utf-8")
        load(alone)

    # --- commands --------------------------------------------------------------------------------

    def _type(self, block: Block) -> None:
        said = []
        expected = int(block.note.removeprefix("ends with ")) if block.note.startswith("ends with ") else 0
        for place, line in enumerate(block.commands, 1):
            command = self._meant(line)
            if command.startswith("claude mcp add "):
                # The host itself is not here; what it would start is.
                program, *words = shlex.split(command.partition(" -- ")[2])
                self._host({"mcpServers": {"added": {"command": program, "args": words}}})
                continue
            if block.note == "second terminal" or command.startswith("procedo serve --"):
                said.append(self._begin(command))
                continue
            code, text = self._typed(command)
            wanted = expected if place == len(block.commands) else 0
            assert code == wanted, f"{command} ended with {code}:\n{text}"
            said.append(text)
        self.said = "".join(said)

    def _meant(self, line: str) -> str:
        """The command with real names; invented ones that were never shown mean the newest gate and run."""
        command = self.like.real(line)
        if INVENTED_CODE.search(command):
            (gate, *_) = self._here.json("inbox")["gates"]
            command = INVENTED_CODE.sub(gate["code"], command)
        if INVENTED_RUN.search(command):
            newest = self._here.json("status", "--all")["runs"][0]
            command = INVENTED_RUN.sub(newest["run_id"], command)
        return command

    def _typed(self, command: str) -> tuple[int, str]:
        if SHELL.search(command):
            return self._shell(command)
        words = shlex.split(command, comments=True)[1:]
        if words[0] in ANSWERED or words[:2] in (["token", "create"], ["token", "revoke"]):
            screen = self._here.person(*words)
            return screen.code, screen.text
        done = self._here.run(*words)
        return done.code, done.out + done.err

    def _shell(self, command: str) -> tuple[int, str]:
        programs = self.root / ".programs"
        programs.mkdir(exist_ok=True)
        program = programs / "procedo"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m procedo "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        environ = self._here.environment()
        place = programs / "place"
        done = subprocess.run(
            ["bash", "-c", f'{command}\ncode=$?\npwd > "{place}"\nexit "$code"'],
            cwd=self.folder,
            env={**environ, "PATH": f"{programs}{os.pathsep}{environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            start_new_session=True,
            check=False,
        )
        if done.returncode == 0:
            self.folder = Path(place.read_text(encoding="utf-8").strip())
        return done.returncode, done.stdout + done.stderr

    def _begin(self, command: str) -> str:
        """Start a server that goes on; it takes a free port, so that tests can run side by side."""
        words = shlex.split(command, comments=True)[1:]
        if "--http" in words and "--port" not in words:
            words += ["--port", "0"]
        server = Piped(words, cwd=self.folder, environ=self._here.environment())
        self.beside.append(server)
        heard = b""
        deadline = time.monotonic() + LIMIT_S
        while not (codes := re.findall(rb"login code ([A-Z0-9-]+).*\n", heard)):
            assert time.monotonic() < deadline, heard
            if select.select([server.stderr], [], [], 1)[0]:
                more = os.read(server.stderr.fileno(), 65536)
                assert more, f"{command} ended:\n{heard.decode()}"
                heard += more
        self.codes += [code.decode() for code in codes]
        return heard.decode()

    def _end(self, server: Piped) -> None:
        if server.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                server.stdin.close()
            server.send_signal(2)
        code = server.wait(LIMIT_S)
        server.__exit__()
        assert code in {0, 130, -2}, code

    # --- deeds -----------------------------------------------------------------------------------

    def _do(self, deed: Deed) -> None:
        what, _, about = deed.text.partition(": ")
        if what == "in the browser":
            asyncio.run(self._in_the_browser(about))
        elif what.startswith("the host starts "):
            started = {"name": what.rpartition(" ")[2], "inputs": json.loads(about)}
            asyncio.run(self._at_the_host("sop_start", started))
        elif what == "the host reports":
            asyncio.run(self._at_the_host("sop_advance", {"output": json.loads(about)}))
        else:
            known = deed.text in ELSEWHERE or what in {"mcp-name", "not run"}
            assert known, f"nobody knows how to do this: {deed.text}"

    async def _in_the_browser(self, verdict: str) -> None:
        """Log in with the code of the server beside, and give the first gate this answer."""
        origin = re.search(r"http://[\w.:]+", self.said)
        assert origin, self.said
        async with httpx2.AsyncClient(base_url=origin[0], trust_env=False, timeout=LIMIT_S) as browser:

            async def sent(path: str, fields: Mapping[str, str]) -> Page:
                answer = await browser.post(path, data=dict(fields), headers={"origin": origin[0]})
                return await shown(answer.headers.get("location", path))

            async def shown(path: str) -> Page:
                answer = await browser.get(path, follow_redirects=True)
                return Page(answer.status_code, answer.text, answer.headers, path)

            door = await shown("/inbox")
            form = next(path for path in _forms(door) if path.endswith("/login"))
            inbox = await sent(form, {**door.form(form), "credential": self.codes[-1]})
            gate = await shown(next(link for link in inbox.links if "/gates/" in link))
            answering = next(path for path in _forms(gate) if "/gates/" in path)
            after = await sent(answering, {**gate.form(answering), "verdict": verdict})
            assert after.status == 200
            assert after.text != gate.text, after.text

    async def _at_the_host(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Be the host that the page has set up: start a run, or look, take the open step, do it and report it."""
        settings = json.loads((self.folder / ".mcp.json").read_text(encoding="utf-8"))
        (server,) = self._servers(settings)
        async with Client(server) as client:

            async def call(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.content
                return result.structured_content

            if tool == "sop_start":
                await call(tool, **arguments)
                return
            (run,) = (await call("sop_status"))["runs"]
            view = await call("sop_resume", run_id=run["run_id"])
            (action,) = view["actions"]
            assert action["action"] == "execute_step", view
            view = await call(action["call"]["tool"], **{**action["call"]["arguments"], **arguments})
            assert view["status"] in {"completed", "waiting_approval"}, view

    # --- hosts and procedures --------------------------------------------------------------------

    def _host(self, settings: Any) -> None:
        """Start every server of a host's settings, and ask it for its procedures."""

        async def asked(server: StdioServerParameters) -> None:
            async with Client(server) as client:
                listed = await client.call_tool("sop_list", {})
            assert not listed.is_error

        servers = list(self._servers(settings))
        assert servers, "this is no settings of a host: name the file before it, or say <!-- not run: why -->"
        for server in servers:
            asyncio.run(asked(server))

    def _servers(self, settings: Any) -> Iterator[StdioServerParameters]:
        named = settings.get("mcpServers") or settings.get("servers") or {}
        for entry in named.values():
            command, *words = (self._real(word) for word in (entry["command"], *entry.get("args", [])))
            program = [sys.executable, "-m", "procedo"] if command.endswith("procedo") else [command]
            environ = self._here.environment() | entry.get("env", {})
            yield StdioServerParameters(command=program[0], args=[*program[1:], *words], env=environ, cwd=self.folder)

    def _real(self, word: str) -> str:
        """A path of the documents: that of the interpreter, or that of the workspace."""
        if not word.startswith("/path/to/"):
            return word
        if word.endswith("/procedo"):
            return word
        return sys.executable if "/python" in word else str(self.folder)

    def _procedures(self) -> None:
        """What the page shows as procedures is in the library without a problem."""

        async def found() -> dict[str, tuple[Problem, ...]]:
            async with open_app(self.folder, worker=False) as app:
                return {entry.name: entry.problems for entry in app.library.entries()}

        if (self.folder / "sops").is_dir():
            found_problems = [problem for those in asyncio.run(found()).values() for problem in those]
            problems = [str(problem) for problem in found_problems if problem.severity != "note"]
            assert not problems, "\n".join(problems)


def _forms(page: Page) -> list[str]:
    return re.findall(r'<form[^>]*action="([^"]+)"', page.html)
