"""What a passage is: which part it plays in a turn's story, and how much it is worth keeping.

Worth comes from what later questions turn on: causes, decisions, what was replaced by what, names,
numbers. The words that tell are English; other languages are judged by their names, numbers and
place alone.
"""

import re
from collections.abc import Set
from functools import lru_cache
from typing import Literal

from claude_mem.observer.local.passages import Passage, width
from claude_mem.observer.local.phrases import says_nothing

Role = Literal["problem", "cause", "decision", "change", "outcome", "next", "none"]

SHORTEST = 12
MANY_NAMES, MANY_NUMBERS = 5, 3
OF_A_NAME, OF_A_NUMBER, OF_A_REASON, OF_A_CAUSE, OF_A_CHOICE = 0.3, 0.15, 0.4, 0.5, 0.7


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


REASON = _words(
    "because cause caused causes causing due turns culprit reason happens crash crashes crashed"
    " fail fails failed failing mismatch dangling stale unsupported silently throws threw doesn't"
    " didn't isn't wasn't cannot can't wrong"
)
CAUSE = REASON | _words("never only without missing since returns")  # often, not always
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
# Some word of these is in each phrase of NEXT: sets are quicker than phrases.
_HINTS = _words(
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

# The first that a heading or a label matches says what stands under it.
_BY_HEADING: tuple[tuple[Role, re.Pattern[str]], ...] = (
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


class Weighed:
    """A passage looked at once: its words, its part and its worth."""

    __slots__ = ("passage", "role", "words", "worth")

    def __init__(self, passage: Passage) -> None:
        self.passage = passage
        self.words: frozenset[str] = frozenset()
        self.role: Role = "none"
        self.worth = 0.0
        lowered = passage.text.lower().replace("’", "'")
        if not _is_empty(passage, lowered):
            every = _every_word(lowered)
            self.words = every - COMMON
            self.role = _role(passage, lowered, every)
            self.worth = _worth(passage, self.words)


def _is_empty(passage: Passage, lowered: str) -> bool:
    text = passage.text
    if len(text) < SHORTEST and width(text) < SHORTEST:
        return True
    if passage.kind != "code" and says_nothing(lowered):
        return True
    return bool(_BARE_NAMES.fullmatch(text))


def _role(passage: Passage, lowered: str, words: Set[str]) -> Role:
    if not words.isdisjoint(_HINTS) and any(phrase in lowered for phrase in NEXT):
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


def _worth(passage: Passage, words: Set[str]) -> float:
    """For what the passage says; where it stands is for the caller to weigh."""
    text, length = passage.text, width(passage.text)
    is_code = passage.kind == "code"
    names, numbers = _names_and_numbers(text)
    worth = 1.0 + OF_A_NAME * min(names, MANY_NAMES) + OF_A_NUMBER * min(numbers, MANY_NUMBERS)
    worth += OF_A_REASON * (not words.isdisjoint(REASON))
    worth += OF_A_CAUSE * (not words.isdisjoint(CAUSE))
    worth += OF_A_CHOICE * (not words.isdisjoint(DECISION))
    worth += 0.1 * text.count('"')
    if is_code:
        worth += 0.2 + 0.4 * bool(numbers)
    if length > 260:
        worth *= 0.85
    if length < 40 and names == 0 and (passage.kind != "row" or not numbers):
        worth *= 0.5
    if text.endswith((":", "：")) or _TEST_COUNT.match(text):
        worth *= 0.4  # it only leads to what follows, or counts
    return worth


def names_in(text: str) -> int:
    return _names_and_numbers(text)[0]


def _names_and_numbers(text: str) -> tuple[int, int]:
    """How many things it names, and how many numbers it gives. Plain words need no second look."""
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


def is_change(lowered: str) -> bool:
    """Says what was done, rather than how things are."""
    return bool(_CHANGE.match(lowered))


def is_choice(words: Set[str]) -> bool:
    """Says that one thing was preferred to another, or what holds where nothing is said."""
    return not words.isdisjoint(CHOICE)


def words_of(text: str) -> frozenset[str]:
    """The words that carry meaning, for telling whether something was said before."""
    return _every_word(text.lower()) - COMMON


def _every_word(lowered: str) -> frozenset[str]:
    found = _WORD.findall(lowered)
    if not lowered.isascii() and _WITHOUT_SPACES.search(lowered):
        found += [
            lowered[place.start() : place.start() + 2]
            for place in _WITHOUT_SPACES.finditer(lowered)
        ]
    return frozenset(found)


def newness(words: Set[str], known: Set[str]) -> float:
    """The share of words that were not known before."""
    return len(words - known) / len(words) if words else 0.0
