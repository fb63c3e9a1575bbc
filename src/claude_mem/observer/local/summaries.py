"""The summary of a turn: its texts, and commands, faults and open steps as typed values."""

from collections.abc import Iterator

from claude_mem.observer.local import titles
from claude_mem.observer.local.commands import Failure
from claude_mem.observer.local.evidence import TurnEvidence
from claude_mem.observer.local.markdown import sentences, split_passages
from claude_mem.observer.local.phrases import is_empty_phrase, without_opening
from claude_mem.observer.local.prose import as_sentence, join_passages
from claude_mem.observer.local.scoring import CAUSE, describes_change
from claude_mem.observer.local.selection import Candidate, TurnSelection
from claude_mem.observer.local.turn_titles import LISTS, commit_title, first_clause, headline
from claude_mem.text import one_line, shorten
from claude_mem.types import CommandRun, EnvironmentFault, OpenStep, Summary

LONGEST_REQUEST, LONGEST_COMPLETED = 300, 160
MAX_FILES_READ, MAX_FAILURES, MAX_COMMITS = 8, 3, 3
MAX_TESTS, MAX_CHECKS = 3, 3
_QUESTION_MARKS = ("?", "？", "؟")


def build_summary(selection: TurnSelection, title: str) -> Summary:
    evidence = selection.evidence
    steps = [candidate for candidate in selection.passages if candidate.role == "next"]
    learned = _learned(selection.passages, title)
    completed = _completed(selection, (title, learned))
    return Summary(
        request=_request(evidence, title) or None,
        investigated=evidence.research or None,
        learned=learned or None,
        completed=completed or None,
        next_steps=join_passages(candidate.passage for candidate in steps),
        notes=" ".join(_notes(selection, completed)) or None,
        files_read=evidence.files_read[:MAX_FILES_READ] if not evidence.files else (),
        files_edited=tuple(evidence.files),
        commands=_commands(evidence),
        faults=_faults(evidence),
        open_steps=_open_steps(steps),
        sources=evidence.sources,
    )


def _request(evidence: TurnEvidence, title: str) -> str:
    if evidence.request.plan:
        return titles.from_plan(evidence.request.plan_title) or title
    text = one_line(evidence.request.text)
    request = ""
    for sentence in sentences(text):
        if len(request) + len(sentence) > LONGEST_REQUEST:
            break
        request = f"{request} {sentence}".strip()
    return request or shorten(text, LONGEST_REQUEST)


def _learned(passages: list[Candidate], title: str) -> str:
    causes = [
        candidate
        for candidate in passages
        if not candidate.words.isdisjoint(CAUSE) and not describes_change(candidate.text.lower())
    ]
    return headline(causes, "final", ("cause",), exclude=(title,)) or headline(
        causes, "statement", ("cause",), exclude=(title,)
    )


def _completed(selection: TurnSelection, exclude: tuple[str, ...]) -> str:
    """The subject of a commit, else a sentence of the last message."""
    return (
        commit_title(selection.evidence)
        or headline(selection.passages, "final", ("change",), exclude=exclude)
        or first_clause(selection.final, exclude)
        or headline(selection.passages, "final", ("change",), LISTS, exclude=exclude)
        or _first_words(selection.final)
        or _short_message(selection.evidence.final)
    )


def _first_words(final: list[Candidate]) -> str:
    """Of a message without a complete clause; introductions of lists do not count."""
    texts = (candidate.text for candidate in final if not candidate.text.endswith((":", "：")))
    return shorten(without_opening(next(texts, "")), LONGEST_COMPLETED)


def _short_message(final: str) -> str:
    """A message that is too short to have a score, unless it is an empty phrase."""
    if len(final) > LONGEST_COMPLETED:
        return ""
    texts = (passage.text for passage in split_passages(final) if passage.kind == "prose")
    return without_opening(next((t for t in texts if not is_empty_phrase(t.lower())), ""))


def _notes(selection: TurnSelection, completed: str) -> Iterator[str]:
    """Failures that are no faults, commits, and the error that ended the turn."""
    log = selection.evidence.commands
    for failure in log.failures[:MAX_FAILURES]:
        note = _failure_note(failure)
        is_repeated = any(note in text for text in selection.recent_memories)
        if not failure.is_environment_fault and not is_repeated:
            yield note
    for subject, commit_hash in list(log.commits.items())[-MAX_COMMITS:]:
        yield _commit_note(subject, commit_hash, completed)
    if selection.evidence.error:
        yield f"Ended by an error: {shorten(selection.evidence.error, LONGEST_REQUEST)}"


def _commit_note(subject: str, commit_hash: str, completed: str) -> str:
    if titles.from_commit(subject) == completed:
        return f"Committed as {commit_hash}." if commit_hash else "Committed."
    return f"Committed: {subject} ({commit_hash})." if commit_hash else f"Committed: {subject}."


def _failure_note(failure: Failure) -> str:
    text = f"`{failure.command}` failed ({_without_end(failure.error)})"
    if failure.alternative:
        text += f"; `{failure.alternative}` worked"
    if failure.fixed_by:
        return f"{text}; it passed {failure.fixed_by}."
    return f"{text}; not fixed in this turn."


def _without_end(error: str) -> str:
    return error.rstrip(".:")


def _commands(evidence: TurnEvidence) -> tuple[CommandRun, ...]:
    """The last tests, then the last checks."""
    runs = list(evidence.commands.runs.values())
    tests = [run for run in runs if run.purpose == "test"]
    checks = [run for run in runs if run.purpose == "check"]
    return (*tests[-MAX_TESTS:], *checks[-MAX_CHECKS:])


def _faults(evidence: TurnEvidence) -> tuple[EnvironmentFault, ...]:
    return tuple(
        EnvironmentFault(f.command, _without_end(f.error), f.alternative, f.sources)
        for f in evidence.commands.failures[:MAX_FAILURES]
        if f.is_environment_fault
    )


def _open_steps(steps: list[Candidate]) -> tuple[OpenStep, ...]:
    texts = ((_without_questions(as_sentence(step.passage)), step.sources) for step in steps)
    return tuple(OpenStep(text, sources) for text, sources in texts if text)


def _without_questions(text: str) -> str:
    """An offer of the agent ends with its session."""
    return " ".join(s for s in sentences(text) if not s.endswith(_QUESTION_MARKS))
