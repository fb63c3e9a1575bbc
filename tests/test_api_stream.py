"""/stream: everyone who listens gets each event once, and nothing private."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from claude_mem.intake.event_reader import EventHeader
from claude_mem.worker.live_events import MAX_BYTES, MAX_EVENTS
from tests.api import Api, open_api
from tests.payloads import PROJECT_DIR, SESSION, tool

ABOUT = {"contentSessionId": SESSION, "project_dir": PROJECT_DIR}
CHANGE = {"file_path": f"{PROJECT_DIR}/light.py", "old_string": "one", "new_string": "two"}


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
    memory = {"type": "memory", "session_db_id": 1, "project": "harbor", "prompt_number": 1,
              "turn_id": 1, "observations": 0}  # fmt: skip
    assert events[6].items() >= memory.items()


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


def test_changes_of_memories_are_news(api: Api) -> None:
    api.add_turn("s", "Light the lamp", "Done.", edited="/h/light.py")

    async def scene() -> list[dict[str, Any]]:
        async with streaming(api) as stream:
            await stream.next_event()
            await api.client.request("PATCH", "/api/memories/1", json={"title": "New"})
            for path in ("S1/pin", "P1/wrong"):
                await api.client.post(f"/api/memories/{path}", json={})
            return [await stream.next_event() for _ in range(3)]

    events = api.runner.run(scene())
    assert events[0]["items"][0]["title"] == "New"
    assert [(e["type"], e["id"], e["action"], e["project"]) for e in events] == [
        ("changed", "1", "edited", "harbor"),
        ("changed", "S1", "pinned", "harbor"),
        ("changed", "P1", "wrong", "harbor"),
    ]


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


@pytest.mark.parametrize(("count", "size"), [(MAX_EVENTS + 1, 1), (3, MAX_BYTES // 2)])
def test_who_is_behind_what_is_kept_gets_a_reset(api: Api, count: int, size: int) -> None:
    events = api.worker.announcer.live_events

    async def scene() -> list[Any]:
        before = events.give_cursor()
        with events.subscribe() as slow:
            for _ in range(count):
                events.publish({"type": "event", "text": "x" * size})
            with events.subscribe(before) as late:
                return [slow.take_all(), late.take_all()]

    assert api.runner.run(scene()) == [[{"type": "reset"}], [{"type": "reset"}]]


def test_events_are_kept_once_a_cursor_is_given_away(api: Api) -> None:
    events = api.worker.announcer.live_events

    async def scene() -> list[Any]:
        events.publish({"type": "event", "text": "before"})
        cursor = events.give_cursor()
        events.publish({"type": "event", "text": "after"})
        with events.subscribe(cursor) as listener:
            return listener.take_all()

    assert api.runner.run(scene()) == [{"type": "event", "text": "after"}]


def test_what_was_forgotten_is_not_repeated(api: Api) -> None:
    events = api.worker.announcer.live_events

    async def scene() -> list[Any]:
        before = events.give_cursor()
        await api.client.post("/api/sessions/init", json={**ABOUT, "prompt": "Blink"})
        with events.subscribe() as listener:
            request = {"session": SESSION}
            preview = (await api.client.post("/api/forget", json=request)).json()
            confirmed = {**request, "confirm": preview["confirm"]}
            assert (await api.client.post("/api/forget", json=confirmed)).json()["forgotten"]
            with events.subscribe(before) as late:
                told = [listener.take_all(), late.take_all()]
            await api.client.post("/api/forget/undo", json={})
            return [*told, listener.take_all()]

    live, late, after_undo = api.runner.run(scene())
    assert live[0]["type"] == "forgotten"
    assert {"type": "session", "session_db_id": 1, "status": "deleted"} in live
    assert late[0]["type"] == "reset"
    assert "Blink" not in json.dumps(late)
    assert "restored" in [event["type"] for event in after_undo]


def test_what_was_done_to_a_memory_is_told(api: Api) -> None:
    async def scene() -> list[dict[str, Any]]:
        saved = {"text": "The relay is slow", "project_dir": PROJECT_DIR}
        memory = (await api.client.post("/api/memories", json=saved)).json()["id"]
        with api.worker.announcer.live_events.subscribe() as listener:
            for path in ("pin", "wrong"):
                for undo in (False, True):
                    route = f"/api/memories/{memory}/{path}"
                    assert (await api.client.post(route, json={"undo": undo})).status_code == 200
            return listener.take_all()

    changes = [event for event in api.runner.run(scene()) if event["type"] == "changed"]
    assert [change["action"] for change in changes] == ["pinned", "unpinned", "wrong", "unmarked"]


def test_an_item_can_be_shown_without_another_request(api: Api) -> None:
    async def scene() -> list[dict[str, Any]]:
        with api.worker.announcer.live_events.subscribe() as listener:
            for path, fields in (
                ("init", {"prompt": "Make the light blink"}),
                ("observations", {"tool_name": "Edit", "tool_input": CHANGE}),
                ("summarize", {"last_assistant_message": "It blinks because of the relay."}),
                ("complete", {"reason": "exit"}),
            ):
                await api.client.post(f"/api/sessions/{path}", json={**ABOUT, **fields})
            await api.worker.catch_up()
            saved = {"text": "The relay is slow", "title": "Slow relay", "project": PROJECT_DIR}
            await api.client.post("/api/memories", json=saved)
            return listener.take_all()

    events = api.runner.run(scene())
    prompt, edit, stop, _ = (event for event in events if event["type"] == "event")
    (item,) = prompt["items"]
    assert (item["kind"], item["id"], item["prompt_text"]) == ("prompt", 1, "Make the light blink")
    assert item.keys() - {"kind"} == api.get_json("/api/prompts")["items"][0].keys()
    assert (edit["tool_name"], edit["project"]) == ("Edit", "harbor")
    assert "light.py" in edit["text"]
    assert stop["text"] == "It blinks because of the relay."
    distilled, saved = (event for event in events if event["type"] == "memory")
    summary = {**api.get_json("/api/summaries")["items"][0], "kind": "summary"}
    assert summary in distilled["items"]
    assert distilled["turn_id"] == prompt["turn_id"]
    observation = api.get_json("/api/observations")["items"][0]
    assert saved["items"] == [{**observation, "kind": "observation"}]
    assert observation["title"] == "Slow relay"


def sessions_announced(api: Api, *requests: tuple[str, str, dict[str, Any]]) -> list[Any]:
    async def scene() -> list[Any]:
        with api.worker.announcer.live_events.subscribe() as listener:
            for method, path, body in requests:
                response = await api.client.request(method, path, json=body)
                assert response.status_code == 200, response.text
            await asyncio.to_thread(api.worker.housekeeping.tick, api.clock.ms)
            return [event for event in listener.take_all() if event["type"] == "session"]

    return api.runner.run(scene())


def test_a_completed_session_is_announced_with_its_project(api: Api) -> None:
    api.add_turn(SESSION, "Blink", "It blinks.")
    complete = ("POST", "/api/sessions/complete", {"claudeSessionId": SESSION, "reason": "exit"})
    (news,) = sessions_announced(api, complete)
    assert (news["status"], news["project"]) == ("completed", "harbor")
    assert (news["content_session_id"], news["user_prompt"]) == (SESSION, "Blink")


def test_a_stopped_session_is_announced(api: Api) -> None:
    row = api.add_turn(SESSION, "Blink", "It blinks.")
    (news,) = sessions_announced(api, ("DELETE", f"/sessions/{row}", {}))
    assert (news["status"], news["session_db_id"]) == ("failed", row)


def test_an_interrupted_session_is_announced(api: Api) -> None:
    api.add_turn(SESSION, "Blink", "It blinks.")
    api.clock.ms += 25 * 3_600_000
    (news,) = sessions_announced(api)
    assert (news["status"], news["content_session_id"]) == ("interrupted", SESSION)


def test_the_queue_is_announced_as_empty_after_work(api: Api) -> None:
    async def scene() -> list[tuple[bool, int]]:
        states: list[tuple[bool, int]] = []
        with api.worker.announcer.live_events.subscribe() as listener:
            for path, fields in (
                ("init", {"prompt": "Blink"}),
                ("summarize", {"last_assistant_message": "Done."}),
                ("", {}),
            ):
                if path:
                    await api.client.post(f"/api/sessions/{path}", json={**ABOUT, **fields})
                else:
                    await api.worker.catch_up()
                last = [e for e in listener.take_all() if e["type"] == "processing"][-1]
                current = (await api.client.get("/api/processing")).json()
                assert current == {name: last[name] for name in current}
                states.append((current["isProcessing"], current["queueDepth"]))
        return states

    assert api.runner.run(scene()) == [(True, 0), (False, 1), (False, 0)]


def test_a_thousand_events_arrive_once_and_in_order_over_five_reconnects(api: Api) -> None:
    total, batch = 1000, 50
    breaks = sorted(random.Random(17).sample(range(1, total), 5))

    async def send(first: int) -> None:
        reader, header = api.worker.reader, EventHeader("PostToolUse", api.clock.ms, PROJECT_DIR)
        payloads = [
            tool(tool_use_id=f"toolu_{n}", tool_input=n) for n in range(first, first + batch)
        ]
        await api.worker.intake.accept([reader.read(header, payload) for payload in payloads])

    async def send_all() -> None:
        for first in range(0, total, batch):
            await send(first)

    async def scene() -> tuple[list[str], int]:
        received: list[str] = []
        connections, last_id = 0, b""
        sending: asyncio.Task[None] | None = None
        while len(received) < total:
            until = breaks[connections] if connections < len(breaks) else total
            async with streaming(api, last_id) as stream:
                connections += 1
                await stream.next_event()  # the state
                sending = sending or asyncio.ensure_future(send_all())
                while len(received) < until:
                    event = await stream.next_event()
                    assert event["type"] in ("event", "processing")
                    received += [event["text"]] if event["type"] == "event" else []
                last_id = stream.last_id
            await asyncio.sleep(0)
        assert sending is not None
        await sending
        return received, connections

    received, connections = api.runner.run(scene())
    assert received == [str(number) for number in range(total)]
    assert connections == 6
