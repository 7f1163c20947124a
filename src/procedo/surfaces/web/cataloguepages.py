"""The catalogue: every procedure, and the page of one. A broken procedure stays in it, with its problems."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from procedo.config.settings import Settings
from procedo.core.access import Role
from procedo.ports import Filter
from procedo.sopfile.library import Entry, Library
from procedo.surfaces.web.frame import Frame
from procedo.surfaces.web.logins import Visitor
from procedo.surfaces.web.procedureview import problem_views, procedure_view, tags_of
from procedo.surfaces.web.words import shown

__all__ = ["routes"]

_MOST_LIVE: Final = 1_000
_STATES: Final = ("startable", "broken", "live")


def routes(frame: Frame) -> list[Route]:
    """The routes of the catalogue."""
    pages = _Catalogue(frame)
    back = {"back": "/catalogue", "back_text": "To the catalogue"}
    return [frame.route("/catalogue", pages.all), frame.route("/catalogue/{name}", pages.one, **back)]


class _Catalogue:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def _library(self, visitor: Visitor) -> Library:
        visitor.access.require(Role.VIEW)
        return self._frame.library(visitor)

    async def all(self, request: Request, visitor: Visitor) -> Response:
        """Every procedure that the filter leaves."""
        library, settings = self._library(visitor), self._frame.app.settings
        entries, root = library.entries(), library.root
        live = await self._frame.runs(visitor).list(Filter(live=True, limit=_MOST_LIVE))
        running = Counter(run.sop for run in live)
        wanted = {word: request.query_params.get(word, "").strip() for word in ("q", "state", "priority")}
        views = [_line(entry, settings, running, root) for entry in entries]
        chosen = [view for view, entry in zip(views, entries, strict=True) if _fits(entry, view, wanted)]
        return self._frame.pages.render(
            "catalogue.html",
            visitor=visitor,
            section="catalogue",
            sops=chosen,
            total=len(entries),
            broken=sum(entry.sop is None for entry in entries),
            folder=shown(str(root)),
            wanted=wanted,
            filtered=any(wanted.values()),
            priorities=sorted({str(entry.sop.priority) for entry in entries if entry.sop is not None}),
            states=_STATES,
            may_start=visitor.access.may(Role.OPERATE),
        )

    async def one(self, request: Request, visitor: Visitor) -> Response:
        """One procedure in full, or what is wrong with it and where."""
        library = self._library(visitor)
        entry = library.find(request.path_params["name"])
        live = await self._frame.runs(visitor).list(Filter(sop=entry.name, live=True, limit=50)) if entry.sop else ()
        return self._frame.pages.render(
            "procedure.html",
            visitor=visitor,
            section="catalogue",
            name=entry.name,
            folder=shown(str(entry.folder)),
            problems=problem_views(entry, library.root),
            sop=None if entry.sop is None else procedure_view(entry.sop, self._frame.app.settings, _names(library)),
            live=[{"id": run.run_id, "status": str(run.status).replace("_", " ")} for run in live],
            may_start=visitor.access.may(Role.OPERATE),
        )


def _names(library: Library) -> frozenset[str]:
    return frozenset(entry.name for entry in library.entries())


def _line(entry: Entry, settings: Settings, running: Mapping[str, int], root: Path) -> dict[str, Any]:
    """One procedure in the list."""
    sop = entry.sop
    view: dict[str, Any] = {
        "name": entry.name,
        "broken": sop is None,
        "live": running.get(entry.name, 0) if sop is not None else 0,
        "problems": problem_views(entry, root),
        "folder": shown(str(entry.folder)),
        "tags": [],
    }
    if sop is not None:
        view |= {
            "description": shown(sop.description),
            "version": shown(sop.version),
            "mode": str(sop.mode or settings.default_mode).replace("_", " "),
            "priority": str(sop.priority),
            "steps": len(sop.steps),
            "gates": sum(step.is_gate or step.requires_confirmation for step in sop.steps),
            "tags": tags_of(sop),
        }
    return view


def _fits(entry: Entry, view: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    states = {"broken": view["broken"], "startable": not view["broken"], "live": bool(view["live"])}
    if wanted["state"] in states and not states[wanted["state"]]:
        return False
    if wanted["priority"] and (entry.sop is None or entry.sop.priority != wanted["priority"]):
        return False
    words = wanted["q"].casefold().split()
    text = " ".join(_searched(entry, view)).casefold()
    return all(word in text for word in words)


def _searched(entry: Entry, view: Mapping[str, Any]) -> Iterable[str]:
    """What a search looks at."""
    yield entry.name
    yield from view["tags"]
    if entry.sop is None:
        yield from (f"{problem.code} {problem.message}" for problem in entry.problems)
    else:
        yield entry.sop.description
        yield from (step.title for step in entry.sop.steps)
