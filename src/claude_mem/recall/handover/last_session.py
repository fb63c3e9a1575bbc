"""The state in which the last session left its work: goal, results, branch, files, next steps."""

import re
from collections.abc import Iterator, Sequence

from claude_mem.recall.handover.achievements import is_draft, says_what_was_done
from claude_mem.recall.handover.digests import Result, SessionDigest
from claude_mem.recall.handover.lines import (
    LOCAL,
    QUESTION_MARKS,
    Line,
    code_names,
    content_words,
    first_sentences,
    flat,
    is_about,
    is_problem,
    joined,
)
from claude_mem.store.clock import iso
from claude_mem.store.facts import Artifact
from claude_mem.store.listing import JsonRow
from claude_mem.store.summary_json import commands_from, open_steps_from
from claude_mem.text import shorten
from claude_mem.types import CommandRun

LONGEST_BODY, LONGEST_LAST_BODY = 220, 420
MAX_FILES, MAX_STEPS, SEVERAL = 6, 3, 2
LONGEST_NOTE = 80
_IS_AFTER = re.compile(r"\b(?:now|clean|pass(?:es|ed)?)\b", re.IGNORECASE)
_CURRENTLY = re.compile(r"currently,? ", re.IGNORECASE)


def goal_of(session: SessionDigest) -> Iterator[Line]:
    if session.is_client_title or says_what_was_done(session.goal):
        yield Line(flat(f"Goal: {session.goal}"), subject=session.goal)


def results_of(session: SessionDigest) -> list[Line]:
    """The latest first; what repeats the goal gives only its details."""
    goal = content_words(session.title)
    lines: list[Line] = []
    names: set[str] = set()
    for result in _told(session.results):
        limit = LONGEST_BODY if lines else LONGEST_LAST_BODY
        is_changed = bool(session.files or result.commit)
        # What was found is told by what was done about it.
        about = code_names(result.text)
        if not result.commit and (
            about & names or (is_changed and lines and is_problem(result.text))
        ):
            continue
        names |= about
        body = _body(result, limit, is_changed)
        words = content_words(result.text)
        if len(words) > 1 and is_about(words, goal) and not result.commit:
            if body:
                lines.append(Line(" ".join((f"- {body}", *result.ids)), ids=result.ids))
            continue
        text = f"- {result.label}" + (f": {body}" if body else "")
        lines.append(Line(text, subject=result.text, ids=result.ids))
    return lines


def _told(results: Sequence[Result]) -> list[Result]:
    """The latest first. A draft does not know what a later turn made of what it found, proposed or
    tried, so its results are told up to the last commit, or the last edit of the same files."""
    commits = sum(bool(result.commit) for result in results)
    told: list[Result] = []
    later: dict[int, tuple[str, ...]] = {}  # files by turn
    is_after_commit = True
    for result in results:
        edited = {path for turn, files in later.items() if turn > result.turn for path in files}
        is_overtaken = bool(edited) and edited.issuperset(result.files)
        if commits >= SEVERAL:
            is_overtaken = not is_after_commit
        if result.commit or not is_draft(result) or not is_overtaken:
            told.append(result)
        later[result.turn] = result.files
        is_after_commit = is_after_commit and not result.commit
    return told


def _body(result: Result, limit: int, is_changed: bool) -> str:
    """Whole sentences, without those that repeat the title; nothing that is about something else.

    Where something was changed, a problem at the beginning is the state before.
    """
    title = content_words(result.text)
    body = first_sentences(result.details, limit, title)
    if title and not title & content_words(result.details):
        return ""
    is_before = is_changed and is_problem(body) and not _IS_AFTER.search(body)
    return f"before: {_CURRENTLY.sub('', body)}" if is_before else body


def where_it_stands(session: SessionDigest) -> Iterator[Line]:
    """Branch, pull requests, files, failing tests and next steps."""
    places = [f"branch {session.branches[0]}"] if session.branches else []
    places += [
        f"{request.value} ({_seen(request)}, state unknown)"
        for request in session.pull_requests[-2:]
    ]
    if places:
        yield Line(flat(f"On: {', '.join(places)}"))
    if session.files:
        yield Line(flat(f"Files edited: {joined(session.files, MAX_FILES)}"))
    for run in _last_failing_test(session):
        yield Line(flat(f"Tests failed at the end: `{run.command}` ({run.counts or run.outcome})"))
    for step in _next_steps(session.turns[-1].summary)[:MAX_STEPS]:
        yield Line(flat(f"Next: {step}"))


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
    """Of the last turn; an offer to the user ends with its session."""
    steps = [step.text for step in open_steps_from(summary["open_steps"])]
    if not steps and summary["observer"] != LOCAL:
        # A model may see a step that the events do not show.
        steps = [str(summary["next_steps"] or "")]
    return [step for step in steps if step and not step.rstrip().endswith(QUESTION_MARKS)]
