"""When people are told, what they are told, and over which route."""

import json
import shlex
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from carried import carried, later
from host import HOST
from service import Shop, broken, finished, person
from webhost import WebHost

from procedo.app import App
from procedo.core.state import Status, Verdict
from procedo.errors import StoreError

pytestmark = pytest.mark.anyio


def config(host: WebHost, more: str = "", **keys: str) -> str:
    own = "".join(f"{name} = {value}\n" for name, value in keys.items())
    return f"""
[sop.approval]
request_route = "ops"

[sop.approval.groups.editors]
members = ["noor", "ida"]

[sop.approval.policies.editors]
required_group = "editors"
{more}

[notices.ops]
type = "webhook"
url = "{host.url("/hook")}"
{own}
"""


def told(host: WebHost, path: str = "/hook") -> list[dict[str, Any]]:
    return [json.loads(seen.body) for seen in host.seen if seen.path == path]


def events(host: WebHost, path: str = "/hook") -> Sequence[str]:
    return [one["event"] for one in told(host, path)]


async def at_review(app: App, body: str = "old") -> tuple[str, str]:
    """The run and the gate of a letter that waits to be judged."""
    snapshot = await finished(app, "letter", {"body": body})
    (gate,) = snapshot.run.open_gates
    return snapshot.run.id, gate.id


@pytest.mark.requirement("C8")
async def test_one_notice_leaves_when_the_gate_is_stored_and_says_how_to_answer(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host))
    stored: list[int] = []
    answer = host.routes["/hook"]

    def look_then_answer(handler: Any) -> None:
        with closing(sqlite3.connect(shop.file)) as connection:
            stored.append(connection.execute("SELECT count(*) FROM gates WHERE open = 1").fetchone()[0])
        answer(handler)

    host.routes["/hook"] = look_then_answer
    async with shop.opened() as app:
        parked = await app.runs.start("kiln-firing", {"batch": 7}, HOST)
        assert host.seen == []
        assert await carried(app, shop.clock) == []
        (gate,) = parked.run.open_gates
        (notice,) = told(host)
    assert stored == [1]
    command = f"procedo approve {gate.code} --workspace {shlex.quote(str(shop.root))}"
    assert notice == {
        "id": f"{parked.run.id}:3:ops",
        "event": "opened",
        "at": "2026-03-02T09:00:00Z",
        "run": {
            "id": parked.run.id,
            "sop": "kiln-firing",
            "version": "0.1.0",
            "started_by": "agent (agent, host)",
        },
        "step": {"number": 1, "title": "Load kiln"},
        "gate": {
            "id": gate.id,
            "code": gate.code,
            "kind": "approval",
            "revision": 1,
            "since": "2026-03-02T09:00:00Z",
        },
        "asks": "May the kiln be loaded?",
        "may_decide": "a person (not the run's executor)",
        "answers": ["approve", "deny"],
        "decide": {"command": command},
        "text": "\n".join(
            [
                "kiln-firing: a decision is needed",
                "May the kiln be loaded?",
                f'Step 1 "Load kiln", gate {gate.code}, run {parked.run.id}.',
                "May decide: a person (not the run's executor).",
                f"Decide in a terminal of yours: {command}",
            ]
        ),
    }


@pytest.mark.requirement("C8")
async def test_a_notice_that_is_out_is_not_sent_again_by_a_restart(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host))
    async with shop.opened() as app:
        await app.runs.start("kiln-firing", None, HOST)
    for _ in range(3):
        async with shop.opened() as app:
            await later(app, shop.clock, 60)
    assert events(host) == ["opened"]


@pytest.mark.requirement("C109")
@pytest.mark.parametrize("table", ["transitions", "gates", "jobs"])
async def test_a_gate_that_could_not_be_stored_is_told_to_nobody_until_it_is(
    shop: Shop, host: WebHost, table: str
) -> None:
    shop.configure(config(host))
    async with shop.opened() as app:
        run_id = (await app.runs.start("letter", None, HOST)).run.id
        with broken(shop, table), pytest.raises(StoreError):
            await app.runs.advance(run_id, "1.1", "completed", {"body": "old"}, HOST)
        await later(app, shop.clock, 60)
        assert host.seen == []
        await app.runs.advance(run_id, "1.1", "completed", {"body": "old"}, HOST)
        await carried(app, shop.clock)
    assert events(host) == ["opened"]


