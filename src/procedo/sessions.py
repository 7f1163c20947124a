"""From a claimed execution of an agent to its end: assemble, carry out, ask or finish.

What happens is told to the engine by commands with the claim's fence. An agent that cannot be assembled
is a failed attempt whose record names it as intended, and no model or tool is called.
"""

from dataclasses import replace
from typing import Final

from procedo.agents.brief import brief_of
from procedo.agents.journal import Journal
from procedo.agents.ledger import StoreLedger
from procedo.agents.ports import Ceiling, Delegation, Workbench
from procedo.agents.refusal import NotAssembled
from procedo.agents.session import Ending, Session
from procedo.agents.toolcalls import ToolCalls
from procedo.core import messages as m
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.session import SessionRow, SessionState
from procedo.core.state import Execution, Gate, GateKind, Phase, Run
from procedo.ports import Claim, Clock, Store
from procedo.runs import Runs, Surface
from procedo.transition import Snapshot

__all__ = ["Sessions"]

_RUNNER: Final = "local"


class Sessions:
    """Carries out executions that belong to agents of the registry."""

    def __init__(self, workbench: Workbench, runs: Runs, store: Store, clock: Clock) -> None:
        self._workbench = workbench
        self._runs = runs
        self._store = store
        self._clock = clock
        self._ledger = StoreLedger(store)

    async def carry_out(self, claim: Claim, snapshot: Snapshot, execution: Execution) -> None:
        """Bring an execution to its end or to its next question."""
        run, actor = snapshot.run, Principal(Source.SYSTEM, execution.agent, PrincipalKind.AGENT)
        await self._runs.command(run.id, m.Begin(execution.id, claim.fence, repeatable=True), actor)
        known = await self._store.read(lambda reader: reader.session(run.id, execution.id))
        row = await self._head(claim, run, execution)
        recorded = known.session.contract if known is not None else None
        brief = brief_of(snapshot.sop, run, execution)
        delegation = await self._delegation(run, execution)
        surface = Surface(run.starter, run.can_ask, run.route, ceiling=run.ceiling)
        try:
            contract = await self._workbench.assemble(
                execution.agent,
                surface=surface,
                ceiling=Ceiling(run.ceiling),
                step=brief,
                delegation=delegation,
                recorded=recorded,
            )
            row = replace(
                row,
                contract=contract.record(),
                contract_digest=contract.digest,
                runner=contract.runner,
                scripted=contract.provider.scripted,
            )
            journal = await Journal.open(self._store, self._clock, row, known)
            model = self._workbench.model(contract)
            async with self._workbench.connect(contract) as connections:
                calls = ToolCalls(contract, journal, connections, self._ledger, self._clock)
                calls.gates = await self._gates(run.id, execution.id)
                ending = await Session(contract, journal, model, calls, self._ledger, self._clock).carry_out()
        except NotAssembled as error:
            journal = await Journal.open(self._store, self._clock, row, known)
            ending = Ending(SessionState.REFUSED, reason=str(error))
            actor = Principal(Source.SYSTEM, "procedo", PrincipalKind.SYSTEM)
        await journal.write(head={"state": ending.state, "reason": ending.reason})
        await self._tell(claim, run, execution, ending, actor, policy=_policy_of(journal), limit_s=_limit_of(journal))

    async def _tell(
        self,
        claim: Claim,
        run: Run,
        execution: Execution,
        ending: Ending,
        actor: Principal,
        *,
        policy: str | None,
        limit_s: float,
    ) -> None:
        for question in ending.questions:
            key = question.call.key
            command: m.Command = m.Ask(
                execution.id, claim.fence, key, question.kind, question.why, question.content, policy, limit_s
            )
            await self._runs.command(run.id, command, actor)
        if ending.state is SessionState.PARKED:
            return
        good = ending.state is SessionState.COMPLETED
        reason = "" if good else f"agent {execution.agent!r} is {ending.state}: {ending.reason}"
        status = Phase.COMPLETED if good else Phase.FAILED
        command = m.Finish(execution.id, claim.fence, status, ending.output, reason, actor.key)
        await self._runs.command(run.id, command, actor)

    async def _head(self, claim: Claim, run: Run, execution: Execution) -> SessionRow:
        now = self._clock.now()
        return SessionRow(
            run_id=run.id,
            execution_id=execution.id,
            agent=execution.agent,
            delegating=run.host_agent,
            root=run.starter.key,
            depth=(await self._delegation(run, execution)).depth,
            runner=_RUNNER,
            fence=claim.fence,
            started_at=now,
            active_at=now,
        )

    async def _delegation(self, run: Run, execution: Execution) -> Delegation:
        """For whom the agent acts: the host agent of the run, below the runs above it."""
        lineage: list[str] = []
        above = run.parent
        while above is not None:
            lineage.append(above.run)
            above = (await self._runs.look(above.run)).run.parent
        return Delegation(
            delegating=run.host_agent,
            root=run.starter.key,
            run=run.id,
            execution=execution.id,
            depth=1 + len(lineage),
            lineage=tuple(lineage),
        )

    async def _gates(self, run_id: str, execution_id: str) -> dict[tuple[str, GateKind], Gate]:
        """The questions of a session, the newest of each call and kind."""
        gates = await self._store.read(lambda reader: reader.gates(run_id))
        return {(gate.call, gate.kind): gate for gate in gates if gate.execution == execution_id and gate.call}


def _policy_of(journal: Journal) -> str | None:
    contract = journal.head.contract
    return contract["approvals"]["policy"] if isinstance(contract, dict) else None


def _limit_of(journal: Journal) -> float:
    contract = journal.head.contract
    return float(contract["approvals"]["timeout_s"]) if isinstance(contract, dict) else 0.0
