"""Clients of other makers as the tests run them: with a model that is played, or called by the tests line by line."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest
from model_endpoint import Endpoint
from reached import BOUND_S, Reach, ran
from scripted_agent import Call, Script, Seen

__all__ = ["Called", "Prompted", "interpreter"]


def interpreter(name: str, module: str) -> str:
    """The Python in the folder `name` that PROCEDO_CONFORMANCE names, when that has this module."""
    home = Path(os.environ.get("PROCEDO_CONFORMANCE") or "-") / name
    if not any(home.glob(f"lib/python*/site-packages/{module}")):
        pytest.skip(f"PROCEDO_CONFORMANCE names no folder with a Python environment {name} that has {module}")
    return str(home / "bin" / "python")


@dataclass
class Prompted:
    """A program with a model of its own, which is played: a conversation is a run of the program with a prompt."""

    model: Endpoint
    command: Callable[[str], Sequence[str]]
    environ: dict[str, str]
    folder: Path

    @property
    def seen(self) -> list[Seen]:
        return self.model.seen

    @property
    def offered(self) -> Set[str]:
        return self.model.offered

    def turn(self, script: Script) -> str:
        self.model.plays(script)
        printed = ran(self.command("Fire the kiln, or go on with it."), self.environ, self.folder)
        assert self.model.faults == [], printed
        return printed


@dataclass
class Called:
    """A program that makes the calls it is given on its input, and prints what a model is given for each."""

    command: Sequence[str]
    reach: Reach
    seen: list[Seen] = field(default_factory=list)
    offered: Set[str] = frozenset()

    def turn(self, script: Script) -> str:
        with self._begun() as (say, heard):
            self.offered = frozenset(json.loads(_line(heard)))
            call = next(script)
            while True:
                say.write(json.dumps({"tool": call.tool, "arguments": call.arguments}) + "\n")
                say.flush()
                self.seen.append(Seen(_line(heard)))
                after = _sent(script, self.seen[-1])
                if isinstance(after, str):
                    return after
                call = after

    @contextmanager
    def _begun(self) -> Iterator[tuple[IO[str], IO[str]]]:
        with subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
            cwd=self.reach.place.root,
            env=self.reach.environment(),
            start_new_session=True,
        ) as process:
            guard = threading.Timer(BOUND_S, os.killpg, (process.pid, signal.SIGKILL))
            guard.start()
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                yield process.stdin, process.stdout
                process.stdin.close()
                assert process.wait(BOUND_S) == 0
            finally:
                guard.cancel()
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


def _sent(script: Script, seen: Seen) -> Call | str:
    try:
        return script.send(seen)
    except StopIteration as end:
        return str(end.value)


def _line(heard: IO[str]) -> str:
    line = heard.readline()
    assert line, "the client ended"
    return line
