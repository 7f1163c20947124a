"""The file of the SQLite store: who may open it, what it refuses, how little is written and read."""

# ruff: noqa: ASYNC240  # a test may touch its own small files while nothing else goes on
# ruff: noqa: S608  # the statements are made of names in this file

import os
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from engine import IDA, NOW, plain, sop
from stored import advance, apply, begin, started

import procedo.stores
from procedo.core import messages as m
from procedo.errors import StoreError
from procedo.stores.connection import APPLICATION_ID, SCHEMA_VERSION, migrations
from procedo.stores.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

TEN = sop(*plain(10))


def raw(file: Path) -> sqlite3.Connection:
    """Another program's connection."""
    return sqlite3.connect(file, isolation_level=None)


async def refused(file: Path, **options: Any) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await SqliteStore.open(file, **options)
    return caught.value


# --- opening -------------------------------------------------------------------------------------


async def test_file_and_folder_are_for_their_owner_alone(file: Path, sqlite: SqliteStore) -> None:
    await started(sqlite, "run-1")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (file.parent, *file.parent.iterdir())}
    assert modes == {"data": 0o700, "procedo.db": 0o600, "procedo.db-wal": 0o600, "procedo.db-shm": 0o600}


async def test_a_file_that_others_could_read_is_closed_to_them(file: Path) -> None:
    await (await SqliteStore.open(file)).close()
    file.chmod(0o644)
    await (await SqliteStore.open(file)).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_what_was_written_is_there_after_the_store_is_opened_again(file: Path) -> None:
    first = await SqliteStore.open(file)
    await started(first, "run-1")
    before = await first.read(lambda reader: (reader.run("run-1"), reader.records("run-1")))
    await first.close()
    second = await SqliteStore.open(file)
    assert await second.read(lambda reader: (reader.run("run-1"), reader.records("run-1"))) == before
    await second.close()


async def test_the_file_is_as_durable_as_promised(sqlite: SqliteStore) -> None:
    connection = sqlite._connections[sqlite._writing]

    def setting(name: str) -> object:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    def look() -> dict[str, object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "recursive_triggers", "application_id", "user_version")
        return {name: setting(name) for name in names} | {"bounded": setting("journal_size_limit")}

    assert await sqlite._writing.run(look) == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "recursive_triggers": 1,
        "application_id": APPLICATION_ID,
        "user_version": SCHEMA_VERSION,
        "bounded": 16 * 1024 * 1024,
    }


def foreign_database(file: Path) -> None:
    connection = raw(file)
    connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()


def foreign_mark(file: Path) -> None:
    connection = raw(file)
    connection.execute("PRAGMA application_id = 7")
    connection.close()


def from_the_future(file: Path) -> None:
    connection = raw(file)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()


@pytest.mark.parametrize(
    ("prepare", "code", "hint"),
    [
        (foreign_database, "not_our_file", "Move that file away"),
        (foreign_mark, "not_our_file", "Move that file away"),
        (from_the_future, "newer_schema", "update this one"),
        (lambda file: file.write_text("My shopping list, which is no database at all. " * 20), "sqlite_notadb", "Move"),
        (lambda file: file.mkdir(), "cannot_open", "may write there"),
    ],
)
async def test_a_file_that_is_not_ours_is_refused_and_left_as_it_is(
    file: Path, prepare: Callable[[Path], Any], code: str, hint: str
) -> None:
    file.parent.mkdir()
    prepare(file)
    before = file.read_bytes() if file.is_file() else None
    error = await refused(file)
    assert (error.code, hint in error.hint, str(file) in error.message) == (code, True, True)
    assert (file.read_bytes() if file.is_file() else None) == before


async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    error = await refused(tmp_path / "data" / "procedo.db")
    assert error.code == "cannot_open"


async def test_a_file_that_cannot_be_written_is_refused_at_once(file: Path) -> None:
    await (await SqliteStore.open(file)).close()

    def read_only(path: Path, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, **options)
        return connection

    error = await refused(file, connect=read_only)
    assert error.code == "sqlite_readonly"
    assert "writable" in error.hint


