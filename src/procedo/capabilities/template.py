"""`template`: text from inputs and outputs.

The engine fills in `{{…}}` bindings of arguments before a capability sees them, so `text` is handed on
as it comes. `template` with `values` is for texts that are themselves data, an earlier step's output say;
`{{input}}` stands for the piped value unless `values` has that name.
"""

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from procedo.capabilities.piped import PIPED
from procedo.core.model import Json
from procedo.ports import Capability, CapabilityCall

__all__ = ["fill", "template"]

_HOLE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def template() -> Capability:
    """The capability. A placeholder without a value is a failure that names it."""
    return Capability(
        "template",
        "Makes text: `text` with its bindings filled in, or `template` with `{{name}}` filled from `values`.",
        {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "The finished text."},
                "template": {"type": "string", "description": "Text with placeholders: {{name}}, {{name.inner.0}}."},
                "values": {"type": "object", "description": "What the placeholders stand for."},
                **PIPED,
            },
            "oneOf": [{"required": ["text"]}, {"required": ["template"]}],
            "dependentRequired": {"values": ["template"]},
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        _run,
        pure=True,
    )


async def _run(call: CapabilityCall) -> Json:
    arguments = call.arguments
    if "text" in arguments:
        return {"text": arguments["text"]}
    piped = {name: arguments[name] for name in PIPED if name in arguments}
    return {"text": fill(arguments["template"], {**piped, **arguments.get("values", {})})}


def fill(text: str, values: Mapping[str, Json]) -> str:
    """Put values in the place of `{{name}}` and `{{name.inner}}`; text goes in as it is, anything else as JSON.

    What is put in is not searched again. Raises `ValueError` that names the placeholder without a value,
    or the position of braces that do not close.
    """
    parts: list[str] = []
    at = 0
    for hole in _HOLE.finditer(text):
        parts += [_without_braces(text, at, hole.start()), _shown(_find(hole[1].strip(), values))]
        at = hole.end()
    parts.append(_without_braces(text, at, len(text)))
    return "".join(parts)


def _without_braces(text: str, start: int, end: int) -> str:
    if (position := text.find("{{", start, end)) >= 0:
        raise ValueError(f"template: the braces at character {position + 1} do not close; expected {{{{name}}}}")
    return text[start:end]


def _find(name: str, values: Mapping[str, Json]) -> Json:
    value: Json = values
    for part in name.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            near = get_close_matches(name, list(values), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"values has: {', '.join(values) or 'nothing'}"
            raise ValueError(f"template: {{{{{name}}}}} has no value ({hint})")
    return value


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
