"""A person at a terminal, for tests: a command on a pseudo-terminal, what it showed, and what was typed when."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

__all__ = ["Answer", "Screen", "at_keyboard"]

Answer: TypeAlias = str | Callable[[], str]
"""What is typed; a function is called when the question stands there, and may do something before it answers."""

LIMIT_S: Final = 40.0
# The session's first process opens the terminal as its own; then it becomes the command itself.
BOOT: Final = """
import fcntl, os, sys, termios
fd = os.open(sys.argv.pop(1), os.O_RDWR)
fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
if sys.argv.pop(1) == "background" and (child := os.fork()):
    # The terminal stays with this process, and the command is to run in a group of its own behind it.
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
elif os.getpid() != os.getsid(0):
    os.setpgid(0, 0)
for target in map(int, sys.argv.pop(1).split()):
    os.dup2(fd, target)
os.close(fd)
os.execv(sys.executable, [sys.executable, "-m", "procedo", *sys.argv[1:]])
"""


@dataclass(frozen=True)
class Screen:
    """What the terminal showed and how the command ended; `piped` is standard output where that was a pipe."""

    code: int
    text: str
    piped: str = ""


def _read(master: int) -> str:
    try:
        return os.read(master, 65536).decode(errors="replace")
    except OSError:
        return ""  # Linux tells the end of a pseudo-terminal by an error


def at_keyboard(
    words: Sequence[str],
    answers: Sequence[Answer],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    stdin: bytes | None = None,
    piped: bool = False,
    ahead: str = "",
    background: bool = False,
) -> Screen:
    """Run a command on a terminal of its own; each question `[y/N]` gets the next answer.

    With `stdin` its standard input is a pipe with that content, with `piped` its standard output is a pipe.
    `ahead` is typed before the command can have asked anything.
    """
    master, slave = os.openpty()
    own = " ".join(number for number, off in (("0", stdin is not None), ("1", piped), ("2", False)) if not off)
    process = subprocess.Popen(
        [sys.executable, "-c", BOOT, os.ttyname(slave), "background" if background else "foreground", own, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=dict(environ),
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    os.write(master, ahead.encode())
    if stdin is not None:
        process.stdin.write(stdin)
    process.stdin.close()
    shown, left = "", list(answers)
    deadline = time.monotonic() + LIMIT_S
    try:
        while process.poll() is None:
            assert time.monotonic() < deadline, f"the command did not end; the terminal showed:\n{shown}"
            if not select.select([master], [], [], 0.1)[0]:
                continue
            shown += _read(master).replace("\r\n", "\n")
            if left and shown.count("[y/N]") > len(answers) - len(left):
                answer = left.pop(0)
                os.write(master, f"{answer() if callable(answer) else answer}\n".encode())
        while select.select([master], [], [], 0)[0] and (text := _read(master)):
            shown += text.replace("\r\n", "\n")
        out, err = process.stdout.read().decode(), process.stderr.read().decode()
        return Screen(process.returncode, shown + err, out)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        os.close(slave)
        os.close(master)
