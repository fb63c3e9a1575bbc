"""Distil: a turn's events to observations and a summary. Touches no database.

`local` drafts the memories of every turn. `Model` is the seam to the providers that may revise a
draft; every provider passes tests/test_observers.py.
"""

LOCAL = "local"  # the name of the observer that needs no model
