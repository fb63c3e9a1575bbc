"""What a context needs of a working directory: its branch, and the instructions of its project.

The branch is read from the files of git: no process is started for it.
"""

from pathlib import Path

from claude_mem.intake.client_memory_files import claude_directory
from claude_mem.intake.untrusted_files import LONGEST_PATH, read_start

_BRANCH = "ref: refs/heads/"


def current_branch(directory: str) -> str:
    """Returns the branch; empty for a detached HEAD, and where there is no repository."""
    if not directory:
        return ""
    try:
        start = Path(directory).resolve()
        for candidate in (start, *start.parents):
            git = candidate / ".git"
            if git.is_dir():
                return _branch_in(git)
            if git.is_file():
                text = read_start(git)[:LONGEST_PATH]
                return _branch_in((candidate / text.removeprefix("gitdir:").strip()).resolve())
    except (OSError, ValueError, RuntimeError):
        return ""
    return ""


def _branch_in(git_dir: Path) -> str:
    head = read_start(git_dir / "HEAD")[:LONGEST_PATH].strip()
    return head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else ""


# The files in which a project or a user instructs agents; clients give them to every session.

_IN_PROJECT = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md")
_IN_HOME = (".claude/CLAUDE.md",)


def read_rule_files(directory: str, home: str) -> str:
    """Reads the text of the rule files, one after the other; empty if there are none."""
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
