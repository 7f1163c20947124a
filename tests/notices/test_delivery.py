"""How notices get through, and what is seen when they do not."""

import base64
import hashlib
import hmac
import importlib.util
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from carried import carried, later
from host import HOST
from repository import ROOT
from service import Shop, person
from webhost import WebHost

from procedo.app import App
from procedo.config import load
from procedo.core.notice import Occasion
from procedo.core.state import Verdict
from procedo.notices.delivery import Delivery
from procedo.notices.means import Means
from procedo.outbox import MOST_ATTEMPTS
from procedo.ports import Notice, Undelivered
from procedo.stores.embedded import delay_s
from procedo.surfaces.overview import inbox_view

pytestmark = pytest.mark.anyio


def route(kind: str, **keys: str) -> str:
    lines = "".join(f"{name} = {value}\n" for name, value in keys.items())
    return f'[sop.approval]\nrequest_route = "ops"\n\n[notices.ops]\ntype = "{kind}"\n{lines}'


def webhook(host: WebHost, path: str = "/hook", **keys: str) -> str:
    return route("webhook", url=f'"{host.url(path)}"', **keys)


async def parked(app: App) -> str:
    snapshot = await app.runs.start("kiln-firing", None, HOST)
    return snapshot.run.open_gates[0].id


async def shown(app: App, gate_id: str) -> list[str]:
    """What the inbox says of notices that failed."""
    looked = await app.runs.gate(gate_id)
    (entry,) = inbox_view([looked])["gates"]
    return entry.get("notices_failed", [])


# --- webhooks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("secret", "key"),
    [("correct horse", b"correct horse"), ("whsec_" + base64.b64encode(b"\x00\x01key").decode(), b"\x00\x01key")],
)
async def test_a_webhook_is_signed_over_id_time_and_body(
    shop: Shop, host: WebHost, monkeypatch: pytest.MonkeyPatch, secret: str, key: bytes
) -> None:
    monkeypatch.setenv("HOOK_SECRET", secret)
    shop.configure(webhook(host, **{"secret": '{ env = "HOOK_SECRET" }'}))
    async with shop.opened() as app:
        await parked(app)
        assert await carried(app, shop.clock) == []
    (seen,) = host.seen
    headers = seen.headers
    assert (seen.method, headers["content-type"]) == ("POST", "application/json")
    assert headers["webhook-timestamp"] == str(int(shop.clock.now().timestamp()))
    assert headers["webhook-id"] == json.loads(seen.body)["id"]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{seen.body}".encode()
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert secret not in seen.body + str(headers)


async def test_without_a_secret_there_is_no_signature(shop: Shop, host: WebHost) -> None:
    shop.configure(webhook(host))
    async with shop.opened() as app:
        await parked(app)
        await carried(app, shop.clock)
    assert "webhook-signature" not in host.seen[0].headers


@pytest.mark.requirement("C88")
async def test_a_failed_notice_is_seen_tried_again_and_keeps_its_id_while_the_gate_waits(
    shop: Shop, host: WebHost
) -> None:
    host.answers("/hook", 500, b"out of ink")
    shop.configure(webhook(host))
    async with shop.opened() as app:
        gate_id = await parked(app)
        (error,) = await carried(app, shop.clock)
        place = f"http://127.0.0.1:{host.port}"
        why = f"POST {place} answered 500 Internal Server Error: out of ink."
        assert error == f"Notice 'ops' of gate {gate_id} failed: {why}."
        assert await shown(app, gate_id) == [f"notice 'ops' failed: {why} (1 attempt, tried again)"]
        await later(app, shop.clock, delay_s(1))
        assert await shown(app, gate_id) == [f"notice 'ops' failed: {why} (2 attempts, tried again)"]
        host.answers("/hook", 204)
        assert await later(app, shop.clock, delay_s(2)) == []
        assert await shown(app, gate_id) == []
        assert (await app.runs.gate(gate_id))[0].gate.open
        await later(app, shop.clock, 3600)
    assert len({seen.headers["webhook-id"] for seen in host.seen}) == 1
    assert [seen.headers["webhook-timestamp"] for seen in host.seen] == ["1772442000", "1772442000", "1772442001"]


@pytest.mark.requirement("C88")
async def test_a_gate_is_decided_while_its_notice_cannot_be_delivered(shop: Shop, host: WebHost) -> None:
    host.hangs_up("/hook")
    shop.configure(webhook(host))
    async with shop.opened() as app:
        gate_id = await parked(app)
        assert len(await carried(app, shop.clock)) == 1
        after = await app.runs.decide(gate_id, Verdict.APPROVE, person("ida"))
        assert [execution.id for execution in after.run.open_executions] == ["1.1"]


