"""JSON Schemas in definitions: compiled, and asked whether every one of their keys means something."""

import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Final

from procedo.core.model import Inputs, Json, Schema
from procedo.jsonschemas import compile_schema
from procedo.sopfile.problems import Findings, nearest
from procedo.sopfile.reference import is_extension

__all__ = ["compile_checked", "compile_inputs"]

_ONE: Final = frozenset(
    {"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_MANY: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_PLAIN: Final = frozenset(
    {"$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "$vocabulary", "const"}
    | {"contentEncoding", "contentMediaType", "default", "dependentRequired", "deprecated", "description", "enum"}
    | {"examples", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maxItems", "maxLength"}
    | {"maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum", "multipleOf"}
    | {"pattern", "readOnly", "required", "title", "type", "uniqueItems", "writeOnly"}
)
KEYWORDS: Final = _ONE | _MANY | _NAMED | _PLAIN
"""Every keyword of JSON Schema 2020-12."""


def compile_checked(source: Json, file: str, line: int, name: str, findings: Findings) -> Schema | None:
    """Compile a schema; None when it is not valid, which is told. Keys that check nothing are told as well."""
    try:
        schema = _compiled(json.dumps(source))
    except ValueError as error:
        findings.add("bad-schema", file, line, f"{name}: {error}")
        return None
    formats = _checked_formats()
    for path, inner in _subschemas(source, ""):
        where = f"{name}: {path or 'the schema'}"
        for key in inner:
            if key not in KEYWORDS and not is_extension(key):
                near = nearest(key, KEYWORDS)
                hint = f"did you mean {near}?" if near else "JSON Schema has no such keyword"
                findings.add("schema-keyword", file, line, f"{where} has {key!r}, which checks nothing", hint)
        if (wanted := inner.get("format")) is not None and wanted not in formats:
            hint = f"checked are: {', '.join(sorted(formats))}"
            findings.add("schema-format", file, line, f"{where} has the format {wanted!r}, which is not checked", hint)
    return schema


def compile_inputs(source: Json, file: str, line: int, findings: Findings) -> Inputs | None:
    """Compile the table `[inputs]`: a JSON Schema whose properties may have defaults."""
    if isinstance(source, dict):
        for key in source:
            if key not in KEYWORDS and not is_extension(key):
                hint = f"inputs are described below [inputs.properties]; write [inputs.properties.{key}]"
                findings.add("unknown-key", file, line, f"unknown key {key!r} in [inputs]", hint)
    schema = compile_checked(source, file, line, "inputs", findings)
    if schema is None:
        return None
    properties = source.get("properties", {}) if isinstance(source, dict) else {}
    defaults = {name: inner["default"] for name, inner in properties.items() if "default" in _mapping(inner)}
    for violation in schema.violations(defaults):
        name = violation.path.split(".")[0]
        if name in defaults:
            findings.add("bad-default", file, line, f"the default of {name!r} does not fit: {violation}")
    return Inputs(schema, defaults)


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Schema:
    """Steps often share a schema, and compiling one is the slowest part of reading a definition."""
    return compile_schema(json.loads(text))


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _subschemas(source: Json, path: str) -> Iterator[tuple[str, Mapping[str, Json]]]:
    if not isinstance(source, Mapping):
        return
    yield path, source
    for key, value in source.items():
        inner = f"{path}.{key}" if path else key
        if key in _ONE:
            yield from _subschemas(value, inner)
        elif key in _MANY and isinstance(value, list):
            for index, item in enumerate(value):
                yield from _subschemas(item, f"{inner}.{index}")
        elif key in _NAMED:
            for name, item in _mapping(value).items():
                yield from _subschemas(item, f"{inner}.{name}")


@cache
def _checked_formats() -> frozenset[str]:
    from jsonschema import Draft202012Validator

    return frozenset(Draft202012Validator.FORMAT_CHECKER.checkers)
