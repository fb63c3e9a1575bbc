"""A document as an embedder reads it: in passages that are each about one thing.

A vector of much text is near nothing in particular. So a long body is cut at the ends of its
sentences, and facts are read apart from it, as is a title that says something by itself; a document
is as near as its nearest passage. Names of files and concepts are left to full text.
"""

import re

from claude_mem.index.text.documents import Document

BODY, FACTS = 100, 80  # words of a passage, about
SENTENCE = 4  # words: a title of fewer is a name
MOST = 8
LONGEST = 20_000

_ENDS = re.compile(r"(?<=[.!?;:])\s+|\n+")


def passages(document: Document) -> list[str]:
    text = document.text
    head = " ".join(part for part in (text.title, text.subtitle) if part)
    bodies = _packed(text.body, BODY) or [""]
    first = "\n".join(part for part in (head, bodies[0]) if part)
    found = [first, *bodies[1:], *_packed(text.facts, FACTS)]
    if len(text.title.split()) >= SENTENCE and first != text.title:
        found.insert(1, text.title)
    return [passage for passage in found if passage][:MOST] or [""]


def _packed(text: str, words: int) -> list[str]:
    """Sentences and lines, as many together as there is room for."""
    packs: list[str] = []
    room = 0
    for piece in _ENDS.split(text[:LONGEST].strip()):
        size = len(piece.split())
        if size > room:
            packs.append(piece)
            room = words - size
        elif size:
            packs[-1] += f" {piece}"
            room -= size
    return packs
