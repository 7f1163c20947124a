"""An archive of announcements as an MCP server over stdio, as a program: what the demonstration's reviewer works with.

It keeps its files in the folder that it is started in. To look something up takes it a moment the first time, so
that there is a middle in which things can go wrong.
"""

import asyncio
import os
from pathlib import Path
from typing import Final

__all__ = ["FILED", "LOOKING", "main"]

LOOKING: Final = "archive-is-looking"
"""The file that says that something is being looked up, and by which process."""
FILED: Final = "reviews.md"
_MOMENT_S: Final = 30.0
_EARLIER: Final = (
    "Version 2.3.0 is out: search finds names with accents.",
    "Version 2.2.0 is out: settings can be exported.",
)


async def look_up(words: str) -> str:
    """Finds earlier announcements."""
    sign = Path(LOOKING)
    if not sign.exists():  # noqa: ASYNC240  # a file of one line, in a process that does nothing else
        sign.write_text(str(os.getpid()), encoding="ascii")  # noqa: ASYNC240  # as above
        await asyncio.sleep(_MOMENT_S)
    return "\n".join(line for line in _EARLIER if words.casefold() in line.casefold()) or "nothing"


async def file_review(verdict: str) -> str:
    """Files a review for good."""
    with Path(FILED).open("a", encoding="utf-8") as book:  # noqa: ASYNC230  # as above
        book.write(f"{verdict}\n")
    return f"filed: {verdict}"


def main() -> None:
    """Serve until the input ends."""
    from mcp.server import MCPServer

    server = MCPServer("archive")
    server.add_tool(look_up)
    server.add_tool(file_review)
    server.run("stdio")


if __name__ == "__main__":
    main()
