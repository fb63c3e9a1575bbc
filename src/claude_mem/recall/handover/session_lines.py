"""The lines of sessions: of the last one the state in which it left its work (goal, results, files,
whether they were committed and pushed, next steps), of those before it what came of each, and in
which files."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from claude_mem.recall.handover.digests import (
    REVERT,
    Habits,
    Result,
    SessionDigest,
    is_incidental,
    name_of,
    place_of,
    plain_path,
    with_paths,
)
from claude_mem.recall.handover.statements import (
    LOCAL,
    Line,
    as_done,
    cause_in,
    changes_in,
    code_names,
    elaboration_in,
    first_sentences,
    flat,
    is_about,
    is_clear,
    is_cosmetic,
    is_edit_of_file,
    is_minor,
    is_problem,
    is_repetition,
    is_secondary,
    joined,
    long_words,
    main_first,
    name_as_data,
    problem_in,
    purpose_in,
    rank_of_result,
    says_what_was_done,
    split_sentences,
    starts_as_work,
    stems_in,
    with_end,
    without_replaced,
)
from claude_mem.store.clock import iso
from claude_mem.store.facts import Artifact
from claude_mem.store.memories import commands_from, open_steps_from
from claude_mem.store.memory_rows import JsonRow
from claude_mem.text import QUESTION_MARKS, one_line, shorten
from claude_mem.title_rules import is_english_text
from claude_mem.types import CommandRun

LONGEST_BODY, LONGEST_LAST_BODY = 220, 420
MAX_FILES, MAX_STEPS, SEVERAL = 6, 3, 2
LONGEST_NOTE, LONGEST_FILES = 80, 220
LONGEST_GOAL, LONGEST_EXPLANATION = 420, 220
ALL = 1.0  # words of a commit that are in another
_DONE = re.compile(r"\w+ed\b|(?:built|made|wrote|split|set up)\b", re.IGNORECASE)
_NUMBER_ALONE = re.compile(r"(?:^|\s)(?:issue|pr|pull request) #?\d+$", re.IGNORECASE)
_ANNOUNCES_NEXT = re.compile(r"(?:[\w. ]{0,20} )?next: ", re.IGNORECASE)
_CURRENTLY = re.compile(r"currently,? ", re.IGNORECASE)

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


def goal_of(session: SessionDigest) -> Iterator[Line]:
    """Gives the goal, unless a commit says the same, as done."""
    goal = as_done(session.goal) if session.is_changed else session.goal
    words = long_words(goal)
    commits = [long_words(result.text) for result in session.results if result.is_commit]
    is_in_commit = any(is_about(words, subject) for subject in commits)
    is_in_commit = is_in_commit or (bool(commits) and _NUMBER_ALONE.search(goal) is not None)
    is_goal = says_what_was_done(session.goal) and not _DONE.match(session.goal)
    is_all = not session.results  # of a session that was interrupted, for example
    is_shown = session.is_client_title or is_goal or is_all or goal != session.goal
    if goal and not is_in_commit and is_shown:
        about = _explanation(session)
        text = f"Goal: {goal}. {about}" if about else f"Goal: {goal}"
        yield Line(flat(text, LONGEST_GOAL), subject=session.goal)


def _explanation(session: SessionDigest) -> str:
    """What the first turn says of the goal, where it is only a heading."""
    same = [result for result in session.results if result.text == session.title]
    details = same[-1].details if same else ""
    return first_sentences(details, LONGEST_EXPLANATION, long_words(session.title))


def results_of(session: SessionDigest) -> list[Line]:
    """The latest first; what repeats the goal gives only its details."""
    goal = long_words(session.title) if any(goal_of(session)) else frozenset()
    lines: list[Line] = []
    names: set[str] = set()
    for result in _shown_results(session):
        body = _body(result, LONGEST_BODY if lines else LONGEST_LAST_BODY, session.is_changed)
        body = with_paths(body, session.files)
        about = code_names(result.text)
        # What was found is told by what was done about it; an edit of other files is not.
        is_covered = bool(about & names) and not result.files
        if not result.is_commit and (is_covered or _is_fixed(result, session, lines)):
            continue
        names |= about
        words = long_words(result.text)
        is_goal = len(words) > 1 and is_about(words, goal)
        if not result.is_commit and (is_goal or not _is_title(result, session)):
            if body:
                text = body if is_goal else _with_reason(body, result)
                lines.append(Line(" ".join((f"- {text}", *result.ids)), ids=result.ids))
            continue
        # A body that says the title and more stands for it.
        body_has_title = bool(body) and not result.is_commit and is_about(words, long_words(body))
        text = " ".join((body, *result.ids)) if body_has_title else result.label
        text += f": {body}" if body and not body_has_title else ""
        # That of a revert is what it took back.
        subject = "" if REVERT.match(result.text) else result.text
        lines.append(Line(f"- {text}", subject=subject, ids=result.ids))
    return lines or list(_outcome(session))


def _with_reason(change: str, result: Result) -> str:
    """What a draft found, as its title says it, before what it changed about the same."""
    names = code_names(result.text)
    is_reason = is_clear(result.text) and names & code_names(change) and result.text not in change
    return f"{with_end(result.text)} {change}" if is_reason else change


def _outcome(session: SessionDigest) -> Iterator[Line]:
    """What the last turn with edits says, where no result can be told as one."""
    for result in session.results:
        text = first_sentences(result.details, LONGEST_LAST_BODY)
        if result.files and text and result.text != session.title:
            yield Line(" ".join((f"- {with_paths(text, session.files)}", *result.ids)),
                       ids=result.ids)  # fmt: skip
            return


def _is_fixed(result: Result, session: SessionDigest, later: Sequence[Line]) -> bool:
    return session.is_changed and bool(later) and is_problem(result.text)


def _is_title(result: Result, session: SessionDigest) -> bool:
    """A draft's title tells what was done, or what was found where nothing was. If it is all that
    a turn with edits has to tell, it is a result."""
    if not (session.is_changed and result.is_draft):
        return True
    is_all = _lists_edits(result) and bool(result.files) and is_clear(result.text)
    return (is_all or says_what_was_done(result.text)) and not is_repetition(result.text)


def _lists_edits(result: Result) -> bool:
    """Whether it says nothing besides its title, or only what became what in its files."""
    return all(map(is_edit_of_file, split_sentences(one_line(result.details))))


def _shown_results(session: SessionDigest) -> list[Result]:
    """The latest first. A draft does not know what a later turn made of what it found, proposed or
    tried, so of a session that changed something its changes are told, up to the last commit, or
    the last edit of the same files."""
    results = session.results
    commits = sum(result.is_commit for result in results)
    shown: list[Result] = []
    later: dict[int, tuple[str, ...]] = {}  # files by turn
    is_after_commit = True
    for result in results:
        edited = {path for turn, files in later.items() if turn > result.turn for path in files}
        is_overtaken = bool(edited) and edited.issuperset(result.files)
        if session.is_changed:
            is_overtaken = is_overtaken or not result.files
        if commits >= SEVERAL:
            is_overtaken = not is_after_commit or not result.files
        if result.is_commit or not result.is_draft or not is_overtaken:
            shown.append(result)
        later[result.turn] = result.files
        is_after_commit = is_after_commit and not result.is_commit
    shown = _last_of_each(shown)
    main = [result for result in shown if not (result.is_commit and is_minor(result.text))]
    return main if len(main) >= SEVERAL else shown


def _last_of_each(results: Sequence[Result]) -> list[Result]:
    """Leaves out, of commits, the latest first, those that a later one contains, as an amended one
    does. What is known of one that is left out is told with the later one."""
    last: list[Result] = []
    for result in results:
        words = long_words(result.text)
        later = [
            n
            for n, other in enumerate(last)
            if other.is_commit and is_about(words, long_words(other.text), ALL)
        ]
        if not (result.is_commit and later):
            last.append(result)
        elif last[later[0]].observation is None:
            last[later[0]] = replace(
                last[later[0]], details=result.details, observation=result.observation
            )
    return last


def _body(result: Result, limit: int, is_changed: bool) -> str:
    """Gives whole sentences, without those that repeat the title; nothing that is about something
    else.

    A draft that changed something tells only what it changed, or else the problem that it solved.
    """
    title = long_words(result.text)
    if _lists_edits(result) and is_clear(result.text) and not is_edit_of_file(result.text):
        return ""
    if REVERT.match(result.text):
        return first_sentences(result.details, limit, title)
    if is_changed and result.is_draft and is_english_text(result.details):
        if body := changes_in(result.details, limit, title):
            return body
        if purpose := purpose_in(result.details, limit):
            return purpose
        if problem := problem_in(result.details, limit, title):
            return f"The problem was: {_CURRENTLY.sub('', problem)}"
        if elaboration := elaboration_in(result.details, limit, title):
            return elaboration
        return cause_in(result.details, limit) if result.is_bugfix else ""
    if title and not title & long_words(result.details):
        return ""
    return first_sentences(result.details, limit, title)


def where_it_stands(
    session: SessionDigest, results: Sequence[Line], habits: Habits
) -> Iterator[Line]:
    """Tells what the results do not: pull requests, files and whether they were committed and
    pushed, failing tests and next steps."""
    last = session.last_commit
    is_named = last is None or any(last.note in line.text for line in results)
    places = [] if last is None or is_named else [f"last commit {last.value[:8]} {last.note}"]
    is_unpushed = habits.pushes and session.has_commits and not session.pull_requests
    push_state = session.push_state or ("not pushed in that session" if is_unpushed else "")
    places += [push_state] if push_state else []
    places += [
        f"pull request {request.value} ({_seen(request)}, state unknown)"
        for request in session.pull_requests[-2:]
    ]
    if places:
        text = "; ".join(places)
        yield Line(flat(f"{text[0].upper()}{text[1:]}"))
    shown_text = " ".join(line.text for line in results)
    is_uncommitted = habits.commits and not session.has_commits
    files = sorted(dict.fromkeys(map(plain_path, session.files)), key=is_incidental)
    if any(path.rpartition("/")[2] not in shown_text for path in files):
        state = ", not committed in that session" if is_uncommitted else ""
        yield Line(f"Files edited{state}: {_fitting(files)}", stated="")
    elif session.files and is_uncommitted:
        yield Line("Not committed in that session.")
    if session.has_commits and session.uncommitted:
        edited = list(dict.fromkeys(map(plain_path, session.uncommitted)))
        yield Line(f"Edited after its last commit: {_fitting(edited)}", stated="")
    for run in _last_failing_test(session):
        yield Line(flat(f"Tests failed at the end: `{run.command}` ({run.counts or run.outcome})"))
    for step in _next_steps(session.turns[-1].summary)[:MAX_STEPS]:
        yield Line(flat(f"Next: {_ANNOUNCES_NEXT.sub('', step)}"))


def _fitting(paths: Sequence[str]) -> str:
    """Returns as many whole names as fit on a line."""
    count, length = 0, 0
    for path in paths[:MAX_FILES]:
        length += len(path) + 2
        if count and length > LONGEST_FILES:
            break
        count += 1
    return joined(paths, count)


def _seen(request: Artifact) -> str:
    seen = f"seen {iso(request.seen_ms)[:10]}"
    return f"{shorten(request.note, LONGEST_NOTE)}; {seen}" if request.note else seen


def _last_failing_test(session: SessionDigest) -> list[CommandRun]:
    runs = [
        run
        for turn in session.turns
        for run in commands_from(turn.summary["commands"])
        if run.purpose == "test"
    ]
    return [run for run in runs[-1:] if run.outcome == "failed"]


def _next_steps(summary: JsonRow) -> list[str]:
    """Returns the next steps of the last turn; an offer to the user ends with its session."""
    steps = [step.text for step in open_steps_from(summary["open_steps"])]
    if not steps and summary["observer"] != LOCAL:
        # A model may see a step that the events do not show.
        steps = [str(summary["next_steps"] or "")]
    return [step for step in steps if step and not step.rstrip().endswith(QUESTION_MARKS)]


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
    """Whether the results are about looks, or about files that only go along with others."""
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
    words = long_words(title)
    bodies = (changes_in(row.details, LONGEST_ABOUT, words) for row in rows)
    return with_paths(next(filter(None, bodies), ""), session.files)


def _shown(results: Sequence[str]) -> list[str]:
    """Leaves out results that repeat an earlier one, as an amended commit does, and minor ones."""
    shown: list[str] = []
    for result in results:
        words = long_words(result)
        is_repeated = any(is_about(words, long_words(other)) for other in shown)
        if not is_repeated and not (shown and is_secondary(result)):
            shown.append(result)
    return shown[:MAX_RESULTS]


def _results(session: SessionDigest) -> list[str]:
    """Commits say best what came of a session; then its title, then what it learned."""
    # Of a session that changed nothing only what it learned: its title is a question or a wish.
    is_own_title = session.is_changed and not session.is_client_title
    rows = _achievements(session.results, session.goal if is_own_title else "")
    rows = [row for row in rows if row.is_commit or not _is_idea(row, session)]
    if not session.is_changed:  # a draft cannot tell what was learned from what was asked
        rows = [row for row in rows if not row.is_draft]
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


def _achievements(results: Iterable[Result], goal: str = "") -> list[Result]:
    """Commits, then what says what was done, best first; no remarks of drafts. The goal of a
    session counts as what was done in it."""
    rows = [*([Result(goal)] if goal else []), *results]
    ranked = [(rank, row) for row in rows if (rank := _rank(row)) is not None]
    return [row for _, row in sorted(ranked, key=lambda pair: pair[0])]


def _rank(result: Result) -> int | None:
    return 0 if result.is_commit else rank_of_result(result.text, is_draft=result.is_draft)


def _is_idea(row: Result, session: SessionDigest) -> bool:
    """Whether it was only proposed, in a session that then edited files: a draft's note of a turn
    without edits, or a title that names something that no turn with edits speaks of."""
    edits = [turn for turn in session.turns if turn.files]
    if not edits:
        return False
    if row.observation is not None and row.is_draft and not row.files:
        return True
    names = code_names(row.text)
    if not names:
        return False
    edited_text = " ".join(
        f"{result.text} {result.details} {' '.join(turn.files)}"
        for turn in edits
        for result in turn.results
    )
    return not any(name in edited_text for name in names)


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
    branch = f"branch {name_as_data(session.branches[0])}" if is_worked_on else ""
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
    """Returns branches on which so many sessions worked that they say nothing about topics."""
    counts = Counter(session.branches[0] for session in sessions if session.branches)
    return {name for name, count in counts.items() if count > max(LONGEST_RUN, len(sessions) / 3)}


def _is_same_topic(later: SessionDigest, earlier: SessionDigest, usual: set[str]) -> bool:
    is_same_branch = bool(later.branches) and later.branches[:1] == earlier.branches[:1]
    if is_same_branch and later.branches[0] not in usual:
        return later.is_changed and earlier.is_changed
    return is_about(long_words(earlier.title), long_words(later.title))
