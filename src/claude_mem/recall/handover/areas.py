"""A map of the project: the folders that sessions worked in most, with their latest results."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from claude_mem.recall.handover.achievements import achievements, is_draft, is_secondary
from claude_mem.recall.handover.digests import Result, SessionDigest, TurnDigest
from claude_mem.recall.handover.lines import Line, content_words, flat, is_about

MAX_AREAS, RESULTS_PER_AREA, FILES_PER_AREA, MIN_TURNS = 4, 2, 3, 2
LONGEST_RESULT = 90
MANY = 10  # turns with edits


def areas(sessions: Sequence[SessionDigest], shown: Sequence[str]) -> Iterator[Line]:
    """Folders by the number of turns that edited them; results that are shown already are not
    repeated."""
    turns: dict[str, list[TurnDigest]] = {}
    for session in sessions:
        for turn in reversed(session.turns):
            for folder in dict.fromkeys(map(_folder, turn.files)):
                turns.setdefault(folder, []).append(turn)
    counts = Counter({folder: len(rows) for folder, rows in turns.items() if folder})
    latest = set(map(_folder, sessions[0].files[:1])) if sessions else set()
    subjects = [content_words(text) for text in shown]
    edits = sum(bool(turn.files) for session in sessions for turn in session.turns)
    for folder, count in _ordered(counts, latest)[:MAX_AREAS]:
        if count < MIN_TURNS or (edits >= MANY and count > edits / 2):
            continue  # a folder of nearly everything is no area
        results = _new_results(turns[folder], subjects)
        subjects += [content_words(result.text) for result in results]
        if len(results) < RESULTS_PER_AREA:
            continue  # too little to tell what the folder is about
        titles = "; ".join(flat(result.text, LONGEST_RESULT) for result in results)
        ids = tuple(name for result in results for name in result.ids)
        yield Line(f"- {folder}/ ({_files(results, folder)}): {titles}", ids=ids)


def _ordered(counts: Counter[str], latest: set[str]) -> list[tuple[str, int]]:
    """By count, where the folder that the last session worked in most comes first."""
    return sorted(counts.items(), key=lambda item: (item[0] not in latest, -item[1], item[0]))


def _files(results: Sequence[Result], folder: str) -> str:
    """Those that its latest turns edited: older ones may be renamed by now."""
    paths = (path for result in results for path in result.files if _folder(path) == folder)
    names = dict.fromkeys(path.replace("\\", "/").rpartition("/")[2] for path in paths)
    return ", ".join(list(names)[:FILES_PER_AREA])


def _new_results(turns: Sequence[TurnDigest], subjects: list[frozenset[str]]) -> list[Result]:
    """The latest of the folder, up to one that a line above is about: what is older may be
    overtaken by that. Of drafts only commits: what else they say may be a review, a try or a
    state."""
    results: list[Result] = []
    rows = [row for turn in turns for row in achievements(turn.results)]
    for result in (row for row in rows if row.is_commit or not is_draft(row)):
        words = content_words(result.text)
        if any(is_about(words, subject) for subject in subjects):
            break
        is_again = any(is_about(words, content_words(other.text)) for other in results)
        if is_secondary(result.text) or is_again:
            continue
        results.append(result)
        if len(results) == RESULTS_PER_AREA:
            break
    return results


def _folder(path: str) -> str:
    """Of a file in the project; "" for one at its root."""
    folder = str(PurePosixPath(path.replace("\\", "/")).parent)
    return "" if folder == "." else folder
