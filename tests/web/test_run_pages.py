"""The list of runs, the page of one, and what may be done to it, over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp_host import ALL, KILN
from starlette.responses import StreamingResponse
from web_page import HOST, REVIEW, Office, Page, Person, gate_path, office

from procedo.core.access import Role
from procedo.core.altered import altered
from procedo.core.model import Scope
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.reach import Reach
from procedo.core.session import CallRow, Message, Outcome, SessionRow, Transcript, TurnRow
from procedo.core.state import Status, Verdict
from procedo.ports import Filter
from procedo.runs import Snapshot, Surface
from procedo.surfaces.web.live import Streams

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("console-runs")]

OPERATOR = Surface(Principal(Source.CLI, "noor", PrincipalKind.HUMAN))
KEYED = {
    "SOP.toml": """
[sop]
name = "keyed"
description = "One for each kiln"
execution_mode = "auto"
max_concurrent = 4
key = "inputs.kiln"

[inputs]
type = "object"
required = ["kiln"]
properties.kiln = { type = "string" }
properties.note = { type = "string" }
""",
    "SOP.md": "## Steps\n\n1. **Look** — Look at it.\n",
}
LOOP = {
    "SOP.toml": '[sop]\nname = "loop"\ndescription = "Again and again"\nexecution_mode = "auto"\n',
    "SOP.md": "## Steps\n\n1. **Turn** — Turn it.\n   - when: $.steps.1.turn < 99\n   - next: 1\n",
}
OUTER = {
    "SOP.toml": '[sop]\nname = "outer"\ndescription = "Calls another one"\nexecution_mode = "auto"\n',
    "SOP.md": "## Steps\n\n1. **Paint it** — By another.\n   - kind: sop\n   - sop: plain\n2. **Done** — Say so.\n",
}
EACH = {
    "SOP.toml": '[sop]\nname = "each"\ndescription = "One for each"\nexecution_mode = "auto"\n',
    "SOP.md": "## Steps\n\n1. **Each** — Do {{item}}.\n   - for_each: {{inputs.kilns}}\n   - max_parallel: 2\n",
}
SOPS = {**ALL, "each": EACH, "keyed": KEYED, "outer": OUTER, "loop": LOOP}


@pytest.fixture
async def works(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Office]:
    async with office(tmp_path, "", SOPS) as opened:
        yield opened


async def plain(at: Office, *reports: Any, surface: Surface = HOST) -> Snapshot:
    """A run of three steps with these reported as completed."""
    run = await at.app.runs.start("plain", {"n": 1}, surface)
    for number, output in enumerate(reports, 1):
        run = await at.app.runs.advance(run.run.id, f"{number}.1", "completed", output, surface)
    return run


async def failed(at: Office) -> Snapshot:
    """A run that failed at its second step."""
    run = await plain(at, {"ok": True})
    return await at.app.runs.advance(run.run.id, "2.1", "failed", "the registry answered 503", HOST)


def listed(page: Page) -> list[str]:
    """The runs on a page of the list, in order."""
    return [link.removeprefix("/runs/") for link in page.links if link.startswith("/runs/run-")]


async def status(at: Office, run_id: str) -> Status:
    return (await at.app.runs.look(run_id)).run.status


# --- the list ---------------------------------------------------------------------------------------


async def test_without_any_run_the_list_says_how_to_get_one(works: Office) -> None:
    async with works.operator() as ida:
        page = await ida.get("/runs")
        assert "No run yet." in page.text
        assert page.links.count("/catalogue") == 2, "in the navigation and in the words"
        assert "No run fits." in (await ida.get("/runs?who=nobody")).text


async def test_the_latest_run_is_first_with_how_it_stands(works: Office) -> None:
    first = await works.kiln()
    works.clock.time += timedelta(minutes=5)
    second = await failed(works)
    async with works.operator() as ida:
        page = await ida.get("/runs")
    assert listed(page) == [second.run.id, first.run.id]
    assert "started 5 minutes ago by desk (a model at the host)" in page.text
    assert "waiting approval" in page.text
    assert "1 gate open" in page.text
    assert "step 2 failed: the registry answered 503" in page.text


async def test_runs_are_filtered_by_each_field_and_by_all_together(works: Office) -> None:
    kiln, done, bad = await works.kiln(), await plain(works, 1, 2, 3), await failed(works)
    east = await works.app.runs.start("keyed", {"kiln": "east"}, HOST)
    west = await works.app.runs.start("keyed", {"kiln": "west"}, OPERATOR)
    expected: dict[str, list[Snapshot]] = {
        "status=live": [kiln, east, west],
        "status=ended": [done, bad],
        "status=failed": [bad],
        "sop=plain": [done, bad],
        "sop=plain&status=completed": [done],
        "who=NOOR": [west],
        "who=desk": [kiln, done, bad, east],
        "key=eas": [east],
        "key=st": [east, west],
        "key=st&who=noor&status=live&sop=keyed": [west],
        "words=kiln": [kiln],
        f"words={bad.run.id[:12]}": [bad],
        "words=nothing-like-it": [],
    }
    async with works.operator() as ida:
        for query, runs in expected.items():
            page = await ida.get(f"/runs?{query}")
            assert (page.status, set(listed(page))) == (200, {one.run.id for one in runs}), query


async def test_the_id_of_a_run_leads_straight_to_it(works: Office) -> None:
    run = await works.kiln()
    async with works.operator() as ida:
        assert (await ida.get(f"/runs?words=+{run.run.id}+")).path == f"/runs/{run.run.id}"


async def test_the_list_goes_on_page_by_page_without_losing_its_filter(works: Office) -> None:
    made = []
    for _ in range(30):
        works.clock.time += timedelta(seconds=1)
        run = await plain(works)
        made.append(run.run.id)
        await works.app.runs.cancel(run.run.id, "enough", HOST)
    await works.kiln()
    async with works.operator() as ida:
        page = await ida.get("/runs?sop=plain")
        seen = listed(page)
        assert "/runs?sop=plain&page=2" in page.links
        page = await ida.get("/runs?sop=plain&page=2")
        assert seen + listed(page) == made[::-1]
        assert "/runs?sop=plain" in page.links
        assert not any("page=3" in link for link in page.links)
        searched = await ida.get("/runs?sop=plain&who=desk&page=2")
        assert listed(searched) == listed(page)


async def test_a_search_that_ends_before_the_oldest_run_says_so(works: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("procedo.surfaces.web.runlist.LOOKED", 50)
    async with works.operator() as ida:
        for count, told in ((49, False), (1, True)):
            for _ in range(count):
                run = await works.app.runs.start("plain", None, HOST)
                await works.app.runs.cancel(run.run.id, "enough", HOST)
            assert ("The search went through the latest" in (await ida.get("/runs?who=noor")).text) is told
            assert "The search went" not in (await ida.get("/runs?sop=plain")).text


@pytest.mark.parametrize(
    ("query", "code", "told"),
    [
        ("status=strange", 422, "'strange' is no status of a run"),
        ("page=0", 422, "'0' is no page of the list"),
        ("page=41", 422, "'41' is no page of the list"),
        ("page=x", 422, "'x' is no page of the list"),
        (f"page={'9' * 5000}", 422, "is no page of the list"),
        ("sop=plainn", 404, "plain"),
    ],
)
async def test_a_filter_that_cannot_be_is_told_and_nothing_is_guessed(
    works: Office, query: str, code: int, told: str
) -> None:
    async with works.operator() as ida:
        page = await ida.get(f"/runs?{query}")
    assert (page.status, told in page.text) == (code, True)


# --- who sees what ----------------------------------------------------------------------------------


async def test_who_is_not_logged_in_sees_no_run_and_comes_back_after_the_login(works: Office) -> None:
    run = await works.kiln()
    async with works.somebody() as ida:
        page = await ida.get("/runs?status=live")
        assert page.path == "/inbox/login"
        assert run.run.id not in page.html
        works.code.renew()
        page = await ida.post("/inbox/login", {**page.form("/inbox/login"), "credential": works.codes[-1]})
        assert (page.path, listed(page)) == ("/runs", [run.run.id])
        await ida.post("/inbox/logout", ida.page.form("/inbox/logout"))
        for path in (f"/runs/{run.run.id}", f"/runs/{run.run.id}/inputs", f"/runs/{run.run.id}/cancel", "/runs/events"):
            assert (await ida.get(path)).path == "/inbox/login"


async def test_beyond_the_limits_of_a_token_a_run_does_not_exist(works: Office) -> None:
    kiln, other = await works.kiln(), await plain(works, {"a": 1})
    issued = await works.app.tokens.create(
        "limited",
        OPERATOR.principal,
        subject="lin",
        kind=PrincipalKind.HUMAN,
        roles=list(Role),
        reach=Reach(("plain",), None),
    )
    async with works.somebody(issued.secret) as lin:
        assert listed(await lin.get("/runs")) == [other.run.id]
        assert (await lin.get(f"/runs/{other.run.id}")).status == 200
        for end in ("", "/inputs", "/output", "/outputs/1.1", "/cancel", "/pause", "/transcripts/1.1"):
            assert (await lin.get(f"/runs/{kiln.run.id}{end}")).status == 404, end
        token = (await lin.get(f"/runs/{other.run.id}/pause")).form(f"/runs/{other.run.id}/pause")["form_token"]
        page = await lin.post(f"/runs/{kiln.run.id}/cancel", {"form_token": token, "reason": "mine"})
        assert page.status == 404
    assert await status(works, kiln.run.id) is Status.WAITING_APPROVAL


@pytest.mark.parametrize("roles", [("view",), ("approve",)])
async def test_without_the_role_operate_one_looks_and_moves_nothing(works: Office, roles: tuple[str, ...]) -> None:
    run = await works.kiln()
    here = f"/runs/{run.run.id}"
    async with works.somebody(await works.token("lin", *roles)) as lin:
        page = await lin.get(here)
        assert page.status == 200
        assert "Moving it takes the role operate." in page.text
        assert not any(link.startswith(f"{here}/") for link in page.links)
        token = page.form("/inbox/logout")["form_token"]
        for verb in ("cancel", "pause", "resume", "retry?step=1"):
            for answer in (
                await lin.get(f"{here}/{verb}"),
                await lin.post(f"{here}/{verb}", {"form_token": token, "reason": "no"}),
            ):
                assert answer.status == 403, verb
                assert "role operate" in answer.text
    assert await status(works, run.run.id) is Status.WAITING_APPROVAL


# --- one run ----------------------------------------------------------------------------------------


async def test_the_page_tells_who_acts_what_was_done_and_where_it_leads(works: Office) -> None:
    run = await works.letter(body="Dear Ada", to="Ms Byron")
    async with works.operator() as ida:
        page = await ida.get(f"/runs/{run.run.id}")
    assert page.title.startswith("letter: paused checkpoint · procedo")
    assert "A person has to act" in page.text
    assert gate_path(run) in page.links
    assert "Step 1, Draft, host: done" in page.html
    assert "Step 2, Judge, checkpoint: waits for a person" in page.html
    assert "Step 3, Send, host: not reached" in page.html
    assert page.html.count('class="way taken"') == 0, "it has not got past its first step"
    assert "1.1 completed by the host's assistant" in page.text
    assert "letter 0.1.0 started by desk" in page.text
    assert "desk (a model at the host)" in page.text


async def test_the_way_that_was_taken_is_drawn(works: Office) -> None:
    run = await plain(works, 1, 2)
    async with works.operator() as ida:
        assert (await ida.get(f"/runs/{run.run.id}")).html.count('class="way taken"') == 2


async def test_foreign_text_stays_text_and_secrets_are_masked(works: Office) -> None:
    evil = "</div><script>alert(1)</script>\u202e"
    run = await plain(works, {"text": evil, "api_key": "sk-ours-12345678", evil: 1}, {"password": "hunter2"})
    async with works.operator() as ida:
        for path in (f"/runs/{run.run.id}?record=all", f"/runs/{run.run.id}/outputs/1.1"):
            page = await ida.get(path)
            assert "<script>alert" not in page.html
            assert "\u202e" not in page.html
            assert "sk-ours-12345678" not in page.html
            assert "hunter2" not in page.html
            assert ("2.1 completed" in page.text) == ("record" in path)
            assert "</div><script>alert(1)</script>⟨U+202E⟩" in page.text
            assert "style=" not in page.html


async def test_a_big_output_is_cut_and_read_in_parts(works: Office) -> None:
    text = "".join(f"{n:07} " for n in range(6_000))
    run = await plain(works, text)
    whole = f"/runs/{run.run.id}/outputs/1.1"
    async with works.operator() as ida:
        page = await ida.get(f"/runs/{run.run.id}")
        assert whole in page.links
        assert "45,000 more characters" in page.text
        assert len(page.html) < 30_000
        parts = []
        await ida.get(whole)
        while True:
            parts.append(ida.page.html.partition('<div class="text whole">')[2].partition("</div>")[0])
            further = [
                link for link in ida.page.links if link.startswith("?from=") and int(link[6:]) == len(parts) * 20_000
            ]
            if not further:
                break
            await ida.get(whole + further[0])
        assert "".join(parts) == text
        for wrong in ("-1", "x", "48001", "9" * 5_000):
            assert (await ida.get(f"{whole}?from={wrong}")).status == 422
        assert (await ida.get(f"/runs/{run.run.id}/outputs/9.9")).status == 404
        assert (await ida.get(f"/runs/{run.run.id}/output")).status == 409


async def test_inputs_and_the_output_of_the_run_are_shown(works: Office) -> None:
    run = await plain(works, 1, 2, {"answer": "forty-two"})
    async with works.operator() as ida:
        page = await ida.get(f"/runs/{run.run.id}")
        assert "forty-two" in page.text
        assert "Nobody" not in page.text
        assert "How it ended" in page.text
        assert "forty-two" in (await ida.get(f"/runs/{run.run.id}/output")).text
        assert '"n": 1' in (await ida.get(f"/runs/{run.run.id}/inputs")).text


async def test_decisions_are_told_with_votes_and_comments(tmp_path: Path) -> None:
    steps = KILN["SOP.md"].replace("requires_confirmation: true", "requires_confirmation: true\n   - policy: two")
    async with office(tmp_path, REVIEW, {**ALL, "kiln-firing": {**KILN, "SOP.md": steps}}) as at:
        run = await at.kiln()
        (gate,) = run.run.open_gates
        people = [Surface(Principal(Source.WEB, name, PrincipalKind.HUMAN)) for name in ("ida", "noor")]
        await at.app.runs.decide(gate.id, Verdict.APPROVE, people[0], comment="the ware is dry")
        async with at.operator() as ida:
            page = await ida.get(f"/runs/{run.run.id}")
            assert "ida (human, web): approve" in page.text
            await at.app.runs.decide(gate.id, Verdict.APPROVE, people[1], comment="agreed")
            page = await ida.get(f"/runs/{run.run.id}")
    assert "approved" in page.text
    assert "Decided by noor (human, web). “agreed”" in page.text
    assert "ida (human, web): approve" in page.text
    assert "noor (in the console)" in page.text


async def test_a_sub_run_and_its_parent_lead_to_each_other(works: Office) -> None:
    above = await works.app.runs.start("outer", None, HOST)
    (execution,) = above.run.open_executions
    child = await works.app.runs.start_child(above.run, execution, "plain", Scope())
    await works.app.runs.cancel(child.run.id, "not now", HOST)
    async with works.operator() as ida:
        assert f"/runs/{child.run.id}" in (await ida.get(f"/runs/{above.run.id}")).links
        page = await ida.get(f"/runs/{child.run.id}")
        assert f"/runs/{above.run.id}" in page.links
        assert "works for step 1" in page.text


def session(run_id: str, at: Any) -> Transcript:
    """What an agent might have left behind."""
    row = SessionRow(
        run_id, "1.1", "reviewer", "host", "agent:host:x", 1, "local", 1, at, at, turns=1, calls=1,
        input_tokens=12_345, output_tokens=67, cost_usd="0.25",
    )  # fmt: skip
    asked = {"instructions": "You review.", "parts": [{"part_kind": "user-prompt", "content": "Look <b>closely</b>"}]}
    said = {"parts": [{"part_kind": "text", "content": "I look; the key is sk-ours-12345678"}]}
    messages = (Message(1, "request", asked, "2", at), Message(2, "response", said, "2", at))
    turn = TurnRow(1, "d", "gpt", at, answered=True, input_tokens=12_345, output_tokens=67, cost_usd="0.25")
    call = CallRow(1, 0, "c1", "built_in:file_read", "file_read", "s", {"path": "a.txt"}, "digest", at, text="contents")
    return Transcript(row, messages, (turn,), (call,))


async def test_tokens_cost_and_the_transcript_are_told_to_people_who_operate(works: Office) -> None:
    run = await plain(works, 1)
    left = session(run.run.id, works.clock.now())
    await works.app.store.write(lambda w: w.put_session(left.session, left.messages, left.turns, left.calls))
    here = f"/runs/{run.run.id}"
    async with works.somebody(await works.token("noor", "operate")) as noor:
        page = await noor.get(here)
        assert "12,345 tokens in, 67 out, 0.25 USD" in page.text
        assert "1 reviewer 1 1 12,345 67 0.25 In all 12,345 67 0.25" in page.text
        assert f"{here}/transcripts/1.1" in page.links
        page = await noor.get(f"{here}/transcripts/1.1")
        for told in (
            "You review.",
            "Look <b>closely</b>",
            "I look; the key is [masked]",
            "Calls file_read",
            "contents",
        ):
            assert told in page.text
        assert "sk-ours" not in page.html
        assert 'class="card called"' in page.html
        denied = [altered(call, outcome=Outcome.DENIED) for call in left.calls]
        await works.app.store.write(lambda w: w.put_session(left.session, (), (), denied))
        assert 'class="card called amiss"' in (await noor.get(f"{here}/transcripts/1.1")).html
        assert (await noor.get(f"{here}/transcripts/2.1")).status == 404
    for role in ("view", "approve"):
        async with works.somebody(await works.token("lin", role)) as lin:
            page = await lin.get(here)
            assert "12,345 tokens in" in page.text
            assert f"{here}/transcripts/1.1" not in page.links
            assert (await lin.get(f"{here}/transcripts/1.1")).status == 403


async def test_the_sum_of_a_run_has_that_of_its_sub_runs_and_says_so(works: Office) -> None:
    above = await works.app.runs.start("outer", None, HOST)
    (execution,) = above.run.open_executions
    child = await works.app.runs.start_child(above.run, execution, "plain", Scope())
    left = session(child.run.id, works.clock.now()).session
    await works.app.store.write(lambda w: w.put_session(left))
    async with works.operator() as ida:
        for run, told in ((above, "In all, with sub-runs 12,345 67 0.25"), (child, "In all 12,345 67 0.25")):
            assert told in (await ida.get(f"/runs/{run.run.id}")).text


async def test_a_run_keeps_to_its_version_and_the_page_says_that_there_is_another(works: Office) -> None:
    run = await works.kiln()
    async with works.operator() as ida:
        assert "This run keeps to its version" not in (await ida.get(f"/runs/{run.run.id}")).text
        file = works.app.settings.sops_dir / "kiln-firing" / "SOP.md"
        file.write_text(KILN["SOP.md"].replace("980", "1,020"), encoding="utf-8")
        page = await ida.get(f"/runs/{run.run.id}")
        assert "This run keeps to its version" in page.text
        assert "Heat to 980" in page.html


@pytest.mark.parametrize(
    "path", ["/inbox/none", "/runs/run-1/none", "/runs/run-1/outputs/1.1/none", "/catalogue/a/b/c"]
)
async def test_an_address_that_leads_nowhere_is_told_on_a_page_to_visitors_alone(works: Office, path: str) -> None:
    async with works.somebody() as anybody, works.operator() as ida:
        assert (await anybody.get(path)).path == "/inbox/login"
        page = await ida.get(path)
        assert (page.status, "Nothing is found at this address." in page.text) == (404, True)
        assert "/runs" in page.links


async def test_of_many_attempts_the_latest_are_shown_and_all_on_request(works: Office) -> None:
    run = await works.app.runs.start("loop", None, HOST)
    for number in range(1, 40):
        run = await works.app.runs.advance(run.run.id, f"1.{number}", "completed", {"turn": number}, HOST)
    async with works.operator() as ida:
        page = await ida.get(f"/runs/{run.run.id}")
        assert [n for n in range(1, 41) if f'id="output-1.{n}"' in page.html] == list(range(31, 40))
        assert "30 earlier ones" in page.text
        assert "Show" in page.text
        assert "1.1 completed: {" not in page.text, "the record begins later, too"
        page = await ida.get(f"/runs/{run.run.id}?record=all")
        assert [n for n in range(1, 41) if f'id="output-1.{n}"' in page.html] == list(range(1, 40))
        assert "1.1 completed: {" in page.text


async def test_each_item_of_a_step_is_told_apart(works: Office) -> None:
    run = await works.app.runs.start("each", {"kilns": ["east", "west"]}, HOST)
    async with works.operator() as ida:
        page = await ida.get(f"/runs/{run.run.id}")
    for number in (1, 2):
        assert f"Step 1, Each, item {number} of 2, is with host." in page.text
    assert 'each 0.1.0 started by desk with {"kilns": ["east", "west"]}' in page.text


async def test_a_run_without_inputs_is_not_started_with_null(works: Office) -> None:
    run = await works.letter()
    async with works.operator() as ida:
        assert "letter 0.1.0 started by desk a moment ago" in (await ida.get(f"/runs/{run.run.id}")).text


@pytest.mark.parametrize("path", ["/runs/run-none", "/runs?sop=unlike-anything", "/catalogue/unlike-anything"])
async def test_no_page_speaks_of_tools(works: Office, path: str) -> None:
    async with works.operator() as ida:
        page = await ida.get(path)
    assert (page.status, "sop_" in page.text) == (404, False)


async def test_an_unknown_run_is_not_found(works: Office) -> None:
    async with works.operator() as ida:
        for end in ("", "/events", "/cancel", "/inputs"):
            page = await ida.get(f"/runs/run-nothing{end}")
            assert (page.status, "No such run" in page.text) == (404, True)


# --- controls ---------------------------------------------------------------------------------------


async def act(person: Person, run_id: str, verb: str, **fields: str) -> Page:
    """Go by the confirmation page."""
    await person.get(f"/runs/{run_id}/{verb}")
    form = person.page.form(f"/runs/{run_id}/{verb}")
    return await person.post(f"/runs/{run_id}/{verb}", {**form, **fields})


async def test_a_run_is_cancelled_with_a_reason_and_never_without(works: Office) -> None:
    run = await works.kiln()
    here = f"/runs/{run.run.id}"
    async with works.operator() as ida:
        assert f"{here}/cancel" in (await ida.get(here)).links
        page = await act(ida, run.run.id, "cancel", reason="  ")
        assert page.status == 422
        assert "Say why" in page.text
        assert await status(works, run.run.id) is Status.WAITING_APPROVAL
        page = await act(ida, run.run.id, "cancel", reason="oven out of order")
        assert page.path == here
        assert "The run is cancelled by ida (human, web): oven out of order." in page.text
        assert not any(link.startswith(f"{here}/") for link in page.links if "inputs" not in link)
    last = (await works.app.runs.history(run.run.id)).records[-1]
    assert (last.kind, last.acting) == ("RunCancelled", "human:web:ida")


async def test_a_run_is_paused_and_resumed(works: Office) -> None:
    run = await plain(works)
    here = f"/runs/{run.run.id}"
    async with works.operator() as ida:
        page = await act(ida, run.run.id, "pause", reason="until noon")
        assert page.path == here
        assert "The run is paused by ida (in the console): until noon." in page.text
        assert f"{here}/resume" in page.links
        assert f"{here}/pause" not in page.links
        page = await act(ida, run.run.id, "resume")
        assert f"{here}/pause" in page.links
    assert await status(works, run.run.id) is Status.RUNNING


async def test_a_failed_step_is_retried_in_a_new_run_with_the_results_so_far(works: Office) -> None:
    run = await failed(works)
    here = f"/runs/{run.run.id}"
    async with works.operator() as ida:
        page = await ida.get(here)
        assert "step 2 failed: the registry answered 503" in page.text
        assert f"{here}/retry?step=2" in page.links
        page = await act(ida, run.run.id, "retry?step=2")
        assert page.path != here
        assert here in page.links
        assert "Step 2, Second, is with host" in page.text
    new = await works.app.runs.look(page.path.removeprefix("/runs/"))
    assert (new.run.retry_of, new.run.status) == (run.run.id, Status.RUNNING)
    assert await status(works, run.run.id) is Status.FAILED


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("resume", "there is nothing to resume"),
        ("retry?step=1", "step 1 cannot be retried"),
        ("retry", "there is nothing to retry"),
        ("retry?step=x", "step x cannot be retried"),
    ],
)
async def test_what_a_run_does_not_take_now_is_refused_clearly(works: Office, verb: str, told: str) -> None:
    run = await plain(works)
    here = f"/runs/{run.run.id}"
    async with works.operator() as ida:
        token = (await ida.get(here)).form("/inbox/logout")["form_token"]
        for page in (await ida.get(f"{here}/{verb}"), await ida.post(f"{here}/{verb}", {"form_token": token})):
            assert (page.status, told in page.text, here in page.links) == (409, True, True)
    assert (await works.app.runs.look(run.run.id)).run.revision == run.run.revision


@pytest.mark.parametrize("verb", ["pause", "cancel"])
async def test_a_form_that_is_sent_twice_leads_to_the_run_and_another_one_is_refused(works: Office, verb: str) -> None:
    run = await plain(works)
    here = f"/runs/{run.run.id}"
    async with works.operator() as ida:
        form = {**(await ida.get(f"{here}/{verb}")).form(f"{here}/{verb}"), "reason": "the kiln\r\nis cold "}
        first = await ida.post(f"{here}/{verb}", form)
        revision = (await works.app.runs.look(run.run.id)).run.revision
        again = await ida.post(f"{here}/{verb}", form)
        assert [(page.path, page.status) for page in (first, again)] == [(here, 200)] * 2
        assert (await ida.post(f"{here}/{verb}", {**form, "reason": "another"})).status == 409
        assert (await ida.post(f"{here}/{verb}", {**form, "form_token": "x"})).status == 403
    assert (await works.app.runs.look(run.run.id)).run.revision == revision


async def test_nothing_more_is_done_to_a_run_that_has_ended_meanwhile(works: Office) -> None:
    run = await plain(works)
    here = f"/runs/{run.run.id}/cancel"
    async with works.operator() as ida:
        form = (await ida.get(here)).form(here)
        await works.app.runs.cancel(run.run.id, "first", OPERATOR)
        page = await ida.post(here, {**form, "reason": "second"})
        assert page.status == 409
        assert "The run is cancelled: there is nothing to cancel." in page.text
    end = (await works.app.runs.look(run.run.id)).run.end
    assert end is not None
    assert end.reason == "first"


async def test_a_control_takes_the_form_of_its_own_session_alone(works: Office) -> None:
    run = await plain(works)
    here = f"/runs/{run.run.id}/cancel"
    async with works.operator() as ida, works.somebody(await works.token("noor", "operate")) as noor:
        theirs = (await noor.get(here)).form(here)["form_token"]
        for token in ("", "x", "ü", theirs):
            page = await ida.post(here, {"form_token": token, "reason": "forged"})
            assert page.status == 403
            assert "nothing was changed" in page.text
        page = await ida.post(here, {"form_token": "", "reason": "forged"}, origin="https://evil.example")
        assert page.status == 403
    assert await status(works, run.run.id) is Status.RUNNING


async def test_no_get_moves_a_run(works: Office) -> None:
    run = await failed(works)
    live = await plain(works)
    async with works.operator() as ida:
        for path in (
            f"/runs/{live.run.id}",
            f"/runs/{live.run.id}/cancel?reason=now",
            f"/runs/{live.run.id}/pause",
            f"/runs/{run.run.id}/retry?step=2",
        ):
            assert (await ida.get(path)).status == 200
    assert (await works.app.runs.look(live.run.id)).run.revision == live.run.revision
    assert len(await works.app.runs.list(Filter())) == 2


async def test_a_page_names_its_stream_and_another_version_after_each_change(works: Office) -> None:
    run = await plain(works)
    async with works.operator() as ida:
        page = await ida.get(f"/runs/{run.run.id}")
    assert f'data-events="/runs/{run.run.id}/events"' in page.html
    version = page.html.partition('data-version="')[2].partition('"')[0]
    assert len(version) == 16
    await works.app.runs.advance(run.run.id, "1.1", "completed", 1, HOST)
    async with works.operator() as ida:
        assert f'data-version="{version}"' not in (await ida.get(f"/runs/{run.run.id}")).html


async def test_one_person_does_not_take_the_streams_of_all_others(works: Office) -> None:
    streams = Streams(works.app.store, asyncio.Event())

    async def version() -> str | None:
        return "1"

    async def opened(whose: str) -> Any:
        response = streams.stream(version, whose)
        if response.status_code == 503:
            return None
        assert isinstance(response, StreamingResponse)
        events: Any = response.body_iterator
        assert await anext(events) == "event: version\ndata: 1\n\n"
        return events

    held = [await opened("ida") for _ in range(25)]
    assert None not in held
    assert await opened("ida") is None
    other = await opened("noor")
    assert other is not None
    await held.pop().aclose()
    again = await opened("ida")
    assert again is not None, "a place that is left is free"
    for events in (*held, other, again):
        await events.aclose()
