"""Logging in and out."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias
from urllib.parse import quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from procedo.access.tokens import PREFIX
from procedo.errors import BadArgument, Refused
from procedo.surfaces.web.form import read_form
from procedo.surfaces.web.logins import Logins, Visitor
from procedo.surfaces.web.pages import Pages, status_of
from procedo.surfaces.web.throttle import Throttle

__all__ = ["BASE", "Cookie", "Doors"]

BASE: Final = "/inbox"
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
_SMALL: Final = 8_192
_OUR_PAGES: Final = re.compile(r"/(?:inbox|runs|catalogue)(?:/\w[\w.~%-]*)*(?:\?[\w.~%&=+-]*)?", re.ASCII)


class Cookie(Struct, frozen=True):
    """The session's cookie. Browsers do not tell ports apart, so its name does; `secure` when people come by https."""

    name: str
    secure: bool

    @classmethod
    def at(cls, origin: str) -> "Cookie":
        """The cookie for a server at this origin."""
        secure = origin.startswith("https://")
        tail = origin.rpartition(":")[2]
        port = f"_{tail}" if tail.isdigit() else ""
        return cls(f"{'__Host-' if secure else ''}procedo{port}", secure)

    def give(self, response: Response, secret: str, seconds: int) -> None:
        """Put a session into an answer."""
        response.set_cookie(
            self.name, secret, max_age=seconds, path="/", secure=self.secure, httponly=True, samesite="strict"
        )

    def take(self, response: Response) -> None:
        """Take the session out of the browser."""
        response.delete_cookie(self.name, path="/", secure=self.secure, httponly=True, samesite="strict")


class Doors:
    """The login page, and finding out who sent a request."""

    def __init__(self, logins: Logins, pages: Pages, cookie: Cookie, throttle: Throttle) -> None:
        self._logins = logins
        self._pages = pages
        self._cookie = cookie
        self._throttle = throttle

    def routes(self) -> list[Route]:
        """The routes of the login."""
        return [
            Route(f"{BASE}/login", self.page, methods=["GET"]),
            Route(f"{BASE}/login", self._taking(self.enter), methods=["POST"]),
            Route(f"{BASE}/code", self._taking(self.renew), methods=["POST"]),
            Route(f"{BASE}/logout", self._taking(self.leave), methods=["POST"]),
        ]

    def _taking(self, handler: Callable[[Request, Mapping[str, str]], Awaitable[Response]]) -> Handler:
        """A handler that gets the fields of a form; a form that cannot be read is told."""

        async def handle(request: Request) -> Response:
            try:
                form = await read_form(request, _SMALL)
            except BadArgument as error:
                return self._ask("", str(error), status=status_of(error))
            return await handler(request, form)

        return handle

    async def visitor(self, request: Request) -> Visitor | None:
        """Who sent the request, or None."""
        secret = request.cookies.get(self._cookie.name, "")
        return await self._logins.find(secret) if secret else None

    def to_login(self, request: Request) -> Response:
        """Where somebody is sent who has to log in first."""
        query = f"?{request.url.query}" if request.url.query and request.method == "GET" else ""
        return RedirectResponse(f"{BASE}/login?next={quote(request.url.path + query)}", 303)

    async def page(self, request: Request) -> Response:
        """The login page."""
        if await self.visitor(request) is not None:
            return RedirectResponse(BASE, 303)
        return self._ask(_next(request.query_params.get("next", "")))

    def _ask(self, after: str, problem: str = "", note: str = "", status: int = 200) -> Response:
        return self._pages.render("login.html", status, after=after, problem=problem, note=note)

    async def enter(self, request: Request, form: Mapping[str, str]) -> Response:
        """Log in with a code or a token."""
        caller = request.client.host if request.client is not None else ""
        credential = form.get("credential", "").strip()
        # A token cannot be guessed. Its holder comes in also where everybody comes by one address, as behind a proxy,
        # and somebody there guesses at codes.
        guessable = not credential.startswith(PREFIX)
        seconds = self._throttle.wait_s(caller) if guessable else 0
        if seconds:
            response = self._ask("", f"Too many attempts. Try again in {seconds} seconds.", status=429)
            response.headers["retry-after"] = str(seconds)
            return response
        after = _next(form.get("next", ""))
        try:
            opened = await self._logins.open(credential)
        except Refused as error:
            return self._ask(after, str(error), status=status_of(error))
        if opened is None:
            if guessable:
                self._throttle.failed(caller)
            problem = "That is no valid code and no live token. A code works once, and for ten minutes."
            return self._ask(after, problem, status=401)
        if guessable:
            self._throttle.passed(caller)
        response = RedirectResponse(after or BASE, 303)
        self._cookie.give(response, opened.secret, opened.seconds)
        return response

    async def renew(self, _: Request, form: Mapping[str, str]) -> Response:
        """Show a new code in the terminal, unless the one that is there is still good."""
        if self._logins.show_code():
            note = "A new code is in the terminal of the server."
        elif (until := self._logins.code_good_until) is not None:
            note = f"A code is already in the terminal of the server, and good until {until:%H:%M} UTC."
        else:
            note = "A code was shown a moment ago, and is used up. Ask again in ten seconds."
        return self._ask(_next(form.get("next", "")), note=note)

    async def leave(self, request: Request, form: Mapping[str, str]) -> Response:
        """Log out."""
        visitor = await self.visitor(request)
        response: Response = RedirectResponse(f"{BASE}/login", 303)
        if visitor is not None:
            if not visitor.sent(form.get("form_token", "")):
                return self._pages.told("Not logged out", "That form was not made for you.", status=403)
            await self._logins.close(request.cookies[self._cookie.name])
        self._cookie.take(response)
        return response


def _next(path: str) -> str:
    """A page of ours to go to after the login, or nothing: never anywhere else."""
    return path if _OUR_PAGES.fullmatch(path) else ""
