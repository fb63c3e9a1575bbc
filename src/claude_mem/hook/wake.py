"""Wakes the worker with a byte through its FIFO, or starts one if none is listening."""

import posix

from claude_mem import paths

_OPEN = posix.O_WRONLY | posix.O_NONBLOCK | posix.O_CLOEXEC
_KIND, _IS_FIFO = 0o170000, 0o010000


def wake(data_dir: bytes) -> bool:
    """True if a worker is listening. ENXIO means that no process has the other end open."""
    try:
        fifo = posix.open(data_dir + b"/" + paths.WAKE, _OPEN)
    except OSError:
        return False
    try:
        if posix.fstat(fifo).st_mode & _KIND != _IS_FIFO:
            return False
        posix.write(fifo, b"\n")
    except BlockingIOError:
        pass  # the FIFO is full: the worker will wake up anyway
    except OSError:
        return False
    finally:
        posix.close(fifo)
    return True


def has_worker(data_dir: bytes) -> bool:
    try:
        posix.close(posix.open(data_dir + b"/" + paths.WAKE, _OPEN))
    except OSError:
        return False
    return True


def wake_or_start(data_dir: bytes) -> None:
    if not wake(data_dir):
        from claude_mem.hook.worker_start import start_worker

        start_worker(data_dir)
