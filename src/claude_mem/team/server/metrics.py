"""Counters of one server process, in the text format of Prometheus.

Each series names its process: several may answer on one port, and counters of different processes
under one name would seem to go up and down.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterable

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._items: Counter[str] = Counter()

    def request(self, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[route, status] += 1
            self._seconds[route] += seconds  # type: ignore[assignment] # a float is fine here
            for bucket in BUCKETS:
                if seconds <= bucket:
                    self._buckets[route, bucket] += 1

    def items(self, outcomes: Iterable[str]) -> None:
        with self._lock:
            self._items.update(outcomes)

    def text(self, connections: dict[str, int]) -> str:
        with self._lock:
            lines = [*self._request_lines(), *self._item_lines()]
        lines.append("# TYPE claude_mem_team_connections gauge")
        lines += [f'claude_mem_team_connections{{state="{k}"}} {v}' for k, v in connections.items()]
        label = f'{{process="{os.getpid()}",'
        return "".join(f"{line.replace('{', label, 1)}\n" for line in lines)

    def _request_lines(self) -> Iterable[str]:
        yield "# TYPE claude_mem_team_requests_total counter"
        for (route, status), count in sorted(self._requests.items()):
            yield f'claude_mem_team_requests_total{{route="{route}",status="{status}"}} {count}'
        yield "# TYPE claude_mem_team_request_seconds histogram"
        totals: Counter[str] = Counter()
        for (route, _), count in self._requests.items():
            totals[route] += count
        name = "claude_mem_team_request_seconds"
        for route, total in sorted(totals.items()):
            for bucket in BUCKETS:
                count = self._buckets[route, bucket]
                yield f'{name}_bucket{{route="{route}",le="{bucket}"}} {count}'
            yield f'{name}_bucket{{route="{route}",le="+Inf"}} {total}'
            yield f'{name}_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {total}'

    def _item_lines(self) -> Iterable[str]:
        yield "# TYPE claude_mem_team_items_total counter"
        for outcome, count in sorted(self._items.items()):
            yield f'claude_mem_team_items_total{{outcome="{outcome}"}} {count}'
