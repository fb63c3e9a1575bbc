"""What a passage is: which part it plays in a turn's story, and how much it is worth keeping.

Worth comes from what later questions turn on: causes, decisions, what was replaced by what, names,
numbers. The words that tell are English; other languages are judged by their names, numbers and
place alone.
"""

import re
from collections.abc import Set
from functools import lru_cache
from typing import Literal

from claude_mem.observer.passages import Passage

Role = Literal["problem", "cause", "decision", "change", "outcome", "next", "none"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CAUSE = _words(
    "because cause caused causes causing due turns culprit reason happens crash crashes crashed"
    " fail fails failed failing never only without mismatch dangling stale missing unsupported"
    " silently throws threw since returns doesn't didn't isn't wasn't cannot can't wrong"
)
DECISION = _words(
    "instead rather decided chose choose prefer preferred preferring trade-off tradeoff purpose"
    " deliberately intentionally backward backwards keep keeps keeping longer replaced replaces"
    " replace switched switching default defaults configurable override overrides env limit"
    " threshold fallback falls formula must avoid avoids maximizes ensures ensure"
)
CHOICE = _words(
    "instead rather decided chose trade-off tradeoff deliberately intentionally backward backwards"
    " longer default defaults fallback avoid"
)
NEXT = (
    "next step", "you need to", "you'll need", "you will need", "you can now", "you should",
    "you may want", "remaining", "still need", "still to ", "still fail", "not yet", "todo",
    "follow-up", "shall i", "should i", "do you want", "would you like", "let me know",
    "once the ", "once you", "aren't configured", "needs to be configured", "need to be configured",
)  # fmt: skip
COMMON = _words(
    "a about after all also an and any are as at be been before both but by can could did do does"
    " each for from had has have how i if in into is it its just like made make may more most much"
    " must my new no not now of on one only or other our out over own same so some such than that"
    " the their them then there these they this those to too up us use used uses using very was we"
    " were what when where which while who why will with would you your"
)

_BY_HEADING: tuple[tuple[Role, re.Pattern[str]], ...] = (
    ("none", re.compile(
        r"\b(?:verif\w+|testing|test plan|how to test|files? (?:to )?(?:modif|chang)\w*"
        r"|modified files|critical files|key files|out of scope|checklist)\b", re.I)),
    ("next", re.compile(
        r"\b(?:next steps?|remaining|follow[- ]?ups?|to ?do|open questions?)\b", re.I)),
    ("cause", re.compile(
        r"\b(?:root cause|cause|why|findings?|analysis|diagnosis|what happened|explanation"
        r"|investigation|gotchas?|notes?|important|learned)\b", re.I)),
    ("problem", re.compile(
        r"\b(?:context|problem|background|issue|bug|symptom|current|motivation|goal)\b", re.I)),
    ("decision", re.compile(
        r"\b(?:decisions?|approach|design|trade-?offs?|alternatives?|rationale|strategy|not change"
        r"|backward|key)\b", re.I)),
    ("change", re.compile(
        r"\b(?:changes?|fix|solution|implementation|summary|what|new|added|modified|updated)\b",
        re.I)),
)  # fmt: skip
_CHANGE = re.compile(
    r"^(?:\W*[\w./`-]+:\s+)?(?:i(?:'ve| have)?\s+)?(?:now\s+)?(?:add|creat|fix|updat|chang|remov"
    r"|replac|renam|mov|wrap|refactor|implement|introduc|extract|split|convert|set|pass|use[ds]?\b"
    r"|made\b|mak(?:e|ing)\b|delet|drop|expos|handl|install|bump|configur|migrat|rewr|simplif"
    r"|extend|support|enabl|disabl|clear|register|wir)"
)
# What says only what the agent is about to do, or that all is well.
_EMPTY = re.compile(
    r"(?:(?:ok(?:ay)?|alright|right|good|great|perfect|excellent|done|sure|yes|no|hmm+|wait|now"
    r"|so|well|actually|also|first|then|next|finally|all)\b[\s,.!:—–-]*)*"
    r"(?:let(?:'s| me| us)\b"
    r"|i(?:'ll| will|'m going to| need to| should| want to| see\b| understand| can see| notice"
    r"| have (?:a|all|the|enough|every)|'ve (?:got|read|seen|reviewed)|'d be happy)\b"
    r"|here(?:'s| is| are)\b|looking (?:at|good)|time to\b|as (?:expected|requested|you)"
    r"|now (?:i|let|we|the tests|for|to|update|add|fix|create|check|run|verify)\b"
    r"|everything (?:is|looks|passes)|both (?:files|edits|changes)|the (?:remaining|rest)"
    r"|(?:the )?(?:build|tests?|lint\w*|type ?check\w*)\b.{0,40}\b(?:pass\w*|clean|succe\w+)"
    r"|pre-commit hooks?\b.{0,50}\bpass\w*|results?: \d+ (?:tests|pass)"
    r"|all (?:\d+ )?(?:clean|tests|done|changes|files|four|three|two|good|set|green|checks|pass)"
    r"|commit\b.{0,40}\b(?:created|succeeded|done)|committed\b|pushed\b|tag created"
    r"|.{0,60}\b(?:are|is) (?:now )?(?:committed|pushed|on `?main)"
    r"|is there anything|feel free|want me to|if you(?:'d| would) like|no (?:issues|errors)"
    r"|it's fine|summary\b|changes made|what (?:i|was) (?:did|done|changed)|\W*$)"
)
_BARE_NAMES = re.compile(r"(?:File:\s*)?(?:[`\w/.\-()~:,*]+(?:\s+|$)){1,2}(?:\([^)]*\)\.?)?")
_OPENING = re.compile(
    r"(?:(?:good|great|wait|hmm+|ok(?:ay)?|perfect|right|yes|no|actually|interesting|also|now|so)\b"
    r"[\s,.!:;—–-]+)+",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"`[^`\n]{2,80}`|--?[a-z][\w-]{2,}|\b[A-Z]{2,}[A-Z0-9]*_[A-Z0-9_]+\b|\b[a-z]+[A-Z]\w+\b"
    r"|\b[A-Z][a-z0-9]+[A-Z]\w*\b|\b\w+_\w+\b|\b[\w-]+/[\w./-]+|\b\w+\.\w{1,4}\b(?!\s*$)|\w+\(\)"
)
_NUMBER = re.compile(r"\b\d[\d.,_]*[%A-Za-z]{0,3}\b")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_WITHOUT_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


class Weighed:
    """A passage looked at once: its words, its part and its worth."""

    __slots__ = ("passage", "role", "words", "worth")

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        lowered = passage.text.lower().replace("’", "'")
        self.words = words_of(lowered)
        self.role = _role(passage, lowered, self.words)
        self.worth = _worth(passage, lowered, self.words)


def _role(passage: Passage, lowered: str, words: Set[str]) -> Role:
    if any(phrase in lowered for phrase in NEXT):
        return "next"
    for place in (passage.label, passage.heading):
        if place and (role := _role_under(place)):
            return role
    if not words.isdisjoint(CAUSE):
        return "cause"
    if _CHANGE.match(lowered):
        return "change"
    return "outcome" if words.isdisjoint(DECISION) else "decision"


@lru_cache(maxsize=4096)
def _role_under(heading: str) -> Role | None:
    return next((role for role, pattern in _BY_HEADING if pattern.search(heading)), None)


def _worth(passage: Passage, lowered: str, words: Set[str]) -> float:
    """From 0 upwards, for what the passage says; where it stands is for the caller to weigh."""
    text, length = passage.text, len(passage.text)
    is_code = passage.kind == "code"
    if length < 12 or (not is_code and _EMPTY.match(lowered)) or _BARE_NAMES.fullmatch(text):
        return 0.0
    names, numbers = names_in(text), len(_NUMBER.findall(text))
    worth = 1.0 + 0.35 * min(names, 5) + 0.15 * min(numbers, 3)
    worth += 0.9 * (not words.isdisjoint(CAUSE)) + 0.7 * (not words.isdisjoint(DECISION))
    worth += 0.1 * text.count('"')
    if is_code:
        worth += 0.2 + 0.4 * bool(numbers)
    if length > 260:
        worth *= 0.85
    if length < 40 and names == 0:
        worth *= 0.5
    if text.endswith((":", "：")):
        worth *= 0.4  # it only leads to what follows
    return worth


def names_in(text: str) -> int:
    return len(_NAME.findall(text))


def is_choice(words: Set[str]) -> bool:
    """Says that one thing was preferred to another, or what holds where nothing is said."""
    return not words.isdisjoint(CHOICE)


def without_opening(text: str) -> str:
    """The text without a "Good —" or "Wait," before it."""
    opening = _OPENING.match(text)
    return (
        text if opening is None else text[opening.end() :][:1].upper() + text[opening.end() + 1 :]
    )


def words_of(text: str) -> frozenset[str]:
    """The words that carry meaning, for telling whether something was said before."""
    found = {word for word in _WORD.findall(text.lower()) if len(word) > 1}
    if _WITHOUT_SPACES.search(text):
        places = range(len(text) - 1)
        found |= {text[i : i + 2] for i in places if _WITHOUT_SPACES.match(text[i])}
    return frozenset(found - COMMON)


def newness(words: Set[str], known: Set[str]) -> float:
    """The share of words that were not known before."""
    return len(words - known) / len(words) if words else 0.0
