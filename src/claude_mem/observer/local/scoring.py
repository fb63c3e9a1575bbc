"""Scores passages: the role of each in its turn, and how much it is worth keeping.

The score counts what later questions are about: causes, decisions, replacements, names, numbers.
The word lists are English; text in other languages is scored by its names, numbers and position.
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from claude_mem.observer.local.markdown import Passage, width
from claude_mem.observer.local.phrases import is_empty_phrase

Role = Literal["problem", "cause", "decision", "change", "outcome", "next", "none"]

MIN_CHARS = 12
MAX_NAMES, MAX_NUMBERS = 5, 3  # more of them do not raise the score further
NAME_SCORE, NUMBER_SCORE, REASON_SCORE, CAUSE_SCORE, DECISION_SCORE = 0.3, 0.15, 0.4, 0.5, 0.7


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


REASON = _words(
    "because cause caused causes causing due turns culprit reason happens crash crashes crashed"
    " fail fails failed failing mismatch dangling stale unsupported silently throws threw doesn't"
    " didn't isn't wasn't cannot can't wrong"
)
CAUSE = REASON | _words("never only without missing since returns")  # weaker signs
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
    "next step", "you need to", "you'll need", "you will need", "you should", "you may want",
    "remaining work", "remaining step", "remains to", "still need", "still to ", "still fail",
    "not yet", "todo:", "follow-up", "shall i", "should i", "do you want", "would you like",
    "want me to", "once you", "aren't configured", "needs to be", "need to be", "as a next",
    "must still", "still must", "still has to", "still have to", "muss noch", "müssen noch",
    "il reste à", "次のステップ", "下一步",
)  # fmt: skip
# Each phrase of NEXT contains one of these words; looking up a set is faster than phrases.
_NEXT_HINTS = _words(
    "next need needs should want remaining remains still yet todo follow-up shall like once"
    " configured noch reste 次の 下一"
)
COMMON = _words(
    "a about after all also an and any are as at be been before both but by can could did do does"
    " each for from had has have how i if in into is it its just like made make may more most much"
    " must my new no not now of on one only or other our out over own same so some such than that"
    " the their them then there these they this those to too up us use used uses using very was we"
    " were what when where which while who why will with would you your"
)

# The first pattern that matches a heading or label gives the role of the passages under it.
_ROLE_BY_HEADING: tuple[tuple[Role, re.Pattern[str]], ...] = (
    ("none", re.compile(
        r"\b(?:verif\w+|testing|test plan|how to test|files? (?:to )?(?:modif|chang)\w*"
        r"|modified files|critical files|key files|out of scope|checklist)\b", re.I)),
    ("next", re.compile(
        r"\b(?:next steps?|remaining|follow[- ]?ups?|to ?do|open questions?|nächste schritte"
        r"|prochaines étapes|próximos pasos)\b|下一步|次のステップ|الخطوات التالية", re.I)),
    ("cause", re.compile(
        r"\b(?:root cause|cause|why|findings?|analysis|diagnosis|what happened|explanation"
        r"|investigation|gotchas?|notes?|important|learned|rationale|reasons?|ursache|grund"
        r"|raison)\b|原因", re.I)),
    ("problem", re.compile(
        r"\b(?:context|problem|background|issue|bug|symptom|error|current|motivation|goal|contexte"
        r"|kontext)\b|问题|問題", re.I)),
    ("decision", re.compile(
        r"\b(?:decisions?|approach|design|trade-?offs?|alternatives?|strategy|not change"
        r"|backward|key|entscheidung|décision)\b", re.I)),
    ("change", re.compile(
        r"\b(?:changes?|fix|solution|implementation|summary|what|new|added|modified|updated"
        r"|änderungen|lösung|changements|modifications)\b|修正|变更|変更", re.I)),
)  # fmt: skip
_CHANGE = re.compile(
    r"(?:\W*+[\w./`-]++:\s+)?(?:i(?:'ve| have)?\s+)?(?:now\s+)?(?:add|creat|fix|updat|chang|remov"
    r"|replac|renam|mov|wrap|refactor|implement|introduc|extract|split|convert|set|pass|use[ds]?\b"
    r"|made\b|mak(?:e|ing)\b|delet|drop|expos|handl|install|bump|configur|migrat|rewr|simplif"
    r"|extend|support|enabl|disabl|clear|register|wir)"
)
_BARE_NAMES = re.compile(r"(?:File:\s*)?(?:[`\w/.\-()~:,*]{1,80}(?:\s+|$)){1,2}(?:\([^)]*\)\.?)?")
_TEST_COUNT = re.compile(r"\d+ (?:new |unit |integration |more )*tests? ")
_IN_CODE = re.compile(r"`[^`\n]{2,80}`")
_NAME = re.compile(
    r"--?[a-z][\w-]{2,}"  # --flag
    r"|[A-Z]{2}[A-Z0-9]*+_|[a-z]+[A-Z]|[A-Z][a-z0-9]+[A-Z]|\w+_\w"  # NAME_, camelCase, snake_case
    r"|[\w.-]+/\w|\.?/?\w+\.[A-Za-z]\w{0,3}\b|\w+\(\)"  # a/path, file.ext, call()
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_WITHOUT_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


@dataclass(frozen=True, slots=True)
class PassageScore:
    role: Role = "none"
    words: frozenset[str] = frozenset()  # without common words
    score: float = 0.0  # 0: the passage says nothing


def score_passage(passage: Passage) -> PassageScore:
    lowered = passage.text.lower().replace("’", "'")
    if _is_empty(passage, lowered):
        return PassageScore()
    all_words = _all_words(lowered)
    words = all_words - COMMON
    return PassageScore(_role(passage, lowered, all_words), words, _score(passage, words))


def _is_empty(passage: Passage, lowered: str) -> bool:
    text = passage.text
    if len(text) < MIN_CHARS and width(text) < MIN_CHARS:
        return True
    if passage.kind != "code" and is_empty_phrase(lowered):
        return True
    return bool(_BARE_NAMES.fullmatch(text))


def _role(passage: Passage, lowered: str, words: Set[str]) -> Role:
    if not words.isdisjoint(_NEXT_HINTS) and any(phrase in lowered for phrase in NEXT):
        return "next"
    for heading in (passage.label, passage.heading):
        if heading and (role := _role_under(heading)):
            return role
    if not words.isdisjoint(CAUSE):
        return "cause"
    if _CHANGE.match(lowered):
        return "change"
    return "outcome" if words.isdisjoint(DECISION) else "decision"


@lru_cache(maxsize=4096)
def _role_under(heading: str) -> Role | None:
    return next((role for role, pattern in _ROLE_BY_HEADING if pattern.search(heading)), None)


def _score(passage: Passage, words: Set[str]) -> float:
    """For the content alone; `selection` weighs in where the passage comes from."""
    text, length = passage.text, width(passage.text)
    is_code = passage.kind == "code"
    names, numbers = _count_names_and_numbers(text)
    score = 1.0 + NAME_SCORE * min(names, MAX_NAMES) + NUMBER_SCORE * min(numbers, MAX_NUMBERS)
    score += REASON_SCORE * (not words.isdisjoint(REASON))
    score += CAUSE_SCORE * (not words.isdisjoint(CAUSE))
    score += DECISION_SCORE * (not words.isdisjoint(DECISION))
    score += 0.1 * text.count('"')
    if is_code:
        score += 0.2 + 0.4 * bool(numbers)
    if length > 260:
        score *= 0.85
    if length < 40 and names == 0 and (passage.kind != "row" or not numbers):
        score *= 0.5
    if text.endswith((":", "：")) or _TEST_COUNT.match(text):
        score *= 0.4  # only an introduction, or a count of tests
    return score


def count_names(text: str) -> int:
    """Identifiers, paths, flags and code spans."""
    return _count_names_and_numbers(text)[0]


def _count_names_and_numbers(text: str) -> tuple[int, int]:
    names = text.count("`") // 2
    numbers = 0
    for token in (_IN_CODE.sub("", text) if names else text).split():
        if token.isalpha() and (token.islower() or token.istitle()):
            continue
        token = token.strip("\"'()[]{}<>,.;:!?…—–")
        if token[:1].isdigit():
            numbers += 1
        elif _NAME.match(token):
            names += 1
    return names, numbers


def describes_change(lowered: str) -> bool:
    """Whether the text reports an action rather than a state; `lowered` in lower case."""
    return bool(_CHANGE.match(lowered))


def describes_choice(words: Set[str]) -> bool:
    """Whether the text says that something was preferred, or what the default is."""
    return not words.isdisjoint(CHOICE)


def content_words(text: str) -> frozenset[str]:
    """All words but common ones, to tell whether two texts say the same."""
    return _all_words(text.lower()) - COMMON


def _all_words(lowered: str) -> frozenset[str]:
    words = _WORD.findall(lowered)
    if not lowered.isascii() and _WITHOUT_SPACES.search(lowered):
        words += [
            lowered[match.start() : match.start() + 2]
            for match in _WITHOUT_SPACES.finditer(lowered)
        ]
    return frozenset(words)


def novelty(words: Set[str], previous: Set[str]) -> float:
    """The share of words that are not among the previous ones."""
    return len(words - previous) / len(words) if words else 0.0
