import re
from pathlib import Path
from typing import Any

import pytest
from agent_workspace import (
    DELEGATION,
    HEADLESS,
    STEP,
    At,
    assemble,
    bundle,
    offered,
    refused,
    server,
    toml,
    workspace,
)

from procedo.agents.ports import Ceiling
from procedo.agents.refusal import Cause, NotAssembled
from procedo.core.altered import altered
from procedo.core.model import Scope
from procedo.errors import InvalidConfig

pytestmark = pytest.mark.anyio


async def test_an_agent_with_everything_is_assembled(tmp_path: Path) -> None:
    contract = await assemble(workspace(tmp_path))
    assert offered(contract) == ["file_read"]
    assert contract.actor.acting == "reviewer"
    assert contract.actor.lineage == ("run-1",)
    assert contract.runner == "local"


async def test_an_unknown_agent_is_refused(tmp_path: Path) -> None:
    reasons = await refused(workspace(tmp_path), "reviewr")
    assert reasons == {Cause.UNKNOWN_AGENT: "there is no agent 'reviewr'"}


async def test_a_disabled_agent_is_refused_and_no_server_is_started_for_it(tmp_path: Path) -> None:
    sign = tmp_path / "started"
    text = toml(agent='enabled = false\nmcp_bundles = ["all"]', more=server("s", f"child={sign}") + bundle("s"))
    reasons = await refused(workspace(tmp_path, text))
    assert reasons == {Cause.DISABLED_AGENT: "the agent 'reviewer' is disabled"}
    assert not sign.exists()


@pytest.mark.requirement("every-reason")
async def test_every_reason_is_told_not_only_the_first(tmp_path: Path) -> None:
    text = toml(
        agent='mcp_bundles = ["all"]',
        risk='allowed_tools = ["shell", "gone__x"]',
        runtime="max_cost_per_step_cents = 5\nmax_delegation_depth = 1",
        provider="openai_compatible.own",
        more=server("gone", "fail")
        + bundle("gone")
        + '[providers.models.openai_compatible.own]\nmodel = "m"\nendpoint = "http://127.0.0.1:9/v1"\n'
        + 'api_key = { env = "NO_SUCH_KEY" }\n',
    )
    delegation = altered(DELEGATION, depth=2)
    reasons = await refused(
        workspace(tmp_path, text),
        delegation=delegation,
        step=altered(STEP, output_schema={"type": "nonsense"}),
    )
    assert set(reasons) == {
        Cause.MISSING_KEY,
        Cause.TOO_DEEP,
        Cause.UNREACHABLE_SERVER,
        Cause.TOOL_UNUSABLE,
        Cause.BAD_OUTPUT_SCHEMA,
    }


@pytest.mark.parametrize(
    ("table", "cause", "missing"),
    [
        ("risks", Cause.MISSING_PROFILE, "risk profile 'careful'"),
        ("runtimes", Cause.MISSING_PROFILE, "runtime profile 'short'"),
        ("providers", Cause.MISSING_PROVIDER, "provider 'scripted.demo'"),
    ],
)
async def test_a_missing_profile_or_provider_is_refused(tmp_path: Path, table: str, cause: Cause, missing: str) -> None:
    registry = workspace(tmp_path)
    settings = registry.settings
    nothing: Any = {table: {}}
    gone = altered(settings, agents=altered(settings.agents, **nothing))
    assert await refused(type(registry)(gone, {})) == {cause: f"there is no {missing}"}
    assert offered(await assemble(type(registry)(settings, {}))) == ["file_read"]


@pytest.mark.requirement("C121")
async def test_an_agent_without_bundles_has_no_server_tool_while_one_is_configured(tmp_path: Path) -> None:
    more = server("s") + bundle("s")
    without = toml(risk='allowed_tools = ["*"]', more=more)
    contract = await assemble(workspace(tmp_path, without))
    assert (contract.mcp.servers, [name for name in offered(contract) if "__" in name]) == ((), [])
    having = toml(agent='mcp_bundles = ["all"]', risk='allowed_tools = ["*"]', more=more)
    contract = await assemble(workspace(tmp_path, having))
    assert [name for name in offered(contract) if "__" in name] == ["s__echo"]


@pytest.mark.requirement("C114")
async def test_an_empty_list_of_tools_grants_nothing(tmp_path: Path) -> None:
    assert offered(await assemble(workspace(tmp_path, toml(risk="")))) == []
    everything = await assemble(workspace(tmp_path, toml(risk='allowed_tools = ["all"]')))
    assert offered(everything) == ["file_edit", "file_list", "file_read", "file_search", "file_write"]


@pytest.mark.requirement("C116")
async def test_two_agents_are_offered_their_own_tool_only(tmp_path: Path) -> None:
    more = """
[agents.writer]
model_provider = "scripted.demo"
risk_profile = "writing"
[risk_profiles.writing]
allowed_tools = ["file_write"]
"""
    registry = workspace(tmp_path, toml(more=more))
    assert offered(await assemble(registry, "reviewer")) == ["file_read"]
    assert offered(await assemble(registry, "writer")) == ["file_write"]


