"""What a statement says, without what it says about it: its reason, and asides such as ", the hook
does it". Only for comparing (`supersession`)."""

import re
from functools import lru_cache

from claude_mem.store.fact_comparison.parsed_statement import read_wording

_BREAK = re.compile(
    r"[,;.!?]\s+|\s[-–—]+\s"
    r"| (?=(?:because|since|so that|otherwise|due to|thanks to|as (?:it|they|we|the))\b)"
    r"| (?=to (?:save|spare|avoid|reduce|prevent|protect|ease|simplify)\b)",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?:because|since|so that|otherwise|due to|thanks to|as (?:it|they|we|the)"
    r"|to (?:save|spare|avoid|reduce|prevent|protect|ease|simplify))\b",
    re.IGNORECASE,
)
# "In the web package, use npm": the first part narrows what follows.
_LEAD = re.compile(
    r"(?:in|on|for|at|with|when|whenever|if|before|after|once|while|during|from|until|unless|as|to"
    r"|by|under|inside|outside|within)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"(?:i|we|it|they|he|she|that|there)\b"
    r"|(?:[\w.'-]+ ){1,4}?(?:is|are|was|were|has|have|had|does|did|do|will|won't|can't|doesn't"
    r"|don't|took|takes|needs|left)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"(?:use|never|always|don't|do|not|no|with|in|for|on|but|except|and|or|unless|only|if|when|then"
    r"|until|without|instead|stop|at|from|to|under|by|including|even|also|please|must|should|you)\b",
    re.IGNORECASE,
)


@lru_cache(2_048)
def main_part(text: str) -> str:
    """The first clause, and those that go on with it."""
    first, *others = clauses(text)
    kept = [clause for clause in others if not _is_aside(clause)]
    return ", ".join((first, *kept))


@lru_cache(2_048)
def clauses(text: str) -> tuple[str, ...]:
    parts = [part for part in _BREAK.split(" ".join(text.split())) if part.strip()]
    joined: list[str] = []
    for part in parts:
        if joined and _LEAD.match(joined[-1]) and len(joined) == 1:
            joined[-1] += f", {part}"
        else:
            joined.append(part)
    return tuple(joined) or (text,)


def omits_requirement(text: str) -> bool:
    """Whether the main part lacks a clause that may be more than a reason or a remark."""
    _, *others = clauses(text)
    return any(_is_aside(clause) and not _is_remark(clause) for clause in others)


def _is_aside(clause: str) -> bool:
    if _GOES_ON.match(clause) and not _REASON.match(clause):
        return False
    return _is_remark(clause) or not read_wording(clause).values


def _is_remark(clause: str) -> bool:
    return bool(_REASON.match(clause) or _TELLS.match(clause))
