"""Tools that take exactly what they declare, and say plainly what was wrong with a call.

The SDK would drop an argument that it does not know, and would parse a string that looks like JSON. Here the first
is an error that names it, and the second arrives as the string that it is.
"""

from difflib import get_close_matches
from typing import Any, Final

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from pydantic import ConfigDict, ValidationError

from procedo.core.model import Json
from procedo.errors import InvalidSop, NotFound, ProcedoError

__all__ = ["StrictTool", "told"]

_LONGEST_TEXT: Final = 8_000


class _Exact(FuncMetadata):
    """Takes arguments as they were sent."""

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        """Leave strings alone: whether a text is JSON is not for a transport to guess."""
        return data


class StrictTool(Tool):
    """A tool with closed arguments, whose refusals reach the caller as text: code, what is wrong, what is right."""

    def tighten(self, output_schema: dict[str, Json]) -> None:
        """Close the arguments and publish the schemas in their short form."""

        class Arguments(self.fn_metadata.arg_model):  # type: ignore[misc, name-defined]  # the base is made by the SDK
            model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

        model: type[ArgModelBase] = Arguments
        self.fn_metadata = _Exact(arg_model=model, output_schema=output_schema)
        self.parameters = _short(model.model_json_schema())

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        """Run the tool. Raises `ToolError` with the whole text for every failure that was foreseen."""
        try:
            self.fn_metadata.arg_model.model_validate(arguments)
        except ValidationError as error:
            raise ToolError(self._objection(error)) from None
        try:
            return await super().run(arguments, context, convert_result)
        except UnexpectedToolError as crash:
            if isinstance(crash.__cause__, ProcedoError):
                raise ToolError(told(crash.__cause__)) from None
            raise

    def _objection(self, error: ValidationError) -> str:
        known = list(self.parameters["properties"])
        wrong = "; ".join(_wrong(problem, known) for problem in error.errors())
        required = self.parameters.get("required", [])
        takes = ", ".join(f"{name} (required)" if name in required else name for name in known)
        return f"[bad_argument] {wrong}. {self.name} takes: {takes}. Nothing was done."


def _wrong(problem: Any, known: list[str]) -> str:
    name = str(problem["loc"][0])
    if problem["type"] == "missing":
        return f"{name} is missing"
    if problem["type"] == "extra_forbidden":
        near = get_close_matches(name, known, n=1)
        return f"unknown argument {name!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
    return f"{name}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"


def _short(schema: Json) -> Json:
    """The schema without titles that repeat each name, and without the null that stands for an argument left out."""
    if isinstance(schema, dict):
        return {k: _short(v) for k, v in schema.items() if (k, v) != ("default", None) and not _is_title(k, v)}
    return [_short(item) for item in schema] if isinstance(schema, list) else schema


def _is_title(key: str, value: Json) -> bool:
    return key == "title" and isinstance(value, str)


def told(error: ProcedoError) -> str:
    """An error as its reader needs it: code, what is wrong, and what would be right."""
    text = f"[{error.code}] {error}"
    if isinstance(error, NotFound) and (unnamed := [name for name in error.near if name not in text]):
        text += f" Near names: {', '.join(unnamed)}."
    if isinstance(error, InvalidSop):
        text = "\n".join([text, *error.problems])
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
