"""Puts one member into JSON text, changes it, or takes it out. Every other byte stays what it was."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from procedo.surfaces.cli.installation.hosts import Form
from procedo.surfaces.cli.installation.jsonscan import Member, Object, Scan, value_of, walked
from procedo.surfaces.cli.installation.malformed import Malformed

__all__ = ["put", "take_out"]

_BLANK: Final = " \t\r\n"
_INDENTED: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)


def put(text: str, form: Form, path: Sequence[str], value: Any) -> str:
    """The text with this value at the path; objects on the way are made. Raises `Malformed`."""
    scan = Scan(text, form)
    found = walked(scan, path)
    if found is None:
        return _begun(text, _nested(path, value))
    inside, member, depth = found
    style = _Style(text)
    if member is None:
        return _inserted(text, inside, style, path[depth], _nested(path[depth + 1 :], value))
    if value_of(text[member.value : member.end], form) == value:
        return text
    shown = style.rendered(value, style.indent_at(member.start), flat=style.is_flat(inside))
    return text[: member.value] + shown + text[member.end :]


def take_out(text: str, form: Form, path: Sequence[str]) -> str:
    """The text without the member at the path; the same text where there is none. Raises `Malformed`."""
    inside, member, depth = walked(Scan(text, form), path) or (None, None, 0)
    if inside is None or member is None or depth < len(path):
        return text
    expected = _without(value_of(text, form), path)
    *tidy, plain = _cuts(text, inside, member)
    return next((candidate for candidate in tidy if _says(candidate, form, expected)), plain)


def _says(text: str, form: Form, expected: Any) -> bool:
    try:
        return bool(value_of(text, form) == expected)
    except Malformed:
        return False


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _without(value: Any, path: Sequence[str]) -> Any:
    first, *rest = path
    if not rest:
        return {key: kept for key, kept in value.items() if key != first}
    return {**value, first: _without(value[first], rest)}


class _Style:
    """How the document is laid out: its line ends and its indentation."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._one_line = "\n" not in text.strip()
        found = _INDENTED.search(text)
        self._unit = found[1] if found else "  "

    def is_flat(self, inside: Object) -> bool:
        """True when the object is written on one line, and so are new members of it."""
        between = self._text[inside.start : inside.close]
        return "\n" not in between and (self._one_line or bool(inside.members))

    def indent_at(self, at: int) -> str:
        """The indentation of the line of an offset."""
        start = self._text.rfind("\n", 0, at) + 1
        line = self._text[start:at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def indent_in(self, inside: Object) -> str:
        """The indentation of members of an object."""
        for member in reversed(inside.members):
            start = self._text.rfind("\n", 0, member.start) + 1
            if not self._text[start : member.start].strip(" \t"):
                return self._text[start : member.start]
        return self.indent_at(inside.start) + self._unit

    def rendered(self, value: Any, indent: str, *, flat: bool) -> str:
        """A value as text whose first line begins where it is put."""
        if flat:
            return json.dumps(value, ensure_ascii=False)
        text = json.dumps(value, ensure_ascii=False, indent=self._unit)
        return text.replace("\n", self.newline + indent)


def _begun(text: str, value: Any) -> str:
    style = _Style(text)
    head = text.rstrip(_BLANK)
    return (head + style.newline if head else "") + style.rendered(value, "", flat=False) + style.newline


def _inserted(text: str, inside: Object, style: _Style, key: str, value: Any) -> str:
    """The object's last member is ours; what belongs to the one before it, such as a comment, stays with that."""
    last = inside.members[-1] if inside.members else None
    at = len(text[: inside.close].rstrip(_BLANK))
    flat = style.is_flat(inside)
    indent = "" if flat else style.indent_in(inside)
    member = f"{json.dumps(key, ensure_ascii=False)}: {style.rendered(value, indent, flat=flat)}"
    if not flat:
        member = style.newline + indent + member
    elif last is not None:
        member = f" {member}"
    if last is not None and last.comma is not None:
        member += ","
    elif last is None and not flat and "\n" not in text[at : inside.close]:
        member += style.newline + style.indent_at(inside.start)
    if last is None or last.comma is not None:
        return text[:at] + member + text[at:]
    return text[: last.end] + "," + text[last.end : at] + member + text[at:]


def _cuts(text: str, inside: Object, member: Member) -> Iterator[str]:
    """Ways to cut a member out, the tidiest first. Which one is right depends on comments around it."""
    number = inside.members.index(member)
    before = inside.members[number - 1] if number else None
    end = member.end if member.comma is None else member.comma + 1
    head = text[: member.start]
    if len(inside.members) == 1 and not (head[inside.start + 1 :] + text[end : inside.close]).strip(_BLANK):
        yield text[: inside.start + 1] + text[inside.close :]
    if member.comma is None and before is not None and before.comma is not None:
        head = head[: before.comma] + head[before.comma + 1 :]
    yield head.rstrip(_BLANK) + text[end:]
    yield head + text[end:]
