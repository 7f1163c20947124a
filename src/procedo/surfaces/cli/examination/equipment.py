"""What agents need beside the record: keys, programs, a sandbox. Nothing secret is shown."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from procedo.credentials import Missing, SecretRef, resolve
from procedo.surfaces.cli.examination.finding import OK, PROBLEM, WARNING, Finding

if TYPE_CHECKING:
    from procedo.config import Settings

__all__ = ["files", "keys", "programs", "sandbox"]


def keys(settings: "Settings", environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether there is a value behind each reference to a credential."""
    for (what, reference), about in _references(settings).items():
        try:
            resolve(reference, environ, settings.root)
        except Missing as error:
            hint = f"{what} is refused without it. A server that a host starts has that host's variables, not yours."
            yield Finding(about, PROBLEM, f"{what}: {error}", hint)
        else:
            yield Finding(about, OK, f"{what}: there is a value behind {reference}")


def _references(settings: "Settings") -> Mapping[tuple[str, SecretRef], str]:
    known = settings.agents
    found: dict[tuple[str, SecretRef], str] = {}
    for name, provider in known.providers.items():
        if provider.key is not None:
            found[(f"provider {name!r}", provider.key)] = "keys"
    for name, server in known.servers.items():
        for value in (*server.env.values(), *server.headers.values()):
            if isinstance(value, SecretRef):
                found[(f"MCP server {name!r}", value)] = "keys"
    return found


def files(settings: "Settings") -> Iterator[Finding]:
    """Whether the folders, instructions and scripts that agents are made of are there and can be read."""
    from procedo.agents.models.scripted import read_script

    known = settings.agents
    hint = "An agent without it is refused at its step."
    for agent in known.agents.values():
        if not agent.workspace.is_dir():
            yield Finding(
                "agents", PROBLEM, f"agent {agent.alias!r}: its workspace {agent.workspace} is no folder", hint
            )
        if agent.instructions_file is not None and not agent.instructions_file.is_file():
            what = f"agent {agent.alias!r}: its instructions {agent.instructions_file} are not there"
            yield Finding("agents", PROBLEM, what, hint)
    for name, provider in known.providers.items():
        if provider.script is not None:
            try:
                read_script(provider.script)
            except ValueError as error:
                yield Finding("agents", PROBLEM, f"provider {name!r}: {error}", hint)


def sandbox(settings: "Settings") -> Iterator[Finding]:
    """Whether the sandbox that profiles ask for really works here."""
    from procedo.agents.parts import Sandbox
    from procedo.agents.sandbox import probe

    users = [name for name, risk in settings.agents.risks.items() if risk.sandbox == Sandbox.BUBBLEWRAP]
    if not users:
        return
    why = probe(Sandbox.BUBBLEWRAP)
    if why is None:
        yield Finding("sandbox", OK, f"bubblewrap encloses programs (profiles {', '.join(users)})")
    else:
        hint = "Agents of these profiles are refused the tool `shell`; their other tools work."
        yield Finding("sandbox", WARNING, f"{why} (profiles {', '.join(users)})", hint)


def programs(settings: "Settings", environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the programs that may be run are there."""
    lists: list[tuple[str, frozenset[str] | tuple[str, ...]]] = [
        (f"risk profile {name!r}", risk.allowed_commands) for name, risk in settings.agents.risks.items()
    ]
    if settings.capabilities.shell.enabled:
        lists.append(("shell.exec", settings.capabilities.shell.allowed_commands))
    path = environ.get("PATH", "")
    for owner, commands in lists:
        absent = sorted(name for name in commands if _is_name(name) and which(name, path=path) is None)
        if absent:
            hint = "Install them, or take them off allowed_commands."
            yield Finding("programs", WARNING, f"{owner} allows what is not here: {', '.join(absent)}", hint)
        elif commands:
            yield Finding("programs", OK, f"{owner}: every allowed program is here")


def _is_name(command: str) -> bool:
    return "*" not in command and (Path(command).name == command or Path(command).is_absolute())
