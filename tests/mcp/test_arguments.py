from pathlib import Path
from typing import Any

import pytest
from mcp_host import ERAS, desk, only

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]

TYPED = {
    "SOP.toml": """
[sop]
name = "typed"
description = "Takes a weight"
execution_mode = "auto"

[inputs]
type = "object"
required = ["weight"]

[inputs.properties.weight]
type = "number"
""",
    "SOP.md": "## Steps\n\n1. **Weigh** — Weigh it.\n",
}


@pytest.mark.parametrize(
    "tool",
    ["sop_list", "sop_describe", "sop_start", "sop_advance", "sop_approve", "sop_resume", "sop_status", "sop_cancel"],
)
async def test_an_unknown_argument_is_an_error_that_names_it(tmp_path: Path, era: str, tool: str) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        assert "unknown argument 'colour'" in await host.refused(tool, colour="red")


async def test_a_misspelt_argument_is_answered_with_the_right_name(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        assert await host.refused("sop_status", runid="run-1") == (
            "[bad_argument] unknown argument 'runid' (did you mean 'run_id'?). "
            "sop_status takes: run_id, sop, wait_s. Nothing was done."
        )


@pytest.mark.requirement("C15", "C48", "C62")
@pytest.mark.parametrize(
    ("tool", "arguments", "missing"),
    [
        ("sop_start", {}, "name is missing"),
        ("sop_advance", {"run_id": "run-1", "status": "completed"}, "execution_id is missing"),
        ("sop_advance", {"execution_id": "1.1", "status": "completed"}, "run_id is missing"),
        ("sop_resume", {}, "run_id is missing"),
        ("sop_cancel", {"reason": "no"}, "run_id is missing"),
        ("sop_approve", {}, "gate_id is missing"),
    ],
)
async def test_what_a_call_is_about_has_to_be_named(
    tmp_path: Path, era: str, tool: str, arguments: dict[str, Any], missing: str
) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        await host.call("sop_start", name="plain")
        assert missing in await host.refused(tool, **arguments)


async def test_a_wait_beyond_the_limit_is_an_error_that_names_it(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        run = await host.call("sop_start", name="plain", wait_s=45)
        assert "less than or equal to 45" in await host.refused("sop_status", run_id=run["run_id"], wait_s=46)


@pytest.mark.requirement("C65")
async def test_an_unknown_status_word_is_answered_with_the_three_that_exist(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        run = await host.call("sop_start", name="plain")
        text = await host.refused("sop_advance", run_id=run["run_id"], execution_id="1.1", status="done")
        assert "'completed', 'failed' or 'skipped'" in text


@pytest.mark.requirement("C49")
@pytest.mark.parametrize(
    "value", [{"a": 1}, [1, {"b": None}], 5, 2.5, True, "a text", '{"a":1}', "[1]", "5", "null", "true", "", None]
)
async def test_inputs_of_every_json_type_reach_the_step_as_given(tmp_path: Path, era: str, value: Any) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        run = await host.call("sop_start", name="plain", inputs=value)
        shown = only(run)["context"]["inputs"]
        assert shown == value
        assert type(shown) is type(value)


@pytest.mark.requirement("C49")
@pytest.mark.parametrize("value", [{"a": 1}, [1], 5, "a text", '{"a":1}', "5", "null"])
async def test_an_output_of_every_json_type_reaches_the_next_step_as_given(
    tmp_path: Path, era: str, value: Any
) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        run = await host.call("sop_start", name="plain")
        run = await host.call("sop_advance", run_id=run["run_id"], execution_id="1.1", status="completed", output=value)
        shown = only(run)["context"]["input"]
        assert shown == value
        assert type(shown) is type(value)


async def test_an_object_sent_as_its_text_is_read_where_the_schema_takes_only_the_object(
    tmp_path: Path, era: str
) -> None:
    async with desk(tmp_path, era, sops={"typed": TYPED}) as at, at.host() as host:
        run = await host.call("sop_start", name="typed", inputs='{"weight": 3}')
        assert only(run)["context"]["inputs"] == {"weight": 3}
    refused = tmp_path / "again"
    refused.mkdir()
    async with desk(refused, era, sops={"typed": TYPED}) as at, at.host() as host:
        assert "weight" in await host.refused("sop_start", name="typed", inputs='{"weight": "heavy"}')
        assert (await host.call("sop_status"))["runs"] == []


@pytest.mark.requirement("C55", "C62")
async def test_unknown_names_and_ids_are_errors_with_near_names(tmp_path: Path, era: str) -> None:
    async with desk(tmp_path, era) as at, at.host() as host:
        for call in (
            host.refused("sop_start", name="kilnfiring"),
            host.refused("sop_describe", name="kilnfiring"),
            host.refused("sop_list", name="kilnfiring"),
            host.refused("sop_status", sop="kilnfiring"),
        ):
            text = await call
            assert text.startswith("[unknown_sop]")
            assert "kiln-firing" in text
        for call in (
            host.refused("sop_status", run_id="run-nobody"),
            host.refused("sop_resume", run_id="run-nobody"),
            host.refused("sop_cancel", run_id="run-nobody", reason="x"),
            host.refused("sop_advance", run_id="run-nobody", execution_id="1.1", status="completed"),
        ):
            assert "run-nobody" in await call
        assert "QQQQQQ" in await host.refused("sop_approve", gate_id="QQQQQQ")


@pytest.mark.requirement("C50")
async def test_the_list_is_filtered_by_the_field_that_is_named(tmp_path: Path, era: str) -> None:
    def sop(name: str, priority: str) -> dict[str, str]:
        header = f'[sop]\nname = "{name}"\ndescription = "d"\npriority = "{priority}"\n'
        return {"SOP.toml": header, "SOP.md": "## Steps\n\n1. **One** — Do it.\n"}

    sops = {"workflow-cleanup": sop("workflow-cleanup", "high"), "pump-check": sop("pump-check", "low")}
    async with desk(tmp_path, era, sops=sops) as at, at.host() as host:
        listed = await host.call("sop_list", priority="low")
        assert [entry["name"] for entry in listed["sops"]] == ["pump-check"]
        listed = await host.call("sop_list", name="workflow-cleanup")
        assert [entry["name"] for entry in listed["sops"]] == ["workflow-cleanup"]
        assert len((await host.call("sop_list"))["sops"]) == 2
