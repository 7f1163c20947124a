"""The start form over HTTP: what is sent, what becomes of it, and that nothing typed is lost."""

import json
from pathlib import Path
from typing import Any

import pytest
from console_sops import CATALOGUE, CONFIG, ORDER
from web_page import Office, Page, Person, office

from procedo.core.principal import PrincipalKind, Source
from procedo.ports import Filter

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("console-start-form")]
FORM = "/catalogue/order-tea/start"
GIVEN = {"v/name": "Ida", "v/sort": '"green"'}


@pytest.fixture
async def shop(tmp_path: Path, anyio_backend: str) -> Any:
    async with office(tmp_path, CONFIG, CATALOGUE) as opened:
        yield opened


async def runs_of(desk: Office) -> Any:
    return await desk.app.runs.list(Filter())


async def fill(person: Person, path: str = FORM, **options: str) -> dict[str, str]:
    """The fields of a fresh form."""
    page = await person.get(path)
    assert page.status == 200, page.text
    return page.form(path)


async def send(person: Person, fields: dict[str, str], path: str = FORM) -> Page:
    """Send a form; the page that follows, or the redirect."""
    person.client.follow_redirects = False
    page = await person.post(path, fields)
    person.client.follow_redirects = True
    return page


async def test_what_is_filled_in_starts_a_run_of_its_person_and_leads_to_it(shop: Office) -> None:
    async with shop.operator() as ida:
        sent = {
            **await fill(ida),
            **GIVEN,
            "v/grams": "500",
            "v/urgent": "true",
            "v/by": "2026-12-24",
            "v/note": "no bags\r\nplease",
            "v/guests": "Noor\r\nUgo",
            "v/address/street": "Elm Street",
            "j/limit": '"none"',
        }
        page = await send(ida, sent)
    (run,) = await runs_of(shop)
    assert (page.status, page.headers["location"]) == (303, f"/runs/{run.run_id}")
    started = (await shop.app.runs.look(run.run_id)).run
    assert started.inputs == {
        "name": "Ida",
        "sort": "green",
        "shop": "market",
        "grams": 500,
        "urgent": True,
        "by": "2026-12-24",
        "note": "no bags\nplease",
        "guests": ["Noor", "Ugo"],
        "address": {"street": "Elm Street"},
        "limit": "none",
    }
    by = started.starter
    assert (by.source, by.subject, by.kind) == (Source.WEB, "ida", PrincipalKind.HUMAN)


async def test_each_problem_stands_at_its_field_and_nothing_typed_is_lost(shop: Office) -> None:
    async with shop.operator() as ida:
        sent = {
            **await fill(ida),
            "v/name": "A name that is far too long",
            "v/grams": "20",
            "v/by": "24.12.2026",
            "v/note": "kept\r\nas it is",
            "v/address/door": "3",
            "j/limit": "{",
        }
        page = await ida.post(FORM, sent)
        assert page.status == 422
        assert page.form(FORM) == sent
        assert "This is no JSON" in page.text
        page = await ida.post(FORM, {**sent, "j/limit": "true"})
    assert page.status == 422
    assert page.title.startswith("Problem: ")
    for told in (
        'Your name : Expected at most 20 characters, got "A name that is far too long".',
        "sort : This is needed.",
        "grams : Expected at least 50, got 20.",
        'by : Expected text in the format date, got "24.12.2026".',
        "street : This is needed.",
        "limit : Expected one of",
    ):
        assert told in page.text
    assert page.html.count('aria-invalid="true"') == 6
    assert await runs_of(shop) == ()


async def test_the_summary_links_to_the_fields_and_each_names_its_problem(shop: Office) -> None:
    async with shop.operator() as ida:
        page = await ida.post(FORM, {**await fill(ida), "v/grams": "many", "v/sort": '"green"'})
    (link,) = [link for link in page.links if link.startswith("#field")]
    field = link.removeprefix("#")
    tag = next(part for part in page.html.split("<input") if f'id="{field}"' in part)
    assert f'{field}-problem" aria-invalid="true"' in tag
    assert f'id="{field}-problem"' in page.html
    assert 'value="many"' in tag