async def test_a_notice_is_given_up_in_the_end_and_that_stays_visible(shop: Shop, host: WebHost) -> None:
    host.answers("/hook", 503)
    shop.configure(webhook(host))
    async with shop.opened() as app:
        gate_id = await parked(app)
        errors = len(await carried(app, shop.clock))
        for _ in range(MOST_ATTEMPTS):
            errors += len(await later(app, shop.clock, 300))
        assert (errors, len(host.seen)) == (MOST_ATTEMPTS - 1, MOST_ATTEMPTS)
        (told,) = await shown(app, gate_id)
        assert told.endswith(f"({MOST_ATTEMPTS} attempts, given up)")
        (telling,) = await app.store.read(lambda reader: reader.tellings())
        assert (telling.given_up, telling.occasion) == (True, Occasion.OPENED)


async def test_what_protects_an_address_is_not_told_when_it_fails(
    shop: Shop, host: WebHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.answers("/services/T0/hush", 404)
    monkeypatch.setenv("HOOK_URL", host.url("/services/T0/hush") + "?key=hush2")
    shop.configure(route("webhook", url='{ env = "HOOK_URL" }'))
    async with shop.opened() as app:
        gate_id = await parked(app)
        (error,) = await carried(app, shop.clock)
        told = await shown(app, gate_id)
    assert host.seen[0].path == "/services/T0/hush?key=hush2"
    assert f"http://127.0.0.1:{host.port} answered 404" in error
    assert "hush" not in error + str(told)


async def test_a_host_that_does_not_answer_is_left_at_the_time_limit(shop: Shop, host: WebHost) -> None:
    host.hangs("/hook")
    shop.configure(webhook(host, timeout='"50ms"'))
    async with shop.opened() as app:
        await parked(app)
        (error,) = await carried(app, shop.clock)
    assert "within 0.05 s" in error


async def test_a_redirect_does_not_lead_a_notice_to_another_host(shop: Shop, host: WebHost) -> None:
    host.redirects("/hook", 307, f"http://localhost:{host.port}/elsewhere")
    host.answers("/elsewhere", 204)
    shop.configure(webhook(host))
    async with shop.opened() as app:
        await parked(app)
        (error,) = await carried(app, shop.clock)
    assert "not allowed" in error
    assert [seen.path for seen in host.seen] == ["/hook"]


# --- commands ------------------------------------------------------------------------------------

WRITE = """import json, os, sys
told = json.load(sys.stdin)
kept = {"code": told["gate"]["code"], "event": told["event"], "argv": sys.argv[1:]}
kept["env"] = {name: os.environ[name] for name in os.environ if name in ("GIVEN", "HELD_BACK", "PATH")}
json.dump(kept, open("told.json", "w"))
"""


def program(shop: Shop, text: str = WRITE, *words: str, **keys: str) -> str:
    (shop.root / "tell.py").write_text(text, encoding="utf-8")
    argv = json.dumps([sys.executable, "tell.py", *words])
    return route("command", argv=argv, **keys)


async def test_a_command_gets_the_notice_as_json_and_only_the_variables_that_are_named(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "yes")
    monkeypatch.setenv("HELD_BACK", "no")
    shop.configure(program(shop, WRITE, "a b", "$GIVEN; true", env='["GIVEN", "NOT_SET"]'))
    async with shop.opened() as app:
        gate_id = await parked(app)
        assert await carried(app, shop.clock) == []
        code = (await app.runs.gate(gate_id))[0].gate.code
    assert json.loads((shop.root / "told.json").read_text(encoding="utf-8")) == {
        "code": code,
        "event": "opened",
        "argv": ["a b", "$GIVEN; true"],
        "env": {"GIVEN": "yes"},
    }


@pytest.mark.parametrize(
    ("text", "keys", "why"),
    [
        ("import sys; sys.exit('no paper, token=abcdef123')", {}, "exit code 1: no paper, token=[masked]"),
        ("import signal; signal.pause()", {"timeout": '"200ms"'}, "did not end within 0.2 s"),
    ],
)
async def test_a_command_that_fails_or_does_not_end_is_a_failed_notice(
    shop: Shop, text: str, keys: dict[str, str], why: str
) -> None:
    shop.configure(program(shop, text, **keys))
    async with shop.opened() as app:
        gate_id = await parked(app)
        assert len(await carried(app, shop.clock)) == 1
        (told,) = await shown(app, gate_id)
    assert why in told


# --- services ------------------------------------------------------------------------------------


# One of its many plug-ins looks for a module that Python is about to drop.
QUIET = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


@QUIET
async def test_other_services_are_reached_through_apprise(shop: Shop, host: WebHost) -> None:
    host.answers("/notify", 200)
    shop.configure(route("apprise", url=f'"json://127.0.0.1:{host.port}/notify"'))
    async with shop.opened() as app:
        await parked(app)
        assert await carried(app, shop.clock) == []
    body = json.loads(host.seen[0].body)
    assert body["title"] == "kiln-firing: a decision is needed"
    assert body["message"].startswith("kiln-firing: a decision is needed\nMay the kiln be loaded?")


@QUIET
@pytest.mark.parametrize(
    ("url", "why"),
    [("nothing-like-it://x", "its url is none that Apprise knows"), ("json://127.0.0.1:{port}/no", "did not take it")],
)
async def test_a_service_that_does_not_take_it_is_a_failed_notice(
    shop: Shop, host: WebHost, url: str, why: str
) -> None:
    host.answers("/no", 500)
    shop.configure(route("apprise", url=f'"{url.format(port=host.port)}"'))
    async with shop.opened() as app:
        await parked(app)
        (error,) = await carried(app, shop.clock)
    assert why in error


# --- as things stand -----------------------------------------------------------------------------


def objections(root: Path, **environ: str) -> dict[str, str]:
    settings = load(root)
    means = Means(environ, settings.root, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    return dict(Delivery(settings.notices, means).objections())


@pytest.mark.requirement("C88")
@pytest.mark.parametrize(
    ("keys", "environ", "why"),
    [
        (("webhook", 'url = { env = "HOOK" }'), {}, "there is no value behind env:HOOK"),
        (("webhook", 'url = { env = "HOOK" }'), {"HOOK": "http://ops.example"}, "no address with https"),
        (("webhook", 'url = { env = "HOOK" }'), {"HOOK": "https://ops.example"}, None),
        (("webhook", 'url = "https://a.example"\nsecret = { env = "KEY" }'), {}, "no value behind env:KEY"),
        (("webhook", 'url = "https://a.example"\nsecret = { env = "KEY" }'), {"KEY": "whsec_%"}, "no base64"),
        (("command", 'argv = ["no-such-program"]'), {"PATH": "/usr/bin"}, "there is no program 'no-such-program'"),
        (("command", 'argv = ["sh"]'), {"PATH": "/usr/bin:/bin"}, None),
        (("apprise", 'url = { env = "PLACE" }'), {}, "no value behind env:PLACE"),
        (("apprise", 'url = "json://localhost"'), {}, None),
    ],
)
def test_what_cannot_be_delivered_is_known_before_there_is_anything_to_deliver(
    tmp_path: Path, keys: tuple[str, str], environ: dict[str, str], why: str | None
) -> None:
    (tmp_path / "procedo.toml").write_text(f'[notices.ops]\ntype = "{keys[0]}"\n{keys[1]}\n', encoding="utf-8")
    found = objections(tmp_path, **environ)
    assert list(found) == ([] if why is None else ["ops"])
    assert why is None or why in found["ops"]


def test_the_package_that_a_service_needs_is_named_when_it_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "apprise" else found(name))
    text = '[notices.ops]\ntype = "apprise"\nurl = "json://localhost"\n'
    (tmp_path / "procedo.toml").write_text(text, encoding="utf-8")
    assert objections(tmp_path) == {"ops": "the package 'apprise' is not installed: install procedo[notify]"}


def test_apprise_is_not_imported_before_something_is_sent() -> None:
    code = "import sys, procedo.app, procedo.notices.delivery; print('apprise' in sys.modules)"
    environ = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout == "False\n"


async def test_a_route_that_was_removed_is_a_failed_notice(shop: Shop, host: WebHost) -> None:
    shop.configure(webhook(host))
    async with shop.opened() as app:
        gate_id = await parked(app)
    shop.configure("")
    async with shop.opened() as app:
        (error,) = await carried(app, shop.clock)
    assert error == f"Notice 'ops' of gate {gate_id} failed: procedo.toml has no notice 'ops' any more."


async def test_a_notifier_raises_and_never_reports_success_by_silence(tmp_path: Path) -> None:
    (tmp_path / "procedo.toml").write_text("", encoding="utf-8")
    settings = load(tmp_path)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    delivery = Delivery(settings.notices, Means({}, settings.root, lambda: now))
    with pytest.raises(Undelivered):
        await delivery.deliver(Notice("1", "ops", now, "t", "x", {}))
