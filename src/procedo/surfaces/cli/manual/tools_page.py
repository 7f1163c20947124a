"""The page about MCP: tools with their arguments, results and examples, and resources."""

import json
from collections.abc import Iterator
from typing import Any, Final, Literal, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from procedo.core.model import Json
from procedo.surfaces import shapes
from procedo.surfaces.cli.manual.markdown import code, page, table
from procedo.surfaces.cli.manual.tool_examples import EXAMPLES

__all__ = ["tools_page"]

_RESULTS: Final = {
    "sop_list": "CatalogueView",
    "sop_describe": "DescribeView",
    "sop_status": "RunView, or without run_id AttentionView",
}


def tools_page() -> str:
    """Every tool, every shape of a result, every resource."""
    from procedo.surfaces.mcp.resources import RESOURCES
    from procedo.surfaces.mcp.server import built_tools

    blocks: list[str] = []
    for tool in built_tools():
        arguments = _arguments(tool.parameters)
        shown = EXAMPLES[tool.name]
        blocks += [
            f"## {tool.name}",
            f"{tool.description}",
            table(("argument", "value", "meaning"), arguments),
            f"Answers with: {_linked(_RESULTS.get(tool.name, 'RunView'))}.",
            "\n".join(["```json", json.dumps(shown.arguments, ensure_ascii=False), "```"]),
            "\n".join(["```json", json.dumps(shown.answer, indent=2, ensure_ascii=False), "```"]),
        ]
    return page(
        "Reference: tools and resources",
        "The eight tools of the MCP server, what they take and what they answer, and the resources beside them. Each "
        "example is from one run of the procedure in the [README](../../README.md), shortened.",
        *blocks,
        "## Shapes of results",
        "The structured content of an answer; its text says the same. A key in brackets is absent when it has nothing "
        "to say. Times are UTC, durations are seconds.",
        *_shapes(),
        "## Resources",
        table(("address", "what"), ((code(address), about) for address, about in RESOURCES)),
        "Each procedure is a prompt as well, with its inputs as arguments.",
    )


def _arguments(schema: Json) -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", [])
    for name, about in schema.get("properties", {}).items():
        shown = code(name) if name in required else f"[{code(name)}]"
        yield shown, _value(about), str(about.get("description", ""))


def _value(about: Json) -> str:
    if "enum" in about:
        return ", ".join(map(str, about["enum"]))
    kind = str(about.get("type", "any JSON"))
    if "maximum" in about:
        kind += f", {about.get('minimum', 0):g} to {about['maximum']:g}"
    if about.get("default") not in (None, ""):
        kind += f"; {about['default']:g} when absent" if not isinstance(about["default"], str) else ""
    return kind


def _shapes() -> Iterator[str]:
    for name in shapes.__all__:
        shape = getattr(shapes, name)
        if is_typeddict(shape):
            yield f"### {name}"
            yield " ".join((shape.__doc__ or "").split())
            yield table(("key", "value"), _keys(shape))


def _keys(shape: Any) -> Iterator[tuple[str, str]]:
    for name, hint in get_type_hints(shape, include_extras=True).items():
        optional = get_origin(hint) is NotRequired
        bare = get_args(hint)[0] if optional else hint
        yield (f"[{code(name)}]" if optional else code(name)), _type(bare)


_WORDS: Final = {str: "text", bool: "true or false", int: "whole number", float: "number", Any: "any JSON"}


def _type(hint: Any) -> str:
    arguments = get_args(hint)
    match get_origin(hint):
        case None:
            return _linked(hint.__name__) if is_typeddict(hint) else _WORDS.get(hint, "any JSON")
        case kind if kind is Literal:
            return ", ".join(map(str, arguments))
        case kind if kind is list:
            return f"list of: {_type(arguments[0])}"
        case kind if kind is dict:
            return "object"
        case _:
            return " or ".join(map(_type, arguments))


def _linked(text: str) -> str:
    return " ".join(
        f"[{word.rstrip(',')}](#{word.rstrip(',').lower()}){',' if word.endswith(',') else ''}"
        if word.rstrip(",").endswith(("View", "Line", "Entry", "Usage", "Call"))
        else word
        for word in text.split()
    )
