import json
from typing import Any

import pytest
from commands import Workspace


def made(workspace: Workspace, *words: str) -> str:
    """The secret of a token that a person makes at a terminal."""
    screen = workspace.person("token", "create", *words, piped=True)
    assert screen.code == 0, screen.text
    return screen.piped.strip()


def gate_code(workspace: Workspace) -> str:
    code: str = workspace.json("start", "kiln-firing")["actions"][0]["context"]["code"]
    return code


def test_a_person_at_a_terminal_makes_a_token_and_sees_what_it_opens(workspace: Workspace) -> None:
    screen = workspace.person(
        "token", "create", "ida-phone", "--subject", "ida", "--role", "approve", "--group", "sre", "--expires", "30d",
        piped=True,
    )  # fmt: skip
    assert screen.code == 0
    for part in ("'ida-phone' for human 'ida'", "roles   approve", "groups  sre", "lives   30d", "Make it? [y/N]"):
        assert part in screen.text
    assert screen.piped.startswith("procedo_")
    (token,) = workspace.json("token", "list")["tokens"]
    known = {name: token[name] for name in ("name", "subject", "kind", "roles", "groups", "state", "revoked_at")}
    assert known == {
        "name": "ida-phone", "subject": "ida", "kind": "human", "roles": ["approve"], "groups": ["sre"],
        "state": "live", "revoked_at": None,
    }  # fmt: skip
    assert screen.piped.strip() not in json.dumps(token)


GROUPS = """
[sop.approval.groups.pharmacists]
members = []
by_token = true

[sop.approval.groups.sre]
members = ["noor"]

[sop.approval.policies.two]
required_group = "pharmacists"

[sop.approval.policies.night]
required_group = "sre"
"""
WARNED = {
    "pharmacist": ["No policy of procedo.toml requires a group 'pharmacist'; did you mean pharmacists?"],
    "cooks": ["No policy of procedo.toml requires a group 'cooks'; groups of policies: pharmacists, sre."],
    "sre": ["Group 'sre' counts its listed members alone: no token does until it says by_token = true."],
    "pharmacists": [],
}


@pytest.mark.parametrize(("group", "warnings"), WARNED.items(), ids=WARNED)
def test_a_group_that_makes_nobody_a_member_is_warned_of(workspace: Workspace, group: str, warnings: list[str]) -> None:
    (workspace.root / "procedo.toml").write_text(GROUPS, encoding="utf-8")
    words = ("--subject", "ida", "--role", "approve", "--group", group)
    screen = workspace.person("token", "create", "phone", *words, piped=True)
    assert screen.code == 0, screen.text
    asked, _, after = screen.text.partition("Make it? [y/N]")
    assert ("warning" in asked, "warning" in after) == (bool(warnings), bool(warnings))
    assert all(text in " ".join(asked.split()) for text in warnings)
    made_by_token = workspace.run("token", "create", "laptop", *words, "--json", PROCEDO_TOKEN=screen.piped.strip())
    assert made_by_token.value["warnings"] == warnings


@pytest.mark.requirement("token-maker")
def test_without_a_terminal_or_without_a_y_no_token_is_made_or_ended(workspace: Workspace) -> None:
    made(workspace, "ida", "--role", "approve")
    for words in (("create", "bot", "--role", "approve"), ("revoke", "ida")):
        done = workspace.run("token", *words, typed="y\n")
        assert (done.code, "no controlling terminal" in done.err) == (3, True)
        assert workspace.person("token", *words, answers=("n",)).code == 3
    assert [(token["name"], token["state"]) for token in workspace.json("token", "list")["tokens"]] == [("ida", "live")]


def test_a_revoked_token_stays_in_the_list_and_opens_nothing(kiln: Workspace) -> None:
    secret = made(kiln, "ida", "--role", "approve")
    assert kiln.person("token", "revoke", "ida").code == 0
    done = kiln.run("approve", gate_code(kiln), PROCEDO_TOKEN=secret)
    assert (done.code, "No live token" in done.err) == (3, True)
    assert "revoked" in kiln.run("token", "list").out


def decided(workspace: Workspace, run: str) -> list[Any]:
    return [gate for gate in workspace.json("show", run)["gates"] if "verdict" in gate]


