"""The part of a passage that matches a query, short enough for one line."""

from functools import lru_cache

from claude_mem.index.text.words import parts_of, pieces, stem
from claude_mem.recall.parsed_query import ParsedQuery

LENGTH = 160


def snippet(text: str, parsed: ParsedQuery, length: int = LENGTH) -> str:
    """About `length` characters around the place where most words of the query are."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    words = line.split(" ")
    stems = frozenset(stem(piece) for word in parsed.words for piece in word.pieces)
    firsts = {form[0] for form in stems if form}
    hits = [_may_match(word, firsts) and bool(stems & _stems(word)) for word in words]
    start, end = _best_window(words, hits, length)
    before, after = "…" if start else "", "…" if end < len(words) else ""
    return f"{before}{' '.join(words[start:end])}{after}"


def _may_match(word: str, firsts: set[str]) -> bool:
    """Stemming keeps the first letter; this spares most words of a passage the stemming."""
    return not word.isascii() or not firsts.isdisjoint(word.lower())


@lru_cache(maxsize=10_000)
def _stems(word: str) -> frozenset[str]:
    stems: set[str] = set()
    for piece in pieces(word):
        stems.add(stem(piece.lower()))
        stems.update(stem(part.lower()) for part in parts_of(piece))
    return frozenset(stems)


def _best_window(words: list[str], hits: list[bool], length: int) -> tuple[int, int]:
    """The words from one to another that hold the most hits and fit; of equals the first."""
    best, best_hits = (0, len(words)), -1
    end = size = count = 0
    for start in range(len(words)):
        while end < len(words) and (size + len(words[end]) + 1 <= length or end == start):
            size += len(words[end]) + 1
            count += hits[end]
            end += 1
        if count > best_hits:
            best, best_hits = (start, end), count
        size -= len(words[start]) + 1
        count -= hits[start]
    return best
