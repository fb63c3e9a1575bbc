"""One worker per data directory, ensured by a file lock that the kernel releases at its death."""

import fcntl
import os
from contextlib import suppress

from claude_mem.config import Layout


class WorkerLock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, layout: Layout) -> "WorkerLock | None":
        """None if another process has it."""
        descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return cls(descriptor)

    @classmethod
    def adopt(cls, layout: Layout, descriptor: int) -> "WorkerLock | None":
        """The lock that the starting process passed on; None if the lock file was replaced."""
        try:
            os.set_inheritable(descriptor, False)
            if not os.path.samestat(os.fstat(descriptor), layout.lock.stat()):
                return None
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        return cls(descriptor)

    def still_ours(self, layout: Layout) -> bool:
        """False if the data directory or the lock file was deleted or replaced."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), layout.lock.stat())
        except OSError:
            return False

    def release(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)


def is_held(layout: Layout) -> bool:
    """Whether a worker is running."""
    if not layout.lock.exists():
        return False
    lock = WorkerLock.acquire(layout)
    if lock is None:
        return True
    lock.release()
    return False
