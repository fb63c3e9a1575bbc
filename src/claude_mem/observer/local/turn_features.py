"""What the model gets to know of a turn, to tell whether it is worth an observation."""

import re
from collections.abc import Sequence
from math import log1p

from claude_mem.observer.local import cues
from claude_mem.observer.local.evidence import TurnEvidence
from claude_mem.observer.local.passage_features import Candidate
from claude_mem.observer.local.titles import is_commit_request
from claude_mem.observer.local.weights import Features
from claude_mem.title_gate import width

LONG_ANSWER, FEWEST_NAMES = 80, 2
_CHANGELOG = re.compile(r"(?:^|[/\\])change(?:log|s)\b[^/\\]{0,20}$", re.IGNORECASE)
LOWEST = -6.0  # stands for a passage or title that is missing


def is_evident_work(
    evidence: TurnEvidence, candidates: Sequence[Candidate], *, is_english: bool
) -> bool:
    """Whether a turn changes the project, or tells a cause by names; no model is needed then.

    In a language that the models were not trained on, an answer of some length with a name is.
    """
    if is_commit_request(evidence.request.text):
        return any(map(_is_named_cause, candidates))
    if any(not _CHANGELOG.search(path) for path in evidence.files):
        return True
    if not is_english:
        answer = " ".join(c.text for c in candidates if c.origin == "final")
        return width(answer) >= LONG_ANSWER and bool(cues.NAME.search(answer))
    return any(map(_is_named_cause, candidates)) or _is_answer_by_names(evidence, candidates)


def _is_answer_by_names(evidence: TurnEvidence, candidates: Sequence[Candidate]) -> bool:
    """Whether a question was answered without running anything, and the answer has names."""
    if "Bash" in evidence.tools or cues.NOD.match(evidence.request.text):
        return False
    told = [
        candidate.text
        for candidate in candidates
        if candidate.origin == "final"
        and not cues.STATUS.is_in(candidate.text.lower(), candidate.words)
        and not cues.ANNOUNCEMENT.match(candidate.text)
    ]
    return len({name for text in told for name in cues.NAME.findall(text)}) >= FEWEST_NAMES


def _is_named_cause(candidate: Candidate) -> bool:
    text = candidate.text
    is_told = candidate.origin in ("final", "statement") and cues.CAUSE.is_in(
        text.lower(), candidate.words
    )
    return is_told and len(cues.NAME.findall(text)) > 1


def turn_features(
    evidence: TurnEvidence, passage_scores: Sequence[float], title_score: float | None
) -> Features:
    """`passage_scores` and `title_score`: what the other models made of the turn."""
    final, request = evidence.final, evidence.request
    said = "\n".join((*(event.text or "" for event in evidence.statements), final))
    best = sorted(passage_scores, reverse=True)
    commits = evidence.written_as("commit")
    names = cues.NAME.findall(final)
    return {
        "edits": log1p(sum(len(work.sources) for work in evidence.files.values())),
        "files": log1p(len(evidence.files)),
        "files read": log1p(len(evidence.files_read)),
        "tools": log1p(len(evidence.tools)),
        "commands": log1p(evidence.tools.count("Bash")),
        "web": float(sum(tool in ("WebFetch", "WebSearch") for tool in evidence.tools)),
        "failed tools": log1p(evidence.failed_tools),
        "messages": log1p(len(evidence.statements) + 1),
        "final": log1p(len(final)),
        "said": log1p(len(said)),
        "request": log1p(len(request.text)),
        "plan": log1p(len(request.plan)),
        "commits": float(len(evidence.subjects)),
        "longest commit": log1p(max(map(len, commits), default=0)),
        "reports": float(len(evidence.written_as("report"))),
        "questions": float(len(evidence.written_as("question"))),
        "tasks": log1p(len(evidence.tasks)),
        "names": log1p(len(names)),
        "distinct names": log1p(len(set(names))),
        "emphasis": log1p(final.count("**")),
        "headings": float(final.count("\n#")),
        "items": log1p(final.count("\n- ")),
        "causes": float(cues.CAUSE.count(final)),
        "changes": log1p(cues.CHANGE.count(final)),
        "status": float(cues.STATUS.count(final)),
        "failures": log1p(cues.FAILURE.count(final)),
        "announces": float(bool(cues.ANNOUNCEMENT.match(final))),
        "request is command": float(request.text.startswith("/")),
        "request is to commit": float(is_commit_request(request.text)),
        "request is nod": float(bool(cues.NOD.match(request.text))),
        "request asks": float("?" in request.text),
        "final asks": float(final.rstrip().endswith(("?", "？"))),
        "numbers": log1p(len(cues.NUMBER.findall(final))),
        "ended by error": float(bool(evidence.error)),
        "words": log1p(len(cues.words(final))),
        "best passage": best[0] if best else LOWEST,
        "second passage": best[1] if len(best) > 1 else LOWEST,
        "best three": _mean(best[:3]),
        "best five": _mean(best[:5]),
        "best title": title_score if title_score is not None else 0.0,
    }


def _mean(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores) if scores else LOWEST
