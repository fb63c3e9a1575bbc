"""The TCP port under silent, slow and many connections: hooks go on."""

import asyncio
import json
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from claude_mem.server import client
from claude_mem.server.port_limits import (
    MAX_CONNECTIONS,
    MAX_LISTENERS,
    PortLimits,
    bounded_protocol,
    limits_for,
)
from tests.api import open_api
from tests.payloads import prompt, session_start, stop
from tests.seed_worker import SeedWorker, running_worker

SLOW = 500
PARTIAL = b"POST /api/sessions/init HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le"


# The real worker


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[SeedWorker]:
    """A worker with 500 connections that have begun a request and say no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))  # as shells of some systems have it
    with running_worker(tmp_path) as worker:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * SLOW)), hard))
        connections = [socket.create_connection(("127.0.0.1", worker.port)) for _ in range(SLOW)]
        try:
            for connection in connections:
                try:
                    connection.sendall(PARTIAL)
                except OSError:
                    continue  # it was refused at once
            yield worker
        finally:
            for connection in connections:
                connection.close()


def test_hooks_and_session_starts_go_on_during_500_slow_connections(crowded: SeedWorker) -> None:
    for payload in (session_start(), prompt("Light the lamp"), stop("The lamp is lit.")):
        assert crowded.hook(payload).returncode == 0
    crowded.wait_settled()
    answer = json.loads(crowded.hook(session_start(session_id="next")).stdout)
    assert "Light the lamp" in answer["hookSpecificOutput"]["additionalContext"]
    assert answer["systemMessage"].startswith(
        "claude-mem: the agent got "
    )  # only the worker says that
    assert client.running_worker(crowded.layout) is not None


# The limits, shorter than the worker's


@asynccontextmanager
async def serving(limits: PortLimits) -> AsyncIterator[int]:
    """The port of a server with these limits, which answers after reading the request."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(2 * limits.request_seconds if scope["path"] == "/long" else 0)
        await send({"type": "http.response.body", "body": b"answered"})

    config = uvicorn.Config(
        app, http=bounded_protocol(limits), log_config=None, lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server._serve([bound]))
        while not server.started:
            await asyncio.sleep(0.005)
        yield bound.getsockname()[1]
        server.should_exit = True
        await task


async def exchange(port: int, *parts: bytes) -> bytes:
    """All that the server sends until it ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await writer.drain()
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


REQUEST = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
SHORT = PortLimits(request_seconds=0.3)


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (b"GET / HT",),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", b"half"),
    ],
    ids=["silent", "half of the headers", "half of the body"],
)
def test_a_request_that_does_not_arrive_ends_its_connection(parts: tuple[bytes, ...]) -> None:
    async def scene() -> bytes:
        async with serving(SHORT) as port:
            return await exchange(port, *parts)

    assert asyncio.run(scene()) == b""


def test_half_of_a_second_request_ends_its_connection() -> None:
    async def scene() -> bytes:
        async with serving(SHORT) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            first = await reader.readuntil(b"\r\n0\r\n\r\n")
            writer.write(b"GET / HT")
            try:
                rest = await asyncio.wait_for(reader.read(), 3)  # uvicorn alone would not end it
            except ConnectionResetError:
                rest = b""
            writer.close()
            return first[:15] + rest

    assert asyncio.run(scene()) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("path", [b"/", b"/long"])
def test_a_complete_request_is_answered_however_long_that_takes(path: bytes) -> None:
    async def scene() -> bytes:
        async with serving(SHORT) as port:
            return await exchange(port, REQUEST % path)

    answer = asyncio.run(scene())
    assert answer.startswith(b"HTTP/1.1 200") and b"answered" in answer


def test_connections_beyond_the_limit_are_ended_and_their_places_are_free_again() -> None:
    async def scene() -> tuple[bytes, bytes]:
        async with serving(PortLimits(connections=2)) as port:
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            await asyncio.sleep(0)
            refused = await exchange(port, REQUEST % b"/")
            for _, writer in silent:
                writer.close()
                await writer.wait_closed()
            answered = b""
            while not answered:  # the server notices the ends a moment later
                answered = await exchange(port, REQUEST % b"/")
            return refused, answered

    refused, answered = asyncio.run(scene())
    assert refused == b"" and b"answered" in answered


def test_few_descriptors_leave_most_of_them_to_hooks() -> None:
    assert limits_for(4096).connections == MAX_CONNECTIONS
    assert limits_for(256).connections == 64


def test_the_stream_takes_a_limited_number_of_listeners(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        events = api.worker.announcer.live_events

        async def scene() -> int:
            with ExitStack() as stack:
                for _ in range(MAX_LISTENERS):
                    stack.enter_context(events.subscribe())
                return (await api.client.get("/stream")).status_code

        assert api.runner.run(scene()) == 503
