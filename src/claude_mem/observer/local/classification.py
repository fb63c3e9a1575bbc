"""The type and the concepts of an observation."""

import re
from collections.abc import Collection

from claude_mem.observer.local import cues
from claude_mem.observer.local.user_request import Request
from claude_mem.types import ObservationType

_CONVENTIONAL_TYPES: tuple[tuple[str, ObservationType], ...] = (
    ("fix", "bugfix"), ("hotfix", "bugfix"), ("feat", "feature"), ("refactor", "refactor"),
    ("perf", "refactor"), ("style", "refactor"),
)  # fmt: skip
_TYPE_PATTERNS: tuple[tuple[ObservationType, re.Pattern[str]], ...] = (
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


def classify_type(
    request: Request, title: str, subjects: list[str], edited: bool
) -> ObservationType:
    if not edited and not request.plan and not _is_commit_title(title, subjects):
        return "discovery"
    for subject in subjects:
        for prefix, type_ in _CONVENTIONAL_TYPES:
            if re.match(rf"{prefix}\b", subject, re.IGNORECASE):
                return type_
    first = title.split(" ", 1)[0]
    for text in (first, title, request.text[:300]):
        for type_, pattern in _TYPE_PATTERNS:
            if pattern.search(text):
                return type_
    return "change"


def _is_commit_title(title: str, subjects: list[str]) -> bool:
    """A turn that commits has changed something, even if no edit of it was recorded."""
    return any(title.lower() in subject.lower() for subject in subjects)


def classify_concepts(type_: ObservationType, texts: Collection[str]) -> tuple[str, ...]:
    concepts = list(_CONCEPTS[type_])
    has_cause = any(cues.CAUSE.search(text) for text in texts)
    if has_cause and type_ == "discovery":
        concepts.append("gotcha")  # a cause that the turn did not fix still holds
    elif has_cause and type_ != "bugfix":
        concepts.append("why-it-exists")
    if "trade-off" not in concepts and any(cues.CHOICE.search(text) for text in texts):
        concepts.append("trade-off")
    return tuple(concepts)
