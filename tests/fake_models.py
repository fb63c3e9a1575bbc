"""A model on loopback for other agents: OpenAI's Responses and Chat Completions, and Gemini's API.

A request that offers tools gets the next scripted call, one after each result, and at last the
text. Requests without tools (titles, routing) get the text at once.
"""

import gzip
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.fake_api import serving

Body = dict[str, Any]
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Body = field(default_factory=dict)
    text: str = ""  # of a custom tool, in place of arguments


@dataclass
class FakeModels:
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    text: str = "Done."
    requests: list[Body] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def script(self, *calls: Call, text: str) -> None:
        with self.lock:
            self.calls, self.text = list(calls), text
            self.requests.clear()

    def sent(self) -> str:
        """Everything that clients have sent since the script began."""
        with self.lock:
            return json.dumps(self.requests, ensure_ascii=False)

    def next_call(self, body: Body, results: int) -> Call | None:
        with self.lock:
            self.requests.append(body)
            has_tools = bool(_tool_names(body))
            return self.calls[results] if has_tools and results < len(self.calls) else None


@contextmanager
def running_models() -> Iterator[FakeModels]:
    models = FakeModels()
    with serving(_handler(models)) as models.url:
        yield models


def _tool_names(body: Body) -> list[str]:
    names: list[str] = []
    for tool in body.get("tools") or []:
        names += [f["name"] for f in tool.get("functionDeclarations") or []]
        function = tool.get("function") or tool
        if isinstance(function, dict) and function.get("name"):
            names.append(function["name"])
    return names


def _handler(models: FakeModels) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def handle(self) -> None:
            with suppress(ConnectionError):
                super().handle()

        def do_GET(self) -> None:
            self._json({"object": "list", "data": [{"id": "fake-model", "object": "model"}]})

        do_HEAD = do_GET  # noqa: N815

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                data = gzip.decompress(data)
            body: Body = json.loads(data or b"{}")
            path = self.path.split("?")[0]
            if path.endswith("/responses"):
                self._responses(body)
            elif path.endswith("/chat/completions"):
                self._chat(body)
            elif path.endswith((":streamGenerateContent", ":generateContent")):
                self._gemini(body, path.endswith(":streamGenerateContent"))
            else:
                self._json({"totalTokens": 10})

        def _json(self, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def _stream(self, events: list[Body], *, named: bool = False, done: bool = False) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in events:
                name = f"event: {event['type']}\n" if named else ""
                self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
            if done:
                self.wfile.write(b"data: [DONE]\n\n")
            self.wfile.flush()
            self.close_connection = True

        def _responses(self, body: Body) -> None:
            items = body.get("input") or []
            results = sum(str(item.get("type", "")).endswith("_output") for item in items)
            call = models.next_call(body, results)
            item = _response_item(call, models.text)
            usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
                     "input_tokens_details": {"cached_tokens": 0},
                     "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
            response = {"id": f"resp_{next(_numbers)}", "object": "response", "created_at": 0,
                        "status": "completed", "model": body.get("model"), "output": [item],
                        "usage": usage}  # fmt: skip
            if not body.get("stream"):
                self._json(response)
                return
            begun = {**response, "status": "in_progress", "output": [], "usage": None}
            events: list[Body] = [
                {"type": "response.created", "response": begun},
                {"type": "response.output_item.added", "output_index": 0, "item": item},
            ]
            if item["type"] == "message":
                events.append({"type": "response.output_text.delta", "item_id": item["id"],
                               "output_index": 0, "content_index": 0,
                               "delta": models.text})  # fmt: skip
            events += [
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": response},
            ]
            numbered = [{**event, "sequence_number": n} for n, event in enumerate(events)]
            self._stream(numbered, named=True)

        def _chat(self, body: Body) -> None:
            results = sum(message.get("role") == "tool" for message in body.get("messages", []))
            call = models.next_call(body, results)
            head = {"id": "chatcmpl-1", "created": 0, "model": body.get("model")}
            usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            message, reason = _chat_message(call, models.text)
            if not body.get("stream"):
                choice = {"index": 0, "message": message, "finish_reason": reason}
                self._json({**head, "object": "chat.completion", "usage": usage,
                            "choices": [choice]})  # fmt: skip
                return
            chunk = {**head, "object": "chat.completion.chunk"}
            first = {"index": 0, "delta": message, "finish_reason": None}
            last = {"index": 0, "delta": {}, "finish_reason": reason}
            self._stream(
                [{**chunk, "choices": [first]}, {**chunk, "choices": [last]},
                 {**chunk, "choices": [], "usage": usage}],
                done=True,
            )  # fmt: skip

        def _gemini(self, body: Body, streams: bool) -> None:
            parts = [part for content in body.get("contents", []) for part in content["parts"]]
            call = models.next_call(body, sum("functionResponse" in part for part in parts))
            config = body.get("generationConfig") or {}
            if call is not None:
                part: Body = {"functionCall": {"name": call.name, "args": call.arguments}}
            elif config.get("responseMimeType") == "application/json":
                part = {"text": json.dumps({"reasoning": "x", "model_choice": "flash",
                                            "next_speaker": "user", "complexity_score": 1,
                                            "complexity_reasoning": "x"})}  # fmt: skip
            else:
                part = {"text": models.text}
            content = {"role": "model", "parts": [part]}
            response = {
                "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5,
                                  "totalTokenCount": 15},
                "modelVersion": "fake", "responseId": f"response-{next(_numbers)}",
            }  # fmt: skip
            if streams:
                self._stream([response])
            else:
                self._json(response)

    return Handler


def _response_item(call: Call | None, text: str) -> Body:
    number = next(_numbers)
    if call is None:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return {"type": "message", "id": f"msg_{number}", "role": "assistant",
                "status": "completed", "content": content}  # fmt: skip
    common = {"call_id": f"call_{number}", "name": call.name}
    if call.text:
        return {"type": "custom_tool_call", "id": f"ctc_{number}", **common, "input": call.text}
    arguments = json.dumps(call.arguments)
    return {"type": "function_call", "id": f"fc_{number}", **common, "arguments": arguments}


def _chat_message(call: Call | None, text: str) -> tuple[Body, str]:
    if call is None:
        return {"role": "assistant", "content": text}, "stop"
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    tool = {"index": 0, "id": f"call_{next(_numbers)}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [tool]}, "tool_calls"
