"""Words of a query, marked in a text for a terminal."""

import re
from collections.abc import Callable
from datetime import datetime

from claude_mem.index.text.words import pieces, plain_text, stem
from claude_mem.recall.parsed_query import parse_query
from claude_mem.text import without_controls

_WORD = re.compile(r"\w+")
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def highlighter(query: str, now: datetime) -> Callable[[str], str]:
    query_stems = {stem(piece) for word in parse_query(query, now).words for piece in word.pieces}

    def highlight(match: re.Match[str]) -> str:
        stems = {stem(piece.lower()) for piece in pieces(plain_text(match[0]))}
        return f"{_BOLD}{match[0]}{_PLAIN}" if stems & query_stems else match[0]

    return lambda text: _WORD.sub(highlight, without_controls(text))
