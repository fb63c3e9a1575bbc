"""Joins selected passages: neighbouring sentences into a narrative, the rest into facts."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from claude_mem.observer.local import cues
from claude_mem.observer.local.markdown import Passage
from claude_mem.observer.local.passage_features import Candidate
from claude_mem.observer.local.phrases import is_empty_phrase, without_opening

LONGEST_LABEL = 60
MOST_SENTENCES = 4


def narrative_and_facts(
    candidates: Sequence[Candidate], scores: Sequence[float]
) -> tuple[str | None, tuple[str, ...]]:
    """`scores` of all candidates of the turn, by position.

    The narrative is what was said next to each other, in order: the best runs of sentences, up to
    four sentences. Sentences of other places are facts of their own.
    """
    runs = _runs([c for c in candidates if not _is_fact(c.passage)])
    runs.sort(key=lambda run: -max(scores[c.position] for c in run))
    chosen: list[Candidate] = []
    others: list[list[Candidate]] = []
    for run in runs:
        if len(chosen) + len(run) <= MOST_SENTENCES or not chosen:
            chosen += run
        else:
            others.append(run)
    chosen.sort(key=lambda candidate: candidate.position)
    items = [[c] for c in candidates if _is_fact(c.passage)]
    rest = sorted([*others, *items], key=lambda run: run[0].position)
    return join_passages(c.passage for c in chosen), tuple(_facts(rest))


def _runs(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    """Sentences that follow one another in their text, at most four."""
    runs: list[list[Candidate]] = []
    for candidate in candidates:
        last = runs[-1][-1] if runs else None
        follows = last is not None and (
            candidate.position == last.position + 1
            and candidate.number == last.number + 1
            and candidate.origin == last.origin
        )
        if follows and len(runs[-1]) < MOST_SENTENCES:
            runs[-1].append(candidate)
        else:
            runs.append([candidate])
    return runs


def join_passages(passages: Iterable[Passage]) -> str | None:
    """With a space between sentences, except in scripts without spaces."""
    return re.sub(r"(?<=[。！？]) ", "", " ".join(map(as_sentence, passages))) or None


def _facts(runs: Iterable[list[Candidate]]) -> Iterable[str]:
    """List items with the same label or lead-in become one fact."""
    for label, group in groupby(runs, lambda run: _fact_label(run[0].passage)):
        texts = [_fact_text(run) for run in group]
        if label:
            yield f"{label}: {'; '.join(texts)}"
        else:
            yield from texts


def _fact_text(run: list[Candidate]) -> str:
    return run[0].text if len(run) == 1 else join_passages(c.passage for c in run) or ""


def as_sentence(passage: Passage) -> str:
    text = without_opening(passage.text)
    return text if text[-1:] in ".!?:;。！？؟…`" else text + "."


def _fact_label(passage: Passage) -> str:
    """Empty if the text itself says what it is about."""
    if not _is_fact(passage):
        return ""
    label = passage.label
    if passage.own_label or (label and passage.text.startswith(label)):
        return ""
    if label and ("`" in label or "." in label or "/" in label or label.istitle()):
        return label if len(label) <= LONGEST_LABEL else ""
    lead = passage.lead
    is_telling = not cues.GENERIC_HEADING.match(lead) and not is_empty_phrase(lead.lower())
    return lead if lead and is_telling and len(lead) <= LONGEST_LABEL else ""


def _is_fact(passage: Passage) -> bool:
    return passage.kind in ("item", "row") or (
        passage.text.startswith("`") and ": " in passage.text
    )
