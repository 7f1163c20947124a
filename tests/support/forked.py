"""Commands as real processes that start at once: forked from a process that has imported everything before.

A fork has a process id, a session, an environment, a folder and streams of its own, as any other process. What it
cannot show is that a fresh interpreter finds its way as well: for that there is `Workspace.fresh`.
"""

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, Self

__all__ = ["Forked", "Piped"]

START_S: Final = 120.0
# What is imported late in the product, and by nearly every command.
LATE: Final = ("jsonschema", "markdown_it", "sqlite3")
# What few commands need, and what takes long.
AGENTS: Final = "procedo.agents"


class Forked:
    """A command that runs in a session of its own until the block ends.

    `streams` are the file descriptors of its input, output and errors; they stay the caller's as well. With
    `terminal` the last of them is a terminal and becomes the session's own; in the `background` of that terminal
    the command runs behind the session's first process. What `agents` need is imported before as well, if asked for.
    """

    def __init__(
        self,
        words: Sequence[str],
        streams: tuple[int, int, int],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        terminal: bool = False,
        background: bool = False,
        agents: bool = False,
    ) -> None:
        order = {
            "words": list(words),
            "cwd": str(cwd),
            "environ": dict(environ),
            "terminal": terminal,
            "background": background,
        }
        self._keeper, far = socket.socketpair()
        with far:
            socket.send_fds(_ready(agents), [b"."], [far.fileno(), *streams])
        self._keeper.settimeout(START_S)
        self._keeper.sendall(json.dumps(order).encode() + b"\n")
        self.pid = int(self._line())
        self._code: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.wait(START_S)
        self._keeper.close()

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            # It may have ended between the look and the signal; then there is nothing left to send it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, if it runs."""
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        """The exit code, or minus the number of the signal that ended it; None while it runs."""
        ended = self._code is not None or select.select([self._keeper], [], [], 0)[0]
        return self.wait(START_S) if ended else None

    def wait(self, limit_s: float) -> int:
        """The exit code, as `poll` tells it. Raises `TimeoutError` after that time."""
        if self._code is None:
            self._keeper.settimeout(limit_s)
            self._code = int(self._line())
        return self._code

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            byte = self._keeper.recv(1)
            assert byte, "the process that forks commands has ended"
            line += byte
        return line


class Piped(Forked):
    """A command at the end of three pipes of text, to be used as `subprocess.Popen` is."""

    def __init__(self, words: Sequence[str], *, cwd: Path, environ: Mapping[str, str], agents: bool = False) -> None:
        (keys, into), (out, printed), (err, complained) = os.pipe(), os.pipe(), os.pipe()
        try:
            super().__init__(words, (keys, printed, complained), cwd=cwd, environ=environ, agents=agents)
        finally:
            for fd in (keys, printed, complained):
                os.close(fd)
        self.stdin = os.fdopen(into, "w", encoding="utf-8")
        self.stdout = os.fdopen(out, encoding="utf-8")
        self.stderr = os.fdopen(err, encoding="utf-8")

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for stream in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(BrokenPipeError):  # what was still to be written has no reader any more
                stream.close()


@functools.cache
def _ready(agents: bool) -> socket.socket:
    """The way to the process that forks; it ends when this end is closed."""
    near, far = socket.socketpair()
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    with far:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", __file__, str(far.fileno()), *([AGENTS] if agents else [])],
            pass_fds=[far.fileno()],
            stdin=subprocess.DEVNULL,
            env=environ,
            start_new_session=True,
        )

    def end() -> None:
        near.close()
        process.wait(START_S)

    atexit.register(end)
    return near


# --- the process that forks ----------------------------------------------------------------------


def _import_all(agents: bool) -> None:
    for name in LATE:
        importlib.import_module(name)
    import procedo
    from procedo.sopfile.cel import compile_expression

    for module in pkgutil.walk_packages(procedo.__path__, "procedo."):
        if module.name != "procedo.__main__" and (agents or not module.name.startswith(AGENTS)):
            importlib.import_module(module.name)
    compile_expression("1")


def _become(order: dict[str, Any], fds: Sequence[int]) -> None:
    """Make this process what a new one would be."""
    os.setsid()
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
    os.closerange(3, max(fds) + 1)
    if order["terminal"]:
        fcntl.ioctl(2, termios.TIOCSCTTY, 0)
    if order["background"]:
        # The terminal stays with this process, and the command runs in a group of its own behind it.
        if child := os.fork():
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        os.setpgid(0, 0)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environ"])
    tempfile.tempdir = None
    sys.argv = ["procedo", *order["words"]]
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _keep(keeper: int, fds: Sequence[int]) -> NoReturn:
    """Fork the command, tell its process id, and then how it ended."""
    from procedo.surfaces.cli.main import main

    with open(keeper, "rb", closefd=False) as lines:
        order = json.loads(lines.readline())
    child = os.fork()
    if not child:
        _become(order, fds)
        code = main(order["words"])
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # what an interpreter does at its end takes longer than the command did
    for fd in fds:
        os.close(fd)
    os.write(keeper, b"%d\n" % child)
    os.write(keeper, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)


def _serve(way: int) -> None:
    with socket.socket(fileno=way) as near:
        while fds := socket.recv_fds(near, 1, 4)[1]:
            if not os.fork():
                near.close()
                _keep(fds[0], fds[1:])
            for fd in fds:
                os.close(fd)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


if __name__ == "__main__":
    _import_all(AGENTS in sys.argv)
    gc.collect()
    gc.freeze()  # the pages of what is imported stay shared
    _serve(int(sys.argv[1]))
