"""The manual of approvals says what is so."""

import re
from typing import Any

import pytest
from carried import carried
from host import HOST
from repository import ROOT
from service import Shop
from webhost import WebHost

from procedo.config import KEYS
from procedo.core.notice import Occasion

pytestmark = pytest.mark.anyio

MANUAL = (ROOT / "docs" / "approvals.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", MANUAL, re.DOTALL)


def test_every_key_of_notices_and_every_moment_is_in_the_manual() -> None:
    keys = [key.name for key in KEYS if key.table.startswith("notices.") and key.name != "timeout"]
    assert [name for name in keys if name not in MANUAL] == []
    assert [occasion for occasion in Occasion if str(occasion) not in MANUAL] == []


@pytest.mark.parametrize("secret", ["correct horse", "whsec_AAECAwQFBgcICQ=="])
async def test_the_verification_in_the_manual_accepts_what_was_sent_and_nothing_else(
    shop: Shop, host: WebHost, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("HOOK", secret)
    shop.configure(
        '[sop.approval]\nrequest_route = "ops"\n[notices.ops]\ntype = "webhook"\n'
        f'url = "{host.url("/hook")}"\nsecret = {{ env = "HOOK" }}\n'
    )
    async with shop.opened() as app:
        await app.runs.start("kiln-firing", None, HOST)
        await carried(app, shop.clock)
    (code,) = blocks("python")
    space: dict[str, Any] = {}
    exec(compile(code, "approvals.md", "exec"), space)  # noqa: S102  # the manual's own code
    (seen,) = host.seen
    genuine, headers, body, now = space["genuine"], dict(seen.headers), seen.body.encode(), shop.clock.now().timestamp()
    assert genuine(secret, headers, body, now)
    assert not genuine("another", headers, body, now)
    assert not genuine(secret, headers, body + b" ", now)
    assert not genuine(secret, {**headers, "webhook-id": "x"}, body, now)
    assert not genuine(secret, headers, body, now + 301)