async def test_a_file_system_without_a_write_ahead_log_is_refused(file: Path) -> None:
    def without_shared_memory(path: Path, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(f"file:{path}?vfs=unix-none", uri=True, **options)
        return connection

    error = await refused(file, connect=without_shared_memory)
    assert error.code == "no_wal"
    assert "local disk" in error.hint


async def test_a_lock_that_is_never_released_is_named_and_then_given_up(file: Path, sqlite: SqliteStore) -> None:
    hung = raw(file)
    hung.execute("BEGIN IMMEDIATE")
    try:
        error = await refused(file, patience_s=0.05)
        assert error.code == "store_busy"
        assert "fuser" in error.hint
    finally:
        hung.execute("ROLLBACK")
        hung.close()
    impatient = await SqliteStore.open(file, patience_s=0.05)
    other = raw(file)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError) as caught:
        await started(impatient, "run-1")
    assert caught.value.code == "store_busy"
    assert await impatient.read(lambda reader: reader.run_ids()) == ()
    other.execute("ROLLBACK")
    other.close()
    await started(impatient, "run-1")
    await impatient.close()


async def test_a_store_is_closed_although_somebody_holds_the_lock(file: Path) -> None:
    store = await SqliteStore.open(file)
    other = raw(file)
    other.execute("BEGIN IMMEDIATE")

    async def write() -> None:
        with pytest.raises(StoreError) as caught:
            await started(store, "run-1")
        assert caught.value.code == "store_closed"

    with anyio.fail_after(240):
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await anyio.wait_all_tasks_blocked()
            await store.close()
    other.close()


# --- schema --------------------------------------------------------------------------------------


def shape(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Every object of a schema, without comments and spacing."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
    plain = [(name, " ".join(" ".join(line.split("--")[0] for line in sql.splitlines()).split())) for name, sql in rows]
    # A column that was added later stands in the text without the line breaks of the others.
    return [(name, sql.replace(" ,", ",").replace(" )", ")")) for name, sql in plain]


async def test_todays_schema_is_the_sum_of_the_migrations(file: Path, sqlite: SqliteStore) -> None:
    fresh = sqlite3.connect(":memory:")
    fresh.executescript(Path(procedo.stores.__path__[0], "schema.sql").read_text("utf-8"))
    migrated = raw(file)
    assert shape(migrated) == shape(fresh)
    assert len(shape(fresh)) > 30
    migrated.close()
    fresh.close()


def test_migrations_are_numbered_without_a_gap_up_to_todays_version() -> None:
    assert [number for number, _ in migrations()] == list(range(1, SCHEMA_VERSION + 1))


async def test_every_older_version_is_brought_up_to_date_with_its_content(file: Path, tmp_path: Path) -> None:
    file.parent.mkdir()
    for version in range(1, SCHEMA_VERSION + 1):
        old = tmp_path / f"old-{version}.db"
        connection = raw(old)
        for number, script in migrations()[:version]:
            connection.executescript(script)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("INSERT INTO definitions VALUES ('d1', 'kiln', '{}')")
        connection.close()
        store = await SqliteStore.open(old)
        definition = await store.read(lambda reader: reader.definition("d1"))
        assert definition is not None
        assert definition.name == "kiln"
        await started(store, "run-1")
        await store.close()


async def test_a_migration_that_fails_leaves_the_file_as_it_was(file: Path) -> None:
    class Failing(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql.startswith("CREATE TABLE jobs"):
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(sql, *parameters)

    error = await refused(file, connect=partial(sqlite3.connect, factory=Failing))
    assert "disk I/O error" in error.message
    connection = raw(file)
    assert shape(connection) == []
    connection.close()
    store = await SqliteStore.open(file)
    await started(store, "run-1")
    await store.close()


# --- what the file itself refuses ----------------------------------------------------------------


@pytest.fixture
async def ended(file: Path, sqlite: SqliteStore) -> AsyncIterator[sqlite3.Connection]:
    """Another program's connection to a store with a live run and one that has ended."""
    await started(sqlite, "run-1", "run-2")
    await sqlite.write(lambda writer: apply(writer, "run-2", m.Cancel("enough", IDA)))
    connection = raw(file)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE transitions SET acting = 'noor'", "append-only"),
        ("UPDATE transitions SET events = x'00' WHERE run = 1", "append-only"),
        ("DELETE FROM transitions WHERE run = 1", "append-only"),
        ("DELETE FROM transitions WHERE run = 2", "append-only"),
        ("INSERT OR REPLACE INTO transitions SELECT * FROM transitions WHERE run = 1", "append-only"),
        ("UPDATE origins SET data = '{}'", "never changes"),
        ("DELETE FROM origins", "pruning only"),
        ("INSERT OR REPLACE INTO origins SELECT * FROM origins", "never replaced"),
        ("UPDATE runs SET reason = 'other' WHERE run = 2", "never changes"),
        ("DELETE FROM runs WHERE run = 1", "pruning only"),
        ("DELETE FROM runs WHERE run = 2", "pruning only"),
        ("INSERT OR REPLACE INTO runs SELECT * FROM runs WHERE run = 1", "never replaced"),
        ("INSERT INTO pruning VALUES (1)", "has ended"),
    ],
)
async def test_the_record_cannot_be_rewritten_with_sql(ended: sqlite3.Connection, statement: str, says: str) -> None:
    before = [ended.execute(f"SELECT * FROM {table}").fetchall() for table in ("runs", "origins", "transitions")]
    with pytest.raises(sqlite3.IntegrityError, match=says):
        ended.execute(statement)
    after = [ended.execute(f"SELECT * FROM {table}").fetchall() for table in ("runs", "origins", "transitions")]
    assert after == before
    ended.execute("UPDATE runs SET reason = 'other' WHERE run = 1")


