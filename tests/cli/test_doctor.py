"""The doctor finds what is wrong, says how it is mended, and changes nothing."""

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from agent_workspace import server, toml
from commands import Workspace
from moved_clock import MovedClock

from procedo.app import open_app
from procedo.config import load
from procedo.core.access import Role
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.stores.connection import SCHEMA_VERSION
from procedo.surfaces.cli.examination.finding import Finding
from procedo.surfaces.cli.examination.finding import told as looked
from procedo.surfaces.cli.examination.machine import clock
from procedo.surfaces.cli.examination.servers import agents_server

pytestmark = [pytest.mark.requirement("doctor"), pytest.mark.anyio]

BUNDLE = '[mcp_bundles.kit]\nservers = ["tools"]\n'
WITH_BUNDLE = 'mcp_bundles = ["kit"]'
VALUE = "value-of-the-key-1234567890"


def findings(place: Workspace, code: int, *words: str, **environ: str) -> list[dict[str, str]]:
    done = Workspace(place.root, {**place.environ, **environ}).run("doctor", "--json", *words)
    assert done.code == code, done.out + done.err
    found: list[dict[str, str]] = done.value["findings"]
    assert all(finding["state"] in {"ok", "warning", "problem"} for finding in found)
    assert [finding for finding in found if finding["state"] != "ok" and not finding["hint"]] == []
    assert done.value["ok"] == (code == 0)
    return found


def about(found: list[dict[str, str]], name: str) -> list[tuple[str, str]]:
    return [(finding["state"], finding["found"]) for finding in found if finding["about"] == name]


def everything(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_it_says_why_this_workspace_starts_the_server_bare_and_changes_nothing(kiln: Workspace) -> None:
    before = everything(kiln.root)
    found = findings(kiln, 0)
    assert about(found, "workspace") == [("ok", f"{kiln.root} (the nearest folder with procedo.toml or sops/)")]
    ((state, started),) = about(found, "start")
    assert state in {"ok", "warning"}
    assert "this installation starts from a bare environment and answers with 8 tools" in started or state == "warning"
    assert about(found, "hosts") == [("warning", "no host on this machine has an entry for procedo")]
    assert everything(kiln.root) == before


@pytest.mark.parametrize(
    ("words", "variables", "why"),
    [
        (("--workspace", "."), {}, "--workspace names it"),
        ((), {"PROCEDO_WORKSPACE": "."}, "PROCEDO_WORKSPACE names it"),
    ],
)
def test_a_workspace_that_was_named_is_told_as_that(
    kiln: Workspace, words: tuple[str, ...], variables: dict[str, str], why: str
) -> None:
    assert about(findings(kiln, 0, *words, **variables), "workspace") == [("ok", f"{kiln.root} ({why})")]


def entry(root: Path, **changed: Any) -> dict[str, Any]:
    args = ["-P", "-m", "procedo", "serve", "--workspace", str(root)]
    return {"mcpServers": {"procedo": {"command": sys.executable, "args": args, **changed}}}


def test_an_entry_of_a_host_that_leads_nowhere_is_a_problem(kiln: Workspace) -> None:
    files = {
        ".claude.json": entry(kiln.root),
        ".gemini/settings.json": entry(kiln.root, command="/gone/python"),
        ".codeium/windsurf/mcp_config.json": entry(kiln.root / "gone"),
    }
    for name, value in files.items():
        (kiln.root / name).parent.mkdir(parents=True, exist_ok=True)
        (kiln.root / name).write_text(json.dumps(value), encoding="utf-8")
    (kiln.root / ".codex").mkdir()
    (kiln.root / ".codex" / "config.toml").write_text("[mcp_servers.procedo\n", encoding="utf-8")
    told = {text: state for state, text in about(findings(kiln, 1), "hosts")}
    assert told[f"Claude Code, {kiln.root}/.claude.json: installed"] == "ok"
    assert (
        told[f"Gemini CLI, {kiln.root}/.gemini/settings.json: there is no program /gone/python any more"] == "problem"
    )
    windsurf = f"Windsurf, {kiln.root}/.codeium/windsurf/mcp_config.json"
    assert told[f"{windsurf}: there is no folder {kiln.root}/gone"] == "problem"
    assert {state for text, state in told.items() if text.startswith("Codex") and ":1:" in text} == {"problem"}


def test_the_command_that_mends_an_entry_writes_that_very_one(kiln: Workspace, tmp_path: Path) -> None:
    (there := tmp_path / "wörk place").mkdir()
    (one,) = entry(there, command="/gone/python")["mcpServers"].values()
    (two,) = entry(kiln.root / "gone")["mcpServers"].values()
    file = kiln.root / ".codeium" / "windsurf" / "mcp_config.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"mcpServers": {"second": one, "procedo": two}}), encoding="utf-8")
    broken = {f["found"]: f["hint"] for f in findings(kiln, 1) if f["about"] == "hosts" and f["state"] == "problem"}
    mend = "Write it anew with: procedo install windsurf"
    assert broken == {
        f"Windsurf, {file}, 'second': there is no program /gone/python any more": (
            f"{mend} --name second --workspace '{there}'"
        ),
        f"Windsurf, {file}: there is no folder {kiln.root}/gone": mend,
    }


def test_an_entry_that_does_not_start_is_a_problem_with_its_last_words(kiln: Workspace, tmp_path: Path) -> None:
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "procedo.py").write_text('raise SystemExit("no such luck")\n', encoding="utf-8")
    value = entry(kiln.root, env={"PYTHONPATH": str(shadow)})
    (kiln.root / ".claude.json").write_text(json.dumps(value), encoding="utf-8")
    told = about(findings(kiln, 1), "start")
    assert [state for state, _ in told][1:] == ["problem"]
    assert told[1][1].startswith("the entry of Claude Code does not start from a bare environment")
    assert "no such luck" in told[1][1]


