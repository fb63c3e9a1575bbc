"""The files in which a project or a user instructs agents; clients give them to every session."""

from pathlib import Path

from claude_mem.intake.memory_files import claude_directory
from claude_mem.intake.untrusted_files import read_start

_IN_PROJECT = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md")
_IN_HOME = (".claude/CLAUDE.md",)


def read_rule_files(directory: str, home: str) -> str:
    """Their text, one after the other; empty if there are none."""
    paths = [Path(directory, name) for name in _IN_PROJECT] if directory else []
    paths += [Path(home, name) for name in _IN_HOME] if home else []
    if directory and home:  # the index of the client's own memory
        paths.append(claude_directory(Path(home, ".claude"), directory) / "MEMORY.md")
    return "\n".join(filter(None, map(_read, paths)))


def _read(path: Path) -> str:
    try:
        return read_start(path)
    except (OSError, ValueError):
        return ""
