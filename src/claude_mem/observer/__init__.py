"""Distil: a turn's events to observations and a summary. Touches no database.

`LocalObserver` drafts the memories of every turn. `Model` is the seam to the providers that may
revise a draft; every provider passes tests/test_observers.py.
"""

from claude_mem.observer.local.observer import LocalObserver
from claude_mem.observer.models.model import Model

__all__ = ["LocalObserver", "Model"]