def test_an_entry_that_needs_a_path_of_yours_is_a_problem(kiln: Workspace, tmp_path: Path) -> None:
    program = tmp_path / "programs" / "procedo"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m procedo "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    value = entry(kiln.root, command="procedo", args=["serve", "--workspace", str(kiln.root)])
    (kiln.root / ".claude.json").write_text(json.dumps(value), encoding="utf-8")
    path = f"{program.parent}:{os.environ['PATH']}"
    told = about(findings(kiln, 1, PATH=path), "start")
    assert told[1][0] == "problem"
    assert "there is no program 'procedo'" in told[1][1]


def test_keys_are_looked_for_and_never_shown(workspace: Workspace) -> None:
    provider = '[providers.models.openai_compatible.big]\nmodel = "m"\nendpoint = "http://127.0.0.1:1/v1"\n'
    text = toml(more=provider + 'api_key = { env = "BIG_KEY" }\n')
    (workspace.root / "procedo.toml").write_text(text, encoding="utf-8")
    (workspace.root / "script.toml").write_text("", encoding="utf-8")
    (missing,) = about(findings(workspace, 1), "keys")
    assert missing == ("problem", "provider 'openai_compatible.big': there is no value behind env:BIG_KEY")
    done = Workspace(workspace.root, {"BIG_KEY": VALUE}).run("doctor", "--json")
    assert about(done.value["findings"], "keys") == [
        ("ok", "provider 'openai_compatible.big': there is a value behind env:BIG_KEY")
    ]
    assert VALUE not in done.out + done.err


