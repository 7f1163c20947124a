"""The command line as a real process, and a workspace for it."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from forked import Forked
from keyboard import Answer, Screen, at_keyboard
from repository import ROOT

__all__ = ["Done", "Workspace"]

LIMIT_S: Final = 400.0


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """Standard error as one JSON line."""
        return json.loads(self.err)


def _environ(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    return kept | {"PYTHONPATH": str(ROOT / "src"), "HOME": str(home), "PYTHONWARNINGS": "error", "TERM": "dumb"}


@dataclass(frozen=True)
class Workspace:
    """A folder with procedures, and the commands that run in it without any terminal."""

    root: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def write(self, name: str, header: str, steps: str | None = None) -> Path:
        """Write a procedure; `steps` is the text under `## Steps`."""
        folder = self.root / "sops" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SOP.toml").write_text(header, encoding="utf-8")
        if steps is not None:
            (folder / "SOP.md").write_text(f"# {name}\n\n## Steps\n\n{steps}", encoding="utf-8")
        return folder

    def simple(self, name: str, steps: str, *, mode: str = "auto", more: str = "") -> Path:
        """Write a procedure of this mode."""
        head = f'[sop]\nname = "{name}"\ndescription = "About {name}."\nexecution_mode = "{mode}"\n{more}'
        return self.write(name, head, steps)

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of every command here."""
        return {**_environ(self.root), **self.environ, **more}

    def run(self, *words: str, typed: str = "", cwd: Path | None = None, **environ: str) -> Done:
        """Run a command in a session of its own: no terminal is near."""
        # What is said to an interpreter is heard by a new one alone.
        fresh = any(name.startswith("PYTHON") for name in (*self.environ, *environ))
        begin = self._fresh if fresh else self._forked
        return begin(words, typed, cwd or self.root, self.environment(**environ))

    def fresh(self, *words: str) -> Done:
        """Run a command as people do: nothing is imported before."""
        return self._fresh(words, "", self.root, self.environment())

    def _fresh(self, words: Sequence[str], typed: str, cwd: Path, environ: Mapping[str, str]) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "procedo", *words],
            input=typed,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            cwd=cwd,
            env=environ,
            start_new_session=True,
            check=False,
        )
        return self._done(done.returncode, done.stdout, done.stderr)

    def _forked(self, words: Sequence[str], typed: str, cwd: Path, environ: Mapping[str, str]) -> Done:
        with tempfile.TemporaryFile() as keys, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            keys.write(typed.encode())
            keys.seek(0)
            with Forked(words, (keys.fileno(), out.fileno(), err.fileno()), cwd=cwd, environ=environ) as command:
                code = command.wait(LIMIT_S)
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode())
        return self._done(code, *texts)

    def _done(self, code: int, out: str, err: str) -> Done:
        assert "Traceback" not in err, err
        return Done(code, out, err)

    def json(self, *words: str, typed: str = "") -> Any:
        """The JSON answer of a command that succeeds."""
        done = self.run(*words, "--json", typed=typed)
        assert done.code == 0, done.err
        return done.value

    def person(
        self,
        *words: str,
        answers: Sequence[Answer] = ("y",),
        stdin: bytes | None = None,
        piped: bool = False,
        ahead: str = "",
        background: bool = False,
    ) -> Screen:
        """Run a command at a terminal where a person answers its questions."""
        return at_keyboard(
            words,
            answers,
            cwd=self.root,
            environ=self.environment(),
            stdin=stdin,
            piped=piped,
            ahead=ahead,
            background=background,
        )

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Begin a command that goes on until it is ended; its standard output is a pipe."""
        return subprocess.Popen(
            [sys.executable, "-u", "-m", "procedo", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=self.root,
            env=self.environment(),
            start_new_session=True,
        )
