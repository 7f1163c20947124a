"""Where a session stands as the outside of its server sees it: a model and a tool that tell the test, and wait."""

import json
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

__all__ = ["BOUND_S", "Moments", "moments"]

BOUND_S = 240


@dataclass
class Moments:
    """Says `asked` when a request of the model arrives, and what the tool says; each waits until it may go on.

    `answers` are those of the model, by the number of requests that it has answered so far.
    """

    ledger: Path
    answers: list[Any]
    endpoint: str = ""
    port: int = 0
    answered: int = 0
    heard: list[Any] = field(default_factory=list)
    _told: "queue.SimpleQueue[str]" = field(default_factory=queue.SimpleQueue)
    _go: "queue.SimpleQueue[bool]" = field(default_factory=queue.SimpleQueue)
    _gone: "queue.SimpleQueue[bool]" = field(default_factory=queue.SimpleQueue)

    def gone(self) -> None:
        """Tell that the tool's process is gone."""
        self._gone.put(True)

    def until(self, moment: str) -> None:
        """Let everything go on until this moment, and hold it there."""
        while self.following() != moment:
            self.on()

    def following(self) -> str:
        """The next moment, at which whoever told it waits."""
        return self._told.get(timeout=BOUND_S)

    def on(self) -> None:
        """Let whoever waits go on."""
        self._go.put(True)

    def off(self) -> None:
        """Whoever waits is dead: nothing of it goes on."""
        self._go.put(False)

    @contextmanager
    def all_pass(self) -> Iterator[None]:
        """While the block lasts nobody is held."""
        over = threading.Event()

        def usher() -> None:
            while not over.is_set():
                try:
                    self._told.get(timeout=0.05)
                except queue.Empty:
                    continue
                self._go.put(True)

        thread = threading.Thread(target=usher)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def wait_gone(self) -> None:
        """Until the tool's process has let go of its telephone."""
        assert self._gone.get(timeout=BOUND_S)

    def paid(self) -> list[str]:
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    def reach(self, moment: str) -> bool:
        """Tell a moment; True when it may go on. What a test leaves behind at a moment never does."""
        self._told.put(moment)
        try:
            return self._go.get(timeout=BOUND_S)
        except queue.Empty:
            return False


def _model(now: Moments) -> type[BaseHTTPRequestHandler]:
    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            now.heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            if not now.reach("asked"):
                self.close_connection = True
                return
            data = json.dumps(now.answers[min(now.answered, len(now.answers) - 1)]).encode()
            now.answered += 1
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing: the test looks at what was asked."""

    return Model


def _tool(now: Moments, listener: socket.socket) -> None:
    while True:
        try:
            line, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_one_call, args=(now, line), daemon=True).start()


def _one_call(now: Moments, line: socket.socket) -> None:
    # The connection of a process that is killed may be reset instead of ended.
    with suppress(ConnectionError), line, line.makefile("rb") as words:
        for word in words:
            if not now.reach(word.decode().strip()):
                break
            line.sendall(b".")
        words.read()
    now.gone()


@contextmanager
def moments(ledger: Path, *answers: Any) -> Iterator[Moments]:
    """A model server and a tool's telephone on this machine."""
    now = Moments(ledger, list(answers))
    model = ThreadingHTTPServer(("127.0.0.1", 0), _model(now))
    now.endpoint = f"http://127.0.0.1:{model.server_address[1]}/v1"
    listener = socket.create_server(("127.0.0.1", 0))
    now.port = listener.getsockname()[1]
    threads = [
        threading.Thread(target=model.serve_forever, daemon=True),
        threading.Thread(target=_tool, args=(now, listener), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield now
    finally:
        model.shutdown()
        model.server_close()
        listener.close()
