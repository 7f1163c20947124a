import copy
import json
import logging
import pickle
from pathlib import Path

import pytest
from agent_workspace import assemble, bundle, open_tools, refused, server, toml, workspace
from chat_server import chat_server, said
from msgspec import Struct
from pydantic_ai.messages import ModelRequest, UserPromptPart

from procedo.agents.ports import ModelFailed, Settings
from procedo.credentials import MAX_BYTES, Missing, Secret, SecretRef, SecretSource, resolve
from procedo.errors import InvalidConfig

pytestmark = pytest.mark.anyio
VALUE = "s3cr3t-value-0123456789"


def test_a_secret_shows_nothing_of_itself() -> None:
    secret = Secret(VALUE)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r}", f"{secret:>40}", repr([secret]), str({"a": secret})]
    assert not [text for text in shown if VALUE in text]
    assert secret.reveal() == VALUE
    for copied in (lambda: pickle.dumps(secret), lambda: json.dumps(secret), lambda: copy.deepcopy(secret)):
        with pytest.raises(TypeError):
            copied()


def test_a_secret_is_read_from_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{VALUE}\n")
    environ = {"KEY": VALUE, "EMPTY": " "}
    for reference in (SecretRef(SecretSource.ENV, "KEY"), SecretRef(SecretSource.FILE, "key")):
        assert resolve(reference, environ, tmp_path).reveal() == VALUE
    (tmp_path / "large").write_text("x" * (MAX_BYTES + 1))
    (tmp_path / "raw").write_bytes(b"\xff")
    (tmp_path / "lines").write_text("one\ntwo")
    for source, name in (
        ("env", "NONE"),
        ("env", "EMPTY"),
        ("file", "none"),
        ("file", "large"),
        ("file", "raw"),
        ("file", "lines"),
    ):
        with pytest.raises(Missing, match=name):
            resolve(SecretRef(SecretSource(source), name), environ, tmp_path)


@pytest.mark.parametrize(
    "written",
    [
        f'api_key = "{VALUE}"',
        f'api_key = {{ value = "{VALUE}" }}',
        f'api_key = {{ env = "{VALUE}" }}',
        f'api_key = {{ env = "A", file = "{VALUE}" }}',
        f'endpoint = "https://user:{VALUE}@example.org/v1"',
        f'endpoint = "https://example.org/v1?key={VALUE}"',
    ],
)
@pytest.mark.requirement("secrets")
def test_a_secret_in_the_configuration_is_an_error_that_does_not_repeat_it(tmp_path: Path, written: str) -> None:
    key = written.partition(" ")[0]
    good = {"endpoint": 'endpoint = "https://example.org/v1"', "api_key": 'api_key = { env = "THE_KEY" }'}
    lines = "\n".join(line for name, line in {**good, key: written}.items())
    table = '[providers.models.openai_compatible.own]\nmodel = "m"\n'
    workspace(tmp_path, toml(more=table + "\n".join(good.values())))
    with pytest.raises(InvalidConfig) as caught:
        workspace(tmp_path, toml(more=table + lines))
    (problem,) = caught.value.problems
    assert problem.startswith("procedo.toml:")
    assert f"providers.models.openai_compatible.own.{key} = (not shown) cannot be used" in problem
    assert VALUE not in str(caught.value) + problem


@pytest.mark.parametrize(
    "written",
    [
        f'env = {{ API_TOKEN = "{VALUE}" }}',
        'env = { OTHER = "ghp_0123456789012345678901" }',
        f'args = ["--password={VALUE}"]',
    ],
)
def test_a_secret_for_a_server_is_never_written_out(tmp_path: Path, written: str) -> None:
    table = '[[mcp.servers]]\nname = "s"\ncommand = "x"\n'
    workspace(tmp_path, toml(more=table + 'env = { API_TOKEN = { env = "UP" }, MODE = "fast" }\nargs = ["--fast"]'))
    with pytest.raises(InvalidConfig) as caught:
        workspace(tmp_path, toml(more=table + written))
    assert VALUE not in str(caught.value) + "".join(caught.value.problems)
    assert "ghp_" not in "".join(caught.value.problems)


@pytest.mark.requirement("secrets")
async def test_no_record_and_no_message_and_no_log_holds_a_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with chat_server(said(), (401, {"error": f"bad key {VALUE}"})) as chat:
        own = f'[providers.models.openai_compatible.own]\nmodel = "m"\nendpoint = "{chat.endpoint}"\n'
        more = (
            own
            + 'api_key = { env = "THE_KEY" }\n'
            + server("s", more='env = { TOKEN = { file = "token.txt" } }')
            + bundle("s")
        )
        text = toml(
            agent='mcp_bundles = ["all"]', risk='allowed_tools = ["*"]', provider="openai_compatible.own", more=more
        )
        (tmp_path / "token.txt").write_text(VALUE)
        registry = workspace(tmp_path, text, environ={"THE_KEY": VALUE, "PATH": "/usr/bin:/bin"})
        contract = await assemble(registry)
        settings = Settings(None, None, parallel_calls=False, timeout_s=120.0)
        model = registry.model(contract)
        messages = [ModelRequest([UserPromptPart("x")])]
        answer = await model.request(messages, settings, contract.tools, None)
        with pytest.raises(ModelFailed) as caught:
            await model.request(messages, settings, contract.tools, None)
    async with open_tools(registry) as tools:
        shown = [repr(tools)]
    shown += [
        repr(contract),
        json.dumps(contract.record()),
        repr(model),
        str(vars(model)),
        repr(answer),
        str(caught.value),
    ]
    shown += [repr(registry.settings), caplog.text]
    assert [text for text in shown if VALUE in text] == []
    assert contract.record()["provider"]["credential"] == {"env": "THE_KEY"}
    assert chat.headers[0]["authorization"] == f"Bearer {VALUE}"


async def test_the_file_of_a_secret_is_kept_from_the_agents_own_tools(tmp_path: Path) -> None:
    own = '[providers.models.openai_compatible.own]\nmodel = "m"\nendpoint = "http://127.0.0.1:9/v1"\n'
    text = toml(provider="openai_compatible.own", more=own + 'api_key = { file = "key.txt" }\n')
    (tmp_path / "key.txt").write_text(VALUE)
    registry = workspace(tmp_path, text)
    contract = await assemble(registry)
    assert tmp_path / "key.txt" in contract.security.forbidden
    tool = contract.tool("file_read")
    assert tool is not None
    from procedo.agents.ports import ToolDenied

    async with open_tools(registry) as tools:
        with pytest.raises(ToolDenied, match="forbidden"):
            await tools.call(tool.id, {"path": "key.txt"}, "effect-1")
        assert "model_provider" in await tools.call(tool.id, {"path": "procedo.toml"}, "effect-2")


async def test_a_server_that_complains_with_its_secret_is_quoted_without_it(tmp_path: Path) -> None:
    more = 'env = { WORD = { env = "UP" } }'
    text = toml(agent='mcp_bundles = ["all"]', more=server("s", "complain", more=more) + bundle("s"))
    registry = workspace(tmp_path, text, environ={"UP": VALUE, "PATH": "/usr/bin:/bin"})
    (message,) = (await refused(registry)).values()
    assert "it said: WORD is [masked]" in message
    assert isinstance(registry.settings, Struct)
