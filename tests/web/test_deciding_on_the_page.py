from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from web_page import HOST, Office, gate_path, office

from procedo.core import messages as m
from procedo.core.notice import Occasion, Telling
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.state import GateKind, Status, Verdict
from procedo.runs import Snapshot, Surface

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("inbox-answer")]


async def gate_of(desk: Office, run_id: str, number: int = 1) -> Any:
    return (await desk.app.runs.gate(f"{run_id}.g{number}"))[0].gate


async def test_approving_on_the_page_lets_the_step_begin_and_shows_what_is_next(desk: Office) -> None:
    run = await desk.kiln({"temp": 980})
    async with desk.operator() as ida:
        page = await ida.get(gate_path(run))
        assert "temp 980" in page.text
        assert page.buttons == ["approve", "deny"]
        after = await ida.answer("approve", comment=" go on\r\nslowly ")
    assert (after.status, after.buttons) == (200, [])
    assert "Approved Decided by you. “go on slowly”" in after.text
    assert "Step 1, Load kiln, is with host." in after.text
    gate = await gate_of(desk, run.run.id)
    by = Principal(Source.WEB, "ida", PrincipalKind.HUMAN)
    assert (gate.verdict, gate.decided_by, gate.comment) == (Verdict.APPROVE, by, "go on\nslowly")


async def test_a_notice_that_did_not_get_through_is_told_on_the_page(tmp_path: Path) -> None:
    config = '[sop.approval]\nrequest_route = "ops"\n[notices.ops]\ntype = "command"\nargv = ["<none>"]\n'
    async with office(tmp_path, config) as desk:
        run = await desk.kiln()
        (gate,) = run.run.open_gates
        telling = Telling(run.run.id, gate.id, "ops", Occasion.OPENED, gate.opened_at, 3, "<b>no ink</b>")
        async with desk.operator() as ida:
            assert "People may not know" not in (await ida.get(gate_path(run))).text
            await desk.app.store.write(lambda writer: writer.put_telling(telling))
            page = await ida.get(gate_path(run))
        told = "People may not know of this gate: notice 'ops' failed: <b>no ink</b> (3 attempts, tried again)"
        assert told in page.text


async def test_a_denial_keeps_its_reason_and_cancels_the_run(desk: Office) -> None:
    run = await desk.kiln()
    async with desk.operator() as ida:
        page = await ida.get(gate_path(run))
        assert "The run is cancelled." in page.text
        after = await ida.answer("deny", comment="thermocouple broken")
    assert "Denied" in after.text
    assert "The run is cancelled by" in after.text
    end = (await desk.app.runs.look(run.run.id)).run.end
    assert end is not None
    assert (end.status, end.denied, end.reason) == (Status.CANCELLED, True, "thermocouple broken")


async def test_an_amended_field_goes_on_and_the_page_shows_what_was_changed(desk: Office) -> None:
    run = await desk.letter(body="Closed Monday.\nSorry.", title="Pool")
    async with desk.operator() as ida:
        page = await ida.get(gate_path(run))
        assert page.form(page.path)["value"] == "Closed Monday.\nSorry."
        after = await ida.answer("amend", value="Closed Tuesday.\r\nSorry.")
    assert "Approved with a change" in after.text
    assert "removed: Closed Monday. + added: Closed Tuesday." in after.text
    story = (
        "Step 1, Draft: completed",
        "approved with a change a moment",
        "Step 2, Judge: completed",
        "Step 3, Send: open",
    )
    places = [after.text.index(part) for part in story]
    assert places == sorted(places), "in the order of happening"
    state = await desk.app.runs.history(run.run.id)
    assert state.executions[1].closing is not None
    assert state.executions[1].closing.output == {"body": "Closed Tuesday.\nSorry.", "title": "Pool"}


