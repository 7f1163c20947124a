import json
from pathlib import Path

import pytest
from commands import Workspace
from host import report, waited

STEPS = "1. **Only** — Do it.\n   - terminal: true\n"


def test_a_new_procedure_loads_and_runs_to_its_gate(workspace: Workspace) -> None:
    made = workspace.json("new", "weekly-report", "--description", 'Numbers "for all"')
    folder = Path(made["folder"])
    assert made == {
        "name": "weekly-report",
        "folder": str(workspace.root / "sops" / "weekly-report"),
        "files": ["SOP.toml", "SOP.md", "tests.toml"],
    }
    assert sorted(file.name for file in folder.iterdir()) == ["SOP.md", "SOP.toml", "tests.toml"]
    checked = workspace.json("check", "weekly-report")
    assert (checked["ok"], checked["problems"]) == (True, [])
    assert workspace.json("test", "weekly-report", "--coverage", "100")["ok"]
    assert workspace.json("list")["sops"][0]["description"] == 'Numbers "for all"'
    run_id = workspace.json("start", "weekly-report", "--input", "subject=March")["run_id"]
    snapshot = report(workspace.root, run_id, "1.1", {"summary": "42 orders"})
    assert [gate.prompt for gate in snapshot.run.open_gates] == ["Carry this out? 42 orders"]


def test_nothing_is_overwritten(workspace: Workspace) -> None:
    assert workspace.run("new", "weekly-report").code == 0
    text = (workspace.root / "sops" / "weekly-report" / "SOP.md").read_text()
    done = workspace.run("new", "weekly-report", "--json")
    assert done.code == 5
    assert done.error["code"] == "exists"
    assert (workspace.root / "sops" / "weekly-report" / "SOP.md").read_text() == text


@pytest.mark.parametrize("name", ["../out", "a/b", ".hidden", "Upper", "", "a b", "-x", "x" * 65])
def test_a_name_that_is_no_plain_word_is_refused(workspace: Workspace, name: str) -> None:
    assert workspace.run("new", "--", name).code == 2
    assert list((workspace.root / "sops").iterdir()) == []


def test_where_no_workspace_was_ever_made_the_first_one_is_made_here(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    done = Workspace(tmp_path).run("new", "first", "--json", cwd=here)
    assert done.code == 0
    assert done.value["folder"] == str(here / "sops" / "first")


def found(workspace: Workspace, code: int) -> dict[str, dict[str, str]]:
    done = workspace.run("doctor", "--json")
    assert done.code == code, done.out + done.err
    return {finding["about"]: finding for finding in done.value["findings"]}


def test_the_doctor_finds_everything_in_order(kiln: Workspace) -> None:
    kiln.json("start", "kiln-firing")
    findings = found(kiln, 0)
    assert {
        about: findings[about]["state"] for about in ("workspace", "configuration", "procedures", "store", "mcp")
    } == {
        "workspace": "ok",
        "configuration": "ok",
        "procedures": "ok",
        "store": "ok",
        "mcp": "ok",
    }
    assert findings["store"]["found"].startswith("1 runs, 1 live, 1 open gates")
    assert findings["terminal"]["state"] == "warning"
    assert "no controlling terminal" in findings["terminal"]["found"]
    assert "you can decide gates from here" in kiln.person("doctor", answers=[]).text


def test_the_doctor_makes_no_store(kiln: Workspace) -> None:
    found(kiln, 0)
    assert not (kiln.root / ".procedo").exists()


def test_the_doctor_names_a_broken_configuration(kiln: Workspace) -> None:
    (kiln.root / "procedo.toml").write_text("[sop]\nmax_concurent_total = 2\n", encoding="utf-8")
    configuration = found(kiln, 1)["configuration"]
    assert configuration["state"] == "problem"
    assert "max_concurrent_total" in configuration["found"] + configuration["hint"]


def test_the_doctor_names_a_broken_procedure(kiln: Workspace) -> None:
    kiln.write("broken", '[sop]\nname = "broken"\n', STEPS)
    procedures = found(kiln, 1)["procedures"]
    assert procedures["found"] == "cannot be started: broken"
    assert procedures["hint"] == "See: procedo check"


def test_the_doctor_names_a_store_that_is_none(kiln: Workspace) -> None:
    (kiln.root / ".procedo").mkdir()
    (kiln.root / ".procedo" / "procedo.db").write_bytes(b"this is no database at all, it only lies here" * 40)
    assert found(kiln, 1)["store"]["state"] == "problem"
    done = kiln.run("start", "kiln-firing", "--json")
    assert done.code == 6


def ended(workspace: Workspace) -> str:
    workspace.simple("plain", STEPS)
    run_id: str = workspace.json("start", "plain")["run_id"]
    report(workspace.root, run_id, "1.1", {"done": True})
    return run_id


def test_the_record_verifies_and_is_exported_line_by_line(workspace: Workspace) -> None:
    run_id = ended(workspace)
    verified = workspace.json("audit", "verify")
    assert (verified["ok"], verified["runs"], verified["broken"]) == (True, 1, {})
    lines = [json.loads(line) for line in workspace.run("audit", "export", run_id).out.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, verified["records"] + 1))
    assert lines[0]["kind"] == "RunStarted"
    assert lines[-1]["kind"] == "RunCompleted"
    assert {"acting", "delegating", "root", "at", "hash", "execution_id", "revision"} < set(lines[0])
    file = workspace.root / "record.jsonl"
    assert workspace.json("audit", "export", "--output", str(file)) == {
        "records": verified["records"],
        "file": str(file),
    }
    assert [json.loads(line) for line in file.read_text().splitlines()] == lines
    assert workspace.run("audit", "export", "--output", str(file)).code == 2


