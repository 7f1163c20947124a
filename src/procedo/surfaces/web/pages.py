"""The templates, and answers made of them."""

from collections.abc import Mapping
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from procedo.errors import BadArgument, Conflict, NotFound, ProcedoError, StoreError

__all__ = ["Pages", "status_of"]

_STATUS: Final[Mapping[str, int]] = {"not_authorised": 403, "not_permitted": 403, "bad_token": 403}


def status_of(error: ProcedoError) -> int:
    """The HTTP status of an error."""
    if error.code in _STATUS:
        return _STATUS[error.code]
    match error:
        case NotFound():
            return 404
        case BadArgument():
            return 422
        case StoreError():
            return 503
        case Conflict():
            return 409
        case _:
            return 409


class Pages:
    """Renders pages. Everything that is put into a template is escaped there."""

    def __init__(self, base: str) -> None:
        self._environment = Environment(
            loader=PackageLoader("procedo.surfaces.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals["base"] = base

    def render(self, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        """A page."""
        defaults: dict[str, Any] = {"visitor": None, "version": "", "watches": "", "section": ""}
        text = self._environment.get_template(template).render(**{**defaults, **values})
        return HTMLResponse(text, status)

    def told(self, title: str, message: str, hint: str = "", *, status: int, **values: Any) -> HTMLResponse:
        """A page that says one thing."""
        more = {"link": "", "link_text": "", **values}
        return self.render("told.html", status, title=title, message=message, hint=hint, **more)
