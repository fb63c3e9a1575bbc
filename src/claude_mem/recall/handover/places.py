"""Where work was done: the main files of a session, and paths of files that a text names."""

import re
from collections.abc import Sequence

from claude_mem.recall.handover.lines import stems_in

MAX_MAIN_FILES, LONGEST_PLACE = 3, 110
# What changes along with other files: it does not say what a session was about.
_INCIDENTAL = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|fixtures|testdata|node_modules|dist|build)/"
    r"|[._-](?:tests?|specs?)\.\w{1,5}$|(?:^|/)(?:test_|conftest)[^/]{0,80}\.py$"
    r"|(?:^|/)(?:change_?log|readme|license|history|todo|plan|\.gitignore)[^/]{0,10}$"
    r"|\.(?:lock|sum|snap|txt|log)$|(?:^|/)package(?:-lock)?\.json$",
    re.IGNORECASE,
)
_WORK_TREE = re.compile(r"^(?:\.[\w-]{1,30}/)?\.?worktrees/[^/]{1,80}/")
_TEMPORARY = re.compile(r"(?:^|[/_.-])te?mp[_./-]|(?:^|/)scratch", re.IGNORECASE)


def is_in_project(path: str) -> bool:
    """Relative paths are; others are scratch files or another project's."""
    return not (path.startswith(("/", "~", "..", "\\")) or path[1:2] == ":")


def is_incidental(path: str) -> bool:
    return _INCIDENTAL.search(_plain(path)) is not None


def place_of(files: Sequence[str], title: str) -> str:
    """The main files of a session: first those that its title names, one of each folder."""
    paths = [_plain(path) for path in files if not _TEMPORARY.search(_plain(path))]
    main = [path for path in paths if not _INCIDENTAL.search(path)] or paths
    words = stems_in(title)
    ranked = sorted(main, key=lambda path: -len(stems_in(name_of(path)) & words))
    named = [path for path in ranked if stems_in(name_of(path)) & words]
    by_folder: dict[str, str] = {}
    for path in named or ranked:
        by_folder.setdefault(_folder(path), path)
    shown = list(dict.fromkeys((*by_folder.values(), *ranked)))[:MAX_MAIN_FILES]
    while len(shown) > 1 and len(", ".join(shown)) > LONGEST_PLACE:
        shown.pop()
    more = f" and {len(main) - len(shown)} more" if len(main) > len(shown) else ""
    return ", ".join(shown) + more


def with_paths(text: str, files: Sequence[str]) -> str:
    """With the whole path of each edited file where the text first names it."""
    paths = [_plain(path) for path in files]
    for path in paths:
        name = name_of(path)
        if name == path or path in text or sum(name_of(other) == name for other in paths) > 1:
            continue
        text = re.sub(rf"(?<![\w/\\.-]){re.escape(name)}(?![\w/-])", lambda _: path, text, count=1)  # noqa: B023
    return text


def _plain(path: str) -> str:
    """With slashes, and without the work tree that an agent made inside the project."""
    return _WORK_TREE.sub("", path.replace("\\", "/"))


def _folder(path: str) -> str:
    """ "" for a file at the root of the project."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    return _plain(path).rpartition("/")[2]
