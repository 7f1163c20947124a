"""The input schemas of tools, compiled. Those of servers are read as what JSON Schema is today."""

from procedo.core.model import Json, Schema
from procedo.jsonschemas import compile_schema

__all__ = ["compile_tool_schema"]


def compile_tool_schema(source: Json) -> Schema:
    """Compile a tool's input schema. Raises `ValueError` when it cannot be used.

    Many servers name an older draft in it, whose words mean the same in what they write.
    """
    if isinstance(source, dict) and "$schema" in source:
        source = {word: value for word, value in source.items() if word != "$schema"}
    return compile_schema(source)
