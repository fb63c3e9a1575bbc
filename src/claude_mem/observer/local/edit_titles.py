"""A title from the edits themselves, for a turn whose words give none."""

from collections.abc import Collection

from claude_mem.observer.local.files import FileWork
from claude_mem.observer.local.titles import LONGEST_TITLE, from_files

MOST_NAMES = 2


def from_edits(files: Collection[FileWork]) -> str:
    """What was defined, or what became what; at least the files."""
    if not files:
        return ""
    paths = [work.path for work in files]
    if all(work.created for work in files):
        return from_files(paths, created=True)
    for work in sorted(files, key=lambda work: ("test" in work.path.lower(), -len(work.sources))):
        if title := _change_of(work):
            return title
    return from_files(paths, created=False)


def _change_of(work: FileWork) -> str:
    name = work.path.replace("\\", "/").rsplit("/", 1)[-1]
    choices = [
        *([f"added {_listed(work.added)}"] if work.added else []),
        *(f"added the section “{heading}”" for heading in work.added_headings),
        *(f"`{before}` became `{after}`" for before, after in work.replacements),
    ]
    titles = (f"{name}: {choice}" for choice in choices)
    return next((title for title in titles if len(title) <= LONGEST_TITLE), "")


def _listed(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:MOST_NAMES]]
    return " and ".join(shown) + (" and others" if len(names) > MOST_NAMES else "")