async def test_a_run_that_has_ended_can_be_pruned(ended: sqlite3.Connection, sqlite: SqliteStore) -> None:
    assert await sqlite.write(lambda writer: writer.prune(NOW.replace(year=2100))) == 1
    for table in ("runs", "origins", "transitions", "executions", "steps"):
        assert {row[0] for row in ended.execute(f"SELECT run FROM {table}")} == {1}
    assert ended.execute("SELECT count(*) FROM pruning").fetchone() == (0,)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE transitions SET events = x'00'", "damaged"),
        ("UPDATE transitions SET format = 9", "format is 9"),
        ("UPDATE transitions SET at = 'noon'", "no time"),
    ],
)
async def test_a_damaged_record_is_refused(
    ended: sqlite3.Connection, sqlite: SqliteStore, statement: str, says: str
) -> None:
    assert await sqlite.read(lambda reader: len(reader.records("run-1"))) > 0
    ended.execute("DROP TRIGGER transitions_fixed")
    ended.execute(statement)
    with pytest.raises(StoreError, match=says):
        await sqlite.read(lambda reader: reader.records("run-1"))


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE runs SET body = '{\"colour\":1}'", "'colour'"),
        ("UPDATE runs SET body = '{'", "no JSON"),
        ("UPDATE runs SET format = 9", "format is 9"),
        ("UPDATE executions SET data = '{}'", "Missing"),
        ("DELETE FROM executions", "execution 1.1 is missing"),
    ],
)
async def test_a_damaged_run_drives_nothing(file: Path, sqlite: SqliteStore, statement: str, says: str) -> None:
    await started(sqlite, "run-1")
    await sqlite.close()
    connection = raw(file)
    connection.execute(statement)
    connection.close()
    again = await SqliteStore.open(file)
    with pytest.raises(StoreError, match=says):
        await again.read(lambda reader: reader.run("run-1"))
    with pytest.raises(StoreError, match=says):
        await again.write(lambda writer: advance(writer, "1.1"))
    await again.close()


# --- how little is done --------------------------------------------------------------------------


async def statements(store: SqliteStore, work: Callable[[Any], Any]) -> list[str]:
    """The statements that a transaction runs, with their values, those of triggers left out."""
    connection = store._connections[store._writing]
    seen: list[str] = []
    await store._writing.run(lambda: connection.set_trace_callback(seen.append))
    await store.write(work)
    await store._writing.run(lambda: connection.set_trace_callback(None))
    # A statement is told once more for each trigger that it sets off.
    return [one for one, before in zip(seen, ["", *seen], strict=False) if one != before and not one.startswith("--")]


