"""The text of passages as a hint shows it: without what was only meant for its moment."""

import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import dropwhile

from claude_mem.recall.fence import escape_fences
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.text import one_line

SAME_SUBJECT = 0.6  # share of the words of a fact's subject that a passage about it has
SHORTEST_VALUE = 4

# Emphasis, but not `**/*.md`.
_MARKUP = re.compile(
    r"(?<!/)\*\*(?![/.])|```\w*|^#{1,6} |^[-*] |^\|[-| :]+\|$|^[-=*_]{3,}$", re.MULTILINE
)
# Lines of a list end without a full stop.
_LINE_END = re.compile(r"(?<=[^\s.!?:;,…])[ \t]{0,20}\n\s{0,20}(?=\S)")
# Lines that git, the client and other tools add to messages of commits and pull requests.
_TRAILER = re.compile(
    r"(?:^|\s)(?:[A-Z][A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){1,3}: [^\n]{0,120}?(?:<[^<>\s]{3,80}>|$)"
    r"|🤖 Generated with [^\n]{0,100})",
    re.MULTILINE,
)
# What an agent announces, and what passed in its turn.
_MOMENTARY = re.compile(
    r"(?:(?:now|first|next|then|ok|okay|good|great|perfect|done|yes|so|also|actually|and)[,.!:]? )*"
    r"(?:let me|let's|let us|i'll|i will|i need to|i can|i can now|i should|i'm going to"
    r"|i am going to|i see|i have (?:all|the full|a clear)|i now have|looking at"
    r"|here(?:'s| is) (?:a|the) (?:summary|plan)|implement the following plan"
    r"|now (?:add|update|fix|run|the))\b"
    r"|(?:wait|hmm|oh|oops|you're right|good (?:point|catch)|(?:but )?actually)\b"
    r"|(?:want|shall|should|would you like) (?:me|i)\b|i haven't|that closes|all clean"
    r"|(?:task|step|phase) \w{1,3} (?:is )?(?:done|complete|verified)"
    r"|(?:done|good|perfect|great|plan|context|summary|changes)[.!:]?$"
    r"|(?:all )?(?:\d[\d,]* )?(?:tests?|checks?|lint\w*|build)\b[^.]{0,40}"
    r"\b(?:pass\w*|clean|green)\b"
    r"|(?:tests|check|run|release): `|committed(?: as)?\b[: ]"
    r"|[^`\n]{1,80}` failed \(|it passed after\b|[-=*_]{3}",
    re.IGNORECASE,
)
_HEADING = re.compile(r"#{1,6} |\*\*[^*\n]{1,80}\*\*:?$")
_CODE = re.compile(
    r"=> ?[{(]|[;{]$|\);?$|^(?:const|let|var|await|return|import|export|func|def|if \()\b"
    r"|^//|^[\w.]{1,60} :?= |^\S{1,200}:\d+:"
)
_INLINE_CODE = re.compile(r"`[^`\n]{1,200}`")
# A passage may begin within a sentence.
_MIDDLE = re.compile(r"[a-z]{1,20}[ ,)]|[)}\]>,;]")
_NUMBER_AT_END = re.compile(r"\s\d{1,2}\.$")
_AFTER_LABEL = re.compile(r":\n(?=[a-z])")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"(\d#/])|(?<=:)\s+(?=[A-Z])|\n+")
_WORD = re.compile(r"\w+")


def plain(text: str) -> str:
    """Writes the text on one line, without markup that only matters on several."""
    return escape_fences(one_line(_LINE_END.sub("; ", _MARKUP.sub(" ", text))))


def lasting(text: str) -> str:
    """Removes trailers of commits and sentences about the moment; each sentence is on its line."""
    return "\n".join(_lasting(text))


def work_in(text: str, leads: Callable[[str], bool]) -> str:
    """Shortens a text as `lasting` and `plain` do, without headings and code, from the first
    sentence that may lead; empty if none may."""
    sentences = _lasting(text)
    if len(sentences) > 1 and _MIDDLE.match(sentences[0]):
        del sentences[0]
    prose = [sentence for sentence in sentences if not _is_layout(sentence)]
    return plain("\n".join(dropwhile(lambda sentence: not leads(sentence), prose)))


def _lasting(text: str) -> list[str]:
    sentences = _SENTENCE.split(_AFTER_LABEL.sub(": ", _TRAILER.sub("", text)))
    return [s for s in sentences if not _MOMENTARY.match(s.strip(" *#-`|"))]


def _is_layout(sentence: str) -> bool:
    """A heading, or a line of code."""
    text = sentence.strip()
    return bool(_HEADING.match(text) or _CODE.search(_INLINE_CODE.sub("", text)))


def whole_sentences(text: str, tokens: int) -> str:
    """Returns as many sentences from the start as fit."""
    result = ""
    for sentence in _SENTENCE.split(text):
        longer = f"{result} {sentence}".strip()
        if estimate_tokens(longer) > tokens:
            break
        result = longer
    return _NUMBER_AT_END.sub("", result).rstrip(" …:;,")


@dataclass(frozen=True, slots=True)
class PastFact:
    """A fact that holds no more, and the value that replaced it, if any."""

    subject: str
    value: str
    replacement: str = ""


def past_facts(connection: sqlite3.Connection, project_id: int | None) -> list[PastFact]:
    rows = connection.execute(
        "SELECT f.subject, f.value, coalesce(n.value, '') FROM facts f"
        " LEFT JOIN facts n ON n.id = f.superseded_by WHERE f.status IN ('past', 'wrong')"
        " AND f.kind IN ('rule', 'decision', 'command', 'place')"
        " AND (?1 IS NULL OR f.project_id = ?1)",
        (project_id,),
    )
    return [PastFact(*row) for row in rows]


def states_past(text: str, facts: Sequence[PastFact]) -> bool:
    """Whether it states a fact that holds no more, and not what replaced it."""
    lower = text.lower()
    stated = [fact for fact in facts if _bare(fact.value) in lower]
    words = _words(text) if stated else set()
    return any(_is_about(words, fact) and not _tells_change(lower, fact) for fact in stated)


def _is_about(words: set[str], fact: PastFact) -> bool:
    subject = {word for word in _words(fact.subject) if len(word) > 3}
    is_value = len(_bare(fact.value)) >= SHORTEST_VALUE
    return is_value and len(subject & words) >= SAME_SUBJECT * len(subject)


def _tells_change(text: str, fact: PastFact) -> bool:
    return bool(fact.replacement) and _bare(fact.replacement) in text


def _bare(value: str) -> str:
    return value.lower().strip(" .`\"'")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
