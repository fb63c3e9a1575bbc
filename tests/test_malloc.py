"""What is freed after reading many vectors leaves the process."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
from pathlib import Path

from claude_mem.index.vectors import malloc


def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


malloc.limit_heaps()
blocks = [bytes(2_000) for _ in range(25_000)]
last = bytes(2_000)  # behind them: nothing of the heap is given back by itself
del blocks
before = resident()
malloc.give_back()
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps it")
def test_freed_memory_is_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) > 30_000  # of 50,000 kilobytes
