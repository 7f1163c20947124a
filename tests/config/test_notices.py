from pathlib import Path

import pytest

from procedo.config import Settings, load
from procedo.config.notices import NO_NOTICES, NoticeRoute
from procedo.core.notice import Occasion
from procedo.credentials import SecretRef, SecretSource
from procedo.errors import InvalidConfig

EVERYTHING = """\
[sop.approval]
request_route = "ops"
escalation_route = "boss"

[sop.approval.groups.editors]
members = ["noor"]
request_route = "desk"

[sop.approval.policies.letters]
required_group = "editors"

[sop.approval.policies.deploys]
required_group = "editors"
request_route = "ops"
escalation_route = "phone"

[notices.ops]
type = "webhook"
url = "https://ops.example/hooks/procedo"
secret = { env = "HOOK_SECRET" }
timeout = "5s"
events = ["opened", "escalated"]
content = true

[notices.desk]
type = "command"
argv = ["notify-send", "procedo"]
env = ["DISPLAY"]

[notices.boss]
type = "webhook"
url = { file = "secrets/boss" }

[notices.phone]
type = "apprise"
url = { env = "PHONE" }
"""


def loaded(folder: Path, text: str) -> Settings:
    (folder / "procedo.toml").write_text(text, encoding="utf-8")
    return load(folder)


def test_every_key_reaches_its_route(tmp_path: Path) -> None:
    notices = loaded(tmp_path, EVERYTHING).notices
    assert dict(notices.routes) == {
        "ops": NoticeRoute(
            "ops",
            "webhook",
            "https://ops.example/hooks/procedo",
            SecretRef(SecretSource.ENV, "HOOK_SECRET"),
            timeout_s=5.0,
            content=True,
        ),
        "desk": NoticeRoute("desk", "command", argv=("notify-send", "procedo"), env=frozenset({"DISPLAY"})),
        "boss": NoticeRoute("boss", "webhook", SecretRef(SecretSource.FILE, "secrets/boss")),
        "phone": NoticeRoute("phone", "apprise", SecretRef(SecretSource.ENV, "PHONE")),
    }
    everything = frozenset(Occasion)
    assert dict(notices.routing.events) == {
        "ops": frozenset({Occasion.OPENED, Occasion.ESCALATED}),
        "desk": everything,
        "boss": everything,
        "phone": everything,
    }
    assert (notices.routing.request, notices.routing.escalation) == ("ops", "boss")


def test_a_policy_has_its_own_route_else_that_of_its_group(tmp_path: Path) -> None:
    policies = loaded(tmp_path, EVERYTHING).policies
    assert {name: (p.request_route, p.escalation_route) for name, p in policies.items()} == {
        "human": (None, None),
        "letters": ("desk", None),
        "deploys": ("ops", "phone"),
    }


def test_without_tables_there_are_no_notices(tmp_path: Path) -> None:
    assert loaded(tmp_path, "").notices == NO_NOTICES


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('url = "https://a.example"', "error[missing-key]: [notices.n] lacks 'type'"),
        ('type = "mail"', "expected one of webhook, command, apprise"),
        ('type = "webhook"', "error[missing-key]: notice 'n' is a webhook and has no url"),
        ('type = "command"', "error[missing-key]: notice 'n' is a command and has no argv"),
        ('type = "apprise"', "error[missing-key]: notice 'n' is a apprise and has no url"),
        ('type = "webhook"\nurl = "http://a.example/x"', "procedo.toml:3: error[insecure-url]"),
        ('type = "webhook"\nurl = "ftp://a.example"', "error[bad-value]: url of notice 'n' is no web address"),
        ('type = "webhook"\nurl = "https://me:pw@a.example"', "is no web address (write it as https://host/path"),
        ('type = "webhook"\nurl = "https://a.example"\nargv = ["sh"]', "error[idle-key]: argv of notice 'n'"),
        ('type = "command"\nargv = ["sh"]\nsecret = { env = "K" }', "error[idle-key]: secret of notice 'n'"),
        ('type = "webhook"\nurl = "https://a.example"\nsecret = "s3cret"', "a secret itself is never written here"),
        ('type = "command"\nargv = []', "expected a program with its arguments"),
        ('type = "command"\nargv = ["sh -c"]', "expected the program alone, without arguments"),
        ('type = "command"\nargv = ["curl", "token=abcdefgh"]', "expected no secret"),
        ('type = "command"\nargv = ["sh"]\nevents = ["open"]', "did you mean 'opened'?"),
        ('type = "command"\nargv = ["sh"]\nevent = ["opened"]', "did you mean 'events'?"),
    ],
)
def test_a_notice_that_cannot_work_is_a_problem_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        loaded(tmp_path, f"[notices.n]\n{text}\n")
    (problem,) = caught.value.problems
    assert told in problem
    assert "s3cret" not in problem


@pytest.mark.parametrize(
    "table",
    [
        '[sop.approval]\nrequest_route = "opps"',
        '[sop.approval]\nescalation_route = "opps"',
        '[sop.approval.groups.g]\nmembers = ["ida"]\nrequest_route = "opps"',
        '[sop.approval.policies.p]\nrequest_route = "opps"',
        '[sop.approval.policies.p]\nescalation_route = "opps"',
    ],
)
def test_a_route_that_does_not_exist_is_a_problem(tmp_path: Path, table: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        loaded(tmp_path, f'{table}\n[notices.ops]\ntype = "command"\nargv = ["sh"]\n')
    (problem,) = caught.value.problems
    assert "error[unknown-notice]" in problem
    assert "'opps', which does not exist (did you mean 'ops'?)" in problem
