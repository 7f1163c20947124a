"""One member of a JSON text is changed, and every other byte stays."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from procedo.surfaces.cli.installation.hosts import Form
from procedo.surfaces.cli.installation.jsonedit import put, take_out
from procedo.surfaces.cli.installation.jsonscan import value_of
from procedo.surfaces.cli.installation.malformed import Malformed

pytestmark = pytest.mark.requirement("install")

PATH = ("mcpServers", "procedo")
ENTRY = {"command": "/bin/python", "args": ["-m", "procedo", "serve"]}
ENTRY_LINES = '"procedo": {\n  "command": "/bin/python",\n  "args": [\n    "-m",\n    "procedo",\n    "serve"\n  ]\n}'


def entry(indent: str) -> str:
    return ENTRY_LINES.replace("\n", "\n" + indent)


SPACES = st.text(" \t\n", max_size=3)
COMMENTS = st.sampled_from(['// a note, {not} "this"\n', "/* procedo: { */", "/* two\nlines */", "//\n"])
KEYS = st.sampled_from(["mcpServers", "procedo", "other", "", 'a"b', "ä", "//", "a\\"])
SCALARS = st.sampled_from(["1", "-0.5e+3", "true", "null", '""', '"/* text */"', '"a\\"b"', '"\\u00e4"', '","'])


@st.composite
def gaps(draw: st.DrawFn) -> str:
    """What may stand between two tokens."""
    parts = draw(st.lists(st.one_of(SPACES, COMMENTS), max_size=3))
    return "".join(parts)


@st.composite
def nodes(draw: st.DrawFn, depth: int = 3) -> str:
    """A value with any layout, comments and trailing commas."""
    kind = draw(st.sampled_from(["scalar", "object", "array"])) if depth else "scalar"
    if kind == "scalar":
        return draw(SCALARS)
    names: list[str | None] = [None] * draw(st.integers(0, 2))
    if kind == "object":
        keys: list[str] = draw(st.lists(KEYS, unique=True, max_size=3))
        names = [*keys]
    parts = []
    for name in names:
        head = "" if name is None else f"{json.dumps(name)}{draw(gaps())}:{draw(gaps())}"
        parts.append(f"{draw(gaps())}{head}{draw(nodes(depth - 1))}{draw(gaps())}")
    trailing: bool = draw(st.booleans())
    last = "," if parts and trailing else ""
    body = ",".join(parts) + last + draw(gaps())
    return f"{{{body}}}" if kind == "object" else f"[{body}]"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A document whose root is an object, and whose servers, if any, are one, too."""
    servers = draw(st.sampled_from(["absent", "empty", "some"]))
    text = draw(nodes().filter(lambda node: node.startswith("{")))
    value = value_of(text, Form.JSONC)
    assume("mcpServers" not in value)
    if servers != "absent":
        inner = draw(nodes(2).filter(lambda node: node.startswith("{"))) if servers == "some" else "{}"
        assume("procedo" not in value_of(inner, Form.JSONC))
        member = f'{draw(gaps())}"mcpServers"{draw(gaps())}:{draw(gaps())}{inner}{draw(gaps())}'
        text = "{" + member + ("," if value else "") + text[1:]
    return draw(gaps()) + text + draw(gaps())


def is_part_of(short: str, long: str) -> bool:
    letters = iter(long)
    return all(letter in letters for letter in short)


def with_entry(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "mcpServers": {**value.get("mcpServers", {}), "procedo": ENTRY}}


@given(documents())
def test_whatever_the_layout_everything_but_our_member_stays_byte_for_byte(text: str) -> None:
    before = value_of(text, Form.JSONC)
    changed = put(text, Form.JSONC, PATH, ENTRY)
    after = value_of(changed, Form.JSONC)
    assert after == with_entry(before)
    assert list(after) == list(with_entry(before))
    assert is_part_of(text, changed)
    assert put(changed, Form.JSONC, PATH, ENTRY) == changed
    restored = take_out(changed, Form.JSONC, PATH)
    assert value_of(restored, Form.JSONC) == {**before, "mcpServers": before.get("mcpServers", {})}
    assert is_part_of(restored, changed)
    if before.get("mcpServers"):
        assert restored == text


@given(documents())
def test_a_new_value_replaces_the_old_one_alone(text: str) -> None:
    held = put(text, Form.JSONC, PATH, {"command": "old", "timeout": 5, "args": ["x"]})
    command = put(held, Form.JSONC, (*PATH, "command"), "new")
    assert command == held.replace('"old"', '"new"')
    both = put(command, Form.JSONC, (*PATH, "env", "A"), "b")
    expected = {"command": "new", "timeout": 5, "args": ["x"], "env": {"A": "b"}}
    assert value_of(both, Form.JSONC)["mcpServers"]["procedo"] == expected
    assert is_part_of(command, both)