async def test_a_form_that_is_sent_twice_starts_one_run(shop: Office) -> None:
    async with shop.operator() as ida:
        sent = {**await fill(ida), **GIVEN}
        first, second = await send(ida, sent), await send(ida, sent)
        assert first.headers["location"] == second.headers["location"]
        changed = await send(ida, {**sent, "v/name": "Noor"})
        assert (changed.status, "has started a run already" in changed.text) == (409, True)
        assert changed.form(FORM)["v/name"] == "Noor"
        assert len(await runs_of(shop)) == 1
        third = await send(ida, changed.form(FORM))
        assert third.status == 303
    assert len(await runs_of(shop)) == 2


async def test_a_refused_start_says_why_and_keeps_the_form(shop: Office) -> None:
    async with shop.operator() as ida:
        await send(ida, {**await fill(ida), **GIVEN})
        (run,) = await runs_of(shop)
        page = await send(ida, {**await fill(ida), **GIVEN, "v/note": "kept"})
        assert page.status == 409
        assert f"run {run.run_id} is live with the same key" in page.text
        assert "Follow that run, or cancel it" in page.text
        assert "sop_" not in page.text
        assert f"/runs/{run.run_id}" in page.links
        assert page.form(FORM)["v/note"] == "kept"
        await send(ida, {**await fill(ida), **GIVEN, "v/name": "Noor"})
        page = await send(ida, {**await fill(ida), **GIVEN, "v/name": "Ugo"})
        assert "max_concurrent 2 of 'order-tea' is used by" in page.text
    assert len(await runs_of(shop)) == 2


async def test_a_start_that_joins_a_live_run_says_so(tmp_path: Path) -> None:
    header = ORDER["SOP.toml"].replace('key = "inputs.name"', 'admission_policy = "coalesce"')
    async with office(tmp_path, CONFIG, {"order-tea": {**ORDER, "SOP.toml": header}}) as desk, desk.operator() as ida:
        await send(ida, {**await fill(ida), **GIVEN})
        (run,) = await runs_of(desk)
        page = await send(ida, {**await fill(ida), **GIVEN, "v/name": "Noor"})
        assert (page.status, f"/runs/{run.run_id}" in page.links) == (200, True)
        assert "No other run was started" in page.text
        assert len(await runs_of(desk)) == 1


async def test_who_may_only_look_starts_nothing(shop: Office) -> None:
    looks, starts = await shop.token("noor", "view"), await shop.token("ugo", "operate")
    async with shop.somebody(starts) as ugo:
        sent = {**await fill(ugo), **GIVEN}
        assert "/catalogue/order-tea/start" in (await ugo.get("/catalogue")).links
    async with shop.somebody(looks) as noor:
        for page in (await noor.get(FORM), await noor.post(FORM, sent)):
            assert (page.status, "needs the role operate" in page.text) == (403, True)
        for path in ("/catalogue", "/catalogue/order-tea"):
            page = await noor.get(path)
            assert (page.status, FORM in page.links) == (200, False)
    assert await runs_of(shop) == ()
    async with shop.somebody(starts) as ugo:
        assert (await send(ugo, {**await fill(ugo), **GIVEN})).status == 303


@pytest.mark.parametrize("changed", [{"form_token": "x"}, {"form_token": ""}])
async def test_a_form_of_another_session_starts_nothing(shop: Office, changed: dict[str, str]) -> None:
    async with shop.operator() as ida:
        sent = {**await fill(ida), **GIVEN}
        page = await send(ida, {**sent, **changed})
        assert (page.status, "nothing was started" in page.text) == (403, True)
        assert await runs_of(shop) == ()
        assert (await send(ida, sent)).status == 303


