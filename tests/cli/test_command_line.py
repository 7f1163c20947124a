import re
import shlex

import pytest
from commands import Workspace

from procedo.errors import BadArgument
from procedo.surfaces.cli.parser import VERBS, parse, split

GOLDEN_HELP = """\
procedo runs Standard Operating Procedures for AI agents.

usage: procedo VERB [options]

Begin:
  demo     watch a procedure run: gate, kill, restart, record
  new      make a new procedure
  serve    run the MCP server, for a host or over HTTP
  install  put the server into an MCP host, or take it out
  doctor   look for what is wrong, and say how to mend it

Procedures:
  list     the procedures, with their problems
  show     one procedure or one run in full
  graph    a procedure or a run as a drawing
  check    every mistake in the procedures, with its line
  test     rehearse a procedure without a model
  manual   the reference: files, tools, verbs, codes, events
  schema   JSON Schemas of the files, for editors

Runs:
  start    start a run
  status   one run, or the runs that need attention
  watch    follow a run until it has ended
  pause    hold a run at its next step
  resume   go on with a run
  cancel   end a run

Gates:
  inbox    the gates that wait for a person
  approve  let a gate's step go on
  deny     refuse a gate's step
  revise   ask for another draft
  retract  take an answer back

Access:
  token    make, list and end the tokens of people and programs

Records:
  audit    verify or export the record
  prune    delete runs that ended long ago

everywhere: --workspace DIR, --json, --help; also: procedo --version

exit codes: 0 done, 1 a document or the configuration is wrong, 2 bad argument, 3 refused, 4 not found,
            5 conflict, 6 the store failed, 7 the run that was followed failed or was cancelled,
            130 interrupted
"""

NAMES = [verb.name for verb in VERBS]
MINIMAL = {
    "demo": ("--fast", "--json"),
    "new": ("fresh",),
    "serve": (),
    "install": (),
    "doctor": (),
    "list": (),
    "show": ("kiln-firing",),
    "graph": ("kiln-firing",),
    "check": (),
    "test": ("kiln-firing",),
    "manual": (),
    "schema": ("SOP.toml",),
    "start": ("kiln-firing", "--wait", "0"),
    "status": (),
    "watch": ("run-unknown",),
    "pause": ("run-unknown",),
    "resume": ("run-unknown",),
    "cancel": ("run-unknown",),
    "inbox": (),
    "approve": ("G0",),
    "deny": ("G0",),
    "revise": ("G0", "shorter"),
    "retract": ("G0",),
    "token": ("list",),
    "audit": ("verify",),
    "prune": ("--older-than", "30d"),
}
# A run or gate that does not exist is not found; without a terminal nothing is decided.
EXPECTED = {
    "watch": 4,
    "pause": 4,
    "resume": 4,
    "cancel": 4,
    "approve": 3,
    "deny": 3,
    "revise": 3,
    "retract": 3,
    "test": 4,
}


@pytest.mark.requirement("C35")
@pytest.mark.parametrize("verb", NAMES)
def test_each_verb_answers_with_its_minimal_arguments(
    kiln: Workspace, verb: str, request: pytest.FixtureRequest
) -> None:
    done = request.getfixturevalue("performed")[0] if verb == "demo" else kiln.fresh(verb, *MINIMAL[verb])
    assert done.code == EXPECTED.get(verb, 0), done.out + done.err


