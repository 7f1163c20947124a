r"""Bindings in any JSON value: `{{steps.2.path}}`, `{{inputs.x}}`, `{{run.id}}`, `{{item}}`, `{{input}}`. Pure.

`{{calls.0}}` reads the result of an earlier planned call of the same step. A string that is exactly one
binding keeps the type of its value; embedded bindings become text. `\{{` stands for two plain braces.
Templates are validated when a procedure is loaded, so that only a value can be missing when they are
resolved, and a missing one is an error that names it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from procedo.core.model import Json

__all__ = ["ROOTS", "BindingError", "MissingValue", "Reference", "references", "resolve", "rewrite", "validate"]

ROOTS: Final = ("inputs", "steps", "run", "item", "input", "calls")
"""What a binding may begin with."""

RUN_FIELDS: Final = ("id", "sop", "version", "started_at")
"""What `run` has."""

_ESCAPED: Final = "\\{{"
_SEGMENT: Final = re.compile(r"[^\s{}.\[\]\"']+")
_ABSENT: Final = object()


class BindingError(ValueError):
    """A template that cannot be read; `position` is the offset in its string, `where` the path to that string."""

    def __init__(self, message: str, position: int, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.where = where


class MissingValue(ValueError):
    """A binding whose value does not exist; `name` is the binding, `steps.2.ticket` say."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{{{{{name}}}}} has no value")
        self.name = name


class Reference(Struct, frozen=True):
    """One binding: its root, the path below it, and where it stands (`where` is the path to its string)."""

    root: str
    path: tuple[str, ...]
    position: int = 0
    where: str = ""

    @property
    def name(self) -> str:
        """The binding as it is written, without braces."""
        return ".".join((self.root, *self.path))

    @property
    def step(self) -> str | None:
        """The step whose output it reads: a number, or an id before ids were rewritten."""
        return self.path[0] if self.root == "steps" else None


class _Piece(Struct, frozen=True):
    """A stretch of a template: plain text, or a reference with the text that it was written as."""

    text: str
    reference: Reference | None = None


def references(value: Json) -> tuple[Reference, ...]:
    """Every binding in a JSON value, in order. Raises `BindingError` when a template cannot be read."""
    found: list[Reference] = []
    for where, text in _strings(value, ""):
        found += [piece.reference for piece in _pieces(text, where) if piece.reference is not None]
    return tuple(found)


def validate(value: Json) -> tuple[BindingError, ...]:
    """Everything that is wrong with the templates in a JSON value; at most one error for each string."""
    errors: list[BindingError] = []
    for where, text in _strings(value, ""):
        try:
            _pieces(text, where)
        except BindingError as error:
            errors.append(error)
    return tuple(errors)


def resolve(value: Json, scope: Mapping[str, Json], frame: Callable[[Json], str] | None = None) -> Json:
    """The value with every binding replaced from `scope` (keys as in `ROOTS`).

    With `frame` every bound value, also one that stands alone, becomes the text that `frame` makes of it:
    what is shown to a model is data and never instruction. Raises `MissingValue` for a value that does
    not exist and `BindingError` for a template that cannot be read.
    """
    if isinstance(value, str):
        return _resolve_text(value, scope, frame)
    if isinstance(value, Mapping):
        return {_key(key, scope, frame): resolve(item, scope, frame) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, scope, frame) for item in value]
    return value


def rewrite(value: Json, ids: Mapping[str, str], *, bare: str = "") -> Json:
    """The value with step ids replaced by numbers as in `ids` (unknown ones stay as they are).

    With `bare` a binding that begins with none of `ROOTS` is a path below that root: `{{title}}` in the
    text for an approver means `{{input.title}}`.
    """
    if isinstance(value, str):
        return "".join(_rewritten(piece, ids) for piece in _pieces(value, "", bare)) if "{{" in value else value
    if isinstance(value, Mapping):
        return {rewrite(key, ids, bare=bare): rewrite(item, ids, bare=bare) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rewrite(item, ids, bare=bare) for item in value]
    return value


