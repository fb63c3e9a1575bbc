"""The summary of a turn: its texts, and commands, faults and open steps as typed values."""

from collections.abc import Iterator

from claude_mem.observer.local import cues, titles
from claude_mem.observer.local.commands import Failure
from claude_mem.observer.local.content_words import content_words, novelty
from claude_mem.observer.local.evidence import TurnEvidence
from claude_mem.observer.local.markdown import sentences, split_passages
from claude_mem.observer.local.passage_features import Candidate
from claude_mem.observer.local.phrases import is_empty_phrase, without_opening
from claude_mem.observer.local.prose import as_sentence, join_passages
from claude_mem.observer.local.scored_turn import ScoredTurn
from claude_mem.text import one_line, shorten
from claude_mem.title_gate import is_complete
from claude_mem.types import CommandRun, EnvironmentFault, OpenStep, Summary

LONGEST_REQUEST, LONGEST_COMPLETED = 120, 160
MAX_FILES_READ, MAX_FAILURES, MAX_COMMITS = 8, 3, 3
MAX_TESTS, MAX_CHECKS = 3, 3
MAX_BESIDE_EDITS = 3  # files that were read where others were edited
MAX_STEPS = 6
MIN_NOVELTY = 0.3  # share of words that the observation does not have
_QUESTION_MARKS = ("?", "？", "؟")


def build_summary(
    scored: ScoredTurn, passages: list[Candidate], title: str, observed: str
) -> Summary:
    """`observed`: the text of the turn's observations, which is not told again."""
    evidence = scored.evidence
    steps = scored.steps[:MAX_STEPS]
    learned = "" if observed else _learned(passages)
    completed = _completed(scored, (title, learned))
    if novelty(content_words(learned), content_words(completed)) < MIN_NOVELTY:
        learned = ""
    if novelty(content_words(completed), content_words(observed)) < MIN_NOVELTY:
        completed = ""
    return Summary(
        request=_request(evidence, title) or None,
        investigated=evidence.research or None,
        learned=learned or None,
        completed=completed or None,
        next_steps=join_passages(candidate.passage for candidate in steps),
        notes=" ".join(_notes(scored, completed)) or None,
        files_read=evidence.all_files_read(MAX_BESIDE_EDITS if evidence.files else MAX_FILES_READ),
        files_edited=tuple(evidence.files),
        commands=_commands(evidence),
        faults=_faults(evidence),
        open_steps=_open_steps(steps),
        sources=evidence.sources,
    )


def _request(evidence: TurnEvidence, title: str) -> str:
    if evidence.request.plan:
        return titles.from_plan(evidence.request.plan_title) or title
    return short_request(evidence)


def short_request(evidence: TurnEvidence) -> str:
    """The first sentences of what the user wrote."""
    text = one_line(evidence.request.text)
    request = ""
    for sentence in sentences(text):
        if len(request) + len(sentence) > LONGEST_REQUEST:
            break
        request = f"{request} {sentence}".strip()
    return request or shorten(text, LONGEST_REQUEST)


def _learned(passages: list[Candidate]) -> str:
    """The first cause that was told."""
    causes = (
        titles.from_sentence(candidate.text)
        for candidate in passages
        if candidate.origin in ("final", "statement") and cues.CAUSE.matches(candidate.text)
    )
    return next((cause for cause in causes if cause), "")


def _completed(scored: ScoredTurn, exclude: tuple[str, ...]) -> str:
    """The subject of a commit, else a clause of the last message."""
    subjects = scored.evidence.subjects
    if subjects and (subject := titles.from_commit(subjects[-1])):
        return subject
    for candidate in scored.titles:
        if candidate.source == "final" and candidate.cut in ("all", "first clause"):
            text = titles.from_sentence(candidate.text)
            if text and text not in exclude and is_complete(text, is_english=scored.is_english):
                return text
    return _short_message(scored.evidence.final)


def _short_message(final: str) -> str:
    """The first words of a message, unless it has nothing but empty phrases."""
    texts = (passage.text for passage in split_passages(final) if passage.kind == "prose")
    text = next((t for t in texts if not is_empty_phrase(t.lower()) and t[-1] not in ":："), "")
    return shorten(without_opening(text), LONGEST_COMPLETED)


def _notes(scored: ScoredTurn, completed: str) -> Iterator[str]:
    """Failures that are no faults, commits, and the error that ended the turn."""
    log = scored.evidence.commands
    for failure in log.failures[:MAX_FAILURES]:
        note = _failure_note(failure)
        is_repeated = any(note in text for text in scored.recent_memories)
        if not failure.is_environment_fault and not is_repeated:
            yield note
    for subject, commit_hash in list(log.commits.items())[-MAX_COMMITS:]:
        yield _commit_note(subject, commit_hash, completed)
    if scored.evidence.error:
        yield f"Ended by an error: {shorten(scored.evidence.error, LONGEST_REQUEST)}"


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
    """The last tests, then the last checks, starts and releases."""
    runs = list(evidence.commands.runs.values())
    tests = [run for run in runs if run.purpose == "test"]
    checks = [run for run in runs if run.purpose == "check"]
    others = [run for run in runs if run.purpose in ("run", "release")]
    return (*tests[-MAX_TESTS:], *checks[-MAX_CHECKS:], *others[-MAX_CHECKS:])


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
