import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from procedo.config import KEYS, load, reference
from procedo.config.agent_settings import NO_AGENTS, FilterTable
from procedo.config.schema import config_schema
from procedo.credentials import SecretRef, SecretSource
from procedo.errors import InvalidConfig
from procedo.jsonschemas import compile_schema

WHOLE = """
[agents.reviewer]
model_provider = "openai_compatible.own"
risk_profile = "careful"
runtime_profile = "short"
mcp_bundles = ["docs"]
instructions = "You review."
[agents.reviewer.workspace]
path = "work"
access = "read"

[risk_profiles.careful]
level = "supervised"
allowed_tools = ["file_read", "docs__*", "docs__search"]
excluded_tools = ["docs__delete"]
always_ask = ["http_request"]
allowed_commands = ["git"]
allowed_hosts = ["*.example.org"]
forbidden_paths = ["vault"]
[risk_profiles.careful.approval_route]
policy = "human"
timeout_secs = 60

[runtime_profiles.short]
max_tool_iterations = 0
max_actions_per_hour = 0
max_cost_per_day_cents = 250
parallel_tools = true
[[runtime_profiles.short.tool_filter_groups]]
mode = "dynamic"
tools = ["docs__*"]
keywords = ["documentation"]

[providers.models.openai_compatible.own]
model = "m"
endpoint = "http://localhost:8080/v1/"
api_key = { file = "key.txt" }
temperature = 0.5
tool_mode = "schema"

[[mcp.servers]]
name = "docs"
command = "docs-server"
args = ["--fast", "--fast"]
env = { MODE = "x", TOKEN = { env = "DOCS_TOKEN" } }
read_only_tools = ["search"]
[[mcp.servers]]
name = "far"
transport = "http"
url = "https://example.org/mcp"
headers = { Authorization = { env = "FAR" } }

[mcp_bundles.docs]
servers = ["docs", "far"]
exclude = ["far"]
"""
MINIMAL = """
[agents.a]
model_provider = "scripted.s"
risk_profile = "r"
[risk_profiles.r]
[providers.models.scripted.s]
script = "s.toml"
"""


def problems(folder: Path, text: str) -> list[str]:
    (folder / "procedo.toml").write_text(text)
    try:
        load(folder)
    except InvalidConfig as error:
        return list(error.problems)
    return []


def test_without_tables_there_are_no_agents(tmp_path: Path) -> None:
    assert load(tmp_path).agents == NO_AGENTS


def test_every_table_is_read(tmp_path: Path) -> None:
    assert problems(tmp_path, WHOLE) == []
    found = load(tmp_path).agents
    agent, risk, runtime = found.agents["reviewer"], found.risks["careful"], found.runtimes["short"]
    assert (agent.workspace, agent.writable, agent.bundles) == (tmp_path / "work", False, ("docs",))
    assert (risk.sandbox, risk.policy, risk.ask_timeout_s) == ("bubblewrap", "human", 60.0)
    assert risk.forbidden_paths == (tmp_path / "vault",)
    assert risk.auto_approve == ("file_list", "file_read", "file_search")
    assert (runtime.iterations, runtime.actions_per_hour, runtime.parallel_calls) == (10, None, 4)
    assert (runtime.cost_usd_per_day, runtime.cost_usd_per_step) == (Decimal("2.5"), None)
    assert runtime.groups == (FilterTable("dynamic", ("docs__*",), ("documentation",)),)
    provider = found.providers["openai_compatible.own"]
    assert (provider.endpoint, provider.temperature) == ("http://localhost:8080/v1", 0.5)
    assert provider.key == SecretRef(SecretSource.FILE, "key.txt")
    assert found.secret_files == (tmp_path / "key.txt",)
    docs, far = found.servers["docs"], found.servers["far"]
    assert (docs.args, docs.env["TOKEN"]) == (("--fast", "--fast"), SecretRef(SecretSource.ENV, "DOCS_TOKEN"))
    assert (far.transport, far.url, far.required) == ("http", "https://example.org/mcp", True)


