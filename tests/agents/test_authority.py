"""Whatever is configured, nothing can be called that the agent, the ceiling and the step do not all grant."""

import itertools
from contextlib import suppress
from typing import Any

import anyio
import pytest
from agent_workspace import DELEGATION, STEP, At, workspace
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from procedo.agents.parts import FilterGroup, Origin, ToolId
from procedo.agents.policy import Verdict, judge
from procedo.agents.ports import Ceiling, ToolDenied
from procedo.agents.refusal import NotAssembled
from procedo.agents.registry import Registry
from procedo.agents.security import security_policy
from procedo.agents.tools.catalogue import built_in
from procedo.agents.toolset import Authority, ServerTool, candidates, chosen
from procedo.config import Settings, load
from procedo.config.agent_settings import RiskTable, ServerTable
from procedo.config.tool_names import BUILT_IN
from procedo.core.altered import altered
from procedo.core.model import Scope

SERVERS = ("a", "b", "a-b")
TOOLS = ("x", "y", "x__y", "file_read")
ENTRIES = (
    *BUILT_IN,
    *(f"{server}__{tool}" for server in SERVERS for tool in (*TOOLS, "*")),
    "*",
    "all",
    "sop_status",
    "no_such_tool",
)

entries = st.lists(st.sampled_from(ENTRIES), max_size=6, unique=True).map(tuple)
scopes = st.builds(Scope, allow=st.none() | entries, deny=entries)
ceilings = st.lists(scopes, max_size=3).map(lambda found: Ceiling(tuple(found)))
listings = st.dictionaries(
    st.sampled_from(SERVERS), st.lists(st.sampled_from(TOOLS), unique=True, max_size=4), max_size=3
)
groups = st.lists(
    st.builds(
        FilterGroup,
        st.sampled_from(["always", "dynamic"]),
        st.lists(st.sampled_from(["a__*", "*x", "b__y", "*"]), max_size=2).map(tuple),
        st.sampled_from([("Review",), ("weather",)]),
    ),
    max_size=2,
).map(tuple)


def means(entry: str, server: str, tool: str) -> bool:
    """What an entry of a list means, written down once more and as plainly as can be."""
    if entry in {"*", "all"}:
        return True
    if server:
        return entry in {f"{server}__{tool}", f"{server}__*"}
    return entry == tool


def granted(risk: RiskTable, ceiling: Ceiling, scope: Scope, server: str, tool: str) -> bool:
    def has(names: tuple[str, ...]) -> bool:
        return any(means(entry, server, tool) for entry in names)

    agent = has(risk.allowed_tools) and not has(risk.excluded_tools)
    return agent and all((s.allow is None or has(s.allow)) and not has(s.deny) for s in (*ceiling.scopes, scope))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("base")
    workspace(folder)
    return load(folder)


def server_table(name: str) -> ServerTable:
    return ServerTable(name, "stdio", "x", (), {}, "", {}, True, 1.0, 1.0, (), ())


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries, entries, ceilings, scopes, listings, groups)
@pytest.mark.requirement("no-broader-scope")
def test_no_tool_is_chosen_outside_of_agent_and_ceiling_and_step(
    base: Settings,
    allowed: tuple[str, ...],
    excluded: tuple[str, ...],
    ceiling: Ceiling,
    scope: Scope,
    listed: dict[str, list[str]],
    filters: tuple[FilterGroup, ...],
) -> None:
    agent = base.agents.agents["reviewer"]
    risk = altered(
        base.agents.risks["careful"], allowed_tools=allowed, excluded_tools=excluded, allowed_commands=("ls",)
    )
    security, _ = security_policy(base, agent, risk, base.agents.default_runtime)
    available = candidates(
        security,
        {server: [ServerTool(tool, "", {"type": "object"}) for tool in tools] for server, tools in listed.items()},
        {server: server_table(server) for server in SERVERS},
        (),
    )
    authority = Authority(risk, ceiling, scope, filters, "Review it.")
    tools, reasons = chosen(authority, available, security, {}, SERVERS)
    there = [("", name) for name in BUILT_IN] + [(s, tool) for s, names in listed.items() for tool in names]
    allowed_now = {pair for pair in there if granted(risk, ceiling, scope, *pair)}
    picked = {(tool.id.server, tool.id.name) for tool in tools}
    assert picked <= allowed_now
    assert len({tool.offered for tool in tools}) == len(tools)
    if not filters:
        # The other direction: what is granted and usable is there.
        assert allowed_now - picked <= {("", "http_request")}
    misspelt = "no_such_tool" in (
        *allowed,
        *itertools.chain(*((*(s.allow or ()), *s.deny) for s in (*ceiling.scopes, scope))),
    )
    assert not misspelt or reasons


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    allowed=st.lists(st.sampled_from([*BUILT_IN, "*"]), max_size=4, unique=True).map(tuple),
    excluded=st.lists(st.sampled_from(BUILT_IN), max_size=3, unique=True).map(tuple),
    ceiling=st.lists(
        st.builds(Scope, allow=st.none() | st.lists(st.sampled_from(BUILT_IN), max_size=4).map(tuple)), max_size=2
    ).map(lambda found: Ceiling(tuple(found))),
    scope=st.builds(
        Scope,
        allow=st.none() | st.lists(st.sampled_from(BUILT_IN), max_size=4).map(tuple),
        deny=st.lists(st.sampled_from(BUILT_IN), max_size=3).map(tuple),
    ),
    level=st.sampled_from(["readonly", "supervised", "full"]),
    route=st.sampled_from(["", "inbox"]),
)
@example(("*",), (), Ceiling(()), Scope(allow=()), "full", "")
@pytest.mark.requirement("no-broader-scope")
def test_no_call_gets_through_outside_of_agent_and_ceiling_and_step(
    base: Settings,
    allowed: tuple[str, ...],
    excluded: tuple[str, ...],
    ceiling: Ceiling,
    scope: Scope,
    level: str,
    route: str,
) -> None:
    risk = altered(
        base.agents.risks["careful"], allowed_tools=allowed, excluded_tools=excluded, level=level, sandbox="none"
    )
    registry = Registry(altered(base, agents=altered(base.agents, risks={"careful": risk})), {"PATH": ""})

    async def tried() -> None:
        about: dict[str, Any] = {
            "surface": At(route=route),
            "ceiling": ceiling,
            "step": altered(STEP, scope=scope),
        }
        with suppress(NotAssembled):
            async with registry.opened("reviewer", delegation=DELEGATION, recorded=None, **about) as (contract, tools):
                for name in BUILT_IN:
                    tool = built_in(name, contract.security, repeats=False)
                    if granted(risk, ceiling, scope, "", name):
                        continue
                    assert contract.tool(name) is None
                    assert judge(contract, tool, {"argv": ["ls"]}).verdict is Verdict.DENY
                    for identity in (tool.id, ToolId(Origin.BUILT_IN, "", name, ""), ToolId(Origin.MCP, "a", name, "")):
                        with pytest.raises(ToolDenied):
                            await tools.call(identity, {"path": "procedo.toml", "argv": ["ls"]}, "effect-1")

    anyio.run(tried)
