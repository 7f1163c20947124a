import json

import pytest
from commands import Workspace

HEADER = '[sop]\nname = "{name}"\ndescription = "About it."\n'
GOOD = "1. **Do it** — Now.\n"


@pytest.fixture
def mixed(workspace: Workspace) -> Workspace:
    """Two procedures that load and one that does not."""
    workspace.simple("alpha", GOOD)
    workspace.simple("beta", GOOD)
    workspace.write("broken", HEADER.format(name="broken") + 'exection_mode = "auto"\n', GOOD)
    return workspace


@pytest.mark.requirement("C59")
def test_check_fails_and_lists_what_did_not_load(mixed: Workspace) -> None:
    done = mixed.run("check")
    assert done.code == 1
    assert "did not load:" in done.out
    assert f"  broken  {mixed.root / 'sops' / 'broken'}" in done.out
    assert "3 procedures checked: 1 error" in done.out
    assert ":4: error[" in done.out
    assert "execution_mode" in done.out


@pytest.mark.requirement("C59")
def test_check_tells_the_same_to_a_program(mixed: Workspace) -> None:
    done = mixed.run("check", "--json")
    assert done.code == 1
    value = done.value
    assert value["ok"] is False
    assert value["checked"] == ["alpha", "beta", "broken"]
    assert value["not_loaded"] == [{"name": "broken", "folder": str(mixed.root / "sops" / "broken")}]
    assert value["counts"]["error"] == 1
    (problem,) = [problem for problem in value["problems"] if problem["severity"] == "error"]
    assert problem["line"] == 4
    assert problem["file"].endswith("SOP.toml")
    assert set(problem) == {"file", "line", "code", "severity", "message", "hint"}


@pytest.mark.requirement("C59")
def test_check_succeeds_when_everything_loads(workspace: Workspace) -> None:
    workspace.simple("alpha", GOOD)
    done = workspace.run("check")
    assert (done.code, done.err) == (0, "")
    assert "1 procedure checked" in done.out
    assert "did not load" not in done.out


def test_one_procedure_can_be_checked_by_name_and_by_folder(mixed: Workspace) -> None:
    assert mixed.json("check", "alpha")["checked"] == ["alpha"]
    assert mixed.json("check", "./sops/alpha")["checked"] == ["alpha"]
    by_folder = mixed.run("check", "./sops", "--json")
    assert by_folder.value["checked"] == ["alpha", "beta", "broken"]


@pytest.mark.requirement("C34")
def test_an_unknown_name_is_answered_with_near_ones(mixed: Workspace) -> None:
    done = mixed.run("check", "alhpa", "--json")
    assert done.code == 4
    assert done.error["near"] == ["alpha"]


def test_sarif_is_what_review_tools_read(mixed: Workspace) -> None:
    done = mixed.run("check", "--sarif")
    assert done.code == 1
    log = json.loads(done.out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    (result,) = [result for result in run["results"] if result["level"] == "error"]
    location = result["locations"][0]["physicalLocation"]
    assert location == {
        "artifactLocation": {"uri": "sops/broken/SOP.toml", "uriBaseId": "WORKSPACE"},
        "region": {"startLine": 4},
    }
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}


def test_check_makes_no_store(workspace: Workspace) -> None:
    workspace.simple("alpha", GOOD)
    assert workspace.run("check").code == 0
    assert not (workspace.root / ".procedo").exists()


def test_the_schemas_of_the_files_are_printed_for_editors(workspace: Workspace) -> None:
    for name in ("procedo.toml", "SOP.toml"):
        done = workspace.run("schema", name)
        schema = json.loads(done.out)
        assert (done.code, schema["title"], schema["type"]) == (0, name, "object")
        assert workspace.run("schema", name, "--json").value == schema
    assert workspace.run("schema", "sop.md").code == 2


def test_the_manual_tells_every_key_and_problem_code(workspace: Workspace) -> None:
    assert "on_failure" in workspace.run("manual", "procedures").out
    assert "misspelt-bullet" in workspace.run("manual", "checks").out
    assert "max_concurrent_total" in workspace.run("manual", "config").out
