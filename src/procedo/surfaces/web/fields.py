"""What a form asks for, made of the JSON Schema of the inputs. Pure: no request, no template, no validation.

Each part of a schema becomes the field that suits it. What no field suits is asked for as JSON, with its schema beside
it, and a rule that a field does not tell in words is shown as it was declared: nothing of a schema is dropped.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.jsonschemas import rules_in_words

__all__ = ["Choice", "Field", "Group", "Lines", "Number", "Raw", "Rows", "Text", "drawn"]

_DEEPEST: Final = 5
_MOST_FIELDS: Final = 200
_ONE_LINE: Final = 120
"""A text that may be longer than this many characters gets several lines."""
_SILENT: Final = frozenset(
    {"$anchor", "$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated", "description"}
    | {"examples", "readOnly", "title", "type", "writeOnly"}
)
"""Keywords that ask for nothing, or that the field itself shows."""
_ANNOTATIONS: Final = frozenset({"$comment", "default", "deprecated", "description", "examples", "title"})
_TEXT_RULES: Final = frozenset({"format", "maxLength", "minLength", "pattern"})
_NUMBER_RULES: Final = frozenset({"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"})
_LIST_RULES: Final = frozenset({"maxItems", "minItems", "uniqueItems"})
_WIDENING: Final = frozenset(
    {"$ref", "allOf", "anyOf", "dependentSchemas", "else", "if", "minProperties", "oneOf", "patternProperties", "then"}
    | {"unevaluatedProperties"}
)
"""With one of these an object may take properties that it does not list."""
_SCALARS: Final = ("string", "integer", "number", "boolean")


class Field(Struct, frozen=True, kw_only=True):
    """A field: its key in the object around it, how it is named, and what may be put into it.

    `rules` are in words; `rest` holds the keywords of the schema that neither the field nor its rules tell.
    """

    key: str
    label: str
    required: bool
    schema: Json
    description: str = ""
    rules: tuple[str, ...] = ()
    rest: Mapping[str, Json]
    nullable: bool = False

    @property
    def has_default(self) -> bool:
        """True when the schema declares a default."""
        return isinstance(self.schema, dict) and "default" in self.schema


class Text(Field, frozen=True, kw_only=True):
    """A text. `rows` 0 is one line that cannot be broken; 1 grows with its content."""

    format: str = ""
    rows: int = 0


class Number(Field, frozen=True, kw_only=True):
    """A number."""

    integer: bool


class Choice(Field, frozen=True, kw_only=True):
    """One of several values."""

    options: tuple[Json, ...]


class Lines(Field, frozen=True, kw_only=True):
    """A list with one entry on each line. `item` is the JSON type of its entries, one of the scalars."""

    item: str


class Group(Field, frozen=True, kw_only=True):
    """An object. `others` when properties may be given besides the fields."""

    fields: tuple[Field, ...]
    others: bool


class Rows(Field, frozen=True, kw_only=True):
    """A list of objects. At least `fewest` are asked for."""

    item: Group
    fewest: int


class Raw(Field, frozen=True, kw_only=True):
    """Any JSON."""


def drawn(schema: Json) -> Field:
    """The form for a schema: a group of fields, or one for JSON when the whole is no object with properties."""
    field = _Drawing(schema).field("", schema, required=True, depth=0)
    return field if isinstance(field, Group) else _raw("", schema, required=False)


def _raw(key: str, schema: Json, *, required: bool) -> Raw:
    told = schema if isinstance(schema, dict) else {}
    rest = {word: rule for word, rule in told.items() if word not in _ANNOTATIONS}
    return Raw(
        key=key, label=_label(key, told), required=required, schema=schema, rest=rest, description=_description(told)
    )


def _label(key: str, schema: Mapping[str, Json]) -> str:
    title = schema.get("title")
    return title if isinstance(title, str) and title.strip() else key


def _description(schema: Mapping[str, Json]) -> str:
    text = schema.get("description")
    return text if isinstance(text, str) else ""


class _Drawing:
    """One drawing: the whole schema, in which references lead, and how many fields there are already."""

    def __init__(self, whole: Json) -> None:
        self._whole = whole
        self._count = 0
        # With a second identifier inside, a reference may start elsewhere than at the top.
        inner = json.dumps(whole).count('"$id"') - (isinstance(whole, dict) and "$id" in whole)
        self._follows = inner == 0

    def field(self, key: str, schema: Json, *, required: bool, depth: int) -> Field | None:
        """The field for a property; None for one that may not be given."""
        if schema is False:
            return None
        self._count += 1
        seen = self._resolved(schema)
        if not isinstance(seen, dict) or depth > _DEEPEST or self._count > _MOST_FIELDS:
            return _raw(key, schema, required=required)
        plain, nullable = _without_null(seen, self._resolved)
        field = self._suited(key, plain, required=required, depth=depth)
        return _raw(key, schema, required=required) if field is None else altered(field, nullable=nullable)

    def _resolved(self, schema: Json) -> Json:
        """A schema in place of a reference to it; the reference itself when it cannot simply be replaced."""
        for _ in range(_DEEPEST):
            if not isinstance(schema, dict) or "$ref" not in schema or not self._follows:
                return schema
            beside = {word: rule for word, rule in schema.items() if word != "$ref"}
            found = _pointed(self._whole, schema["$ref"])
            if not isinstance(found, dict) or not beside.keys() <= _ANNOTATIONS:
                return schema
            schema = {**found, **beside}
        return schema

    def _suited(  # noqa: PLR0911  # one for each kind of field
        self, key: str, schema: Mapping[str, Json], *, required: bool, depth: int
    ) -> Field | None:
        about = _About(key, schema, required)
        if "$ref" in schema:
            return None
        if "const" in schema or isinstance(schema.get("enum"), list):
            options = [schema["const"]] if "const" in schema else schema["enum"]
            return Choice(options=tuple(options), **about.told(frozenset({"const", "enum"})))
        match schema.get("type"):
            case "boolean":
                return Choice(options=(True, False), **about.told())
            case "string":
                return Text(format=str(schema.get("format", "")), rows=_rows(schema), **about.told(_TEXT_RULES))
            case "integer" | "number" as kind:
                return Number(integer=kind == "integer", **about.told(_NUMBER_RULES))
            case "array":
                return self._list(about, depth)
            case "object":
                return self._group(about, depth)
            case None if isinstance(schema.get("properties"), dict):
                return self._group(about, depth)
            case None if "description" in schema and schema.keys() <= _SILENT:
                # What is described and not typed is a text, as on the command line.
                return Text(rows=_rows(schema), **about.told())
            case _:
                return None

    def _list(self, about: "_About", depth: int) -> Field | None:
        items = self._resolved(about.schema.get("items"))
        if "prefixItems" in about.schema or not isinstance(items, dict):
            return None
        listed = items.get("enum")
        texts = isinstance(listed, list) and all(isinstance(item, str) for item in listed)
        kind = items.get("type", "string" if texts else None)
        if kind in _SCALARS and "const" not in items:
            return Lines(item=kind, **about.told(_LIST_RULES | {"items"}, each=items))
        item = self._suited("", items, required=True, depth=depth + 1) if depth < _DEEPEST else None
        if not isinstance(item, Group):
            return None
        fewest = about.schema.get("minItems", 1 if about.required else 0)
        return Rows(item=item, fewest=int(fewest), **about.told(_LIST_RULES | {"items"}))

    def _group(self, about: "_About", depth: int) -> Field | None:
        properties: Mapping[str, Json] = about.schema.get("properties") or {}
        needed = [name for name in about.schema.get("required", ()) if isinstance(name, str)]
        asked = {**properties, **{name: True for name in needed if name not in properties}}
        if not asked:
            return None
        found = (self.field(name, inner, required=name in needed, depth=depth + 1) for name, inner in asked.items())
        more = about.schema.get("additionalProperties")
        others = more is not False and (more is not None or not _WIDENING.isdisjoint(about.schema))
        told = about.told(
            frozenset({"additionalProperties"} if isinstance(more, bool) else ()) | {"properties", "required"}
        )
        return Group(fields=tuple(field for field in found if field is not None), others=others, **told)


class _About(Struct, frozen=True):
    """What every field tells of its schema."""

    key: str
    schema: Mapping[str, Json]
    required: bool

    def told(self, known: Iterable[str] = (), each: Mapping[str, Json] | None = None) -> dict[str, Json]:
        """The common part of a field that shows the keywords `known`; `each` is the schema of a list's entries."""
        words = {word: rule for word, rule in self.schema.items() if word in known and (word, rule) != ("minLength", 1)}
        rules = list(rules_in_words({word: rule for word, rule in words.items() if word not in ("const", "enum")}))
        rest = {
            word: rule
            for word, rule in self.schema.items()
            if word not in known and word not in _SILENT and not word.startswith("x-")
        }
        if each is not None:
            inner = _TEXT_RULES | _NUMBER_RULES | {"enum"}
            rules += [f"each entry: {rule}" for rule in rules_in_words({w: r for w, r in each.items() if w in inner})]
            if left := {w: r for w, r in each.items() if w not in inner | _SILENT and not w.startswith("x-")}:
                rest["items"] = left
        examples = self.schema.get("examples")
        if isinstance(examples, list) and examples:
            rules.append("for example " + ", ".join(e if isinstance(e, str) else json.dumps(e) for e in examples[:3]))
        return {
            "key": self.key,
            "label": _label(self.key, self.schema),
            "required": self.required,
            "schema": self.schema,
            "description": _description(self.schema),
            "rules": tuple(rules),
            "rest": rest,
        }


