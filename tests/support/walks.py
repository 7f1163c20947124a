"""Every way through every example procedure: what is put in, what is reported and decided, and where it leads.

Reports and decisions are listed per step in the order in which they are given. `path` are the executions
in the order in which they were opened; a `for_each` ends with one that gathers its items.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from procedo.core.state import Status, Verdict


@dataclass(frozen=True)
class Failed:
    reason: str


@dataclass(frozen=True)
class Late:
    """No report comes before the deadline."""


@dataclass(frozen=True)
class Decision:
    verdict: Verdict
    comment: str = ""
    value: Any = None


YES: Final = Decision(Verdict.APPROVE)


def no(comment: str) -> Decision:
    return Decision(Verdict.DENY, comment)


@dataclass(frozen=True)
class Walk:
    """`child` tells how a sub-procedure goes; `reason` is part of the failure's or cancellation's reason."""

    says: str
    inputs: Any
    reports: dict[int, list[Any]]
    path: str
    decisions: dict[int, list[Decision]] = field(default_factory=dict)
    ends: Status = Status.COMPLETED
    reason: str = ""
    output: Any = None
    child: "Walk | None" = None


def deploy() -> list[Walk]:
    inputs = {"service": "billing", "version": "4.2.0", "change": "CHG-77"}
    ready = {"ready": True, "running_version": "4.1.3", "note": ""}
    green = {"passed": 41, "failed": 0, "link": "tests/912"}
    well = {"healthy": True, "error_rate": 0.1, "usual_error_rate": 0.1}
    begin: dict[int, list[Any]] = {1: [ready], 2: [{"instances": 2}], 3: [green]}
    return [
        Walk(
            "deployed after a retry on staging",
            inputs,
            {
                **begin,
                2: [Failed("image not found"), {"instances": 2}],
                4: [{"instances": 6}],
                5: [well],
                7: ["deployed"],
            },
            "1.1 2.1 2.2 3.1 4.1 5.1 7.1",
            {4: [YES]},
            output="deployed",
        ),
        Walk(
            "not ready",
            inputs,
            {1: [{**ready, "ready": False, "note": "freeze"}], 7: ["not deployed: freeze"]},
            "1.1 7.1",
            output="not deployed: freeze",
        ),
        Walk(
            "staging does not come up",
            inputs,
            {1: [ready], 2: [Failed("no capacity"), Failed("still no capacity")]},
            "1.1 2.1 2.2",
            ends=Status.FAILED,
            reason="still no capacity",
        ),
        Walk(
            "red tests",
            inputs,
            {**begin, 3: [{**green, "failed": 2}], 7: ["not deployed: two tests failed"]},
            "1.1 2.1 3.1 7.1",
            output="not deployed: two tests failed",
        ),
        Walk(
            "denied",
            inputs,
            {**begin, 7: ["not deployed: after the holidays"]},
            "1.1 2.1 3.1 7.1",
            {4: [no("after the holidays")]},
            output="not deployed: after the holidays",
        ),
        Walk(
            "an instance does not come up, and the way back takes long",
            inputs,
            {**begin, 4: [Failed("instance 3 is down")], 6: [Late(), "back on 4.1.3"], 7: ["rolled back"]},
            "1.1 2.1 3.1 4.1 6.1 7.1",
            {4: [YES], 6: [YES]},
            output="rolled back",
        ),
        Walk(
            "slow and sick",
            inputs,
            {
                **begin,
                4: [Late(), {"instances": 6}],
                5: [{**well, "healthy": False, "error_rate": 7.5}],
                6: ["back on 4.1.3"],
                7: ["rolled back"],
            },
            "1.1 2.1 3.1 4.1 5.1 6.1 7.1",
            {4: [YES, YES]},
            output="rolled back",
        ),
    ]


def incident() -> list[Walk]:
    inputs = {"summary": "Checkout answers 502", "service": "checkout"}
    major = {"severity": "major", "impact": "Orders cannot be paid.", "suspected_cause": "deployment of 14:02"}
    plan = {"plan": "roll back"}
    act = {"action": "rolled back", "undo": "deploy again"}
    over = {"recovered": True, "evidence": "0.1 % errors"}
    return [
        Walk(
            "a major incident in two rounds, the first message sent back",
            inputs,
            {
                1: [major],
                2: [{"channel": "#inc-12"}],
                3: [plan, {"plan": "fail over"}],
                4: [
                    {"message": "It is the database!"},
                    {"message": "Orders cannot be paid."},
                    {"message": "Still so."},
                ],
                5: [{"time": "14:20"}, {"time": "14:50"}],
                6: [act, {"action": "failed over", "undo": "fail back"}],
                7: [{"recovered": False, "evidence": "12 % errors"}, over],
                9: ["docs/incident-12"],
            },
            "1.1 2.1 3.1 4.1 6.1 4.2 5.1 7.1 3.2 4.3 6.2 5.2 7.2 9.1",
            {5: [no("no guesses"), YES, YES]},
            output="docs/incident-12",
        ),
        Walk(
            "a limited one",
            inputs,
            {1: [{**major, "severity": "limited"}], 8: ["taken by payments"], 9: ["docs/incident-13"]},
            "1.1 8.1 9.1",
            output="docs/incident-13",
        ),
        Walk(
            "a false alarm",
            inputs,
            {1: [{**major, "severity": "none"}], 10: ["the probe was wrong"]},
            "1.1 10.1",
            output="the probe was wrong",
        ),
    ]


def complaint() -> list[Walk]:
    inputs = {"case": "C-1207", "customer": "Ms. Okafor", "message": "The kettle arrived broken, again."}
    facts = {"topic": "product", "facts": ["Order 88 was delivered on Monday.", "It is the second broken kettle."]}
    draft = {"subject": "Your kettle", "body": "We are sorry for the kettle. A new one left us today."}
    begin: dict[int, list[Any]] = {1: [facts], 2: [draft]}
    return [
        Walk("sent as drafted", inputs, {**begin, 4: ["10:12"]}, "1.1 2.1 3.1 4.1", {3: [YES]}, output="10:12"),
        Walk(
            "sent as amended",
            inputs,
            {**begin, 4: ["10:15"]},
            "1.1 2.1 3.1 4.1",
            {3: [Decision(Verdict.AMEND, value="We are sorry. A new kettle arrives on Friday.")]},
            output="10:15",
        ),
        Walk(
            "a letter is no answer",
            inputs,
            {**begin, 5: ["the desk took it"]},
            "1.1 2.1 5.1",
            {3: [no("call her")]},
            output="the desk took it",
        ),
        Walk(
            "a lawyer writes",
            inputs,
            {1: [{**facts, "topic": "legal"}], 5: ["the desk took it"]},
            "1.1 5.1",
            output="the desk took it",
        ),
    ]


def release() -> list[Walk]:
    inputs = {"name": "kettle", "version": "2.0.0", "channel": "stable", "changes": "- whistles"}
    same = {"artifact": "kettle-2.0.0.tar", "first": "a" * 64, "second": "a" * 64}
    published = {"url": "downloads/kettle-2.0.0"}
    return [
        Walk(
            "published for everybody at the second attempt",
            inputs,
            {3: [Failed("disk full"), same], 5: [published]},
            "1.1 2.1 3.1 3.2 4.1 5.1 6.1",
            {5: [YES]},
            output={"waited_ms": 600_000},
        ),
        Walk(
            "a preview",
            {**inputs, "channel": "preview"},
            {3: [same], 7: [published]},
            "1.1 2.1 3.1 4.1 7.1",
            output=published,
        ),
        Walk("not yet", inputs, {3: [same]}, "1.1 2.1 3.1 4.1", {5: [no("not yet")]}, Status.CANCELLED, "not yet"),
        Walk(
            "builds that differ",
            inputs,
            {3: [{**same, "second": "b" * 64}], 8: ["kept in quarantine/"]},
            "1.1 2.1 3.1 4.1 8.1",
            output="kept in quarantine/",
        ),
        Walk(
            "no version",
            {**inputs, "version": "two"},
            {},
            "1.1",
            ends=Status.FAILED,
            reason="version",
        ),
        Walk(
            "nothing is built in time",
            inputs,
            {3: [Late(), Late()]},
            "1.1 2.1 3.1 3.2",
            ends=Status.FAILED,
            reason="exceeded 3600s",
        ),
    ]


def access() -> list[Walk]:
    inputs = {"person": "noor", "system": "ledger", "level": "read", "reason": "Monthly closing"}
    known = {"active": True, "owner": "ida", "present": "none", "lowest": "read"}
    granted = {"level": "read", "until": "2027-01-31"}
    admin = {**inputs, "level": "admin"}
    trained = {"training": "2026-04", "second_factor": True}
    return [
        Walk(
            "read access, granted wrongly at first",
            inputs,
            {1: [known], 4: [{**granted, "level": "write"}, granted], 5: ["Dear noor"]},
            "1.1 2.1 4.1 4.2 5.1",
            {2: [YES]},
            output="Dear noor",
        ),
        Walk(
            "administration, granted late",
            admin,
            {1: [known], 3: [trained], 4: [Late(), {**granted, "level": "admin"}], 5: ["Dear noor"]},
            "1.1 2.1 3.1 4.1 5.1",
            {2: [YES], 3: [YES], 4: [YES]},
            output="Dear noor",
        ),
        Walk(
            "the wrong level twice",
            inputs,
            {1: [known], 4: [{**granted, "level": "write"}, {**granted, "level": "admin"}]},
            "1.1 2.1 4.1 4.2",
            {2: [YES]},
            Status.FAILED,
            "output.level == inputs.level",
        ),
        Walk(
            "nobody of that name",
            inputs,
            {1: [{**known, "active": False}], 6: ["Dear manager"]},
            "1.1 6.1",
            output="Dear manager",
        ),
        Walk("the owner says no", inputs, {1: [known], 6: ["No"]}, "1.1 6.1", {2: [no("not needed")]}, output="No"),
        Walk(
            "security says no",
            {**inputs, "days": 365},
            {1: [known], 6: ["No"]},
            "1.1 2.1 6.1",
            {2: [YES], 3: [no("too long")]},
            output="No",
        ),
        Walk(
            "no second factor",
            admin,
            {1: [known], 3: [Failed("no second factor")], 6: ["No"]},
            "1.1 2.1 3.1 6.1",
            {2: [YES], 3: [YES]},
            output="No",
        ),
        Walk("nobody looks", inputs, {1: [Late()]}, "1.1", ends=Status.FAILED, reason="exceeded 86400s"),
    ]


def deletion() -> list[Walk]:
    inputs = {"request": "R-9", "subject": "customer 4711"}
    proven = {"proven": True, "how": "logged in"}
    found = {"systems": ["shop", "mail", "billing"], "keep": [{"system": "billing", "reason": "tax law, ten years"}]}

    def gone(system: str, deleted: int) -> dict[str, Any]:
        return {"system": system, "deleted": deleted, "left": 0}

    return [
        Walk(
            "deleted everywhere, the list made twice and one system slow",
            inputs,
            {
                1: [proven],
                2: [{**found, "systems": ["shop"]}, found],
                4: [gone("shop", 12), Failed("mail is down"), gone("billing", 1), gone("mail", 3)],
                5: ["Dear customer"],
                6: ["mail and billing were missing"],
            },
            "1.1 2.1 6.1 2.2 3.1 4.1 4.2 4.3 4.4 4.5 5.1",
            {3: [no("incomplete"), YES]},
            output="Dear customer",
        ),
        Walk(
            "not proven",
            inputs,
            {1: [{"proven": False, "how": "asked for an answer to another address"}]},
            "1.1",
            output={"proven": False, "how": "asked for an answer to another address"},
        ),
        Walk(
            "a system stays away",
            inputs,
            {1: [proven], 2: [{**found, "systems": ["shop"]}], 4: [Failed("down")] * 3},
            "1.1 2.1 3.1 4.1 4.2 4.3",
            {3: [YES]},
            Status.FAILED,
            "down",
        ),
    ]


def onboarding() -> list[Walk]:
    inputs = {"person": "sam", "team": "payments", "system": "ledger"}
    requested = {
        "person": "sam",
        "system": "ledger",
        "level": "write",
        "reason": "New member of the team payments",
        "days": 90,
    }
    known = {"active": True, "owner": "ida", "present": "none", "lowest": "write"}
    granted = Walk(
        "granted",
        requested,
        {1: [known], 4: [{"level": "write", "until": "2027-01-31"}], 5: ["Dear sam"]},
        "1.1 2.1 4.1 5.1",
        {2: [YES]},
        output="Dear sam",
    )
    abandoned = Walk("abandoned", requested, {1: [Late()]}, "1.1", ends=Status.FAILED, reason="exceeded 86400s")
    begin: dict[int, list[Any]] = {1: [{"manager": "noor"}]}
    return [
        Walk("with access", inputs, {**begin, 3: ["ida"]}, "1.1 2.1 3.1", output="ida", child=granted),
        Walk("without access", inputs, {**begin, 4: ["reading"]}, "1.1 2.1 4.1", output="reading", child=abandoned),
    ]


def dependency() -> list[Walk]:
    inputs = {"package": "left-pad", "test_command": "make test"}
    reports = {1: ["nothing breaks"], 2: ["1.3.0"], 3: ["all green"]}
    return [
        Walk("updated", inputs, {**reports}, "1.1 2.1 3.1", {1: [YES]}, output="all green"),
        Walk("not now", inputs, {}, "", {1: [no("freeze")]}, Status.CANCELLED, "freeze"),
    ]


WALKS: Final = {
    "production-deploy": deploy(),
    "incident-response": incident(),
    "customer-complaint": complaint(),
    "release": release(),
    "access-request": access(),
    "data-deletion": deletion(),
    "onboarding": onboarding(),
    "dependency-update": dependency(),
}
