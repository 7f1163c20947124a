"""The registry of agents: the one place that builds contracts, and gives sessions what is live behind them.

An agent is assembled completely or refused with every reason; nothing is filled in from the caller.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio.to_thread
from msgspec import Struct, field

from procedo.agents.connections import Links, OpenTools, links
from procedo.agents.contract import Contract, difference
from procedo.agents.models.building import Unbuildable, build
from procedo.agents.parts import (
    Actor,
    ApprovalManager,
    FilterGroup,
    Level,
    McpScope,
    OnInterrupted,
    ProviderBinding,
    RuntimeControls,
    SecurityPolicy,
    Tool,
)
from procedo.agents.ports import Ceiling, Delegation, Door, Model, StepBrief
from procedo.agents.provider import bound, objections
from procedo.agents.refusal import Cause, NotAssembled, Reason
from procedo.agents.runners import AVAILABLE, Control, Runner, not_enforced
from procedo.agents.sandbox import probe
from procedo.agents.scope import mcp_scope
from procedo.agents.seal import SEAL
from procedo.agents.security import security_policy
from procedo.agents.seed import transcript_seed
from procedo.agents.toolset import Authority, candidates, chosen
from procedo.config import Settings
from procedo.config.agent_settings import AgentTable, ProviderTable, RiskTable, RuntimeTable
from procedo.core.model import Json
from procedo.core.reach import admits_agent

__all__ = ["Registry"]

_ALWAYS = (
    Control.TOOLS,
    Control.APPROVALS,
    Control.MODEL,
    Control.ITERATIONS,
    Control.RESULT_SIZE,
    Control.CONTEXT_SIZE,
    Control.WALL_TIME,
    Control.ISOLATION,
    Control.CANCEL,
)


class _Tables(Struct, frozen=True):
    """The tables of one agent."""

    agent: AgentTable
    risk: RiskTable
    runtime: RuntimeTable
    provider: ProviderTable


class _Draft(Struct):
    """A contract in the making: its parts, and everything that speaks against it."""

    reasons: list[Reason] = field(default_factory=list)

    def add(self, cause: Cause, message: str, hint: str = "") -> None:
        self.reasons.append(Reason(cause, message, hint))

    def add_limits(self, wanted: "_Wanted") -> None:
        """The reason of an agent that whoever started the run may not have at work."""
        if not admits_agent(wanted.ceiling.reach, wanted.alias):
            message = f"{wanted.alias!r} is beyond the limits of whoever started the run or moved it on"
            self.add(Cause.BEYOND_REACH, message, "start it with credentials that reach this agent")

    def add_depth(self, depth: int, limit: int) -> None:
        """The reason of a delegation that is too deep."""
        if depth > limit:
            message = f"the delegation is {depth} deep, the limit is {limit}"
            self.add(Cause.TOO_DEEP, message, "max_delegation_depth of its runtime profile")


class _Wanted(Struct, frozen=True):
    """Who is to be assembled for what."""

    alias: str
    surface: Door
    ceiling: Ceiling
    step: StepBrief
    delegation: Delegation


class Registry:
    """Assembles agents of one workspace (implements `ports.Workbench`).

    `environ` is where credentials, commands and passed variables come from.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    @property
    def settings(self) -> Settings:
        """What the registry was made of."""
        return self._settings

    def agents(self) -> frozenset[str]:
        """The aliases that are declared, disabled ones included."""
        return frozenset(self._settings.agents.agents)

    async def assemble(
        self,
        alias: str,
        *,
        surface: Door,
        ceiling: Ceiling,
        step: StepBrief,
        delegation: Delegation,
        recorded: Json | None,
    ) -> Contract:
        """The contract that `opened` gives, to be looked at; its connections are closed. Raises `NotAssembled`."""
        wanted = _Wanted(alias, surface, ceiling, step, delegation)
        async with self._open(wanted, recorded) as (contract, _):
            return contract

    def opened(
        self,
        alias: str,
        *,
        surface: Door,
        ceiling: Ceiling,
        step: StepBrief,
        delegation: Delegation,
        recorded: Json | None,
    ) -> AbstractAsyncContextManager[tuple[Contract, OpenTools]]:
        """Assemble an agent for one execution, with its tools; see `ports.Workbench.opened`. Raises `NotAssembled`."""
        return self._open(_Wanted(alias, surface, ceiling, step, delegation), recorded)

    @asynccontextmanager
    async def _open(self, wanted: _Wanted, recorded: Json | None) -> AsyncIterator[tuple[Contract, OpenTools]]:
        async with links(self._environ, self._settings.root) as opened:
            contract = await self._assembled(wanted, opened)
            _compare(contract, recorded)
            opened.keep([server.name for server in contract.mcp.servers])
            yield contract, OpenTools(contract, opened, self._environ)

    async def _assembled(self, wanted: _Wanted, opened: Links) -> Contract:
        """The one place that a contract comes from. Raises `NotAssembled` with every reason."""
        draft = _Draft()
        draft.add_limits(wanted)
        tables = self._tables(draft, wanted.alias)
        if tables is None:
            raise NotAssembled(wanted.alias, draft.reasons)
        security, reasons = security_policy(self._settings, tables.agent, tables.risk, tables.runtime)
        draft.reasons += reasons
        runtime = _runtime(tables.runtime)
        draft.add_depth(wanted.delegation.depth, runtime.max_depth)
        seed, reasons = transcript_seed(tables.agent, tables.runtime, wanted.step)
        draft.reasons += reasons
        provider = bound(tables.provider)
        draft.reasons += await objections(provider, runtime, self._environ, self._settings.root)
        if not tables.agent.enabled or any(reason.cause is Cause.BEYOND_REACH for reason in draft.reasons):
            raise NotAssembled(wanted.alias, draft.reasons)  # no server is started for it
        scope, tools = await self._tools(draft, tables, security, runtime, wanted, opened)
        controls = await _controls(draft, tables.agent.kind, provider, runtime, security, tools)
        if draft.reasons:
            raise NotAssembled(wanted.alias, list(dict.fromkeys(draft.reasons)))
        return Contract(
            tools=tools,
            security=security,
            mcp=scope,
            provider=provider,
            runtime=runtime,
            approvals=_approvals(tables.risk, wanted.surface, tools),
            seed=seed,
            actor=_actor(wanted.alias, wanted.delegation),
            runner=tables.agent.kind,
            controls=controls,
            seal=SEAL,
        )

    def model(self, contract: Contract) -> Model:
        """The model of a contract. Raises `NotAssembled`."""
        try:
            return build(contract.provider, self._environ, self._settings.root)
        except Unbuildable as error:
            raise NotAssembled(contract.actor.acting, error.reasons) from error

    def _tables(self, draft: _Draft, alias: str) -> _Tables | None:
        known = self._settings.agents
        agent = known.agents.get(alias)
        if agent is None:
            draft.add(
                Cause.UNKNOWN_AGENT, f"there is no agent {alias!r}", f"known: {', '.join(known.agents) or 'none'}"
            )
            return None
        if not agent.enabled:
            draft.add(Cause.DISABLED_AGENT, f"the agent {alias!r} is disabled", "write enabled = true")
        if agent.kind not in AVAILABLE:
            draft.add(Cause.CONTROL_NOT_ENFORCED, f"the kind {agent.kind!r} is not available in this version")
        risk = known.risks.get(agent.risk)
        if risk is None:
            draft.add(Cause.MISSING_PROFILE, f"there is no risk profile {agent.risk!r}")
        runtime = known.default_runtime if agent.runtime is None else known.runtimes.get(agent.runtime)
        if runtime is None:
            draft.add(Cause.MISSING_PROFILE, f"there is no runtime profile {agent.runtime!r}")
        provider = known.providers.get(agent.provider)
        if provider is None:
            draft.add(Cause.MISSING_PROVIDER, f"there is no provider {agent.provider!r}")
        if risk is None or runtime is None or provider is None:
            return None
        return _Tables(agent, risk, runtime, provider)

    async def _tools(
        self,
        draft: _Draft,
        tables: _Tables,
        security: SecurityPolicy,
        runtime: RuntimeControls,
        wanted: _Wanted,
        opened: Links,
    ) -> tuple[McpScope, tuple[Tool, ...]]:
        listing = await mcp_scope(self._settings, tables.agent, opened)
        draft.reasons += listing.reasons
        servers = self._settings.agents.servers
        available = candidates(security, listing.listed, servers, runtime.dedup_exempt)
        authority = Authority(tables.risk, wanted.ceiling, wanted.step.scope, runtime.filter_groups, wanted.step.text)
        tools, reasons = chosen(authority, available, security, listing.absent, servers)
        draft.reasons += reasons
        return listing.pinned(tools), tools


