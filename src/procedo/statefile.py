"""Portable snapshots of runs that are parked at a checkpoint.

A state file holds the definitions and the whole record of a run. Adopting it replays the record into
another store, transition by transition; the hash at the end must be the one in the file, so a file of
which anything was changed is refused. The file shows that nothing was altered by accident or in part; it
does not prove who made it, so adopting is a person's act. Files exist only while the checkpoint is open.
"""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Final

from procedo.core.altered import altered
from procedo.core.evolve import evolve
from procedo.core.messages import Event
from procedo.core.model import Json
from procedo.core.state import GateKind, Run
from procedo.errors import BadArgument, Refused
from procedo.ports import Attribution, Definition, Reader, Record, Store, Writer

__all__ = ["FORMAT", "StateFiles"]

FORMAT: Final = 1


class StateFiles:
    """Writes, removes and adopts state files.

    `decode` makes an event of its kind and data in the record; `check` raises for a definition that is not what its
    digest says, or that cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        store: Store,
        decode: Callable[[str, Json], Event],
        check: Callable[[Definition], None],
    ) -> None:
        self._folder = folder
        self._store = store
        self._decode = decode
        self._check = check
        self._written: dict[str, int] = {}

    async def publish(self, run: Run) -> Mapping[str, str]:
        """Bring the file of a run up to date; returns the path for each open checkpoint gate."""
        if not run.gate_count:
            return {}  # a run without any gate never had a file, and most calls are about such runs
        path = self._folder / f"{run.id}.json"
        gates = [gate for gate in run.open_gates if gate.kind is GateKind.CHECKPOINT]
        if not gates:
            self._written.pop(run.id, None)
            path.unlink(missing_ok=True)
            return {}
        if self._written.get(run.id) != run.revision or not path.exists():
            content = await self._store.read(lambda reader: export(reader, run))
            _write(path, json.dumps(content, ensure_ascii=False, separators=(",", ":")))
            self._written[run.id] = run.revision
        return {gate.id: str(path) for gate in gates}

    def adopt(self, writer: Writer, content: Json) -> tuple[Run | None, str]:
        """Replay a state file into the store; returns the run, None when it is here already, and its id.

        Raises `BadArgument` for what is no state file, `Refused` for a changed one and for a run that this
        store knows at another revision.
        """
        run_id, head_hash, records = _read(content)
        known = writer.run(run_id)
        if known is not None:
            if known.head_hash == head_hash:
                return None, run_id
            message = f"Run {run_id} has moved on: it is at revision {known.revision} and {known.status} here."
            raise Refused("moved_on", message, "Use the run as it is; the file is older or of another branch.")
        for definition in _definitions(content):
            self._check(definition)
            writer.put_definition(definition)
        run = self._replay(writer, records)
        if run.head_hash != head_hash:
            raise Refused(
                "changed_file", f"The state file of run {run_id} was changed.", "Use the file as it was written."
            )
        if any(writer.definition(pinned) is None for pinned in (run.digest, *run.pins.values())):
            raise Refused(
                "changed_file", "The state file lacks a definition of its run.", "Use the file as it was written."
            )
        return run, run_id

    def _replay(self, writer: Writer, records: list[Record]) -> Run:
        run: Run | None = None
        for revision, group in groupby(records, key=lambda record: record.revision):
            before, batch = run, list(group)
            events = [self._decode(record.kind, record.data) for record in batch]
            for event in events:
                run = evolve(run, event, batch[0].at)
            if run is None or run.id != batch[0].run_id:
                raise Refused("changed_file", "The record in the state file belongs to another run.")
            who = Attribution(batch[0].acting, batch[0].delegating, batch[0].root)
            run = writer.save(before, altered(run, revision=revision), events, who, batch[0].at)
        if run is None:
            raise BadArgument("no_state_file", "The state file holds no record.")
        return run


def export(reader: Reader, run: Run) -> Json:
    """The content of a state file."""
    digests = [run.digest, *run.pins.values()]
    definitions = [found for found in map(reader.definition, digests) if found is not None]
    return {
        "format": FORMAT,
        "run_id": run.id,
        "sop": run.sop,
        "revision": run.revision,
        "head_hash": run.head_hash,
        "definitions": [{"digest": d.digest, "name": d.name, "files": dict(d.files)} for d in definitions],
        "records": [_encoded(record) for record in reader.records(run.id)],
    }


def _definitions(content: Json) -> list[Definition]:
    try:
        found = content["definitions"]
        return [Definition(str(one["digest"]), str(one["name"]), dict(one["files"])) for one in found]
    except (KeyError, TypeError, ValueError) as error:
        raise BadArgument("no_state_file", f"The state file holds no definitions: {error!r}.") from error


def _encoded(record: Record) -> Json:
    return {
        "seq": record.seq,
        "revision": record.revision,
        "at": record.at.isoformat(),
        "kind": record.kind,
        "data": record.data,
        "acting": record.acting,
        "delegating": record.delegating,
        "root": record.root,
        "execution_id": record.execution_id,
        "hash": record.hash,
    }


def _read(content: Json) -> tuple[str, str, list[Record]]:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BadArgument("no_state_file", "This is no state file of a run, or one of another version.")
    try:
        run_id, head_hash = str(content["run_id"]), str(content["head_hash"])
        fields = [
            {**entry, "at": datetime.fromisoformat(entry["at"]), "run_id": run_id} for entry in content["records"]
        ]
        records = [Record(**entry) for entry in fields]
    except (KeyError, TypeError, ValueError) as error:
        raise BadArgument("no_state_file", f"The state file cannot be read: {error!r}.") from error
    return run_id, head_hash, records


def _write(path: Path, text: str) -> None:
    """Atomic, and readable by its owner only: the file appears whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
