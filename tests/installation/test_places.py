"""Where each host keeps its servers, on each platform and with the variables that move it."""

from pathlib import Path

import pytest
from repository import ROOT

from procedo.surfaces.cli.installation.entry import Started, State, Wanted, started, state_of
from procedo.surfaces.cli.installation.hosts import HOSTS, Scope, Surroundings, host_file

pytestmark = pytest.mark.requirement("install")

HOME = "/home/ann"
USUAL = {
    "linux": {
        "claude-desktop": ".config/Claude/claude_desktop_config.json",
        "claude-code": ".claude.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".config/Code/User/mcp.json",
        "windsurf": ".codeium/windsurf/mcp_config.json",
        "zed": ".config/zed/settings.json",
        "codex": ".codex/config.toml",
        "gemini": ".gemini/settings.json",
    },
    "darwin": {
        "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
        "vscode": "Library/Application Support/Code/User/mcp.json",
        "zed": ".config/zed/settings.json",
    },
    "win32": {
        "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
        "claude-code": ".claude.json",
        "vscode": "AppData/Roaming/Code/User/mcp.json",
        "zed": "AppData/Roaming/Zed/settings.json",
        "codex": ".codex/config.toml",
    },
}


@pytest.mark.parametrize("platform", USUAL)
def test_the_file_of_each_host(platform: str) -> None:
    around = Surroundings({"HOME": HOME, "USERPROFILE": HOME}, Path("/srv"), platform)
    found = {name: host_file(HOSTS[name], Scope.USER, around) for name in USUAL[platform]}
    assert found == {name: Path(HOME, place) for name, place in USUAL[platform].items()}


@pytest.mark.parametrize(
    ("host", "platform", "variables", "expected"),
    [
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/etc/cc"}, "/etc/cc/.claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "  "}, "/home/ann/.claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "cc"}, "/srv/cc/.claude.json"),
        ("codex", "linux", {"CODEX_HOME": "/cx"}, "/cx/config.toml"),
        ("gemini", "linux", {"GEMINI_CLI_HOME": "/g"}, "/g/.gemini/settings.json"),
        ("zed", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/zed/settings.json"),
        ("zed", "darwin", {"XDG_CONFIG_HOME": "/x"}, "/home/ann/.config/zed/settings.json"),
        ("zed", "linux", {"XDG_CONFIG_HOME": "relative"}, "/home/ann/.config/zed/settings.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
        ("vscode", "linux", {"VSCODE_PORTABLE": "/p", "XDG_CONFIG_HOME": "/x"}, "/p/user-data/User/mcp.json"),
        ("claude-desktop", "win32", {"APPDATA": "/roaming"}, "/roaming/Claude/claude_desktop_config.json"),
    ],
)
def test_variables_that_move_a_host_are_heard(
    host: str, platform: str, variables: dict[str, str], expected: str
) -> None:
    around = Surroundings({"HOME": HOME, "USERPROFILE": HOME, **variables}, Path("/srv"), platform)
    assert host_file(HOSTS[host], Scope.USER, around) == Path(expected)


def test_the_app_of_the_store_is_found_where_it_was_installed_alone(tmp_path: Path) -> None:
    around = Surroundings({"USERPROFILE": HOME, "LOCALAPPDATA": str(tmp_path)}, Path("/srv"), "win32")
    host = HOSTS["claude-desktop"]
    assert host_file(host, Scope.USER, around) == Path(HOME, "AppData/Roaming/Claude/claude_desktop_config.json")
    folder = tmp_path / "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude"
    folder.mkdir(parents=True)
    assert host_file(host, Scope.USER, around) == folder / "claude_desktop_config.json"


def test_projects_have_their_file_in_the_present_folder() -> None:
    around = Surroundings({"HOME": HOME}, Path("/srv/shop"), "linux")
    places = {name: host.project for name, host in HOSTS.items() if Scope.PROJECT in host.scopes}
    assert places == {
        "claude-code": ".mcp.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".vscode/mcp.json",
        "zed": ".zed/settings.json",
        "codex": ".codex/config.toml",
        "gemini": ".gemini/settings.json",
    }
    assert host_file(HOSTS["cursor"], Scope.PROJECT, around) == Path("/srv/shop/.cursor/mcp.json")


@pytest.mark.parametrize(
    ("entry", "workspace", "more"),
    [
        ({"command": "/v/bin/python", "args": ["-m", "procedo", "serve", "--workspace", "/w"]}, "/w", ()),
        ({"command": "/v/bin/procedo", "args": ["serve", "--workspace=/w", "--inbox"]}, "/w", ("--inbox",)),
        ({"command": "C:\\v\\procedo.exe", "args": ["serve"], "env": {"PROCEDO_WORKSPACE": "C:\\w"}}, "C:\\w", ()),
        ({"command": "uvx", "args": ["procedo", "serve"]}, None, ()),
        (
            {"command": "/opt/uv", "args": ["tool", "run", "procedo==1.0", "serve", "--port", "1"]},
            None,
            ("--port", "1"),
        ),
    ],
)
def test_an_entry_that_starts_us_is_known_however_it_is_written(
    entry: dict[str, object], workspace: str | None, more: tuple[str, ...]
) -> None:
    how = started(entry)
    assert how is not None
    assert (how.workspace, how.more) == (workspace, more)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "args": ["-y", "@other/serve", "procedo"]},
        {"command": "/bin/python", "args": ["-m", "other", "serve"]},
        {"command": "uvx", "args": ["procedo-other-thing", "serve"]} | {"command": "npx"},
        {"url": "https://example.org/mcp"},
        {"command": 5, "args": []},
        {"command": "procedo", "args": "serve"},
        {"command": "procedo"},
        "procedo serve",
        None,
    ],
)
def test_an_entry_of_anybody_else_is_not_ours(entry: object) -> None:
    assert started(entry) is None


def test_how_an_entry_stands(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("")
    program.chmod(0o755)
    wanted = Wanted(str(program), str(tmp_path))
    how = Started(str(program), (), str(tmp_path), (), {})
    states = {
        (how.command, how.workspace): State.CURRENT,
        (str(tmp_path / "gone"), how.workspace): State.BROKEN,
        ("no-such-program-here", how.workspace): State.BROKEN,
        (how.command, str(tmp_path / "nowhere")): State.BROKEN,
        (how.command, str(tmp_path.parent)): State.ELSEWHERE,
        (how.command, None): State.ELSEWHERE,
        ("/bin/sh", how.workspace): State.OTHER_PROGRAM,
    }
    found = {pair: state_of(Started(*(pair[0], (), pair[1], (), {})), wanted)[0] for pair in states}
    assert found == states


def test_the_page_on_hosts_names_every_place_of_every_host() -> None:
    page = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for name, host in HOSTS.items():
        places = [place.removeprefix("?") for places in host.user.values() for place in places]
        wanted = [*places, *([host.project] if host.project else [])]
        assert [place for place in wanted if f"`{place}`" not in rows[name]] == [], name
        assert host.title in page
