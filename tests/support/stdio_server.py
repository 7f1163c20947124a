"""Our server as a process: `python stdio_server.py WORKSPACE [foretold]`; foretold ids and a time that stands."""

import sys
from functools import partial
from pathlib import Path

from procedo.app import open_app
from procedo.surfaces.mcp.stdio import serve_stdio


def main() -> int:
    opening = partial(open_app, Path(sys.argv[1]))
    if sys.argv[2:] == ["foretold"]:
        from mcp_host import CountedIds, FixedClock

        opening = partial(opening, clock=FixedClock(), ids=CountedIds(), worker=False)
    return serve_stdio(opening)


if __name__ == "__main__":
    sys.exit(main())
