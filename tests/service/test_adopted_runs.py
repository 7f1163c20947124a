"""State files are taken as they were written, or not at all."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from host import HOST
from service import Shop, person

from procedo.core.state import Status, Verdict
from procedo.errors import ProcedoError

pytestmark = pytest.mark.anyio

LETTER = """1. **Read** — Read it.
   - kind: checkpoint
2. **Mail** — Mail it.
   - requires_confirmation: true"""


def read(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


async def parked(shop: Shop) -> Any:
    shop.sop("letter", LETTER)
    async with shop.opened() as app:
        started = await app.runs.start("letter", {"text": "hello"}, HOST)
        (path,) = started.state_files.values()
        return read(path)


def without_the_gate(content: Any) -> None:
    files = content["definitions"][0]["files"]
    files["SOP.md"] = files["SOP.md"].replace("   - requires_confirmation: true", "")


def unreadable(content: Any) -> None:
    content["definitions"][0]["files"] = {"SOP.toml": "garbage ["}


def without_a_definition(content: Any) -> None:
    content["definitions"] = []


def of_another_shape(content: Any) -> None:
    content["definitions"] = "none"


@pytest.mark.parametrize("change", [without_the_gate, unreadable, without_a_definition, of_another_shape])
async def test_a_file_whose_procedure_was_changed_is_refused_and_leaves_nothing(
    tmp_path: Path, change: Callable[[Any], None]
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    content = await parked(Shop(tmp_path / "first"))
    changed = json.loads(json.dumps(content))
    change(changed)
    other = Shop(tmp_path / "second")
    async with other.opened() as app:
        with pytest.raises(ProcedoError):
            await app.runs.adopt(changed, HOST)
        digest = content["definitions"][0]["digest"]
        assert await app.store.read(lambda reader: (reader.run_ids(), reader.definition(digest))) == ((), None)
        adopted = await app.runs.adopt(content, HOST)
        assert adopted.run.status is Status.PAUSED_CHECKPOINT
        (gate,) = adopted.run.open_gates
        released = await app.runs.decide(gate.id, Verdict.APPROVE, person("ida"))
        assert released.run.status is Status.WAITING_APPROVAL


async def test_another_default_policy_opens_no_gate_that_is_waiting(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.sop("pay", "1. **Pay** — Pay it.\n   - requires_confirmation: true")
    async with shop.opened() as app:
        started = await app.runs.start("pay", {}, HOST)
        (gate,) = started.run.open_gates
    config = tmp_path / "procedo.toml"
    loosened = '[sop.approval]\ndefault_policy = "loose"\n[sop.approval.policies.loose]\nagents = ["{name}"]\n'
    config.write_text(loosened.format(name=HOST.principal.subject), encoding="utf-8")
    with pytest.raises(ProcedoError, match="an agent decides"):
        async with shop.opened():
            pass
    config.write_text('[sop.approval]\ndefault_policy = "any"\n[sop.approval.policies.any]\ndistinct_from = []\n')
    async with shop.opened() as app:
        with pytest.raises(ProcedoError, match="policy 'human'"):
            await app.runs.decide(gate.id, Verdict.APPROVE, HOST)
        decided = await app.runs.decide(gate.id, Verdict.APPROVE, person("ida"))
        assert decided.run.status is Status.RUNNING
        (resolved,) = [r for r in (await app.runs.history(decided.run.id)).records if r.kind == "GateResolved"]
        assert resolved.data["policy"] == "human"
