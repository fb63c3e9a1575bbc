"""The tree in the docstring of errors.py is the hierarchy of errors."""

from claude_mem import errors
from claude_mem.errors import ClaudeMemError
from claude_mem.observer.models.failures import ObserverError

BRANCH = 4  # characters of a branch in the drawing


def drawn_tree() -> dict[str, str]:
    """Each error and its parent, as drawn."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        name = line.strip("│├└─ ").split(" ")[0]
        depth = (len(line) - len(line.lstrip("│├└─ "))) // BRANCH
        if name == ClaudeMemError.__name__ or depth:
            path[depth:] = [name]
            parents[name] = path[depth - 1] if depth else ""
    return parents


def actual_tree(root: type[Exception], parent: str = "") -> dict[str, str]:
    tree = {root.__name__: parent}
    if root is not ObserverError:  # its kinds are drawn in their own module
        for child in root.__subclasses__():
            # Those of the team are loaded only with its modules, and are described there.
            if not child.__module__.startswith("claude_mem.team"):
                tree |= actual_tree(child, root.__name__)
    return tree


def test_the_drawing_shows_every_error_below_its_parent() -> None:
    assert drawn_tree() == actual_tree(ClaudeMemError)
