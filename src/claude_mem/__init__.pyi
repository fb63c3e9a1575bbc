from claude_mem.library import AsyncMemory, Forgotten, Hit, Memory, TurnEvent

__all__ = ["AsyncMemory", "Forgotten", "Hit", "Memory", "TurnEvent", "__version__"]

__version__: str
