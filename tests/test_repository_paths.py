"""Which repository a path belongs to, by its shape alone."""

import pytest

from claude_mem.intake.projects import repository_of

HOME = "/Users/dev"


@pytest.mark.parametrize(
    ("directory", "repository", "name"),
    [
        (f"{HOME}/src/lamp/.claude/worktrees/fix", f"{HOME}/src/lamp", "lamp"),
        (f"{HOME}/src/lamp/.claude/worktrees/fix/web/ui", f"{HOME}/src/lamp", "lamp"),
        (f"{HOME}/src/lamp/.worktrees/dev/fix", f"{HOME}/src/lamp", "lamp"),
        (f"{HOME}/src/lamp/.conductor/lisbon", f"{HOME}/src/lamp", "lamp"),
        (f"{HOME}/src/lamp/.git/worktrees/fix", f"{HOME}/src/lamp", "lamp"),
        (f"{HOME}/src/lamp/.cursor/worktrees/fix", f"{HOME}/src/lamp", "lamp"),
        (f"{HOME}/src/lamp-worktrees/fix", f"{HOME}/src/lamp", "lamp"),
        (f"{HOME}/src/lamp.worktrees/fix/web", f"{HOME}/src/lamp", "lamp"),
        (f"{HOME}/src/lamp/worktrees/fix", f"{HOME}/src/lamp", "lamp"),
        (f"{HOME}/src/worktrees/lamp/fix", f"{HOME}/src/worktrees/lamp", "lamp"),
        (f"{HOME}/worktrees/lamp/fix", f"{HOME}/worktrees/lamp", "lamp"),
        (f"{HOME}/conductor/workspaces/lamp/lisbon", f"{HOME}/conductor/workspaces/lamp", "lamp"),
        (f"{HOME}/conductor/workspaces/lamp/lisbon/web", f"{HOME}/conductor/workspaces/lamp",
         "lamp"),
        (f"{HOME}/conductor/lamp/lisbon", f"{HOME}/conductor/lamp", "lamp"),
        (f"{HOME}/.cursor/worktrees/lamp/x7", f"{HOME}/.cursor/worktrees/lamp", "lamp"),
        (f"{HOME}/.codex/worktrees/3f2a/lamp", f"{HOME}/.codex/worktrees/lamp", "lamp"),
        (f"{HOME}/.codex/worktrees/9b1c/lamp/web", f"{HOME}/.codex/worktrees/lamp", "lamp"),
        (f"{HOME}/.claude-worktrees/lamp/fix", f"{HOME}/.claude-worktrees/lamp", "lamp"),
        ("/var/tmp/vibe-kanban/worktrees/3f2a-fix/lamp", "/var/tmp/vibe-kanban/worktrees/lamp",
         "lamp"),
        (r"C:\src\lamp\.claude\worktrees\fix", r"C:\src\lamp", "lamp"),
        (r"C:\Users\dev\conductor\workspaces\lamp\lisbon",
         r"C:\Users\dev\conductor\workspaces\lamp", "lamp"),
        (r"D:\lamp\.worktrees\fix\web", r"D:\lamp", "lamp"),
    ],
)  # fmt: skip
def test_a_work_tree_belongs_to_its_repository(directory: str, repository: str, name: str) -> None:
    match = repository_of(directory)
    assert match is not None
    assert (match.directory, match.name) == (repository, name)


@pytest.mark.parametrize(
    "directory",
    [f"{HOME}/src/lamp", f"{HOME}/src/lamp/web", r"C:\src\lamp", "/", "", f"{HOME}/worktrees",
     f"{HOME}/src/worktrees/lamp", f"{HOME}/src/superconductor/lamp/web", "worktrees",
     f"{HOME}/.claude/worktrees"],
)  # fmt: skip
def test_a_plain_directory_has_no_such_shape(directory: str) -> None:
    assert repository_of(directory) is None