@pytest.mark.parametrize(
    ("words", "more", "state", "said"),
    [
        (("tools=a,b",), "", "ok", "'tools' answers with 2 tools"),
        (("fail",), "", "problem", "'tools' cannot be reached: "),
        (("fail",), "required = false\n", "warning", "'tools' cannot be reached: "),
    ],
)
def test_servers_of_agents_are_started(
    workspace: Workspace, words: tuple[str, ...], more: str, state: str, said: str
) -> None:
    text = toml(agent=WITH_BUNDLE, more=server("tools", *words, more=more) + BUNDLE)
    (workspace.root / "procedo.toml").write_text(text, encoding="utf-8")
    (workspace.root / "script.toml").write_text('[[turns]]\ntext = "fine"\n', encoding="utf-8")
    ((found, told),) = about(findings(workspace, int(state == "problem")), "servers")
    assert (found, told[: len(said)]) == (state, said)


async def test_tools_that_are_not_what_a_session_holds_are_told(tmp_path: Path) -> None:
    text = toml(agent=WITH_BUNDLE, more=server("tools", "tools=a,b") + BUNDLE)
    (tmp_path / "procedo.toml").write_text(text, encoding="utf-8")
    settings = load(tmp_path)
    table = settings.agents.servers["tools"]
    pins = {("tools", "a"): "another digest", ("tools", "gone"): "any", ("other", "b"): "of another server"}
    (changed,) = await agents_server(settings, table, {}, pins)
    assert (changed.state, changed.found) == ("warning", "'tools' changed tools that a session holds: a, gone")
    (same,) = await agents_server(settings, table, {}, {})
    assert same.state == "ok"


def test_what_an_agent_is_made_of_and_is_not_there_is_told(workspace: Workspace) -> None:
    (workspace.root / "procedo.toml").write_text(
        toml(agent='instructions_file = "who.md"\nworkspace.path = "drafts"'), encoding="utf-8"
    )
    root = workspace.root.resolve()
    assert about(findings(workspace, 1), "agents") == [
        ("problem", f"agent 'reviewer': its workspace {root / 'drafts'} is no folder"),
        ("problem", f"agent 'reviewer': its instructions {root / 'who.md'} are not there"),
        (
            "problem",
            f"provider 'scripted.demo': the script {root / 'script.toml'} cannot be read: No such file or directory",
        ),
    ]
    (root / "drafts").mkdir()
    (root / "who.md").write_text("You review.", encoding="utf-8")
    (root / "script.toml").write_text('[[turns]]\ntext = "fine"\n', encoding="utf-8")
    assert about(findings(workspace, 0), "agents") == []


def test_programs_that_are_allowed_and_not_there_are_told(workspace: Workspace) -> None:
    text = '[capabilities.shell]\nenabled = true\nallowed_commands = ["sh", "no-such-program-here"]\n'
    (workspace.root / "procedo.toml").write_text(text, encoding="utf-8")
    assert about(findings(workspace, 0), "programs") == [
        ("warning", "shell.exec allows what is not here: no-such-program-here")
    ]


async def test_tokens_that_have_expired_are_named(kiln: Workspace) -> None:
    maker = Principal(Source.CLI, "ada", PrincipalKind.HUMAN)
    async with open_app(kiln.root, worker=False, clock=MovedClock()) as app:
        for name, days in (("old", 1), ("new", 400_000)):
            await app.tokens.create(
                name,
                maker,
                subject=name,
                kind=PrincipalKind.HUMAN,
                roles=[Role.VIEW],
                lifetime_s=timedelta(days=days).total_seconds(),
            )
    assert about(findings(kiln, 0), "tokens") == [("warning", "expired: old"), ("ok", "1 live")]


def test_a_store_of_a_newer_program_is_a_problem_and_left_alone(kiln: Workspace) -> None:
    kiln.json("start", "kiln-firing")
    file = kiln.root / ".procedo" / "procedo.db"
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    (store,) = [one for one in findings(kiln, 1) if one["about"] == "store"]
    assert "has schema version 999" in store["found"]
    assert store["hint"] == "A newer procedo wrote it: update this one."


def test_a_store_of_an_earlier_version_is_told_and_not_brought_up_to_date(kiln: Workspace) -> None:
    kiln.json("start", "kiln-firing")
    file = kiln.root / ".procedo" / "procedo.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION - 1}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = file.read_bytes()
    ((state, said),) = about(findings(kiln, 0), "store")
    assert (state, f"has schema version {SCHEMA_VERSION - 1}" in said) == ("warning", True)
    assert file.read_bytes() == before


