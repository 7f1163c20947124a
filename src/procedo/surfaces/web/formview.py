"""A form as its template draws it: fields with what was typed, and each problem at the field that it is about."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Final

from msgspec import Struct

from procedo.core.model import Json
from procedo.surfaces.web.fields import Choice, Field, Group, Lines, Number, Raw, Rows, Text
from procedo.surfaces.web.formvalues import MOST_ROWS, Entries, below, rows_of
from procedo.surfaces.web.words import shown, written

__all__ = ["Node", "Option", "at_fields", "nodes", "wrong"]

_BUTTONS: Final = 5
"""So many options stand beside each other; more are a list that opens."""
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_INPUT_MODES: Final[Mapping[str, str]] = {"email": "email", "idn-email": "email", "uri": "url", "iri": "url"}


class Option(Struct, frozen=True):
    """One of several values: what is sent, what is read, and whether it is the chosen one."""

    value: str
    text: str
    chosen: bool


class Node(Struct, frozen=True, kw_only=True):
    """One field of the page.

    `kind` is line, date, area, code, buttons, list, group, rows or row. `id` is unique on the page, and `at` the place
    of the value. `empty` tells what follows when nothing is given.
    """

    kind: str
    id: str
    name: str
    at: str
    label: str
    key: str = ""
    required: bool = False
    help: tuple[str, ...] = ()
    empty: str = ""
    rest: str = ""
    text: str = ""
    mode: str = ""
    size: int = 0
    problem: str = ""
    options: tuple[Option, ...] = ()
    inner: tuple["Node", ...] = ()
    full: bool = False

    @property
    def described(self) -> str:
        """The ids of what describes the field, for `aria-describedby`."""
        parts = (("help", self.help or self.empty), ("problem", self.problem))
        return " ".join(f"{self.id}-{name}" for name, there in parts if there)

    @property
    def target(self) -> str:
        """The id of what takes the focus."""
        return f"{self.id}-0" if self.kind == "buttons" else self.id


def nodes(asked: Field, sent: Entries, problems: Mapping[str, str]) -> tuple[Node, ...]:
    """The fields of a form. A group at the top is its fields; `problems` are by place."""
    view = _View(sent, problems)
    if isinstance(asked, Group) and "j" not in sent:
        return view.inside(asked, "")
    return (view.node(asked, ""),)


def wrong(all_nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The fields with a problem, in the order of the page."""
    return tuple(node for top in all_nodes for node in _all(top) if node.problem)


def _all(node: Node) -> Iterator[Node]:
    yield node
    for one in node.inner:
        yield from _all(one)


class _View:
    def __init__(self, sent: Entries, problems: Mapping[str, str]) -> None:
        self._sent = sent
        self._problems = problems
        self._count = 0

    def _id(self) -> str:
        self._count += 1
        return f"field-{self._count}"

    def inside(self, asked: Group, at: str) -> tuple[Node, ...]:
        """The fields of a group."""
        found = [self.node(one, below(at, one.key)) for one in asked.fields]
        if asked.others:
            place = f"{at}#others"
            found.append(
                Node(
                    kind="code",
                    id=self._id(),
                    name=f"o{at}",
                    at=place,
                    label="Further values" if at else "Further inputs",
                    help=('An object in JSON, for what has no field here: {"name": "value"}',),
                    text=self._sent.get(f"o{at}", ""),
                    problem=self._problems.get(place, ""),
                    size=2,
                )
            )
        return tuple(found)

    def node(self, asked: Field, at: str) -> Node:  # noqa: PLR0911  # one for each kind of field
        """One field."""
        json_here = f"j{at}" in self._sent or isinstance(asked, Raw)
        about = self._about(asked, at, json_here=json_here)
        if json_here:
            text = self._sent.get(f"j{at}", "")
            return Node(kind="code", name=f"j{at}", text=text, size=_size(text, 3), **about)
        text = self._sent.get(f"v{at}", "")
        match asked:
            case Group():
                return Node(kind="group", name="", inner=self.inside(asked, at), **about)
            case Rows():
                return self._rows(asked, at, about)
            case Choice():
                return _choice(asked, text, at, about)
            case Lines():
                return Node(kind="area", name=f"v{at}", text=text, size=_size(text, 3), **about)
            case Text(format="date") if not text or _is_date(text):
                return Node(kind="date", name=f"v{at}", text=text, **about)
            case Text(rows=rows) if rows or "\n" in text:
                return Node(kind="area", name=f"v{at}", text=text, size=_size(text, rows), **about)
            case _:
                return Node(kind="line", name=f"v{at}", text=text, mode=_mode(asked), **about)

    def _rows(self, asked: Rows, at: str, about: dict[str, Json]) -> Node:
        count = rows_of(self._sent, at)
        rows = tuple(self._row(asked.item, below(at, n), f"{about['label']}, entry {n + 1}") for n in range(count))
        return Node(kind="rows", name=f"n{at}", text=str(count), inner=rows, full=count >= MOST_ROWS, **about)

    def _row(self, item: Group, at: str, label: str) -> Node:
        if f"j{at}" in self._sent:
            return Node(kind="row", id=self._id(), name="", at=at, label=label, inner=(self.node(item, at),))
        problem = self._problems.get(at, "")
        inner = self.inside(item, at)
        return Node(kind="row", id=self._id(), name="", at=at, label=label, problem=problem, inner=inner)

    def _about(self, asked: Field, at: str, *, json_here: bool) -> dict[str, Json]:
        kinds = () if not json_here else ("JSON: texts stand in double quotes, lists in [ ], objects in { }",)
        if isinstance(asked, Lines) and not json_here:
            words = {"string": "one on each line", "boolean": "true or false on each line"}
            kinds = (words.get(asked.item, "one number on each line"),)
        rules = [rule for rule in asked.rules if rule != "text in the format date"]  # its field asks for nothing else
        told = (asked.description, "; ".join((*kinds, *rules)))
        rest = (
            written(asked.schema if json_here else asked.rest)
            if (json_here and asked.schema is not True) or asked.rest
            else ""
        )
        return {
            "id": self._id(),
            "at": at,
            "label": shown(asked.label) or "Inputs",
            "key": shown(asked.key) if asked.key and asked.key != asked.label else "",
            "required": asked.required,
            "help": tuple(shown(text) for text in told if text),
            "empty": _when_empty(asked),
            "rest": rest,
            "problem": self._problems.get(at, ""),
        }


