"""Reads JSON and its relaxed forms as text: what is where, so that one member can be changed and no other byte.

It checks as strictly as the form demands. Duplicate keys are found where somebody asks for a key.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from msgspec import Struct

from procedo.surfaces.cli.installation.hosts import Form
from procedo.surfaces.cli.installation.malformed import Malformed, place

__all__ = ["Member", "Object", "Scan", "value_of", "walked"]

_STRING: Final = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_SCALAR: Final = re.compile(r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![\w.+-])")
_SPACES: Final = re.compile(r"[ \t\r\n]*")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING_OR_COMMENT: Final = re.compile(f"({_STRING.pattern})|{_COMMENT.pattern}", re.DOTALL)
_STRING_OR_LAST_COMMA: Final = re.compile(rf"({_STRING.pattern})|,(?=[ \t\r\n]*[}}\]])")
_CLOSING: Final = {"{": "}", "[": "]"}


class Member(Struct, frozen=True):
    """One member of an object: where its key begins, where its value lies, and the comma behind it, if any."""

    key: str
    start: int
    value: int
    end: int
    comma: int | None


class Object(Struct, frozen=True):
    """An object: its opening brace, its closing one, and its members in order."""

    start: int
    close: int
    members: tuple[Member, ...]


class Scan:
    """A text in one of the forms. Every method raises `Malformed`."""

    def __init__(self, text: str, form: Form) -> None:
        self.text = text
        self._comments = form is not Form.JSON
        self._last_commas = form is Form.JSONC

    def root(self) -> int | None:
        """Where the value begins, the whole text having been checked; None for a text without any value."""
        start = self.blanks(0)
        if start == len(self.text):
            return None
        end = self.blanks(self.end_of(start))
        if end != len(self.text):
            self._fail(end, f"{self._shown(end)} behind the end of the document")
        return start

    def object_at(self, at: int, called: str) -> Object:
        """The object that begins there. `called` is how a person knows it."""
        if self.text[at] != "{":
            self._fail(at, f"{called} is no object")
        members: list[Member] = []
        here = self.blanks(at + 1)
        while self.text[here] != "}":
            key, value = here, self._key(here)
            end = self.end_of(value)
            here = self.blanks(end)
            comma = here if self.text[here] == "," else None
            if comma is not None:
                here = self.blanks(comma + 1)
            members.append(Member(json.loads(self.text[key : self._string(key)]), key, value, end, comma))
        return Object(at, here, tuple(members))

    def member(self, inside: Object, key: str) -> Member | None:
        """The member with this key. A key that stands twice is refused: programs differ in which one they take."""
        found = [member for member in inside.members if member.key == key]
        if len(found) > 1:
            first, _ = place(self.text, found[0].start)
            self._fail(found[1].start, f"the key {json.dumps(key)} stands twice, first in line {first}")
        return found[0] if found else None

    def blanks(self, at: int) -> int:
        """The end of white space and comments."""
        while True:
            found = _SPACES.match(self.text, at)
            at = found.end() if found else at
            if not self.text.startswith(("//", "/*"), at):
                return at
            comment = _COMMENT.match(self.text, at)
            if comment is None:
                self._fail(at, "a comment that does not end")
            if not self._comments:
                self._fail(at, "a comment, and this host reads none")
            at = comment.end()

    def end_of(self, at: int) -> int:
        """The end of the value that begins there, however deep it is."""
        open_ones: list[str] = []
        while True:
            opening = self.text[at : at + 1]
            if opening in _CLOSING:
                open_ones.append(opening)
                inner = self.blanks(at + 1)
                if self.text[inner : inner + 1] != _CLOSING[opening]:
                    at = self._key(inner) if opening == "{" else inner
                    continue
                at = inner
            else:
                at = self._scalar(at)
            following = self._after(at, open_ones)
            if not open_ones:
                return following
            at = following

    def _after(self, at: int, open_ones: list[str]) -> int:
        """Close what ends here; where the next value begins, or where the outermost one has ended."""
        if self.text[at : at + 1] in {"}", "]"} and open_ones and self.text[at] == _CLOSING[open_ones[-1]]:
            open_ones.pop()
            at += 1
        while open_ones:
            closing = _CLOSING[open_ones[-1]]
            here = self.blanks(at)
            if self.text[here : here + 1] == ",":
                comma, here = here, self.blanks(here + 1)
                if self.text[here : here + 1] != closing:
                    return self._key(here) if closing == "}" else here
                if not self._last_commas:
                    self._fail(comma, f"a comma before {closing}, and this host reads none")
            if self.text[here : here + 1] != closing:
                self._fail(here, f"{self._shown(here)} where a comma or {closing} was expected")
            open_ones.pop()
            at = here + 1
        return at

    def _scalar(self, at: int) -> int:
        if self.text[at : at + 1] == '"':
            return self._string(at)
        found = _SCALAR.match(self.text, at)
        if found is None:
            self._fail(at, f"{self._shown(at)} where a value was expected")
        return found.end()

    def _string(self, at: int) -> int:
        found = _STRING.match(self.text, at)
        if found is None:
            self._fail(at, "a text that does not end, or has a wrong escape or a control character in it")
        return found.end()

    def _key(self, at: int) -> int:
        """Past a key and its colon: where its value begins."""
        if self.text[at : at + 1] != '"':
            self._fail(at, f"{self._shown(at)} where a key in double quotes was expected")
        colon = self.blanks(self._string(at))
        if self.text[colon : colon + 1] != ":":
            self._fail(colon, f"{self._shown(colon)} where a colon was expected")
        return self.blanks(colon + 1)

    def _shown(self, at: int) -> str:
        return json.dumps(self.text[at], ensure_ascii=True) if at < len(self.text) else "the end of the file"

    def _fail(self, at: int, message: str) -> NoReturn:
        raise Malformed(*place(self.text, at), message)


def value_of(text: str, form: Form) -> Any:
    """What the text says; an empty object for a text without any value. Raises `Malformed`."""
    if Scan(text, form).root() is None:
        return {}
    bare = _STRING_OR_COMMENT.sub(lambda found: found[1] or " ", text)
    try:
        return json.loads(_STRING_OR_LAST_COMMA.sub(lambda found: found[1] or "", bare))
    except RecursionError:
        raise Malformed(1, 1, "it is nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise Malformed(1, 1, str(error)) from error


def walked(scan: Scan, path: Sequence[str]) -> tuple[Object, Member | None, int] | None:
    """As far along the path as there is something: the last object, the member in it, how many keys were found.

    None for a text without any value.
    """
    at = scan.root()
    if at is None:
        return None
    called = "the document"
    for depth, key in enumerate(path):
        inside = scan.object_at(at, called)
        member = scan.member(inside, key)
        if member is None or depth == len(path) - 1:
            return inside, member, depth + (member is not None)
        at, called = member.value, json.dumps(key)
    raise ValueError("a path has at least one key")
