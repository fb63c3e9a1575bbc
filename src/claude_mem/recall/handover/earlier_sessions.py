"""The sessions before the last one: when, what came of it, on which branch."""

import re
from collections.abc import Iterator, Sequence

from claude_mem.recall.handover.achievements import achievements
from claude_mem.recall.handover.digests import SessionDigest
from claude_mem.recall.handover.lines import Line, content_words, flat, is_about, joined

_IS_BUG = re.compile(r"\b(?:instead of|ignores|fails|crashes|does not|doesn't)\b", re.IGNORECASE)
_STARTS_AS_FIX = re.compile(r"\w*fix|bug", re.IGNORECASE)
MAX_RESULTS = 2
MAX_LINES = 8
FILES_SHOWN = 3
LONGEST_RESULT = 100


def earlier_sessions(sessions: Sequence[SessionDigest]) -> Iterator[Line]:
    """The latest first; sessions in a row about the same are one line."""
    count = 0
    for run in _runs(sessions):
        results = _distinct([result for session in run for result in _results(session)])
        if not results:
            continue
        count += 1
        if count > MAX_LINES:
            return
        days = f"{run[-1].day} to {run[0].day}" if run[-1].day != run[0].day else run[0].day
        text = "; ".join(flat(result, LONGEST_RESULT) for result in results[:MAX_RESULTS])
        yield Line(f"- {days} {text}{_place(run[0])}", subject=" ".join(results[:MAX_RESULTS]))


def _distinct(results: Sequence[str]) -> list[str]:
    """Without those that repeat an earlier one, as an amended commit does."""
    distinct: list[str] = []
    for result in results:
        words = content_words(result)
        if not any(is_about(words, content_words(other)) for other in distinct):
            distinct.append(result)
    return distinct


def _results(session: SessionDigest) -> list[str]:
    """Commits say best what came of a session; then its title, then what it learned."""
    # Of a session that changed nothing only what it learned: its title is a question or a wish.
    goal = session.goal if session.files and not session.is_client_title else ""
    results = achievements(session.results, goal)
    texts = [result.text for result in results]
    if results and results[0].commit:
        return [result.text for result in results if result.commit]
    if session.is_client_title:
        return [session.goal, *texts] if session.files or session.results else []
    if texts and session.files and _IS_BUG.search(texts[0]) and not _STARTS_AS_FIX.match(texts[0]):
        return [f"Fix: {texts[0]}"]
    return texts[:1] or _work_on_files(session)


def _work_on_files(session: SessionDigest) -> list[str]:
    """Where nothing says what was done, which files were edited says more than a remark."""
    if not session.files:
        return []
    return [f"Edited {joined((_name(path) for path in session.files), FILES_SHOWN)}"]


def _name(path: str) -> str:
    return "/".join(path.replace("\\", "/").split("/")[-2:])


def _place(session: SessionDigest) -> str:
    if session.pull_requests:
        return f" ({session.pull_requests[-1].value})"
    return f" (branch {session.branches[0]})" if session.branches else ""


def _runs(sessions: Sequence[SessionDigest]) -> Iterator[list[SessionDigest]]:
    run: list[SessionDigest] = []
    for session in sessions:
        if run and _is_same_topic(run[-1], session):
            run.append(session)
            continue
        if run:
            yield run
        run = [session]
    if run:
        yield run


def _is_same_topic(later: SessionDigest, earlier: SessionDigest) -> bool:
    if later.branches and later.branches == earlier.branches:
        return True
    return is_about(content_words(earlier.title), content_words(later.title))
