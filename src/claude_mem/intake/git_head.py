"""The branch of a directory, from the files of git: no process is started for it."""

from pathlib import Path

from claude_mem.intake.untrusted_files import LONGEST_PATH, read_start

_BRANCH = "ref: refs/heads/"


def current_branch(directory: str) -> str:
    """Empty for a detached HEAD, and where there is no repository."""
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
