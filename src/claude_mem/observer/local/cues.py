"""Words and shapes of sentences that the trees know: each is a feature, none decides alone.

The words are English, the language of most agents. What is written in another language is judged
by the shapes: names, numbers, length and place.
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from claude_mem.word_runs import ascii_words

_WORD = re.compile(r"\w{3,}")
_GROUP = re.compile(r"\(\?:[^()]*\)")
_WHOLE_WORD = re.compile(r"\b[a-z]{3,}(?=$|[ '-])")
_STEM = re.compile(r"[a-z]+(?![?*])")


@dataclass(frozen=True, slots=True)
class Cue:
    """Words of three letters or more, and phrases: most texts are judged by their words alone."""

    words: frozenset[str]
    words_of_phrases: frozenset[str]  # of each phrase one, which every match has
    stems: tuple[str, ...]  # of phrases that are the beginning of a word
    pattern: re.Pattern[str]

    def is_in(self, lowered: str, words: Set[str]) -> bool:
        """`words`: of the text, as the function `words` returns them, or those of cues."""
        if not self.words.isdisjoint(words):
            return True
        if self.words_of_phrases.isdisjoint(words) and not _has_any(lowered, self.stems):
            return False
        return self.pattern.search(lowered) is not None

    def count(self, text: str) -> int:
        return len(self.pattern.findall(text.lower()))

    def matches(self, text: str) -> bool:
        return self.pattern.search(text.lower()) is not None


def _cue(words: str, *phrases: str) -> Cue:
    of_phrases: set[str] = set()
    stems: list[str] = []
    for phrase in phrases:
        if whole_words := _WHOLE_WORD.findall(_GROUP.sub("", phrase)):
            of_phrases.add(max(whole_words, key=len))
        elif stem := _STEM.match(phrase):
            stems.append(stem[0])
    alternatives = "|".join((*words.split(), *phrases))
    pattern = re.compile(rf"\b(?:{alternatives})\b")
    return Cue(frozenset(words.split()), frozenset(of_phrases), tuple(stems), pattern)


def _has_any(lowered: str, parts: tuple[str, ...]) -> bool:
    return any(map(lowered.__contains__, parts)) if parts else False


NAME = re.compile(
    r"`[^`\n]{1,120}`|--[a-z][\w-]{1,40}|#\d{1,7}\b"
    # One test of the boundary for all: within a word, most time would be spent on these tests.
    r"|\b(?:\w{1,60}+(?:[./]\w[\w./-]{0,100}+|\(\))"
    r"|[a-z]{1,40}+[A-Z]\w{1,60}+|[A-Z][a-z]{1,40}+[A-Z]\w{1,60}+|[A-Za-z]{1,40}_\w{1,60}"
    r"|[A-Z]{4,40}\b)"
)
NUMBER = re.compile(r"\d")
ANNOUNCEMENT = re.compile(
    r"(?:now,? |ok,? |okay,? |alright,? |good[,.] |great[,!.] |perfect[,!.] )?"
    r"(?:i'll|let me|i will|i'm going to|let's|now let me|now i|i need to|i should"
    r"|first,? (?:let|i)|next,? (?:let|i)|checking|looking|running|reading|searching)\b",
    re.IGNORECASE,
)
CAUSE = _cue(
    "because since caused reason therefore actually",
    "root cause", "due to", "so that", "which means", "turns out",
    "the (?:issue|problem|bug|fix) ",
)  # fmt: skip
CHANGE = _cue(
    "added removed fixed changed replaced renamed moved updated created implemented refactored"
    " extracted dropped use uses return returns",
    "now ", "instead of", "no longer",
)  # fmt: skip
LIMIT = _cue(
    "must never always should cannot not only unless", "can't", "won't", "doesn't", "don't"
)
STATUS = _cue(
    "committed pushed done clean lint ready successfully complete completed",
    "tests? pass", "build (?:succeeds|passes)", "working tree",
)  # fmt: skip
NEXT = _cue(
    "next followup todo remaining left deferred later",
    "want me to", "should i", "would you", "let me know", "follow-up", "open question",
    "still (?:needs?|has|have|must)",
)  # fmt: skip
OFFER = _cue(
    "", "want me to", "should i", "shall i", "would you", "do you want", "let me know", "your call"
)
# What is left to do, whatever the model says.
LEFT_TO_DO = re.compile(
    r"^(?:next|todo|follow-?up|remaining|still open|left to do)(?: steps?)?\s?[:：]\s"
    r"|\b(?:must still|still (?:needs? to|must|has to|have to)|(?:is|are) still to be"
    r"|remains? to be|you(?:'ll| will)? need to|muss noch|müssen noch|il reste à|queda por"
    r"|осталось)\b"
    r"|次のステップ|下一步",
    re.IGNORECASE,
)
# Each match contains one of these.
_LEFT_TO_DO_PARTS = (
    "next", "todo", "follow", "remain", "still", "left to do", "need to", "noch", "il reste",
    "queda por", "осталось", "次の", "下一步",
)  # fmt: skip
NEXT_HEADING = re.compile(
    r"\b(?:next steps?|remaining(?: (?:work|steps?|tasks?))?|follow[- ]?ups?|to ?do|still open"
    r"|left to do|nächste schritte|prochaines étapes|próximos pasos|следующие шаги)\b"
    r"|下一步|次のステップ|الخطوات التالية",
    re.IGNORECASE,
)
CHOICE = _cue(
    "decided chose tradeoff deliberately intentionally backward backwards default fallback",
    "instead of", "rather than", "trade-off", r"prefer\w*",
)  # fmt: skip
FAILURE = _cue(
    "fail fails failed failing failure error bug broken wrong missing regression race",
    r"crash\w*", r"flak\w+", r"leak\w*",
)  # fmt: skip
# The words by which one of these can be recognised: what a text has of them decides as much as all.
CUE_WORDS = frozenset().union(
    *(
        cue.words | cue.words_of_phrases
        for cue in (CAUSE, CHANGE, LIMIT, STATUS, NEXT, OFFER, CHOICE, FAILURE)
    )
)
FIRST_PERSON = re.compile(r"\b(?:I|I'\w+|we|we're|we've|my)\b")
SECOND_PERSON = re.compile(r"\byou(?:r|'\w+)?\b", re.IGNORECASE)
PRONOUN = re.compile(
    r"(?:it|its|it's|this|that|that's|these|those|they|he|she|both|either|here|there)\b",
    re.IGNORECASE,
)
IMPERATIVE = re.compile(
    r"(?:add|fix|remove|update|implement|change|refactor|move|rename|use|make|support|replace|show"
    r"|allow|create|improve|extract|handle|drop|enable|disable|prevent|ensure|write|convert|hide"
    r"|skip|introduce)\w{0,3}\b",
    re.IGNORECASE,
)
TELLING_HEADING = re.compile(
    r"summary|change|what|result|fix|cause|finding|decision|why|how|conclusion|done|key",
    re.IGNORECASE,
)
GENERIC_HEADING = re.compile(
    r"(?:summary|changes|overview|context|implementation|verification|files?|what|results?|plan"
    r"|next|key|why|how|tests?|problem|background|approach|step|phase|todo|notes?)\b",
    re.IGNORECASE,
)
NOD = re.compile(
    r"(?:yes|no|ok|okay|go|continue|commit|push|do it|thanks?|great|perfect|proceed|sure|lgtm"
    r"|merge|try again|again|stop|wait|rebase|retry)\b",
    re.IGNORECASE,
)


def find_first_person(text: str) -> re.Match[str] | None:
    has_any = "I" in text or "we" in text or "my" in text
    return FIRST_PERSON.search(text) if has_any else None


def find_second_person(text: str) -> re.Match[str] | None:
    return SECOND_PERSON.search(text) if "you" in text.lower() else None


@lru_cache(maxsize=1024)  # of a passage, and of the titles that are all of it
def count_names(text: str, most: int) -> int:
    return len(list(islice(NAME.finditer(text), most)))


@lru_cache(maxsize=1024)
def is_telling_heading(heading: str) -> bool:
    return TELLING_HEADING.search(heading) is not None


@lru_cache(maxsize=1024)
def is_next_heading(heading: str) -> bool:
    return NEXT_HEADING.search(heading) is not None


def says_what_is_left(text: str) -> bool:
    lowered = text.lower()
    return any(map(lowered.__contains__, _LEFT_TO_DO_PARTS)) and bool(LEFT_TO_DO.search(text))


@lru_cache(maxsize=1024)
def announces_next(heading: str) -> bool:
    return NEXT.matches(heading)


@lru_cache(maxsize=256)  # of a message, and of the titles and passages that are all of it
def all_words(text: str) -> tuple[str, ...]:
    words = ascii_words(text)
    if words is None:
        return tuple(_WORD.findall(text.lower()))
    return tuple([word for word in words if len(word) > 2])


@lru_cache(maxsize=256)
def words(text: str) -> frozenset[str]:
    return frozenset(all_words(text))
