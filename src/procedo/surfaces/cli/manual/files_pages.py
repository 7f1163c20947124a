"""The pages about files: procedures, `procedo.toml`, capabilities, and everything that can be wrong with them."""

from collections.abc import Iterator
from typing import Final

from procedo.agents.parts import Effect
from procedo.agents.tools.catalogue import TOOLS
from procedo.capabilities.registry import built_in
from procedo.config.capability_settings import CapabilitySettings
from procedo.config.keys import KEYS, shown_default
from procedo.config.problem_codes import CONFIG_CODES
from procedo.core.model import Json
from procedo.sopfile.manual import fields
from procedo.sopfile.problems import CODES
from procedo.sopfile.remedies import REMEDIES
from procedo.surfaces.cli.manual.markdown import code, page, table

__all__ = ["capabilities_page", "checks_page", "config_page", "procedures_page"]


def procedures_page() -> str:
    """Every key of `SOP.toml`, every field and bullet of a step, every trigger."""
    return page(
        "Reference: the files of a procedure",
        "Every key of `SOP.toml`, every field of a step with its bullet in `SOP.md`, and every trigger. How they are "
        "used is told in [procedures](../procedures.md); what can be wrong with them in [checks](checks.md).",
        fields(),
    )


def config_page() -> str:
    """Every key of `procedo.toml`, by table."""
    blocks: list[str] = []
    for name in dict.fromkeys(key.table for key in KEYS):
        listed = name.endswith("[]")
        blocks.append(f"## `[[{name.removesuffix('[]')}]]`" if listed else f"## `[{name}]`")
        rows = [(code(key.name), key.form.words, shown_default(key), key.meaning) for key in KEYS if key.table == name]
        blocks.append(table(("key", "value", "default", "meaning"), rows))
    return page(
        "Reference: procedo.toml",
        "Every key of the settings file of a workspace, by table. `<…>` stands for a name that you choose, `[[…]]` for "
        "a table that may stand several times. The file is optional: without it every default holds. What can be wrong "
        "with it is told in [checks](checks.md#procedotoml).",
        *blocks,
    )


def checks_page() -> str:
    """Every problem code, with an example and a remedy."""
    rows = (
        (code(name), CODES[name].severity, CODES[name].meaning, _example(name), REMEDIES[name].remedy) for name in CODES
    )
    config = ((code(name), row.meaning, code(row.example), row.remedy) for name, row in CONFIG_CODES.items())
    return page(
        "Reference: what `procedo check` reports",
        "Every problem code: what it means, the smallest example that has it, and what to do. An error keeps a "
        "procedure from being started, a warning (with `--strict`, too) and a note do not.",
        "## Procedures",
        table(("code", "severity", "meaning", "example", "remedy"), rows),
        "## procedo.toml",
        "Each one is an error: with a broken `procedo.toml` nothing starts.",
        table(("code", "meaning", "example", "remedy"), config),
    )


def _example(name: str) -> str:
    remedy = REMEDIES[name]
    if remedy.place == "files":
        return remedy.example
    bullets = remedy.place == "bullets"
    lines = (f"- {line}" if bullets and not line.startswith(" ") else line for line in remedy.example.splitlines())
    return code("\n".join(lines))


def capabilities_page() -> str:
    """Every built-in capability, and every built-in tool of agents, with what it takes and gives."""
    here = CapabilitySettings.off()
    blocks: list[str] = []
    for one in built_in(here, {}).all():
        kind = "Has no effect outside." if one.pure else "Acts outside."
        off = "" if one.objection is None else f" Off until `procedo.toml` allows it: {one.objection}"
        blocks += [f"### `{one.id}`", f"{one.description} {kind}{off}"]
        for what, schema in (("takes", one.input_schema), ("gives", one.output_schema)):
            blocks.append(table((what, "value", "meaning"), _properties(schema)))
    blocks += [
        "## Tools of agents",
        "What an agent's risk profile can allow besides the tools of MCP servers (`server__tool`). Each one stays "
        "within the agent's folders, programs and hosts. After a crash a reading or repeatable one is done again; "
        "about one that acts a person is asked.",
    ]
    for name, (effect, description, schema) in TOOLS.items():
        blocks += [f"### `{name}`", f"{description} {_EFFECTS[effect]}", table(_TAKES, _properties(schema))]
    return page(
        "Reference: capabilities and tools",
        "Work that the server does itself, and the built-in tools that agents can have. How they are allowed is told "
        "in [procedures](../procedures.md#work-that-the-server-does-itself) and [agents](../agents.md).",
        "## Capabilities",
        "For steps with `capability: …` and `with: {…}`, and for `verify`. The value that is piped into the step comes "
        "in as `input` where `with` does not set it.",
        *blocks,
    )


_TAKES: Final = ("takes", "value", "meaning")
_EFFECTS: Final = {
    Effect.READ_ONLY: "Only reads.",
    Effect.IDEMPOTENT: "Repeatable.",
    Effect.ACTING: "Acts.",
}


def _properties(schema: Json) -> Iterator[tuple[str, ...]]:
    if not isinstance(schema, dict) or "properties" not in schema:
        yield ("any value", "JSON", "")
        return
    required = schema.get("required", [])
    for name, about in schema["properties"].items():
        mark = " (required)" if name in required else ""
        words = about if isinstance(about, dict) else {}
        yield (code(name) + mark, _kind(words), str(words.get("description", "")))


def _kind(about: Json) -> str:
    if "enum" in about:
        return ", ".join(map(str, about["enum"]))
    kind = about.get("type", "JSON")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
