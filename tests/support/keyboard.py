"""A person at a terminal, for tests: a command on a pseudo-terminal, what it showed, and what was typed when."""

import os
import select
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from forked import Forked

__all__ = ["Answer", "Screen", "at_keyboard"]

Answer: TypeAlias = str | Callable[[], str]
"""What is typed; a function is called when the question stands there, and may do something before it answers."""

LIMIT_S: Final = 240.0


@dataclass(frozen=True)
class Screen:
    """What the terminal showed and how the command ended; `piped` is standard output where that was a pipe."""

    code: int
    text: str
    piped: str = ""


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:
        return b""  # Linux tells the end of a pseudo-terminal by an error


def _text(shown: bytes) -> str:
    """What was shown, as a whole: what one look finds may end in the middle of a character or of a line's end."""
    return shown.decode(errors="replace").replace("\r\n", "\n")


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
    shown, left = b"", list(answers)
    deadline = time.monotonic() + LIMIT_S
    with tempfile.TemporaryFile() as keys, tempfile.TemporaryFile() as out:
        keys.write(stdin or b"")
        keys.seek(0)
        os.write(master, ahead.encode())
        streams = (slave if stdin is None else keys.fileno(), out.fileno() if piped else slave, slave)
        command = Forked(words, streams, cwd=cwd, environ=environ, terminal=True, background=background)
        try:
            with command:
                while command.poll() is None:
                    assert time.monotonic() < deadline, f"the command did not end; the terminal showed:\n{_text(shown)}"
                    if not select.select([master], [], [], 0.1)[0]:
                        continue
                    shown += _read(master)
                    if left and shown.count(b"[y/N]") > len(answers) - len(left):
                        answer = left.pop(0)
                        os.write(master, f"{answer() if callable(answer) else answer}\n".encode())
            while select.select([master], [], [], 0)[0] and (more := _read(master)):
                shown += more
            out.seek(0)
            return Screen(command.wait(0), _text(shown), out.read().decode())
        finally:
            os.close(slave)
            os.close(master)