def _runtime(table: RuntimeTable) -> RuntimeControls:
    return RuntimeControls(
        iterations=table.iterations,
        result_chars=table.result_chars,
        context_tokens=table.context_tokens,
        history_messages=table.history_messages,
        total_tokens=table.tokens_per_step,
        cost_usd=table.cost_usd_per_step,
        cost_usd_per_day=table.cost_usd_per_day,
        run_tokens=table.tokens_per_run,
        run_cost_usd=table.cost_usd_per_run,
        wall_time_s=table.wall_time_s,
        parallel_calls=table.parallel_calls,
        dedup_exempt=table.dedup_exempt,
        filter_groups=tuple(FilterGroup(group.mode, group.tools, group.keywords) for group in table.groups),
        output_retries=table.output_retries,
        on_interrupted=OnInterrupted(table.on_interrupted),
        max_depth=table.depth,
    )


def _approvals(risk: RiskTable, surface: Door, tools: tuple[Tool, ...]) -> ApprovalManager:
    from procedo.agents.identity import named

    return ApprovalManager(
        level=Level(risk.level),
        auto=tuple(sorted(tool.id.key for tool in tools if named(risk.auto_approve, tool.id))),
        always_ask=tuple(sorted(tool.id.key for tool in tools if named(risk.always_ask, tool.id))),
        askable=surface.can_ask or bool(surface.route.strip()),
        route=surface.route.strip(),
        policy=risk.policy,
        timeout_s=risk.ask_timeout_s,
    )


