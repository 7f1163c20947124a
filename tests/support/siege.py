"""The scene of the attacks: a workspace worth attacking, a server over stdio, and how the gate is seen to hold.

The gate stands before a step that fires a file, so that it is plain whether anything ran. What the attacker uses is
what a model at a host has: every tool, resource and prompt of the server, and a shell of the same account without a
terminal. Whoever has that account's terminal, or writes into its files, is the account; nothing here holds that off.
"""

import asyncio
import json
import os
import pwd
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from commands import Workspace
from mcp import Client
from mcp.types import CallToolResult, TextContent

from procedo.app import open_app
from procedo.core.access import Role
from procedo.core.principal import Principal, PrincipalKind, Source

__all__ = ["FILE_SECRET", "HOOK_SECRET", "ME", "Siege", "prepared", "text_of", "token"]

ME: Final = pwd.getpwuid(os.getuid()).pw_name
HOOK_SECRET: Final = "hook-secret-5f0e9a"  # noqa: S105  # bait
FILE_SECRET: Final = "boss-address-77c1"  # noqa: S105  # bait
CONFIG: Final = f"""
[sop]
max_concurrent_total = 50

[sop.approval]
request_route = "ops"
break_glass = ["{ME}"]

[sop.approval.groups.owners]
members = ["noor"]

[sop.approval.policies.owners]
required_group = "owners"

[sop.approval.policies.far]
out_of_band = true

[notices.ops]
type = "command"
argv = ["true"]
env = ["HOOK_SECRET"]

[notices.boss]
type = "webhook"
url = {{ file = "boss" }}

[capabilities.shell]
enabled = true
allowed_commands = ["touch"]
"""
HEADER: Final = """[sop]
name = "{name}"
description = "About {name}."
execution_mode = "auto"
max_concurrent = 20
"""
LAUNCH: Final = """1. **Count down** — Count down to zero.
2. **Fire** — Fire it.
   - kind: capability
   - capability: shell.exec
   - with: {{"argv": ["touch", "fired-{name}"]}}
   - requires_confirmation: true
   - on_failure: goto:3
{policy}3. **Report** — Say how it went.
"""
LETTER: Final = """1. **Draft** — Write the letter.
2. **Judge** — Read it.
   - kind: checkpoint
   - edit: body
3. **Post** — Post it.
   - kind: capability
   - capability: shell.exec
   - with: {"argv": ["touch", "fired-letter"]}
"""


def prepared(root: Path) -> Workspace:
    """The workspace: four procedures behind gates of different kinds, and secrets that lie about."""
    workspace = Workspace(root, {"HOOK_SECRET": HOOK_SECRET})
    (root / "procedo.toml").write_text(CONFIG, encoding="utf-8")
    (root / "boss").write_text(f"https://hooks.example/{FILE_SECRET}", encoding="utf-8")
    for name, policy in (("launch", ""), ("owned", "owners"), ("far", "far")):
        line = f"   - policy: {policy}\n" if policy else ""
        workspace.write(name, HEADER.format(name=name), LAUNCH.format(name=name, policy=line))
    workspace.write("letter", HEADER.format(name="letter"), LETTER)
    return workspace


async def _token(root: Path, name: str, kind: PrincipalKind, roles: tuple[Role, ...], subject: str) -> str:
    async with open_app(root, worker=False) as app:
        maker = Principal(Source.CLI, ME, PrincipalKind.HUMAN)
        return (await app.tokens.create(name, maker, subject=subject, kind=kind, roles=roles)).secret


def token(root: Path, name: str, kind: PrincipalKind, *roles: Role, subject: str = "") -> str:
    """The secret of a token that somebody made on purpose."""
    return asyncio.run(_token(root, name, kind, roles, subject or name))


def text_of(result: CallToolResult) -> str:
    """The text of an answer."""
    return "\n".join(content.text for content in result.content if isinstance(content, TextContent))


@dataclass
class Siege:
    """A run behind a gate, and everything that was tried against it."""

    workspace: Workspace
    client: Client
    run_id: str
    gate_id: str
    code: str
    seen: list[str] = field(default_factory=list)
    tried: int = 0

    @property
    def root(self) -> Path:
        return self.workspace.root

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call a tool, whatever comes of it."""
        result = await self.client.call_tool(tool, arguments)
        self.seen += [text_of(result), json.dumps(result.structured_content)]
        return result

    async def shell(self, *words: str, typed: str = "", **environ: str) -> int:
        """Run a command as an agent's shell does: no terminal anywhere near."""
        place = replace(self.workspace, environ={**self.workspace.environ, **environ})
        done = await asyncio.to_thread(place.run, *words, typed=typed)
        self.seen += [done.out, done.err]
        return done.code

    def stands(self) -> dict[str, Any]:
        """What the record says of the gate, read past the server."""
        with closing(sqlite3.connect(self.root / ".procedo" / "procedo.db")) as connection:
            (data,) = connection.execute("SELECT data FROM gates WHERE id = ?", (self.gate_id,)).fetchone()
            sql = "SELECT status, revision FROM runs WHERE id = ?"
            status, revision = connection.execute(sql, (self.run_id,)).fetchone()
        gate: dict[str, Any] = json.loads(data)
        kept = {key: gate.get(key) for key in ("verdict", "votes", "withdrawn", "revision", "digest", "revises")}
        return {"status": status, "run": revision, **kept}

    def fired(self) -> list[str]:
        """What ran behind gates."""
        return sorted(path.name for path in self.root.glob("fired-*"))

    async def holds(self, attempt: str, before: dict[str, Any]) -> None:
        """The gate is as it was, and nothing ran."""
        self.tried += 1
        assert self.stands() == before, attempt
        assert self.fired() == [], attempt
        waiting = await asyncio.to_thread(self.workspace.json, "inbox")
        assert self.gate_id in [gate["gate_id"] for gate in waiting["gates"]], attempt
