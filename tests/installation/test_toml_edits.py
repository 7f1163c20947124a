"""One table of a TOML text is changed, and every other byte stays."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedo.surfaces.cli.installation.malformed import Malformed
from procedo.surfaces.cli.installation.tomledit import put, take_out

pytestmark = pytest.mark.requirement("install")

TABLE = ("mcp_servers", "procedo")
ENTRY = {"command": "/bin/python", "args": ["-m", "procedo"], "env": {"A": "b"}}
BLOCK = '[mcp_servers.procedo]\ncommand = "/bin/python"\nargs = ["-m", "procedo"]\nenv = { A = "b" }\n'


def with_entry(text: str) -> str:
    text = put(text, (*TABLE, "command"), ENTRY["command"])
    text = put(text, (*TABLE, "args"), ENTRY["args"])
    return put(text, (*TABLE, "env", "A"), "b")


PARTS = st.sampled_from(
    [
        "# a note with [mcp_servers.procedo] in it\n",
        "\n",
        '[mcp_servers.other]\ncommand = "x" # of x\nargs = [\n  "a", # one\n]\n',
        "[mcp_servers.\"a.b\".env]\nK = '[mcp_servers.procedo]'\n",
        '[profiles.fast]\nmodel = """\n[mcp_servers.procedo]\ncommand = "no"\n"""\n',
        "[[hooks]]\nname = 'one'\n",
        "[tui]\ntheme = { dark = true, name = 'x' }\n",
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    parts = draw(st.lists(PARTS, max_size=6))
    tables = [part for part in parts if not part.startswith("[[") and part.startswith("[")]
    once = [part for number, part in enumerate(parts) if part not in tables or parts.index(part) == number]
    return draw(st.sampled_from(["", 'model = "m"\n', "# first\n\n"])) + "".join(once)


@given(documents())
def test_the_table_comes_last_and_leaves_no_trace_when_it_is_taken_out(text: str) -> None:
    before = tomllib.loads(text)
    changed = with_entry(text)
    assert changed.startswith(text)
    assert changed.endswith(BLOCK)
    servers = {**before.get("mcp_servers", {}), "procedo": ENTRY}
    assert tomllib.loads(changed) == {**before, "mcp_servers": servers}
    assert with_entry(changed) == changed
    restored = take_out(changed, TABLE)
    assert tomllib.loads(restored) == before
    if not text.endswith("\n\n"):
        assert restored == text


def test_values_of_a_table_are_changed_where_they_stand() -> None:
    text = (
        '[mcp_servers.procedo] # ours\r\ncommand = "old"  # the program\r\ntool_timeout_sec = 60\r\n\r\n'
        "# of the next one\r\n[other]\r\nx = 1\r\n"
    )
    changed = with_entry(text)
    assert changed == text.replace('"old"', '"/bin/python"').replace(
        "tool_timeout_sec = 60\r\n",
        'tool_timeout_sec = 60\r\nargs = ["-m", "procedo"]\r\nenv = { A = "b" }\r\n',
    )
    assert take_out(changed, TABLE) == "\r\n# of the next one\r\n[other]\r\nx = 1\r\n"


def test_a_table_of_variables_takes_new_ones_in_and_goes_with_its_server() -> None:
    text = '[a]\nx = 1\n\n[mcp_servers.procedo]\ncommand = "c"\n\n[mcp_servers.procedo.env]\nOLD = "1"\n\n[b]\ny = 2\n'
    assert put(text, (*TABLE, "env", "NEW"), "2") == text.replace('OLD = "1"\n', 'OLD = "1"\nNEW = "2"\n')
    assert take_out(text, TABLE) == "[a]\nx = 1\n\n[b]\ny = 2\n"


def test_a_server_that_is_written_inline_is_changed_and_taken_out() -> None:
    text = '[mcp_servers]\nother = { command = "x" }\nprocedo = { command = "old", args = [] }\n'
    changed = put(text, (*TABLE, "command"), "new")
    assert changed == text.replace('"old"', '"new"')
    assert take_out(changed, TABLE) == '[mcp_servers]\nother = { command = "x" }\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a = 1\nb = \n", 2, "Invalid value"),
        ('a = "x', 1, "Unterminated string"),
        ("a = 1\na = 2\n", 2, "Cannot overwrite a value"),
        ('mcp_servers = { other = { command = "x" } }\n', 1, "mcp_servers.procedo is laid out in a way"),
        ("mcp_servers = 1\n", 1, "procedo belongs to something that is no table"),
        ("a = " + "[" * 20_000, 1, "it is nested too deeply"),
    ],
    ids=["no value", "no end", "twice", "inline", "no table", "deep"],
)
def test_what_cannot_be_edited_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(Malformed) as refused:
        put(text, (*TABLE, "command"), "x")
    assert refused.value.line == line
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize("value", ['C:\\Users\\"a"', "ä\x7f", "tab\there", "/home/$x/{y}"])
def test_any_text_comes_back_as_it_was(value: str) -> None:
    changed = put("", (*TABLE, "command"), value)
    assert tomllib.loads(changed) == {"mcp_servers": {"procedo": {"command": value}}}
