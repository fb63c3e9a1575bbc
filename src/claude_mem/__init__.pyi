from claude_mem.library import AsyncMemory, Forgotten, Hit, Memory, ToolUse

__all__ = ["AsyncMemory", "Forgotten", "Hit", "Memory", "ToolUse", "__version__"]

__version__: str
