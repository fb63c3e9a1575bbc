"""What glibc keeps of memory that was freed: without this, as much as the vectors take.

Other C libraries have neither function and need none.
"""

_M_ARENA_MAX = -8  # of mallopt
HEAPS = 2


def limit_heaps() -> None:
    """Threads share them, instead of each keeping what it has freed in one of its own."""
    _call("mallopt", _M_ARENA_MAX, HEAPS)


def give_back() -> None:
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    try:
        import ctypes  # some builds of Python have none
    except ImportError:
        return
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)
