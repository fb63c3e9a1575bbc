"""/stream: everyone who listens gets each event once, and nothing private."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from claude_mem.worker.feed import MAX_QUEUED, MAX_REPLAYED
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
        self.last_id = b""
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
        identity, data = body.removesuffix(b"\n\n").split(b"\n")
        assert body.endswith(b"\n\n") and identity.startswith(b"id: ")
        self.last_id = identity.removeprefix(b"id: ")
        event: dict[str, Any] = json.loads(data.removeprefix(b"data: "))
        return event


@asynccontextmanager
async def streaming(api: Api, after: bytes = b"", query: bytes = b"") -> AsyncIterator[Stream]:
    stream = Stream()
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": "/stream", "raw_path": b"/stream",
        "query_string": query, "root_path": "", "scheme": "http", "http_version": "1.1",
        "headers": [(b"last-event-id", after)] if after else [],
        "server": ("127.0.0.1", 37777), "client": None,
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
                        "prompt_number": 1, "turn_id": 1, "observations": 0}  # fmt: skip


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


async def set_processing(api: Api, value: bool) -> None:
    await api.client.post("/api/processing", json={"isProcessing": value})


def states(events: list[dict[str, Any]]) -> list[Any]:
    return [event.get("isProcessing", event["type"]) for event in events]


@pytest.mark.parametrize("as_header", [True, False])
def test_a_client_that_comes_back_with_its_last_id_misses_nothing(
    api: Api, as_header: bool
) -> None:
    async def scene() -> list[dict[str, Any]]:
        async with streaming(api) as stream:
            await stream.next_event()
            await set_processing(api, True)
            await stream.next_event()
        for value in (False, True, False):
            await set_processing(api, value)
        last = stream.last_id
        place = {"after": last} if as_header else {"query": b"after=" + last}
        async with streaming(api, **place) as again:
            events = [await again.next_event() for _ in range(4)]
            await set_processing(api, True)
            return [*events, await again.next_event()]

    assert states(api.runner.run(scene())) == [False, False, True, False, True]


def test_a_client_that_breaks_off_during_the_replay_misses_nothing(api: Api) -> None:
    async def scene() -> list[dict[str, Any]]:
        async with streaming(api) as stream:
            await stream.next_event()
        for value in (True, False, True):
            await set_processing(api, value)
        async with streaming(api, stream.last_id) as again:
            await again.next_event()
            first = await again.next_event()
        async with streaming(api, again.last_id) as third:
            await third.next_event()
            return [first, await third.next_event(), await third.next_event()]

    assert states(api.runner.run(scene())) == [True, False, True]


@pytest.mark.parametrize(
    "last", [b"00000000-1", b"x", b"-", b"-1", b"a-99999999999999999999", b"\xff-0"]
)
def test_an_id_of_another_worker_is_answered_with_a_reset(api: Api, last: bytes) -> None:
    async def scene() -> list[dict[str, Any]]:
        async with streaming(api, last) as stream:
            events = [await stream.next_event(), await stream.next_event()]
            await set_processing(api, True)
            return [*events, await stream.next_event()]

    assert states(api.runner.run(scene())) == [False, "reset", True]


def test_who_was_away_for_too_long_or_reads_too_slowly_gets_a_reset(api: Api) -> None:
    feed = api.worker.announcer.feed

    async def scene() -> list[Any]:
        before = feed.cursor
        with feed.subscribe() as slow:
            for number in range(MAX_REPLAYED + 1):
                feed.publish({"type": "event", "number": number})
            await asyncio.sleep(0)
            with feed.subscribe(before) as late:
                seen = [late.queue.get_nowait().event["type"], slow.queue.get_nowait().event]
                assert slow.queue.qsize() <= MAX_QUEUED
            return seen

    late, slow = api.runner.run(scene())
    assert (late, slow["type"]) == ("reset", "reset")
