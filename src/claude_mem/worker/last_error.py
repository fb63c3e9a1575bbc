"""The last error in the log, for `/health`."""

import logging
import os

from claude_mem.config import Layout
from claude_mem.hook import trouble
from claude_mem.store.clock import iso
from claude_mem.types import Json


class LastError(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._record: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self._record = record

    def describe(self) -> dict[str, Json] | None:
        record = self._record
        if record is None:
            return None
        error = record.exc_info[1] if record.exc_info else None
        reason = f": {type(error).__name__}: {error}" if error is not None else ""
        return {"at": iso(int(record.created * 1000)), "message": record.getMessage() + reason}


class ToldErrors(logging.Handler):
    """Errors of a logger that the user sees at the next start of a session."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(logging.ERROR)
        self._root = os.fsencode(layout.root)

    def emit(self, record: logging.LogRecord) -> None:
        trouble.report(self._root, record.getMessage())