@pytest.mark.requirement("C114")
async def test_a_tool_denied_by_the_profile_does_not_come_back_through_a_step(tmp_path: Path) -> None:
    text = toml(risk='allowed_tools = ["*"]\nexcluded_tools = ["file_write"]')
    step = altered(STEP, scope=Scope(allow=("file_write", "file_read")))
    assert offered(await assemble(workspace(tmp_path, text), step=step)) == ["file_read"]


@pytest.mark.parametrize(
    ("scope", "kept"),
    [
        (Scope(), ["file_list", "file_read"]),
        (Scope(allow=()), []),
        (Scope(allow=("file_read",)), ["file_read"]),
        (Scope(allow=("file_read",), deny=("file_read",)), []),
        (Scope(deny=("*",)), []),
    ],
)
async def test_a_steps_scope_narrows(tmp_path: Path, scope: Scope, kept: list[str]) -> None:
    registry = workspace(tmp_path, toml(risk='allowed_tools = ["file_read", "file_list"]'))
    assert offered(await assemble(registry, step=altered(STEP, scope=scope))) == kept


@pytest.mark.requirement("C122")
async def test_a_ceiling_of_one_tool_leaves_a_broad_agent_that_tool_only(tmp_path: Path) -> None:
    registry = workspace(tmp_path, toml(risk='allowed_tools = ["*"]'))
    ceiling = Ceiling((Scope(allow=("file_read",)),))
    contract = await assemble(registry, ceiling=ceiling)
    assert offered(contract) == ["file_read"]


@pytest.mark.parametrize("where", ["scope", "ceiling"])
async def test_a_name_that_can_be_no_tool_is_refused_even_where_it_would_deny(tmp_path: Path, where: str) -> None:
    registry = workspace(tmp_path)
    wrong, right = Scope(deny=("fs",)), Scope(deny=("file_list",))
    for scope, good in ((wrong, False), (right, True)):
        if where == "scope":
            wanted: dict[str, Any] = {"step": altered(STEP, scope=scope)}
        else:
            wanted = {"ceiling": Ceiling((scope,))}
        if good:
            assert offered(await assemble(registry, **wanted)) == ["file_read"]
        else:
            assert set(await refused(registry, **wanted)) == {Cause.UNKNOWN_TOOL}


async def test_a_missing_key_refuses_and_a_present_one_does_not(tmp_path: Path) -> None:
    own = '[providers.models.openai_compatible.own]\nmodel = "m"\nendpoint = "http://127.0.0.1:9/v1"\n'
    text = toml(provider="openai_compatible.own", more=own + 'api_key = { env = "THE_KEY" }\n')
    reasons = await refused(workspace(tmp_path, text, environ={}))
    assert reasons == {
        Cause.MISSING_KEY: "the provider openai_compatible.own has no key: there is no value behind env:THE_KEY"
    }
    contract = await assemble(workspace(tmp_path, text, environ={"THE_KEY": "s3cr3t-value"}))
    assert contract.provider.model == "m"


async def test_a_missing_extra_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "anthropic" else found(name))
    own = '[providers.models.anthropic.own]\nmodel = "m"\napi_key = { env = "THE_KEY" }\n'
    text = toml(provider="anthropic.own", more=own)
    reasons = await refused(workspace(tmp_path, text, environ={"THE_KEY": "x"}))
    assert reasons == {Cause.MISSING_EXTRA: "the provider anthropic.own needs the package 'anthropic'"}


async def test_a_limit_on_cost_needs_a_known_price(tmp_path: Path) -> None:
    own = '[providers.models.openai_compatible.own]\nmodel = "m"\nendpoint = "http://127.0.0.1:9/v1"\n'
    limit = "max_cost_per_step_cents = 5"
    unknown = toml(provider="openai_compatible.own", runtime=limit, more=own)
    assert set(await refused(workspace(tmp_path, unknown))) == {Cause.PRICE_UNKNOWN}
    unlimited = toml(provider="openai_compatible.own", more=own)
    assert (await assemble(workspace(tmp_path, unlimited))).runtime.cost_usd is None
    stated = own + "input_usd_per_million = 0\noutput_usd_per_million = 0.5\n"
    contract = await assemble(workspace(tmp_path, toml(provider="openai_compatible.own", runtime=limit, more=stated)))
    assert str(contract.runtime.cost_usd) == "0.05"


async def test_a_script_that_cannot_be_read_refuses(tmp_path: Path) -> None:
    reasons = await refused(workspace(tmp_path, script='[[turns]]\nspeech = "x"\n'))
    assert set(reasons) == {Cause.BAD_SCRIPT}
    assert "speech" in reasons[Cause.BAD_SCRIPT]


