import copy
import dataclasses
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_workspace import assemble, toml, workspace
from msgspec import Struct, structs

from procedo.agents import parts
from procedo.agents.contract import Contract, difference
from procedo.agents.seal import Seal
from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.core.outputs import digest

pytestmark = pytest.mark.anyio

# What a session may rely on. A field that is added to a contract or to one of its parts has to be
# added here together with a test of what it does.
FIELDS: Mapping[type, set[str]] = {
    Contract: {
        "tools", "security", "mcp", "provider", "runtime", "approvals", "seed", "actor", "runner", "controls",
        "digest", "_by_name", "_by_id",
    },
    parts.Tool: {"id", "offered", "description", "input_schema", "effect", "time_limit_s", "repeats"},
    parts.ToolId: {"origin", "server", "name", "schema"},
    parts.SecurityPolicy: {
        "level", "roots", "forbidden", "protected", "commands", "block_high_risk", "ask_medium_risk", "hosts",
        "environment", "sandbox", "shell_timeout_s", "http_timeout_s", "max_bytes", "actions_per_hour",
    },
    parts.Root: {"path", "writable"},
    parts.McpScope: {"servers", "excluded"},
    parts.ServerBinding: {
        "name", "transport", "command", "args", "env", "url", "headers", "required", "connect_timeout_s",
        "tool_timeout_s", "pins",
    },
    parts.Pin: {"name", "digest"},
    parts.ProviderBinding: {
        "type", "alias", "model", "endpoint", "credential", "temperature", "max_output_tokens", "tool_mode",
        "timeout_s", "prices", "script", "script_digest",
    },
    parts.Prices: {"input_usd", "output_usd"},
    parts.RuntimeControls: {
        "iterations", "result_chars", "context_tokens", "history_messages", "total_tokens", "cost_usd",
        "cost_usd_per_day", "run_tokens", "run_cost_usd", "wall_time_s",
        "parallel_calls", "dedup_exempt", "filter_groups", "output_retries",
        "on_interrupted", "max_depth",
    },
    parts.FilterGroup: {"mode", "tools", "keywords"},
    parts.ApprovalManager: {"level", "auto", "always_ask", "askable", "route", "policy", "timeout_s"},
    parts.TranscriptSeed: {"instructions", "context", "output_schema"},
    parts.Actor: {"acting", "delegating", "root", "run", "execution", "depth", "lineage"},
}  # fmt: skip


NOTHING = {dataclasses.MISSING, msgspec.NODEFAULT}


def fields(kind: Any) -> tuple[Any, ...]:
    return structs.fields(kind) if issubclass(kind, Struct) else dataclasses.fields(kind)


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
@pytest.mark.requirement("one-constructor")
def test_every_field_of_a_contract_is_known_to_the_tests(kind: Any) -> None:
    assert {field.name for field in fields(kind)} == FIELDS[kind]


def test_every_part_of_a_contract_is_in_the_list() -> None:
    own = [kind for kind in vars(parts).values() if isinstance(kind, type) and kind.__module__ == parts.__name__]
    kinds = {kind for kind in own if issubclass(kind, Struct)}
    assert kinds | {Contract} == set(FIELDS)


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_no_part_has_a_default(kind: Any) -> None:
    init = [field for field in fields(kind) if getattr(field, "init", True)]
    assert [field.name for field in init if {field.default, field.default_factory} - NOTHING] == []


def arguments(contract: Contract) -> dict[str, Any]:
    return {field.name: getattr(contract, field.name) for field in dataclasses.fields(contract) if field.init}


@pytest.mark.requirement("one-constructor")
async def test_nothing_but_the_registry_builds_one(tmp_path: Path) -> None:
    contract = await assemble(workspace(tmp_path))
    for seal in (None, object(), Seal()):
        with pytest.raises(TypeError, match="only the registry"):
            Contract(**arguments(contract), seal=seal)  # type: ignore[arg-type]  # a forged seal is the point
    with pytest.raises((TypeError, ValueError)):
        dataclasses.replace(contract, runner="remote")  # type: ignore[call-arg]  # it has no seal to give
    assert copy.copy(contract) == contract


async def test_a_contract_does_not_change(tmp_path: Path) -> None:
    contract = await assemble(workspace(tmp_path))
    with pytest.raises(dataclasses.FrozenInstanceError):
        contract.runner = "remote"  # type: ignore[misc]  # that it fails is the point
    for part in (contract.security, contract.provider, contract.actor, contract.approvals):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(part, fields(type(part))[0].name, None)


async def test_the_digest_covers_every_part(tmp_path: Path) -> None:
    contract = await assemble(workspace(tmp_path))
    record = contract.record()
    assert set(record) == FIELDS[Contract] - {"digest", "_by_name", "_by_id"}
    assert digest(record) == contract.digest
    for part in record:
        assert digest({**record, part: "changed"}) != contract.digest


def leaves(value: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, key))]
    return [path]


async def test_a_change_of_any_leaf_is_told(tmp_path: Path) -> None:
    record = (await assemble(workspace(tmp_path))).record()
    places = leaves(record)
    assert len(places) > 40
    for path in places:
        changed = copy.deepcopy(record)
        inner = changed
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = "something else"
        assert [line.partition(":")[0] for line in difference(record, changed)] == [".".join(map(str, path))]
    assert difference(record, record) == ()


async def test_money_is_exact_in_the_record(tmp_path: Path) -> None:
    contract = await assemble(workspace(tmp_path, toml(runtime="max_cost_per_step_cents = 0.1")))
    assert contract.runtime.cost_usd == Decimal("0.001")
    assert contract.record()["runtime"]["cost_usd"] == "0.001"


async def test_a_tool_is_found_by_its_exact_name_and_its_whole_identity(tmp_path: Path) -> None:
    contract = await assemble(workspace(tmp_path))
    tool = contract.tool("file_read")
    assert tool is not None
    assert contract.holds(tool.id)
    assert not contract.holds(altered(tool.id, schema="other"))
    assert [contract.tool(name) for name in ("File_Read", "file_read_2", "read", "")] == [None] * 4


def test_a_tool_that_differs_is_told_by_its_name() -> None:
    def tools(**versions: str) -> Json:
        return {"tools": [{"offered": name, "description": text} for name, text in versions.items()]}

    was, now = tools(a="1", b="1", c="1"), tools(b="1", c="2", d="1")
    assert difference(was, now) == ("tools: gone: a; new: d; changed: c",)
