"""A workspace, and how clients of other makers come to its server: by a command, or at an address."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from commands import Workspace
from forked import Piped
from mcp_host import workspace

__all__ = ["BOUND_S", "Reach", "ran", "reached"]

BOUND_S: Final = 300.0


@dataclass(frozen=True)
class Reach:
    """`url` is empty where clients start the server themselves."""

    place: Workspace
    url: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """What starts the server."""
        return (sys.executable, "-m", "procedo", "serve", "--workspace", str(self.place.root))

    @property
    def order(self) -> dict[str, Any]:
        """The same for the programs in tests/conformance/clients."""
        if self.url:
            return {"url": self.url}
        return {"command": self.command, "env": self.place.environment()}

    def environment(self, **more: str) -> dict[str, str]:
        """What a client itself runs in: no home but the workspace, and its own warnings are its makers' affair."""
        ours = self.place.environment(**more)
        return {name: value for name, value in ours.items() if name not in ("PYTHONPATH", "PYTHONWARNINGS")}


@contextmanager
def reached(folder: Path, transport: str) -> Iterator[Reach]:
    """A new workspace whose server is reached over `stdio` or `http`."""
    place = Workspace(workspace(folder))
    if transport == "stdio":
        yield Reach(place)
        return
    words = ("serve", "--http", "--port", "0")
    with Piped(words, cwd=place.root, environ=place.environment()) as server:
        line = server.stderr.readline()
        address = re.search(r"MCP at (http://\S+/mcp)", line)
        assert address is not None, line + server.stderr.read()
        yield Reach(place, address[1])


def ran(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> str:
    """What a program printed that ended well in time; whatever it started ends with it."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=dict(environ),
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=BOUND_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
            raise AssertionError(f"{command[0]} did not end; it printed:\n{printed}") from None
    assert process.returncode == 0, printed
    return printed
