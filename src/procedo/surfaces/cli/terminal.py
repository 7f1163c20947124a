"""The controlling terminal: where a person is asked, and the only place that counts as a person.

A decision needs somebody at the keyboard. Standard input is no proof of that (`yes |` would do), so
the question goes to the process's controlling terminal and the answer is read from there. A command
that a coding agent runs has no such terminal and is refused. The limit of this: a program that
allocates a pseudo-terminal, or that shares the terminal with its user, acts as that user; it is the
same account, and the operating system cannot tell them apart.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from procedo.errors import Refused
from procedo.surfaces.cli.output import visible

__all__ = ["Terminal", "controlling_terminal", "has_controlling_terminal"]

_LONGEST_ANSWER = 1024


class Terminal(Protocol):
    """A person's terminal."""

    def show(self, text: str) -> None:
        """Show lines, with control characters made visible."""

    def confirmed(self, question: str) -> bool:
        """Ask, and tell whether a plain `y` was typed after the question was shown."""


_HINT = "A person decides in an interactive terminal of their own; a program that runs this command cannot."


def _refused(why: str) -> Refused:
    return Refused("no_terminal", f"Nothing was decided: {why}.", _HINT)


def _agreed(answer: str) -> bool:
    return answer.strip().casefold() in {"y", "yes"}


class _Posix:
    """`/dev/tty` of this process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def show(self, text: str) -> None:
        data = (visible(text) + "\n").encode(errors="backslashreplace")
        while data:
            data = data[os.write(self._fd, data) :]

    def confirmed(self, question: str) -> bool:
        import termios

        before = termios.tcgetattr(self._fd)
        usual = list(before)
        usual[0] |= termios.ICRNL
        usual[3] |= termios.ICANON | termios.ECHO | termios.ISIG
        # FLUSH drops what was typed before the question was there to be read.
        termios.tcsetattr(self._fd, termios.TCSAFLUSH, usual)
        try:
            os.write(self._fd, visible(question, lines=False).encode(errors="backslashreplace") + b" ")
            return _agreed(os.read(self._fd, _LONGEST_ANSWER).decode(errors="replace"))
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)


class _Windows:
    """The console of this process."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing

    def show(self, text: str) -> None:
        os.write(self._writing, (visible(text) + "\r\n").encode(errors="backslashreplace"))

    def confirmed(self, question: str) -> bool:
        if sys.platform == "win32":
            import msvcrt

            while msvcrt.kbhit():
                msvcrt.getwch()
        os.write(self._writing, visible(question, lines=False).encode(errors="backslashreplace") + b" ")
        return _agreed(os.read(self._reading, _LONGEST_ANSWER).decode(errors="replace"))


@contextmanager
def _posix() -> Iterator[Terminal]:
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise _refused(f"this process has no controlling terminal ({error.strerror})") from error
    try:
        # A job in the background would be stopped by its first read, silently and for ever.
        if os.tcgetpgrp(fd) != os.getpgrp():
            raise _refused("this process runs in the background of its terminal")
        yield _Posix(fd)
    finally:
        os.close(fd)


@contextmanager
def _windows() -> Iterator[Terminal]:
    try:
        reading = os.open("CONIN$", os.O_RDWR)
    except OSError as error:
        raise _refused("this process has no console") from error
    try:
        writing = os.open("CONOUT$", os.O_RDWR)
        try:
            yield _Windows(reading, writing)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


@contextmanager
def controlling_terminal() -> Iterator[Terminal]:
    """The terminal of the person who runs this command. Raises `Refused` (`no_terminal`) when there is none."""
    with _windows() if sys.platform == "win32" else _posix() as terminal:
        yield terminal


def has_controlling_terminal() -> bool:
    """True when a decision could be taken from here."""
    try:
        with controlling_terminal():
            return True
    except Refused:
        return False
