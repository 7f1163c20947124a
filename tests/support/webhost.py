"""A real web host on this machine, in a thread."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread


@dataclass(frozen=True)
class Seen:
    """A request as it reached the host."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: str


@dataclass
class WebHost:
    """A real web host on this machine, told path by path what to answer."""

    port: int
    routes: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    reached: Event = field(default_factory=Event)
    let_go: Event = field(default_factory=Event)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def answers(self, path: str, status: int, body: bytes = b"", **headers: str) -> None:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.end_headers()
            if handler.command != "HEAD":
                handler.wfile.write(body)

        self.routes[path] = answer

    def redirects(self, path: str, status: int, location: str) -> None:
        self.answers(path, status, Location=location)

    def hangs(self, path: str) -> None:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            self.let_go.wait(300)
            handler.close_connection = True

        self.routes[path] = answer

    def hangs_up(self, path: str) -> None:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)

        self.routes[path] = answer

    def pours(self, path: str, size: int) -> None:
        """Answers with a body of that size, undeclared."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Connection", "close")
            handler.end_headers()
            try:
                for _ in range(size // 1000):
                    handler.wfile.write(b"x" * 1000)
            except OSError:
                handler.close_connection = True

        self.routes[path] = answer


@contextmanager
def web_host() -> Iterator[WebHost]:
    """A host that serves until the block is left."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            host.seen.append(Seen(self.command, self.path, headers, body))
            host.reached.set()
            host.routes[self.path.partition("?")[0]](self)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815  # the library's names

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    host = WebHost(server.server_address[1])
    thread = Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    try:
        yield host
    finally:
        host.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()
