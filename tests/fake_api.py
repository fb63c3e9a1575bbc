"""Servers on loopback: a Messages API with scripted replies, and one that sends raw bytes.

The API streams as the real one does. Scripted replies are used in order by the requests of the
conversation; requests without tools (titles, summaries, probes) get a plain "OK" instead.
"""

import itertools
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Reply:
    text: str = ""
    tools: tuple[tuple[str, dict[str, Any]], ...] = ()
    status: int = 200
    when: Callable[[Body], bool] | None = None
    hold: threading.Event | None = None  # replies only after this is set
    headers: tuple[tuple[str, str], ...] = ()
    is_full: bool = False  # truncated at the maximum length
    cut: bool = False  # the connection ends in the middle of the reply

    def fits(self, body: Body) -> bool:
        if self.when is not None:
            return self.when(body)
        offered = {tool.get("name") for tool in body.get("tools") or []}
        return all(name in offered for name, _ in self.tools) if self.tools else "Bash" in offered


def tool_call(name: str, **arguments: Any) -> Reply:
    return Reply(tools=((name, arguments),))


def mentions(text: str) -> Callable[[Body], bool]:
    return lambda body: text in json.dumps(body)


@dataclass
class FakeApi:
    url: str = ""
    requests: list[Body] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    otherwise: Callable[[Body], Reply] = lambda body: Reply("OK")
    lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, *replies: Reply) -> None:
        with self.lock:
            self.replies += replies

    def pick(self, body: Body) -> Reply:
        with self.lock:
            self.requests.append(body)
            for reply in self.replies:
                if reply.fits(body):
                    self.replies.remove(reply)
                    return reply
        return self.otherwise(body)

    def sent(self) -> str:
        """Everything the client has sent so far."""
        with self.lock:
            return json.dumps(self.requests, ensure_ascii=False)

    def forget(self) -> None:
        with self.lock:
            self.requests.clear()
            self.replies.clear()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The URL of a server with this handler, on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def running_api() -> Iterator[FakeApi]:
    api = FakeApi()
    with serving(_handler(api)) as api.url:
        yield api


@dataclass(slots=True)
class RawServer:
    port: int
    received: bytearray = field(default_factory=bytearray)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def raw_server(response: bytes, tls: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    """Sends these bytes to the first client and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        server = RawServer(listener.getsockname()[1])

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                secure = tls.wrap_socket(connection, server_side=True) if tls else connection
                while not _is_complete(server.received) and (part := secure.recv(65536)):
                    server.received.extend(part)
                secure.sendall(response)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server
        thread.join()


def _is_complete(request: bytes | bytearray) -> bool:
    """A server that closes with a request half read resets the connection instead."""
    head, end, body = bytes(request).partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    return bool(end) and len(body) >= (int(length[1]) if length else 0)


def json_response(value: Any, status: str = "200 OK") -> bytes:
    data = json.dumps(value).encode()
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


def _handler(api: FakeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def handle(self) -> None:
            with suppress(ConnectionError):  # a test killed the client
                super().handle()

        def do_GET(self) -> None:
            self._json({"data": [], "has_more": False})

        do_HEAD = do_GET  # noqa: N815

        def do_POST(self) -> None:
            body: Body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            path = self.path.split("?")[0]
            if path not in ("/v1/messages", "/v1/chat/completions"):
                self._json({"input_tokens": 10})
                return
            reply = api.pick(body)
            api.keys.append(self.headers.get("x-api-key") or self.headers.get("authorization"))
            if reply.hold is not None:
                reply.hold.wait(60)
            if reply.status != 200:
                error = {"type": "invalid_request_error", "message": reply.text or "scripted"}
                self._json({"type": "error", "error": error}, reply.status, reply)
            elif path.endswith("completions"):
                self._json(_completion(body, reply), reply=reply)
            elif body.get("stream"):
                self._stream(_message(body, reply), reply)
            else:
                self._json(_message(body, reply), reply=reply)

        def _json(self, value: Any, status: int = 200, reply: Reply | None = None) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            for name, value in reply.headers if reply else ():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if reply is not None and reply.cut:
                self.wfile.write(data[: len(data) // 2])
                self.close_connection = True
            elif self.command != "HEAD":
                self.wfile.write(data)

        def _stream(self, message: Body, reply: Reply) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            events = list(_events(message))
            for event in events[: len(events) // 2] if reply.cut else events:
                line = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                self.wfile.write(line.encode())
            self.wfile.flush()
            self.close_connection = True

    return Handler


def _message(body: Body, reply: Reply) -> Body:
    content: list[Body] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{next(_numbers):020d}", "name": name, "input": arguments}
        for name, arguments in reply.tools
    ]
    return {
        "id": f"msg_{next(_numbers):020d}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "fake"),
        "content": content,
        "stop_reason": ("tool_use" if reply.tools else
                        "max_tokens" if reply.is_full else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 50, "output_tokens": 10, "cache_creation_input_tokens": 0,
                  "cache_read_input_tokens": 0},
    }  # fmt: skip


def _completion(body: Body, reply: Reply) -> Body:
    return {
        "id": f"chatcmpl-{next(_numbers):020d}",
        "object": "chat.completion",
        "model": body.get("model", "fake"),
        "choices": [{"index": 0, "finish_reason": "length" if reply.is_full else "stop",
                     "message": {"role": "assistant", "content": reply.text}}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60},
    }  # fmt: skip


def _events(message: Body) -> Iterator[Body]:
    yield {"type": "message_start",
           "message": {**message, "content": [], "stop_reason": None}}  # fmt: skip
    start: Body
    delta: Body
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start, delta = (
                {"type": "text", "text": ""},
                {"type": "text_delta", "text": block["text"]},
            )
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "usage": message["usage"],
           "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}}  # fmt: skip
    yield {"type": "message_stop"}
