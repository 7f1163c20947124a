"""The single comparison of a procedure: `$.a.b.0 OP value`, compiled when it is loaded. Pure.

`$` is the scope that is tested (`$.steps.2.done`, `$.inputs.level`). A path is split at dots; a part is an
object's key, or the index of an array. Operators are `>= <= != == > <`; the first one counts, and what
stands in the quotes of a value is text.

How two values are compared:

1. an empty condition holds; any other one without data does not;
2. a path without a value does not hold, whatever the operator, and the note says so;
3. booleans compare with `true` and `false`, quoted or not, by `==` and `!=` only;
4. numbers, and texts that read as a number, compare as numbers when both sides are such;
5. texts compare as texts; null equals `null` and the empty text; objects and arrays equal their JSON;
6. everything else is a mismatch: it does not hold, whatever the operator, and the note tells both types.
"""

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from procedo.core.model import EMPTY, Condition, Json, Truth

__all__ = ["OPERATORS", "ConditionError", "is_comparison", "parse", "type_name"]

OPERATORS: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
"""Longest first, so that `>=` is never read as `>`."""

_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_OPERATOR: Final = re.compile("|".join(OPERATORS))
_MORE: Final = re.compile(rf"&&|\|\||{_OPERATOR.pattern}")
_ABSENT: Final = object()


class ConditionError(ValueError):
    """A condition that cannot be read; `position` is the offset of what is wrong, from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class _Literal(Struct, frozen=True):
    """The right side: its value, and the text that it was written as, without quotes."""

    value: Json
    text: str


def is_comparison(text: str) -> bool:
    """True for a text that is meant as a single comparison: empty, or beginning with `$` or an operator."""
    bare = text.strip()
    return not bare or bare.startswith("$") or _operator_at(bare, 0) is not None


def parse(text: str, ids: Mapping[str, str] = EMPTY) -> Condition:
    """Compile a single comparison; `ids` gives the number of a step id. Raises `ConditionError`."""
    if not text.strip():
        return Condition(text, lambda _scope: Truth(True))
    found = _find_operator(text)
    if found is None:
        raise ConditionError("no comparison: expected one of " + " ".join(OPERATORS), len(text.rstrip()))
    at, word = found
    path = _path(text[:at], ids)
    literal = _literal(text, at + len(word))
    if not path and not text[:at].strip() and not _is_number(literal.value):
        raise ConditionError("a comparison without a path needs a number", at + len(word))

    def test(scope: Mapping[str, Json]) -> Truth:
        return _test(scope, path, word, literal)

    return Condition(text, test, _steps(path))


def type_name(value: Json) -> str:
    """The type of a JSON value in the words of its notes: text, number, boolean, null, object or array."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case Mapping():
            return "object"
        case _:
            return "array"


# --- reading -------------------------------------------------------------------------------------


def _operator_at(text: str, at: int) -> str | None:
    return next((word for word in OPERATORS if text.startswith(word, at)), None)


def _find_operator(text: str) -> tuple[int, str] | None:
    """The first operator: it stands before the value, so that quotes, which only a value has, come after it."""
    found = _OPERATOR.search(text)
    return None if found is None else (found.start(), found.group())


def _path(text: str, ids: Mapping[str, str]) -> tuple[str, ...]:
    bare = text.strip()
    if not bare:
        return ()
    start = len(text) - len(text.lstrip())
    if not bare.startswith("$"):
        raise ConditionError("a path begins with `$`", start)
    if bare == "$":
        return ()
    if bare[1] != ".":
        raise ConditionError("expected `.` after `$`", start + 1)
    segments = bare[2:].split(".")
    offset = start + 2
    for segment in segments:
        if not segment.strip() or segment != segment.strip():
            raise ConditionError("a part of the path is missing", offset)
        if wrong := re.search(r"[\[\]\"'(){}$&|=!]", segment):
            raise ConditionError(f"`{wrong.group()}` cannot stand in a path", offset + wrong.start())
        offset += len(segment) + 1
    if segments[0] == "steps" and len(segments) > 1:
        segments[1] = ids.get(segments[1], segments[1])
    return tuple(segments)


