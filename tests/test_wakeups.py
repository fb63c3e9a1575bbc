"""How often the worker wakes up: counted, not timed."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from claude_mem import daemon
from tests.api import Api, open_api
from tests.conftest import Home, wait_until
from tests.payloads import prompt, stop, tool

CLIENTS = 16


def cycles(home: Home) -> int:
    transport = httpx.HTTPTransport(uds=str(home.layout.socket))
    with httpx.Client(transport=transport, base_url="http://claude-mem") as client:
        return int(client.get("/api/stats").json()["cycles"])


@pytest.fixture
def quiet(home: Home) -> Home:
    """A worker that has done what a start brings with it, housekeeping last."""
    unfinished = home.layout.spool / ".1-1"
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    unfinished.touch()
    os.utime(unfinished, (0, 0))
    home.start_worker()
    home.hook(prompt(session_id="s1"))
    home.wait_settled()
    wait_until(lambda: not unfinished.exists(), "the first housekeeping")
    previous = [-1]

    def is_quiet() -> bool:
        before, previous[0] = previous[0], cycles(home)
        return before == previous[0]

    wait_until(is_quiet, "a quiet worker")
    return home


def test_a_hook_wakes_one_cycle_and_requests_wake_none(quiet: Home) -> None:
    before = cycles(quiet)
    quiet.hook(tool(session_id="s1"))
    wait_until(lambda: cycles(quiet) > before and quiet.settled(), "the event")
    assert cycles(quiet) == before + 1
    quiet.command("search", "lamp")
    quiet.command("status")
    assert cycles(quiet) == before + 1


def test_the_servers_do_not_tick(tmp_path: Path) -> None:
    ticks: list[int] = []

    class CountingServer(daemon._Server):
        async def on_tick(self, counter: int) -> bool:
            ticks.append(counter)
            return await super().on_tick(counter)

    async def answer(request: Any) -> PlainTextResponse:
        return PlainTextResponse("yes")

    async def serve() -> None:
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(tmp_path / "s"))
        server = CountingServer(daemon._server(Starlette(routes=[Route("/", answer)])).config)
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started:
            await asyncio.sleep(0)
        before = len(asyncio.all_tasks())
        transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "s"))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            for _ in range(3):
                assert (await client.get("/")).text == "yes"
        assert len(asyncio.all_tasks()) <= before + 1
        server.stop()
        await serving

    asyncio.run(serve())
    assert ticks == [0]


def test_events_of_many_clients_share_commits(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        api.post_json("/api/sessions/init", contentSessionId="s", prompt="Fix the lamp")
        commits = api.runner.run(_post_all(api))
        assert api.count("tool_events") == CLIENTS + 1
    assert commits < CLIENTS // 2


async def _post_all(api: Api) -> int:
    """How many transactions the events of all clients took."""
    transactions: list[object] = []
    api.worker.store.run_before_commit(transactions.append)
    is_held, holding = asyncio.Event(), asyncio.Event()

    def hold(connection: object) -> None:
        """Occupies the writer until all clients wait for it."""
        loop.call_soon_threadsafe(is_held.set)
        asyncio.run_coroutine_threadsafe(holding.wait(), loop).result()

    loop = asyncio.get_running_loop()
    api.worker.store.write(hold)
    await is_held.wait()  # or the writer takes posts together with it, and they never wait
    posts = [
        asyncio.create_task(api.client.post("/api/sessions/observations", json={
            "contentSessionId": "s", "tool_name": "Edit", "tool_use_id": f"t{number}",
            "tool_input": {"number": number}}))
        for number in range(CLIENTS)
    ]  # fmt: skip
    waiting = api.worker.store._writer._waiting
    while waiting.qsize() < CLIENTS:
        await asyncio.sleep(0.001)
    holding.set()
    answers = await asyncio.gather(*posts)
    assert {answer.status_code for answer in answers} == {200}
    return len(transactions)


def test_a_tool_use_over_http_wakes_nothing_and_the_end_of_a_turn_does(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        about = {"contentSessionId": "s"}
        api.post_json("/api/sessions/init", prompt="Fix the lamp", **about)
        api.worker._wake.clear()
        api.post_json("/api/sessions/observations", tool_name="Edit", tool_input={}, **about)
        assert not api.worker._wake.is_set()
        api.post_json("/api/sessions/summarize", last_assistant_message="Fixed.", **about)
        assert api.worker._wake.is_set()


def test_a_turn_of_hooks_takes_a_cycle_for_each_hook_at_most(quiet: Home) -> None:
    before = cycles(quiet)
    events = [
        prompt(session_id="s2"),
        tool(session_id="s2"),
        tool(session_id="s2"),
        stop(session_id="s2"),
    ]
    for event in events:
        quiet.hook(event)
    wait_until(lambda: quiet.settled() and quiet.rows("SELECT 1 FROM session_summaries"), "memory")
    assert cycles(quiet) <= before + len(events) + 1  # one more starts the embedding
