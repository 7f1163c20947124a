"""Finding runs for the list: what was asked for, and what is shown of each run."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from msgspec import Struct

from procedo.core.altered import altered
from procedo.core.state import Status
from procedo.errors import BadArgument
from procedo.ports import Filter, Summary
from procedo.runs import Runs
from procedo.surfaces.redaction import masked_text
from procedo.surfaces.text import line
from procedo.surfaces.web.form import number_in
from procedo.surfaces.web.standing import status_words
from procedo.surfaces.web.words import actor, shown, when

__all__ = ["LOOKED", "Found", "Query", "entry", "find", "key_text", "list_version"]

LOOKED: Final = 1_000
"""How many of the latest runs a search looks through; further back lies what its procedure or status narrows down."""
_PAGE: Final = 25
_LIVE: Final[Mapping[str, bool]] = {"live": True, "ended": False}
_LONGEST: Final = 200


class Query(Struct, frozen=True):
    """What was asked for. Empty texts ask for everything; `page` counts from 1."""

    words: str = ""
    sop: str = ""
    status: str = ""
    key: str = ""
    who: str = ""
    page: int = 1

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "Query":
        """A query from an address. Raises `BadArgument`."""
        texts = {name: given.get(name, "").strip()[:_LONGEST] for name in ("words", "sop", "status", "key", "who")}
        if texts["status"] not in ("", *_LIVE, *map(str, Status)):
            message = f"{texts['status']!r} is no status of a run."
            raise BadArgument("wrong_status", message, f"There are live, ended, {', '.join(map(str, Status))}.")
        page = given.get("page", "1")
        number = number_in(page)
        if number is None or not 1 <= number <= LOOKED // _PAGE:
            raise BadArgument("wrong_page", f"{page[:20]!r} is no page of the list.", "Begin at the first one.")
        return cls(**texts, page=number)

    @property
    def narrowed(self) -> bool:
        """True when it asks for less than everything."""
        return altered(self, page=1) != Query()

    @property
    def searching(self) -> bool:
        """True when it asks for what no index knows."""
        return bool(self.words or self.key or self.who)

    def filter(self, limit: int) -> Filter:
        """The part that the store answers."""
        known = self.status in _LIVE
        return Filter(
            sop=self.sop or None,
            live=_LIVE[self.status] if known else None,
            status=Status(self.status) if self.status and not known else None,
            limit=limit,
        )

    def fits(self, one: Summary) -> bool:
        """The part that is looked for run by run."""
        words = self.words.casefold()
        return (
            (not words or words in one.run_id.casefold() or words in one.sop.casefold())
            and (not self.key or (one.key is not None and self.key.casefold() in one.key.casefold()))
            and (not self.who or self.who.casefold() in str(one.starter).casefold())
        )

    def address(self, **changed: Any) -> str:
        """The address of the list for this query with something changed."""
        other = altered(self, **{"page": 1, **changed})
        names = ("words", "sop", "status", "key", "who")
        fields = {name: getattr(other, name) for name in names if getattr(other, name)}
        fields |= {"page": str(other.page)} if other.page > 1 else {}
        return f"/runs?{urlencode(fields)}" if fields else "/runs"


class Found(Struct, frozen=True):
    """One page of runs; `more` when there is another one, `cut` when a search ended before the oldest run."""

    runs: tuple[Summary, ...]
    more: bool
    cut: bool


async def find(runs: Runs, query: Query) -> Found:
    """The runs of one page, the most recently active first. Raises `NotFound` for a procedure that nobody knows."""
    first, last = (query.page - 1) * _PAGE, query.page * _PAGE
    if not query.searching:
        every = await runs.list(query.filter(last + 1))
        return Found(every[first:last], len(every) > last and query.page < LOOKED // _PAGE, cut=False)
    looked = await runs.list(query.filter(LOOKED))
    fitting = tuple(one for one in looked if query.fits(one))
    return Found(fitting[first:last], len(fitting) > last, cut=len(looked) == LOOKED)


def entry(one: Summary, now: datetime) -> dict[str, Any]:
    """A run in the list."""
    return {
        "id": one.run_id,
        "sop": shown(one.sop),
        "status": one.status,
        "words": status_words(one.status),
        "version": shown(one.version),
        "reason": shown(line(masked_text(one.reason), 200)),
        "key": None if one.key is None else key_text(one.key),
        "starter": actor(one.starter.key),
        "started": when(one.started_at, now),
        "active": when(one.active_at, now),
        "gates": one.open_gates,
        "parent": one.parent_run,
    }


def key_text(key: str) -> str:
    """The key of a run for reading: it is stored as JSON, and most are texts."""
    try:
        value = json.loads(key)
    except ValueError:
        value = key
    return shown(line(masked_text(value if isinstance(value, str) else key), 80))


def list_version(found: Found, counts: Mapping[Status, int]) -> str:
    """Differs when the list would show something else."""
    text = repr([(one.run_id, one.status, one.active_at, one.open_gates) for one in found.runs]) + repr(counts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
