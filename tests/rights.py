"""File modes do not apply to root, and tests often run as root."""

import ctypes
import sys

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


def drop_file_privileges() -> None:
    """A preexec_fn: file modes then apply to the child, even as root."""
    if sys.platform == "linux":
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
