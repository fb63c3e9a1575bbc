"""What a product's processes use, from /proc."""

from collections.abc import Iterable
from pathlib import Path

from bench.footprint import private_megabytes

NANOSECOND = 1e-9


def processor_seconds(pids: Iterable[int]) -> float:
    """Of all threads that are running now."""
    total = 0
    for pid in pids:
        for task in Path("/proc", str(pid), "task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total * NANOSECOND


def wakeups(pids: Iterable[int]) -> int:
    """How often their threads were switched to, so far."""
    total = 0
    for pid in pids:
        for task in Path("/proc", str(pid), "task").iterdir():
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    total += int(line.split()[1])
    return total


def private_memory(pids: Iterable[int]) -> float:
    """In megabytes."""
    return sum(private_megabytes(Path("/proc", str(pid))) for pid in pids)
