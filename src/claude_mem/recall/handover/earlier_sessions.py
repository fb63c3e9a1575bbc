"""The lines of the sessions before the last one: what came of each, and in which files."""

from collections import Counter
from collections.abc import Iterator, Sequence

from claude_mem.recall.handover.digests import Result, SessionDigest
from claude_mem.recall.handover.lines import (
    Line,
    code_names,
    content_words,
    flat,
    is_about,
    stems_in,
)
from claude_mem.recall.handover.places import (
    is_incidental,
    name_of,
    place_of,
    with_paths,
)
from claude_mem.recall.handover.result_texts import (
    achievements,
    as_done,
    changes_in,
    is_cosmetic,
    is_draft,
    is_minor,
    is_secondary,
    main_first,
    says_what_was_done,
    starts_as_work,
    without_replaced,
)

MAX_RESULTS = 2
MIN_LINES, MAX_LINES = 6, 10
RECENT = 20  # sessions of which any may be told
NEWEST, MAX_RELATED = 3, 4  # told in any case, and because of the branch
# Parts of names of branches that say nothing of their subject.
_BRANCH_WORDS = stems_in(
    "feature features branch update updates change changes issue issues tests tests refactor chore"
    " hotfix bugfix release develop worktree main improve improvement cleanup wip claude"
)
LONGEST_RUN = 3  # sessions on one branch
LONGEST_RESULT, LONGEST_ABOUT = 100, 160

_Run = tuple[list[SessionDigest], list[str]]  # sessions in a row about the same, and their results


def earlier_sessions(sessions: Sequence[SessionDigest], branch: str = "") -> Iterator[Line]:
    """The latest first; sessions in a row about the same are one line."""
    usual = _usual_branches(sessions)
    are_committed = _are_mostly_committed(sessions)
    for run, results in _chosen(sessions, branch if branch not in usual else ""):
        days = f"{run[-1].day} to {run[0].day}" if run[-1].day != run[0].day else run[0].day
        text = "; ".join(flat(result.rstrip("."), LONGEST_RESULT) for result in results)
        if len(results) == 1 and (about := _about(run[0], results[0])):
            text += f": {about.rstrip('.')}"
        place = _place(run, results, usual)
        if are_committed and _is_uncommitted(run):
            place += "; not committed in that session"
        yield Line(f"- {days} {text}{place}", subject=" ".join(results), stated=text)


def _chosen(sessions: Sequence[SessionDigest], branch: str) -> list[_Run]:
    """The latest, and older ones about what the name of the branch says. Details only where there
    are few others."""
    all_runs = ((run, _shown([r for session in run for r in _results(session)]))
                for run in _runs(sessions))  # fmt: skip
    runs = [(run, results) for run, results in all_runs if results]
    recent = {id(session) for session in sessions[:RECENT]}
    words = stems_in(branch) - _BRANCH_WORDS
    related = [n for n, run in enumerate(runs) if words and _is_related(run, words)][:MAX_RELATED]
    latest = [n for n, (run, _) in enumerate(runs) if id(run[0]) in recent]
    main = [n for n in latest if not _is_detail(*runs[n])]
    details = [n for n in latest if n not in main][: max(0, MIN_LINES - len(main))]
    first = sorted((*main, *details))
    ranked = dict.fromkeys((*first[:NEWEST], *related, *first[NEWEST:]))
    return [runs[n] for n in sorted(list(ranked)[:MAX_LINES])]


def _are_mostly_committed(sessions: Sequence[SessionDigest]) -> bool:
    changed = [session.has_commits for session in sessions if session.is_changed]
    return 2 * sum(changed) > len(changed)


def _is_uncommitted(run: Sequence[SessionDigest]) -> bool:
    return any(session.files for session in run) and not any(s.has_commits for s in run)


def _is_related(run: _Run, words: frozenset[str]) -> bool:
    files = (path for session in run[0] for path in session.files)
    return bool(stems_in(" ".join((*run[1], *files))) & words)


def _is_detail(run: Sequence[SessionDigest], results: Sequence[str]) -> bool:
    """About looks, or about files that only go along with others."""
    files = [path for session in run for path in session.files]
    return all(map(is_cosmetic, results)) or (bool(files) and all(map(is_incidental, files)))


def _about(session: SessionDigest, title: str) -> str:
    """What a session changed, where its title is a heading that does not say it."""
    is_commit = any(row.is_commit and row.text == title for row in session.results)
    if is_commit or starts_as_work(title) or not session.is_changed:
        return ""
    rows = [row for row in session.results if row.text in title] or [
        row for row in session.results if row.files
    ]
    words = content_words(title)
    bodies = (changes_in(row.details, LONGEST_ABOUT, words) for row in rows)
    return with_paths(next(filter(None, bodies), ""), session.files)


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
    if not session.is_changed:  # a draft cannot tell what was learned from what was asked
        rows = [row for row in rows if not is_draft(row)]
    commits = without_replaced([row.text for row in rows if row.is_commit])
    commits = main_first(commits, session.goal)
    if commits and not is_minor(commits[0]):
        texts = commits
    elif session.is_client_title and session.is_changed:
        texts = [session.goal]
    else:
        texts = [_with_goal(row.text, session.goal) for row in rows if not row.is_commit][:1]
        texts = texts or commits[:1]
    texts = [text for text in texts if not is_minor(text)]
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
    return goal if text in goal and says_what_was_done(goal) else text


def _place(run: Sequence[SessionDigest], results: Sequence[str], usual: set[str]) -> str:
    """Files, branch and pull request; a branch that most sessions are on tells nothing."""
    session = run[0]
    rows = [row for other in run for row in other.results]
    own = [path for row in rows if any(row.text in text for text in results) for path in row.files]
    others = [path for other in run for path in other.files]
    if sum(row.is_commit for row in rows) > MAX_RESULTS:  # each has files of its own
        words = stems_in(" ".join(results))
        others = [path for path in others if stems_in(name_of(path)) & words]
    files = list(dict.fromkeys((*own, *others)))
    is_worked_on = session.is_changed and session.branches[:1] and session.branches[0] not in usual
    branch = f"branch {session.branches[0]}" if is_worked_on else ""
    requests = [request.value.rpartition("/")[2] for request in session.pull_requests]
    request = f"pull request {requests[-1]}" if requests else ""
    places = "; ".join(filter(None, (place_of(files, " ".join(results)), branch, request)))
    return f" — {places}" if places else ""


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
