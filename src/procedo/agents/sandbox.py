"""Encloses the programs that an agent starts. `probe` tries it by running `true`; nothing falls back to no sandbox.

Inside there is the system's own software to read, the roots of the policy, an empty /tmp, its own
processes, and no network. What is forbidden is covered, what is protected is read-only.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from procedo.agents.parts import Root, Sandbox, SecurityPolicy

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


def enclosed(policy: SecurityPolicy, command: Sequence[str], cwd: Path) -> Sequence[str]:
    """The command inside the policy's sandbox; `command[0]` is the path of its program."""
    if policy.sandbox is Sandbox.NONE:
        return command
    words = [_program() or "bwrap", *_frame()]
    installed = _of_program(Path(command[0]), policy)
    for folder in installed:
        words += ["--ro-bind", str(folder), str(folder)]
    visible = [*installed, *(root.path for root in policy.roots)]
    kept = [real for path in (*policy.protected, *policy.forbidden) if (real := _seen(path, visible)) is not None]
    # The outer ones first, so that an inner one that is narrower stays so.
    for root in sorted(policy.roots, key=lambda root: len(root.path.parts)):
        words += _of_root(root, policy, kept)
    for path in policy.protected:
        if (real := _seen(path, visible)) is not None:
            words += ["--ro-bind", str(real), str(real)]
    for path in policy.forbidden:
        if (real := _seen(path, visible)) is not None:
            words += ["--tmpfs", str(real)] if real.is_dir() else ["--ro-bind", "/dev/null", str(real)]
    return [*words, "--chdir", str(cwd), "--", *command]


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


def _of_root(root: Root, policy: SecurityPolicy, kept: Iterable[Path]) -> list[str]:
    """A root, and each folder in it that leads to what is kept from the agent, as a mount of its own.

    A mount cannot be renamed: otherwise a folder above what is protected could be moved away, and another put in
    its place.
    """
    bind = "--bind" if root.writable else "--ro-bind"
    words = [bind, str(root.path), str(root.path)]
    if root.path == Path("/"):
        words += ["--proc", "/proc", "--dev", "/dev"]
    inner = [other.path for other in policy.roots if len(other.path.parts) > len(root.path.parts)]
    above = {folder for path in kept if root.writable and path.is_relative_to(root.path) for folder in path.parents}
    for folder in sorted(above, key=lambda folder: len(folder.parts)):
        within = folder != root.path and folder.is_relative_to(root.path)
        if within and not any(folder.is_relative_to(other) for other in inner):
            words += [bind, str(folder), str(folder)]
    return words


def _of_program(program: Path, policy: SecurityPolicy) -> list[Path]:
    """What a program outside of the system's folders needs: its installation, never a home or the whole disk."""
    found: list[Path] = []
    for path in dict.fromkeys((program, Path(os.path.realpath(program)))):
        folder = path.parent.parent if path.parent.name == "bin" else path.parent
        if folder in {Path("/"), Path.home(), Path("/home"), Path("/root")}:
            folder = path.parent
        seen = [*map(Path, _SYSTEM + _LINKED), *(root.path for root in policy.roots)]
        if not any(folder.is_relative_to(known) for known in seen):
            found.append(folder)
    return found


def _seen(path: Path, visible: Iterable[Path]) -> Path | None:
    """Where a path really lies, when it is there and would be seen inside."""
    real = Path(os.path.realpath(path))
    return real if any(real.is_relative_to(folder) for folder in visible) and real.exists() else None
