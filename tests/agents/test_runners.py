import itertools
from pathlib import Path

import pytest
from agent_workspace import assemble, refused, toml, workspace

from procedo.agents.refusal import Cause, NotAssembled
from procedo.agents.registry import Registry
from procedo.agents.runners import AVAILABLE, ENFORCEMENT, Control, Hold, Runner, not_enforced
from procedo.core.altered import altered

pytestmark = pytest.mark.anyio


def test_every_runner_says_of_every_control_how_it_holds_it() -> None:
    assert {runner: set(table) for runner, table in ENFORCEMENT.items()} == {r: set(Control) for r in Runner}
    assert {runner for runner in Runner if all(h is Hold.ENFORCED for h in ENFORCEMENT[runner].values())} == {
        Runner.LOCAL
    }
    assert {Runner.LOCAL} == AVAILABLE


@pytest.mark.parametrize(("runner", "control"), list(itertools.product(Runner, Control)))
@pytest.mark.requirement("runner-table")
def test_only_what_is_enforced_satisfies_a_need(runner: Runner, control: Control) -> None:
    held = ENFORCEMENT[runner][control] is Hold.ENFORCED
    assert not_enforced(runner, [control]) == (() if held else (control,))


async def test_a_kind_that_is_not_available_is_refused_with_every_control_it_lacks(tmp_path: Path) -> None:
    registry = workspace(tmp_path)
    settings = registry.settings
    agents = {"reviewer": altered(settings.agents.agents["reviewer"], kind="acp")}
    other = Registry(altered(settings, agents=altered(settings.agents, agents=agents)), {})
    with pytest.raises(NotAssembled) as caught:
        await assemble(other)
    told = [reason.message for reason in caught.value.reasons if reason.cause is Cause.CONTROL_NOT_ENFORCED]
    assert told == [
        "the kind 'acp' is not available in this version",
        "the runner 'acp' does not enforce 'tool_allow_list'",
        "the runner 'acp' does not enforce 'approvals'",
        "the runner 'acp' does not enforce 'model'",
        "the runner 'acp' does not enforce 'iterations'",
        "the runner 'acp' does not enforce 'context_size'",
    ]


@pytest.mark.requirement("runner-table")
async def test_a_control_that_is_only_promised_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from procedo.agents import runners

    weaker = {**ENFORCEMENT, Runner.LOCAL: {**ENFORCEMENT[Runner.LOCAL], Control.TOKENS: Hold.PROMISED}}
    limited = toml(runtime="max_tokens_per_step = 1000")
    assert "tokens" in (await assemble(workspace(tmp_path, limited))).controls
    monkeypatch.setattr(runners, "ENFORCEMENT", weaker)
    assert await refused(workspace(tmp_path, limited)) == {
        Cause.CONTROL_NOT_ENFORCED: "the runner 'local' does not enforce 'tokens'"
    }
    assert "tokens" not in (await assemble(workspace(tmp_path, toml()))).controls