def test_a_record_that_was_changed_from_outside_is_found(workspace: Workspace) -> None:
    import sqlite3

    run_id = ended(workspace)
    connection = sqlite3.connect(workspace.root / ".procedo" / "procedo.db")
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')
    changed = connection.execute("UPDATE transitions SET acting = 'human:cli:mallory' WHERE revision = 1").rowcount
    assert changed == 1
    connection.commit()
    connection.close()
    done = workspace.run("audit", "verify", "--json")
    assert done.code == 1
    assert list(done.value["broken"]) == [run_id]
    assert workspace.run("audit", "verify").code == 1


@pytest.mark.requirement("C55")
def test_the_record_of_an_unknown_run_is_not_found(workspace: Workspace) -> None:
    run_id = ended(workspace)
    done = workspace.run("audit", "verify", run_id[:-1], "--json")
    assert done.code == 4
    assert done.error["near"] == [run_id]


def test_old_runs_are_deleted_and_live_ones_never(kiln: Workspace) -> None:
    run_id = ended(kiln)
    live = kiln.json("start", "kiln-firing")["run_id"]
    assert kiln.json("prune", "--older-than", "30d")["runs"] == 0
    assert kiln.json("prune", "--older-than", "0s", "--dry-run")["runs"] == 1
    for words in ((), ("--yes",)):
        refused = kiln.run("prune", "--older-than", "0s", "--json", *words)
        assert (refused.code, refused.error["code"]) == (3, "no_terminal")
    assert kiln.json("status", run_id)["status"] == "completed"
    deleted = kiln.person("prune", "--older-than", "0s")
    assert (deleted.code, "1 runs deleted" in deleted.text) == (0, True)
    assert kiln.run("status", run_id).code == 4
    assert kiln.json("status", live)["status"] == "waiting_approval"


def test_a_sub_run_is_deleted_with_the_run_above_it_and_not_before(workspace: Workspace) -> None:
    workspace.simple("below", "1. **Nothing** — Nothing.\n   - kind: capability\n   - capability: noop\n")
    workspace.simple("above", "1. **Below** — Do it.\n   - sop: below\n2. **Mine** — Do it.\n   - terminal: true\n")
    above = workspace.json("start", "above")["run_id"]
    waited(workspace.root, above)
    (below,) = (one["run_id"] for one in workspace.json("status", "--all")["runs"] if one["run_id"] != above)
    assert workspace.json("status", below)["status"] == "completed"
    assert workspace.json("prune", "--older-than", "0s", "--dry-run")["runs"] == 0
    report(workspace.root, above, "2.1", {"done": True})
    assert workspace.json("prune", "--older-than", "0s", "--dry-run")["runs"] == 2
    assert "2 runs deleted" in workspace.person("prune", "--older-than", "0s").text
    assert (workspace.run("status", above).code, workspace.run("status", below).code) == (4, 4)


def test_a_person_is_asked_before_runs_are_deleted(workspace: Workspace) -> None:
    run_id = ended(workspace)
    assert workspace.person("prune", "--older-than", "0s", answers=["n"]).code == 3
    assert workspace.run("status", run_id).code == 0
    assert workspace.person("prune", "--older-than", "0s", answers=["y"]).code == 0
    assert workspace.run("status", run_id).code == 4


@pytest.mark.parametrize("age", ["month", "-1d", ""])
def test_an_age_that_is_none_deletes_nothing(workspace: Workspace, age: str) -> None:
    assert workspace.run("prune", f"--older-than={age}", "--yes").code == 2