def test_the_defaults_are_narrow(tmp_path: Path) -> None:
    assert problems(tmp_path, MINIMAL) == []
    found = load(tmp_path).agents
    risk = found.risks["r"]
    assert (risk.level, risk.allowed_tools, risk.allowed_commands, risk.allowed_hosts) == ("supervised", (), (), ())
    assert (risk.block_high_risk, risk.ask_medium_risk, risk.workspace_only) == (True, True, True)
    assert found.agents["a"].runtime is None
    assert found.default_runtime == NO_AGENTS.default_runtime
    assert found.providers["scripted.s"].temperature is None


@pytest.mark.parametrize(
    ("change", "code", "anchor"),
    [
        (('risk_profile = "careful"', 'risk_profile = "carefull"'), "unknown-risk-profile", ""),
        (('runtime_profile = "short"', 'runtime_profile = "long"'), "unknown-runtime-profile", ""),
        (('mcp_bundles = ["docs"]', 'mcp_bundles = ["doc"]'), "unknown-bundle", ""),
        (('"openai_compatible.own"', '"openai_compatible.other"'), "unknown-provider", ""),
        (('"openai_compatible.own"', '"own"'), "bad-value", ""),
        (('path = "work"', 'path = "../work"'), "outside", ""),
        (('"file_read", "docs__*"', '"file_raed", "docs__*"'), "unknown-tool", ""),
        (('excluded_tools = ["docs__delete"]', 'excluded_tools = ["dosc__delete"]'), "unknown-tool", ""),
        (('always_ask = ["http_request"]', 'always_ask = ["*"]'), "unknown-tool", ""),
        (('policy = "human"', 'policy = "humans"'), "unknown-approval-policy", ""),
        (('keywords = ["documentation"]', ""), "keywords", "[[runtime"),
        (('tools = ["docs__*"]\nkey', 'tools = ["nope__*"]\nkey'), "unknown-tool", 'tools = ["nope'),
        (('mode = "dynamic"', 'mode = "sometimes"'), "bad-value", ""),
        (('"http://localhost:8080/v1/"', '"http://example.org/v1"'), "bad-value", ""),
        (('command = "docs-server"', ""), "missing-key", "[[mcp.servers]]"),
        (('command = "docs-server"', 'command = "docs-server"\nurl = "https://x.example"'), "idle-key", ""),
        (('name = "far"', 'name = "Docs"'), "name-collision", ""),
        (('name = "far"', 'name = "far__off"'), "bad-value", ""),
        (('transport = "http"', 'transport = "sse"'), "bad-value", ""),
        (('servers = ["docs", "far"]', 'servers = ["docs", "fra"]'), "unknown-server", ""),
        (('level = "supervised"', 'levle = "supervised"'), "unknown-key", ""),
        (("[agents.reviewer]", "[agents.host]"), "host-agent", ""),
        (('instructions = "You review."', "temperature = 1"), "unknown-key", ""),
        (('instructions = "You review."', 'kind = "acp"'), "unavailable-kind", ""),
        (('instructions = "You review."', 'kind = "remote"'), "unavailable-kind", ""),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_would_be_right(
    tmp_path: Path, change: tuple[str, str], code: str, anchor: str
) -> None:
    text = WHOLE.replace(*change, 1)
    assert text != WHOLE
    found = problems(tmp_path, text)
    place = text.index(anchor) if anchor else text.index(change[1]) + change[1].rfind("\n") + 1
    expected = f"procedo.toml:{text[:place].count(chr(10)) + 1}: error[{code}]: "
    assert [line for line in found if line.startswith(expected)], found
    assert all(line.endswith(")") for line in found)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("[providers.models.gemini.x]\nmodel = 'm'\n", "unknown-key"),
        ("[mcp]\nservers = 'docs'\n", "wrong-type"),
        ("[mcp]\ndeferred_loading = true\n", "unknown-key"),
        (
            "[[mcp.servers]]\nname = 'x'\ncommand = 'y'\nread_only_tools = ['a']\nidempotent_tools = ['a']\n",
            "ambiguous",
        ),
        ("[risk_profiles.x]\nsandbox_enabled = false\nsandbox_backend = 'bubblewrap'\n", "ambiguous"),
        ("[providers.models.openai.x]\nmodel = 'm'\n", "missing-key"),
        (
            "[providers.models.openai.x]\nmodel = 'm'\napi_key = { env = 'K' }\ninput_usd_per_million = 1\n",
            "half-price",
        ),
        ("[risk_profiles.x]\nallowed_tools = ['docs__a*']\n", "unknown-tool"),
        ("[risk_profiles.r2]\n[risk_profiles.R2]\n", "name-collision"),
    ],
)
def test_what_contradicts_itself_is_a_problem(tmp_path: Path, more: str, code: str) -> None:
    assert [line for line in problems(tmp_path, MINIMAL + more) if f"error[{code}]" in line]