@pytest.mark.parametrize("door", ["variable", "argument"])
def test_a_token_decides_without_a_terminal_as_its_subject(kiln: Workspace, door: str) -> None:
    secret = made(kiln, "phone", "--subject", "noor", "--role", "approve")
    view = kiln.json("start", "kiln-firing")
    code = view["actions"][0]["context"]["code"]
    words = ("--token", secret) if door == "argument" else ()
    variable = secret if door == "variable" else ""
    done = kiln.run("approve", code, "--comment", "seen", *words, PROCEDO_TOKEN=variable)
    assert done.code == 0, done.err
    (gate,) = decided(kiln, view["run_id"])
    assert (gate["verdict"], gate["by"], gate["comment"]) == ("approve", "noor (human, cli)", "seen")


def test_a_token_without_the_role_or_of_an_agent_decides_nothing(kiln: Workspace) -> None:
    code = gate_code(kiln)
    tokens = {
        "needs the role approve": made(kiln, "viewer", "--role", "view", "--role", "operate"),
        "is not a person": made(kiln, "bot", "--kind", "agent", "--role", "approve"),
        "No live token": "procedo_made-up",
    }
    for why, secret in tokens.items():
        done = kiln.run("approve", code, PROCEDO_TOKEN=secret)
        assert (done.code, why in done.err) == (3, True), done.err
    assert len(kiln.json("inbox")["gates"]) == 1


@pytest.mark.requirement("token-maker")
def test_a_token_makes_tokens_that_reach_no_further_than_itself(workspace: Workspace) -> None:
    ida = made(workspace, "ida", "--role", "approve", "--role", "operate", "--group", "sre", "--expires", "10d")
    good = ("bot", "--kind", "agent", "--role", "operate", "--group", "sre", "--expires", "9d")
    done = workspace.run("token", "create", *good, PROCEDO_TOKEN=ida)
    assert done.code == 0, done.err
    assert done.out.startswith("procedo_")
    bad = {
        "has not admins": ("a", "--role", "operate", "--group", "admins", "--expires", "1d"),
        "would live longer": ("b", "--role", "operate", "--expires", "11d"),
        "live longer.": ("c", "--role", "operate"),
        "for yourself alone": ("noor", "--role", "approve", "--expires", "1d"),
        "yourself alone.": ("ida2", "--subject", "ida", "--kind", "agent", "--role", "approve", "--expires", "1d"),
    }
    for why, words in bad.items():
        done = workspace.run("token", "create", *words, PROCEDO_TOKEN=ida)
        assert (done.code, why in done.err) == (3, True), done.err
    mine = ("ida-laptop", "--subject", "IDA", "--role", "approve", "--expires", "1d")
    assert workspace.run("token", "create", *mine, PROCEDO_TOKEN=ida).code == 0
    names = [token["name"] for token in workspace.json("token", "list")["tokens"]]
    assert names == ["ida", "bot", "ida-laptop"]


def test_tokens_of_agents_and_of_those_who_do_not_decide_make_none(workspace: Workspace) -> None:
    bot = made(workspace, "bot", "--kind", "agent", "--role", "approve", "--role", "operate")
    operator = made(workspace, "sam", "--role", "operate")
    for secret in (bot, operator):
        done = workspace.run("token", "create", "x", "--role", "operate", PROCEDO_TOKEN=secret)
        assert done.code == 3
        assert workspace.run("token", "revoke", "bot", PROCEDO_TOKEN=secret).code == 3
    assert len(workspace.json("token", "list")["tokens"]) == 2


MISTAKES = {
    "no name": ("create", "--role", "view"),
    "no role": ("create", "x"),
    "no such role": ("create", "x", "--role", "admin"),
    "no time": ("create", "x", "--role", "view", "--expires", "soon"),
}


@pytest.mark.parametrize("words", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_before_anybody_is_asked(workspace: Workspace, words: tuple[str, ...]) -> None:
    assert workspace.run("token", *words).code == 2


def test_an_empty_list_says_how_to_make_one(workspace: Workspace) -> None:
    assert "procedo token create" in workspace.run("token", "list").out
