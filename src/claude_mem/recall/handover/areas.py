"""A map of the project: the folders that sessions worked in most, with their latest results."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from claude_mem.recall.handover.achievements import achievements, is_draft, is_secondary
from claude_mem.recall.handover.digests import Result, SessionDigest, TurnDigest
from claude_mem.recall.handover.lines import Line, content_words, flat, is_about

MAX_AREAS, RESULTS_PER_AREA, FILES_PER_AREA, MIN_TURNS = 4, 2, 3, 2
LONGEST_RESULT = 90


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
    for folder, count in _ordered(counts, latest)[:MAX_AREAS]:
        if count < MIN_TURNS:
            continue
        results = _new_results(turns[folder], subjects)
        if len(results) < RESULTS_PER_AREA:
            continue  # too little to tell what the folder is about
        titles = "; ".join(flat(result.text, LONGEST_RESULT) for result in results)
        ids = tuple(name for result in results for name in result.ids)
        yield Line(f"- {folder}/ ({_usual_files(turns[folder], folder)}): {titles}", ids=ids)


def _ordered(counts: Counter[str], latest: set[str]) -> list[tuple[str, int]]:
    """By count, where the folder that the last session worked in most comes first."""
    return sorted(counts.items(), key=lambda item: (item[0] not in latest, -item[1], item[0]))


def _usual_files(turns: Sequence[TurnDigest], folder: str) -> str:
    paths = (path for turn in turns for path in turn.files if _folder(path) == folder)
    counts = Counter(path.replace("\\", "/").rpartition("/")[2] for path in paths)
    return ", ".join(name for name, _ in counts.most_common(FILES_PER_AREA))


def _new_results(turns: Sequence[TurnDigest], subjects: list[frozenset[str]]) -> list[Result]:
    """What no line above is about; their subjects are added to those that are shown. Of drafts
    only commits: what else they say may be a review, a try or a state."""
    results: list[Result] = []
    rows = achievements(result for turn in turns for result in turn.results)
    for result in (row for row in rows if row.is_commit or not is_draft(row)):
        words = content_words(result.text)
        if is_secondary(result.text) or any(is_about(words, subject) for subject in subjects):
            continue
        subjects.append(words)
        results.append(result)
        if len(results) == RESULTS_PER_AREA:
            break
    return results


def _folder(path: str) -> str:
    """Of a file in the project; "" for one at its root."""
    folder = str(PurePosixPath(path.replace("\\", "/")).parent)
    return "" if folder == "." else folder
