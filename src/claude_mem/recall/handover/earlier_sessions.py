"""The sessions before the last one: when, what came of it, on which branch."""

from collections import Counter
from collections.abc import Iterator, Sequence

from claude_mem.recall.handover.achievements import (
    achievements,
    as_done,
    is_cosmetic,
    is_draft,
    is_minor,
    is_secondary,
    main_first,
    without_replaced,
)
from claude_mem.recall.handover.digests import Result, SessionDigest
from claude_mem.recall.handover.lines import Line, code_names, content_words, flat, is_about

MAX_RESULTS = 2
MIN_LINES, MAX_LINES = 6, 8
LONGEST_RUN = 3  # sessions on one branch
LONGEST_RESULT = 100


def earlier_sessions(sessions: Sequence[SessionDigest]) -> Iterator[Line]:
    """The latest first; sessions in a row about the same are one line. Those about looks only
    where there are few others."""
    runs = [(run, _shown([r for session in run for r in _results(session)]))
            for run in _runs(sessions)]  # fmt: skip
    runs = [(run, results) for run, results in runs if results]
    main = sum(not all(map(is_cosmetic, results)) for _, results in runs)
    cosmetic = max(0, MIN_LINES - main)
    count = 0
    for run, results in runs:
        if all(map(is_cosmetic, results)):
            cosmetic -= 1
            if cosmetic < 0:
                continue
        count += 1
        if count > MAX_LINES:
            return
        days = f"{run[-1].day} to {run[0].day}" if run[-1].day != run[0].day else run[0].day
        text = "; ".join(flat(result.rstrip("."), LONGEST_RESULT) for result in results)
        yield Line(f"- {days} {text}{_place(run[0])}", subject=" ".join(results))


def _shown(results: Sequence[str]) -> list[str]:
    """Without those that repeat an earlier one, as an amended commit does, and minor ones."""
    shown: list[str] = []
    for result in results:
        words = content_words(result)
        is_repeated = any(is_about(words, content_words(other)) for other in shown)
        if not is_repeated and not (shown and is_secondary(result)):
            shown.append(result)
    return shown[:MAX_RESULTS]


def _results(session: SessionDigest) -> list[str]:
    """Commits say best what came of a session; then its title, then what it learned."""
    # Of a session that changed nothing only what it learned: its title is a question or a wish.
    is_own_title = session.is_changed and not session.is_client_title
    rows = achievements(session.results, session.goal if is_own_title else "")
    rows = [row for row in rows if row.is_commit or not _is_idea(row, session)]
    commits = without_replaced([row.text for row in rows if row.is_commit])
    commits = main_first(commits, session.goal)
    if commits and not is_minor(commits[0]):
        texts = commits
    elif session.is_client_title and session.is_changed:
        texts = [session.goal]
    else:
        texts = [_with_goal(row.text, session.goal) for row in rows if not row.is_commit][:1]
        texts = texts or commits[:1]
    return [as_done(text) for text in texts] if session.is_changed else texts


def _is_idea(row: Result, session: SessionDigest) -> bool:
    """Whether it was only proposed, in a session that then edited files: a draft's note of a turn
    without edits, or a title that names something that no turn with edits speaks of."""
    edits = [turn for turn in session.turns if turn.files]
    if not edits:
        return False
    if row.observation is not None and is_draft(row) and not row.files:
        return True
    names = code_names(row.text)
    if not names:
        return False
    told = " ".join(
        f"{result.text} {result.details} {' '.join(turn.files)}"
        for turn in edits
        for result in turn.results
    )
    return not any(name in told for name in names)


def _with_goal(text: str, goal: str) -> str:
    """The title says "Fix: …" where the result leaves it out."""
    return goal if text in goal else text


def _place(session: SessionDigest) -> str:
    is_worked_on = bool(session.branches) and session.is_changed
    branch = f"branch {session.branches[0]}" if is_worked_on else ""
    requests = [request.value.rpartition("/")[2] for request in session.pull_requests]
    request = f"pull request {requests[-1]}" if requests else ""
    places = ", ".join(filter(None, (branch, request)))
    return f" ({places})" if places else ""


def _runs(sessions: Sequence[SessionDigest]) -> Iterator[list[SessionDigest]]:
    run: list[SessionDigest] = []
    usual = _usual_branches(sessions)
    for session in sessions:
        if run and _is_same_topic(run[-1], session, usual):
            run.append(session)
            continue
        if run:
            yield run
        run = [session]
    if run:
        yield run


def _usual_branches(sessions: Sequence[SessionDigest]) -> set[str]:
    """On which so many sessions worked that it says nothing about their topics."""
    counts = Counter(session.branches[0] for session in sessions if session.branches)
    return {name for name, count in counts.items() if count > max(LONGEST_RUN, len(sessions) / 3)}


def _is_same_topic(later: SessionDigest, earlier: SessionDigest, usual: set[str]) -> bool:
    is_same_branch = bool(later.branches) and later.branches[:1] == earlier.branches[:1]
    if is_same_branch and later.branches[0] not in usual:
        return later.is_changed and earlier.is_changed
    return is_about(content_words(earlier.title), content_words(later.title))
