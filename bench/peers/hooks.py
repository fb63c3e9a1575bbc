"""What a hook costs the agent that waits for it: with a worker that runs, and with none."""

import os
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from tests.payloads import Payload, prompt, session_start, stop

from bench.home import wait_for
from bench.material import code, reading
from bench.measure import in_turns
from bench.peers.install import Installation
from bench.peers.ours import Ours, ours, python
from bench.peers.peer import Peer, peer
from bench.peers.product import Cost, Product, run
from bench.peers.samples import BARE, OURS, PEER, Sample
from bench.peers.silent_api import silent_api

WARM, COLD = "worker running", "no worker"
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")


def measure(installation: Installation, rounds: int) -> list[Sample]:
    with ExitStack() as stack:
        api = stack.enter_context(silent_api())
        warm, cold = (_products(stack, installation, api) for _ in range(2))
        cases: dict[tuple[str, str], Callable[[], Cost]] = {
            (f"{event}, {WARM}", name): partial(_hook, product, event)
            for event in EVENTS
            for name, product in warm.items()
        }
        cases["", BARE] = lambda: run(python(), b"", dict(os.environ), "/")
        for product in warm.values():
            product.start()
        costs = in_turns(cases, rounds)
        cold_cases: dict[tuple[str, str], Callable[[], Cost]] = {
            (f"{event}, {COLD}", name): partial(_cold_hook, product, event)
            for event in ("SessionStart", "PostToolUse")
            for name, product in cold.items()
        }
        costs |= in_turns(cold_cases, max(3, rounds // 4), warm_up=1)
    samples = []
    for (case, name), runs in costs.items():
        samples.append(Sample(case, name, "ms", tuple(1e3 * c.seconds for c in runs)))
        samples.append(Sample(case, name, "ms CPU", tuple(1e3 * c.processor for c in runs)))
    return samples


def _products(stack: ExitStack, installation: Installation, api: str) -> dict[str, Product]:
    return {OURS: stack.enter_context(ours()), PEER: stack.enter_context(peer(installation, api))}


def _hook(product: Product, event: str) -> Cost:
    return product.hook(_payload(event, product.project_dir))


def _cold_hook(product: Product, event: str) -> Cost:
    """The worker that the hook starts is stopped afterwards.

    The npm package has two hooks for SessionStart, of which the first starts its worker. It is not
    killed: it waits half a minute before it starts another one then.
    """
    payload = _payload(event, product.project_dir)
    if isinstance(product, Peer) and event == "SessionStart":
        first, second = product.run_command("start"), product.hook(payload)
        cost = Cost(first.seconds + second.seconds, first.processor + second.processor)
    else:
        cost = product.hook(payload)
    wait_for(product.pids, "its worker")
    if isinstance(product, Ours):
        wait_for(lambda: not any(product.layout.spool.glob("*.event")), "an empty spool")
    if isinstance(product, Peer):
        product.stop()
    else:
        product.kill()
    return cost


def _payload(event: str, directory: str) -> Payload:
    ids = {"session_id": str(uuid.uuid4()), "cwd": directory}
    if event == "SessionStart":
        return session_start(**ids)
    if event == "UserPromptSubmit":
        return prompt(**ids)
    return stop("Done.", **ids) if event == "Stop" else reading(code(12_000), **ids)