def _literal(text: str, at: int) -> _Literal:
    rest = text[at:].strip()
    start = at + len(text[at:]) - len(text[at:].lstrip())
    if not rest:
        raise ConditionError('a value is missing behind the operator; the empty text is ""', len(text.rstrip()))
    if rest.startswith('"'):
        end = rest.find('"', 1)
        if end < 0:
            raise ConditionError("the quote is never closed", start)
        if rest[end + 1 :].strip():
            raise ConditionError("only one comparison can stand here", start + end + 1)
        return _Literal(rest[1:end], rest[1:end])
    if wrong := _MORE.search(rest):
        raise ConditionError(f"`{wrong.group()}`: only one comparison can stand here", start + wrong.start())
    if rest in ("true", "false"):
        return _Literal(rest == "true", rest)
    if rest == "null":
        return _Literal(None, rest)
    number = _as_number(rest)
    return _Literal(rest if number is None else number, rest)


def _steps(path: tuple[str, ...]) -> frozenset[int] | None:
    if not path:
        return None
    if path[0] != "steps":
        return frozenset()
    if len(path) > 1 and path[1].isascii() and path[1].isdigit():
        return frozenset({int(path[1])})
    return None


# --- testing -------------------------------------------------------------------------------------


def _test(scope: Json, path: tuple[str, ...], word: str, literal: _Literal) -> Truth:
    if scope is None:
        return Truth(False, "there is no data to test")
    value = scope
    for segment in path:
        value = _step_into(value, segment)
    if value is _ABSENT:
        return Truth(False, f"$.{'.'.join(path)} has no value")
    return _compare("$" + "".join(f".{segment}" for segment in path), value, word, literal)


def _step_into(value: Json, segment: str) -> Json:
    if isinstance(value, Mapping):
        return value.get(segment, _ABSENT)
    if isinstance(value, list | tuple) and segment.isascii() and segment.isdigit() and int(segment) < len(value):
        return value[int(segment)]
    return _ABSENT


def _compare(name: str, value: Json, word: str, literal: _Literal) -> Truth:
    holds = OPERATORS[word]
    left, right = _as_number(value), _as_number(literal.value)
    if left is not None and right is not None:
        return Truth(holds(left, right), _read_as_number(name, value, literal.value))
    if isinstance(value, str) and isinstance(literal.value, str):
        return Truth(holds(value, literal.value))
    if word in ("==", "!="):
        same = _equal(value, literal)
        if same is not None:
            return Truth(same == (word == "=="))
    elif type_name(value) == type_name(literal.value):
        return Truth(False, f"{name} is {type_name(value)}, which has no order")
    return Truth(False, f"{name} is {_told(value)} and was compared with {_told(literal.value)}")


def _equal(value: Json, literal: _Literal) -> bool | None:
    """Whether the two are the same; None when their types do not allow to say."""
    match value, literal.value:
        case (bool(), bool()) | (None, None):
            return value is literal.value
        case bool(), str() if literal.text in ("true", "false"):
            return value is (literal.text == "true")
        case str(), bool() | None if value == literal.text:
            return True
        case None, str() if not literal.text:
            return True
        case ((dict() | list() | tuple()), str()):
            return _json_equal(value, literal.text)
    return None


def _json_equal(value: Json, text: str) -> bool | None:
    try:
        other = json.loads(text)
    except ValueError:
        return None
    return bool(value == other) if type_name(value) == type_name(other) else None


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_number(value: Json) -> int | float | None:
    if _is_number(value):
        return value  # type: ignore[no-any-return]  # checked the line before
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
        return None
    text = value.strip()
    return int(text) if text.lstrip("+-").isdigit() and len(text) < 400 else float(text)


def _read_as_number(name: str, value: Json, literal: Json) -> str:
    if isinstance(value, str):
        return f"{name} is the text {json.dumps(value, ensure_ascii=False)}, compared as a number"
    if isinstance(literal, str):
        return f"the text {json.dumps(literal, ensure_ascii=False)} was compared with {name} as a number"
    return ""


def _told(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return f"{type_name(value)} {text if len(text) <= 60 else text[:57] + '...'}"