async def test_a_transition_writes_what_it_changes_and_nothing_else(sqlite: SqliteStore) -> None:
    await started(sqlite, "run-1", made=TEN)
    await sqlite.write(partial(advance, execution_id="1.1", made=TEN))
    found = await statements(sqlite, partial(advance, execution_id="2.1", made=TEN, output="did it"))
    verbs = [" ".join(one.split()[:3]) for one in found if not one.startswith("SELECT")]
    assert verbs == [
        "BEGIN IMMEDIATE",
        "UPDATE runs SET",
        "INSERT INTO transitions",
        "INSERT INTO executions",
        "INSERT INTO executions",
        "INSERT INTO steps",
        "INSERT INTO steps",
        "COMMIT",
    ]
    assert [one for one in found if one.startswith("SELECT")] == ["SELECT head_hash FROM runs WHERE run = 1"]
    (update,) = [one for one in found if one.startswith("UPDATE runs")]
    assert "sop = " not in update
    assert "slot = " not in update


async def test_a_transition_costs_the_same_at_the_tenth_and_at_the_thousandth_step(sqlite: SqliteStore) -> None:
    loop = sop(*plain(1, next=(1,)))
    await started(sqlite, "run-1", made=loop)
    counts = {}
    for number in range(1, 201):
        report = partial(advance, execution_id=f"1.{number}", made=loop, output=number)
        if number in (10, 200):
            counts[number] = len(await statements(sqlite, report))
        else:
            await sqlite.write(report)
    assert counts[10] == counts[200]


QUERIES = {
    "one run": lambda reader: reader.run("run-1"),
    "admission": lambda reader: reader.load("kiln-firing", "k", NOW),
    "waiting for a slot": lambda reader: reader.slot_waiters(),
    "due": lambda reader: reader.due_runs(NOW),
    "open gates": lambda reader: reader.open_gates(),
    "a gate": lambda reader: reader.find_gate("abc"),
    "children": lambda reader: reader.children("run-1"),
    "used": lambda reader: reader.used_in_tree("run-1"),
    "jobs": lambda reader: reader.claim_job("me", NOW, NOW),
    "next job": lambda reader: reader.next_job_at(NOW),
    "jobs that wait": lambda reader: reader.jobs_waiting(NOW),
    "records": lambda reader: reader.records("run-1"),
}


@pytest.mark.parametrize("name", QUERIES)
async def test_no_question_of_a_command_reads_a_whole_table(file: Path, sqlite: SqliteStore, name: str) -> None:
    await started(sqlite, "run-1")
    found = await statements(sqlite, QUERIES[name])
    connection = raw(file)
    plans = []
    for statement in found:
        if statement.strip().startswith(("SELECT", "UPDATE", "WITH")):
            plans += [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    connection.close()
    assert plans != []
    # A scan is right only over a partial index, which holds live things alone.
    partial_indexes = ("runs_slots", "runs_waiting", "runs_due", "gates_waiting", "jobs_ready")
    # `above` and `tree` are the runs of one tree, which the statement itself has gathered.
    small = (*partial_indexes, "SCAN above", "SCAN tree")
    assert [p for p in plans if p.startswith("SCAN") and not p.split("INDEX ")[-1].startswith(small)] == []


async def test_ten_steps_take_less_than_eight_kilobytes(file: Path, sqlite: SqliteStore) -> None:
    connection = sqlite._connections[sqlite._writing]
    empty = await sqlite._writing.run(lambda: connection.execute("PRAGMA page_count").fetchone()[0])
    count = 40
    for number in range(count):

        def ten(writer: Any, run_id: str = f"run-{number:026}") -> None:
            begin(writer, run_id, TEN, {"service": "api", "version": "1.2.3"})
            for step in range(1, 11):
                advance(writer, f"{step}.1", run_id, {"ok": True, "detail": f"step {step} done"}, TEN)

        await sqlite.write(ten)
    pages = await sqlite._writing.run(lambda: connection.execute("PRAGMA page_count").fetchone()[0])
    size = await sqlite._writing.run(lambda: connection.execute("PRAGMA page_size").fetchone()[0])
    assert (pages - empty) * size / count < 8_000


async def test_the_log_of_the_file_stays_bounded(file: Path, sqlite: SqliteStore) -> None:
    large = {"text": os.urandom(40_000).hex()}
    loop = sop(*plain(1, next=(1,)))
    await started(sqlite, "run-1", made=loop)
    for number in range(1, 120):
        await sqlite.write(partial(advance, execution_id=f"1.{number}", made=loop, output=large))
    assert Path(f"{file}-wal").stat().st_size < 20 * 1024 * 1024
    assert file.stat().st_size > 10 * 1024 * 1024
