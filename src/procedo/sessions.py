"""From a claimed execution of an agent to its end: assemble, carry out, ask or finish.

What happens is told to the engine by commands with the claim's fence. An agent that cannot be assembled
is a failed attempt whose record names it as intended and nobody as acting; no model or tool is called.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from msgspec import Struct

from procedo.agents.brief import brief_of
from procedo.agents.contract import Contract
from procedo.agents.dialogue import unreadable
from procedo.agents.ending import Ending, PutDown
from procedo.agents.journal import Journal
from procedo.agents.ledger import StoreLedger
from procedo.agents.limits import Limits
from procedo.agents.ports import Ceiling, Connections, Delegation, StepBrief, Workbench
from procedo.agents.questions import Questions
from procedo.agents.refusal import Cause, NotAssembled, Reason
from procedo.agents.session import Session
from procedo.agents.toolcalls import ToolCalls
from procedo.agents.turns import Turns
from procedo.causes import causes
from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.model import Json
from procedo.core.principal import Principal, PrincipalKind, Source
from procedo.core.session import SessionRow, SessionState, Transcript
from procedo.core.state import Execution, Gate, Phase, Run
from procedo.errors import ProcedoError
from procedo.ports import Claim, Clock, Store
from procedo.runs import Runs, Surface
from procedo.transition import SYSTEM, Snapshot

__all__ = ["Sessions"]

_RUNNER: Final = "local"
_FAULTS: Final = 5
"""At which try of one activation a fault ends the session; until then it may be the machine's, and pass."""
_log = logging.getLogger(__name__)


class _Work(Struct, frozen=True):
    """One claimed execution: for whom its agent acts, and what is known of its session."""

    claim: Claim
    snapshot: Snapshot
    execution: Execution
    delegation: Delegation
    known: Transcript | None

    @property
    def run(self) -> Run:
        return self.snapshot.run

    @property
    def agent(self) -> Principal:
        return Principal(Source.SYSTEM, self.execution.agent, PrincipalKind.AGENT)

    @property
    def delegating(self) -> str:
        return Principal(Source.HOST, self.delegation.delegating, PrincipalKind.AGENT).key


