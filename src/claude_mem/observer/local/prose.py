"""Joins selected passages: sentences into a narrative, list items and table rows into facts."""

import re
from collections.abc import Iterable
from itertools import groupby

from claude_mem.observer.local.markdown import Passage
from claude_mem.observer.local.phrases import without_opening
from claude_mem.observer.local.selection import Candidate

LONGEST_LABEL = 60


def narrative_of(candidates: Iterable[Candidate]) -> str | None:
    return join_passages(c.passage for c in candidates if not _is_fact(c.passage))


def join_passages(passages: Iterable[Passage]) -> str | None:
    """With a space between sentences, except in scripts without spaces."""
    return re.sub(r"(?<=[。！？]) ", "", " ".join(map(as_sentence, passages))) or None


def facts_of(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    """Passages with the same label become one fact."""
    passages = [c.passage for c in candidates if _is_fact(c.passage)]
    facts: list[str] = []
    for label, group in groupby(passages, _fact_label):
        texts = [passage.text for passage in group]
        facts += [f"{label}: {'; '.join(texts)}"] if label else texts
    return tuple(facts)


def as_sentence(passage: Passage) -> str:
    text = without_opening(passage.text)
    return text if text[-1:] in ".!?:;。！？؟…`" else text + "."


def _fact_label(passage: Passage) -> str:
    """Empty if the text itself says what it is about."""
    label = passage.label
    if passage.own_label or not label or passage.text.startswith(label):
        return ""
    is_name = "`" in label or "." in label or "/" in label or label.istitle()
    return label if is_name and len(label) <= LONGEST_LABEL else ""


def _is_fact(passage: Passage) -> bool:
    return passage.kind in ("item", "row") or (
        passage.text.startswith("`") and ": " in passage.text
    )