async def test_a_draft_goes_back_with_guidance_and_the_next_one_is_shown_with_its_differences(desk: Office) -> None:
    run = await desk.letter(body="Closed Monday.\nSorry.")
    async with desk.operator() as ida:
        await ida.get(gate_path(run))
        page = await ida.answer("revise", comment=" ")
        assert (page.status, "Say in the comment" in page.text) == (422, True)
        page = await ida.answer("revise", comment="Tuesday, not Monday")
        assert page.buttons == []
        assert "Back at its author A new draft is being made." in page.text
        assert gate_path(run) not in (await ida.get("/inbox")).links
        await desk.app.runs.advance(run.run.id, "1.2", "completed", {"body": "Closed Tuesday.\nSorry."}, HOST)
        page = await ida.get(gate_path(run))
        assert "revision 2" in page.text
        assert "removed: Closed Monday. + added: Closed Tuesday. Sorry." in page.text
        assert "Approved" in (await ida.answer("approve")).text


async def test_an_amended_value_that_is_no_text_is_json_and_a_mistake_keeps_what_was_typed(desk: Office) -> None:
    run = await desk.letter(body={"day": 1})
    async with desk.operator() as ida:
        await ida.get(gate_path(run))
        page = await ida.answer("amend", value="{day: 2}", comment="one day later")
        assert page.status == 422
        assert "is no JSON" in page.text
        assert "Nothing was decided" in page.text
        fields = page.form(page.path)
        assert (fields["value"], fields["comment"]) == ("{day: 2}", "one day later")
        for wrong in ("[" * 50_000, "9" * 5_000, '{"day": NaN}', '{"day": 1, "day": 2}'):
            page = await ida.answer("amend", value=wrong)
            assert (page.status, "is no JSON" in page.text) == (422, True)
        assert "Approved with a change" in (await ida.answer("amend", value='{"day": 2}')).text


async def test_a_text_with_markup_is_shown_as_text(desk: Office) -> None:
    body = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202eevil"
    run = await desk.letter(body=body)
    async with desk.operator() as ida:
        for path in ("/inbox", gate_path(run)):
            page = await ida.get(path)
            assert "<script>alert" not in page.html
            assert "<img" not in page.html
            assert "<script>alert(1)</script>" in page.text
            assert "\u202e" not in page.html.partition('name="comment"')[0]
        assert "⟨U+202E⟩evil" in page.text


async def test_a_secret_in_the_content_is_masked_and_not_overwritten_by_its_mask(desk: Office) -> None:
    run = await desk.letter(body="token=sk-ours-12345678", api_key="hunter2")
    async with desk.operator() as ida:
        for path in ("/inbox", gate_path(run)):
            page = await ida.get(path)
            assert "sk-ours" not in page.html
            assert "hunter2" not in page.html
        assert page.form(page.path)["value"] == ""


async def test_what_was_decided_meanwhile_is_told_and_nothing_happens_twice(desk: Office) -> None:
    run = await desk.kiln()
    async with desk.operator() as ida, desk.somebody(await desk.token("noor", "approve")) as noor:
        await ida.get(gate_path(run))
        await noor.get(gate_path(run))
        await noor.answer("deny", comment="no")
        page = await ida.answer("approve")
        assert page.status == 409
        assert "Somebody else was first" in page.text
        assert "deny by noor" in page.text
        page = await ida.get(gate_path(run))
        assert "Denied Decided by noor (human, web)." in page.text
        assert page.buttons == []


@pytest.mark.requirement("C9")
async def test_a_draft_that_was_replaced_is_not_approved_by_its_old_page(desk: Office) -> None:
    run = await desk.letter(body="Monday")
    async with desk.operator() as ida:
        page = await ida.get(gate_path(run))
        fields = page.form(page.path)
        for old in ({"revision": "7"}, {"digest": "0" * 32}):
            page = await ida.post(page.path, {**fields, "verdict": "approve", **old})
            assert page.status == 409
            assert "You saw an older version" in page.text
            assert fields["digest"] not in page.html
        for missing in ("revision", "digest", "run"):
            rest = {name: value for name, value in fields.items() if name != missing}
            assert (await ida.post(page.path, {**rest, "verdict": "approve"})).status == 422
    assert (await gate_of(desk, run.run.id)).open