class Sessions:
    """Carries out executions that belong to agents of the registry."""

    def __init__(
        self,
        workbench: Workbench,
        runs: Runs,
        store: Store,
        clock: Clock,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._workbench = workbench
        self._runs = runs
        self._store = store
        self._clock = clock
        self._ledger = StoreLedger(store)
        self._stopping = stopping

    async def carry_out(self, claim: Claim, snapshot: Snapshot, execution: Execution) -> None:
        """Bring an execution to its end or to its next question."""
        if self._stopping():
            raise PutDown
        run = snapshot.run
        known = await self._store.read(lambda reader: reader.session(run.id, execution.id))
        work = _Work(claim, snapshot, execution, await self._delegation(run, execution), known)
        if known is not None and known.session.state.final:
            # It ended before, and its process with it: what is left is to tell the result.
            row = known.session
            await self._finish(work, Ending(row.state, row.output, row.reason))
            return
        try:
            ending = await self._session(work)
        except NotAssembled as error:
            ending = await self._closed(work, SessionState.REFUSED, str(error))
        # It must not come back for ever, because each further try asks the model again.
        except Exception as error:  # it is logged, and ends the session
            if claim.attempts < _FAULTS or _is_told(error):
                raise
            _log.exception("the session of %s in run %s met a fault again", execution.id, run.id)
            reason = f"it met a fault {claim.attempts} times ({type(error).__name__}), which the server's log tells"
            ending = await self._closed(work, SessionState.FAILED, reason)
        if ending.state is not SessionState.PARKED:
            await self._finish(work, ending)

    async def _closed(self, work: _Work, state: SessionState, reason: str) -> Ending:
        """End a session that cannot go on, from where its rows stand."""
        known = await self._store.read(lambda reader: reader.session(work.run.id, work.execution.id))
        journal = await Journal.open(self._store, self._clock, self._row(work), known)
        await journal.settle("its process ended while it ran")
        await journal.write(head={"state": state, "reason": reason})
        return Ending(state, reason=reason)

    def _opened(self, work: _Work) -> AbstractAsyncContextManager[tuple[Contract, Connections]]:
        run, recorded = work.run, None
        brief = brief_of(work.snapshot.sop, run, work.execution)
        if work.known is not None:
            recorded = work.known.session.contract
            if why := unreadable(work.known.messages):
                raise NotAssembled(work.execution.agent, [Reason(Cause.UNREADABLE, why, "start the step anew")])
        if recorded is not None:
            # A session goes on with the step as it was shown to it, whatever happened beside it since.
            brief = StepBrief(_shown(recorded, brief.text), brief.scope, brief.output_schema)
        return self._workbench.opened(
            work.execution.agent,
            surface=Surface(run.starter, run.can_ask, run.route, ceiling=run.ceiling),
            ceiling=Ceiling(run.ceiling, run.reach),
            step=brief,
            delegation=work.delegation,
            recorded=recorded,
        )

    async def _session(self, work: _Work) -> Ending:
        async with self._opened(work) as (contract, connections):
            model = self._workbench.model(contract)
            await self._begin(work, contract)
            row = altered(
                self._row(work),
                contract=contract.record(),
                contract_digest=contract.digest,
                runner=contract.runner,
                scripted=contract.provider.scripted,
            )
            journal = await Journal.open(self._store, self._clock, row, work.known, self._stopping)
            limits = Limits(contract, journal, self._ledger, self._clock)
            turns = Turns(contract, journal, model, limits, self._clock)
            questions = Questions(contract.actor, await self._gates(work.run.id, work.execution.id))
            calls = ToolCalls(contract, journal, connections, self._ledger, self._clock, questions)
            ending = await Session(contract, journal, turns, calls, limits, self._clock).carry_out()
        await journal.write(head={"state": ending.state, "reason": ending.reason, "output": ending.output})
        if ending.questions:
            await self._ask(work, contract, ending)
        return ending

    async def _begin(self, work: _Work, contract: Contract) -> None:
        acting = m.Acting(
            agent=contract.actor.acting,
            delegating=contract.actor.delegating,
            depth=contract.actor.depth,
            contract=contract.digest,
            scripted=contract.provider.scripted,
        )
        command = m.Begin(work.execution.id, work.claim.fence, repeatable=True, acting=acting)
        await self._runs.command(work.run.id, command, work.agent, delegating=work.delegating)

    async def _ask(self, work: _Work, contract: Contract, ending: Ending) -> None:
        """Put all questions at once, so that a crash leaves either every one of them or none."""
        approvals = contract.approvals
        first, *further = [
            m.Ask(
                work.execution.id,
                work.claim.fence,
                question.call.key,
                question.kind,
                question.why,
                question.content,
                approvals.policy,
                approvals.timeout_s,
            )
            for question in ending.questions
        ]
        await self._runs.command(work.run.id, first, work.agent, *further, delegating=work.delegating)

    async def _finish(self, work: _Work, ending: Ending) -> None:
        good = ending.state is SessionState.COMPLETED
        # Nobody acted where nobody could be assembled.
        actor = SYSTEM if ending.state is SessionState.REFUSED else work.agent
        reason = "" if good else f"agent {work.execution.agent!r} is {ending.state}: {ending.reason}"
        status = Phase.COMPLETED if good else Phase.FAILED
        command = m.Finish(work.execution.id, work.claim.fence, status, ending.output, reason, actor.key)
        await self._runs.command(work.run.id, command, actor, delegating=work.delegating)

    def _row(self, work: _Work) -> SessionRow:
        now, delegation = self._clock.now(), work.delegation
        return SessionRow(
            run_id=work.run.id,
            execution_id=work.execution.id,
            agent=work.execution.agent,
            delegating=delegation.delegating,
            root=delegation.root,
            depth=delegation.depth,
            runner=_RUNNER,
            fence=work.claim.fence,
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

    async def _gates(self, run_id: str, execution_id: str) -> tuple[Gate, ...]:
        """The questions that this session has asked, in order."""
        gates = await self._store.read(lambda reader: reader.gates(run_id))
        return tuple(gate for gate in gates if gate.execution == execution_id and gate.call)


def _is_told(error: Exception) -> bool:
    """True for a refusal or a conflict, which its caller knows what to do about, in a group of tasks as well."""
    return any(isinstance(one, ProcedoError) for one in causes(error))


def _shown(recorded: Json, otherwise: str) -> str:
    """The step as a recorded contract shows it; one of another form is refused by its comparison."""
    seed = recorded.get("seed") if isinstance(recorded, dict) else None
    context = seed.get("context") if isinstance(seed, dict) else None
    return context if isinstance(context, str) else otherwise
