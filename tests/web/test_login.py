import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.types import Message
from web_page import ORIGIN, Office, office

from procedo.access.tokens import secret_digest
from procedo.core.access import Login
from procedo.surfaces.web.doors import Cookie

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("inbox-login")]
FORM = b"application/x-www-form-urlencoded"


async def test_without_a_login_every_page_leads_to_the_login_and_shows_nothing(desk: Office) -> None:
    run = await desk.kiln({"temp": 980})
    (gate,) = run.run.open_gates
    async with desk.somebody() as stranger:
        for path in ("/inbox", "/inbox?show=all", f"/inbox/gates/{gate.id}", "/inbox/events"):
            page = await stranger.get(path)
            assert (page.status, page.path) == (200, "/inbox/login")
            assert "980" not in page.html
            assert run.run.id not in page.text
        page = await stranger.post(f"/inbox/gates/{gate.id}", {"verdict": "approve"})
        assert page.path == "/inbox/login"
    assert (await desk.app.runs.look(run.run.id)).run.open_gates == (gate,)


async def test_the_code_in_the_terminal_lets_one_person_in_once(desk: Office) -> None:
    desk.code.renew()
    async with desk.somebody(desk.codes[0].lower().replace("-", " ")) as ida, desk.somebody() as other:
        assert "ida" in ida.page.text
        page = await other.log_in(desk.codes[0])
        assert (page.status, page.path) == (401, "/inbox/login")


async def test_a_code_is_good_for_ten_minutes(desk: Office) -> None:
    desk.code.renew()
    desk.clock.time += timedelta(minutes=10)
    async with desk.somebody() as late:
        assert (await late.log_in(desk.codes[0])).status == 401
        desk.code.renew()
        desk.clock.time += timedelta(minutes=9, seconds=59)
        assert (await late.log_in(desk.codes[1])).path == "/inbox"


async def test_a_new_code_is_shown_in_the_terminal_and_never_on_the_page(desk: Office) -> None:
    async with desk.somebody() as person:
        await person.get("/inbox/login")
        page = await person.post("/inbox/code", {"next": ""})
        (code,) = desk.codes
        assert "A new code is in the terminal" in page.text
        assert code not in page.html
        assert code.replace("-", "") not in page.html
        again = await person.post("/inbox/code", {"next": ""})
        assert len(desk.codes) == 1
        assert "is already in the terminal of the server, and good until 12:10 UTC" in again.text
        assert (await person.log_in(code)).path == "/inbox"


async def test_guessing_is_slowed_down_and_ends_the_code(desk: Office) -> None:
    desk.code.renew()
    async with desk.somebody() as guesser:
        for _ in range(5):
            assert (await guesser.log_in("AAAA-AAAA")).status == 401
        page = await guesser.log_in(desk.codes[0])
        assert (page.status, page.headers["retry-after"]) == (429, "60")
        assert (await guesser.log_in(await desk.token("noor", "view"))).path == "/inbox", "a token is no guess"
        await guesser.post("/inbox/logout", guesser.page.form("/inbox/logout"))
        assert (await guesser.log_in(desk.codes[0])).status == 429, "and lets nobody guess on"
        desk.clock.time += timedelta(seconds=61)
        assert (await guesser.log_in(desk.codes[0])).status == 401, "five wrong guesses have ended that code"
        assert desk.code.renew()
        assert (await guesser.log_in(desk.codes[1])).path == "/inbox"