LAYOUTS = {
    "nothing": ("", '{\n  "mcpServers": {\n    ' + entry("    ") + "\n  }\n}\n"),
    "an empty object": ("{}", json.dumps({"mcpServers": {"procedo": ENTRY}})),
    "one line": (
        '{"mcpServers":{"a":{}},"b":1}',
        '{"mcpServers":{"a":{}, "procedo": ' + json.dumps(ENTRY) + '},"b":1}',
    ),
    "tabs": (
        '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}\n',
        '{\n\t"mcpServers": {\n\t\t"a": {},\n\t\t' + entry("\t\t").replace("  ", "\t") + "\n\t}\n}\n",
    ),
    "comments and a trailing comma": (
        '{\n  "mcpServers": {\n    "a": {}, // of a\n    // the end\n  },\n}\n',
        '{\n  "mcpServers": {\n    "a": {}, // of a\n    // the end\n    ' + entry("    ") + ",\n  },\n}\n",
    ),
    "a comment behind the last member": (
        '{\n  "mcpServers": {\n    "a": {} // of a\n  }\n}',
        '{\n  "mcpServers": {\n    "a": {}, // of a\n    ' + entry("    ") + "\n  }\n}",
    ),
    "lines that end in CRLF": (
        '{\r\n  "a": 1\r\n}\r\n',
        ('{\n  "a": 1,\n  "mcpServers": {\n    ' + entry("    ") + "\n  }\n}\n").replace("\n", "\r\n"),
    ),
    "only a comment": ("// mine\n", '// mine\n{\n  "mcpServers": {\n    ' + entry("    ") + "\n  }\n}\n"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_member_is_written_as_the_file_is_laid_out(name: str) -> None:
    text, expected = LAYOUTS[name]
    assert put(text, Form.JSONC, PATH, ENTRY) == expected


REFUSED = {
    "a missing brace": ('{\n  "a": 1', Form.JSON, (2, 9, "the end of the file where a comma or } was expected")),
    "two values": ('{} {"a": 1}', Form.JSON, (1, 4, '"{" behind the end of the document')),
    "no quotes": ("{\n  a: 1\n}", Form.JSON, (2, 3, '"a" where a key in double quotes was expected')),
    "no colon": ('{"a" 1}', Form.JSON, (1, 6, '"1" where a colon was expected')),
    "a text without end": ('{"a": "x}', Form.JSON, (1, 7, "a text that does not end")),
    "a comment that does not end": ("{ /* x }", Form.JSONC, (1, 3, "a comment that does not end")),
    "a comment where none may be": ("{} // x", Form.JSON, (1, 4, "a comment, and this host reads none")),
    "a trailing comma where none may be": ('{"a": 1,}', Form.COMMENTED, (1, 8, "a comma before }")),
    "two commas": ('{"a": 1,, "b": 2}', Form.JSONC, (1, 9, '"," where a key in double quotes was expected')),
    "a wrong number": ('{"a": 01}', Form.JSON, (1, 7, '"0" where a value was expected')),
    "a word": ('{"a": truely}', Form.JSON, (1, 7, '"t" where a value was expected')),
    "no number": ('{"a": NaN}', Form.JSON, (1, 7, '"N" where a value was expected')),
    "brackets that cross": ('{"a": [1}', Form.JSON, (1, 9, '"}" where a comma or ] was expected')),
    "an array": ("[]", Form.JSON, (1, 1, "the document is no object")),
    "servers that are none": ('{"mcpServers": null}', Form.JSON, (1, 16, '"mcpServers" is no object')),
    "servers twice": (
        '{"mcpServers": {},\n "mcpServers": {}}',
        Form.JSON,
        (2, 2, 'the key "mcpServers" stands twice, first in line 1'),
    ),
    "our key twice": (
        '{"mcpServers": {"procedo": 1, "procedo": 2}}',
        Form.JSON,
        (1, 31, 'the key "procedo" stands twice, first in line 1'),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_malformed_is_refused_with_its_place(name: str) -> None:
    text, form, (line, column, message) = REFUSED[name]
    with pytest.raises(Malformed) as refused:
        put(text, form, PATH, ENTRY)
    assert (refused.value.line, refused.value.column) == (line, column)
    assert refused.value.message.startswith(message)
    with pytest.raises(Malformed):
        take_out(text, form, PATH)


def test_a_key_that_stands_twice_elsewhere_is_nobodys_business_here() -> None:
    text = '{"a": 1, "a": 2, "b": {"c": 1, "c": 2}}'
    assert put(text, Form.JSON, PATH, ENTRY).startswith(text[:-1])


@pytest.mark.parametrize("form", [Form.COMMENTED, Form.JSONC])
def test_comments_are_read_where_the_host_reads_them(form: Form) -> None:
    assert value_of('{ // one\n "a": /* two */ 1 }', form) == {"a": 1}


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_document_of_great_depth_is_refused_and_ends_nothing(opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    text = '{"deep": ' + opening * 30_000 + "1" + closing * 30_000 + "}"
    with pytest.raises(Malformed, match="nested too deeply"):
        value_of(text, Form.JSON)


@given(st.text(max_size=40))
def test_any_text_is_edited_or_refused(text: str) -> None:
    for form in (Form.JSON, Form.COMMENTED, Form.JSONC):
        try:
            changed = put(text, form, PATH, ENTRY)
        except Malformed:
            continue
        assert value_of(changed, form)["mcpServers"]["procedo"] == ENTRY


@given(nodes())
def test_what_is_strict_json_means_what_json_says(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(Malformed):
            value_of(text, Form.JSON)
    else:
        assert value_of(text, Form.JSON) == expected