async def test_without_a_login_the_form_is_not_shown_and_comes_after_it(shop: Office) -> None:
    async with shop.somebody() as nobody:
        page = await nobody.get(FORM)
        assert page.path == "/inbox/login"
        assert page.form("/inbox/login")["next"] == FORM
        assert (await nobody.post(FORM, GIVEN)).path == "/inbox/login"
    assert await runs_of(shop) == ()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"key": ""}, "The form has no key"),
        ({"key": "x" * 101}, "The form has no key"),
        ({"v/hidden": "x"}, "fields that are not asked for: hidden “x”"),
        ({"act": "explode"}, "no button of this form"),
    ],
)
async def test_a_form_that_is_not_ours_is_refused(shop: Office, changed: dict[str, str], told: str) -> None:
    async with shop.operator() as ida:
        page = await send(ida, {**await fill(ida), **GIVEN, **changed})
        assert (page.status, told in page.text) == (422, True), page.text
    assert await runs_of(shop) == ()


async def test_rows_are_added_and_removed_without_starting_anything(shop: Office) -> None:
    async with shop.operator() as ida:
        sent = {**await fill(ida), **GIVEN, "j/limit": "not yet"}
        page = await send(ida, {**sent, "act": "more:/extras"})
        page = await send(ida, {**page.form(FORM), "v/extras/0/what": "cups", "act": "more:/extras"})
        fields = page.form(FORM)
        assert {name: fields[name] for name in fields if "extras" in name} == {
            "n/extras": "2",
            "v/extras/0/what": "cups",
            "v/extras/0/count": "1",
            "v/extras/1/what": "",
            "v/extras/1/count": "1",
        }
        assert (fields["v/name"], fields["j/limit"], fields["key"]) == ("Ida", "not yet", sent["key"])
        page = await send(ida, {**fields, "j/limit": "5"})
        assert "what : This is needed." in page.text
        page = await send(ida, {**page.form(FORM), "v/extras/1/what": "jug", "act": "less:/extras/0"})
        assert await runs_of(shop) == ()
        assert (await send(ida, page.form(FORM))).status == 303
    (run,) = await runs_of(shop)
    assert (await shop.app.runs.look(run.run_id)).run.inputs["extras"] == [{"what": "jug", "count": 1}]


async def test_a_procedure_that_changed_meanwhile_is_shown_again_before_it_starts(shop: Office) -> None:
    async with shop.operator() as ida:
        sent = {**await fill(ida), **GIVEN, "v/note": "careful"}
        header = shop.app.library.find("order-tea").folder / "SOP.toml"
        text = header.read_text(encoding="utf-8").replace("properties.note]", "properties.remark]")
        header.write_text(text, encoding="utf-8")
        page = await send(ida, sent)
        assert (page.status, "has changed since you opened this page" in page.text) == (409, True)
        assert "It no longer asks for: note “careful”." in page.text
        fields = page.form(FORM)
        assert (fields["v/name"], fields["v/remark"]) == ("Ida", "")
        assert await runs_of(shop) == ()
        assert (await send(ida, fields)).status == 303


async def test_inputs_of_an_earlier_run_fill_the_form_without_their_secrets(shop: Office) -> None:
    async with shop.operator() as ida:
        inputs = {"name": "Ida", "sort": "black", "note": "", "extras": [{"what": "cups"}], "limit": 5}
        run = await shop.app.runs.start("order-tea", inputs, ida_surface())
        fields = await fill(ida, FORM) and (await ida.get(f"{FORM}?from={run.run.id}")).form(FORM)
        assert (fields["v/name"], fields["v/sort"], fields["j/note"], fields["j/limit"]) == (
            "Ida",
            '"black"',
            '""',
            "5",
        )
        assert (await send(ida, {**fields, "v/name": "Noor"})).status == 303
        other = await shop.app.runs.start("plain", None, ida_surface())
        assert (await ida.get(f"{FORM}?from={other.run.id}")).status == 404
        again = next(one for one in await runs_of(shop) if one.run_id not in (run.run.id, other.run.id))
        assert (await shop.app.runs.look(again.run_id)).run.inputs == {
            **inputs,
            "name": "Noor",
            "shop": "market",
            "grams": 250,
        }
        keyed = await shop.app.runs.start("plain", {"password": "hunter2", "place": "x"}, ida_surface())
        page = await ida.get(f"/catalogue/plain/start?from={keyed.run.id}")
        assert "hunter2" not in page.html
        assert json.loads(page.form("/catalogue/plain/start")["j"]) == {"place": "x"}


