"""The question whether an agent may make a call, put to the person at the host."""

from pathlib import Path
from typing import Any

import pytest
from session_bench import ASKABLE, Bench, Desk, Hands, Talk, answer, call, config, said, step

from procedo.core.state import Principal, PrincipalKind, Source, Status
from procedo.errors import BadArgument
from procedo.runs import Surface
from procedo.surfaces.mcp.asking import Looked, decided, form

pytestmark = pytest.mark.anyio
WRITE = call("file_write", path="a", content="b")
PERSON = Surface(Principal(Source.HOST, "desk", PrincipalKind.HUMAN), can_ask=True)


async def looked(desk: Desk) -> Looked:
    (gate,) = await desk.gates()
    return Looked(gate, await desk.look(), PERSON)


def fields(found: Looked) -> dict[str, Any]:
    properties = form(found).model_json_schema()["properties"]
    return {name: field.get("description") for name, field in properties.items()}


async def test_a_yes_at_the_host_may_cover_the_same_call_for_the_rest_of_the_session(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.configure(config(ask=["file_write"], runtime='tool_call_dedup_exempt = ["file_write"]'))
    talk, hands = Talk([said(WRITE), said(WRITE), said("fine")]), Hands({"file_write": answer})
    async with bench.opened(talk, hands) as desk:
        await desk.start(ASKABLE)
        await desk.work()
        found = await looked(desk)
        assert fields(found)["for_session"] == (
            "With approve only: also for the same call, with these arguments, in the rest of the agent's session"
        )
        with pytest.raises(BadArgument, match="extends an approval, and nothing else"):
            await decided(desk.app.runs, found, form(found)(decision="deny", for_session=True))  # type: ignore[call-arg]
        await decided(desk.app.runs, found, form(found)(decision="approve", for_session=True))  # type: ignore[call-arg]
        assert (await desk.work()).run.status is Status.COMPLETED
    assert hands.made == [("file_write", {"path": "a", "content": "b"})] * 2


async def test_a_yes_at_the_host_is_otherwise_for_one_call(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.configure(config(ask=["file_write"], runtime='tool_call_dedup_exempt = ["file_write"]'))
    talk, hands = Talk([said(WRITE), said(WRITE), said("fine")]), Hands({"file_write": answer})
    async with bench.opened(talk, hands) as desk:
        await desk.start(ASKABLE)
        await desk.work()
        found = await looked(desk)
        await decided(desk.app.runs, found, form(found)(decision="approve"))
        assert (await desk.work()).run.status is Status.WAITING_APPROVAL
    assert len(hands.made) == 1


async def test_a_call_is_amended_in_its_arguments_whatever_the_step_lets_amend(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.configure(config(ask=["file_write"]))
    bench.procedure(step("edit: tool"))
    talk, hands = Talk([said(WRITE), said("fine")]), Hands({"file_write": answer})
    async with bench.opened(talk, hands) as desk:
        await desk.start(ASKABLE)
        await desk.work()
        found = await looked(desk)
        assert fields(found)["value"] == "With amend only: the new arguments, as JSON"
        other = '{"path": "a", "content": "c"}'
        await decided(desk.app.runs, found, form(found)(decision="amend", value=other))  # type: ignore[call-arg]
        assert (await desk.work()).run.status is Status.COMPLETED
    assert hands.made == [("file_write", {"path": "a", "content": "c"})]
