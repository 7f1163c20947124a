"""Coding agents of other makers, as their users install them, walk a procedure through its gate.

The programs are the real ones, set up by their own commands in a home of their own; their model is played on this
machine. What an agent tells its model of an answer differs: the structured part, or the text. Each alone has to do.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest
from gate_walk import walks_through_its_gate
from model_endpoint import Endpoint, endpoint
from node_tools import node, packages
from played_client import Prompted
from reached import Reach, ran, reached

pytestmark = pytest.mark.requirement("real-clients")
PATIENCE_MS = 240_000
"""How long a client waits for the server to start; their own patience is too short for a busy machine."""


@dataclass(frozen=True)
class Installed:
    """An agent that is set up: what adds the server to it, what lists servers, and what begins a conversation."""

    environ: dict[str, str]
    add: tuple[str, ...]
    listing: tuple[str, ...]
    prompt: tuple[str, ...]


SetUp: TypeAlias = Callable[[Reach, str], Installed]


def claude_code(reach: Reach, model: str) -> Installed:
    package = "@anthropic-ai/claude-code"
    claude = str(packages(package) / "node_modules" / package / "bin" / "claude.exe")
    environ = reach.environment(
        CLAUDE_CONFIG_DIR=str(reach.place.root / "home"),
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        ANTHROPIC_BASE_URL=model,
        ANTHROPIC_API_KEY="none",
        MCP_TIMEOUT=str(PATIENCE_MS),
        MCP_CONNECTION_NONBLOCKING="false",
    )
    server = ("--transport", "http", "procedo", reach.url) if reach.url else ("procedo", "--", *reach.command)
    allowed = ("--allowedTools", "mcp__procedo__*")
    return Installed(environ, (claude, "mcp", "add", *server), (claude, "mcp", "list"), (claude, *allowed, "-p"))


def gemini_cli(reach: Reach, model: str) -> Installed:
    script = packages("@google/gemini-cli") / "node_modules" / ".bin" / "gemini"
    gemini = (node(), str(script.resolve()))
    environ = reach.environment(
        GEMINI_CLI_HOME=str(reach.place.root / "home"),
        GEMINI_CLI_TRUST_WORKSPACE="true",
        GOOGLE_GEMINI_BASE_URL=model,
        GEMINI_API_KEY="none",
    )
    chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    (reach.place.root / ".gemini").mkdir()
    (reach.place.root / ".gemini" / "settings.json").write_text(json.dumps(chosen), encoding="utf-8")
    server = ("--transport", "http", "procedo", reach.url) if reach.url else ("procedo", *reach.command)
    prompt = (*gemini, "--approval-mode", "yolo", "--model", "gemini-2.5-pro", "--prompt")
    add = (*gemini, "mcp", "add", "--timeout", str(PATIENCE_MS), *server)
    return Installed(environ, add, (*gemini, "mcp", "list"), prompt)


CODEX = """
model = "played"
model_provider = "played"

[model_providers.played]
name = "played"
base_url = "{model}/v1"
env_key = "PLAYED_KEY"
wire_api = "responses"
"""
# Where nobody can be asked, a tool that is not approved beforehand is refused; and a server that is not required may
# be missing from the first turn.
CODEX_SERVER = """
required = true
default_tools_approval_mode = "approve"
startup_timeout_sec = 240
"""


def codex(reach: Reach, model: str) -> Installed:
    script = packages("@openai/codex") / "node_modules" / ".bin" / "codex"
    program = (node(), str(script.resolve()))
    home = reach.place.root / "home"
    home.mkdir()
    (home / "config.toml").write_text(CODEX.format(model=model), encoding="utf-8")
    server = ("procedo", "--url", reach.url) if reach.url else ("procedo", "--", *reach.command)
    environ = reach.environment(CODEX_HOME=str(home), PLAYED_KEY="none")
    prompt = (*program, "exec", "--skip-git-repo-check")
    return Installed(environ, (*program, "mcp", "add", *server), (*program, "mcp", "list"), prompt)


def opencode(reach: Reach, model: str) -> Installed:
    program = str(packages("opencode-ai") / "node_modules" / ".bin" / "opencode")
    if reach.url:
        server = {"type": "remote", "url": reach.url, "enabled": True, "timeout": PATIENCE_MS}
    else:
        server = {"type": "local", "command": [*reach.command], "enabled": True, "timeout": PATIENCE_MS}
    played = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "played",
        "options": {"baseURL": f"{model}/v1", "apiKey": "none"},
        "models": {"model": {"name": "model", "tool_call": True}},
    }
    config = {"model": "played/model", "provider": {"played": played}, "mcp": {"procedo": server}}
    (reach.place.root / "opencode.json").write_text(json.dumps(config), encoding="utf-8")
    environ = reach.environment(OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_MODELS_FETCH="1")
    return Installed(environ, (), (program, "mcp", "list"), (program, "run"))


def set_up(reach: Reach, model: Endpoint, how: SetUp, more: str = "") -> tuple[Prompted, str]:
    """The agent with our server, and what it says of its servers."""
    found = how(reach, model.origin)
    if found.add:
        ran(found.add, found.environ, reach.place.root)
    if more:
        with (reach.place.root / "home" / "config.toml").open("a", encoding="utf-8") as file:
            file.write(more)
    listed = ran(found.listing, found.environ, reach.place.root)
    return Prompted(model, lambda text: (*found.prompt, text), found.environ, reach.place.root), listed


AGENTS = [
    pytest.param(claude_code, "stdio", "✔ Connected", "claude-code", "structured", id="claude-code-stdio"),
    pytest.param(claude_code, "http", "✔ Connected", "claude-code", "structured", id="claude-code-http"),
    pytest.param(gemini_cli, "stdio", "Connected", "gemini-cli-mcp-client", "text", id="gemini-cli"),
    pytest.param(codex, "stdio", "enabled", "codex-mcp-client", "structured", id="codex-stdio"),
    pytest.param(codex, "http", "enabled", "codex-mcp-client", "structured", id="codex-http"),
    pytest.param(opencode, "stdio", "connected", "opencode", "text", id="opencode"),
]


@pytest.mark.parametrize(("how", "transport", "standing", "name", "form"), AGENTS)
def test_a_coding_agent_walks_a_procedure_through_its_gate(
    tmp_path: Path, how: SetUp, transport: str, standing: str, name: str, form: str
) -> None:
    with reached(tmp_path, transport) as reach, endpoint() as model:
        client, listed = set_up(reach, model, how, CODEX_SERVER if how is codex else "")
        assert re.search(f"procedo.*{standing}", listed), listed
        walks_through_its_gate(client, reach, name)
    assert {seen.forms for seen in client.seen} == {frozenset({form})}