async def test_instructions_are_the_agents_own_and_never_cut(tmp_path: Path) -> None:
    (tmp_path / "me.md").write_text("You review.")
    text = toml(agent='instructions_file = "me.md"', runtime="max_system_prompt_chars = 11")
    contract = await assemble(workspace(tmp_path, text))
    assert (contract.seed.instructions, contract.seed.context) == ("You review.", "Review the change.")
    (tmp_path / "me.md").write_text("You review a lot.")
    assert set(await refused(workspace(tmp_path, text))) == {Cause.BAD_INSTRUCTIONS}


async def test_a_temperature_that_is_not_set_stays_none(tmp_path: Path) -> None:
    own = '[providers.models.openai_compatible.own]\nmodel = "m"\nendpoint = "http://127.0.0.1:9/v1"\n'
    unset = await assemble(workspace(tmp_path, toml(provider="openai_compatible.own", more=own)))
    assert unset.provider.temperature is None
    stated = toml(provider="openai_compatible.own", more=own + "temperature = 0.42\n")
    assert (await assemble(workspace(tmp_path, stated))).provider.temperature == 0.42


@pytest.mark.requirement("C119")
async def test_no_agent_has_a_control_tool_and_naming_one_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    everything = await assemble(workspace(tmp_path, toml(risk='allowed_tools = ["*"]')))
    assert [name for name in offered(everything) if name.startswith("sop_")] == []
    for key in ("allowed_tools", "excluded_tools", "always_ask"):
        with pytest.raises(InvalidConfig, match=f"{key} names 'sop_status', which can be no tool.*no control tools"):
            workspace(tmp_path, toml(risk=f'{key} = ["sop_status"]'))


async def test_a_resumed_session_gets_the_same_contract_or_is_told_the_difference(tmp_path: Path) -> None:
    first = await assemble(workspace(tmp_path))
    again = await assemble(workspace(tmp_path), recorded=first.record())
    assert again.digest == first.digest
    changed = workspace(tmp_path, toml(runtime="max_tool_iterations = 3"))
    with pytest.raises(NotAssembled) as caught:
        await assemble(changed, recorded=first.record())
    assert [reason.cause for reason in caught.value.reasons] == [Cause.CHANGED]
    assert "runtime.iterations: was 10, is 3" in caught.value.message


async def test_the_delegation_depth_is_limited(tmp_path: Path) -> None:
    registry = workspace(tmp_path, toml(runtime="max_delegation_depth = 2"))
    deep = altered(DELEGATION, depth=2, lineage=("run-0",))
    contract = await assemble(registry, delegation=deep)
    assert (contract.actor.depth, contract.actor.lineage) == (2, ("run-0", "run-1"))
    assert set(await refused(registry, delegation=altered(deep, depth=3))) == {Cause.TOO_DEEP}


async def test_nobody_to_ask_is_part_of_the_contract(tmp_path: Path) -> None:
    registry = workspace(tmp_path)
    assert not (await assemble(registry, surface=HEADLESS)).approvals.askable
    assert (await assemble(registry, surface=At(can_ask=True, route=""))).approvals.askable
    assert (await assemble(registry, surface=At(route="inbox"))).approvals.route == "inbox"


async def test_filter_groups_concern_server_tools_only(tmp_path: Path) -> None:
    groups = """
[[runtime_profiles.short.tool_filter_groups]]
mode = "always"
tools = ["s__a*"]
[[runtime_profiles.short.tool_filter_groups]]
mode = "dynamic"
tools = ["s__b"]
keywords = ["Change"]
[[runtime_profiles.short.tool_filter_groups]]
mode = "dynamic"
tools = ["s__c"]
keywords = ["weather"]
"""
    text = toml(
        agent='mcp_bundles = ["all"]',
        risk='allowed_tools = ["file_read", "s__*"]',
        more=groups + server("s", "tools=a1,b,c,d") + bundle("s"),
    )
    assert offered(await assemble(workspace(tmp_path, text))) == ["file_read", "s__a1", "s__b"]


async def test_the_whole_disk_is_reached_only_when_both_tables_say_so(tmp_path: Path) -> None:
    agent, risk = "[agents.reviewer.workspace]\nunrestricted_filesystem = true", "workspace_only = false"
    assert set(await refused(workspace(tmp_path, toml(agent=agent)))) == {Cause.WORKSPACE}
    both = await assemble(workspace(tmp_path, toml(agent=agent, risk=risk)))
    assert [str(root.path) for root in both.security.roots] == [str(tmp_path), "/"]


@pytest.mark.requirement("one-constructor")
def test_only_the_registry_and_the_contract_know_the_seal() -> None:
    import procedo

    root = Path(procedo.__file__).parent
    users = {str(p.relative_to(root)) for p in root.rglob("*.py") if re.search(r"\bSEAL\b", p.read_text())}
    assert users == {"agents/seal.py", "agents/contract.py", "agents/registry.py"}
