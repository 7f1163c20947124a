"""One call of a verb: its arguments, where it prints, and the application it works on."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from procedo.causes import causes
from procedo.core.altered import altered
from procedo.errors import ProcedoError
from procedo.surfaces.cli.output import Output

if TYPE_CHECKING:
    from procedo.app import App
    from procedo.core.access import Access
    from procedo.ports import Store
    from procedo.runs import Surface

__all__ = ["Call"]

_PUT_DOWN_S: Final = 30.0
"""How long a command stays for the step of a session that is under way, so that it need not be called interrupted."""


def _plain(group: ExceptionGroup[Exception]) -> Exception:
    """The error of ours that the worker ended with; anything else is a fault of the program and stays a group."""
    told = [*causes(group)]
    ours = [error for error in told if isinstance(error, ProcedoError)]
    return ours[0] if len(ours) == len(told) else group


class Call(Struct, frozen=True):
    """What a verb gets. `arguments` are those of its parser, by name; `holder` is who the token that was given is."""

    arguments: Mapping[str, Any]
    output: Output
    notes: Output
    environ: Mapping[str, str]
    cwd: Path
    holder: "Access | None" = None

    def __getitem__(self, name: str) -> Any:
        """An argument by name."""
        return self.arguments[name]

    @property
    def json(self) -> bool:
        """True when the answer is for a program."""
        return self.output.json

    @property
    def access(self) -> "Access":
        """Who calls and what they may do: the token's holder, else the account, to which the workspace belongs."""
        from procedo.core.access import EVERYTHING, Access
        from procedo.surfaces.cli.person import operator

        return Access(operator(), EVERYTHING) if self.holder is None else self.holder

    def workspace(self) -> Path:
        """The folder that everything happens in."""
        from procedo.config import find_workspace

        return find_workspace(self["workspace"], self.environ, self.cwd)

    @asynccontextmanager
    async def app(self, *, worker: bool = False) -> "AsyncIterator[App]":
        """The application, its verbs behind the caller's roles.

        With a worker, the server's own steps go on while this call lasts.
        """
        from procedo.access.permitted import Permitted
        from procedo.access.reached import reached
        from procedo.app import open_app

        refusal: ProcedoError | None = None
        try:
            async with open_app(self.workspace(), worker=worker) as app:
                try:
                    library = reached(app.library, self.access.reach)
                    yield altered(app, runs=Permitted(app.runs, self.access), library=library)
                except ProcedoError as error:
                    # Raised below: leaving the worker's task group would wrap it.
                    refusal = error
                if worker:
                    await app.carrier.put_down(_PUT_DOWN_S)
        except ExceptionGroup as group:
            raise _plain(group) from group
        if refusal is not None:
            raise refusal

    def seen(self, app: "App") -> "Store":
        """The store as the caller may see it."""
        from procedo.access.reached import ReachedStore

        return ReachedStore(app.store, self.access.reach) if self.access.reach else app.store

    def surface(self) -> "Surface":
        """The door of this call: whoever is at the command line, and is not the host agent."""
        from procedo.runs import Surface

        return Surface(self.access.principal, route="the operator's terminal (procedo inbox)", host=False)
