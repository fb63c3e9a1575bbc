"""Whether a command breaks a standing rule of the project: a rule that the user stated.

Only two plain forms are understood: "never …", with a command in it, and "always … first" or
"… before …". What is not understood is no reason to deny anything.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NEVER = re.compile(r"\b(?:never|don't|do not|must not)\s+(?:ever\s+)?(.{3,120})", re.IGNORECASE)
_FIRST = re.compile(
    r"\balways\s{1,4}(?:run\s{1,4})?`?(\S.{1,59}?)`?\s{1,4}(?:first|before\s{1,4}(.{3,80}))",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`([^`]{2,80})`")
_FILLER = frozenset((
    "the", "a", "an", "to", "on", "into", "onto", "in", "of", "with", "please", "any", "it",
    "its", "directly", "run", "use", "using", "ever", "branch", "command", "you", "we", "i",
))  # fmt: skip
_ENDING = (r"ing$", r"es$", r"s$", r"ed$")
_LASTING = re.compile(r"\bgit\b[^|;&]{0,80}?\b(?:commit|push)\b")  # what "first" is before
_WORD = re.compile(r"[\w./+-]+")
_SPLIT = re.compile(r"&&|\|\||[;|\n]")


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    text: str

    @property
    def reason(self) -> str:
        return f"A rule of this project (memory {self.id}): {self.text}"


def broken_rule(command: str, earlier: Sequence[str], rules: Iterable[Rule]) -> Rule | None:
    """The first rule that the command breaks, after these earlier commands."""
    parts = [part.strip() for part in _SPLIT.split(command) if part.strip()]
    for rule in rules:
        if _is_forbidden(parts, rule.text) or _comes_too_early(parts, earlier, rule.text):
            return rule
    return None


def _is_forbidden(parts: list[str], rule: str) -> bool:
    match = _NEVER.search(rule)
    if match is None:
        return False
    wanted = _words(_clause(match[1]))
    return len(wanted) > 1 and any(wanted <= _words(part) for part in parts)


def _comes_too_early(parts: list[str], earlier: Sequence[str], rule: str) -> bool:
    match = _FIRST.search(rule)
    if match is None:
        return False
    required = _QUOTED.search(match[0])
    command = (required[1] if required else match[1]).strip()
    before = _words(_clause(match[2])) if match[2] else None
    for number, part in enumerate(parts):
        is_meant = before <= _words(part) if before else bool(_LASTING.search(part))
        if is_meant:
            done = [*earlier, *parts[:number]]
            return not any(command in line for line in done)
    return False


def _clause(text: str) -> str:
    """Returns the text up to the end of the sentence; of a quoted command, that alone."""
    quoted = _QUOTED.search(text)
    return (
        quoted[1] if quoted else re.split(r"[.;:,!?]\s|[.;:,!?]$|\bunless\b|\bwithout\b", text)[0]
    )


def _words(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text.lower()) if word not in _FILLER}


def _stem(word: str) -> str:
    word = word.strip(".")
    for ending in _ENDING:
        shorter = re.sub(ending, "", word)
        if shorter != word and len(shorter) > 3:
            return shorter
    return word