async def test_a_decision_is_told_with_who_and_why(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host))
    async with shop.opened() as app:
        parked = await app.runs.start("kiln-firing", None, HOST)
        await carried(app, shop.clock)
        (gate,) = parked.run.open_gates
        await app.runs.decide(gate.id, Verdict.DENY, person("ida"), comment="thermocouple broken")
        await carried(app, shop.clock)
        await app.runs.decide(gate.id, Verdict.DENY, person("ida"), comment="thermocouple broken")
        await later(app, shop.clock, 60)
    assert events(host) == ["opened", "resolved"]
    resolved = told(host)[1]
    assert resolved["outcome"] == {"verdict": "deny", "by": "ida (human, cli)", "comment": "thermocouple broken"}
    assert resolved["text"].endswith("Answered: deny by ida (human, cli) (thermocouple broken).")
    assert {"decide", "answers", "may_decide"} & set(resolved) == set()


async def test_a_gate_whose_run_is_cancelled_is_told_as_void(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host))
    async with shop.opened() as app:
        parked = await app.runs.start("kiln-firing", None, HOST)
        await carried(app, shop.clock)
        await app.runs.cancel(parked.run.id, "enough", person("ida"))
        await carried(app, shop.clock)
    assert [(one["event"], one.get("outcome")) for one in told(host)] == [
        ("opened", None),
        ("resolved", {"withdrawn": "the run is cancelled"}),
    ]


async def test_a_notice_that_was_overtaken_is_left_out(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host))
    async with shop.opened() as app:
        parked = await app.runs.start("kiln-firing", None, HOST)
        (gate,) = parked.run.open_gates
        await app.runs.decide(gate.id, Verdict.APPROVE, person("ida"))
        await carried(app, shop.clock)
    assert events(host) == ["resolved"]


async def test_a_new_draft_is_told_with_its_revision(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host, content="true"))
    async with shop.opened() as app:
        run_id, gate_id = await at_review(app)
        await carried(app, shop.clock)
        await app.runs.decide(gate_id, Verdict.REVISE, person("ida"), comment="shorter")
        await carried(app, shop.clock)
        await app.runs.advance(run_id, "1.2", "completed", {"body": "new"}, HOST)
        await carried(app, shop.clock)
    assert [(one["event"], one["gate"]["revision"], one["content"]) for one in told(host)] == [
        ("opened", 1, {"body": "old"}),
        ("presented", 2, {"body": "new"}),
    ]


async def test_an_old_draft_that_can_be_answered_again_is_told(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host))
    async with shop.opened() as app:
        run_id, gate_id = await at_review(app)
        await carried(app, shop.clock)
        await app.runs.decide(gate_id, Verdict.REVISE, person("ida"), comment="shorter")
        await app.runs.advance(run_id, "1.2", "failed", "no ink", HOST)
        await carried(app, shop.clock)
    assert [(one["event"], one["gate"]["revision"]) for one in told(host)] == [("opened", 1), ("presented", 1)]


ESCALATING = """timeout = "1h"
on_timeout = "escalate"
max_reminders = 1
escalation_route = "boss"
"""


async def test_who_is_called_in_is_told_and_hears_the_end_too(shop: Shop, host: WebHost) -> None:
    boss = f'[notices.boss]\ntype = "webhook"\nurl = "{host.url("/boss")}"\n'
    shop.configure(config(host, ESCALATING) + boss)
    async with shop.opened() as app:
        _, gate_id = await at_review(app)
        await carried(app, shop.clock)
        assert told(host)[0]["gate"]["due_at"] == "2026-03-02T10:00:00Z"
        await later(app, shop.clock, 3600)
        assert (events(host), events(host, "/boss")) == (["opened"], ["escalated"])
        await later(app, shop.clock, 3600)
        assert (events(host), events(host, "/boss")) == (["opened", "resolved"], ["escalated", "resolved"])
        outcome = told(host, "/boss")[1]["outcome"]
        assert outcome == {
            "verdict": "deny",
            "by": "clock (system, system)",
            "expired": True,
            "comment": "nobody answered within 3600 s",
        }
        assert (await app.runs.gate(gate_id))[0].gate.expired


async def test_a_reminder_goes_to_those_who_were_asked(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host, ESCALATING.replace('"escalate"', '"remind"').replace('escalation_route = "boss"', "")))
    async with shop.opened() as app:
        await at_review(app)
        await carried(app, shop.clock)
        await later(app, shop.clock, 3600)
    assert events(host) == ["opened", "reminded"]


async def test_only_the_moments_that_a_route_is_for_are_told(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host, events='["resolved"]'))
    async with shop.opened() as app:
        parked = await app.runs.start("kiln-firing", None, HOST)
        await carried(app, shop.clock)
        await app.runs.cancel(parked.run.id, "enough", person("ida"))
        await carried(app, shop.clock)
    assert events(host) == ["resolved"]