def _rewritten(piece: _Piece, ids: Mapping[str, str]) -> str:
    reference = piece.reference
    if reference is None:
        return piece.text.replace("{{", _ESCAPED)
    if reference.step is not None and reference.step in ids:
        return f"{{{{{'.'.join(('steps', ids[reference.step], *reference.path[1:]))}}}}}"
    return f"{{{{{reference.name}}}}}"


def _key(key: str, scope: Mapping[str, Json], frame: Callable[[Json], str] | None) -> str:
    resolved = _resolve_text(key, scope, frame)
    return resolved if isinstance(resolved, str) else _as_text(resolved)


def _resolve_text(text: str, scope: Mapping[str, Json], frame: Callable[[Json], str] | None) -> Json:
    if "{{" not in text:
        return text
    pieces = _pieces(text, "")
    if frame is None and len(pieces) == 1 and pieces[0].reference is not None:
        return _look_up(pieces[0].reference, scope)
    shown = frame or _as_text
    return "".join(p.text if p.reference is None else shown(_look_up(p.reference, scope)) for p in pieces)


def _look_up(reference: Reference, scope: Mapping[str, Json]) -> Json:
    value: Json = scope.get(reference.root, _ABSENT)
    for segment in reference.path:
        if isinstance(value, Mapping):
            value = value.get(segment, _ABSENT)
        elif isinstance(value, list | tuple) and segment.isascii() and segment.isdigit() and int(segment) < len(value):
            value = value[int(segment)]
        else:
            value = _ABSENT
    if value is _ABSENT:
        raise MissingValue(reference.name)
    return value


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _strings(value: Json, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield where, key
            yield from _strings(item, f"{where}.{key}" if where else key)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _strings(item, f"{where}[{index}]")


def _pieces(text: str, where: str, bare: str = "") -> list[_Piece]:
    pieces: list[_Piece] = []
    plain: list[str] = []
    at = 0
    while (start := text.find("{{", at)) >= 0:
        if start > at and text[start - 1] == "\\":
            plain += [text[at : start - 1], "{{"]
            at = start + 2
            continue
        end = text.find("}}", start + 2)
        if end < 0 or "{{" in text[start + 2 : end]:
            raise BindingError("`{{` is never closed; write `\\{{` for plain braces", start, where)
        plain.append(text[at:start])
        if any(plain):
            pieces.append(_Piece("".join(plain)))
        plain = []
        pieces.append(_Piece(text[start : end + 2], _reference(text[start + 2 : end].strip(), start, where, bare)))
        at = end + 2
    plain.append(text[at:])
    if any(plain):
        pieces.append(_Piece("".join(plain)))
    return pieces


def _reference(name: str, position: int, where: str, bare: str) -> Reference:
    root, *path = name.split(".")
    shown = f"{{{{{name}}}}}"
    if not name or not all(_SEGMENT.fullmatch(segment) for segment in (root, *path)):
        raise BindingError(
            f"`{shown}` is no binding: write a path with dots, `{{{{steps.2.ticket}}}}` say", position, where
        )
    if root not in ROOTS:
        if not bare:
            raise BindingError(f"`{shown}` begins with none of {', '.join(ROOTS)}", position, where)
        root, path = bare, [root, *path]
    if root == "run" and (len(path) != 1 or path[0] not in RUN_FIELDS):
        raise BindingError(f"`{shown}`: run has {', '.join(RUN_FIELDS)}", position, where)
    if root in ("steps", "calls") and not path:
        raise BindingError(f"`{shown}` names no {root[:-1]}: write `{{{{{root}.1}}}}`", position, where)
    if root == "calls" and not (path[0].isascii() and path[0].isdigit()):
        raise BindingError(f"`{shown}`: planned calls are counted from 0", position, where)
    return Reference(root, tuple(path), position, where)
