"""/stream as an editor reads it: over TCP, from a real worker, with connections that break."""

import json
import random
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.seed_worker import SeedWorker, running_worker

TOTAL, PER_REQUEST = 1000, 20  # a patch is an event for each of its files


@pytest.mark.extra
def test_a_thousand_events_arrive_once_and_in_order_over_five_broken_connections(
    tmp_path: Path,
) -> None:
    with running_worker(tmp_path) as worker:
        worker.post("/api/sessions/init", {"contentSessionId": "s", "project": "p", "prompt": "x"})
        breaks = [*sorted(random.Random(4).sample(range(1, TOTAL), 5)), TOTAL]
        received: list[str] = []
        last_id, sender = "", threading.Thread(target=send, args=(worker,))
        for count in breaks:
            headers = {"Last-Event-ID": last_id} if last_id else {}
            with worker.http.stream("GET", "/stream", headers=headers) as response:
                events = read_events(response)
                next(events)  # the connection is open: no event from now on is missed
                if not last_id:
                    sender.start()
                while len(received) < count:
                    last_id, kind, text = next(events)
                    received += [text] if kind == "event" else []
        sender.join()
    assert received == [str(number) for number in range(TOTAL)]


def send(worker: SeedWorker) -> None:
    headers = {"Authorization": f"Bearer {worker.token}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{worker.port}", headers=headers) as client:
        for first in range(0, TOTAL, PER_REQUEST):
            files = "".join(
                f"*** Add File: {n}.txt\n+x\n" for n in range(first, first + PER_REQUEST)
            )
            patch = f"*** Begin Patch\n{files}*** End Patch"
            body = {"contentSessionId": "s", "tool_name": "apply_patch", "tool_input": patch}
            client.post("/api/sessions/observations", json=body, timeout=30).raise_for_status()


def read_events(response: httpx.Response) -> Iterator[tuple[str, str, str]]:
    """The id, type and file of each; the state at the beginning is one, too."""
    identity = ""
    for line in response.iter_lines():
        if line.startswith("id: "):
            identity = line.removeprefix("id: ")
        elif line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            assert event["type"] in ("event", "processing"), event
            number = re.search(r"(\d+)\.txt", event.get("text", ""))
            yield identity, event["type"], number[1] if number else ""
