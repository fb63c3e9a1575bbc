"""The crash mark: the name of the record in work, in a file that outlives the process.

A record that kills its worker, or hangs until the worker ends, would do so again after every
start. Its name is written before it is read: to the page cache, which survives the process, so
that no record waits for the disk. A name that is still there when the next worker starts is a
suspect; a record that was suspect twice is set aside.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from claude_mem.config import Layout, write_private

DEATHS = 2  # of workers, after which a record is set aside
_WIDTH = 256  # a file name has at most 255 bytes
_BATCH = "*"  # several records were being stored at once


class CrashMark:
    def __init__(self, layout: Layout) -> None:
        self._mark, self._suspects = layout.intake_mark, layout.intake_suspects
        self._file: int | None = None

    def note(self, records: Iterable[Path]) -> None:
        """Notes that these records are processed next."""
        names = [path.name for path in records]
        self._write(names[0] if len(names) == 1 else _BATCH)

    def finish(self) -> None:
        self._write("")

    def _write(self, name: str) -> None:
        if self._file is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(self._mark, flags, 0o600)
        os.pwrite(self._file, os.fsencode(name)[:_WIDTH].ljust(_WIDTH), 0)

    def after_crash(self) -> tuple[bool, str | None]:
        """Whether a worker died while it processed records, and the one that is to be set aside."""
        name = self._last()
        if not name:
            return False, None
        self.finish()
        if name == _BATCH:
            return True, None
        deaths = self._deaths().get(name, 0) + 1
        is_too_often = deaths >= DEATHS
        write_private(self._suspects, json.dumps({} if is_too_often else {name: deaths}).encode())
        return True, name if is_too_often else None

    def _last(self) -> str:
        try:
            return os.fsdecode(self._mark.read_bytes()).strip()
        except FileNotFoundError:
            return ""

    def _deaths(self) -> dict[str, int]:
        try:
            deaths = json.loads(self._suspects.read_bytes())
        except (OSError, ValueError):
            return {}
        return deaths if isinstance(deaths, dict) else {}
