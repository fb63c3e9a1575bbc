"""Ends the process if one piece of work takes too long.

Its timer is a thread outside of the interpreter: it also runs while a pattern holds the
interpreter's lock. The next hook starts a new worker, which sets aside what hung twice.
"""

import faulthandler
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_REARM_SHARE = 0.25  # of the limit: arming starts a thread, so it is not done for every step


class Watchdog:
    def __init__(self) -> None:
        self._log: TextIO | None = None
        self._changing = threading.Lock()
        self._numbers = itertools.count()
        self._deadlines: dict[int, float] = {}

    def start(self, log: TextIO) -> None:
        """Starts the watchdog in the worker's process; before, limits have no effect. Before the
        process ends, the stack of its threads is written to the log."""
        self._log = log

    @contextmanager
    def limit(self, seconds: float) -> Iterator["Step"]:
        """Limits the time of the code in the block; `Step.advance` starts the time anew."""
        number = next(self._numbers)
        self.set_deadline(number, time.monotonic() + seconds)
        try:
            yield Step(self, number, seconds)
        finally:
            self.set_deadline(number, None)

    def set_deadline(self, number: int, deadline: float | None) -> None:
        with self._changing:
            if deadline is None:
                self._deadlines.pop(number, None)
            else:
                self._deadlines[number] = deadline
            self._arm()

    def _arm(self) -> None:
        if self._log is None:
            return
        if self._deadlines:
            seconds = max(0.001, min(self._deadlines.values()) - time.monotonic())
            faulthandler.dump_traceback_later(seconds, exit=True, file=self._log)
        else:
            faulthandler.cancel_dump_traceback_later()


class Step:
    def __init__(self, watchdog: Watchdog, number: int, seconds: float) -> None:
        self._watchdog, self._number, self._seconds = watchdog, number, seconds
        self._rearm_at = 0.0

    def advance(self) -> None:
        now = time.monotonic()
        if now >= self._rearm_at:
            self._rearm_at = now + self._seconds * _REARM_SHARE
            self._watchdog.set_deadline(self._number, now + self._seconds)
