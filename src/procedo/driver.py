"""Performs effects: capabilities, verifications, sub-runs, the passing of time. Called by a carrier's worker.

Whatever happens here comes back as a command with the claim's fence, so a worker that lost its claim
changes nothing. A job that finds its work done already has nothing to do. A side effect is recorded as
started before it happens; the engine then knows an interrupted one from one that never began.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeAlias

import anyio

from procedo.core import messages as m
from procedo.core.altered import altered
from procedo.core.bindings import MissingValue, resolve
from procedo.core.draft import scope_of
from procedo.core.effects import EffectKind
from procedo.core.model import Json, Step, Verify
from procedo.core.state import Execution, Performer, Phase, Run, Status
from procedo.errors import Conflict, InvalidSop, NotFound, ProcedoError, Refused
from procedo.ports import Capabilities, Capability, CapabilityCall, Claim, Job, OutcomeUnknown, Store
from procedo.runs import Runs
from procedo.transition import SYSTEM, Snapshot

__all__ = ["Delegate", "Driver"]

_WATCH_S: Final = 2.0
"""How often a running capability looks whether its execution is still wanted, if no commit wakes it, in seconds."""
_TRY_LATER: Final = frozenset({"deferred", "key_in_use", "not_delivered", "put_down", "window_used_up"})

_CLAIMS: Final = 1 << 20
"""More claims than one job ever gets."""

Delegate: TypeAlias = Callable[[Claim, Snapshot, Execution], Coroutine[Any, Any, None]]
"""Brings an execution of an agent to its end or to its next question; raises what it was refused with."""


class Driver:
    """Carries out one claim at a time; knows of no loop."""

    def __init__(
        self,
        runs: Runs,
        store: Store,
        capabilities: Capabilities,
        delegate: Delegate | None = None,
        tell: Callable[[Claim], Awaitable[None]] | None = None,
    ) -> None:
        self._runs = runs
        self._store = store
        self._capabilities = capabilities
        self._delegate = delegate
        self._handlers: dict[str, Callable[[Claim], Awaitable[None]]] = {
            EffectKind.PERFORM: self._perform,
            EffectKind.VERIFY: self._verify,
            EffectKind.TICK: self._tick,
            EffectKind.SLOTS: self._wake_waiters,
            EffectKind.REPORT: self._report_to_parent,
            EffectKind.CHILDREN: self._cancel_children,
        }
        if tell is not None:
            self._handlers[EffectKind.NOTICE] = tell

    async def perform(self, claim: Claim) -> None:
        """Do what a job asks for. Raises `Refused` when it should be tried again later."""
        try:
            await self._handlers[claim.job.kind](_ranked(claim))
        except (NotFound, Conflict):
            # The run was pruned, the execution is closed, or a newer claim has it: nothing is left to do here.
            return
        except Refused as error:
            if error.code in _TRY_LATER:
                raise

    async def _look(self, job: Job) -> tuple[Snapshot, Execution] | None:
        """The execution of a job, when its work is still to be done."""
        snapshot = await self._runs.look(job.run_id)
        execution = snapshot.run.executions.get(job.subject)
        if execution is None or execution.phase.closed or execution.phase is Phase.HALTED:
            return None
        return snapshot, execution

    async def _perform(self, claim: Claim) -> None:
        found = await self._look(claim.job)
        if found is None:
            return
        snapshot, execution = found
        if execution.performer is Performer.CHILD:
            await self._start_child(snapshot.run, execution, snapshot.sop.by_number[execution.step])
        elif execution.performer is Performer.AGENT and self._delegate is not None:
            await self._while_wanted(claim.job, self._delegate(claim, snapshot, execution))
        elif execution.performer is Performer.AGENT:
            reason = f"agent {execution.agent!r} cannot be assembled: this server has no agent of that name"
            await self._finish(claim, Phase.FAILED, None, reason)
        elif execution.phase is Phase.OPEN:
            await self._call(claim, execution, snapshot.sop.by_number[execution.step])

    async def _call(self, claim: Claim, execution: Execution, step: Step) -> None:
        capability = self._capabilities.get(step.capability or "")
        if capability is None or capability.objection is not None:
            why = capability.objection if capability is not None else "there is no such capability"
            await self._finish(claim, Phase.FAILED, None, f"capability {step.capability!r} cannot be used: {why}")
            return
        if not capability.pure:
            repeatable = capability.repeatable(execution.input)
            begun = await self._runs.command(claim.job.run_id, m.Begin(execution.id, claim.fence, repeatable))
            now = begun.run.executions.get(execution.id)
            if now is None or now.phase is not Phase.OPEN:
                return
        effect = f"{claim.job.run_id}:{execution.id}"
        call = CapabilityCall(execution.input, claim.job.run_id, execution.id, effect)
        await self._watched(claim, capability, call)

    async def _watched(self, claim: Claim, capability: Capability, call: CapabilityCall) -> None:
        """Run a capability and tell its result, unless its execution is no longer wanted by then."""

        async def work() -> None:
            status, output, reason = Phase.FAILED, None, ""
            try:
                output = await capability.run(call)
                status = Phase.COMPLETED
            except OutcomeUnknown as error:
                status, reason = Phase.HALTED, str(error)
            except (Refused, ValueError, OSError) as error:
                reason = str(error)
            await self._finish(claim, status, output, reason)

        await self._while_wanted(claim.job, work())

    async def _while_wanted(self, job: Job, work: Coroutine[Any, Any, None]) -> None:
        """Do the work of an execution, and stop it when the execution is closed by others (cancelled, timed out)."""
        refusal: ProcedoError | None = None

        async def do() -> None:
            nonlocal refusal
            try:
                await work
            # It leaves as itself below, not inside the group's own error.
            except ProcedoError as error:
                refusal = error
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(self._stop_when_closed, job, group.cancel_scope)
            group.start_soon(do)
        if refusal is not None:
            raise refusal

    async def _stop_when_closed(self, job: Job, scope: anyio.CancelScope) -> None:
        while await self._wanted(job):
            await self._store.changed(_WATCH_S)
        scope.cancel()

    async def _wanted(self, job: Job) -> bool:
        """False when the execution is closed, or when a person has to decide about it first.

        A session that has asked about its own calls is halted by itself, and comes to its end.
        """
        run = (await self._runs.look(job.run_id)).run
        execution = run.executions.get(job.subject)
        if execution is None or execution.phase.closed:
            return False
        if execution.phase is not Phase.HALTED:
            return True
        asked = [gate for gate in run.open_gates if gate.execution == execution.id]
        return execution.performer is Performer.AGENT and all(gate.call for gate in asked)

    async def _finish(self, claim: Claim, status: Phase, output: Json, reason: str) -> None:
        command = m.Finish(claim.job.subject, claim.fence, status, output, reason)
        await self._runs.command(claim.job.run_id, command)

    async def _start_child(self, run: Run, execution: Execution, step: Step) -> None:
        name = step.sub_sop or ""
        try:
            await self._runs.start_child(run, execution, name, step.scope)
        except (Refused, InvalidSop) as error:
            if error.code in _TRY_LATER:
                raise
            reason = f"sub-procedure {name!r} was not started: {error}"
            await self._runs.command(run.id, m.Finish(execution.id, execution.fence, Phase.FAILED, None, reason))

    async def _verify(self, claim: Claim) -> None:
        found = await self._look(claim.job)
        if found is None or found[1].phase is not Phase.VERIFYING:
            return
        snapshot, execution = found
        verify = snapshot.sop.by_number[execution.step].verify
        if verify is None:
            return
        verdict, reason = await self._verdict(snapshot.run, execution, verify)
        await self._runs.command(claim.job.run_id, m.Judge(execution.id, verdict, reason))

    async def _verdict(self, run: Run, execution: Execution, verify: Verify) -> tuple[str, str]:
        capability = self._capabilities.get(verify.capability or "")
        if capability is None or capability.objection is not None:
            return "cannot_evaluate", f"capability {verify.capability!r} cannot be used"
        try:
            authored = resolve(verify.arguments, {**scope_of(run, execution.arrival), "output": execution.claimed})
            arguments = {"output": execution.claimed, "input": execution.claimed}
            if isinstance(authored, dict):
                arguments |= authored
            effect = f"{run.id}:{execution.id}:verify"
            result = await capability.run(CapabilityCall(arguments, run.id, execution.id, effect))
        except (OutcomeUnknown, MissingValue, OSError) as error:
            return "cannot_evaluate", str(error)
        except (Refused, ValueError) as error:
            return "fail", f"verification failed: {error}"
        told = result if isinstance(result, dict) else {}
        return str(told.get("verdict", "pass")), str(told.get("reason", ""))

    async def _tick(self, claim: Claim) -> None:
        await self._runs.command(claim.job.run_id, m.Tick())

    async def _wake_waiters(self, _claim: Claim) -> None:
        for run_id in await self._store.read(lambda reader: reader.slot_waiters()):
            await self._runs.command(run_id, m.Tick())

    async def _report_to_parent(self, claim: Claim) -> None:
        child = (await self._runs.look(claim.job.run_id)).run
        if child.end is None or child.parent is None:
            return
        good = child.end.status is Status.COMPLETED
        reason = "" if good else f"sub-run {child.id} is {child.end.status}: {child.end.reason}"
        status = Phase.COMPLETED if good else Phase.FAILED
        # Whoever moved the sub-run on had a hand in what comes of it here.
        command = m.Finish(child.parent.execution, claim.fence, status, child.end.output, reason, reach=child.reach)
        await self._runs.command(child.parent.run, command)

    async def _cancel_children(self, claim: Claim) -> None:
        parent = (await self._runs.look(claim.job.run_id)).run
        wanted = {e.id for e in parent.open_executions}
        for child in await self._store.read(lambda reader: reader.children(claim.job.run_id)):
            if child.status.final:
                continue
            run = (await self._runs.look(child.run_id)).run
            if run.parent is not None and run.parent.execution not in wanted:
                reason = f"execution {run.parent.execution} of its parent {parent.id} is closed"
                await self._runs.command(child.run_id, m.Cancel(reason, SYSTEM))


def _ranked(claim: Claim) -> Claim:
    """The claim with a fence that is newer than that of any claim on an earlier job for the same execution."""
    if claim.job.kind != EffectKind.PERFORM:
        return claim
    return altered(claim, fence=claim.job.payload * _CLAIMS + claim.fence)
