"""Where work was done: the main files of a session, and a map of the folders of the project."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from claude_mem.recall.handover.digests import is_in_project
from claude_mem.recall.handover.lines import Line, content_words
from claude_mem.store.edited_files import EditedFiles

MAX_MAIN_FILES, LONGEST_PLACE = 2, 120
MIN_SESSIONS = 2  # that edited a folder or file of the map
FEWEST, MAX_COUNTED = 3, 10
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


def is_incidental(path: str) -> bool:
    return _INCIDENTAL.search(_plain(path)) is not None


def main_files(files: Sequence[str], title: str) -> list[str]:
    """Those that a session was about: the ones that its title names first, then in their order."""
    paths = [_plain(path) for path in files if not _TEMPORARY.search(_plain(path))]
    main = [path for path in paths if not _INCIDENTAL.search(path)] or paths
    words = content_words(title)
    return sorted(main, key=lambda path: not content_words(_name(path)) & words)


def place_of(files: Sequence[str], title: str) -> str:
    """The main files of a session; of many the folder that has most of them."""
    main = main_files(files, title)
    if len(main) > MAX_MAIN_FILES:
        folders = [_folder(path) for path in main]
        most = max(dict.fromkeys(folders), key=folders.count)
        if most and folders.count(most) > MAX_MAIN_FILES:
            names = [_name(path) for path in main if _folder(path) == most]
            return f"{most}/ ({', '.join(names[:MAX_MAIN_FILES])}, …)"
    shown = ", ".join(main[:MAX_MAIN_FILES])
    return shown if len(shown) <= LONGEST_PLACE else "".join(main[:1])


def with_paths(text: str, files: Sequence[str]) -> str:
    """With the whole path of each edited file where the text first names it."""
    paths = [_plain(path) for path in files]
    for path in paths:
        name = _name(path)
        if name == path or path in text or sum(_name(other) == name for other in paths) > 1:
            continue
        text = re.sub(rf"(?<![\w/\\.-]){re.escape(name)}(?![\w/-])", lambda _: path, text, count=1)  # noqa: B023
    return text


def most_edited(edits: Sequence[EditedFiles]) -> Iterator[Line]:
    """A map: the folders and files that most sessions edited, with the number of these."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for edit in edits:
        for path in filter(is_in_project, map(_plain, edit.files)):
            if _folder(path) and not _TEMPORARY.search(path):
                files[path].add(edit.session)
                folders[_folder(path)].add(edit.session)
    main = {path: sessions for path, sessions in files.items() if not _INCIDENTAL.search(path)}
    for label, sessions in (("Folders", folders), ("Files", main)):
        if len(counted := _counted(sessions)) >= FEWEST:
            yield Line(f"- {label}: {', '.join(counted)}", stated="")


def _counted(sessions: Mapping[str, set[str]]) -> list[str]:
    ranked = sorted(sessions, key=lambda path: (-len(sessions[path]), path))
    often = [path for path in ranked if len(sessions[path]) >= MIN_SESSIONS]
    return [f"{path} ({len(sessions[path])})" for path in often[:MAX_COUNTED]]


def _plain(path: str) -> str:
    """With slashes, and without the work tree that an agent made inside the project."""
    return _WORK_TREE.sub("", path.replace("\\", "/"))


def _folder(path: str) -> str:
    """ "" for a file at the root of the project."""
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
