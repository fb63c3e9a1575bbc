"""Which type and concepts a turn's work is filed under."""

import re
from collections.abc import Collection

from claude_mem.observer.local.request import Request
from claude_mem.types import ObservationType

_CONVENTIONAL: tuple[tuple[str, ObservationType], ...] = (
    ("fix", "bugfix"), ("hotfix", "bugfix"), ("feat", "feature"), ("refactor", "refactor"),
    ("perf", "refactor"), ("style", "refactor"),
)  # fmt: skip
_BY_WORD: tuple[tuple[ObservationType, re.Pattern[str]], ...] = (
    ("bugfix", re.compile(
        r"\b(?:fix(?:e[sd]|ing)?|bugs?|crash\w*|errors?|broken|fail(?:s|ed|ing|ure)?|regress\w*|wrong"
        r"|flood\w*|leak\w*|does(?:n't| not)|can(?:'t|not)|not work\w*|issue|weird|stuck)\b",
        re.I)),
    ("refactor", re.compile(
        r"\b(?:refactor\w*|renam\w+|clean\w* ?up|extract\w*|simplif\w+|restructur\w+|consolidat\w+"
        r"|mov(?:e[sd]?|ing)|reorgani[sz]\w+|dedup\w*|merge[sd]?)\b", re.I)),
    ("feature", re.compile(
        r"\b(?:add(?:s|ed|ing)?|implement\w*|creat\w+|introduc\w+|support\w*|new|build|enable\w*"
        r"|allow\w*)\b", re.I)),
)  # fmt: skip
_CONCEPTS: dict[ObservationType, tuple[str, ...]] = {
    "bugfix": ("problem-solution",),
    "feature": ("what-changed",),
    "refactor": ("what-changed",),
    "change": ("what-changed",),
    "discovery": ("how-it-works",),
    "decision": ("trade-off",),
}


def type_of(asked: Request, title: str, subjects: list[str], edited: bool) -> ObservationType:
    if not edited and not asked.plan and not _is_of(title, subjects):
        return "discovery"
    for subject in subjects:
        for prefix, kind in _CONVENTIONAL:
            if re.match(rf"{prefix}\b", subject, re.IGNORECASE):
                return kind
    first = title.split(" ", 1)[0]
    for text in (first, title, asked.words[:300]):
        for kind, pattern in _BY_WORD:
            if pattern.search(text):
                return kind
    return "change"


def _is_of(title: str, subjects: list[str]) -> bool:
    """The title is a commit's: then it was work, even where no edit was seen."""
    return any(title.lower() in subject.lower() for subject in subjects)


def concepts_of(kind: ObservationType, roles: Collection[str]) -> tuple[str, ...]:
    found = list(_CONCEPTS[kind])
    if "cause" in roles and kind == "discovery":
        found.append("gotcha")  # it was found and nothing was done about it: it still holds
    elif "cause" in roles and kind != "bugfix":
        found.append("why-it-exists")
    if "decision" in roles and "trade-off" not in found:
        found.append("trade-off")
    return tuple(found)
