"""How dangerous a command is, by what it is called with. Pure, and data first.

A program is judged by its name without folder, suffix and version, in lower case, so another path or spelling does
not change the answer. What starts other programs (shells, `env`, `xargs`) is as dangerous as
anything it could start. A list cannot know every program: what is on none of them is of low risk only
because the allowlist names it; the sandbox is the wall, this is the lock.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import PurePath
from types import MappingProxyType
from typing import Final

__all__ = ["HIGH", "MEDIUM", "Risk", "command_risk", "program_name"]


class Risk(StrEnum):
    """Low runs as the level says, medium is asked for by default, high is blocked by default."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


_DESTROYS: Final = frozenset({"rm", "rmdir", "unlink", "shred", "dd", "mkfs", "fdisk", "parted", "wipefs", "truncate"})
_ADMINISTERS: Final = frozenset(
    {
        "sudo", "su", "doas", "pkexec", "shutdown", "reboot", "halt", "poweroff", "init", "systemctl", "service",
        "mount", "umount", "chroot", "unshare", "nsenter", "useradd", "userdel", "usermod", "groupadd", "passwd",
        "chpasswd", "visudo", "crontab", "at", "batch", "chown", "chgrp", "chmod", "chattr", "setfacl", "setcap",
        "iptables", "nft", "ufw", "sysctl", "modprobe", "insmod", "kill", "killall", "pkill", "gdb", "strace", "ltrace",
        "docker", "podman", "kubectl",
    }
)  # fmt: skip
_REACHES_OUT: Final = frozenset(
    {"curl", "wget", "nc", "ncat", "netcat", "socat", "ssh", "scp", "sftp", "rsync", "ftp", "telnet", "aria2c"}
)
_STARTS_OTHERS: Final = frozenset(
    {
        "sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "ash", "busybox", "toybox", "pwsh", "powershell",
        "cmd",
        "env", "xargs", "parallel", "nohup", "setsid", "timeout", "nice", "ionice", "stdbuf", "time", "watch", "script",
        "expect", "screen", "tmux", "exec", "eval", "command", "ld-linux-x86-64.so", "ld.so", "bwrap", "firejail",
        "awk", "gawk", "mawk", "vi", "vim", "nvim", "emacs", "ed", "ex", "less", "more", "man", "make",
    }
)  # fmt: skip
HIGH: Final = _DESTROYS | _ADMINISTERS | _REACHES_OUT | _STARTS_OTHERS
"""Programs of high risk whatever they are called with."""

MEDIUM: Final = frozenset(
    {
        "mv", "cp", "ln", "install", "touch", "mkdir", "tee", "patch", "tar", "unzip", "zip", "gzip", "sed", "npm",
        "npx",
        "yarn", "pnpm", "bun", "pip", "pipx", "uv", "uvx", "poetry", "gem", "bundle", "cargo", "go", "apt", "apt-get",
        "dnf", "yum", "apk", "brew", "pacman", "terraform", "ansible", "ansible-playbook", "helm", "psql", "mysql",
        "sqlite", "redis-cli", "mongosh", "aws", "gcloud", "az", "gh", "ninja", "cmake", "ant", "mvn", "gradle",
        "python", "pypy", "node", "deno", "ruby", "perl", "php", "lua", "rscript", "java", "tclsh", "osascript",
    }
)  # fmt: skip
"""Programs of medium risk: they change things, or run what a file says."""

_INLINE_CODE: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "python": frozenset("c"),
        "pypy": frozenset("c"),
        "node": frozenset("ep"),
        "ruby": frozenset("e"),
        "perl": frozenset("eE"),
        "php": frozenset("rBE"),
        "lua": frozenset("e"),
        "rscript": frozenset("e"),
        "osascript": frozenset("e"),
    }
)
"""Interpreters, and the letters behind which they take code from the command line."""

_MULTI_CALL: Final = frozenset({"busybox", "toybox", "coreutils"})
_LONG_CODE: Final = ("--eval", "--print", "--run", "--execute")
_FIND_ACTS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprintf", "-fls"})
_GIT_READS: Final = frozenset(
    {"status", "log", "diff", "show", "blame", "describe", "rev-parse", "ls-files", "ls-tree", "cat-file", "shortlog"}
)
_GIT_RUNS: Final = ("-c", "--exec-path", "--config-env", "--upload-pack", "--receive-pack", "--ext-diff", "--textconv")
_VERSION: Final = re.compile(r"[-.]?\d+(?:\.\d+)*$")
_SUFFIXES: Final = (".exe", ".bat", ".cmd", ".com", ".sh", ".py")


def program_name(program: str) -> str:
    """What a program is called: `/usr/bin/Python3.11` is `python`, `mkfs.ext4` is `mkfs`."""
    name = PurePath(program.replace("\\", "/")).name.strip().lower()
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    name = "mkfs" if name.startswith("mkfs") else name
    known = HIGH | MEDIUM | {"git", "find"}
    return name if name in known else _VERSION.sub("", name)


def command_risk(argv: Sequence[str], resolved: str = "") -> Risk:
    """The risk of a command; `resolved` is where the program's links lead, when that is known, and counts as well."""
    names = {program_name(argv[0])} | ({program_name(resolved)} if resolved else set())
    if program_name(argv[0]) not in _MULTI_CALL:
        names -= _MULTI_CALL  # such a program does what the link that it was called by is named for
    return max((_risk(name, argv[1:]) for name in names), key=list(Risk).index)


def _risk(name: str, arguments: Sequence[str]) -> Risk:
    if name in HIGH or (name in _INLINE_CODE and _takes_code(name, arguments)):
        return Risk.HIGH
    if name == "find":
        return Risk.HIGH if _FIND_ACTS.intersection(arguments) else Risk.LOW
    if name == "git":
        return _git(arguments)
    return Risk.MEDIUM if name in MEDIUM else Risk.LOW


def _takes_code(name: str, arguments: Sequence[str]) -> bool:
    letters = _INLINE_CODE[name]
    for argument in arguments:
        if argument.startswith(_LONG_CODE):
            return True
        if argument.startswith("-") and not argument.startswith("--") and letters.intersection(argument[1:]):
            return True
    return False


def _git(arguments: Sequence[str]) -> Risk:
    """Reading verbs are low; what can name a program to run is high; the rest changes something."""
    if any(argument.startswith(_GIT_RUNS) for argument in arguments):
        return Risk.HIGH
    verb = next((argument for argument in arguments if not argument.startswith("-")), "")
    writes = any(argument.startswith(("--output", "-o")) for argument in arguments)
    return Risk.LOW if verb in _GIT_READS and not writes else Risk.MEDIUM
