"""Puts one key into TOML text, changes it, or takes a table out. Order, comments and every other byte stay."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from procedo.sopfile.tomltext import inline, key, table
from procedo.surfaces.cli.installation.malformed import Malformed, place
from procedo.tomlplace import Header, Places, locate

__all__ = ["put", "take_out", "value_of"]


def value_of(text: str) -> dict[str, Any]:
    """What the text says. Raises `Malformed`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Malformed(*_where(str(error), text)) from error
    except RecursionError:
        raise Malformed(1, 1, "it is nested too deeply") from None


def _where(message: str, text: str) -> tuple[int, int, str]:
    reason, _, tail = message.partition(" (at ")
    numbers = [int(word) for word in tail.replace(",", " ").replace(")", " ").split() if word.isdigit()]
    if len(numbers) == 2:
        return numbers[0], numbers[1], reason
    return *place(text, len(text)), reason


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this value at the path of three keys or more; a table that is missing comes last.

    Raises `Malformed` where the document is laid out in a way that cannot be changed without touching more.
    """
    before = value_of(text)
    expected = _with(before, path, value)
    if expected == before:
        return text
    places = locate(text)
    changed = _changed(text, places, path, value)
    try:
        if tomllib.loads(changed) == expected:
            return changed
    except tomllib.TOMLDecodeError:
        pass  # said below, in words about the document as it is
    line = places.line(*path)
    raise Malformed(line, 1, f"{'.'.join(path[:2])} is laid out in a way that cannot be changed safely")


def take_out(text: str, path: Sequence[str]) -> str:
    """The text without the table at the path; the same text where there is none. Raises `Malformed`."""
    before = value_of(text)
    expected = _without(before, path)
    if expected == before:
        return text
    places = locate(text)
    changed = text
    pair = places.pairs.get(tuple(path))
    cuts = [_block(text, places, header) for header in places.headers if header.path[: len(path)] == tuple(path)]
    if pair is not None:
        cuts.append((pair.start, _line_end(text, pair.end)))
    for start, end in sorted(cuts, reverse=True):
        changed = _cut(changed, start, end)
    try:
        after = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        after = before
    # A table around it that has no header of its own goes with its last member.
    if after == expected or (not _at(expected, path[:-1]) and after == _without(expected, path[:-1])):
        return changed
    raise Malformed(places.line(*path), 1, f"{'.'.join(path)} is laid out in a way that cannot be taken out safely")


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name, {}) if isinstance(value, Mapping) else {}
    return value


def _with(value: Any, path: Sequence[str], new: Any) -> Any:
    first, *rest = path
    if not isinstance(value, Mapping):
        raise Malformed(1, 1, f"{first} belongs to something that is no table")
    return {**value, first: _with(value.get(first, {}), rest, new) if rest else new}


def _without(value: Any, path: Sequence[str]) -> Any:
    first, *rest = path
    if not isinstance(value, Mapping) or first not in value:
        return value
    if not rest:
        return {name: kept for name, kept in value.items() if name != first}
    return {**value, first: _without(value[first], rest)}


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _changed(text: str, places: Places, path: Sequence[str], value: Any) -> str:
    pair = places.pairs.get(tuple(path))
    if pair is not None:
        return text[: pair.value] + inline(value) + text[pair.end :]
    nested = value
    for depth in range(len(path) - 1, 1, -1):
        # The nearest table around it that has a header, or is a pair of its own, takes the rest in.
        around = tuple(path[:depth])
        header = next((header for header in places.headers if header.path == around), None)
        if header is not None:
            return _beneath(text, places, header, f"{key(path[depth])} = {inline(nested)}")
        whole = places.pairs.get(around)
        if whole is not None:
            held = tomllib.loads(f"held = {text[whole.value : whole.end]}")["held"]
            return text[: whole.value] + inline(_with(held, path[depth:], value)) + text[whole.end :]
        nested = {path[depth]: nested}
    newline = _newline(text)
    lines = newline.join(table((path[0], path[1]), nested))
    gap = "" if not text or text.endswith("\n") else newline
    return f"{text}{gap}{newline if text.strip() else ''}{lines}{newline}"


def _beneath(text: str, places: Places, header: Header, line: str) -> str:
    """The text with a line behind the last pair of a header's table."""
    _, end = _block(text, places, header)
    newline = _newline(text)
    gap = "" if text[:end].endswith("\n") else newline
    return f"{text[:end]}{gap}{line}{newline}{text[end:]}"


def _block(text: str, places: Places, header: Header) -> tuple[int, int]:
    """A header with its pairs: where it begins, and the end of its last line. Comments behind that are not its own."""
    later = [other.start for other in places.headers if other.start > header.start]
    until = min(later, default=len(text))
    ends = [pair.end for pair in places.pairs.values() if header.start < pair.start < until]
    return header.start, _line_end(text, max(ends, default=header.end))


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _cut(text: str, start: int, end: int) -> str:
    """The text without a part; of empty lines on both sides of it one side stays."""
    head, tail = text[:start], text[end:]
    newline = _newline(text)
    if head.endswith(newline * 2) and (not tail or tail.startswith(newline)):
        head = head[: -len(newline)]
    return head + tail
