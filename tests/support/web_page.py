"""The inbox page without a network: an application, its terminal, and somebody with a browser of the simplest kind."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
from mcp_host import ALL, FixedClock, workspace

from procedo.app import App, open_app
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.runs import Snapshot, Surface
from procedo.surfaces.http.front import guarded
from procedo.surfaces.web.code import TerminalCode
from procedo.surfaces.web.site import console

ORIGIN = "http://127.0.0.1:8321"
HOST = Surface(Principal(Source.HOST, "desk", PrincipalKind.AGENT))
REVIEW = """
[sop.approval.groups.pharmacists]
members = ["ida", "noor"]

[sop.approval.policies.two]
required_group = "pharmacists"
quorum = 2
"""


@dataclass
class Page:
    """A page as it came: its status, its text without markup, its forms and links."""

    status: int
    html: str
    headers: Mapping[str, str]
    path: str

    @property
    def text(self) -> str:
        """What can be read, on one line."""
        return " ".join(" ".join(_parsed(self.html).words).split())

    @property
    def title(self) -> str:
        """The title."""
        return _parsed(self.html).title

    @property
    def links(self) -> list[str]:
        """Where links lead."""
        return _parsed(self.html).links

    @property
    def buttons(self) -> list[str]:
        """The answers that can be given."""
        return _parsed(self.html).buttons

    def form(self, path: str) -> dict[str, str]:
        """The fields of the form that is sent there, as they are filled in."""
        return _parsed(self.html).forms[path]


class _Parsed(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.buttons: list[str] = []
        self.forms: dict[str, dict[str, str]] = {}
        self.title = ""
        self._inside: list[str] = []
        self._form: dict[str, str] = {}
        self._area = ""
        self._list = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag in ("title", "textarea"):
            self._inside.append(tag)
        if tag == "a":
            self.links.append(values["href"])
        elif tag == "form":
            self._form = self.forms.setdefault(values["action"], {})
        elif tag == "input" and (values.get("type") not in ("checkbox", "radio") or "checked" in values):
            self._form[values["name"]] = values.get("value", "")
        elif tag == "textarea":
            self._area = values["name"]
            self._form[self._area] = ""
        elif tag == "select":
            self._list = values["name"]
            self._form[self._list] = ""
        elif tag == "option" and "selected" in values:
            self._form[self._list] = values["value"]
        elif tag == "button" and values.get("name") == "verdict":
            self.buttons.append(values["value"])

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside[-1:] == ["title"]:
            self.title += data
        elif self._inside[-1:] == ["textarea"]:
            self._form[self._area] += data.removeprefix("\n") if not self._form[self._area] else data
        else:
            self.words.append(data)


def _parsed(html: str) -> _Parsed:
    parser = _Parsed()
    parser.feed(html)
    return parser


@dataclass
class Person:
    """Somebody with a browser: it keeps cookies, sends the Origin with forms, and follows redirects."""

    client: httpx2.AsyncClient
    page: Page = field(default_factory=lambda: Page(0, "", {}, ""))

    async def get(self, path: str = "/inbox") -> Page:
        """Open a page."""
        return self._came(await self.client.get(path))

    async def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Page:
        """Send a form."""
        return self._came(await self.client.post(path, data=dict(fields), headers={"origin": ORIGIN, **headers}))

    def _came(self, answer: httpx2.Response) -> Page:
        self.page = Page(answer.status_code, answer.text, answer.headers, answer.url.path)
        return self.page

    async def log_in(self, credential: str) -> Page:
        """Fill in the login form."""
        await self.get("/inbox/login")
        return await self.post("/inbox/login", {**self.page.form("/inbox/login"), "credential": credential})

    async def answer(self, verdict: str, **changed: str) -> Page:
        """Press a button on the page of a gate that is open."""
        fields = {**self.page.form(self.page.path), "verdict": verdict, **changed}
        return await self.post(self.page.path, fields)


@dataclass
class Office:
    """An application with its inbox page; `codes` are those that the terminal showed."""

    app: App
    clock: FixedClock
    code: TerminalCode
    site: Any
    codes: list[str]

    @asynccontextmanager
    async def somebody(self, credential: str | None = None) -> AsyncIterator[Person]:
        """A person at a browser, logged in when there is a credential."""
        transport = httpx2.ASGITransport(app=self.site)
        async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN, follow_redirects=True) as client:
            person = Person(client)
            if credential is not None:
                page = await person.log_in(credential)
                assert page.path == "/inbox", page.text
            yield person

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[Person]:
        """The person at the server's terminal, whose account is ida."""
        self.clock.time = self.clock.time.replace(second=(self.clock.time.second + 20) % 60)
        assert self.code.renew()
        async with self.somebody(self.codes[-1]) as person:
            yield person

    async def token(
        self, subject: str, *roles: str, kind: str = "human", groups: tuple[str, ...] = (), name: str = ""
    ) -> str:
        """A token's secret."""
        from procedo.core.access import Role

        issued = await self.app.tokens.create(
            name or f"{subject}-{len(await self.app.tokens.list())}",
            Principal(Source.CLI, "root", PrincipalKind.HUMAN),
            subject=subject,
            kind=PrincipalKind(kind),
            roles=[Role(role) for role in roles],
            groups=groups,
        )
        return issued.secret

    async def kiln(self, inputs: Any = None) -> Snapshot:
        """A run that waits before its first step."""
        return await self.app.runs.start("kiln-firing", inputs, HOST)

    async def letter(self, **draft: Any) -> Snapshot:
        """A run that waits at its checkpoint with a draft."""
        run = await self.app.runs.start("letter", None, HOST)
        return await self.app.runs.advance(run.run.id, "1.1", "completed", draft, HOST)


@asynccontextmanager
async def office(folder: Path, config: str = "", sops: Mapping[str, Mapping[str, str]] = ALL) -> AsyncIterator[Office]:
    """An application in a new workspace, with its page."""
    clock, codes = FixedClock(), list[str]()

    def show(code: str, until: datetime) -> None:
        codes.append(code)

    async with open_app(workspace(folder, sops, config), worker=False, clock=clock) as app:
        code = TerminalCode(clock.now, show)
        pages = console(app, code, origin=ORIGIN, operator="ida", stopping=asyncio.Event())
        yield Office(app, clock, code, guarded(pages, (ORIGIN,)), codes)


def gate_path(snapshot: Snapshot) -> str:
    """The page of the one open gate of a run."""
    (gate,) = snapshot.run.open_gates
    return f"/inbox/gates/{gate.id}"
