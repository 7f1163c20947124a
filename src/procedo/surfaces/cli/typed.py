"""Values from the command line: `k=v` typed by the procedure's schema, JSON as text, from a file or from a pipe."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from procedo.core.model import Inputs, Json
from procedo.errors import BadArgument

__all__ = ["json_argument", "start_inputs"]

_WORDS: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def _text_of(argument: str, option: str) -> str:
    if argument == "-":
        return sys.stdin.read()
    if not argument.startswith("@"):
        return argument
    try:
        return Path(argument[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        message = f"The file {argument[1:]} of {option} cannot be read: {reason}."
        raise BadArgument("bad_argument", message, "Give the path of a readable file after @.") from error


def _no_constant(word: str) -> Json:
    raise ValueError(f"{word} is no JSON value")


def _parsed(text: str) -> Json:
    return json.loads(text, parse_constant=_no_constant)


def json_argument(argument: str, option: str) -> Json:
    """A JSON value given as text, as `@FILE`, or as `-` for standard input. Raises `BadArgument` with the place."""
    text = _text_of(argument, option)
    try:
        return _parsed(text)
    except json.JSONDecodeError as error:
        message = f"{option} is no JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        raise BadArgument("bad_argument", message, "A text needs its own quotes: '\"like this\"'.") from error
    except ValueError as error:
        raise BadArgument("bad_argument", f"{option} is no JSON: {error}.", "Write a number.") from error


def _wanted(schema: Json) -> tuple[str, ...]:
    """The JSON types that a property admits; none when its schema does not say."""
    if not isinstance(schema, dict):
        return ()
    named = schema.get("type")
    if isinstance(named, str):
        return (named,)
    if isinstance(named, list):
        return tuple(str(word) for word in named)
    listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return tuple(dict.fromkeys(_WORDS[type(value)] for value in listed)) if isinstance(listed, list) else ()


def _typed(name: str, text: str, wanted: Sequence[str]) -> Json:
    # A type that says nothing leaves the text as it is: guessing would turn version 1.10 into the number 1.1.
    if not wanted or wanted == ("string",):
        return text
    try:
        value = _parsed(text)
    except ValueError:
        value = text
    word = _WORDS[type(value)]
    if word in wanted or (word == "integer" and "number" in wanted):
        return value
    if "string" in wanted:
        return text
    message = f"Input {name!r} is to be {' or '.join(wanted)}, got {text!r}."
    raise BadArgument("bad_argument", message, f"Give JSON of that type: --input {name}:=JSON")


def _pair(argument: str, properties: Mapping[str, Any]) -> tuple[str, Json]:
    name, equals, text = argument.partition("=")
    if not equals or not name.rstrip(":"):
        message = f"--input {argument!r} is not of the form NAME=VALUE."
        raise BadArgument("bad_argument", message, "Write --input name=value, or --input name:=JSON.")
    if name.endswith(":"):
        return name[:-1], json_argument(text, f"--input {name[:-1]}")
    return name, _typed(name, text, _wanted(properties.get(name)))


def start_inputs(declared: Inputs | None, whole: str | None, pairs: Sequence[str]) -> Json:
    """The inputs of a start: `whole` is JSON, each of `pairs` sets one key of it. None when nothing was given."""
    value = None if whole is None else json_argument(whole, "--inputs")
    if not pairs:
        return value
    if value is not None and not isinstance(value, dict):
        message = f"--input sets a key, but --inputs is {_WORDS[type(value)]}, not an object."
        raise BadArgument("bad_argument", message, "Use one of the two, or give an object.")
    source = declared.schema.source if declared else None
    properties = source.get("properties", {}) if isinstance(source, dict) else {}
    result: dict[str, Json] = dict(value or {})
    for argument in pairs:
        name, typed = _pair(argument, properties if isinstance(properties, dict) else {})
        result[name] = typed
    return result
