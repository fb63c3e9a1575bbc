"""Problems that the user should see: in the log, and once in the next systemMessage."""

import posix
import time

from claude_mem import paths
from claude_mem.hook.spooling import write_all

MAX_LOG_BYTES = 1024 * 1024
# The message that was shown last. Installed versions know it by this name.
SHOWN_FILE = b"." + paths.TROUBLE + b".told"

_APPEND = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC
_REPLACE = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC


def report(data_dir: bytes, message: str) -> bool:
    """Whether the message could be written. It creates no directory: a worker whose data directory
    was deleted must not bring it back."""
    line = plain(message)
    try:
        _write(data_dir + b"/" + paths.HOOK_LOG, _APPEND, b"%s %s\n" % (_now(), line))
        _write(data_dir + b"/" + paths.TROUBLE, _REPLACE, line)
    except OSError:
        return False
    return True


def count_lost(data_dir: bytes) -> bool:
    """Count an event that could not be written. On a full disk a byte still fits into the first
    block of a file, and appending needs no lock. False: not even that was possible."""
    try:
        file = posix.open(data_dir + b"/" + paths.LOST, posix.O_WRONLY | posix.O_APPEND)
    except OSError:
        return False
    try:
        return posix.write(file, b".") == 1
    except OSError:
        return False
    finally:
        posix.close(file)


def lost_events(data_dir: bytes) -> int:
    """How many were counted that the user was not told of yet."""
    try:
        return max(0, posix.stat(data_dir + b"/" + paths.LOST).st_size - 1)
    except OSError:
        return 0


def take(data_dir: bytes) -> bytes:
    """What the user was not told yet: the number of lost events, and the last problem."""
    message, lost = _take_message(data_dir), lost_events(data_dir)
    if not lost:
        return message
    posix.truncate(data_dir + b"/" + paths.LOST, 1)
    events = b"1 event was" if lost == 1 else b"%d events were" % lost
    return b"%s lost: they could not be written to %s. %s" % (
        events, plain(data_dir.decode("utf-8", "replace")), message,
    )  # fmt: skip


def _take_message(data_dir: bytes) -> bytes:
    """Takes the message; only the process that renames the file shows it."""
    taken_path = data_dir + b"/" + SHOWN_FILE
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