@pytest.mark.requirement("C87")
async def test_an_answer_for_a_gate_of_another_run_is_refused(desk: Office) -> None:
    run, other = await desk.letter(body="Monday"), await desk.kiln()
    async with desk.operator() as ida:
        page = await ida.get(gate_path(run))
        page = await ida.post(page.path, {**page.form(page.path), "verdict": "approve", "run": other.run.id})
        assert page.status == 409
        assert "does not belong" in page.text
    assert (await gate_of(desk, run.run.id)).open
    assert (await gate_of(desk, other.run.id)).open


async def test_a_late_answer_says_that_it_is_too_late(tmp_path: Any) -> None:
    config = (
        '[sop.approval]\ndefault_policy = "quick"\n[sop.approval.policies.quick]\ntimeout = "1h"\non_timeout = "deny"\n'
    )
    async with office(tmp_path, config) as desk:
        run = await desk.kiln()
        async with desk.operator() as ida:
            page = await ida.get(gate_path(run))
            assert "answer due" in page.text
            desk.clock.time += timedelta(hours=2)
            page = await ida.answer("approve")
            assert page.status == 409
            assert "Too late" in page.text
            assert "Expired Nobody answered in time." in (await ida.get(gate_path(run))).text


async def test_an_answer_without_the_forms_own_token_is_refused(desk: Office) -> None:
    run = await desk.kiln()
    async with desk.operator() as ida, desk.somebody(await desk.token("noor", "approve")) as noor:
        theirs = (await noor.get(gate_path(run))).form(gate_path(run))["form_token"]
        page = await ida.get(gate_path(run))
        for token in ("", "x", "ü", theirs):
            answer = await ida.answer("approve", form_token=token)
            assert answer.status == 403
            assert "nothing was decided" in answer.text
            await ida.get(gate_path(run))
        assert (await gate_of(desk, run.run.id)).open
        assert "Approved" in (await ida.answer("approve")).text, page.text


async def test_no_get_decides(desk: Office) -> None:
    run = await desk.kiln()
    async with desk.operator() as ida:
        page = await ida.get(gate_path(run))
        fields = {**page.form(page.path), "verdict": "approve"}
        before = (await desk.app.runs.history(run.run.id)).records
        for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH"):
            await ida.client.request(method, page.path, params=fields)
        for path in ("/inbox", "/inbox?show=all", f"/inbox/gates/{run.run.id}.g1/approve"):
            await ida.get(path)
    assert (await desk.app.runs.history(run.run.id)).records == before
    assert (await gate_of(desk, run.run.id)).open


async def test_two_people_make_a_quorum_and_a_vote_can_be_taken_back(reviewed: Office) -> None:
    run = await reviewed.kiln()
    async with reviewed.operator() as ida, reviewed.somebody(await reviewed.token("noor", "approve")) as noor:
        await ida.get(gate_path(run))
        page = await ida.answer("approve")
        assert "1 of 2 for approve" in page.text
        assert "retract" in page.buttons
        page = await ida.answer("approve")
        assert "1 of 2 for approve" in page.text, "one person is one vote"
        page = await ida.answer("retract")
        assert "1 of 2" not in page.text
        assert (await gate_of(reviewed, run.run.id)).votes == ()
        await ida.answer("approve")
        await noor.get(gate_path(run))
        assert "Approved Decided by you." in (await noor.answer("approve")).text


async def test_whoever_may_not_decide_sees_why_and_no_button(reviewed: Office) -> None:
    run = await reviewed.kiln()
    secrets = {
        "not a member of group 'pharmacists'": await reviewed.token("sam", "approve"),
        "this login has not the role approve": await reviewed.token("ida", "view", "operate"),
    }
    for why, secret in secrets.items():
        async with reviewed.somebody(secret) as somebody:
            page = await somebody.get(gate_path(run))
            assert page.buttons == []
            assert "You do not decide here: " in page.text
            assert why in page.text
            form = {
                "form_token": page.form("/inbox/logout")["form_token"],
                "run": run.run.id,
                "revision": "1",
                "digest": run.run.open_gates[0].digest,
                "verdict": "approve",
            }
            assert (await somebody.post(gate_path(run), form)).status == 403
    assert (await gate_of(reviewed, run.run.id)).votes == ()