async def test_a_procedure_without_declared_inputs_takes_json_or_nothing(shop: Office) -> None:
    path = "/catalogue/plain/start"
    async with shop.operator() as ida:
        assert (await send(ida, await fill(ida, path), path)).status == 303
        page = await send(ida, {**await fill(ida, path), "j": "{"}, path)
        assert (page.status, page.form(path)["j"]) == (422, "{")
        assert (await send(ida, {**page.form(path), "j": '{"a": [1]}'}, path)).status == 303
    found = [(await shop.app.runs.look(run.run_id)).run.inputs for run in await runs_of(shop)]
    assert sorted(map(str, found)) == ["None", "{'a': [1]}"]


async def test_foreign_markup_stays_text_in_the_form(shop: Office) -> None:
    path = "/catalogue/odd/start"
    async with shop.operator() as ida:
        page = await ida.post(path, {**await fill(ida, path), "v/q": '"><script>alert(2)</script>', "key": "k" * 9})
        assert page.status in (200, 303, 404)
        form = await ida.get(path)
    assert form.form(path)["v/q"] == "<i>\"'</i>"
    for one in (page, form):
        assert "<script>alert" not in one.html
        assert "<i>" not in one.html
        assert "<b>q</b>" not in one.html


async def test_inputs_that_are_too_large_are_told_and_kept(shop: Office) -> None:
    async with shop.operator() as ida:
        text = "é" * 40_000
        page = await send(ida, {**await fill(ida), **GIVEN, "v/note": text})
        assert (page.status, page.form(FORM)["v/note"]) == (422, text)
        assert "the limit is 65536" in page.text


async def test_a_broken_procedure_is_not_started(shop: Office) -> None:
    async with shop.operator() as ida:
        page = await ida.get("/catalogue/bake-bread/start")
        assert (page.status, "has 2 error(s)" in page.text) == (409, True)
        assert "/catalogue/bake-bread" in page.links
        assert (await ida.get("/catalogue/bake-bred/start")).status == 404


def ida_surface() -> Any:
    from procedo.core.principal import Principal
    from procedo.runs import Surface

    return Surface(Principal(Source.WEB, "ida", PrincipalKind.HUMAN), host=False)


async def test_the_page_of_a_run_leads_to_a_form_with_its_inputs(shop: Office) -> None:
    run = await shop.app.runs.start("order-tea", {"name": "Ida", "sort": "black"}, ida_surface())
    again = f"{FORM}?from={run.run.id}"
    async with shop.operator() as ida:
        assert again in (await ida.get(f"/runs/{run.run.id}")).links
        assert (await ida.get(again)).form(FORM)["v/name"] == "Ida"
    async with shop.somebody(await shop.token("noor", "view")) as noor:
        assert again not in (await noor.get(f"/runs/{run.run.id}")).links


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1e400", "no JSON value"),
        ('"\\ud800"', "no JSON value"),
        ("[" * 900 + "]" * 900, "nested deeper than 100"),
        ("[" * 30_000, "nested too deeply"),
        ("[1] x", "This is no JSON: Extra data at line 1, column 5."),
        ("1" * 5_000, "This is no JSON: a number has too many digits."),
    ],
)
async def test_json_that_cannot_be_kept_is_told_and_kept_in_the_form(shop: Office, text: str, told: str) -> None:
    path = "/catalogue/plain/start"
    async with shop.operator() as ida:
        page = await send(ida, {**await fill(ida, path), "j": text}, path)
        assert (page.status, page.form(path)["j"]) == (422, text)
        assert told in page.text
    assert await runs_of(shop) == ()
