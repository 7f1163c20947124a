import pytest
from commands import Workspace
from host import report

STEPS = """\
1. **First** — Do the first thing.
2. **Second** — Do the second thing.
   - terminal: true
"""


@pytest.mark.requirement("C50")
def test_a_filter_looks_at_its_own_field(workspace: Workspace) -> None:
    workspace.simple("workflow-cleanup", STEPS, more='priority = "high"\n')
    workspace.simple("pump-check", STEPS, more='priority = "low"\n')
    assert [sop["name"] for sop in workspace.json("list", "--priority", "low")["sops"]] == ["pump-check"]
    assert [sop["name"] for sop in workspace.json("list")["sops"]] == ["pump-check", "workflow-cleanup"]
    text = workspace.run("list", "--priority", "low").out
    assert "pump-check" in text
    assert "workflow-cleanup" not in text


@pytest.mark.requirement("C34")
def test_a_start_of_an_unknown_name_tells_the_near_one_and_the_folder(kiln: Workspace) -> None:
    done = kiln.run("start", "kilnfiring", "--json")
    assert done.code == 4
    assert done.error["near"] == ["kiln-firing"]
    assert str(kiln.root / "sops") in done.error["message"] + done.error["hint"]


@pytest.mark.requirement("C34")
def test_an_empty_folder_is_named_with_how_to_add_one(workspace: Workspace) -> None:
    done = workspace.run("list")
    assert done.code == 0
    assert str(workspace.root / "sops") in done.out
    assert "procedo new" in done.out


@pytest.mark.requirement("C34")
def test_a_broken_procedure_is_listed_beside_the_others(kiln: Workspace) -> None:
    kiln.simple("alpha", STEPS)
    kiln.write("broken", '[sop]\nname = "broken"\n', STEPS)
    listed = {sop["name"]: sop["startable"] for sop in kiln.json("list")["sops"]}
    assert listed == {"alpha": True, "broken": False, "kiln-firing": True}
    assert "description" in "".join(next(s for s in kiln.json("list")["sops"] if s["name"] == "broken")["problems"])
    assert kiln.run("start", "broken").code == 1


@pytest.mark.requirement("C55")
@pytest.mark.parametrize("words", [("status", "run-unknown"), ("show", "kilnfiring"), ("graph", "kilnfiring")])
def test_an_unknown_name_is_never_an_empty_success(kiln: Workspace, words: tuple[str, ...]) -> None:
    done = kiln.run(*words)
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("error: ")


@pytest.mark.requirement("C55")
def test_a_filter_by_an_unknown_procedure_is_not_found(kiln: Workspace) -> None:
    done = kiln.run("status", "--sop", "kilnfiring", "--json")
    assert done.code == 4
    assert done.error["near"] == ["kiln-firing"]
    assert kiln.json("status", "--sop", "kiln-firing")["runs"] == []


def test_a_run_is_shown_with_steps_outputs_and_decisions(kiln: Workspace) -> None:
    kiln.simple("plain", STEPS)
    run_id = kiln.json("start", "plain", "--inputs", '{"a": 1}')["run_id"]
    report(kiln.root, run_id, "1.1", {"n": 1})
    report(kiln.root, run_id, "2.1", "all done")
    view = kiln.json("show", run_id)
    assert view["run"]["status"] == "completed"
    assert view["run"]["output"] == "all done"
    assert view["inputs"] == {"a": 1}
    assert [(e["execution_id"], e["phase"], e["output"]) for e in view["executions"]] == [
        ("1.1", "completed", {"n": 1}),
        ("2.1", "completed", "all done"),
    ]
    text = kiln.run("show", run_id, "--records").out
    for part in (run_id, "completed", '"n": 1', "all done", "1.1 given to host", "step 1 leads to 2"):
        assert part in text


@pytest.mark.requirement("C20")
def test_why_a_run_failed_is_on_every_command(workspace: Workspace) -> None:
    workspace.simple("plain", STEPS)
    run_id = workspace.json("start", "plain")["run_id"]
    report(workspace.root, run_id, "1.1", "pump jammed", status="failed")
    for words in (("status", run_id), ("show", run_id), ("status", "--all"), ("status", "--status", "failed")):
        done = workspace.run(*words)
        assert done.code == 0
        assert "pump jammed" in done.out
    watched = workspace.run("watch", run_id)
    assert watched.code == 7
    assert "pump jammed" in watched.out


def test_a_secret_is_masked_for_the_eye(workspace: Workspace) -> None:
    workspace.simple("plain", STEPS)
    run_id = workspace.json("start", "plain")["run_id"]
    report(workspace.root, run_id, "1.1", {"token": "sk-ours-123456", "id": 4})
    for words in (("status", run_id), ("show", run_id, "--records"), ("audit", "export", run_id), ("graph", run_id)):
        assert "sk-ours-123456" not in workspace.run(*words).out
    assert "sk-ours-123456" in workspace.run("audit", "export", run_id, "--unmasked").out


GRAPH = """\
1. gate, then Load kiln
   -> 2
2. Heat to 980
   -> end
"""


def test_a_procedure_is_drawn(kiln: Workspace) -> None:
    assert kiln.run("graph", "kiln-firing").out == GRAPH
    assert kiln.run("graph", "kiln-firing", "--format", "mermaid").out.startswith("flowchart TD\n")
    picture = kiln.run("graph", "kiln-firing", "--format", "svg").out
    assert picture.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "Step 2, Heat to 980" in picture
    assert "waits for a person" not in picture


