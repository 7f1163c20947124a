"""Two people in two processes answer at once: one of them decides, the other one is told who did."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import approver
import pytest
from host import HOST
from service import Shop

pytestmark = pytest.mark.anyio

ROUNDS = 15
PAY = "1. **Pay** — Pay it.\n   - requires_confirmation: true\n2. **Tell** — Tell."


@contextmanager
def person(root: Path, name: str, verdict: str) -> Iterator["subprocess.Popen[str]"]:
    """A person who is at the ready; the process does not outlive the test."""
    command = [sys.executable, approver.__file__, str(root), name, verdict]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as made:
        try:
            assert made.stdout is not None
            assert made.stdout.readline() == "ready\n"
            yield made
        finally:
            made.kill()


def ask(made: "subprocess.Popen[str]", gate: str) -> None:
    assert made.stdin is not None
    made.stdin.write(f"{gate}\n")
    made.stdin.flush()


def told(made: "subprocess.Popen[str]") -> dict[str, str]:
    assert made.stdout is not None
    answer: dict[str, str] = json.loads(made.stdout.readline())
    return answer


def at_once(*, gate: str, **people: "subprocess.Popen[str]") -> dict[str, dict[str, str]]:
    """What each of them is told, when all answer before anybody is."""
    for one in people.values():
        ask(one, gate)
    return {name: told(one) for name, one in people.items()}


async def waiting(shop: Shop) -> list[tuple[str, str]]:
    """Runs that wait, each with its gate."""
    async with shop.opened() as app:
        parked = [await app.runs.start("pay", None, HOST) for _ in range(ROUNDS)]
    return [(one.run.id, one.run.open_gates[0].id) for one in parked]


async def decided(shop: Shop, run_id: str) -> tuple[Any, list[str]]:
    async with shop.opened() as app:
        history = await app.runs.history(run_id)
    (gate,) = history.gates
    return gate, [record.kind for record in history.records]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path, f"[sop]\nmax_concurrent_total = {ROUNDS * 2}\n")
    made.sop("pay", PAY, f"max_concurrent = {ROUNDS * 2}")
    return made


@pytest.mark.requirement("C7", "C45")
async def test_of_two_different_answers_one_counts_and_the_other_conflicts_naming_the_person(shop: Shop) -> None:
    runs = await waiting(shop)
    with person(shop.root, "ida", "approve") as ida, person(shop.root, "noor", "deny") as noor:
        for run_id, gate_id in runs:
            answers = at_once(ida=ida, noor=noor, gate=gate_id)
            codes = {name: answer["code"] for name, answer in answers.items()}
            assert sorted(codes.values()) == ["already_decided", "decided"], answers
            winner, loser = sorted(codes, key=lambda name: codes[name] != "decided")
            verdict = {"ida": "approve", "noor": "deny"}[winner]
            assert f"answered already: {verdict} by {winner} (human, cli)" in answers[loser]["text"]
            gate, kinds = await decided(shop, run_id)
            assert (gate.verdict.value, gate.decided_by.subject) == (verdict, winner)
            assert kinds.count("GateResolved") == 1
            assert kinds[-1] == ("ExecutionOpened" if verdict == "approve" else "RunCancelled")


@pytest.mark.requirement("C45")
async def test_of_two_equal_answers_one_counts_and_the_other_is_told_who_gave_it(shop: Shop) -> None:
    runs = await waiting(shop)
    with person(shop.root, "ida", "approve") as ida, person(shop.root, "noor", "approve") as noor:
        for run_id, gate_id in runs:
            answers = at_once(ida=ida, noor=noor, gate=gate_id)
            codes = {name: answer["code"] for name, answer in answers.items()}
            assert sorted(codes.values()) == ["decided", "replayed"], answers
            winner, loser = sorted(codes, key=lambda name: codes[name])
            gate, kinds = await decided(shop, run_id)
            assert gate.decided_by.subject == winner
            assert f"already answered approve by {winner} (human, cli)" in answers[loser]["text"]
            assert (kinds.count("GateResolved"), kinds.count("ExecutionOpened")) == (1, 1)
