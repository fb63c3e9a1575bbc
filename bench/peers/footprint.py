"""What each product takes when idle: memory, wakeups, processes; and its start and its files."""

import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from bench.measure import in_turns, seconds_of
from bench.peers.install import Installation
from bench.peers.ours import ours
from bench.peers.peer import peer
from bench.peers.processes import Threads, private_memory
from bench.peers.product import Product
from bench.peers.samples import OURS, PEER, Sample

MEGABYTE = 1024 * 1024
IDLE_SECONDS = 20.0
SETTLE_SECONDS = 10.0  # what a worker does after its start


def measure(installation: Installation, rounds: int, directory: Path) -> list[Sample]:
    with ExitStack() as stack:
        products: dict[str, Product] = {
            OURS: stack.enter_context(ours()), PEER: stack.enter_context(peer(installation)),
        }  # fmt: skip
        starts = in_turns({name: _starting(product) for name, product in products.items()}, rounds,
                          warm_up=1)  # fmt: skip
        samples = [
            Sample("start of the worker until it answers", name, "ms", tuple(seconds))
            for name, seconds in starts.items()
        ]
        for product in products.values():
            product.start()
        time.sleep(SETTLE_SECONDS)
        samples += _idle(products)
    return [*samples, *_installed(installation, directory)]


def _starting(product: Product) -> Callable[[], float]:
    def start() -> float:
        milliseconds = 1e3 * seconds_of(product.start)
        product.stop()
        return milliseconds

    return start


def _idle(products: dict[str, Product]) -> list[Sample]:
    pids = {name: product.pids() for name, product in products.items()}
    threads = {name: Threads(own) for name, own in pids.items()}
    time.sleep(IDLE_SECONDS)
    samples = []
    for name, own in pids.items():
        woken = threads[name].wakeups() / IDLE_SECONDS
        used = 1e3 * threads[name].processor_seconds() / IDLE_SECONDS
        samples += [
            Sample("wakeups when idle", name, "per second", (woken,)),
            Sample("processor time when idle, ms", name, "per second", (used,)),
            Sample("private memory when idle", name, "MB", (private_memory(own),)),
            Sample("processes when idle", name, "processes", (float(len(own)),)),
        ]
    return samples


def _installed(installation: Installation, directory: Path) -> list[Sample]:
    """Python and node are there already; bun is not, and is counted."""
    environment = directory / "venv"
    venv.create(environment, with_pip=True)
    before = _bytes([environment])
    root = Path(__file__).resolve().parent.parent.parent
    subprocess.run(
        [environment / "bin" / "python", "-m", "pip", "install", "--quiet",
         "--disable-pip-version-check", str(root)],
        check=True, stdout=sys.stderr,
    )  # fmt: skip
    ours_size = (_bytes([environment]) - before) / MEGABYTE
    return [
        Sample("installed with its dependencies", OURS, "MB", (ours_size,)),
        Sample("installed with its dependencies", PEER, "MB",
               (_bytes([installation.modules]) / MEGABYTE,)),
    ]  # fmt: skip


def _bytes(directories: Iterable[Path]) -> int:
    """Linked files count once."""
    sizes = {}
    for directory in directories:
        for path in directory.rglob("*"):
            if path.is_file() and not path.is_symlink():
                status = path.stat()
                sizes[status.st_ino] = status.st_size
    return sum(sizes.values())
