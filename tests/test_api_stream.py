"""/stream: everyone who listens gets each event once, and nothing private."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api import Api, open_api
from tests.payloads import PROJECT_DIR, SESSION


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        yield opened


class Stream:
    """A client of /stream. It speaks ASGI: httpx would wait for the end of the answer."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.gone = asyncio.Event()
        self._asked = False

    async def receive(self) -> dict[str, Any]:
        if self._asked:
            await self.gone.wait()
            return {"type": "http.disconnect"}
        self._asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: Any) -> None:
        self.sent.put_nowait(message)

    async def next_message(self) -> dict[str, Any]:
        return await asyncio.wait_for(self.sent.get(), 30)

    async def next_event(self) -> dict[str, Any]:
        body: bytes = (await self.next_message())["body"]
        assert body.startswith(b"data: ") and body.endswith(b"\n\n") and body.count(b"\n") == 2
        event: dict[str, Any] = json.loads(body.removeprefix(b"data: "))
        return event


@asynccontextmanager
async def streaming(api: Api) -> AsyncIterator[Stream]:
    stream = Stream()
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": "/stream", "raw_path": b"/stream",
        "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1",
        "headers": [], "server": ("127.0.0.1", 37777), "client": None,
        "asgi": {"version": "3.0", "spec_version": "2.1"},
    }  # fmt: skip
    answering = asyncio.ensure_future(api.app(scope, stream.receive, stream.send))
    start = await stream.next_message()
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-type"].startswith(b"text/event-stream")
    yield stream
    stream.gone.set()
    await asyncio.wait_for(answering, 30)


def test_the_stream_begins_with_the_present_and_tells_what_happens(api: Api) -> None:
    async def scene() -> list[dict[str, Any]]:
        async with streaming(api) as stream:
            events = [await stream.next_event()]
            about = {"contentSessionId": SESSION, "project_dir": PROJECT_DIR}
            for path, fields in (
                ("init", {"prompt": "Blink"}),
                ("observations", {"tool_name": "Bash"}),
                ("summarize", {"last_assistant_message": "Done."}),
            ):
                answer = await api.client.post(f"/api/sessions/{path}", json={**about, **fields})
                assert answer.status_code == 200
            await api.worker.catch_up()
            return events + [await stream.next_event() for _ in range(6)]

    events = api.runner.run(scene())
    assert events[0] == {"type": "processing", "isProcessing": False, "queueDepth": 0}
    assert [(n["type"], n.get("event") or n.get("isProcessing")) for n in events[1:6]] == [
        ("processing", True),
        ("event", "UserPromptSubmit"),
        ("event", "PostToolUse"),
        ("processing", False),
        ("event", "Stop"),
    ]
    assert events[3]["tool_name"] == "Bash"
    assert events[6] == {"type": "memory", "session_db_id": 1, "project": "harbor",
                        "prompt_number": 1, "observations": 0}  # fmt: skip


def test_everyone_who_listens_hears_it(api: Api) -> None:
    async def scene() -> list[dict[str, Any]]:
        async with streaming(api) as first, streaming(api) as second:
            for stream in (first, second):
                await stream.next_event()
            await api.client.post("/api/processing", json={"isProcessing": True})
            return [await first.next_event(), await second.next_event()]

    events = api.runner.run(scene())
    assert [event["isProcessing"] for event in events] == [True, True]


def test_what_is_private_or_skipped_or_a_repetition_is_no_news(api: Api) -> None:
    async def scene() -> dict[str, Any]:
        async with streaming(api) as stream:
            await stream.next_event()
            about = {"contentSessionId": SESSION}
            tool = {**about, "tool_name": "Bash"}
            for path, body in (
                ("init", {**about, "prompt": "<private>hushhush</private>"}),
                ("observations", tool),
                ("observations", {**about, "tool_name": "Skill"}),
            ):
                await api.client.post(f"/api/sessions/{path}", json=body)
            assert (await stream.next_event())["type"] == "processing"
            for _ in range(2):
                other = {**tool, "contentSessionId": "other"}
                await api.client.post("/api/sessions/observations", json=other)
            assert (await stream.next_event())["event"] == "PostToolUse"
            await api.client.post("/api/processing", json={"isProcessing": False})
            return await stream.next_event()

    assert api.runner.run(scene())["type"] == "processing"
