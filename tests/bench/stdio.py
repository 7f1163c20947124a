"""Measures procedo over stdio against a bare SDK server in the same run. A script: prints figures, asserts nothing.

    python tests/bench/stdio.py [rounds]

Both servers are real processes driven by the SDK's client. The bare one has a single tool that makes one
commit with full durability in SQLite, so that the difference is procedo and not the disk. Latencies are per
call, the two servers in turn; start-up is from spawn to the first answer; memory is the resident set of the
idle server.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TextIO

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

BARE = """
import sqlite3, sys
from mcp.server import MCPServer
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=WAL"); db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v TEXT)")
mcp = MCPServer("bare")

@mcp.tool()
async def note(value: str) -> dict[str, str]:
    db.execute("BEGIN IMMEDIATE"); db.execute("INSERT INTO t (v) VALUES (?)", (value,)); db.execute("COMMIT")
    return {"value": value}

mcp.run("stdio")
"""
STEPS = 10


def procedure(root: Path) -> None:
    folder = root / "sops" / "line"
    folder.mkdir(parents=True)
    header = '[sop]\nname = "line"\ndescription = "Ten plain steps."\nexecution_mode = "auto"\nmax_concurrent = 100\n'
    (folder / "SOP.toml").write_text(header)
    steps = "\n".join(f"{n}. **Step {n}** - Do part {n} of the work.\n" for n in range(1, STEPS + 1))
    (folder / "SOP.md").write_text(f"## Steps\n\n{steps}")
    (root / "procedo.toml").write_text("[sop]\nmax_concurrent_total = 100\n")


def resident_kib(command: str) -> int:
    """The resident set of the newest process whose command line holds that text."""
    best = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            words = (status.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if command in words and "bench/stdio" not in words:
            best = int(lines["VmRSS"].split()[0])
    return best


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w")


def structured(result: Any) -> Any:
    return result.structured_content


async def first_answer(stack: AsyncExitStack, arguments: list[str]) -> tuple[Client, float]:
    started = time.perf_counter()
    parameters = StdioServerParameters(command=sys.executable, args=arguments)
    quiet = stack.enter_context(_nowhere())
    client = await stack.enter_async_context(Client(stdio_client(parameters, errlog=quiet)))
    await client.list_tools()
    return client, time.perf_counter() - started


async def advance_all(client: Client, times: list[float]) -> None:
    run = structured(await client.call_tool("sop_start", {"name": "line", "inputs": {}}))
    for n in range(1, STEPS + 1):
        arguments = {"run_id": run["run_id"], "execution_id": f"{n}.1", "status": "completed", "output": {"part": n}}
        started = time.perf_counter()
        await client.call_tool("sop_advance", arguments)
        times.append(time.perf_counter() - started)


async def note_all(client: Client, times: list[float]) -> None:
    for n in range(STEPS):
        started = time.perf_counter()
        await client.call_tool("note", {"value": json.dumps({"part": n})})
        times.append(time.perf_counter() - started)


def told(name: str, values: list[float], unit: str = "ms", factor: float = 1000.0) -> float:
    middle = statistics.median(values) * factor
    print(f"{name:32} median {middle:8.2f} {unit}   min {min(values) * factor:8.2f}   max {max(values) * factor:8.2f}")
    return middle


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        procedure(root)
        bare_file = root / "bare.py"
        bare_file.write_text(BARE)
        starts: dict[str, list[float]] = {"bare": [], "procedo": []}
        for n in range(5):
            for name, arguments in (
                ("bare", [str(bare_file), str(root / f"start-{n}.db")]),
                ("procedo", ["-m", "procedo", "serve", "--workspace", folder]),
            ):
                async with AsyncExitStack() as stack:
                    starts[name].append((await first_answer(stack, arguments))[1])
        ratio = told("start-up, procedo", starts["procedo"]) / told("start-up, bare", starts["bare"])
        print(f"{'start-up ratio':32} {ratio:.2f}  (goal 1.15)")
        async with AsyncExitStack() as stack:
            bare, _ = await first_answer(stack, [str(bare_file), str(root / "bare.db")])
            own, _ = await first_answer(stack, ["-m", "procedo", "serve", "--workspace", folder])
            await anyio.sleep(1)
            memory = resident_kib(f"serve --workspace {folder}") / max(1, resident_kib(str(bare_file)))
            print(f"{'idle memory ratio':32} {memory:.2f}  (goal 1.2)")
            times: dict[str, list[float]] = {"bare": [], "procedo": []}
            await note_all(bare, [])
            await advance_all(own, [])
            for _ in range(rounds):
                await note_all(bare, times["bare"])
                await advance_all(own, times["procedo"])
            ratio = told("sop_advance, procedo", times["procedo"]) / told("one commit, bare", times["bare"])
            print(f"{'sop_advance ratio':32} {ratio:.2f}  (goal 1.3)")


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 20)
