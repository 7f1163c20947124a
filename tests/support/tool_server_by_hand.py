"""The server of `tool_server` by hand."""

import os
import sys
import threading

from spoken_by_hand import Message, said
from spoken_by_hand import serve as speak

WORDS = dict(word.partition("=")[::2] for word in sys.argv[1:])
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}


def list_tools(params: Message) -> Message:
    """Two tools on a page, so that every list of more is paged."""
    description = WORDS.get("describe", "A tool for tests.")
    if "tell" in WORDS:
        description = f"A tool that knows {os.environ['TOKEN']}."
    names = WORDS.get("tools", "echo").split(",")
    start = int(params.get("cursor", "0"))
    shape = {"description": description, "inputSchema": SCHEMA}
    page = [{"name": n, **shape} | ({"outputSchema": SCHEMA} if n == "own" else {}) for n in names[start : start + 2]]
    return {"tools": page} | ({"nextCursor": str(start + 2)} if start + 2 < len(names) else {})


def call_tool(params: Message) -> Message:
    text = params.get("arguments", {}).get("text", "")
    if params["name"] == "environment":
        return said("\n".join(f"{name}={value}" for name, value in sorted(os.environ.items())))
    if params["name"] == "backwards":
        return said(os.environ["TOKEN"][::-1])
    if params["name"] == "garble":
        return {"content": "no list of parts"}
    if params["name"] == "own":
        return said("") | {"structuredContent": {os.environ["TOKEN"]: 1}}
    if params["name"] == "die":
        os._exit(3)
    if params["name"] == "hang":
        threading.Event().wait()
    if params["name"] == "fail":
        return said(f"it failed: {text}") | {"isError": True}
    return said(f"{params['name']}: {text}")


def serve() -> None:
    speak(list_tools, call_tool)
