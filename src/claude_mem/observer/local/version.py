"""The version of the local observer.

Raise it when its memories become better: then turns whose events or transcript still exist are
distilled again in the background (`worker/idle_distilling.py`).
"""

VERSION = 17
