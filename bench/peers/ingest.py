"""Events over HTTP, from one client and from sixteen; and what is left of them after `kill -9`.

Both answer when they have accepted an event: ours when it is on disk. The npm package waits for a
model that does not answer; ours distils in the background as shipped.
"""

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from tests.fake_api import running_api

from bench.home import wait_for
from bench.material import code
from bench.measure import in_turns
from bench.peers.install import Installation
from bench.peers.ours import ours
from bench.peers.peer import peer
from bench.peers.processes import Threads
from bench.peers.product import Product, Session
from bench.peers.samples import OURS, PEER, Sample
from bench.peers.sessions import answer_as_observer
from bench.peers.silent_api import silent_api

CLIENTS = (1, 16)
QUEUED = 60
KEPT, CLOSED = "keep-alive", "new connection each"
PINGS = 40
STABLE_SECONDS = 10.0


def measure(installation: Installation, events: int, rounds: int) -> list[Sample]:
    with ExitStack() as stack:
        api = stack.enter_context(silent_api())
        products: dict[str, Product] = {
            OURS: stack.enter_context(ours()),
            PEER: stack.enter_context(peer(installation, api)),
        }
        cases: dict[tuple[str, str, str], Callable[[], float]] = {}
        for name, product in products.items():
            product.start()
            for clients in CLIENTS:
                case = f"{clients} client{'s' if clients > 1 else ''}"
                cases[case, name, "events/s"] = partial(_rate, product, clients, events)
            for case in (KEPT, CLOSED):
                cases[f"health, {case}", name, "ms"] = partial(_ping, product, case == KEPT)
        values = in_turns(cases, rounds, warm_up=1)
        used = [_processor_per_event(name, product, events) for name, product in products.items()]
    samples = [Sample(case, name, unit, tuple(v)) for (case, name, unit), v in values.items()]
    return [*samples, *used]


def _rate(product: Product, clients: int, events: int) -> float:
    """Events a second; each client is a session of its own and keeps its connection."""
    bodies = [_events(product, events // clients) for _ in range(clients)]
    threads = [threading.Thread(target=_send, args=(product, of_client)) for of_client in bodies]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return clients * (events // clients) / (time.perf_counter() - begun)


def _events(product: Product, count: int) -> list[tuple[str, dict[str, Any]]]:
    session = str(uuid.uuid4())
    common = {"contentSessionId": session, "cwd": product.project_dir}
    start = ("/api/sessions/init", {**common, "project": "harbor", "prompt": "Light the lamp"})
    tools = [
        ("/api/sessions/observations", {
            **common, "tool_name": "Read", "tool_use_id": f"{session}-{number}",
            "tool_input": {"file_path": f"/home/dev/harbor/part_{number}.py"},
            "tool_response": {"content": code(2_000, number)},
        })
        for number in range(count - 1)
    ]  # fmt: skip
    return [start, *tools]


def _send(product: Product, requests: list[tuple[str, dict[str, Any]]]) -> None:
    session = Session(product.address)
    for path, body in requests:
        session.request("POST", path, body)
    session.close()


def _processor_per_event(name: str, product: Product, events: int) -> Sample:
    threads = Threads(product.pids()[:1])
    _send(product, _events(product, events))
    used = 1e3 * threads.processor_seconds() / events
    return Sample("1 client, processor time of the worker per event", name, "ms CPU", (used,))


def _ping(product: Product, keep_alive: bool) -> float:
    """Milliseconds of a request."""
    session = Session(product.address, keep_alive)
    session.request("GET", "/health")
    begun = time.perf_counter()
    for _ in range(PINGS):
        session.request("GET", "/health")
    seconds = time.perf_counter() - begun
    session.close()
    return 1e3 * seconds / PINGS


def _wait_until_stable(product: Product) -> None:
    """Waits until it says that all is done, and nothing has been added for a while."""
    count, since = -1, time.monotonic()
    while time.monotonic() - since < STABLE_SECONDS:
        wait_for(product.is_settled, "the end of its work")
        time.sleep(0.5)
        if (now := product.remembered_tools()) != count:
            count, since = now, time.monotonic()


def measure_kill(installation: Installation) -> list[Sample]:
    """What becomes of tool uses that were accepted before SIGKILL, when a model answers again."""
    samples = []
    with silent_api() as silent, running_api() as api, ours() as us, peer(installation) as them:
        api.otherwise = answer_as_observer
        them.use_model(silent)
        for name, product in ((OURS, us), (PEER, them)):
            product.start()
            events = _events(product, QUEUED + 1)
            _send(product, events)
            product.kill()
            them.use_model(api.url)
            product.start()
            end = {**events[0][1], "last_assistant_message": "The lamp blinks."}
            _send(product, [("/api/sessions/summarize", end)])
            _wait_until_stable(product)
            for case, count in (("stored", product.stored_tools()),
                                ("part of a memory", product.remembered_tools())):  # fmt: skip
                named = f"of {QUEUED} accepted tool uses, {case}"
                samples.append(Sample(named, name, "tool uses", (float(count),)))
    return samples
