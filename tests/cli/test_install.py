"""The server is put into the files of hosts, and taken out again, by commands that people type."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from commands import Done, Workspace
from mcp import Client, StdioServerParameters
from node_tools import node, packages

from procedo.surfaces.cli.installation.hosts import HOSTS, Form, Scope, Surroundings, host_file
from procedo.surfaces.cli.installation.jsonscan import value_of

pytestmark = pytest.mark.requirement("install")

BOUND_S = 240
STEPS = "1. **Only** — Do it.\n   - terminal: true\n"


@pytest.fixture
def desk(tmp_path: Path) -> Workspace:
    """A workspace whose home folder is its own."""
    home = tmp_path / "shop"
    (home / "sops").mkdir(parents=True)
    place = Workspace(home)
    place.simple("plain", STEPS)
    return place


def args(workspace: Path) -> list[str]:
    return ["-P", "-m", "procedo", "serve", "--workspace", str(workspace)]


def file_of(desk: Workspace, name: str, scope: Scope = Scope.USER) -> Path:
    return host_file(HOSTS[name], scope, Surroundings({"HOME": str(desk.root)}, desk.root))


def servers(desk: Workspace, name: str, scope: Scope = Scope.USER) -> Any:
    host, text = HOSTS[name], file_of(desk, name, scope).read_text(encoding="utf-8")
    value = tomllib.loads(text) if host.form is Form.TOML else value_of(text, host.form)
    return value[host.key]


def everything(desk: Workspace) -> dict[str, bytes]:
    found = [path for path in desk.root.rglob("*") if path.is_file() and "sops" not in path.parts]
    return {str(path.relative_to(desk.root)): path.read_bytes() for path in found}


@pytest.mark.parametrize("name", HOSTS)
def test_each_host_is_given_the_interpreter_and_the_workspace_in_full(desk: Workspace, name: str) -> None:
    done = desk.json("install", name)
    expected = {"command": sys.executable, "args": args(desk.root)}
    if HOSTS[name].typed:
        expected = {"type": "stdio", **expected}
    assert servers(desk, name) == {"procedo": expected}
    assert done == {
        "host": name,
        "scope": "user",
        "file": str(file_of(desk, name)),
        "name": "procedo",
        "change": "added",
        "dry_run": False,
        "by_hand": [],
        "backup": None,
        "remarks": [],
        "then": HOSTS[name].then,
    }
    before = everything(desk)
    assert desk.json("install", name)["change"] == "none"
    assert "already" in desk.run("install", name).out
    assert everything(desk) == before


@pytest.mark.parametrize("name", HOSTS)
def test_other_servers_and_layout_stay_and_removing_leaves_the_file_as_it_was(desk: Workspace, name: str) -> None:
    host, file = HOSTS[name], file_of(desk, name)
    note = "" if host.form is Form.JSON else " // of theirs"
    text = f'{{\n    "theme": "dark",\n    "{host.key}": {{\n        "theirs": {{"url": "x"}}{note}\n    }}\n}}\n'
    if host.form is Form.TOML:
        text = f'theme = "dark" # mine\n\n[{host.key}.theirs]\nurl = "x"\n'
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o640)

    added = desk.json("install", name)
    assert added["change"] == "added"
    assert Path(added["backup"]).read_text(encoding="utf-8") == text
    assert servers(desk, name)["theirs"] == {"url": "x"}
    assert file.stat().st_mode & 0o777 == 0o640
    removed = desk.json("install", name, "--remove")
    assert (removed["change"], removed["by_hand"]) == ("removed", [])
    assert file.read_text(encoding="utf-8") == text
    assert desk.json("install", name, "--remove")["change"] == "none"
    assert "not there" in desk.run("install", name, "--remove").out


@pytest.mark.anyio
async def test_the_entry_runs_nothing_that_lies_in_the_folder_that_the_host_has_open(
    desk: Workspace, tmp_path: Path
) -> None:
    desk.json("install", "claude-code")
    found = servers(desk, "claude-code")["procedo"]
    project = tmp_path / "project"
    project.mkdir()
    for name in ("procedo", "mcp", "json"):
        (project / f"{name}.py").write_text('raise SystemExit("taken over")\n', encoding="utf-8")
    program = StdioServerParameters(command=found["command"], args=found["args"], cwd=str(project))
    async with Client(program) as client:
        answer = await client.call_tool("sop_list", {})
    assert answer.structured_content is not None
    assert [one["name"] for one in answer.structured_content["sops"]] == ["plain"]


def test_a_dry_run_shows_the_change_and_makes_none(desk: Workspace) -> None:
    file = file_of(desk, "vscode", Scope.PROJECT)
    file.parent.mkdir()
    file.write_text('{\n  // ours\n  "servers": {},\n}\n', encoding="utf-8")
    before = everything(desk)
    shown = desk.run("install", "vscode", "--scope", "project", "--dry-run")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[:2] == [f"--- {file}", f"+++ {file}"]
    assert '-  "servers": {},' in lines
    assert f'+      "command": "{sys.executable}",' in lines
    assert everything(desk) == before
    assert desk.json("install", "vscode", "--scope", "project", "--dry-run")["diff"].rstrip() == shown.out.rstrip()
    desk.json("install", "vscode", "--scope", "project")
    removing = desk.run("install", "vscode", "--scope", "project", "--remove", "--dry-run").out
    assert f'-      "command": "{sys.executable}",' in removing.splitlines()
    assert "procedo" in servers(desk, "vscode", Scope.PROJECT)


def test_what_people_added_to_our_entry_stays_and_is_named_when_it_goes(desk: Workspace, tmp_path: Path) -> None:
    held = {
        "command": "/gone/python",
        "args": ["-m", "procedo", "serve", "--inbox", "--workspace", "/old"],
        "timeout": 90,
        "env": {"LANG": "C"},
    }
    file_of(desk, "claude-code").write_text(json.dumps({"mcpServers": {"procedo": held}}), encoding="utf-8")
    changed = desk.json("install", "claude-code", "--env", "MODE=calm")
    assert (changed["change"], changed["by_hand"]) == ("updated", ["timeout", "env.LANG", "--inbox"])
    assert servers(desk, "claude-code")["procedo"] == {
        "command": sys.executable,
        "args": [*args(desk.root), "--inbox"],
        "timeout": 90,
        "env": {"LANG": "C", "MODE": "calm"},
        "type": "stdio",
    }
    removed = desk.run("install", "claude-code", "--remove")
    assert "also held  timeout, env.LANG, env.MODE, --inbox (in the backup)" in removed.out


def test_a_name_and_variables_are_written_when_they_are_asked_for(desk: Workspace) -> None:
    done = desk.json("install", "codex", "--name", "shop", "--env", "A=1=2", "--env", "API_KEY=x")
    expected = {"command": sys.executable, "args": args(desk.root), "env": {"A": "1=2", "API_KEY": "x"}}
    assert servers(desk, "codex") == {"shop": expected}
    assert [remark.split()[0] for remark in done["remarks"]] == ["API_KEY"]
    assert "x" not in done["remarks"][0].split()


REFUSED: dict[str, tuple[bytes, str]] = {
    "a comment": (b'{\n  "a": 1 // no\n}', ":2:10: a comment, and this host reads none."),
    "a trailing comma": (b'{"a": 1,}', ":1:8: a comma before }, and this host reads none."),
    "a broken text": (b'{"a": \n\n', ":3:1: the end of the file where a value was expected."),
    "a doubled key": (b'{"mcpServers": {}, "mcpServers": {}}', ":1:20: the key"),
    "another encoding": (b'{"a": "\xff"}', ":1:8: the file is not UTF-8."),
    "a wide encoding": ('{"a": 1}'.encode("utf-16"), ":1:1: the file is not UTF-8."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_its_host_cannot_read_is_named_with_its_place_and_left_alone(desk: Workspace, name: str) -> None:
    data, place = REFUSED[name]
    file = file_of(desk, "claude-desktop")
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    before = everything(desk)
    for words in ((), ("--remove",), ("--dry-run",)):
        done = desk.run("install", "claude-desktop", *words, "--json")
        assert done.code == 1
        assert done.error["message"].startswith(f"{file}{place}")
    assert everything(desk) == before
    (seen,) = [one for one in desk.json("install")["hosts"] if one["host"] == "claude-desktop"]
    assert [entry["state"] for entry in seen["entries"]] == ["unreadable"]


def test_a_byte_order_mark_and_foreign_line_ends_stay(desk: Workspace) -> None:
    file = file_of(desk, "cursor")
    file.parent.mkdir(parents=True)
    file.write_bytes(b'\xef\xbb\xbf{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t}\r\n}\r\n')
    before = file.read_bytes()
    desk.json("install", "cursor")
    after = file.read_bytes()
    assert after.startswith(b'\xef\xbb\xbf{\r\n\t"mcpServers": {\r\n\t\t"a": {},\r\n\t\t"procedo": {\r\n\t\t\t"type"')
    assert after.count(b"\n") == after.count(b"\r\n")
    desk.json("install", "cursor", "--remove")
    assert file.read_bytes() == before


def test_a_server_of_that_name_that_is_not_ours_is_left_alone(desk: Workspace) -> None:
    file = file_of(desk, "gemini")
    file.parent.mkdir(parents=True)
    file.write_text('{"mcpServers": {"procedo": {"command": "npx", "args": ["other"]}}}', encoding="utf-8")
    before = everything(desk)
    for words in ((), ("--remove",)):
        done = desk.run("install", "gemini", *words, "--json")
        assert (done.code, done.error["code"]) == (3, "name_taken")
    assert everything(desk) == before
    assert desk.json("install", "gemini", "--name", "ours")["change"] == "added"


@pytest.mark.parametrize(
    "words",
    [
        ("notepad",),
        ("claude-desktop", "--scope", "project"),
        ("zed", "--name", "a b"),
        ("zed", "--env", "A"),
        ("zed", "--env", "PROCEDO_TOKEN=x"),
        ("--remove",),
        ("zed", "--workspace", "/no/such/folder"),
    ],
)
def test_what_makes_no_sense_is_refused(desk: Workspace, words: tuple[str, ...]) -> None:
    before = everything(desk)
    done = desk.run("install", *words, "--json")
    assert (done.code, everything(desk)) == (2, before), done.out


def test_without_any_workspace_nothing_is_installed(tmp_path: Path) -> None:
    done = Workspace(tmp_path).run("install", "zed", "--json")
    assert (done.code, done.error["code"]) == (2, "no_workspace")
    assert "procedo new NAME" in done.error["hint"]


def listed(done: Done) -> dict[str, list[str]]:
    return {one["host"]: [entry["state"] for entry in one["entries"]] for one in done.value["hosts"]}


def test_the_list_tells_how_each_host_stands(desk: Workspace, tmp_path: Path) -> None:
    other = Workspace(tmp_path / "other")
    (other.root / "sops").mkdir(parents=True)
    broken = {"mcpServers": {"procedo": {"command": "/gone/python", "args": args(desk.root)}}}
    (desk.root / ".cursor").mkdir()
    (desk.root / ".cursor" / "mcp.json").write_text(json.dumps(broken), encoding="utf-8")
    desk.json("install", "zed")
    desk.json("install", "codex", "--workspace", str(other.root))
    (desk.root / ".gemini").mkdir()

    assert listed(desk.run("install", "--json")) == {
        "claude-desktop": [],
        "claude-code": [],
        # The home folder is the present one here, so a project's file is the user's.
        "cursor": ["broken", "broken"],
        "vscode": [],
        "windsurf": [],
        "zed": ["installed"],
        "codex": ["other workspace", "other workspace"],
        "gemini": [],
    }
    text = desk.run("install").out
    assert "there is no program /gone/python any more" in text
    assert "procedo install gemini" in text
    assert "not found here: " in text


def mcp_list(desk: Workspace, *command: str, **variables: str) -> str:
    """What a real host says of its servers. It asks nobody and knows nobody."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(desk.root), "TERM": "dumb", "NO_COLOR": "1", **variables}
    # Claude Code gives a server half a minute to start, which a busy machine may need more of.
    environ["MCP_TIMEOUT"] = "200000"
    done = subprocess.run(
        [*command, "mcp", "list"],
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        cwd=desk.root,
        env=environ,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_claude_code_itself_reaches_the_server(desk: Workspace) -> None:
    program = str(packages("@anthropic-ai/claude-code") / "node_modules/.bin/claude")
    moved = {"CLAUDE_CONFIG_DIR": str(desk.root / "cc")}
    place = Workspace(desk.root, moved)
    assert place.run("install", "claude-code").code == 0
    assert f"procedo: {sys.executable} {' '.join(args(desk.root))} - ✔ Connected" in mcp_list(desk, program, **moved)
    # Its own additions to the file are no reason to write it again.
    assert "already" in place.run("install", "claude-code").out
    assert place.run("install", "claude-code", "--remove").code == 0
    assert "procedo" not in mcp_list(desk, program, **moved)


def test_gemini_itself_reaches_the_server(desk: Workspace) -> None:
    script = packages("@google/gemini-cli") / "node_modules/@google/gemini-cli/bundle/gemini.js"
    moved = {"GEMINI_CLI_HOME": str(desk.root / "g")}
    place = Workspace(desk.root, moved)
    folder = desk.root / "g" / ".gemini"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text("{ // mine\n}\n", encoding="utf-8")
    (folder / "trustedFolders.json").write_text(json.dumps({str(desk.root): "TRUST_FOLDER"}), encoding="utf-8")
    assert place.run("install", "gemini").code == 0
    expected = f"procedo: {sys.executable} {' '.join(args(desk.root))} (stdio) - Connected"
    # It gives a server five seconds to answer, which a busy machine needs more of; the entry may say so by hand.
    settings = folder / "settings.json"
    settings.write_text(settings.read_text(encoding="utf-8").replace('"command"', '"timeout": 60000, "command"'))
    assert expected in mcp_list(desk, node(), str(script), **moved)


def test_codex_itself_lists_the_server(desk: Workspace) -> None:
    program = packages("@openai/codex") / "node_modules/@openai/codex/bin/codex.js"
    folder = desk.root / "cx"
    folder.mkdir()
    (folder / "config.toml").write_text('# mine\nmodel = "m"\n', encoding="utf-8")
    moved = {"CODEX_HOME": str(folder)}
    place = Workspace(desk.root, moved)
    assert place.run("install", "codex", "--env", "A=b").code == 0
    text = mcp_list(desk, node(), str(program), **moved)
    (row,) = [line for line in text.splitlines() if line.startswith("procedo")]
    assert row.split()[:2] == ["procedo", sys.executable]
    assert "enabled" in row.split()
