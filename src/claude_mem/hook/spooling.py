r"""Leaves an event for the worker: a file in the spool, then a byte through the FIFO that wakes it.

A record is a header line and the bytes of the payload:
`claude-mem-spool\t1\t<version>\t<dialect>\t<event>\t<arrival ns>\t<project dir>\n<payload>`.
File names sort by arrival. A record is written under a hidden name and then renamed, so a reader
never sees an incomplete one; a hook that dies in between has not printed its line yet.
"""

import posix
import time

from claude_mem import __version__, paths
from claude_mem.hook.kill_points import reach

MAGIC = b"claude-mem-spool"
FORMAT = b"1"
SUFFIX = b".event"
MAX_PAYLOAD = 64 * 1024 * 1024
MAX_RECORD = MAX_PAYLOAD + 64 * 1024  # with its header

_FIFO = posix.O_WRONLY | posix.O_NONBLOCK | posix.O_CLOEXEC
_KIND, _IS_FIFO = 0o170000, 0o010000
_CREATE = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC


def header(dialect: bytes, event: bytes, arrived_ns: int, project_dir: bytes) -> bytes:
    escaped = project_dir.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\t", b"\\t")
    fields = (MAGIC, FORMAT, __version__.encode(), dialect, event, b"%d" % arrived_ns, escaped)
    return b"\t".join(fields) + b"\n"


def put(data_dir: bytes, record_header: bytes, payload: bytes) -> None:
    directory = data_dir + b"/" + paths.SPOOL
    name = b"%020d-%d" % (time.time_ns(), posix.getpid())
    hidden, final = directory + b"/." + name, directory + b"/" + name + SUFFIX
    try:
        file = posix.open(hidden, _CREATE, 0o600)
    except FileNotFoundError:
        make_directories(data_dir)
        file = posix.open(hidden, _CREATE, 0o600)
    try:
        try:
            write_all(file, record_header + payload)
        finally:
            posix.close(file)
        reach(b"hook.before_rename")
        posix.rename(hidden, final)
    except BaseException:
        posix.unlink(hidden)
        raise
    reach(b"hook.after_rename")


def make_directories(data_dir: bytes) -> None:
    for directory in (data_dir, data_dir + b"/" + paths.SPOOL, data_dir + b"/" + paths.LOGS):
        try:
            posix.mkdir(directory, 0o700)
        except FileExistsError:
            pass


def write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[posix.write(file, view) :]


def wake(data_dir: bytes) -> bool:
    """Whether a listening worker was woken. ENXIO: no process has the other end open."""
    try:
        fifo = posix.open(data_dir + b"/" + paths.WAKE, _FIFO)
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
        posix.close(posix.open(data_dir + b"/" + paths.WAKE, _FIFO))
    except OSError:
        return False
    return True


def wake_or_start(data_dir: bytes) -> None:
    if not wake(data_dir):
        from claude_mem.hook.worker_start import start_worker

        start_worker(data_dir)
