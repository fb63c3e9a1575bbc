"""Problems that the user should see: in the log, and once in the next systemMessage."""

import posix
import time

from claude_mem import paths
from claude_mem.hook.spool import make_directories, write_all

MAX_LOG_BYTES = 1024 * 1024
SHOWN = b"." + paths.TROUBLE + b".told"

_APPEND = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC
_REPLACE = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC


def report(data_dir: bytes, message: str) -> bool:
    """Whether the message could be written."""
    line = plain(message)
    try:
        make_directories(data_dir)
        _write(data_dir + b"/" + paths.HOOK_LOG, _APPEND, b"%s %s\n" % (_now(), line))
        _write(data_dir + b"/" + paths.TROUBLE, _REPLACE, line)
    except OSError:
        return False
    return True


def take(data_dir: bytes) -> bytes:
    """The last message that was not shown yet. Only the process that renames the file shows it."""
    taken_path = data_dir + b"/" + SHOWN
    try:
        posix.rename(data_dir + b"/" + paths.TROUBLE, taken_path)
        file = posix.open(taken_path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return posix.read(file, 1000)
    finally:
        posix.close(file)


def _write(path: bytes, flags: int, data: bytes) -> None:
    file = posix.open(path, flags, 0o600)
    try:
        if flags == _APPEND and posix.fstat(file).st_size > MAX_LOG_BYTES:
            posix.ftruncate(file, 0)
        write_all(file, data)
    finally:
        posix.close(file)


def plain(message: str) -> bytes:
    """Text for a JSON string without an encoder: printable ASCII, no quotes or backslashes.

    `text.without_controls` needs `re`, which the hook does not load.
    """
    safe = (c if " " <= c <= "~" else "?" for c in message.replace('"', "'").replace("\\", "/"))
    return "".join(safe)[:500].encode()


def _now() -> bytes:
    year, month, day, hour, minute, second = time.gmtime()[:6]
    return b"%04d-%02d-%02dT%02d:%02d:%02dZ" % (year, month, day, hour, minute, second)
