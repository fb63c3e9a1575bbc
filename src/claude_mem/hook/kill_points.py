"""Named points at which a test can kill the process, to prove that nothing is lost there.

`CLAUDE_MEM_FAULT=<point>:<file>` kills the process at that point if <file> exists. The file is
removed first, so each file causes one kill. A file that contains "hang" lets the process hang
there instead. If the variable is not set, a point costs one check.
"""

try:
    import posix
except ImportError:  # Windows
    import os as posix  # type: ignore[no-redef]

# The hook's bare interpreter has only posix.environ, a plain dict of bytes.
_ARMED: bytes = getattr(posix, "environ", {}).get(b"CLAUDE_MEM_FAULT", b"")


def reach(point: bytes) -> None:
    if not _ARMED:
        return
    name, _, marker = _ARMED.partition(b":")
    if name != point:
        return
    try:
        file = posix.open(marker, posix.O_RDONLY)
        action = posix.read(file, 8)
        posix.close(file)
        posix.unlink(marker)
    except OSError:
        return
    while action == b"hang":
        _sleep()
    posix.kill(posix.getpid(), 9)


def _sleep() -> None:
    import time

    time.sleep(3600)
