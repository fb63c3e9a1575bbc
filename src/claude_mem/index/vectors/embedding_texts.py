"""A document as an embedder gets it: in passages that are each about one thing.

The vector of a long text is near nothing in particular. So a long body is split at the ends of
its sentences; facts, and a title that is a sentence of its own, are separate passages. A document
is as near as its nearest passage. Names of files and concepts are left to full text.
"""

import re

from claude_mem.index.text.documents import Document

BODY_WORDS, FACTS_WORDS = 100, 80  # of a passage, roughly
SENTENCE_WORDS = 4  # a shorter title is a name
MAX_PASSAGES = 8
MAX_TEXT = 20_000

_ENDS = re.compile(r"(?<=[.!?;:])\s+|\n+")


def passages(document: Document) -> list[str]:
    if document.passages:
        return [passage.text for passage in document.passages]
    text = document.text
    head = " ".join(part for part in (text.title, text.subtitle) if part)
    bodies = _split(text.body, BODY_WORDS) or [""]
    first = "\n".join(part for part in (head, bodies[0]) if part)
    parts = [first, *bodies[1:], *_split(text.facts, FACTS_WORDS)]
    if len(text.title.split()) >= SENTENCE_WORDS and first != text.title:
        parts.insert(1, text.title)
    return [part for part in parts if part][:MAX_PASSAGES] or [""]


def _split(text: str, words: int) -> list[str]:
    """Splits a text into parts of whole sentences and lines, up to so many words in each."""
    parts: list[str] = []
    room = 0
    for sentence in _ENDS.split(text[:MAX_TEXT].strip()):
        size = len(sentence.split())
        if size > room:
            parts.append(sentence)
            room = words - size
        elif size:
            parts[-1] += f" {sentence}"
            room -= size
    return parts
