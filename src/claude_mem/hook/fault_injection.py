"""Kills or hangs the process at a named point, for tests. No wheel contains this module.

`CLAUDE_MEM_FAULT=<point>:<file>` acts at that point if <file> is empty (kill) or contains "hang".
The file is removed first, so each file acts once; a file with any other content is not touched.
"""

try:
    import posix
except ImportError:  # Windows
    import os as posix  # type: ignore[no-redef]

# The hook's bare interpreter has only posix.environ, a plain dict of bytes.
_FAULT: bytes = getattr(posix, "environ", {}).get(b"CLAUDE_MEM_FAULT", b"")


def act(point: bytes) -> None:
    if not _FAULT:
        return
    name, _, marker = _FAULT.partition(b":")
    if name != point:
        return
    try:
        file = posix.open(marker, posix.O_RDONLY)
        action = posix.read(file, 8)
        posix.close(file)
        if action not in (b"", b"hang"):
            return
        posix.unlink(marker)
    except OSError:
        return
    while action == b"hang":
        _sleep()
    posix.kill(posix.getpid(), 9)


def _sleep() -> None:
    import time

    time.sleep(3600)