@pytest.mark.requirement("C46")
async def test_mine_are_the_gates_that_i_may_decide(reviewed: Office) -> None:
    kiln, letter = await reviewed.kiln(), await reviewed.letter(body="x")
    async with reviewed.somebody(await reviewed.token("sam", "approve")) as sam:
        page = await sam.get("/inbox")
        assert gate_path(letter) in page.links
        assert gate_path(kiln) not in page.links
        assert "1 more waits for other people." in page.text
        page = await sam.get("/inbox?show=all")
        assert {gate_path(letter), gate_path(kiln)} <= set(page.links)
        assert "2 different persons of group 'pharmacists'" in page.text


@pytest.mark.requirement("C46")
async def test_the_list_tells_run_step_question_content_and_since_when(desk: Office) -> None:
    run = await desk.kiln({"temp": 980})
    desk.clock.time += timedelta(hours=3)
    async with desk.operator() as ida:
        page = await ida.get("/inbox")
    (gate,) = run.run.open_gates
    for part in (
        gate.prompt,
        "kiln-firing",
        "step 1, Load kiln",
        "opened 3 hours ago",
        "temp: 980",
        gate.code,
        run.run.id,
    ):
        assert part in page.text
    assert page.title == "(1) Inbox · procedo"


async def test_the_list_shows_the_beginning_of_a_long_content_as_it_is(desk: Office) -> None:
    await desk.letter(body="Dear all, " + "welcome " * 5_000)
    async with desk.operator() as ida:
        page = await ida.get("/inbox")
    assert "body: Dear all, welcome" in page.text
    assert "cut: true" not in page.text


async def test_a_gate_leads_to_its_run_and_names_people_as_the_run_does(desk: Office) -> None:
    run = await desk.letter()
    async with desk.operator() as ida:
        await ida.get(gate_path(run))
        page = await ida.answer("approve")
    assert f"/runs/{run.run.id}" in page.links
    assert "approved a moment ago , by ida (in the console)" in page.text
    assert "by desk (a model at the host)" in page.text


async def test_an_empty_inbox_says_so(desk: Office) -> None:
    async with desk.operator() as ida:
        assert "Nothing waits for you." in (await ida.get("/inbox")).text
        assert "Nothing waits for anybody." in (await ida.get("/inbox?show=all")).text


async def test_a_gate_that_is_void_says_why(desk: Office) -> None:
    run = await desk.kiln()
    async with desk.operator() as ida:
        await ida.get(gate_path(run))
        await desk.app.runs.cancel(run.run.id, "oven out of order", HOST)
        page = await ida.answer("approve")
        assert page.status == 409
        assert page.buttons == []
        page = await ida.get(gate_path(run))
        assert "Void Nothing is left to decide" in page.text
        assert page.buttons == []


async def test_a_gate_that_does_not_exist_is_told(desk: Office) -> None:
    async with desk.operator() as ida:
        page = await ida.get("/inbox/gates/run-none.g1")
    assert page.status == 404
    assert "No such gate" in page.text
    assert "/inbox" in page.links


REVIEW = {
    "SOP.toml": '[sop]\nname = "review"\ndescription = "Review"\nexecution_mode = "auto"\n',
    "SOP.md": "## Steps\n\n1. **Review** — Look at it.\n   - agent: reviewer\n",
}
AGENT = """
[agents.reviewer]
model_provider = "anthropic.main"
risk_profile = "careful"

[risk_profiles.careful]

[providers.models.anthropic.main]
model = "m"
api_key = { env = "NOT_SET" }
"""