def _actor(alias: str, delegation: Delegation) -> Actor:
    return Actor(
        acting=alias,
        delegating=delegation.delegating,
        root=delegation.root,
        run=delegation.run,
        execution=delegation.execution,
        depth=delegation.depth,
        lineage=tuple(dict.fromkeys((*delegation.lineage, delegation.run))),
    )


async def _controls(
    draft: _Draft,
    kind: str,
    provider: ProviderBinding,
    runtime: RuntimeControls,
    security: SecurityPolicy,
    tools: tuple[Tool, ...],
) -> tuple[str, ...]:
    """The controls that the contract needs; each one that its runner does not enforce is a reason."""
    names = {tool.id.name for tool in tools if not tool.id.server}
    needed = set(_ALWAYS)
    conditions = {
        Control.TEMPERATURE: provider.temperature is not None,
        Control.FILES: any(name.startswith("file_") for name in names),
        Control.SANDBOX: "shell" in names,
        Control.TOKENS: runtime.total_tokens is not None or runtime.run_tokens is not None,
        Control.COST: runtime.limits_cost,
    }
    needed |= {control for control, wanted in conditions.items() if wanted}
    for control in not_enforced(Runner(kind), needed):
        draft.add(Cause.CONTROL_NOT_ENFORCED, f"the runner {kind!r} does not enforce {control.value!r}")
    if Control.SANDBOX in needed and (why := await anyio.to_thread.run_sync(probe, security.sandbox)):
        draft.add(Cause.SANDBOX, f"programs cannot be enclosed: {why}")
    return tuple(sorted(control.value for control in needed))


def _compare(contract: Contract, recorded: Json | None) -> None:
    if recorded is None:
        return
    if changes := difference(recorded, contract.record()):
        message = f"the agent is not what it was when this session began: {'; '.join(changes)}"
        raise NotAssembled(contract.actor.acting, [Reason(Cause.CHANGED, message, "start the step anew")])