def _when_empty(asked: Field) -> str:
    if not asked.has_default:
        return ""
    default = asked.schema["default"]
    return f"Without a value: {shown(default if isinstance(default, str) and default else json.dumps(default))}"


def _choice(asked: Choice, text: str, at: str, about: dict[str, Json]) -> Node:
    values = [json.dumps(value, sort_keys=True) for value in asked.options]
    options = [Option(sent, _words(value), sent == text) for sent, value in zip(values, asked.options, strict=True)]
    if text and text not in values:
        options.append(Option(text, f"{shown(text)} (not offered any more)", chosen=True))
    few = len(options) <= _BUTTONS
    if not few or not asked.required:
        nothing = "Not given" if few else "Choose one" if asked.required else "Not given"
        options.insert(0, Option("", nothing, not text))
    return Node(kind="buttons" if few else "list", name=f"v{at}", text=text, options=tuple(options), **about)


def _words(value: Json) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, str) and value.strip():
        return shown(value)
    return "none (null)" if value is None else shown(json.dumps(value, ensure_ascii=False))


def _mode(asked: Field) -> str:
    if isinstance(asked, Number):
        return "decimal"
    return _INPUT_MODES.get(asked.format, "") if isinstance(asked, Text) else ""


def _size(text: str, least: int) -> int:
    return min(max(least, text.count("\n") + 1), 20)


def _is_date(text: str) -> bool:
    """True for what a browser's date field shows; anything else it would silently leave empty."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


# --- problems ------------------------------------------------------------------------------------


def at_fields(
    asked: Field, sent: Entries, places: Iterable[tuple[str, str, str]]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Violations of the schema by the place of their fields, and those that no field stands for."""
    known = dict(_places(asked, sent, "", ""))
    found: dict[str, list[str]] = {}
    left: list[str] = []
    for path, expected, got in places:
        nearest = max((one for one in known if _begins(path, one)), key=len, default="")
        inside = path[len(nearest) :].lstrip(".")
        told = _told(inside, expected, got, known.get(nearest))
        if nearest:
            found.setdefault(known[nearest][0], []).append(told)
        else:
            left.append(told)
    return {at: " ".join(texts) for at, texts in found.items()}, tuple(left)


def _begins(path: str, start: str) -> bool:
    return path == start or path.startswith(f"{start}.")


def _told(inside: str, expected: str, got: str, field: tuple[str, Field] | None) -> str:
    if (expected, got) == ("a value", "nothing"):
        return "This is needed." if not inside else f"{shown(inside)} is needed."
    where = f"{shown(inside)}: " if inside else ""
    if inside.isdecimal() and field is not None and isinstance(field[1], Lines):
        where = f"Entry {int(inside) + 1}: "
    text = f"{where}expected {shown(expected)}, got {shown(got)}."
    return text[:1].upper() + text[1:]


def _places(asked: Field, sent: Entries, path: str, at: str) -> Iterator[tuple[str, tuple[str, Field]]]:
    """Every field that is there, by the dotted path of its value: its place, and itself."""
    if path:
        yield path, (at, asked)
    if f"j{at}" in sent:
        return
    parts: list[tuple[str | int, Field]] = []
    if isinstance(asked, Group):
        parts += [(one.key, one) for one in asked.fields]
    if isinstance(asked, Rows):
        parts += [(number, asked.item) for number in range(rows_of(sent, at))]
    for key, one in parts:
        yield from _places(one, sent, f"{path}.{key}" if path else str(key), below(at, key))
