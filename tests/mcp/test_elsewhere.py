"""A gate that is decided away from the host: the person there is sent to the inbox page, and that decides nothing."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp.client import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult
from mcp_host import ERAS, Desk, desk, only, text_of

from procedo.core.state import Principal, PrincipalKind, Source, Verdict
from procedo.runs import Surface

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]

IDA = Surface(Principal(Source.WEB, "ida", PrincipalKind.HUMAN), host=False)
CONFIG = "[sop.approval.policies.far]\nout_of_band = true\n"
PAY = {
    "SOP.toml": '[sop]\nname = "pay"\ndescription = "d"\nexecution_mode = "auto"\n',
    "SOP.md": "## Steps\n\n1. **Pay** — Pay.\n   - requires_confirmation: true\n   - policy: far\n   - prompt: Pay it?",
}


@dataclass
class Browser:
    """A client's user who is asked to open an address."""

    action: Any = "accept"
    opened: list[ElicitRequestURLParams] = field(default_factory=list)

    async def __call__(self, _: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestURLParams)
        self.opened.append(params)
        return ElicitResult(action=self.action)


def counter(folder: Path, era: str) -> Any:
    return desk(folder, era, sops={"pay": PAY}, config=CONFIG)


async def undecided(at: Desk, run_id: str) -> bool:
    history = await at.app.runs.history(run_id)
    return [(gate.verdict, gate.votes) for gate in history.gates] == [(None, ())] and history.executions == ()


@pytest.mark.requirement("C74")
@pytest.mark.parametrize(("action", "told"), [("accept", "was put before the user"), ("decline", "did not open it")])
async def test_the_person_is_sent_to_the_inbox_page_once_and_nothing_is_decided_by_it(
    tmp_path: Path, era: str, action: str, told: str
) -> None:
    browser = Browser(action)
    async with counter(tmp_path, era) as at:
        at.app.inbox.served_at("http://127.0.0.1:8321")
        async with at.host(browser) as host:
            view = await host.call("sop_start", name="pay")
            gate = only(view)
            result = await host.result("sop_approve", gate_id=gate["context"]["code"], decision="approve")
            assert not result.is_error
            answer: Any = result.structured_content
            (asked,) = browser.opened
            assert asked.url == f"http://127.0.0.1:8321/inbox/gates/{gate['gate_id']}"
            code = gate["context"]["code"]
            assert asked.message == f"Pay it?\nGate {code} is decided on the inbox page, after logging in there."
            assert answer["status"] == "waiting_approval"
            (note,) = answer["notes"]
            assert note.startswith(f"Nothing was decided: the inbox page of gate {code} ")
            assert told in note
            assert told in text_of(result)
            assert await undecided(at, view["run_id"])
            await at.app.runs.decide(gate["gate_id"], Verdict.APPROVE, IDA)
            assert only(await host.call("sop_resume", run_id=view["run_id"]))["execution_id"] == "1.1"
            again = await host.call("sop_approve", gate_id=gate["gate_id"])
            assert "approve by ida" in again["notes"][0]
            assert len(browser.opened) == 1


@pytest.mark.requirement("C74")
async def test_without_a_page_the_call_is_refused_and_says_where(tmp_path: Path, era: str) -> None:
    browser = Browser()
    async with counter(tmp_path, era) as at, at.host(browser) as host:
        view = await host.call("sop_start", name="pay")
        text = await host.refused("sop_approve", gate_id=only(view)["gate_id"])
        assert text.startswith("[out_of_band] Nothing was decided")
        assert "the operator's terminal or inbox" in text
        assert browser.opened == []
        assert await undecided(at, view["run_id"])


async def test_a_client_that_opens_no_addresses_is_told_where(tmp_path: Path, era: str) -> None:
    async with counter(tmp_path, era) as at, at.host() as host:
        at.app.inbox.served_at("http://127.0.0.1:8321")
        view = await host.call("sop_start", name="pay")
        assert "[out_of_band]" in await host.refused("sop_approve", gate_id=only(view)["gate_id"])


async def test_the_engine_itself_takes_no_answer_from_the_host(tmp_path: Path, era: str) -> None:
    async with counter(tmp_path, era) as at, at.host() as host:
        view = await host.call("sop_start", name="pay")
        for source in (Source.HOST, Source.HTTP):
            door = Surface(Principal(source, "ida", PrincipalKind.HUMAN))
            with pytest.raises(Exception, match="decided away from the calling host"):
                await at.app.runs.decide(only(view)["gate_id"], Verdict.APPROVE, door)
        assert await undecided(at, view["run_id"])