def timeless(said: str) -> str:
    """What was said without what is another at every moment: the time, the room on the disk, how slow a start is."""
    for changing in (r"[\d,]+ MiB free", r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", r"\w+ +start  .*\n(?: +-> .*\n)?"):
        said = re.sub(changing, "…", said)
    return said


@pytest.mark.parametrize("words", [("list", "--json"), ("show", "nothing"), ("approve", "G0"), ("start",), ("doctor",)])
def test_a_forked_command_says_and_is_what_a_fresh_one_is(kiln: Workspace, words: tuple[str, ...]) -> None:
    forked, fresh = kiln.run(*words), kiln.fresh(*words)
    assert timeless(forked.out) == timeless(fresh.out)
    assert (forked.code, forked.err) == (fresh.code, fresh.err)


@pytest.mark.requirement("C35")
@pytest.mark.parametrize("verb", NAMES)
def test_each_verb_explains_itself_with_examples(workspace: Workspace, verb: str) -> None:
    done = workspace.run(verb, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"usage: procedo {verb}")
    assert "examples:\n  " in done.out
    assert "--workspace DIR" in done.out


@pytest.mark.parametrize("verb", VERBS, ids=NAMES)
def test_each_example_in_the_help_is_a_command_that_is_understood(verb: object) -> None:
    module = next(v for v in VERBS if v is verb).load()
    for example in module.EXAMPLES:
        command = example.split(" | ")[-1].split(" > ")[0]
        words = shlex.split(command, comments=True)
        assert words[0] == "procedo"
        before, verb_line = split(words[1:])
        assert parse(verb_line, before)[0] is verb


def test_the_overview_names_every_verb(workspace: Workspace) -> None:
    done = workspace.run("--help")
    assert (done.code, done.out, done.err) == (0, GOLDEN_HELP, "")


def test_no_verb_is_a_bad_argument_and_shows_the_overview(workspace: Workspace) -> None:
    done = workspace.run()
    assert (done.code, done.out, done.err) == (2, "", GOLDEN_HELP)


@pytest.mark.requirement("C35")
def test_an_unknown_option_is_named_with_the_nearest_one(workspace: Workspace) -> None:
    done = workspace.run("list", "--prioritie", "low")
    assert done.code == 2
    assert done.err == (
        "error: unrecognized arguments: --prioritie low.\nhint: See: procedo list --help; did you mean --priority?\n"
    )


def test_an_unknown_verb_is_answered_with_near_ones(workspace: Workspace) -> None:
    done = workspace.run("aprove", "G0")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: There is no verb 'aprove'.\nhint: Did you mean approve?\n"


def test_an_error_is_json_for_a_program(workspace: Workspace) -> None:
    done = workspace.run("aprove", "G0", "--json")
    assert (done.code, done.out) == (2, "")
    assert done.error == {
        "code": "unknown_verb",
        "message": "There is no verb 'aprove'.",
        "hint": "Did you mean approve?",
    }


def test_options_mean_the_same_before_and_behind_the_verb(kiln: Workspace) -> None:
    before = kiln.run("--json", "--workspace", str(kiln.root), "list", cwd=kiln.root.parent)
    behind = kiln.run("list", "--workspace", str(kiln.root), "--json", cwd=kiln.root.parent)
    assert before.code == behind.code == 0
    assert before.value == behind.value


def test_a_workspace_that_does_not_exist_is_no_new_one(workspace: Workspace) -> None:
    done = workspace.run("list", "--workspace", str(workspace.root / "nowhere"), "--json")
    assert done.code == 2
    assert done.error["code"] == "no_workspace"
    assert not (workspace.root / "nowhere").exists()


def test_the_version_is_told(workspace: Workspace) -> None:
    done = workspace.run("--version")
    assert done.code == 0
    assert done.out.startswith("procedo ")


def test_an_abbreviated_option_is_not_guessed() -> None:
    with pytest.raises(BadArgument):
        parse(["start", "kiln-firing", "--inp", "a=1"])


def test_a_reader_that_goes_away_is_no_error(kiln: Workspace) -> None:
    import subprocess
    import sys

    reading = subprocess.Popen(
        [sys.executable, "-m", "procedo", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=kiln.environment(),
        cwd=kiln.root,
    )
    assert reading.stdout is not None
    reading.stdout.close()
    _, complaint = reading.communicate(timeout=240)
    assert (reading.returncode, complaint) == (141, b"")
