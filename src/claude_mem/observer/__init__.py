"""Distil: a turn's events to observations and a summary. Touches no database.

`Observer` is the seam; every observer passes tests/test_observers.py.
"""

from claude_mem.observer.local.observer import LocalObserver
from claude_mem.observer.seam import Observer

__all__ = ["LocalObserver", "Observer"]