async def asked(desk: Office, kind: GateKind) -> Snapshot:
    """A run whose agent asks about one of its tool calls."""
    run = await desk.app.runs.start("review", None, HOST)
    await desk.app.runs.command(run.run.id, m.Begin("1.1", 1, repeatable=False))
    content = {"tool": "pay", "arguments": {"amount": 5}}
    return await desk.app.runs.command(run.run.id, m.Ask("1.1", 1, "0.0", kind, "May reviewer pay?", content))


@pytest.mark.parametrize("lasting", [True, False])
async def test_a_tool_call_of_an_agent_is_allowed_once_or_for_the_session(tmp_path: Any, lasting: bool) -> None:
    async with office(tmp_path, AGENT, {"review": REVIEW}) as desk, desk.operator() as ida:
        run = await asked(desk, GateKind.TOOL_CALL)
        page = await ida.get(gate_path(run))
        assert "The call is made." in page.text
        assert "The call is not made, and the agent is told why." in page.text
        await ida.answer("approve", **({"lasting": "yes"} if lasting else {}))
        gate = await gate_of(desk, run.run.id)
    assert (gate.verdict, gate.lasting) == (Verdict.APPROVE, lasting)


@pytest.mark.parametrize("verdict", ["repeat", "skip", "fail"])
async def test_a_call_that_may_have_happened_is_repeated_skipped_or_failed(tmp_path: Any, verdict: str) -> None:
    async with office(tmp_path, AGENT, {"review": REVIEW}) as desk, desk.operator() as ida:
        run = await asked(desk, GateKind.INTERRUPTED)
        page = await ida.get(gate_path(run))
        assert page.buttons == ["repeat", "skip", "fail"]
        assert "The call is done once more. If it did happen, it happens twice." in page.text
        await ida.answer(verdict)
        assert (await gate_of(desk, run.run.id)).verdict == verdict


WRONG_FORMS = {
    "json": ("application/json", b"{}", 422),
    "upload": ("multipart/form-data; boundary=x", b"--x--", 422),
    "a field twice": ("application/x-www-form-urlencoded", b"verdict=approve&verdict=deny", 422),
    "no text": ("application/x-www-form-urlencoded", b"comment=%ff", 422),
    "too long": ("application/x-www-form-urlencoded", b"comment=" + b"x" * 300_000, 422),
    "too many fields": ("application/x-www-form-urlencoded", b"&".join(b"f%d=1" % n for n in range(30)), 422),
}


@pytest.mark.parametrize("name", WRONG_FORMS)
async def test_what_is_no_form_of_ours_is_refused(desk: Office, name: str) -> None:
    kind, content, status = WRONG_FORMS[name]
    run = await desk.kiln()
    async with desk.operator() as ida:
        answer = await ida.client.post(gate_path(run), content=content, headers={"content-type": kind})
    assert answer.status_code == status
    assert (await gate_of(desk, run.run.id)).open


@pytest.mark.parametrize("revision", ["", "x", "-1", "²", "9" * 5_000])
async def test_an_answer_to_no_revision_is_refused(desk: Office, revision: str) -> None:
    run = await desk.kiln()
    async with desk.operator() as ida:
        await ida.get(gate_path(run))
        assert (await ida.answer("approve", revision=revision)).status == 422
        assert (await gate_of(desk, run.run.id)).open
        await ida.get(gate_path(run))
        assert (await ida.answer("approve")).status == 200
    assert not (await gate_of(desk, run.run.id)).open


@pytest.mark.requirement("C83")
async def test_a_person_at_the_page_is_the_same_person_as_at_the_terminal(reviewed: Office) -> None:
    run = await reviewed.kiln()
    (gate,) = run.run.open_gates
    terminal = Surface(Principal(Source.CLI, "IDA ", PrincipalKind.HUMAN))
    await reviewed.app.runs.decide(gate.id, Verdict.APPROVE, terminal)
    async with reviewed.operator() as ida:
        await ida.get(gate_path(run))
        assert "1 of 2 for approve" in (await ida.answer("approve")).text
    assert len((await gate_of(reviewed, run.run.id)).votes) == 1
