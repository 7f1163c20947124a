from pathlib import Path
from typing import Any

import pytest
from mcp_host import KILN, LETTER, PLAIN, desk

from procedo.core.model import Reveal
from procedo.core.state import Principal, PrincipalKind, Source, Verdict
from procedo.errors import InvalidSop
from procedo.runs import Surface
from procedo.surfaces.catalogue import catalogue_view, describe_view
from procedo.surfaces.overview import history_view, inbox_view, step_marks
from procedo.surfaces.prose import catalogue_text, description_text

pytestmark = pytest.mark.anyio
IDA = Surface(Principal(Source.CLI, "ida", PrincipalKind.HUMAN), host=False)
BROKEN = {"SOP.toml": '[sop]\nname = "broken"\n', "SOP.md": "## Steps\n\n1. **One** — Do it.\n"}


def kept_back(reveal: str) -> dict[str, str]:
    return {
        "SOP.toml": f'[sop]\nname = "secretive"\ndescription = "d"\nexecution_mode = "auto"\nreveal = "{reveal}"\n',
        "SOP.md": "## Steps\n\n1. **First** — Hidden words.\n   - switch: on>$.x == 1>2;off>>3\n"
        "2. **Second**\n3. **Third**\n",
    }


@pytest.mark.requirement("C34")
async def test_a_broken_procedure_stays_in_the_catalogue_with_its_problems(tmp_path: Path) -> None:
    sops = {"broken": BROKEN, "plain": PLAIN, "kiln-firing": KILN}
    async with desk(tmp_path, sops=sops) as at:
        view = catalogue_view(at.app.settings.sops_dir, at.app.library.entries(), at.app.settings)
        assert view["folder"] == str(tmp_path / "sops")
        assert [(entry["name"], entry["startable"]) for entry in view["sops"]] == [
            ("broken", False),
            ("kiln-firing", True),
            ("plain", True),
        ]
        assert "description" in view["sops"][0]["problems"][0]
        assert "broken [cannot be started]" in catalogue_text(view)
        with pytest.raises(InvalidSop) as error:
            describe_view(at.app.library.find("broken"), at.app.settings)
        assert error.value.problems


@pytest.mark.requirement("C34")
async def test_an_empty_folder_is_named_and_how_to_fill_it(tmp_path: Path) -> None:
    async with desk(tmp_path, sops={}) as at:
        view = catalogue_view(at.app.settings.sops_dir, at.app.library.entries(), at.app.settings)
        assert view["sops"] == []
        assert str(tmp_path / "sops") in catalogue_text(view)
        assert "SOP.toml" in view["note"]


async def test_a_description_is_whole(tmp_path: Path) -> None:
    async with desk(tmp_path, sops={"letter": LETTER}) as at:
        view: Any = describe_view(at.app.library.get("letter"), at.app.settings)
        assert [step["title"] for step in view["steps"]] == ["Draft", "Judge", "Send"]
        assert view["steps"][1] == {
            "number": 2,
            "title": "Judge",
            "kind": "checkpoint",
            "agent": "host",
            "gate": "checkpoint, policy human",
            "body": "Look at it.",
            "leads_to": ["3"],
        }
        assert view["max_concurrent"] == {"configured": 1, "effective": 1}
        assert view["call"] == {"tool": "sop_start", "arguments": {"name": "letter", "inputs": {}}}
        assert view["graph"].startswith("flowchart TD")


@pytest.mark.requirement("C30")
async def test_a_description_shows_the_configured_and_the_effective_limit(tmp_path: Path) -> None:
    config = "[sop]\nmax_concurrent_total = 2\n"
    async with desk(tmp_path, sops={"plain": PLAIN}, config=config) as at:
        view = describe_view(at.app.library.get("plain"), at.app.settings)
        assert view["max_concurrent"] == {"configured": 4, "effective": 2}
        assert "at once 4 (effective 2)" in description_text(view)


async def test_a_description_reveals_what_the_procedure_allows(tmp_path: Path) -> None:
    for reveal in ("all", "titles", "current"):
        folder = tmp_path / reveal
        folder.mkdir()
        async with desk(folder, sops={"secretive": kept_back(reveal)}) as at:
            entry = at.app.library.get("secretive")
            view = describe_view(entry, at.app.settings)
            text = description_text(view)
            assert ("Hidden words" in text) == (reveal == "all")
            assert ("$.x" in text) == (reveal == "all")
            listed = catalogue_text(catalogue_view(folder, [entry], at.app.settings))
            assert ("$.x" in listed) == (reveal == "all")
            assert ("Second" in text) == (reveal != "current")
            assert view["step_count"] == 3
            whole = description_text(describe_view(entry, at.app.settings, reveal=Reveal.ALL))
            assert "Hidden words" in whole
            assert "$.x" in whole


@pytest.mark.requirement("C46")
async def test_the_inbox_shows_the_question_the_data_and_who_may_answer(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host() as host:
        started = await host.call("sop_start", name="kiln-firing", inputs={"batch": 7, "password": "hunter2"})
        found = [await at.app.runs.gate(gate.gate.id) for gate in await at.app.runs.inbox(IDA)]
        (entry,) = inbox_view(found)["gates"]
        assert (entry["run_id"], entry["sop"], entry["step"], entry["title"]) == (
            started["run_id"],
            "kiln-firing",
            1,
            "Load kiln",
        )
        assert entry["asks"] == 'May step 1 "Load kiln" of kiln-firing begin?'
        assert entry["content"] == {"batch": 7, "password": "[masked]"}
        assert entry["may_decide"] == "a person (not the run's executor)"
        assert entry["revision"] == 1


async def test_a_history_lists_every_attempt_decision_and_record(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, at.host() as host:
        run_id = (await host.call("sop_start", name="kiln-firing"))["run_id"]
        (gate,) = await at.app.runs.inbox(IDA)
        await at.app.runs.decide(gate.gate.id, Verdict.APPROVE, IDA, comment="go")
        await host.call(
            "sop_advance", run_id=run_id, execution_id="1.1", status="completed", output={"token": "t-1", "n": 2}
        )
        history = await at.app.runs.history(run_id)
        view = history_view(history.snapshot, history.executions, history.gates, history.records, IDA)
        assert [(e["execution_id"], e["phase"]) for e in view["executions"]] == [("1.1", "completed"), ("2.1", "open")]
        assert view["executions"][0]["output"] == {"token": "[masked]", "n": 2}
        (decision,) = view["gates"]
        assert (decision["verdict"], decision["by"], decision["comment"]) == ("approve", "ida (human, cli)", "go")
        assert [record["kind"] for record in view["records"]][:2] == ["RunStarted", "StepVisited"]
        assert "t-1" not in str(view)
        assert step_marks(history.snapshot.run, history.executions) == {1: "done", 2: "active"}
