"""A person at a keyboard, played by a pseudo-terminal: it reads what a command shows and types one answer.

This is also the honest limit of a terminal as a proof: a program that allocates one acts as its user.
"""

import os
import subprocess  # the demonstration runs the same commands that a person would
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

__all__ = ["available", "typed"]

_LIMIT_S = 90.0
# The child makes the pseudo-terminal its controlling one and then is the command; a fork of our own
# process would carry its event loop and threads along.
_BOOT = (
    "import fcntl, runpy, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "sys.argv[0] = 'procedo'; runpy.run_module('procedo', run_name='__main__', alter_sys=True)"
)


def available() -> bool:
    """True where pseudo-terminals exist."""
    return sys.platform != "win32"


class _Screen:
    """Collects what the terminal shows and hands on whole lines."""

    def __init__(self, line: Callable[[str], None]) -> None:
        self._line = line
        self._rest = ""

    def show(self, text: str) -> None:
        *whole, self._rest = (self._rest + text.replace("\r\n", "\n").replace("\r", "")).split("\n")
        for line in whole:
            self._line(line)

    def end(self) -> None:
        if self._rest:
            self._line(self._rest)

    @property
    def asks(self) -> bool:
        return self._rest.rstrip().endswith("[y/N]")


def _read(master: int, left: float) -> str:
    import select

    ready, _, _ = select.select([master], [], [], max(0.0, left))
    if not ready:
        raise TimeoutError("the command showed nothing more and did not end")
    try:
        return os.read(master, 65536).decode(errors="replace")
    except OSError:
        # Linux answers with an error instead of an end when the last process has let go of the terminal.
        return ""


def typed(
    words: Sequence[str],
    answer: str,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    line: Callable[[str], None],
    before_typing: Callable[[], None],
) -> int:
    """Run a procedo command on a pseudo-terminal, answer its one question, and return its exit code.

    Raises `TimeoutError` when it takes longer than it ever should.
    """
    master, slave = os.openpty()
    screen = _Screen(line)
    try:
        # The words are our own: the interpreter, our boot line, and the verb with the gate's code.
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _BOOT, *words],
            stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=dict(environ), start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        slave = -1
        deadline = time.monotonic() + _LIMIT_S
        answered = False
        while text := _read(master, deadline - time.monotonic()):
            screen.show(text)
            if screen.asks and not answered:
                before_typing()
                os.write(master, f"{answer}\n".encode())
                answered = True
        screen.end()
        return process.wait(timeout=_LIMIT_S)
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)