async def test_without_any_route_nothing_is_kept_to_be_told(shop: Shop) -> None:
    async with shop.opened() as app:
        await app.runs.start("kiln-firing", None, HOST)
    with closing(sqlite3.connect(shop.file)) as connection:
        assert connection.execute("SELECT count(*) FROM jobs WHERE kind = 'notice'").fetchone() == (0,)


async def test_what_is_decided_on_is_told_only_where_it_may_be_and_without_secrets(shop: Shop, host: WebHost) -> None:
    inputs = {"token": "sk-ours-123456", "note": "password=hunter22", "id": 4}
    shop.configure(config(host, more=""))
    async with shop.opened() as app:
        await app.runs.start("kiln-firing", inputs, HOST)
        await carried(app, shop.clock)
    assert "content" not in told(host)[0]
    shop.configure(config(host, content="true"))
    async with shop.opened() as app:
        await app.runs.cancel((await app.runs.inbox(HOST))[0].run_id, "again", person("ida"))
        await app.runs.start("kiln-firing", inputs, HOST)
        await carried(app, shop.clock)
    assert told(host)[-1]["content"] == {"token": "[masked]", "note": "password=[masked]", "id": 4}
    assert "hunter22" not in host.seen[-1].body
    assert "sk-ours" not in host.seen[-1].body


async def test_foreign_text_is_cleaned_and_bounded(shop: Shop, host: WebHost) -> None:
    shop.sop("kiln-firing", "1. **Load** — Load.\n   - requires_confirmation: true\n   - prompt: {{inputs.q}}?")
    shop.configure(config(host, content="true"))
    async with shop.opened() as app:
        await app.runs.start("kiln-firing", {"q": "a\x1b[2J\u202e\nb" + "x" * 5_000}, HOST)
        await carried(app, shop.clock)
    (notice,) = told(host)
    assert notice["asks"].startswith("a bxxx")
    assert len(notice["asks"]) == 1_000
    assert notice["content"]["cut"] is True


async def test_a_notice_links_to_the_inbox_page_when_one_is_known(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host) + '[http]\npublic_url = "https://ops.example.org"\n')
    async with shop.opened() as app:
        app.inbox.served_at("http://127.0.0.1:9999")
        parked = await app.runs.start("kiln-firing", None, HOST)
        await carried(app, shop.clock)
    (gate,) = parked.run.open_gates
    (notice,) = told(host)
    link = f"https://ops.example.org/inbox/gates/{gate.id}"
    assert notice["decide"]["link"] == link
    assert f"Decide at {link} or in a terminal of yours: procedo approve" in notice["text"]
    shop.configure(config(host))
    async with shop.opened() as app:
        app.inbox.served_at("http://127.0.0.1:9999")
        assert app.inbox.of_gate("run-1.g1") == "http://127.0.0.1:9999/inbox/gates/run-1.g1"


async def test_a_worker_delivers_without_being_asked(shop: Shop, host: WebHost) -> None:
    shop.configure(config(host))
    async with shop.opened(worker=True) as app:
        await app.runs.start("kiln-firing", None, HOST)
        import anyio

        with anyio.fail_after(240):
            while not await app.store.read(
                lambda reader: [t for g in reader.open_gates() for t in reader.tellings(g.run_id)]
            ):
                await app.store.changed(5)
    assert events(host) == ["opened"]


async def test_people_are_told_once_about_the_gate_of_a_run_that_was_adopted(
    shop: Shop, host: WebHost, tmp_path: Path
) -> None:
    shop.configure(config(host))
    async with shop.opened() as app:
        await at_review(app)
        (path,) = (tmp_path / ".procedo" / "state").iterdir()
        content = json.loads(path.read_text())
    (tmp_path / "other").mkdir()
    other = Shop(tmp_path / "other")
    other.configure(config(host))
    async with other.opened() as app:
        adopted = await app.runs.adopt(content, HOST)
        await carried(app, other.clock)
        await app.runs.adopt(content, HOST)
        await carried(app, other.clock)
    (gate,) = adopted.run.open_gates
    assert [(one["event"], one["gate"]["code"]) for one in told(host)] == [("opened", gate.code)]


async def test_the_time_of_an_adopted_gate_runs_out_here(shop: Shop, host: WebHost, tmp_path: Path) -> None:
    limit = 'timeout = "60s"\non_timeout = "deny"'
    shop.configure(config(host, limit))
    async with shop.opened() as app:
        await at_review(app)
        (path,) = (tmp_path / ".procedo" / "state").iterdir()
        content = json.loads(path.read_text())
    (tmp_path / "other").mkdir()
    other = Shop(tmp_path / "other")
    other.configure(config(host, limit))
    async with other.opened() as app:
        run_id = (await app.runs.adopt(content, HOST)).run.id
        await later(app, other.clock, 120)
        assert (await app.runs.look(run_id)).run.status is Status.CANCELLED
