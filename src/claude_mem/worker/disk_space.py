"""What the user is told where the disk is full."""

import shutil

from claude_mem.config import Layout
from claude_mem.hook.spooling import SUFFIX

LEAST_FREE = 1_000_000  # bytes, as many as the journal of one batch of events may take


def full_disk(layout: Layout) -> str:
    """Tells of a full disk; empty where there is space."""
    try:
        free = shutil.disk_usage(layout.root).free
    except OSError:
        return ""
    return describe_full_disk(layout) if free < LEAST_FREE else ""


def describe_full_disk(layout: Layout) -> str:
    waiting = sum(1 for _ in layout.spool.glob(f"*{SUFFIX.decode()}"))
    events = f", {waiting} events wait in the spool" if waiting else ""
    return f"the disk is full: nothing can be stored{events}. Free space: df -h {layout.root}"
