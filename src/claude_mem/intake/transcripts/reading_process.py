"""Reads and distils transcripts for the worker, in a process of its own with low priority.

The worker answers hooks and searches meanwhile: in a thread of it, the same work would keep them
waiting. `python -m claude_mem.intake.transcripts.reading_process` gets pickled requests on stdin
and answers each with the parts of the transcript and an end, on stdout. It ends with the worker,
whatever ends that.
"""

import os
import pickle
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from claude_mem.errors import BadInput
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.import_report import ReadFile
from claude_mem.intake.transcripts.importer import read_in_parts
from claude_mem.types import PastSession

MODULE = "claude_mem.intake.transcripts.reading_process"
SECONDS = 300.0  # longer than any transcript takes
TRIES = 2  # of a transcript that ends the process
NICENESS = 10


@dataclass(frozen=True, slots=True)
class Request:
    path: Path
    options: ImportOptions


class ReadingStopped(Exception):
    """The worker ends: nothing is known about the transcript."""


class ReadingProcess:
    """Starts with the first transcript. One thread at a time may read; any may stop it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_stopped = False

    def read(self, request: Request) -> Iterator[PastSession]:
        """The parts of a transcript. Raises BadInput if it cannot be read: also if it ends the
        process, or takes too long."""
        for left in reversed(range(TRIES)):
            process = self._started()
            try:
                yield from self._ask(process, request)
                return
            except (EOFError, OSError, pickle.UnpicklingError):
                if self._is_stopped:
                    raise ReadingStopped from None
                if not left:
                    raise BadInput(f"the process that read {request.path.name} ended") from None

    def stop(self) -> None:
        """For good."""
        self._is_stopped = True
        self._end()

    def rest(self) -> None:
        """Until the next transcript."""
        self._end()

    def _ask(self, process: subprocess.Popen[bytes], request: Request) -> Iterator[PastSession]:
        assert process.stdin is not None and process.stdout is not None
        late = threading.Timer(SECONDS, process.kill)
        late.start()
        end: ReadFile | None = None
        try:
            pickle.dump(request, process.stdin)
            process.stdin.flush()
            while not isinstance(item := pickle.load(process.stdout), ReadFile):
                yield item
            end = item
        finally:
            late.cancel()
            if end is None:
                self._end()  # the next answer would begin in the middle of this one
        if end.trouble:
            raise BadInput(end.trouble)

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_stopped:
                raise ReadingStopped
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", MODULE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            return self._process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def main() -> None:
    os.nice(NICENESS)
    threading.Thread(target=_end_with_worker, daemon=True).start()
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints must not get between the answers
    while (request := _next_request(requests)) is not None:
        for item in read_in_parts(request.path, request.options):
            pickle.dump(item, answers)
            answers.flush()


def _end_with_worker() -> None:
    lifeline = select.poll()
    lifeline.register(sys.stdin.fileno(), 0)  # only that the other end is closed
    lifeline.poll()
    os._exit(0)


def _next_request(requests: BinaryIO) -> Request | None:
    try:
        request = pickle.load(requests)
    except EOFError:
        return None
    assert isinstance(request, Request)
    return request


if __name__ == "__main__":
    # Under its own name: the class of a request is not that of `__main__`.
    from claude_mem.intake.transcripts import reading_process

    reading_process.main()
