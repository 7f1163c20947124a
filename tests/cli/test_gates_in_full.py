"""Everything that a person can do at a gate from the terminal: look, revise, take back, break the glass."""

import re
from typing import Any

import pytest
from commands import Workspace
from host import report
from siege import ME, token

from procedo.core.access import Role
from procedo.core.principal import PrincipalKind

MY_RECORD = f"{ME} (human, cli)"
DRAFT = """\
1. **Draft** — Write the answer.
2. **Review** — Read it.
   - kind: checkpoint
   - edit: body
   - prompt: Send this answer?
3. **Send** — Send it.
"""
PAIR = """
[sop.approval.groups.editors]
members = ["{me}", "noor"]

[sop.approval.policies.pair]
required_group = "editors"
quorum = 2
"""
NOT_ME = """
[sop.approval]
break_glass = [{glass}]

[sop.approval.groups.owners]
members = ["noor"]

[sop.approval.policies.owners]
required_group = "owners"
"""
GATED = "1. **Deploy** — Deploy it.\n   - requires_confirmation: true\n   - policy: {policy}\n"


def at_checkpoint(workspace: Workspace, body: str = "We close on Monday.") -> tuple[str, str]:
    workspace.simple("answer", DRAFT)
    run_id = workspace.json("start", "answer")["run_id"]
    snapshot = report(workspace.root, run_id, "1.1", {"title": "T", "body": body})
    return run_id, snapshot.run.open_gates[0].code


def configured(workspace: Workspace, config: str, policy: str) -> tuple[str, str]:
    """The run and the gate of a procedure whose only step is gated under this policy."""
    (workspace.root / "procedo.toml").write_text(config, encoding="utf-8")
    workspace.simple("deploy", GATED.format(policy=policy))
    view = workspace.json("start", "deploy")
    return view["run_id"], view["actions"][0]["context"]["code"]


