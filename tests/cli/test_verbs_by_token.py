"""With a token every verb acts as its holder, with its roles and no more."""

import json

import pytest
from commands import Workspace

from procedo.surfaces.cli.parser import VERBS

WITHOUT_WORKSPACE = {"demo", "install", "manual", "schema"}
MADE_UP = "procedo_made-up"
MINIMAL = {
    "new": ("fresh",), "show": ("kiln-firing",), "graph": ("kiln-firing",), "test": ("kiln-firing",),
    "start": ("kiln-firing", "--wait", "0"), "watch": ("run-x",), "pause": ("run-x",), "resume": ("run-x",),
    "cancel": ("run-x",), "approve": ("G0",), "deny": ("G0",), "revise": ("G0", "shorter"), "retract": ("G0",),
    "token": ("list",), "audit": ("verify",), "prune": ("--older-than", "30d", "--dry-run"),
}  # fmt: skip


def made(workspace: Workspace, name: str, *roles: str, kind: str = "human") -> str:
    """The secret of a token that a person makes at a terminal."""
    words = [word for role in roles for word in ("--role", role)]
    screen = workspace.person("token", "create", name, "--kind", kind, *words, piped=True)
    assert screen.code == 0, screen.text
    return screen.piped.strip()


def ended(workspace: Workspace) -> str:
    """A run that was cancelled."""
    run: str = workspace.json("start", "kiln-firing", "--wait", "0")["run_id"]
    workspace.json("cancel", run)
    return run


@pytest.mark.parametrize("verb", sorted({verb.name for verb in VERBS} - WITHOUT_WORKSPACE))
def test_a_token_that_is_not_live_is_an_error_at_every_verb(kiln: Workspace, verb: str) -> None:
    words = (verb, *MINIMAL.get(verb, ()))
    for done in (
        kiln.run(*words, "--json", PROCEDO_TOKEN=MADE_UP),
        kiln.run(*words, "--json", "--token", MADE_UP),
        kiln.run(*words, "--json", "--token", ""),
    ):
        assert (done.code, done.error["code"]) == (3, "bad_token")
    assert kiln.json("status", "--all")["runs"] == []


REFUSED = {
    "start": ("start", "kiln-firing", "--wait", "0"),
    "cancel": ("cancel", "RUN"),
    "pause": ("pause", "RUN"),
    "resume": ("resume", "RUN", "--wait", "0"),
    "resume --state": ("resume", "--state", "state.json"),
    "prune": ("prune", "--older-than", "0s", "--yes"),
    "audit export --unmasked": ("audit", "export", "--unmasked"),
    "transcripts": ("show", "RUN", "--step", "1"),
}


@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("role", ["view", "approve"])
def test_what_needs_the_role_operate_is_refused_without_it(kiln: Workspace, role: str, words: tuple[str, ...]) -> None:
    over, run = ended(kiln), kiln.json("start", "kiln-firing", "--wait", "0")["run_id"]
    (kiln.root / "state.json").write_text("{}", encoding="utf-8")
    secret = made(kiln, "noor", role)
    before = kiln.run("audit", "export").out
    done = kiln.run(*(run if word == "RUN" else word for word in words), "--json", PROCEDO_TOKEN=secret)
    assert (done.code, done.error["code"], done.out) == (3, "not_permitted", "")
    assert kiln.run("audit", "export").out == before
    assert kiln.json("status", over)["status"] == "cancelled"


def test_with_the_role_the_holder_is_who_acted(kiln: Workspace) -> None:
    secret = made(kiln, "phone", "operate")
    run = json.loads(kiln.run("start", "kiln-firing", "--wait", "0", "--json", PROCEDO_TOKEN=secret).out)["run_id"]
    for words in (("pause", run), ("resume", run, "--wait", "0"), ("cancel", run)):
        done = kiln.run(*words, "--token", secret)
        assert done.code == 0, done.err
    records = [
        json.loads(line) for line in kiln.run("audit", "export", run, "--unmasked", "--token", secret).out.splitlines()
    ]
    assert {record["acting"] for record in records} == {"human:cli:phone"}
    account = kiln.json("start", "kiln-firing", "--wait", "0")["run_id"]
    assert kiln.json("show", account)["started_by"] != kiln.json("show", run)["started_by"]


def test_a_token_with_the_role_view_looks(kiln: Workspace) -> None:
    run, secret = ended(kiln), made(kiln, "noor", "view")
    for words in (
        ("status", run),
        ("show", run),
        ("watch", run),
        ("inbox",),
        ("list",),
        ("audit", "export"),
        ("doctor",),
    ):
        assert kiln.run(*words, PROCEDO_TOKEN=secret).code in (0, 7), words


def test_a_server_acts_as_no_holder_of_a_token(kiln: Workspace) -> None:
    done = kiln.run("serve", "--json", PROCEDO_TOKEN=made(kiln, "ida", "operate", "approve"))
    assert (done.code, done.error["code"]) == (2, "bad_argument")


def test_a_token_does_not_stand_for_the_y_that_adopting_a_state_file_takes(kiln: Workspace) -> None:
    (kiln.root / "state.json").write_text("{}", encoding="utf-8")
    secret = made(kiln, "ida", "operate", "approve")
    done = kiln.run("resume", "--state", "state.json", "--json", PROCEDO_TOKEN=secret)
    assert (done.code, done.error["code"]) == (3, "no_terminal")


def test_deleting_takes_a_person_at_a_terminal_or_a_persons_token(kiln: Workspace) -> None:
    run = ended(kiln)
    words = ("prune", "--older-than", "0s", "--yes", "--json")
    alone = kiln.run(*words, typed="y\n")
    assert (alone.code, alone.error["code"]) == (3, "no_terminal")
    robot = kiln.run(*words, PROCEDO_TOKEN=made(kiln, "robot", "operate", "approve", kind="agent"))
    assert (robot.code, robot.error["code"]) == (3, "not_permitted")
    assert kiln.person("prune", "--older-than", "0s", "--yes", answers=["n"]).code == 3
    assert kiln.json("status", run)["status"] == "cancelled"
    ida = made(kiln, "ida", "operate")
    assert kiln.run(*words[:3], "--dry-run", PROCEDO_TOKEN=ida).code == 0
    assert kiln.json("status", run)["status"] == "cancelled"
    deleted = kiln.run(*words, PROCEDO_TOKEN=ida)
    assert (deleted.code, deleted.value["runs"], deleted.value["deleted"]) == (0, 1, True)
    assert kiln.run("status", run).code == 4
