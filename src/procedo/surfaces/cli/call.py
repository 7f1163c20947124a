"""One call of a verb: its arguments, where it prints, and the application it works on."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from procedo.errors import ProcedoError
from procedo.surfaces.cli.output import Output

if TYPE_CHECKING:
    from procedo.app import App
    from procedo.runs import Surface

__all__ = ["Call"]

_PUT_DOWN_S: Final = 30.0
"""How long a command stays for the step of a session that is under way, so that it need not be called interrupted."""


def _plain(group: ExceptionGroup[Exception]) -> Exception:
    """The error of ours that the worker ended with; anything else is a fault of the program and stays a group."""
    if group.split(ProcedoError)[1] is not None:
        return group
    first = group.exceptions[0]
    return _plain(first) if isinstance(first, ExceptionGroup) else first


@dataclass(frozen=True, slots=True)
class Call:
    """What a verb gets. `arguments` are those of its parser, by name."""

    arguments: Mapping[str, Any]
    output: Output
    notes: Output
    environ: Mapping[str, str]
    cwd: Path

    def __getitem__(self, name: str) -> Any:
        """An argument by name."""
        return self.arguments[name]

    @property
    def json(self) -> bool:
        """True when the answer is for a program."""
        return self.output.json

    def workspace(self) -> Path:
        """The folder that everything happens in."""
        from procedo.config import find_workspace

        return find_workspace(self["workspace"], self.environ, self.cwd)

    @asynccontextmanager
    async def app(self, *, worker: bool = False) -> "AsyncIterator[App]":
        """The application; with a worker, the server's own steps go on while this call lasts."""
        from procedo.app import open_app

        refusal: ProcedoError | None = None
        try:
            async with open_app(self.workspace(), worker=worker) as app:
                try:
                    yield app
                except ProcedoError as error:
                    # Raised below: leaving the worker's task group would wrap it.
                    refusal = error
                if worker:
                    await app.carrier.put_down(_PUT_DOWN_S)
        except ExceptionGroup as group:
            raise _plain(group) from group
        if refusal is not None:
            raise refusal

    def surface(self) -> "Surface":
        """The door of this call: a person at the command line, who is not the host agent."""
        from procedo.runs import Surface
        from procedo.surfaces.cli.person import operator

        return Surface(operator(), route="the operator's terminal (procedo inbox)", host=False)
