"""The sentences of a draft that tell what was changed, in contrast to plans, causes and remarks."""

import re
from collections.abc import Iterator

from claude_mem.recall.handover.achievements import is_fragment
from claude_mem.recall.handover.lines import (
    CODE_LINES,
    QUESTION_MARKS,
    SAME_STATEMENT,
    content_words,
    is_about,
    is_problem,
    is_talk,
    split_sentences,
    unmarked,
)
from claude_mem.text import one_line

FEWEST_WORDS = 4
LONGEST_LABEL = 60
FIRST_SENTENCES = 3
_PAST = (
    r"(?:added|adjusted|aligned|applied|bumped|built|capped|centrali[sz]ed|changed|clarified|cleaned"
    r"|collapsed|consolidated|converted|corrected|created|cut|de-?duplicated|deleted|disabled"
    r"|documented|dropped|enabled|excluded|expanded|exposed|extended|extracted|fixed|folded|guarded"
    r"|hid|hidden|implemented|improved|inlined|introduced|kept|limited|made|merged|migrated|moved"
    r"|narrowed|pinned|raised|rebuilt|reduced|refactored|registered|relaxed|removed|renamed"
    r"|reordered|replaced|reset|resolved|restored|restricted|reused|reverted|rewrote|rewritten"
    r"|routed|shortened|simplified|skipped|split|stripped|switched|swapped|tightened|trimmed"
    r"|turned|unified|updated|upgraded|wired|wrapped|wrote)"
)
_IS_CHANGE = re.compile(
    rf"(?:also |now |was |were |has been |have been )?{_PAST}\b"
    r"|.*?\b(?:now (?:[a-z]+s|use|have|run|are)|no longer|instead of)\b"
    rf"|[^.]{{3,60}} (?:was|were|has been|have been|is|are) (?:now )?{_PAST}\b"
    r"|(?:the|this) (?:fix|change|update) (?:add|remove|move|replace|make|use|change|split)s\b",
    re.IGNORECASE,
)
# What is right before a commit and worth nothing after it.
_PASSES = re.compile(
    r"\b(?:tree (?:is )?clean|working tree|all green|build green|tests? pass\w*"
    r"|lint\w* (?:is )?clean|pushed|force-push\w*|with lease|fixups?|squashed|rebased|committed"
    r"|checks? pass\w*)\b",
    re.IGNORECASE,
)
_IS_CAUSE = re.compile(r"\b(?:because|since|due to|caused|root cause)\b|, so \w", re.IGNORECASE)
_IS_PAST = re.compile(r"\b(?:was|were|had|did)\b", re.IGNORECASE)
_HASH = re.compile(r"`?[0-9a-f]{7,40}`?\b")
_LABEL = re.compile(rf"((?:[^:;.!?]|\.(?=\S)){{1,{LONGEST_LABEL}}}?)(?::| [—–-]) (?=\S)")
_HAS_NAME = re.compile(r"[`./_]|\(\)|[a-z][A-Z]")


def changes_in(text: str, limit: int, title: frozenset[str] = frozenset()) -> str:
    """What was changed, in order, as much as fits; nothing that says the title again."""
    result = ""
    for clause in _clauses(text):
        words = content_words(clause)
        if len(words) > 1 and is_about(words, title, SAME_STATEMENT):
            continue
        longer = f"{result} {clause}".strip()
        if len(longer) > limit:
            break
        result = longer
    return result


def problem_in(text: str, limit: int, title: frozenset[str]) -> str:
    """The sentence at the beginning that says what was wrong with the subject of the title."""
    sentences = list(map(unmarked, split_sentences(one_line(text))))
    for sentence in sentences[:FIRST_SENTENCES]:
        words = content_words(sentence)
        is_same = is_about(words, title, SAME_STATEMENT)
        if is_problem(sentence) and words & title and not is_same and _is_whole(sentence, limit):
            return _without_lead_in(sentence)
    return ""


def _without_lead_in(sentence: str) -> str:
    """Without "Two things are needed:", which names nothing."""
    label = _LABEL.match(sentence)
    return sentence[label.end() :] if label and not _HAS_NAME.search(label[1]) else sentence


def elaboration_in(text: str, limit: int, title: frozenset[str]) -> str:
    """A sentence that says what the title says, and more."""
    for sentence in map(unmarked, split_sentences(one_line(text))):
        words = content_words(sentence)
        is_more = is_about(title, words) and len(words) > len(title)
        if is_more and not is_problem(sentence) and _is_whole(sentence, limit):
            return sentence
    return ""


def cause_in(text: str, limit: int) -> str:
    """The sentence at the beginning that says why something failed, in the past."""
    sentences = list(map(unmarked, split_sentences(one_line(text))))
    for sentence in sentences[:FIRST_SENTENCES]:
        if _IS_CAUSE.search(sentence) and _IS_PAST.search(sentence) and _is_whole(sentence, limit):
            return sentence
    return ""


def _is_whole(sentence: str, limit: int) -> bool:
    if len(sentence) > limit or is_talk(sentence) or sentence.endswith(QUESTION_MARKS):
        return False
    return not (CODE_LINES.search(sentence) or _HASH.match(sentence) or is_fragment(sentence))


def _clauses(text: str) -> Iterator[str]:
    for sentence in split_sentences(one_line(text)):
        for part in unmarked(sentence).split("; "):
            if clause := _change(part.strip()):
                yield clause if clause[-1] in ".!:" else f"{clause}."


def _change(clause: str) -> str:
    """The clause, without a label that names nothing; empty if it tells no change."""
    if is_talk(clause) or clause.endswith(QUESTION_MARKS) or CODE_LINES.search(clause):
        return ""
    if len(clause.split()) < FEWEST_WORDS or _PASSES.search(clause) or clause.count("`") % 2:
        return ""
    label = _LABEL.match(clause)
    rest = clause[label.end() :] if label else clause
    if label and _IS_CHANGE.match(rest):
        return clause if _HAS_NAME.search(label[1]) else rest[0].upper() + rest[1:]
    return clause if _IS_CHANGE.match(clause) and not is_fragment(clause) else ""