def gates(workspace: Workspace, run_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = workspace.json("show", run_id)["gates"]
    return found


def kinds(workspace: Workspace, run_id: str) -> list[str]:
    return [record["kind"] for record in workspace.json("show", run_id, "--records")["records"]]


# --- revise --------------------------------------------------------------------------------------


@pytest.mark.requirement("C9")
def test_a_new_draft_is_asked_for_and_the_changes_are_shown(workspace: Workspace) -> None:
    run_id, code = at_checkpoint(workspace)
    assert f"procedo revise {code}" in workspace.run("inbox").out
    screen = workspace.person("revise", code, "Tuesday, not Monday")
    assert screen.code == 0, screen.text
    assert "Your answer: revise" in screen.text
    assert "comment: Tuesday, not Monday" in screen.text
    assert "Ask for another draft? [y/N]" in screen.text
    detail = workspace.run("inbox", code).out
    assert "a new draft is being made" in detail
    assert f"{ME} asked for another draft: Tuesday, not Monday" in detail
    late = workspace.person("approve", code)
    assert late.code == 3
    assert "superseded" in late.text
    report(workspace.root, run_id, "1.2", {"title": "T", "body": "We close on Tuesday."})
    detail = workspace.run("inbox", code).out
    assert re.search(r"revision +2", detail)
    assert "  | - We close on Monday." in detail
    assert "  | + We close on Tuesday." in detail
    assert "has a new draft" in detail
    value = workspace.json("inbox", code)
    assert (value["revision"], value["previous"]["body"]) == (2, "We close on Monday.")
    assert [record["kind"] for record in value["history"]] == ["RevisionAsked", "GatePresented"]
    assert workspace.person("approve", code).code == 0


def test_a_revision_without_guidance_is_a_bad_argument(workspace: Workspace) -> None:
    assert workspace.run("revise", "G0", " ").code == 2
    assert workspace.run("revise", "G0").code == 2


# --- retract -------------------------------------------------------------------------------------


@pytest.mark.requirement("C52", "C86")
def test_an_answer_is_taken_back_while_the_gate_waits_for_more_people(workspace: Workspace) -> None:
    run_id, code = configured(workspace, PAIR.format(me=ME), "pair")
    screen = workspace.person("approve", code)
    assert screen.code == 0, screen.text
    assert "answered    1 of 2: approve" in workspace.run("inbox").out
    screen = workspace.person("retract", code)
    assert screen.code == 0, screen.text
    assert "Take your answer back? [y/N]" in screen.text
    assert "1 of 2" not in workspace.run("inbox").out
    assert [kind for kind in kinds(workspace, run_id) if kind.startswith("Vote")] == ["VoteCast", "VoteRetracted"]
    again = workspace.person("retract", code)
    assert again.code == 3
    assert "no vote" in again.text


# --- breaking the glass --------------------------------------------------------------------------


def test_a_person_with_that_permission_decides_alone_and_the_record_says_so(workspace: Workspace) -> None:
    run_id, code = configured(workspace, NOT_ME.format(glass=f'"{ME}"'), "owners")
    usual = workspace.person("approve", code)
    assert usual.code == 3
    assert "not a member of group 'owners'" in usual.text
    assert "You may decide alone in an emergency: --break-glass with --comment." in usual.text
    screen = workspace.person("approve", code, "--break-glass", "--comment", "site down, nobody awake")
    assert screen.code == 0, screen.text
    assert "You decide alone, against the policy of this gate." in screen.text
    assert "Break the glass? Approve this? [y/N]" in screen.text
    (gate,) = gates(workspace, run_id)
    assert (gate["verdict"], gate["by"], gate["break_glass"]) == ("approve", MY_RECORD, True)
    assert gate["comment"] == "site down, nobody awake"
    assert kinds(workspace, run_id)[-3:] == ["GlassBroken", "GateResolved", "ExecutionOpened"]
    shown = workspace.run("show", run_id, "--records").out
    assert f"{ME} broke the glass, although {MY_RECORD} is not a member of group 'owners'" in shown
    assert "(by breaking the glass)" in shown
    assert workspace.run("audit", "verify").code == 0


@pytest.mark.parametrize("glass", ["", '"noor"', '"web:{me}"'])
def test_nobody_else_breaks_the_glass(workspace: Workspace, glass: str) -> None:
    run_id, code = configured(workspace, NOT_ME.format(glass=glass.format(me=ME)), "owners")
    screen = workspace.person("approve", code, "--break-glass", "--comment", "I want it")
    assert screen.code == 3
    assert "not one of those who may break the glass" in screen.text
    assert "in an emergency" not in workspace.person("approve", code).text
    assert "GlassBroken" not in kinds(workspace, run_id)


def test_breaking_the_glass_takes_a_terminal_a_yes_and_a_reason(workspace: Workspace) -> None:
    run_id, code = configured(workspace, NOT_ME.format(glass=f'"{ME}"'), "owners")
    words = ("approve", code, "--break-glass", "--comment", "site down")
    without = workspace.run(*words, "--json", typed="y\n")
    assert (without.code, without.error["code"]) == (3, "no_terminal")
    assert workspace.person(*words, answers=["n"]).code == 3
    assert workspace.run("approve", code, "--break-glass").code == 2
    assert "GlassBroken" not in kinds(workspace, run_id)


def test_a_token_of_such_a_person_breaks_the_glass_and_nobody_elses_does(workspace: Workspace) -> None:
    run_id, code = configured(workspace, NOT_ME.format(glass='"ida"'), "owners")
    words = ("approve", code, "--break-glass", "--comment", "site down")
    for name, kind, role in (
        ("sam", PrincipalKind.HUMAN, Role.APPROVE),
        ("ida", PrincipalKind.AGENT, Role.APPROVE),
        ("ida", PrincipalKind.HUMAN, Role.OPERATE),
    ):
        secret = token(workspace.root, f"{name}-{kind}-{role}", kind, role, subject=name)
        assert workspace.run(*words, PROCEDO_TOKEN=secret).code == 3
    secret = token(workspace.root, "phone", PrincipalKind.HUMAN, Role.APPROVE, subject="ida")
    assert workspace.run(*words, PROCEDO_TOKEN=secret).code == 0
    (gate,) = gates(workspace, run_id)
    assert (gate["by"], gate["break_glass"]) == ("ida (human, cli)", True)


def test_check_names_who_may_decide_where_nobody_else_can(workspace: Workspace) -> None:
    config = NOT_ME.format(glass=f'"{ME}"').replace('["noor"]', "[]")
    (workspace.root / "procedo.toml").write_text(config, encoding="utf-8")
    workspace.simple("deploy", GATED.format(policy="owners"))
    done = workspace.run("check")
    assert done.code == 0
    assert "warning[break-glass-policy]" in done.out
    assert f"only {ME} can decide: procedo approve GATE --break-glass --comment WHY" in done.out
    (workspace.root / "procedo.toml").write_text(config.replace(f'"{ME}"', ""), encoding="utf-8")
    refused = workspace.run("check")
    assert refused.code == 1
    assert "break_glass who may decide alone" in refused.err


# --- approving by name ---------------------------------------------------------------------------


def test_a_policy_that_approves_by_itself_is_seen_in_the_record_and_by_check(workspace: Workspace) -> None:
    (workspace.root / "procedo.toml").write_text(
        "[sop.approval.policies.nightly]\nauto_approve = true\n", encoding="utf-8"
    )
    workspace.simple("deploy", GATED.format(policy="nightly"))
    view = workspace.json("start", "deploy")
    assert view["actions"][0]["execution_id"] == "1.1"
    (gate,) = gates(workspace, view["run_id"])
    assert gate["by"] == "policy nightly (system, system)"
    assert "AutoApproved" in kinds(workspace, view["run_id"])
    assert "warning[auto-approve]" in workspace.run("check").out


# --- one gate in full ----------------------------------------------------------------------------


def test_a_gate_is_shown_in_full_with_what_has_happened_at_it(workspace: Workspace) -> None:
    run_id, code = configured(workspace, PAIR.format(me=ME), "pair")
    assert workspace.person("approve", code).code == 0
    text = workspace.run("inbox", code).out
    assert f"Gate {code} (approval)" in text
    assert "2 different persons of group 'editors'" in text
    assert f"{ME} answered approve" in text
    assert f"procedo approve {code}  |  procedo deny {code}" in text
    assert workspace.json("inbox", code.lower())["run_id"] == run_id


def test_a_decided_gate_says_how_it_was_decided(kiln: Workspace) -> None:
    code = kiln.json("start", "kiln-firing")["actions"][0]["context"]["code"]
    assert kiln.person("deny", code, "--reason", "cold").code == 0
    text = kiln.run("inbox", code).out
    assert f"decided: deny by {MY_RECORD}" in text


def test_a_gate_and_a_filter_do_not_go_together(kiln: Workspace) -> None:
    assert kiln.run("inbox", "K7QF", "--mine").code == 2
    assert kiln.run("inbox", "K7QF", "--watch").code == 2
    assert kiln.run("inbox", "NOPE").code == 4


def test_a_checkpoint_offers_each_answer_that_it_takes(workspace: Workspace) -> None:
    run_id, code = at_checkpoint(workspace)
    offered = (
        f"approve {code}  |  procedo deny {code}  |  procedo approve {code} --amend TEXT  |  procedo revise {code}"
    )
    for words in (("inbox", code), ("inbox",), ("status", run_id)):
        assert offered in workspace.run(*words).out


def test_a_decided_gate_names_nobody_who_may_decide(workspace: Workspace) -> None:
    _, code = configured(workspace, PAIR.format(me=ME), "pair")
    assert "may decide  2 different persons of group 'editors'" in workspace.run("inbox", code).out
    assert workspace.person("deny", code, "--reason", "no").code == 0
    text = workspace.run("inbox", code).out
    assert f"decided: deny by {MY_RECORD}" in text
    assert ["may decide" in text, "missing" in text] == [False, False]
    assert workspace.json("inbox", code)["may_decide"] == "nobody: nothing is left to decide"


def test_the_same_vote_again_is_told_as_counted(workspace: Workspace) -> None:
    _, code = configured(workspace, PAIR.format(me=ME), "pair")
    assert workspace.person("approve", code).code == 0
    again = workspace.person("approve", code)
    assert again.code == 0, again.text
    assert f"note: Gate {code}: your answer approve is counted already, 1 of 2." in again.text
    assert "None" not in again.text


def test_an_answer_that_the_gate_does_not_take_is_refused_before_the_question(workspace: Workspace) -> None:
    run_id, code = at_checkpoint(workspace)
    for attempt in (2, 3, 4):
        assert workspace.person("revise", code, "shorter").code == 0
        report(workspace.root, run_id, f"1.{attempt}", {"title": "T", "body": f"draft {attempt}"})
    screen = workspace.person("revise", code, "shorter still", answers=[])
    assert screen.code == 2, screen.text
    assert f"revise is no answer at gate {code}" in screen.text
    assert "[y/N]" not in screen.text
