"""A person in a process of their own: `python approver.py WORKSPACE NAME VERDICT`, then a gate on each line."""

import asyncio
import json
import sys
from pathlib import Path

from procedo.app import open_app
from procedo.core.state import Principal, PrincipalKind, Source, Verdict
from procedo.errors import ProcedoError
from procedo.runs import Surface


async def main() -> None:
    workspace, name, verdict = Path(sys.argv[1]), sys.argv[2], Verdict(sys.argv[3])
    surface = Surface(Principal(Source.CLI, name, PrincipalKind.HUMAN), host=False)
    async with open_app(workspace, worker=False) as app:
        print("ready", flush=True)  # noqa: T201  # the test reads it
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                snapshot = await app.runs.decide(line.strip(), verdict, surface)
                told = {"code": "replayed" if snapshot.replayed else "decided", "text": snapshot.note}
            except ProcedoError as error:
                told = {"code": error.code, "text": str(error)}
            print(json.dumps(told), flush=True)  # noqa: T201  # the test reads it


if __name__ == "__main__":
    asyncio.run(main())