def test_no_store_is_made_where_its_folder_is_empty(kiln: Workspace) -> None:
    (folder := kiln.root / ".procedo").mkdir()
    assert about(findings(kiln, 0), "store") == [("ok", f"none yet; the first run makes it in {folder}")]
    assert list(folder.iterdir()) == []
    (file := folder / "procedo.db").touch(0o600)
    assert about(findings(kiln, 0), "store") == [("ok", "empty; the first run fills it")]
    assert file.stat().st_size == 0


def test_what_stands_where_the_store_should_is_a_problem(kiln: Workspace) -> None:
    (kiln.root / ".procedo").write_text("no folder")
    found = findings(kiln, 1)
    assert ("problem", f"{kiln.root}/.procedo is no folder") in about(found, "disk")
    ((state, said),) = about(found, "store")
    assert (state, "cannot be opened: Not a directory" in said) == ("problem", True)
    assert about(found, "start") != [], "the look goes on"


def test_a_look_that_the_machine_refuses_is_a_problem_and_no_end(tmp_path: Path) -> None:
    def look() -> Iterator[Finding]:
        (tmp_path / "gone").stat()
        yield Finding("disk", "ok", "there")

    ((about_what, state, said),) = [(one.about, one.state, one.found) for one in looked("disk", look)]
    assert (about_what, state, said) == (
        "disk",
        "problem",
        f"{tmp_path}/gone cannot be looked at: No such file or directory",
    )


def test_a_store_that_others_can_read_is_told_with_the_command_that_closes_it(kiln: Workspace) -> None:
    kiln.json("start", "kiln-firing")
    file = kiln.root / ".procedo" / "procedo.db"
    assert about(findings(kiln, 0), "permissions") == []
    file.chmod(0o644)
    (told,) = [one for one in findings(kiln, 0) if one["about"] == "permissions"]
    assert (told["state"], told["hint"]) == ("warning", f"chmod go= {file}")


async def test_a_record_that_is_ahead_of_the_clock_is_told(kiln: Workspace) -> None:
    kiln.json("start", "kiln-firing")
    assert [state for state, _ in about(findings(kiln, 0), "clock")] == ["ok"]
    connection = sqlite3.connect(kiln.root / ".procedo" / "procedo.db")
    (moment,) = connection.execute("SELECT max(active_at) FROM runs").fetchone()
    connection.execute("UPDATE runs SET active_at = ?", (moment.replace("20", "29", 1),))
    connection.commit()
    connection.close()
    states = [state for state, _ in about(findings(kiln, 0), "clock")]
    assert sorted(states) == ["ok", "warning"]


def test_a_clock_before_this_program_was_written_is_a_problem() -> None:
    past = MovedClock().now() - timedelta(days=3000)
    assert [finding.state for finding in clock(past)] == ["problem"]


def test_what_depends_on_a_broken_configuration_is_left_out(kiln: Workspace) -> None:
    (kiln.root / "procedo.toml").write_text("[sop]\nmax_concurent_total = 2\n", encoding="utf-8")
    names = {finding["about"] for finding in findings(kiln, 1)}
    assert {"configuration", "hosts", "clock"} <= names
    assert not names & {"store", "start", "servers", "keys"}


def test_people_see_a_line_for_each_and_the_hints_below(kiln: Workspace) -> None:
    (kiln.root / ".gemini").mkdir()
    (kiln.root / ".gemini" / "settings.json").write_text("{", encoding="utf-8")
    done = kiln.run("doctor")
    assert done.code == 1
    lines = done.out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("problem  hosts"))
    assert f"{kiln.root}/.gemini/settings.json:1:2: the end of the file" in lines[at]
    assert lines[at + 1].strip().startswith("-> ")
    assert lines[-1] == "Mend the problems, then look again."
