"""A map of the project: the folders that sessions worked in most, with their latest results."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from claude_mem.recall.handover.achievements import achievements
from claude_mem.recall.handover.digests import Result, SessionDigest, TurnDigest
from claude_mem.recall.handover.lines import Line, flat

MAX_AREAS, RESULTS_PER_AREA, MIN_TURNS = 5, 2, 2
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
    seen = set(shown)
    for folder, count in counts.most_common(MAX_AREAS):
        results = _new_results(turns[folder], seen)
        if count >= MIN_TURNS and results:
            seen.update(result.text for result in results)
            titles = "; ".join(flat(result.text, LONGEST_RESULT) for result in results)
            ids = tuple(name for result in results for name in result.ids)
            yield Line(f"- {folder}/ (edited in {count} turns): {titles}", ids=ids)


def _new_results(turns: Sequence[TurnDigest], shown: set[str]) -> list[Result]:
    rows = achievements(result for turn in turns for result in turn.results)
    results = {result.text: result for result in rows if result.text not in shown}
    return list(results.values())[:RESULTS_PER_AREA]


def _folder(path: str) -> str:
    """Of a file in the project; "" for one at its root."""
    folder = str(PurePosixPath(path.replace("\\", "/")).parent)
    return "" if folder == "." else folder
