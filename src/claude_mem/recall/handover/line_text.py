"""Lines of a context: what each shows, and when two of them say the same."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from claude_mem.index.text.words import stem
from claude_mem.store.memory_rows import JsonRow
from claude_mem.text import QUESTION_MARKS, one_line, shorten
from claude_mem.title_rules import stands_alone, without_topics
from claude_mem.types import Fact

LONGEST_LINE = 240
LOCAL = "local"  # the observer without a model
SAME_SUBJECT = 0.6  # share of common words from which two texts are about the same
SAME_STATEMENT = 0.8  # from which they say the same
_IS_TALK = re.compile(
    r"\b(?:I|I'm|I've|I'll|me|my|you|your|you're|you'll|let's|no response requested)\b",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"^(?:>|[-*•]|\d{1,3}[.)])\s+")
# The first sentence has nothing before it that it could refer to.
_REFERS_BACK = re.compile(
    r"(?:that|this|these|those|it|they|and|but|so|also|both)\b", re.IGNORECASE
)
_CODE_NAME = re.compile(
    r"`([^`\n]{3,60})`|\b([a-z]{1,30}[A-Z]\w{2,40}|[A-Z][a-z]{1,30}[A-Z]\w{1,40})\b"
)
_IS_PROBLEM = re.compile(
    r"\b(?:currently|fails?(?!-)|doesn't|does not|lacks?|(?:is|are) never|(?:is|are) missing"
    r"|exact copy|anti-pattern|current approach|ignores|silently|crash(?:es)?"
    r"|(?:bug|issue|problem|cause) (?:is|was))\b",
    re.IGNORECASE,
)
CODE_LINES = re.compile(r"[{};]; |; [})]|^`[^`]*$|(?:^|\s)//\s")
_WORD = re.compile(r"\w+")
_PART_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]{2,}")
_REPEATS = re.compile(r"(?:fixup|squash|amend)!|merge (?:branch|pull|remote)|wip\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    subject: str = ""  # what it must not repeat; "": it may be repeated
    ids: tuple[str, ...] = ()  # of the observations that it shows
    is_quote: bool = False  # of the user, and says so
    stated: str | None = None  # what it says besides names of files; None: all of it


@lru_cache(maxsize=2048)  # each context is made anew of mostly the same titles
def is_clear(title: str) -> bool:
    """Whether a line can show it: it is understood alone, and it is no question."""
    statement = without_topics(title).rstrip()
    return stands_alone(statement) and not statement.endswith(QUESTION_MARKS)


def flat(text: str, limit: int = LONGEST_LINE) -> str:
    return shorten(one_line(text), limit)


def long_words(text: str) -> frozenset[str]:
    """By which two texts are compared: short words are in every text."""
    return frozenset(word for word in _WORD.findall(text.lower()) if len(word) > 3)


def stems_in(text: str) -> frozenset[str]:
    """Of its words, and of the words in its names (`lampWidget`, `lamp_widget`)."""
    words = _PART_OF_NAME.findall(text)
    return frozenset(stem(word.lower()) for word in words if len(word) > 3)


def is_about(words: frozenset[str], subject: frozenset[str], share: float = SAME_SUBJECT) -> bool:
    """Whether most words are in the subject; never for a text without words."""
    return bool(words) and len(words & subject) >= share * len(words)


def first_sentences(text: str, limit: int, title: frozenset[str] = frozenset()) -> str:
    """Whole sentences from the start that fit, without those that say the title again, those of
    the conversation and lines of code."""
    result = ""
    is_first = True
    for sentence in map(unmarked, split_sentences(one_line(text))):
        words = long_words(sentence)
        # One word in common is the subject, not the statement.
        is_title = len(words) > 1 and is_about(words, title, SAME_STATEMENT)
        if is_title or is_talk(sentence) or sentence.endswith(QUESTION_MARKS):
            continue
        is_table = sentence.count(";") > 1
        if is_table or CODE_LINES.search(sentence) or (is_first and _REFERS_BACK.match(sentence)):
            continue
        is_first = False
        longer = f"{result} {sentence}".strip()
        if len(longer) > limit:
            break
        result = longer
    return result


def is_talk(text: str) -> bool:
    """Whether one side addresses the other, which means nothing to a third."""
    return _IS_TALK.search(text) is not None


def split_sentences(line: str) -> Iterator[str]:
    start = 0
    for match in _SENTENCE_END.finditer(line):
        yield line[start : match.end()].strip()
        start = match.end()
    if line[start:].strip():
        yield line[start:].strip()


def is_problem(text: str) -> bool:
    """Whether its first sentence says what is wrong, which holds until it is fixed."""
    return _IS_PROBLEM.search(next(split_sentences(text), "")) is not None


def is_repetition(subject: str) -> bool:
    """Of a commit that repeats another's work: a fix-up or a merge."""
    return _REPEATS.match(subject) is not None


def code_names(text: str) -> frozenset[str]:
    """Identifiers and what is marked as code."""
    return frozenset(quoted or name for quoted, name in _CODE_NAME.findall(text))


def unmarked(title: str) -> str:
    """Without the mark of a list or a quotation at its start."""
    return _LIST_MARK.sub("", title)


def with_end(text: str) -> str:
    return text if not text or text[-1] in ".!?:;…。！？؟" else f"{text}."


def texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def day_of(record: JsonRow) -> str:
    return str(record["created_at"])[:10]


def id_of(observation: JsonRow) -> str:
    return f"#{observation['id']}"


def joined(items: Iterable[str], limit: int) -> str:
    """A list of at most `limit` items, with the number of the others."""
    rows = list(items)
    more = f" and {len(rows) - limit} more" if len(rows) > limit else ""
    return ", ".join(rows[:limit]) + more


def without_facts(observations: Sequence[JsonRow], facts: Sequence[Fact]) -> list[JsonRow]:
    """Without those that state one of the facts: what the user said is also an observation."""
    values = tuple(fact.value for fact in facts)
    return [
        observation
        for observation in observations
        if not (title := without_topics(str(observation["title"] or "")).rstrip(".…"))
        or not any(value.startswith(title) for value in values)
    ]
