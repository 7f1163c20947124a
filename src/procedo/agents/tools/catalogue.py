"""What the built-in tools are: schemas, declarations, and how each one is run."""

from collections.abc import Mapping
from typing import Final

import anyio.to_thread

from procedo.agents.identity import schema_digest
from procedo.agents.parts import Effect, Origin, SecurityPolicy, Tool, ToolId
from procedo.agents.tools import files, shell, web
from procedo.config.tool_names import BUILT_IN
from procedo.core.model import Json

__all__ = ["TOOLS", "built_in", "perform"]

_GRACE_S: Final = 5.0
"""How much longer than the tool's own limit a session waits for it, in seconds."""
_FILE_S: Final = 60.0

_PATH: Final[Json] = {"type": "string", "minLength": 1, "description": "Relative to the workspace, or absolute."}
_FOLDER: Final[Json] = {"type": "string", "minLength": 1, "description": "A folder; the workspace when absent."}


def _object(required: list[str], **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TOOLS: Final[Mapping[str, tuple[Effect, str, Json]]] = {
    "file_read": (
        Effect.READ_ONLY,
        "Reads a text file, whole or from `line` on.",
        _object(
            ["path"],
            path=_PATH,
            line={"type": "integer", "minimum": 1, "description": "The first line wanted, from 1."},
            lines={"type": "integer", "minimum": 1, "description": "How many lines; to the end when absent."},
        ),
    ),
    "file_write": (
        Effect.IDEMPOTENT,
        "Writes a whole text file, in place of what was there.",
        _object(["path", "content"], path=_PATH, content={"type": "string"}),
    ),
    "file_edit": (
        Effect.ACTING,
        "Exchanges one piece of a text file for another. The old text has to occur exactly once.",
        _object(
            ["path", "old", "new"],
            path=_PATH,
            old={"type": "string", "minLength": 1},
            new={"type": "string"},
            all={"type": "boolean", "description": "True exchanges every occurrence."},
        ),
    ),
    "file_list": (
        Effect.READ_ONLY,
        "Lists a folder.",
        _object(
            [], path=_FOLDER, depth={"type": "integer", "minimum": 1, "maximum": 8, "description": "1 when absent."}
        ),
    ),
    "file_search": (
        Effect.READ_ONLY,
        "Finds the lines that hold a text, in the files below a folder; without a text, the files by name.",
        _object(
            [],
            path=_FOLDER,
            text={"type": "string", "description": "Plain text, no pattern."},
            name={"type": "string", "minLength": 1, "description": "Only files with such a name, such as *.py."},
            case={"type": "boolean", "description": "False takes upper and lower case as the same."},
        ),
    ),
    "http_request": (
        Effect.ACTING,
        "Calls an allowed web host and returns status, headers and body.",
        _object(
            ["url"],
            method={"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], "description": "GET when absent."},
            url={"type": "string"},
            headers={"type": "object", "additionalProperties": {"type": "string"}},
            json={"description": "Sent as a JSON body."},
            body={"type": "string", "description": "Sent as a text body."},
        ),
    ),
    "shell": (
        Effect.ACTING,
        "Runs one allowed program with its arguments, without a shell, and returns exit code and outputs.",
        _object(
            ["argv"],
            argv={"type": "array", "items": {"type": "string"}, "minItems": 1},
            stdin={"type": "string"},
            cwd=_FOLDER,
        ),
    ),
}
"""Effect, description and input schema of each built-in tool."""


def built_in(name: str, security: SecurityPolicy, *, repeats: bool) -> Tool:
    """The tool as a contract holds it."""
    effect, description, schema = TOOLS[name]
    limits = {"shell": security.shell_timeout_s, "http_request": security.http_timeout_s}
    return Tool(
        id=ToolId(Origin.BUILT_IN, "", name, schema_digest(name, description, schema)),
        offered=name,
        description=description,
        input_schema=schema,
        effect=effect,
        time_limit_s=limits.get(name, _FILE_S) + _GRACE_S,
        repeats=repeats,
    )


async def perform(
    name: str, policy: SecurityPolicy, environ: Mapping[str, str], arguments: Json, effect_id: str
) -> str:
    """Run a built-in tool. Raises `ToolDenied`, `ToolFailed`, `ports.OutcomeUnknown`."""
    if name == "shell":
        return await shell.run(policy, environ, arguments, effect_id)
    if name == "http_request":
        return await web.request(policy, arguments, effect_id)
    work = _FILES[name]
    return await anyio.to_thread.run_sync(work, policy, arguments)


_FILES: Final = {
    "file_read": files.read,
    "file_write": files.write,
    "file_edit": files.edit,
    "file_list": files.listing,
    "file_search": files.find,
}
if set(TOOLS) != set(BUILT_IN):  # pragma: no cover  # the two lists are written in two places, for start-up
    raise RuntimeError("the built-in tools and their names in the configuration differ")
