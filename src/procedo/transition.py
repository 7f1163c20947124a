"""One transition inside one transaction: load, decide, save, hand over the effects. Synchronous.

Nothing else in the project writes a run. Time acts first: a deadline that has passed is applied before
the command is looked at, and stays applied when the command is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct, field

from procedo.config import Settings
from procedo.core import messages as m
from procedo.core.actions import actions
from procedo.core.admission import Load, slot_objection
from procedo.core.altered import altered
from procedo.core.approval import Policy, objection
from procedo.core.draft import Draft, Moment
from procedo.core.effects import Effect, EffectKind, effects, standing
from procedo.core.evolve import FreshSteps
from procedo.core.machine import drafted
from procedo.core.model import Sop
from procedo.core.needs import executions_needed, steps_needed
from procedo.core.notice import Telling
from procedo.core.session import SessionRow
from procedo.core.state import Performer, Principal, PrincipalKind, Run, Source
from procedo.errors import NotFound, Refused, StoreError
from procedo.ports import Attribution, Carrier, Definition, Job, OpenGate, Reader, Writer

__all__ = ["SYSTEM", "Outcome", "Snapshot", "Transitions"]

SYSTEM: Final = Principal(Source.SYSTEM, "procedo", PrincipalKind.SYSTEM)


class Snapshot(Struct, frozen=True):
    """A run as every call answers with it. `policies` tells by gate id who may decide; an unknown policy is absent.

    `children` are sub-runs at work. `note` says what a repeated call found done already. `tellings` say what became
    of telling people about the run's gates. `sessions` are those of its agents and of its sub-runs', where they were
    asked for (`Runs.accounted`).
    """

    sop: Sop
    run: Run
    actions: tuple[m.Action, ...]
    policies: Mapping[str, Policy]
    children: tuple["Snapshot", ...] = ()
    replayed: bool = False
    coalesced: bool = False
    note: str = ""
    state_files: Mapping[str, str] = field(default_factory=dict)
    tellings: tuple[Telling, ...] = ()
    sessions: tuple[SessionRow, ...] = ()


class Outcome(Struct, frozen=True):
    """What became of a command: the run as it is now, and whether anything happened; or why it was refused.

    A refusal is a value here, so that the transaction commits what time has done before it.
    """

    snapshot: Snapshot | None
    refusal: Refused | None = None

    def answer(self) -> Snapshot:
        """The snapshot. Raises the refusal."""
        if self.refusal is not None:
            raise self.refusal
        if self.snapshot is None:
            raise StoreError("no_answer", "The transition gave no answer.")
        return self.snapshot


class Transitions:
    """Applies commands to stored runs. Compiled procedures are kept by digest; they never change."""

    def __init__(
        self,
        settings: Settings,
        carrier: Carrier,
        now: Callable[[], datetime],
        compile_definition: Callable[[Definition], Sop],
    ) -> None:
        self._settings = settings
        self._carrier = carrier
        self._now = now
        self._compile = compile_definition
        self._sops: dict[str, Sop] = {}

    def sop(self, reader: Reader, digest: str) -> Sop:
        """The pinned procedure with that digest. Raises `StoreError` when the store lost it."""
        known = self._sops.get(digest)
        if known is None:
            definition = reader.definition(digest)
            if definition is None:
                raise StoreError("definition_lost", f"The definition {digest} is not in the store.")
            known = self._sops[digest] = self._compile(definition)
        return known

    def know(self, sop: Sop) -> None:
        """Keep a procedure that was compiled elsewhere."""
        self._sops.setdefault(sop.digest, sop)

    def load(self, reader: Reader, run_id: str, command: m.Command | None = None) -> tuple[Sop, Run]:
        """A run with all that the command, or showing it, can need. Raises `NotFound`."""
        run = reader.run(run_id)
        if run is None:
            raise NotFound("unknown_run", f"There is no run {run_id!r}.", "sop_status without run_id lists the runs.")
        sop = self.sop(reader, run.digest)
        return sop, self.completed(reader, sop, run, command)

    def completed(self, reader: Reader, sop: Sop, run: Run, command: m.Command | None = None) -> Run:
        """The run with the step states and executions that it lacks for the command, or for being shown."""
        if run.end is not None and command is None:
            return run
        if not isinstance(run.steps, FreshSteps):
            missing = steps_needed(sop, run, command) - run.steps.keys()
            if missing:
                run = reader.with_steps(run, missing)
        wanted = executions_needed(run, command)
        if wanted:
            run = reader.with_executions(run, wanted)
            # What was loaded may itself need the executions that its input came from.
            if further := executions_needed(run, command) - wanted:
                run = reader.with_executions(run, further)
        if isinstance(command, m.Decide):
            run = reader.with_gate(run, command.gate_id)
        elif isinstance(command, m.Ask):
            for gate in reader.gates(run.id):
                if (gate.execution, gate.call) == (command.execution_id, command.call):
                    run = reader.with_gate(run, gate.id)
        return run

    def apply(
        self, writer: Writer, run_id: str, command: m.Command, by: Principal, delegating: str | None = None
    ) -> Outcome:
        """Decide about a command and commit what follows from it.

        `delegating` is the principal key of whom `by` acts for; None: whoever started the run.
        """
        try:
            sop, run = self.load(writer, run_id, command)
        except NotFound as error:
            return Outcome(None, error)
        if run.due_at is not None and run.due_at <= self._now() and not isinstance(command, m.Tick):
            self._commit(writer, sop, run, m.Tick(), SYSTEM)
            sop, run = self.load(writer, run_id, command)
        try:
            after = self._commit(writer, sop, run, command, by, delegating)
        except Refused as error:
            return Outcome(self.snapshot(writer, sop, run), error)
        return Outcome(altered(self.snapshot(writer, sop, after), replayed=after is run))

    def begin(self, writer: Writer, sop: Sop, command: m.Start, by: Principal) -> Snapshot:
        """Commit the start of a run that was admitted in this transaction."""
        moment = self._moment_of(None)
        command = altered(command, lineage=self._lineage(writer, command))
        after = self._save(writer, None, drafted(sop, None, command, moment), by, command)
        return self.snapshot(writer, sop, after)

    def _commit(
        self,
        writer: Writer,
        sop: Sop,
        run: Run,
        command: m.Command,
        by: Principal,
        delegating: str | None = None,
    ) -> Run:
        draft = drafted(sop, run, command, self._moment(writer, sop, run))
        if not draft.events:
            return run
        return self._save(writer, run, draft, by, command, delegating)

    def _moment(self, writer: Writer, sop: Sop, run: Run) -> Moment:
        slot = None
        if not run.holds_slot and run.end is None:
            load = writer.load(sop.name, None, None)
            slot = slot_objection(sop, load, self._settings.limits)
            if slot is not None and run.starter.source is Source.HTTP:
                # The reason is kept with the run, whose owner reads it and may know of their own runs alone.
                load = altered(load, foreign=_of_others(writer, load, run))
                slot = slot_objection(sop, load, self._settings.limits)
        return self._moment_of(slot)

    def _moment_of(self, slot: str | None) -> Moment:
        one = self._settings
        return Moment(self._now(), one.limits, one.policies, one.default_policy, slot, one.break_glass)

    @staticmethod
    def _lineage(reader: Reader, command: m.Start) -> frozenset[str]:
        """The principal keys of everybody who acted in the runs that a new one comes from."""
        origin = command.parent.run if command.parent is not None else command.retry_of
        before = None if origin is None else reader.run(origin)
        return frozenset() if before is None else before.lineage | before.executors | {before.starter.key}

    def _save(
        self,
        writer: Writer,
        before: Run | None,
        draft: Draft,
        by: Principal,
        command: m.Command,
        delegating: str | None = None,
    ) -> Run:
        events, now = draft.events, draft.moment.now
        after = altered(draft.run, revision=draft.run.revision + 1)
        root = after.starter.key
        who = Attribution(by.key, delegating or root, root, type(command).__name__)
        saved = writer.save(before, after, events, who, now)
        _end_sessions(writer, before, after, now)
        self.emit(writer, effects(before, saved, events), saved)
        return saved

    def adopted(self, writer: Writer, run: Run | None, run_id: str) -> str:
        """Let a run that was just taken over from elsewhere (None: it was here before) go on here; gives its id."""
        if run is not None:
            self.emit(writer, standing(run), run)
        return run_id

    def emit(self, writer: Writer, found: Sequence[Effect], run: Run) -> None:
        """Hand effects to the carrier. A freed slot wakes somebody only if somebody waits."""
        jobs: list[Job] = []
        for e in found:
            if e.kind is EffectKind.NOTICE:
                jobs += self._tellings(e, run)
            elif e.kind is not EffectKind.SLOTS or writer.slot_waiters():
                jobs.append(Job(e.id, e.kind.value, run.id, e.subject, e.due_at, e.rank or None))
        if jobs:
            self._carrier.emit(writer, jobs)

    def _tellings(self, effect: Effect, run: Run) -> list[Job]:
        """One job for each route, so that a route that fails holds up no other."""
        if effect.occasion is None:
            return []
        gate = run.gates[effect.subject]
        routes = self._settings.notices.routing.routes(effect.occasion, gate, self.policy(gate.policy))
        payload = {"occasion": effect.occasion.value, "revision": gate.revision}
        return [
            Job(f"{effect.id}:{route}", effect.kind.value, run.id, gate.id, payload={**payload, "route": route})
            for route in routes
        ]

    def policy(self, name: str | None) -> Policy | None:
        """The policy of that name as it is configured now; None when it is missing."""
        return self._moment_of(None).policy(name)

    def may_decide(self, reader: Reader, found: OpenGate, principal: Principal) -> bool:
        """True when the principal may answer at a gate under the policy that it asks for."""
        run, policy = reader.run(found.run_id), self.policy(found.gate.policy)
        return run is not None and policy is not None and objection(policy, principal, run) is None

    def snapshot(self, reader: Reader, sop: Sop, run: Run) -> Snapshot:
        """A run as it is answered with."""
        run = self.completed(reader, sop, run)
        found = {gate.id: self.policy(gate.policy) for gate in run.open_gates}
        policies = {gate_id: policy for gate_id, policy in found.items() if policy is not None}
        children = []
        if any(e.performer.value == "child" for e in run.open_executions):
            for summary in reader.children(run.id):
                if not summary.status.final:
                    children.append(self.snapshot(reader, *self.load(reader, summary.run_id)))
        told = reader.tellings(run.id) if found and self._settings.notices.routes else ()
        return Snapshot(sop, run, actions(sop, run), policies, tuple(children), tellings=told)


def _of_others(reader: Reader, load: Load, run: Run) -> frozenset[str]:
    """The runs that take the slots and were not begun by whoever began this one."""
    found = {run_id: reader.run(run_id) for run_id in (*load.executing, *load.executing_total)}
    return frozenset(run_id for run_id, other in found.items() if other is None or other.starter.key != run.starter.key)


def _end_sessions(writer: Writer, before: Run | None, after: Run, now: datetime) -> None:
    """End the sessions whose executions were closed by others: nobody writes to them any more, wherever they work."""
    still_open = {execution.id for execution in after.open_executions}
    for execution in () if before is None else before.open_executions:
        if execution.performer is Performer.AGENT and execution.id not in still_open:
            closed = after.executions.get(execution.id)
            reason = closed.closing.reason if closed is not None and closed.closing is not None else ""
            writer.end_session(after.id, execution.id, reason, now)
