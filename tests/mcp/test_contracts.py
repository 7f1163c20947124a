import json
import os
from pathlib import Path
from typing import Any

import pytest
from mcp_host import ERAS, connected, desk, text_of

from procedo.surfaces.mcp.contracts import CONTRACTS, INSTRUCTIONS
from procedo.surfaces.mcp.server import build_server
from procedo.surfaces.shapes import CatalogueView, DescribeView, RunView

pytestmark = pytest.mark.anyio
SNAPSHOTS = Path(__file__).parent / "snapshots"
NAMES = [contract.name for contract in CONTRACTS]


async def advertised(folder: Path, era: str) -> list[dict[str, object]]:
    async with desk(folder, era) as at, at.host() as host:
        listed = await host.client.list_tools()
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]


@pytest.mark.parametrize("era", ERAS)
async def test_there_are_exactly_eight_tools_in_a_fixed_order(tmp_path: Path, era: str) -> None:
    tools = await advertised(tmp_path, era)
    assert [tool["name"] for tool in tools] == [
        "sop_list",
        "sop_describe",
        "sop_start",
        "sop_advance",
        "sop_approve",
        "sop_resume",
        "sop_status",
        "sop_cancel",
    ]


@pytest.mark.parametrize("name", NAMES)
async def test_a_tool_is_advertised_as_its_snapshot_says(tmp_path: Path, name: str) -> None:
    """`PROCEDO_WRITE_SNAPSHOTS=1` writes the files anew; the difference is to be reviewed."""
    (tool,) = [tool for tool in await advertised(tmp_path, "auto") if tool["name"] == name]
    file = SNAPSHOTS / f"{name}.json"
    if os.environ.get("PROCEDO_WRITE_SNAPSHOTS"):
        file.write_text(json.dumps(tool, indent=2) + "\n", encoding="utf-8")
    assert tool == json.loads(file.read_text(encoding="utf-8"))


def test_no_snapshot_is_left_over() -> None:
    assert sorted(file.stem for file in SNAPSHOTS.iterdir()) == sorted(NAMES)


async def test_the_whole_list_costs_a_host_at_most_2500_tokens(tmp_path: Path) -> None:
    assert len(json.dumps(await advertised(tmp_path, "auto"))) / 4 <= 2500


def typed(schema: Any) -> bool:
    return "type" in schema or all(isinstance(branch.get("type"), str) for branch in schema["anyOf"])


async def test_no_argument_is_left_without_a_type_for_clients_that_refuse_such_schemas(tmp_path: Path) -> None:
    free = dict[str, list[str]]()
    tools: list[Any] = list(await advertised(tmp_path, "auto"))
    for tool in tools:
        arguments = tool["inputSchema"]["properties"]
        assert all(typed(schema) for schema in arguments.values()), tool
        open_ones = {name: schema["anyOf"] for name, schema in arguments.items() if "anyOf" in schema}
        free |= {name: [branch["type"] for branch in branches] for name, branches in open_ones.items()}
    every = ["object", "array", "string", "number", "boolean", "null"]
    assert free == {"inputs": every, "output": every, "value": every}


async def test_every_tool_states_all_four_hints(tmp_path: Path) -> None:
    for tool in await advertised(tmp_path, "auto"):
        annotations = tool["annotations"]
        assert isinstance(annotations, dict)
        assert sorted(annotations) == ["destructiveHint", "idempotentHint", "openWorldHint", "readOnlyHint"]


def test_the_instructions_fit_in_ten_lines() -> None:
    assert len(INSTRUCTIONS.splitlines()) <= 10


async def test_no_word_of_a_procedure_enters_what_is_advertised(tmp_path: Path) -> None:
    evil = {
        "SOP.toml": '[sop]\nname = "evil-xyzzy"\ndescription = "xyzzy"\n',
        "SOP.md": "## Steps\n\n1. **xyzzy** — xyzzy\n",
    }
    async with desk(tmp_path, sops={"evil-xyzzy": evil}) as at, at.host() as host:
        listed = await host.client.list_tools()
        assert "xyzzy" not in listed.model_dump_json()
        assert "xyzzy" not in (host.client.instructions or "")
        assert "xyzzy" in text_of(await host.result("sop_list"))


@pytest.mark.parametrize(
    ("tool", "view"), [("sop_start", RunView), ("sop_list", CatalogueView), ("sop_describe", DescribeView)]
)
def test_a_published_schema_speaks_of_real_keys_only(tool: str, view: type) -> None:
    (contract,) = [c for c in CONTRACTS if c.name == tool]
    known = view.__annotations__.keys()
    assert set(contract.output["properties"]) <= known
    assert set(contract.output["required"]) <= view.__required_keys__  # type: ignore[attr-defined]  # each is a TypedDict


async def test_a_server_needs_no_request_to_be_built_twice(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        first, second = build_server(at.app), build_server(at.app)
        async with connected(first, "auto") as one, connected(second, "legacy") as two:
            assert (await one.client.list_tools()).tools == (await two.client.list_tools()).tools