def test_keys_from_elsewhere_are_told_where_they_went(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, MINIMAL.replace("[risk_profiles.r]", "skill_bundles = []\n[risk_profiles.r]"))
    assert "agents have no such stores in this version" in told


def test_a_missing_keyring_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from procedo.config import agent_forms

    text = MINIMAL + "[providers.models.openai.x]\nmodel = 'm'\napi_key = { keyring = 'procedo/openai' }\n"
    monkeypatch.setattr(agent_forms, "has_keyring", lambda: False)
    (told,) = problems(tmp_path, text)
    assert "the package 'keyring' is not installed" in told
    monkeypatch.setattr(agent_forms, "has_keyring", lambda: True)
    assert problems(tmp_path, text) == []


# --- the schema for editors ---------------------------------------------------------------------


@pytest.mark.requirement("schemas")
def test_the_schema_knows_every_key_of_the_table() -> None:
    schema = config_schema()
    compile_schema(schema)
    for key in KEYS:
        place = schema
        for part in key.table.split("."):
            if part.startswith("<"):
                (place,) = place["patternProperties"].values()
                continue
            place = place["properties"][part.removesuffix("[]")]
            place = place["items"] if part.endswith("[]") else place
        assert place["additionalProperties"] is False
        assert place["properties"][key.name]["description"] == key.meaning
        assert (key.name in place.get("required", ())) == key.required


@pytest.mark.parametrize("text", [WHOLE, MINIMAL, ""])
def test_the_schema_takes_what_the_reader_takes(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text) == []
    assert compile_schema(config_schema()).violations(tomllib.loads(text)) == ()


@pytest.mark.parametrize(
    "change",
    [
        ('level = "supervised"', 'levle = "supervised"'),
        ('level = "supervised"', 'level = "super"'),
        ('name = "far"', 'name = "far__off"'),
        ('api_key = { file = "key.txt" }', 'api_key = "sk-literal"'),
        ('access = "read"', "access = 1"),
        ("timeout_secs = 60", 'timeout_secs = "60"'),
        ('risk_profile = "careful"', ""),
    ],
)
def test_the_schema_objects_to_what_the_reader_objects_to(tmp_path: Path, change: tuple[str, str]) -> None:
    text = WHOLE.replace(*change, 1)
    assert text != WHOLE
    assert problems(tmp_path, text)
    assert compile_schema(config_schema()).violations(tomllib.loads(text))


def test_every_default_in_the_schema_is_valid_by_it() -> None:
    for key in KEYS:
        form = compile_schema(dict(key.form.schema))
        if key.required or key.default is None or key.default in ((), {}):
            continue  # there is nothing to be written
        value = [str(item) for item in key.default] if isinstance(key.default, tuple) else key.default
        value = str(value) if not isinstance(value, bool | int | float | list | dict) else value
        assert form.violations(value) == (), key


def test_the_reference_lists_every_key() -> None:
    text = reference()
    assert [key.name for key in KEYS if f"| `[{key.table}]` | `{key.name}` |" not in text] == []
