from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from procedo.agents.models.scripted import ScriptedModel, read_script
from procedo.agents.ports import Answer, ModelRefused, Settings, Usage
from procedo.core.model import Json

pytestmark = pytest.mark.anyio

SETTINGS = Settings(None, None, parallel_calls=False, timeout_s=1.0)
SCRIPT = """
[[cases]]
match = "Review"
[[cases.turns]]
calls = [{ tool = "file_read", args = { path = "a" } }]
[[cases.turns]]
output = { seen = "{{result}}" }
tokens = [5, 2]
[[cases]]
[[cases.turns]]
text = "nothing to do"
"""


def model(folder: Path, text: str = SCRIPT) -> ScriptedModel:
    path = folder / "script.toml"
    path.write_text(text)
    return ScriptedModel(read_script(path), "demo")


async def ask(asked: ScriptedModel, messages: Sequence[ModelMessage], output: Json = None) -> Answer:
    return await asked.request(messages, SETTINGS, (), output)


async def test_turns_follow_each_other_also_in_another_process(tmp_path: Path) -> None:
    history: list[ModelMessage] = [ModelRequest([UserPromptPart("Review it.")])]
    first = await ask(model(tmp_path), history, {"type": "object"})
    (call,) = first.response.parts
    assert isinstance(call, ToolCallPart)
    assert (call.tool_name, call.args, first.finish_reason) == ("file_read", {"path": "a"}, "tool_call")
    history += [first.response, ModelRequest([ToolReturnPart("file_read", "the text", call.tool_call_id)])]
    second = await ask(model(tmp_path), history, {"type": "object"})
    (output,) = second.response.parts
    assert isinstance(output, ToolCallPart)
    assert (output.tool_name, output.args) == ("step_output", {"seen": "the text"})
    with pytest.raises(ModelRefused, match="has 2 turns for it, and turn 3 was asked for"):
        await ask(model(tmp_path), [*history, second.response, ModelRequest([])])


async def test_every_answer_says_that_it_is_scripted_and_cost_nothing(tmp_path: Path) -> None:
    answer = await ask(model(tmp_path), [ModelRequest([UserPromptPart("Other.")])])
    assert (answer.scripted, answer.provider, answer.model) == (True, "scripted", "scripted")
    assert (answer.usage, answer.cost_usd) == (Usage(0, 0), Decimal(0))
    assert answer.response.parts == [TextPart("nothing to do")]


async def test_a_case_is_chosen_by_what_the_step_says_alone(tmp_path: Path) -> None:
    later: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Other.")]),
        ModelResponse([TextPart("x")]),
        ModelRequest([UserPromptPart("Review.")]),
    ]
    answer = await ask(model(tmp_path), later)
    assert answer.response.parts == [TextPart("nothing to do")]


async def test_an_output_follows_the_schema_that_is_asked_for(tmp_path: Path) -> None:
    asked = [ModelRequest([UserPromptPart("x")])]
    text = '[[turns]]\noutput = "plain"\n'
    assert (await ask(model(tmp_path, text), asked)).response.parts == [TextPart("plain")]
    (call,) = (await ask(model(tmp_path, text), asked, {"type": "string"})).response.parts
    assert isinstance(call, ToolCallPart)
    assert call.args == {"value": "plain"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("turns = []", "at least 1 items"),
        ("[[turns]]\nspeech = 1", "speech"),
        ("[[turns]]\n", "an object with text"),
        ("a = 1", "an object with turns, or with cases"),
        ("[[", "cannot be read"),
    ],
)
def test_a_script_that_cannot_be_used_says_why(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "script.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match="script") as caught:
        read_script(path)
    assert why in str(caught.value)


def test_a_script_may_be_json_and_its_digest_is_of_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"turns": [{"text": "x"}]}')
    (tmp_path / "a.toml").write_text('# a note\n[[turns]]\ntext = "x"\n')
    (tmp_path / "b.toml").write_text('[[turns]]\ntext = "y"\n')
    (tmp_path / "c.toml").write_text('[[turns]]\ntext = "y"\n', encoding="utf-8-sig")
    assert read_script(tmp_path / "c.toml") == read_script(tmp_path / "b.toml")
    same, also, other = (read_script(tmp_path / name).digest for name in ("a.json", "a.toml", "b.toml"))
    assert same == also != other
