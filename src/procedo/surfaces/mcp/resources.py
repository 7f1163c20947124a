"""What clients can read: the catalogue, procedures, the format, and every part of a run.

Runs are read through the caller's own door, so that another principal's run is not found. Transcripts of agents'
sessions are for people who operate: over HTTP with the token of a person that has the role operate. A model at the
pipe, an agent's token and a caller without token do not get them; the final output is theirs by the step itself.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from mcp.server.mcpserver import Context
from mcp.shared.uri_template import UriTemplate
from mcp.types import Resource, ResourceTemplate, TextResourceContents
from msgspec import Struct

from procedo.errors import BadArgument, NotFound, Refused
from procedo.sopfile.library import Entry
from procedo.sopfile.manual import manual
from procedo.surfaces import links, parts
from procedo.surfaces.catalogue import catalogue_view, describe_view
from procedo.surfaces.mcp.callers import caller, engine, reads_transcripts
from procedo.surfaces.pages import span
from procedo.surfaces.prose import as_text, catalogue_text, description_text
from procedo.surfaces.text import line
from procedo.surfaces.views import run_view

__all__ = ["RESOURCES", "TEMPLATES", "exists", "listed_resources", "parameters", "read"]

_JSON: Final = "application/json"
_MARKDOWN: Final = "text/markdown"
_TEXT: Final = "text/plain"

Parts: TypeAlias = list[tuple[str, str]]
"""Contents as pairs of MIME type and text; the first is the one that a simple client shows."""


class _Asked(Struct, frozen=True):
    """A call for one resource, with what its address names."""

    ctx: Context
    uri: str
    named: Mapping[str, str]

    def get(self, name: str) -> str:
        return self.named.get(name, "")

    @property
    def address(self) -> str:
        """The address without its page."""
        return self.uri.partition("?")[0]


def _json(view: Any) -> tuple[str, str]:
    return _JSON, json.dumps(view, ensure_ascii=False, indent=1)


async def _catalogue(asked: _Asked) -> Parts:
    app = engine(asked.ctx)
    view = catalogue_view(app.settings.sops_dir, app.library.entries(), app.settings)
    return [(_TEXT, catalogue_text(view)), _json(view)]


async def _format(asked: _Asked) -> Parts:
    engine(asked.ctx)
    return [(_MARKDOWN, manual())]


async def _procedure(asked: _Asked) -> Parts:
    app = engine(asked.ctx)
    entry = app.library.find(asked.get("name"))
    if entry.sop is None:
        broken = catalogue_view(app.settings.sops_dir, [entry], app.settings)
        return [(_TEXT, catalogue_text(broken)), _json(broken)]
    view = describe_view(entry, app.settings)
    return [(_MARKDOWN, description_text(view)), _json(view)]


async def _run(asked: _Asked) -> Parts:
    surface = caller(asked.ctx)
    snapshot = await engine(asked.ctx).runs.state(asked.get("run_id"), surface)
    view = run_view(snapshot, surface)
    return [(_TEXT, as_text(view, snapshot.run.marker)), _json(view)]


async def _state(asked: _Asked) -> Parts:
    history = await engine(asked.ctx).runs.history(asked.get("run_id"))
    return [_json(parts.state_view(history, caller(asked.ctx)))]


async def _timeline(asked: _Asked) -> Parts:
    wanted = span(asked.get("after"), asked.get("max_chars"), "after")
    run_id, limit = asked.get("run_id"), parts.timeline_limit(wanted)
    records = await engine(asked.ctx).runs.timeline(run_id, wanted.start, limit + 1)
    return [_json(parts.timeline_view(run_id, records, wanted))]


async def _inputs(asked: _Asked) -> Parts:
    wanted = span(asked.get("cursor"), asked.get("max_chars"))
    return [_json(parts.inputs_part((await engine(asked.ctx).runs.look(asked.get("run_id"))).run, wanted))]


async def _output(asked: _Asked) -> Parts:
    wanted = span(asked.get("cursor"), asked.get("max_chars"))
    return [_json(parts.output_part((await engine(asked.ctx).runs.look(asked.get("run_id"))).run, wanted))]


async def _step(asked: _Asked) -> Parts:
    number, wanted = asked.get("n"), span(asked.get("cursor"), asked.get("max_chars"))
    if not (number.isascii() and number.isdigit() and len(number) < 10):  # no step has such a number
        raise BadArgument("bad_step", f"{number!r} is no number of a step.", "Steps are numbered 1, 2, 3 and so on.")
    history = await engine(asked.ctx).runs.history(asked.get("run_id"))
    return [_json(parts.step_part(history, int(number), asked.get("execution"), wanted))]


async def _gate(asked: _Asked) -> Parts:
    wanted = span(asked.get("cursor"), asked.get("max_chars"))
    history = await engine(asked.ctx).runs.history(asked.get("run_id"))
    return [_json(parts.gate_part(history, asked.get("gate"), wanted))]


async def _transcript(asked: _Asked) -> Parts:
    run_id, execution_id = asked.get("run_id"), asked.get("execution")
    runs = engine(asked.ctx).runs
    await runs.look(run_id)
    if not reads_transcripts(asked.ctx):
        message = "Transcripts of agents' sessions are for people who operate, not for models."
        raise Refused("not_permitted", message, f"The outputs are at {links.run(run_id)}/steps/….")
    transcript = await runs.transcript(run_id, execution_id)
    if transcript is None:
        hint = "Only a step of another agent has a session."
        raise NotFound("unknown_session", f"Execution {execution_id!r} of run {run_id} has no session.", hint)
    wanted = span(asked.get("cursor"), asked.get("max_chars"))
    return [_json(parts.transcript_view(transcript, asked.address, wanted))]


class _Kind(Struct, frozen=True):
    """A kind of resource: its addresses, how it is advertised, and how it is read."""

    template: str
    name: str
    title: str
    description: str
    read: Callable[[_Asked], Awaitable[Parts]]
    mime: str = _JSON


_PAGE: Final = "{?cursor,max_chars}"
_FIXED: Final = (
    _Kind(links.CATALOGUE, "catalog", "Procedures", "Every procedure, and the problems of those that cannot be used.",
          _catalogue, _TEXT),
    _Kind(links.FORMAT, "format", "Format of procedures", "Every key of a procedure's files, and every problem code.",
          _format, _MARKDOWN),
)  # fmt: skip
_RUN: Final = "sop://runs/{run_id}"
_SHAPES: Final = (
    _Kind("sop://sops/{name}", "sop", "Procedure", "One procedure: text, steps, graph, schema of its inputs.",
          _procedure, _MARKDOWN),
    _Kind(_RUN, "run", "Run", "How a run stands and what comes next.", _run, _TEXT),
    _Kind(f"{_RUN}/state", "run-state", "State of a run", "Steps, executions, gates and graph of a run.", _state),
    _Kind(_RUN + "/timeline{?after,max_chars}", "run-timeline", "Timeline of a run",
          "The record of a run, line by line, in order.", _timeline),
    _Kind(f"{_RUN}/inputs{_PAGE}", "run-inputs", "Inputs of a run", "What a run was started with.", _inputs),
    _Kind(f"{_RUN}/output{_PAGE}", "run-output", "Output of a run", "What a completed run gave.", _output),
    _Kind(_RUN + "/steps/{n}{?execution,cursor,max_chars}", "run-step", "Outputs of a step",
          "The executions of a step, with the output of the last one, or of the named one.", _step),
    _Kind(_RUN + "/gates/{gate}" + _PAGE, "run-gate", "Content of a gate", "What a gate asks about, whole.", _gate),
    _Kind(_RUN + "/transcript/{execution}" + _PAGE, "transcript", "Transcript of a session",
          "What the agent of an execution said and did. For people who operate.", _transcript),
)  # fmt: skip
_ROUTES: Final = tuple((UriTemplate.parse(kind.template), kind) for kind in (*_FIXED, *_SHAPES))

RESOURCES: Final = tuple((kind.template, kind.description) for kind in (*_FIXED, *_SHAPES))
"""Every address and what is there, for the documentation."""

TEMPLATES: Final = tuple(
    ResourceTemplate(
        uri_template=kind.template,
        name=kind.name,
        title=kind.title,
        description=kind.description,
        mime_type=kind.mime,
    )
    for kind in _SHAPES
)


def parameters(uri: str) -> Mapping[str, str]:
    """What an address of ours names; nothing for any other."""
    found = _found(uri)
    return found[1] if found is not None else {}


def _found(uri: str) -> tuple[_Kind, Mapping[str, str]] | None:
    for template, kind in _ROUTES:
        named = template.match(uri)
        if named is not None:
            return kind, {name: value for name, value in named.items() if isinstance(value, str)}
    return None


def listed_resources(ctx: Context) -> tuple[list[Resource], list[Resource]]:
    """What is there without asking for a run: the catalogue and the format, and each procedure."""
    fixed = [
        Resource(uri=k.template, name=k.name, title=k.title, description=k.description, mime_type=k.mime)
        for k in _FIXED
    ]
    return fixed, [_listed(entry) for entry in engine(ctx).library.entries()]


def _listed(entry: Entry) -> Resource:
    about = "cannot be started; it has problems" if entry.sop is None else line(entry.sop.description)
    uri = links.procedure(entry.name)
    mime = _TEXT if entry.sop is None else _MARKDOWN
    return Resource(uri=uri, name=entry.name, title=entry.name, description=about, mime_type=mime)


async def read(ctx: Context, uri: str) -> list[TextResourceContents]:
    """The contents of a resource. Raises `NotFound`, `BadArgument` (a page), `Refused` (a right)."""
    found = _found(uri)
    if found is None:
        shapes = ", ".join(kind.template for _, kind in _ROUTES)
        raise NotFound("unknown_resource", f"There is no resource {uri}.", f"There are {shapes}.")
    kind, named = found
    contents = await kind.read(_Asked(ctx, uri, named))
    return [TextResourceContents(uri=uri, mime_type=mime, text=text) for mime, text in contents]


async def exists(ctx: Context, uri: str) -> bool:
    """True when this caller could read the resource, now or when it has come to be."""
    found = _found(uri)
    if found is None:
        return False
    kind, named = found
    try:
        app = engine(ctx)
        if "run_id" in named:
            await app.runs.look(named["run_id"])
        elif "name" in named and not app.library.could_hold(named["name"]):
            return False
    except Refused:
        return False
    return kind.read is not _transcript or reads_transcripts(ctx)
