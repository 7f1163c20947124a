"""Encloses the programs that an agent starts. `probe` tries it by running `true`; nothing falls back to no sandbox.

Inside there is the system's own software to read, the roots of the policy, an empty /tmp, its own
processes, and no network. What is forbidden is covered, what is protected is read-only.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from procedo.agents.parts import Sandbox, SecurityPolicy

__all__ = ["enclosed", "probe"]

_SYSTEM: Final = ("/usr", "/opt", "/nix/store")
_LINKED: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_FROM_ETC: Final = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "ssl", "ca-certificates",
                    "nsswitch.conf", "passwd", "group", "mime.types")  # fmt: skip
_PROBE_S: Final = 10.0


@functools.cache
def probe(sandbox: Sandbox) -> str | None:
    """Why a sandbox cannot be used on this machine, or None. Tried once, by running a program in it."""
    if sandbox is Sandbox.NONE:
        return None
    program = _program()
    if program is None:
        return 'there is no program bwrap; install bubblewrap, or write sandbox_backend = "none"'
    try:
        done = subprocess.run(  # noqa: S603  # our own words only, and a program found on the PATH
            [program, *_frame(), "--", "/usr/bin/true" if Path("/usr/bin/true").exists() else "/bin/true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap cannot be run: {error}"
    if done.returncode != 0:
        said = " ".join(done.stderr.decode(errors="replace").split())[:200]
        return f"bwrap does not work here: {said or f'exit code {done.returncode}'}"
    return None


def enclosed(policy: SecurityPolicy, command: Sequence[str], folder: Path) -> Sequence[str]:
    """The command inside the policy's sandbox; `command[0]` is the path of its program."""
    if policy.sandbox is Sandbox.NONE:
        return command
    words = [_program() or "bwrap", *_frame()]
    words += _of_program(Path(command[0]), policy)
    for root in policy.roots:
        words += ["--bind" if root.writable else "--ro-bind", str(root.path), str(root.path)]
        if root.path == Path("/"):
            words += ["--proc", "/proc", "--dev", "/dev"]
    for path in policy.protected:
        words += _over(path, policy, ("--ro-bind", os.path.realpath(path)))
    for path in policy.forbidden:
        words += _covered(path, policy)
    return [*words, "--chdir", str(folder), "--", *command]


def _program() -> str | None:
    return shutil.which("bwrap")


def _frame() -> list[str]:
    words = ["--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108  # its own
    for path in _SYSTEM:
        words += ["--ro-bind-try", path, path]
    for path in _LINKED:
        if Path(path).is_symlink():
            words += ["--symlink", str(Path(path).readlink()), path]
        else:
            words += ["--ro-bind-try", path, path]
    for name in _FROM_ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return words


def _of_program(program: Path, policy: SecurityPolicy) -> list[str]:
    """What a program outside of the system's folders needs: its installation, never a home or the whole disk."""
    words: list[str] = []
    for path in dict.fromkeys((program, Path(os.path.realpath(program)))):
        folder = path.parent.parent if path.parent.name == "bin" else path.parent
        if folder in {Path("/"), Path.home(), Path("/home"), Path("/root")}:
            folder = path.parent
        seen = [*map(Path, _SYSTEM + _LINKED), *(root.path for root in policy.roots)]
        if not any(folder.is_relative_to(known) for known in seen):
            words += ["--ro-bind", str(folder), str(folder)]
    return words


def _over(path: Path, policy: SecurityPolicy, mount: tuple[str, str]) -> list[str]:
    real = Path(os.path.realpath(path))
    visible = any(real.is_relative_to(root.path) for root in policy.roots)
    return [*mount, str(real)] if visible and real.exists() else []


def _covered(path: Path, policy: SecurityPolicy) -> list[str]:
    real = Path(os.path.realpath(path))
    if real.is_dir():
        return ["--tmpfs", str(real)] if _over(path, policy, ("", "")) else []
    return _over(path, policy, ("--ro-bind", "/dev/null"))