def _rows(schema: Mapping[str, Json]) -> int:
    """How many lines a text begins with."""
    default, longest = schema.get("default"), schema.get("maxLength")
    if "contentMediaType" in schema or (isinstance(default, str) and "\n" in default):
        return 5
    if "format" in schema or "pattern" in schema or (longest is not None and longest <= _ONE_LINE):
        return 0
    return 5 if schema.get("minLength", 0) >= _ONE_LINE or (longest or 0) > 4 * _ONE_LINE else 1


def _without_null(schema: Mapping[str, Json], resolved: Callable[[Json], Json]) -> tuple[Mapping[str, Json], bool]:
    """The schema for values that are not null, and whether null is one too."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        return ({**schema, "type": others[0]}, len(kinds) == 2) if len(others) == 1 else (schema, False)
    for word in ("anyOf", "oneOf"):
        ways = schema.get(word)
        if (
            isinstance(ways, list)
            and len(ways) == 2
            and {"type": "null"} in ways
            and schema.keys() <= _ANNOTATIONS | {word}
        ):
            inner = resolved(next((way for way in ways if way != {"type": "null"}), None))
            if isinstance(inner, dict):
                return {**inner, **{name: rule for name, rule in schema.items() if name != word}}, True
    return schema, False


def _pointed(whole: Json, reference: Json) -> Json:
    """What a reference of the form `#/a/b` leads to in the schema, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found = whole
    for part in reference[2:].split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found
