"""Completing names and ids: procedures, runs and what is in them, and values that a schema names."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeAlias

from mcp.server.mcpserver import Context
from mcp.types import CompleteRequestParams, Completion, PromptReference

from procedo.errors import Refused
from procedo.ports import Filter
from procedo.runs import History
from procedo.surfaces.mcp.callers import engine, reads_transcripts
from procedo.surfaces.mcp.prompts import suggestions
from procedo.surfaces.mcp.resources import TEMPLATES

__all__ = ["completed"]

_MOST: Final = 100
_RUNS: Final = 500

_Known: TypeAlias = Mapping[str, str]
_Values: TypeAlias = Callable[[Context, _Known], Awaitable[Iterable[str]]]


async def completed(ctx: Context, params: CompleteRequestParams) -> Completion:
    """The values that begin with what was typed; none for what nobody knows."""
    known = (params.context.arguments if params.context is not None else None) or {}
    name, typed = params.argument.name, params.argument.value
    try:
        if isinstance(params.ref, PromptReference):
            found = _of_prompt(ctx, params.ref.name, name)
        else:
            values = _values(params.ref.uri, name)
            found = list(await values(ctx, known)) if values is not None else []
    except Refused:
        # Completion suggests; what the caller may not see is simply not among the suggestions.
        found = []
    fitting = [value for value in dict.fromkeys(found) if value.casefold().startswith(typed.casefold())]
    return Completion(values=fitting[:_MOST], total=len(fitting), has_more=len(fitting) > _MOST)


def _of_prompt(ctx: Context, prompt: str, argument: str) -> list[str]:
    sop = engine(ctx).library.find(prompt).sop
    return suggestions(sop, argument) if sop is not None else []


def _values(uri: str, argument: str) -> _Values | None:
    template = next((one for one in TEMPLATES if one.uri_template == uri), None)
    if template is None:
        return None
    if template.name == "transcript" and argument == "execution":
        return _sessions
    return _SOURCES.get(argument)


async def _procedures(ctx: Context, _: _Known) -> Iterable[str]:
    return [entry.name for entry in engine(ctx).library.entries()]


async def _runs(ctx: Context, _: _Known) -> Iterable[str]:
    return [summary.run_id for summary in await engine(ctx).runs.list(Filter(limit=_RUNS))]


async def _history(ctx: Context, known: _Known) -> History:
    return await engine(ctx).runs.history(known.get("run_id", ""))


async def _steps(ctx: Context, known: _Known) -> Iterable[str]:
    return [str(number) for number in sorted({e.step for e in (await _history(ctx, known)).executions})]


async def _executions(ctx: Context, known: _Known) -> Iterable[str]:
    step = known.get("n", "")
    return [e.id for e in (await _history(ctx, known)).executions if step in ("", str(e.step))]


async def _gates(ctx: Context, known: _Known) -> Iterable[str]:
    return [gate.code for gate in (await _history(ctx, known)).gates]


async def _sessions(ctx: Context, known: _Known) -> Iterable[str]:
    return [row.execution_id for row in (await _history(ctx, known)).sessions] if reads_transcripts(ctx) else []


_SOURCES: Final[Mapping[str, _Values]] = {
    "name": _procedures,
    "run_id": _runs,
    "n": _steps,
    "execution": _executions,
    "gate": _gates,
}
