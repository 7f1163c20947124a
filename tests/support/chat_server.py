"""A web server on this machine that speaks the OpenAI chat form as a test tells it to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = Any


@dataclass(slots=True)
class Chat:
    """What it was asked, and what it answers next: (status, body), given in order, the last one for ever."""

    answers: list[tuple[int, Json]]
    endpoint: str = ""
    requests: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def next_answer(self) -> tuple[int, Json]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def said(content: Json = "fine", **more: Json) -> Json:
    """A good answer; `usage=None` leaves the usage out."""
    finish = more.pop("finish", "stop")
    usage = more.pop("usage", {"prompt_tokens": 7, "completion_tokens": 3})
    message = {"role": "assistant", "content": content, **more.pop("message", {})}
    body = {
        "id": "answer-1",
        "model": "served-model",
        "choices": [{"message": message, "finish_reason": finish}],
        **more,
    }
    return body if usage is None else {**body, "usage": usage}


def called(*calls: Json, content: Json = None) -> Json:
    """An answer with tool calls, each (id, name, arguments as text)."""
    wire = [{"id": i, "type": "function", "function": {"name": name, "arguments": args}} for i, name, args in calls]
    return said(content, finish="tool_calls", message={"tool_calls": wire})


@contextmanager
def chat_server(*answers: Json) -> Iterator[Chat]:
    """Serve on a free port; an answer that is no pair is sent with status 200."""
    chat = Chat([one if isinstance(one, tuple) else (200, one) for one in answers])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            chat.requests.append(json.loads(self.rfile.read(length)))
            chat.headers.append({name.lower(): value for name, value in self.headers.items()} | {"path": self.path})
            status, body = chat.next_answer()
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing: a test looks at what was asked."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    chat.endpoint = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield chat
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
