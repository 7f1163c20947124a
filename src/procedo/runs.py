"""The verbs of a run. Every door calls these with its surface; each verb is one transaction.

The verbs hold no rule about runs: those are in `core`. What is here is which transaction a verb is,
whose call it was, and how long a caller waits for what happens behind it.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from procedo.config import Settings
from procedo.core import messages as m
from procedo.core.admission import admit
from procedo.core.altered import altered
from procedo.core.approval import repeated
from procedo.core.model import Json, Scope, Sop
from procedo.core.outputs import digest
from procedo.core.reach import admits_sop
from procedo.core.state import Execution, Parent, Phase, Principal, Run, Status, Verdict
from procedo.definitions import pinned_entry, sub_procedures
from procedo.errors import BadArgument, Conflict, NotFound, Refused
from procedo.intake import check_size, checked_inputs, key_of
from procedo.looking import Looking
from procedo.ports import Clock, Definition, Ids, Reader, Store, StoredKey, Writer
from procedo.references import gate_of
from procedo.sopfile.library import Entry, Library
from procedo.statefile import StateFiles
from procedo.successor import succession
from procedo.surface import History, Surface
from procedo.transition import SYSTEM, Outcome, Snapshot, Transitions
from procedo.waiting import Progress, wait_for

__all__ = ["History", "Runs", "Snapshot", "Surface"]

MAX_DEPTH: Final = 8
"""How deep sub-runs may nest."""
_REPORTABLE: Final = {"completed": Phase.COMPLETED, "failed": Phase.FAILED, "skipped": Phase.SKIPPED}


class Runs(Looking):
    """Start, report, decide, cancel, resume; looking is inherited."""

    def __init__(
        self,
        store: Store,
        library: Library,
        settings: Settings,
        transitions: Transitions,
        state_files: StateFiles,
        clock: Clock,
        ids: Ids,
    ) -> None:
        super().__init__(store, library, transitions)
        self._settings = settings
        self._state_files = state_files
        self._clock = clock
        self._ids = ids

    def over(self, store: Callable[[Store], Store], library: Callable[[Library], Library]) -> "Runs":
        """The same verbs over what one caller sees of store and library."""
        rest = (self._settings, self._transitions, self._state_files, self._clock, self._ids)
        return Runs(store(self._store), library(self._library), *rest)

    # --- starting ---------------------------------------------------------------------------------

    async def start(self, name: str, inputs: Json, surface: Surface, *, idempotency_key: str | None = None) -> Snapshot:
        """Start a run.

        With an idempotency key the same call again answers with the same run; other arguments conflict.
        Raises `NotFound`, `InvalidSop`, `BadArgument` (inputs), `Refused` (admission).
        """
        if not name.strip():
            raise BadArgument("missing_name", "The name of a procedure is missing.", "sop_list shows the names.")
        entry = self._library.get(name)
        stored = None
        if idempotency_key is not None:
            check_size("The inputs", inputs, self._settings.max_value_bytes)
            stored = StoredKey(surface.principal.key, idempotency_key, digest([name, inputs]), self._ids.run_id())
        return await self._start(entry, inputs, surface, stored, sub_procedures(self._library, entry.sop))

    async def start_child(self, above: Run, execution: Execution, name: str, scope: Scope) -> Snapshot:
        """Start the sub-run of an execution, once: the same execution again answers with the same run.

        It is of the version that was pinned when the run above began, and may do no more than that run and the step.
        """
        depth = 1 + (above.parent.depth if above.parent is not None else 0)
        if depth > MAX_DEPTH:
            message = f"{name!r} would be nested {depth} deep, the limit is {MAX_DEPTH}."
            raise Refused("too_deep", message, "Look for procedures that start each other.")
        if not admits_sop(above.reach, name):
            message = f"{name!r} is beyond the limits of whoever started the run or moved it on."
            raise Refused("beyond_reach", message, "Start it with credentials that reach all of its sub-procedures.")
        pinned = above.digest if name == above.sop else above.pins.get(name, "")
        definition = await self._store.read(lambda reader: reader.definition(pinned))
        if definition is None:
            raise NotFound("unknown_sop", f"The sub-procedure {name!r} was not pinned when the run started.")
        entry = pinned_entry(definition)
        stored = StoredKey(f"child:{above.id}", execution.id, digest(execution.input), self._ids.run_id())
        ceiling = above.ceiling if scope == Scope() else (*above.ceiling, scope)
        surface = Surface(above.starter, above.can_ask, above.route, ceiling=ceiling, reach=above.reach)
        pins = await self._pinned(above)
        return await self._start(entry, execution.input, surface, stored, pins, Parent(above.id, execution.id, depth))

    async def _pinned(self, above: Run) -> Mapping[str, Entry]:
        def work(reader: Reader) -> Mapping[str, Entry]:
            found = {name: reader.definition(pinned) for name, pinned in above.pins.items()}
            return {name: pinned_entry(one) for name, one in found.items() if one is not None}

        return await self._store.read(work)

    async def _start(
        self,
        entry: Entry,
        inputs: Json,
        surface: Surface,
        stored: StoredKey | None,
        pins: Mapping[str, Entry],
        parent: Parent | None = None,
    ) -> Snapshot:
        sop, by = self._compiled(entry), surface.principal
        value = checked_inputs(sop, inputs, self._settings.max_value_bytes)
        key = key_of(sop, value)
        run_id = stored.run_id if stored is not None else self._ids.run_id()
        command = m.Start(
            run_id=run_id,
            inputs=value,
            by=by,
            mode=sop.mode or self._settings.default_mode,
            host_agent=self._settings.host_agent,
            marker=self._ids.marker(),
            can_ask=surface.can_ask,
            route=surface.route,
            ceiling=surface.ceiling,
            reach=surface.reach,
            key=key,
            parent=parent,
            pins={name: pin.sop.digest for name, pin in pins.items() if pin.sop is not None},
        )

        def work(writer: Writer) -> Snapshot:
            if stored is not None and (known := writer.key(stored.scope, stored.key)) is not None:
                return self._started_before(writer, known, stored)
            now = self._clock.now()
            window = now - timedelta(seconds=sop.window_s) if sop.max_per_window else None
            live = admit(sop, writer.load(sop.name, key, window), self._settings.limits, now)
            if live is not None:
                return altered(self._look(writer, live), coalesced=True)
            for pinned in (entry, *pins.values()):
                if pinned.sop is not None:
                    writer.put_definition(Definition(pinned.sop.digest, pinned.sop.name, pinned.files))
            if stored is not None:
                writer.put_key(stored)
            return self._transitions.begin(writer, sop, command, by)

        return await self._published(await self._store.write(work))

    def _compiled(self, entry: Entry) -> Sop:
        sop = entry.sop
        if sop is None:
            raise NotFound("unknown_sop", f"{entry.name!r} cannot be started.")
        self._transitions.know(sop)
        return sop

    def _started_before(self, reader: Reader, known: StoredKey, asked: StoredKey) -> Snapshot:
        if known.digest != asked.digest:
            message = f"The idempotency key {asked.key!r} was used with other arguments, for run {known.run_id}."
            raise Conflict("key_reused", message, "Use a new key for a new start.")
        return altered(self._look(reader, known.run_id), replayed=True)

    # --- moving -----------------------------------------------------------------------------------

    async def advance(self, run_id: str, execution_id: str, status: str, output: Json, surface: Surface) -> Snapshot:
        """Report the result of an execution. The same report again is answered as before."""
        phase = _REPORTABLE.get(status)
        if phase is None:
            message = f"{status!r} is no status of a report."
            raise BadArgument("bad_status", message, "It is one of completed, failed, skipped.")
        check_size("The output", output, self._settings.max_value_bytes)
        command = m.Report(execution_id, phase, output, surface.principal, surface.reach)
        return await self.command(run_id, command, surface.principal)

    async def decide(
        self,
        reference: str,
        verdict: Verdict,
        surface: Surface,
        *,
        value: Json = None,
        comment: str = "",
        revision: int | None = None,
        digest: str | None = None,
        run_id: str | None = None,
        lasting: bool = False,
        break_glass: bool = False,
    ) -> Snapshot:
        """Answer at a gate, named by its id or short code. `run_id`, when given, must be the gate's own run.

        `break_glass`: alone, against group, quorum and roles of the policy; it takes that permission and a comment.
        """
        found = await self._store.read(lambda reader: gate_of(reader, reference))
        if run_id is not None and found.run_id != run_id:
            message = f"Gate {reference} does not belong to run {run_id}."
            raise Refused("other_run", message, "Name the gate together with its own run.")
        if value is not None:
            check_size("The value", value, self._settings.max_value_bytes)
        by, gate_id = surface.principal, found.gate.id
        seen = (revision, digest)
        command = m.Decide(gate_id, verdict, by, value, comment, *seen, lasting, break_glass, surface.reach)
        answered = await self.command(found.run_id, command, surface.principal)
        if answered.replayed:
            # Somebody may have answered since the gate was found above.
            gate = (await self._store.read(lambda reader: gate_of(reader, gate_id))).gate
            told = repeated(answered.policies.get(gate_id), gate, by, answered.run)
            answered = altered(answered, note=f"Gate {gate.code}: {told}.")
        return answered

    async def cancel(self, run_id: str, reason: str, surface: Surface) -> Snapshot:
        """End a run from any live state."""
        return await self.command(run_id, m.Cancel(reason, surface.principal), surface.principal)

    async def hold(self, run_id: str, reason: str, surface: Surface) -> Snapshot:
        """Pause a run at its next step boundary."""
        return await self.command(run_id, m.Hold(surface.principal, reason), surface.principal)

    async def resume(self, run_id: str, surface: Surface, *, retry: int | None = None) -> Snapshot:
        """Take a run up again: end its pause, let time act, and hand its open work out once more.

        `retry` names a step to run again that failed or cannot be reached. For a run that has failed this
        starts a successor with the outputs so far, since a final run never moves.
        """
        state = await self.state(run_id, surface)
        if retry is not None and state.run.status is Status.FAILED:
            return await self._succeed(run_id, retry, surface)
        if retry is not None:
            return await self.command(run_id, m.Reopen(retry, surface.principal, surface.reach), surface.principal)
        if state.run.pause is not None:
            return await self.command(run_id, m.Release(surface.principal, surface.reach), surface.principal)
        return state

    async def _succeed(self, run_id: str, step: int, surface: Surface) -> Snapshot:
        by = surface.principal

        def work(writer: Writer) -> Snapshot:
            sop, failed = self._transitions.load(writer, run_id)
            key = StoredKey(f"retry:{run_id}", str(step), "", self._ids.run_id())
            if (known := writer.key(key.scope, key.key)) is not None:
                return altered(self._look(writer, known.run_id), replayed=True)
            begin_at, adopted = succession(failed, writer.executions(run_id), writer.gates(run_id), step)
            load = writer.load(sop.name, failed.key, None)
            live = admit(altered(sop, cooldown_s=0.0), load, self._settings.limits, self._clock.now())
            if live is not None:
                return altered(self._look(writer, live), coalesced=True)
            writer.put_key(key)
            command = m.Start(
                run_id=key.run_id,
                inputs=failed.inputs,
                by=by,
                mode=failed.mode,
                host_agent=failed.host_agent,
                marker=self._ids.marker(),
                can_ask=failed.can_ask,
                route=failed.route,
                ceiling=failed.ceiling,
                reach=(*failed.reach, *surface.reach),
                key=failed.key,
                retry_of=failed.id,
                pins=failed.pins,
                adopted=adopted,
                begin_at=begin_at,
            )
            return self._transitions.begin(writer, sop, command, by)

        return await self._published(await self._store.write(work))

    async def adopt(self, snapshot: Json, surface: Surface) -> Snapshot:
        """Take a parked run over from a state file. Refuses a changed file, and a run that has moved on."""
        run_id = await self._store.write(lambda w: self._transitions.adopted(w, *self._state_files.adopt(w, snapshot)))
        return await self.state(run_id, surface)

    async def command(
        self,
        run_id: str,
        command: m.Command,
        by: Principal = SYSTEM,
        *further: m.Command,
        delegating: str | None = None,
    ) -> Snapshot:
        """Apply a command, and `further` ones behind it, in one transaction. Raises what it was refused with.

        `delegating` is the principal key of whom `by` acts for; None: whoever started the run.
        """

        def work(writer: Writer) -> Outcome:
            outcome = self._transitions.apply(writer, run_id, command, by, delegating)
            for one in further:
                if outcome.refusal is None:
                    outcome = self._transitions.apply(writer, run_id, one, by, delegating)
            return outcome

        outcome = await self._store.write(work)
        if outcome.snapshot is not None:
            published = await self._published(outcome.snapshot)
            outcome = Outcome(published, outcome.refusal)
        return outcome.answer()

    # --- looking ----------------------------------------------------------------------------------

    async def state(self, run_id: str, surface: Surface) -> Snapshot:  # noqa: ARG002  # every door says who looks
        """A run as it is now; time acts first."""
        snapshot = await self.look(run_id)
        due_at = snapshot.run.due_at
        if due_at is not None and due_at <= self._clock.now():
            snapshot = await self.command(run_id, m.Tick())
        return await self._published(altered(snapshot, replayed=False))

    async def wait(
        self,
        run_id: str,
        surface: Surface,
        wait_s: float,
        progress: Progress | None = None,
        *,
        past: int | None = None,
    ) -> Snapshot:
        """Wait until the run ends or somebody outside the server has something to do, at most `wait_s` seconds.

        With `past` it waits, also at a gate, until the run's revision is greater than that.
        """

        async def look() -> Snapshot:
            return await self.state(run_id, surface)

        return await wait_for(look, self._store, self._clock, wait_s, progress, past)

    async def _published(self, snapshot: Snapshot) -> Snapshot:
        files = await self._state_files.publish(snapshot.run)
        return altered(snapshot, state_files=files) if files else snapshot
