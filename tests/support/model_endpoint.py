"""A web server on this machine that plays the model of real clients, by a script."""

import json
import re
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from model_dialects import DIALECTS, Asked, Dialect, Spoken, ToolCall
from scripted_agent import TOOLS, Call, Script, Seen

__all__ = ["Endpoint", "endpoint"]

SEARCH: Final = "ToolSearch"
"""By this tool a model of Claude Code fetches tools that are only named to it."""


@dataclass
class Endpoint:
    """The model. `seen` is what it was given for each call, `offered` the names of our tools as it may call them."""

    origin: str = ""
    seen: list[Seen] = field(default_factory=list)
    offered: set[str] = field(default_factory=set)
    requests: list[Any] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _script: Script | None = None
    _said: str | ToolCall | None = None
    _waiting: Call | None = None
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def plays(self, script: Script) -> None:
        """What the model does in the next conversation."""
        self._script, self._said, self._waiting = script, None, None

    def answer(self, path: str, body: Any) -> Spoken | None:
        """The model's answer, if this is a request to it."""
        dialect = next((one for one in DIALECTS if one.hears(path)), None)
        if dialect is None:
            self.strays.append(path)
            return None
        with self._lock:
            self.requests.append(body)
            return dialect.says(Asked(path, body), self._next(dialect, body))

    def _next(self, dialect: Dialect, body: Any) -> str | ToolCall:
        names = dialect.offered(body)
        ours = {name for name in names if _short(name) in TOOLS}
        self.offered |= ours
        if self._script is None or not (ours or SEARCH in names):
            return "Fine."  # a question of the client's own, such as for a title
        result = dialect.seen(body)
        if isinstance(self._said, ToolCall) and (result is None or result[0] != self._said.id):
            return self._said  # the client asks the same again
        if self._said is None:
            call = self._advance(None)
        elif self._waiting is not None:
            call, self._waiting = self._waiting, None
        else:
            assert result is not None
            call = self._advance(Seen(result[1]))
        self._said = call if isinstance(call, str) else self._called(call, ours, names, body)
        return self._said

    def _advance(self, seen: Seen | None) -> Call | str:
        assert self._script is not None
        try:
            if seen is None:
                return next(self._script)
            self.seen.append(seen)
            return self._script.send(seen)
        except StopIteration as end:
            return str(end.value)

    def _called(self, call: Call, ours: set[str], names: list[str], body: Any) -> ToolCall:
        self._count += 1
        number = f"call_{self._count:04}"
        name = next((one for one in ours if _short(one) == call.tool), None)
        if name is not None:
            return ToolCall(number, name, call.arguments)
        assert SEARCH in names, f"{call.tool} is not among {names}"
        self._waiting = call
        named = sorted(set(re.findall(r"mcp__\w+__sop_\w+", json.dumps(body["messages"]))))
        return ToolCall(number, SEARCH, {"query": f"select:{','.join(named)}", "max_results": 20})


def _short(name: str) -> str:
    return name[name.rfind("sop_") :] if "sop_" in name else name


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """Serve on a free port of this machine."""
    model = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            given = self.rfile.read(int(self.headers.get("content-length", "0")))
            spoken = model.answer(self.path, json.loads(given)) if self.command == "POST" and given else None
            kind, data = (spoken.kind, spoken.body) if spoken else ("application/json", b"{}")
            self.send_response(200 if spoken else 404)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_POST = answer  # noqa: N815  # the library's names

        def log_message(self, *_: object) -> None:
            """Nothing: a test looks at what was asked."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True  # clients keep connections open

        def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  # the library names them
            model.faults.append(traceback.format_exc())

    server = Server(("127.0.0.1", 0), Handler)
    model.origin = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
