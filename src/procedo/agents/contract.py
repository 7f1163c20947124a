"""The contract: everything an agent needs and may do for one execution, assembled once and frozen.

Only `Registry.assemble` builds one: the constructor wants a seal that only the registry holds, so a
contract in hand is the proof that every check was made. It holds no secret, only where secrets lie,
so it can be recorded whole; its digest is what a resumed session is compared with.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from enum import Enum
from pathlib import Path

from msgspec import Struct, structs

from procedo.agents.parts import (
    Actor,
    ApprovalManager,
    McpScope,
    ProviderBinding,
    RuntimeControls,
    SecurityPolicy,
    Tool,
    ToolId,
    TranscriptSeed,
)
from procedo.agents.seal import SEAL, Seal
from procedo.core.model import Json
from procedo.core.outputs import canonical, digest
from procedo.credentials import SecretRef
from procedo.hosts import HostPattern

__all__ = ["Contract", "difference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What one agent may do for one execution. No part is optional; an absent one is an explicit denial.

    `runner` is the kind of runner that carries it out (see `runners`); `controls` the names of the
    controls that it needs. `digest` covers every part. Raises `TypeError` when anything but the
    registry tries to build one.
    """

    tools: tuple[Tool, ...]
    security: SecurityPolicy
    mcp: McpScope
    provider: ProviderBinding
    runtime: RuntimeControls
    approvals: ApprovalManager
    seed: TranscriptSeed
    actor: Actor
    runner: str
    controls: tuple[str, ...]
    digest: str = field(init=False)
    _by_name: Mapping[str, Tool] = field(init=False, compare=False, repr=False)
    _by_id: Mapping[ToolId, Tool] = field(init=False, compare=False, repr=False)
    seal: InitVar[Seal]

    def __post_init__(self, seal: Seal) -> None:
        if seal is not SEAL:
            raise TypeError("only the registry of agents builds a contract")
        object.__setattr__(self, "_by_name", {tool.offered: tool for tool in self.tools})
        object.__setattr__(self, "_by_id", {tool.id: tool for tool in self.tools})
        object.__setattr__(self, "digest", digest(self.record()))

    def tool(self, offered: str) -> Tool | None:
        """The tool with exactly this offered name; nothing is guessed."""
        return self._by_name.get(offered)

    def holds(self, identity: ToolId) -> bool:
        """True when exactly this tool, with this schema, is in the frozen set."""
        return identity in self._by_id

    def identified(self, identity: ToolId) -> Tool | None:
        """The tool with this identity, its schema included."""
        return self._by_id.get(identity)

    def record(self) -> Json:
        """The whole contract as JSON, by part; secrets are references. What the digest covers."""
        return {part.name: _plain(getattr(self, part.name)) for part in _parts()}


def _parts() -> tuple["dataclasses.Field[object]", ...]:
    return tuple(part for part in dataclasses.fields(Contract) if part.init)


def _plain(value: object) -> Json:  # noqa: PLR0911  # one line for each kind of value
    if value is None or isinstance(value, bool | int | float) or type(value) is str:
        return value
    if isinstance(value, SecretRef):
        return value.record()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path | Decimal | HostPattern):
        return str(value)
    if isinstance(value, Struct):
        return {name: _plain(part) for name, part in structs.asdict(value).items()}
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    raise TypeError(f"a contract holds no {type(value).__name__}")


def difference(recorded: Json, present: Json) -> tuple[str, ...]:
    """Where two recorded contracts differ, as sentences: `provider.model: was "a", is "b"`."""
    return tuple(_differences("", recorded, present))


def _differences(path: str, was: Json, now: Json) -> list[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        found: list[str] = []
        for key in sorted({*was, *now}):
            here = f"{path}.{key}" if path else key
            found += _differences(here, was.get(key), now.get(key))
        return found
    if canonical(was) == canonical(now):
        return []
    if isinstance(was, list) and isinstance(now, list):
        known, present = [canonical(item) for item in was], [canonical(item) for item in now]
        gone = [_named(item) for item, text in zip(was, known, strict=True) if text not in present]
        new = [_named(item) for item, text in zip(now, present, strict=True) if text not in known]
        changed = [name for name in gone if name in new]
        kinds = {
            "gone": [name for name in gone if name not in changed],
            "new": [name for name in new if name not in changed],
            "changed": changed,
        }
        told = [f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names]
        return [f"{path}: {'; '.join(told) or 'the order changed'}"]
    return [f"{path}: was {_short(canonical(was))}, is {_short(canonical(now))}"]


def _named(item: Json) -> str:
    """A tool by the name that it is offered under, a server by its own; anything else as it is."""
    name = item.get("offered", item.get("name")) if isinstance(item, dict) else None
    return name if isinstance(name, str) else _short(canonical(item))


def _short(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:157]}..."
