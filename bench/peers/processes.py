"""What a product's processes use, from /proc."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from bench.footprint import private_megabytes

NANOSECOND = 1e-9


class Threads:
    """What the threads of some processes use from now on; threads that end are not counted."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._run_times, self._switches = self._read(_run_time), self._read(_switches)

    def _read(self, counter: Callable[[Path], int]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for pid in self._pids:
            for task in Path("/proc", str(pid), "task").iterdir():
                with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                    counts[task.name] = counter(task)
        return counts

    def processor_seconds(self) -> float:
        return NANOSECOND * _added(self._run_times, self._read(_run_time))

    def wakeups(self) -> int:
        return _added(self._switches, self._read(_switches))


def _added(before: dict[str, int], after: dict[str, int]) -> int:
    return sum(count - before.get(thread, 0) for thread, count in after.items())


def _run_time(task: Path) -> int:
    return int((task / "schedstat").read_text().split()[0])


def _switches(task: Path) -> int:
    lines = (task / "status").read_text().splitlines()
    return sum(int(x.split()[1]) for x in lines if x.startswith("voluntary_ctxt_switches"))


def private_memory(pids: Iterable[int]) -> float:
    """Returns the private memory in megabytes."""
    return sum(private_megabytes(Path("/proc", str(pid))) for pid in pids)
