"""A small MCP server over stdio, as a program: its words on the command line say what it is like.

`tools=a,b` names its tools; `describe=TEXT` changes their description; `change` changes its list once a tool is
called, and speaks the newest revision with the SDK, which takes a while to import; without it the older one is
spoken by hand. `fail` ends it at once, `complain` with a secret of its environment on its lips; `silent` never
answers; `tell` puts a secret into its descriptions; `note=FILE` keeps a line for each start; `child=FILE` leaves a
grandchild and writes both process ids to the file.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

WORDS = dict(word.partition("=")[::2] for word in sys.argv[1:])


def main() -> None:
    if "note" in WORDS:
        with Path(WORDS["note"]).open("a") as file:
            file.write("started\n")
    if "child" in WORDS:
        grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL)
        Path(WORDS["child"]).write_text(f"{os.getpid()} {grandchild.pid}")
    if "fail" in WORDS:
        print("no token=abc123secret given", file=sys.stderr, flush=True)  # noqa: T201  # what a child complains of
        sys.exit(2)
    if "complain" in WORDS:
        print("WORD is", os.environ["WORD"], file=sys.stderr, flush=True)  # noqa: T201  # as above
        sys.exit(2)
    if "silent" in WORDS:
        time.sleep(600)
    if "change" in WORDS:
        import anyio
        from tool_server_side import serve

        anyio.run(serve)
    else:
        from tool_server_by_hand import serve as serve_by_hand

        serve_by_hand()


if __name__ == "__main__":
    main()
