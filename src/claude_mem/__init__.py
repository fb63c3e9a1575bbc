"""Persistent memory for coding agents. `from claude_mem import Memory` is the API for programs.

Every hook imports this module, so the API is loaded at its first use.
"""

__version__ = "0.1.0"

_API = ("AsyncMemory", "Forgotten", "Hit", "Memory", "ToolUse")


def __getattr__(name: str) -> object:
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("claude_mem.library"), name)
