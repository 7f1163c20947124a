"""A small MCP server over HTTP on this machine, in a thread of its own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvicorn
from mcp.server import MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send


@dataclass(slots=True)
class There:
    """Where it is, and the headers of each request."""

    url: str
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def web_tool_server() -> Iterator[There]:
    """Serve the tool `echo` until the context ends."""
    server = MCPServer("tests")

    @server.tool()
    def echo(text: str = "") -> str:
        """Says it again."""
        return f"echo: {text}"

    app: ASGIApp = server.streamable_http_app()
    listening = socket.create_server(("127.0.0.1", 0))
    there = There(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            there.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await app(scope, receive, send)

    served = uvicorn.Server(uvicorn.Config(noted, log_level="critical", ws="none"))
    thread = threading.Thread(target=served.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield there
    finally:
        served.should_exit = True
        thread.join()
        listening.close()
