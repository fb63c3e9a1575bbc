"""Named points at which a test can kill the process, to prove that nothing is lost there.

An installed package only has the names: `fault_injection.py`, which kills, is not in the wheel.
"""

try:
    from claude_mem.hook.fault_injection import act as reach
except ImportError:

    def reach(point: bytes) -> None:
        """Does nothing outside of a source tree."""


__all__ = ["reach"]