async def test_a_form_that_does_not_come_is_given_up(desk: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("procedo.surfaces.web.form._PATIENCE_S", 0.01)
    asked, answered = asyncio.Event(), list[Message]()
    headers = [(b"host", ORIGIN.removeprefix("http://").encode()), (b"content-type", FORM)]
    scope = {"type": "http", "method": "POST", "path": "/inbox/login", "query_string": b"", "headers": headers}

    async def receive() -> Message:
        if not asked.is_set():
            asked.set()
            return {"type": "http.request", "body": b"credential=", "more_body": True}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        answered.append(message)

    await desk.site(scope, receive, send)
    assert answered[0]["status"] == 422
    assert b"did not come within" in answered[1]["body"]


async def test_a_token_lets_its_subject_in(desk: Office) -> None:
    async with desk.somebody(await desk.token("noor", "approve")) as noor:
        assert "noor" in noor.page.text


async def test_an_agents_token_opens_no_page_also_where_a_policy_names_the_agent(tmp_path: Path) -> None:
    config = '[sop.approval.policies.bot]\nagents = ["deploy-bot"]\n'
    async with office(tmp_path, config) as desk, desk.somebody() as visitor:
        secret = await desk.token("deploy-bot", "view", "operate", "approve", kind="agent")
        page = await visitor.log_in(secret)
        assert (page.status, page.path) == (403, "/inbox/login")
        assert "the token of an agent, and this page is for people" in page.text
        assert (await visitor.get()).path == "/inbox/login"
        person = await desk.token("deploy-bot", "view", "operate", "approve")
        assert (await visitor.log_in(person)).path == "/inbox"


async def test_a_session_that_an_agents_token_has_is_none(desk: Office) -> None:
    for kind, path in (("agent", "/inbox/login"), ("human", "/inbox")):
        await desk.token("noor", "approve", kind=kind, name=kind)
        token = next(token for token in await desk.app.tokens.list() if token.name == kind)
        now = desk.clock.now()
        login = Login(secret_digest(kind), "noor", token.id, now, now + timedelta(hours=1))
        await desk.app.store.write(lambda writer, login=login: writer.put_login(login))  # type: ignore[misc]  # mypy infers no type for a lambda with a default
        async with desk.somebody() as visitor:
            visitor.client.cookies.set(Cookie.at(ORIGIN).name, kind)
            assert (await visitor.get()).path == path


async def test_a_revoked_token_ends_the_sessions_that_it_opened(desk: Office) -> None:
    secret = await desk.token("noor", "approve", name="phone")
    async with desk.somebody(secret) as noor:
        assert (await noor.get()).path == "/inbox"
        await desk.app.tokens.revoke("phone")
        assert (await noor.get()).path == "/inbox/login"
        assert (await noor.log_in(secret)).status == 401


async def test_a_session_ends_by_time_and_by_logging_out(desk: Office) -> None:
    async with desk.operator() as ida:
        desk.clock.time += timedelta(hours=11)
        page = await ida.get()
        assert page.path == "/inbox"
        cookies = dict(ida.client.cookies)
        assert (await ida.post("/inbox/logout", page.form("/inbox/logout"))).path == "/inbox/login"
        ida.client.cookies.update(cookies)
        assert (await ida.get()).path == "/inbox/login", "the cookie that was kept opens nothing"
    async with desk.operator() as ida:
        desk.clock.time += timedelta(hours=12)
        assert (await ida.get()).path == "/inbox/login"


async def test_the_cookie_cannot_be_read_by_scripts_or_sent_by_other_sites(desk: Office) -> None:
    desk.code.renew()
    async with desk.somebody() as ida:
        ida.client.follow_redirects = False
        page = await ida.post("/inbox/login", {"credential": desk.codes[0]})
        parts = {part.strip().lower() for part in page.headers["set-cookie"].split(";")[1:]}
    assert parts == {"httponly", "samesite=strict", "path=/", "max-age=43200"}


async def test_the_login_goes_on_to_the_gate_that_was_asked_for_and_nowhere_else(desk: Office) -> None:
    (gate,) = (await desk.kiln()).run.open_gates
    async with desk.somebody() as ida:
        page = await ida.get(f"/inbox/gates/{gate.id}")
        desk.code.renew()
        page = await ida.post("/inbox/login", {**page.form("/inbox/login"), "credential": desk.codes[0]})
        assert page.path == f"/inbox/gates/{gate.id}"
    outside = ("https://evil.example", "//evil.example", "/inbox/../mcp", "/inbox//evil", "/runs/%2e%2e/mcp", "/mcp")
    for number, elsewhere in enumerate(outside):
        secret = await desk.token("ida", "view", name=f"t{number}")
        async with desk.somebody() as ida:
            assert (await ida.post("/inbox/login", {"credential": secret, "next": elsewhere})).path == "/inbox"


async def test_a_form_of_another_site_is_not_taken(desk: Office) -> None:
    desk.code.renew()
    async with desk.somebody() as ida:
        for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
            page = await ida.post("/inbox/login", {"credential": desk.codes[0]}, **headers)
            assert page.status == 403
        assert (await ida.post("/inbox/login", {"credential": desk.codes[0]})).path == "/inbox"


async def test_under_a_foreign_name_the_server_does_not_answer(desk: Office) -> None:
    async with desk.somebody() as victim:
        for host in ("evil.example", "evil.example:8321", "127.0.0.1", ""):
            answer = await victim.client.get("/inbox/login", headers={"host": host})
            assert answer.status_code == 421
        assert (await victim.client.get("/inbox/login", headers={"host": "127.0.0.1:8321"})).status_code == 200


async def test_every_answer_carries_the_strict_headers(desk: Office) -> None:
    async with desk.operator() as ida:
        for path in ("/inbox", "/inbox/gates/nothing", "/inbox/console.css", "/inbox/nothing"):
            headers = (await ida.get(path)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
        assert (await ida.get()).headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/inbox", "/inbox/login"])
async def test_no_page_has_anything_that_the_policy_would_block(desk: Office, path: str) -> None:
    await desk.kiln()
    async with desk.operator() as ida:
        html = (await ida.get(path)).html
    assert "style=" not in html
    assert "<style" not in html
    assert " onclick" not in html
    assert "javascript:" not in html
    assert html.count("<script") == html.count('<script src="/inbox/live.js"')
    assert "http://" not in html.replace(ORIGIN, "")
    assert "https://" not in html