def test_a_run_is_drawn_with_the_state_of_its_steps(kiln: Workspace) -> None:
    run_id = kiln.json("start", "kiln-firing")["run_id"]
    assert kiln.run("graph", run_id).out.startswith("[?] 1. gate, then Load kiln\n")
    named = kiln.run("graph", "kiln-firing", "--run", run_id, "--format", "svg").out
    assert named == kiln.run("graph", run_id, "--format", "svg").out
    assert "begins: waits for a person" in named
    kiln.simple("other", STEPS)
    assert "is a run of 'kiln-firing', not of 'other'" in kiln.run("graph", "other", "--run", run_id).err


def test_a_run_is_watched_to_its_end(workspace: Workspace) -> None:
    workspace.simple("noop", "1. **Nothing** — Nothing.\n   - kind: capability\n   - capability: noop\n")
    run_id = workspace.json("start", "noop", "--inputs", '{"a": 1}')["run_id"]
    done = workspace.run("watch", run_id)
    assert done.code == 0
    assert "completed" in done.out
    lines = workspace.run("watch", run_id, "--json").out.splitlines()
    assert len(lines) == 1


def test_a_run_is_held_and_goes_on(workspace: Workspace) -> None:
    workspace.simple("plain", STEPS)
    run_id = workspace.json("start", "plain")["run_id"]
    assert workspace.json("pause", run_id, "--reason", "lunch")["status"] == "paused"
    assert workspace.json("resume", run_id)["status"] == "running"


@pytest.mark.requirement("C12")
def test_a_cancelled_run_stays_cancelled_with_its_reason(workspace: Workspace) -> None:
    workspace.simple("plain", STEPS)
    run_id = workspace.json("start", "plain")["run_id"]
    view = workspace.json("cancel", run_id, "--reason", "oven out of order")
    assert view["status"] == "cancelled"
    assert view["actions"][0]["reason"] == "oven out of order"
    again = workspace.run("cancel", run_id, "--reason", "again")
    assert again.code in {0, 3, 5}
    assert workspace.json("status", run_id)["actions"][0]["reason"] == "oven out of order"
    for verb in ("status", "show"):
        shown = workspace.run(verb, run_id).out.splitlines()
        told = [line for line in shown if "oven out of order" in line]
        assert [line.partition(" by ")[0] for line in told] == ["  cancelled"], shown
        assert not any("failed" in line for line in shown)


def test_a_failed_step_is_run_again_by_a_successor(workspace: Workspace) -> None:
    workspace.simple("plain", STEPS)
    run_id = workspace.json("start", "plain")["run_id"]
    report(workspace.root, run_id, "1.1", {"n": 1})
    report(workspace.root, run_id, "2.1", "broken", status="failed")
    after = workspace.json("resume", run_id, "--retry", "2")
    assert after["run_id"] != run_id
    assert after["actions"][0]["step"]["number"] == 2


def test_the_same_key_answers_with_the_same_run(workspace: Workspace) -> None:
    workspace.simple("plain", STEPS)
    first = workspace.json("start", "plain", "--key", "monday")
    again = workspace.json("start", "plain", "--key", "monday")
    assert again["run_id"] == first["run_id"]
    other = workspace.run("start", "plain", "--key", "monday", "--inputs", "1")
    assert other.code == 5


def test_inputs_are_typed_by_the_schema(workspace: Workspace) -> None:
    schema = (
        '[inputs]\ntype = "object"\nrequired = ["n"]\n[inputs.properties.n]\ntype = "integer"\n'
        '[inputs.properties.v]\ntype = "string"\n'
    )
    workspace.write(
        "typed",
        '[sop]\nname = "typed"\ndescription = "d"\nexecution_mode = "auto"\nmax_concurrent = 3\n' + schema,
        STEPS,
    )
    run_id = workspace.json("start", "typed", "--input", "n=3", "--input", "v=1.10")["run_id"]
    assert workspace.json("show", run_id)["inputs"] == {"n": 3, "v": "1.10"}
    assert workspace.run("start", "typed", "--input", "n=three").code == 2
    assert workspace.run("start", "typed").code == 2
    assert workspace.json("start", "typed", "--inputs", "-", typed='{"n": 4}')["run_id"] != run_id


@pytest.mark.requirement("C46")
def test_the_inbox_shows_what_is_asked_and_by_whom(kiln: Workspace) -> None:
    (kiln.root / "procedo.toml").write_text(
        '[sop.approval.groups.cooks]\nmembers = ["ida-of-nowhere"]\n'
        '[sop.approval.policies.cooks]\nrequired_group = "cooks"\n',
        encoding="utf-8",
    )
    kiln.simple("soup", "1. **Cook** — Cook.\n   - requires_confirmation: true\n   - policy: cooks\n")
    mine = kiln.json("start", "kiln-firing")["run_id"]
    theirs = kiln.json("start", "soup")["run_id"]
    gates = kiln.json("inbox")["gates"]
    assert [gate["run_id"] for gate in gates] == [mine, theirs]
    assert gates[0]["asks"] == "May the kiln be loaded?"
    assert "cooks" in gates[1]["may_decide"]
    assert [gate["run_id"] for gate in kiln.json("inbox", "--mine")["gates"]] == [mine]
    text = kiln.run("inbox").out
    for gate in gates:
        assert f"procedo approve {gate['code']}" in text
    assert kiln.run("inbox", "--mine").out.count("procedo approve") == 1


def test_an_empty_inbox_says_so(workspace: Workspace) -> None:
    assert workspace.run("inbox").out == "No gate waits for anybody.\n"
    assert workspace.json("inbox") == {"gates": []}
