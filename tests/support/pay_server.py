"""An MCP server over stdio as a program, whose one acting tool asks the test before each of its steps.

`python pay_server.py PORT LEDGER`: `pay` connects to the port and says `called`; told to go on it writes a line into
the ledger and says `acted`; told again it answers. `look` answers at once. A closed connection means: stay like this.
"""

import socket
import sys
import threading
from pathlib import Path

from spoken_by_hand import Message, said, serve

PORT, LEDGER = int(sys.argv[1]), Path(sys.argv[2])
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "additionalProperties": False}


def list_tools(params: Message) -> Message:
    return {"tools": [{"name": n, "description": f"To {n}.", "inputSchema": SCHEMA} for n in ("look", "pay")]}


def call_tool(params: Message) -> Message:
    if params["name"] == "pay":
        pay(str(params.get("arguments", {}).get("to")))
    return said(f"{params['name']}: done")


def pay(to: str) -> None:
    with socket.create_connection(("127.0.0.1", PORT)) as line:
        line.sendall(b"called\n")
        go_on(line)
        with LEDGER.open("a") as ledger:
            ledger.write(f"paid {to}\n")
        line.sendall(b"acted\n")
        go_on(line)


def go_on(line: socket.socket) -> None:
    if not line.recv(1):
        threading.Event().wait()


if __name__ == "__main__":
    serve(list_tools, call_tool)
