"""Tokens with limits at the command line: made, listed, and held to by every verb."""

import json

import pytest
from commands import Workspace
from mcp_host import PLAIN

pytestmark = pytest.mark.requirement("reach")


@pytest.fixture
def both(kiln: Workspace) -> Workspace:
    """A workspace with a second procedure."""
    folder = kiln.root / "sops" / "plain"
    folder.mkdir()
    for name, text in PLAIN.items():
        (folder / name).write_text(text)
    return kiln


def made(workspace: Workspace, name: str, *words: str) -> str:
    """The secret of a token that a person makes at a terminal."""
    screen = workspace.person("token", "create", name, *words, piped=True)
    assert screen.code == 0, screen.text
    return screen.piped.strip()


LIMITED = ("--role", "operate", "--role", "approve", "--sop", "pl*", "--agent", "reviewer")


def test_the_limits_are_shown_before_a_token_is_made_and_in_the_list(both: Workspace) -> None:
    screen = both.person("token", "create", "desk", *LIMITED, piped=True)
    assert "sops    pl*" in screen.text
    assert "agents  reviewer" in screen.text
    made(both, "open", "--role", "view")
    made(both, "alone", "--role", "view", "--no-agents")
    listed = {one["name"]: (one["sops"], one["agents"]) for one in both.json("token", "list")["tokens"]}
    assert listed == {"desk": (["pl*"], ["reviewer"]), "open": (None, None), "alone": (None, [])}
    table = both.run("token", "list").out
    assert "every one" in table
    assert "pl*" in table


def test_words_that_limit_nothing_sensible_are_refused(both: Workspace) -> None:
    for words in (("--sop", " "), ("--agent", "a", "--no-agents")):
        assert both.run("token", "create", "x", "--role", "view", *words).code == 2


def test_a_token_makes_none_that_reaches_further(both: Workspace) -> None:
    secret = made(both, "desk", *LIMITED, "--subject", "ida")
    make = ("token", "create", "more", "--subject", "ida", "--role", "operate")
    for words, more in (
        ((), "every procedure, every agent"),
        (("--sop", "plain"), "every agent"),
        (("--sop", "kiln-firing", "--no-agents"), "procedure kiln-firing"),
        (("--sop", "p*", "--no-agents"), "procedure p*"),
        (("--sop", "plain", "--agent", "writer"), "agent writer"),
    ):
        done = both.run(*make, *words, "--json", PROCEDO_TOKEN=secret)
        assert (done.code, done.error["code"]) == (3, "not_permitted")
        assert f"Your token has not {more}," in done.error["message"]
    narrower = both.run(*make, "--sop", "plain", "--no-agents", "--json", PROCEDO_TOKEN=secret)
    assert (narrower.value["sops"], narrower.value["agents"]) == (["plain"], [])


def test_every_verb_knows_the_procedures_within_the_limits_alone(both: Workspace) -> None:
    beyond = both.json("start", "kiln-firing", "--wait", "0")["run_id"]
    secret = made(both, "desk", *LIMITED)

    def run(*words: str) -> tuple[int, str]:
        done = both.run(*words, "--json", PROCEDO_TOKEN=secret)
        return done.code, done.out + done.err

    assert [one["name"] for one in json.loads(run("list")[1])["sops"]] == ["plain"]
    for verb in ("show", "graph", "check", "test", "start"):
        code, told = run(verb, "kiln-firing")
        assert (code, told.replace("kiln-firing", "kiln-furing")) == run(verb, "kiln-furing")
        assert code == 4
    for words in (("show",), ("status",), ("cancel",), ("watch",), ("audit", "export")):
        code, told = run(*words, beyond)
        assert (code, told.replace(beyond, "run-never-was")) == run(*words, "run-never-was")
        assert code == 4
    assert json.loads(run("status", "--all")[1])["runs"] == []
    assert json.loads(run("inbox")[1])["gates"] == []
    assert json.loads(run("audit", "verify")[1])["runs"] == 0
    code, told = run("prune", "--older-than", "1s", "--yes")
    assert (code, "not_permitted" in told) == (3, True)
    started = json.loads(run("start", "plain", "--wait", "0")[1])["run_id"]
    assert json.loads(run("audit", "verify")[1])["runs"] == 1
    assert started.startswith("run-")
    assert both.json("status", beyond)["status"] == "waiting_approval", "without a token everything is there"


def test_tokens_that_reach_further_are_neither_shown_nor_ended_with_one_that_is_limited(both: Workspace) -> None:
    made(both, "firing", "--role", "view", "--sop", "kiln-firing")
    made(both, "whole", "--role", "view")
    made(both, "narrow", "--role", "view", "--sop", "plain", "--no-agents")
    secret = made(both, "desk", *LIMITED, "--subject", "ida")
    listed = both.run("token", "list", "--json", PROCEDO_TOKEN=secret)
    assert [one["name"] for one in listed.value["tokens"]] == ["narrow", "desk"]
    assert "kiln-firing" not in listed.out
    known = {one["name"]: one["id"] for one in both.json("token", "list")["tokens"]}
    for reference in ("whole", known["firing"]):
        done = both.run("token", "revoke", reference, "--json", PROCEDO_TOKEN=secret)
        assert (done.code, done.error["code"]) == (3, "not_permitted")
    assert both.run("token", "revoke", "narrow", PROCEDO_TOKEN=secret).code == 0
    states = {one["name"]: one["state"] for one in both.json("token", "list")["tokens"]}
    assert states == {"firing": "live", "whole": "live", "narrow": "revoked", "desk": "live"}


def test_the_doctor_names_no_gate_beyond_the_limits(both: Workspace) -> None:
    (both.root / "procedo.toml").write_text(
        '[sop.approval]\nrequest_route = "ops"\n[notices.ops]\ntype = "command"\nargv = ["false"]\n'
    )
    beyond = both.json("start", "kiln-firing", "--wait", "5")["run_id"]
    secret = made(both, "desk", *LIMITED)
    gate = f"{beyond}.g1"
    assert gate in both.run("doctor").out, "without a token everything is there"
    assert gate not in both.run("doctor", PROCEDO_TOKEN=secret).out
