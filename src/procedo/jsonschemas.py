"""JSON Schemas (2020-12) as callables for the core: compiled once, violations told as path, expected, found.

A schema is complete in itself: a reference that leaves it is refused, nothing is ever fetched. The
validator is imported at the first schema, because most starts of the program need none.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from procedo.core.model import Json, Schema, Violation

if TYPE_CHECKING:
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.protocols import Validator
    from referencing import Registry, Resource
    from referencing._core import Resolver

__all__ = ["compile_schema", "kind_of", "rules_in_words"]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_MOST: Final = 20
_LONGEST: Final = 120


def compile_schema(source: Json) -> Schema:
    """Compile a schema. Raises `ValueError` that says where it is malformed, or which reference leaves it.

    The same schema again is compiled already: to check one takes far longer than to use it.
    """
    try:
        return _compiled(json.dumps(source))
    except (TypeError, RecursionError):
        return _compile(source)


@functools.lru_cache(maxsize=512)
def _compiled(text: str) -> Schema:
    return _compile(json.loads(text))


def _compile(source: Json) -> Schema:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if not isinstance(source, dict | bool):
        raise ValueError(f"a schema is an object, or true or false, got {kind_of(source)}")
    if isinstance(source, dict) and source.get("$schema", _DIALECT) not in (_DIALECT, f"{_DIALECT}#"):
        raise ValueError(f"$schema: expected {_DIALECT}, got {source['$schema']!r}")
    try:
        Draft202012Validator.check_schema(source, format_checker=Draft202012Validator.FORMAT_CHECKER)
    except SchemaError as error:
        raise ValueError(f"the schema is malformed at {_told(error)}") from error
    except RecursionError as error:
        raise ValueError("the schema is nested too deeply") from error
    _check_references(source)
    validator = Draft202012Validator(
        source, registry=_known_documents(), format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    return Schema(source, lambda value: _violations(validator, value))


def kind_of(value: Json) -> str:
    """The JSON type of a value, in JSON Schema's words."""
    if value is None:
        return "null"
    for kind, word in ((bool, "boolean"), (str, "string"), (int | float, "number"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return word
    return type(value).__name__


def rules_in_words(keywords: Mapping[str, Json]) -> tuple[str, ...]:
    """What the keywords of a schema ask for, in the words that a violation uses; others are left out."""
    asked = ((_EXPECTED.get(word), wanted) for word, wanted in keywords.items() if wanted is not False)
    return tuple(tell(wanted) for tell, wanted in asked if tell is not None)


def _known_documents() -> "Registry[Any]":
    """The published schemas of JSON Schema itself, and nothing else: what is not in here is never fetched."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it ships no types

    found: Registry[Any] = REGISTRY
    return found


def _check_references(source: Json) -> None:
    from referencing.jsonschema import DRAFT202012

    resource = DRAFT202012.create_resource(source)
    _follow(resource, _known_documents().resolver_with_root(resource))


def _follow(resource: "Resource[Any]", resolver: "Resolver[Any]") -> None:
    from referencing.exceptions import Unresolvable

    contents = resource.contents if isinstance(resource.contents, Mapping) else {}
    for word in ("$ref", "$dynamicRef"):
        if isinstance(reference := contents.get(word), str):
            try:
                resolver.lookup(reference)
            except Unresolvable as error:
                message = f"{word} {reference!r} leads nowhere inside the schema, and nothing is fetched"
                raise ValueError(message) from error
    for inner in resource.subresources():
        _follow(inner, resolver.in_subresource(inner))


def _violations(validator: "Validator", value: Json) -> tuple[Violation, ...]:
    from jsonschema.exceptions import best_match

    try:
        found = sorted(validator.iter_errors(value), key=lambda error: [str(part) for part in error.absolute_path])
        # Of several alternatives only the one that came nearest helps the reader.
        nearest = [error if error.validator not in {"anyOf", "oneOf"} else best_match([error]) for error in found]
    except RecursionError:
        return (Violation("", "a schema whose references come to an end", "one that refers to itself for ever"),)
    told = [one for error in nearest for one in _violation(error)]
    if len(told) > _MOST:
        rest = len(told) - _MOST
        told = [*told[:_MOST], Violation("", "no further violations", f"{rest} more")]
    return tuple(dict.fromkeys(told))


def _told(error: "SchemaError") -> str:
    return str(_violation(error)[0])


def _violation(error: "ValidationError | SchemaError") -> list[Violation]:
    path = ".".join(str(part) for part in error.absolute_path)
    wanted: Json = error.validator_value
    value: Json = error.instance
    if error.validator == "required":
        return [Violation(_join(path, name), "a value", "nothing") for name in wanted if name not in value]
    if error.validator == "additionalProperties" and wanted is False:
        return [Violation(_join(path, name), "no such property", _short(value[name])) for name in _extras(error)]
    if error.schema is False:
        expected = "no value here"
    elif error.validator in _EXPECTED:
        expected = _EXPECTED[error.validator](wanted)
    else:
        expected = f"{error.validator} {_short(wanted)}"
    return [Violation(path, expected, kind_of(value) if error.validator == "type" else _short(value))]


def _extras(error: "ValidationError | SchemaError") -> list[str]:
    schema: Json = error.schema
    value: Json = error.instance
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return [name for name in value if name not in known and not any(re.search(pattern, name) for pattern in patterns)]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _words(wanted: Json) -> str:
    return " or ".join(wanted) if isinstance(wanted, list) else str(wanted)


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _alternatives(wanted: Json) -> str:
    if all(isinstance(inner, dict) and set(inner) == {"required"} for inner in wanted):
        return "an object with " + ", or with ".join(" and ".join(inner["required"]) for inner in wanted)
    kinds = [inner.get("type") or inner.get("const") for inner in wanted if isinstance(inner, dict)]
    named = [_words(kind) for kind in kinds if kind is not None]
    return " or ".join(named) if len(named) == len(wanted) else f"one of {len(wanted)} forms: {_short(wanted)}"


_EXPECTED: Final[Mapping[object, Callable[[Json], str]]] = {
    "type": _words,
    "enum": lambda wanted: "one of " + ", ".join(_short(item) for item in wanted),
    "const": _short,
    "anyOf": _alternatives,
    "oneOf": _alternatives,
    "pattern": lambda wanted: f"text that matches {wanted}",
    "format": lambda wanted: f"text in the format {wanted}",
    "minLength": lambda wanted: f"at least {wanted} characters",
    "maxLength": lambda wanted: f"at most {wanted} characters",
    "minimum": lambda wanted: f"at least {wanted}",
    "maximum": lambda wanted: f"at most {wanted}",
    "exclusiveMinimum": lambda wanted: f"more than {wanted}",
    "exclusiveMaximum": lambda wanted: f"less than {wanted}",
    "multipleOf": lambda wanted: f"a multiple of {wanted}",
    "minItems": lambda wanted: f"at least {wanted} items",
    "maxItems": lambda wanted: f"at most {wanted} items",
    "uniqueItems": lambda _: "items that all differ",
    "minProperties": lambda wanted: f"at least {wanted} properties",
    "maxProperties": lambda wanted: f"at most {wanted} properties",
}
