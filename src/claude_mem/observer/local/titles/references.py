"""Whether an English title refers to something that it does not name.

A clause of a conversation says "the function", "the rest" or "so it stays centred", since
everybody has just read which. Each check is for clauses that were said; what was written as a title
is not judged by it.
"""

import re

from claude_mem.observer.local.any_case import AnyCase
from claude_mem.observer.local.clause_grammar import THIRD_PERSON, tells_change, verb_of
from claude_mem.observer.local.titles.signs import LONGEST_PLACE, lacks_subject
from claude_mem.title_rules import word_set

# Things that every program or text has: which one, the text before has told.
_THINGS = word_set(
    "approach artifact block branch call caller case check class code column command comment"
    " condition cost entry error example failure field file flag function handler heading helper"
    " image impact key label line list literal logic loop message method modal name output overhead"
    " page paragraph parameter pattern result row script section sentence snippet statement string"
    " struct rest suite test text title type value variable violation warning wrapper"
)
_MODIFIERS = word_set(
    "actual affected current correct different entire error existing failing first generated last"
    " main missing new next old original other previous real remaining resulting same second single"
    " test third unused updated whole wrong"
)
_NUMBERS = word_set("one two three four five six seven eight nine ten")
_DETERMINERS = word_set("the all both each every existing")
_ADVERBS = word_set(
    "actually already also always correctly currently directly first just never no not now only"
    " properly simply still then typically usually"
)
_AUXILIARIES = word_set(
    "is are was were has have had does do did can cannot could will would must should may might"
    " isn't aren't wasn't weren't doesn't don't didn't can't won't couldn't shouldn't needs need"
)
_NO_NOUN_BEFORE = AnyCase(
    # "If run from there, this fails": what is run?
    r"^(?:if|when|once|after|unless) [a-z]+(?:ed|ing|un|ent|ilt)\b[^,]{0,100},"
    r" (?:this|that|it|they)\b"
    r"|(?:[,;]| [—–-]| because| so| but| since) this (?:is|are|was|were|will|would"
    r"|can|could|does|do|did|has|have|[a-z]{2,}s)\b"
)
# After a clause without a subject: "uses a lock so it stays whole".
_PRONOUN = re.compile(r"\b(?:so|and|but|because|where)(?: that)? (?:it|they)\b")
# "The output is now cleaner": than what, and how?
_COMPARED = re.compile(
    r"\b(?:is|are|was|looks?|reads?)"
    r" (?:(?:now|much|far|probably|also|even|slightly|a bit|a lot) ){0,3}"
    r"(?:better|cleaner|clearer|easier|faster|lighter|nicer|neater|safer|shorter|simpler|slower"
    r"|smaller|tidier)\W*(?:\([^()]*\))?$"
)
# "The lamp matches the harbour's": of the other, the noun is missing.
_POSSESSIVE_END = re.compile(r"\w['’]s$")
# Whoever reviewed, a step for the user, an example, a judgement without its subject: the work, and
# nothing of the project.
_OF_THE_CONVERSATION = AnyCase(
    r"^(?:[\w'-]+ ){0,3}(?:angles?|lens|sweeps?|finders?|verifiers?|work streams?) (?!of\b)[a-z]"
    r"|^(?:~?\d+|all|both|two|three|four|five) (?:[\w-]+ )?candidates\b|\bangle too$"
    r"|^(?:go|head|navigate|switch) to\b|^click\b"
    r"|^an? [\w-]+ like\b"
    r"|^(?:one|another) (?:catch|caveat|correction|detail|exception|note|nuance|question|thing)\b"
    r"|^(?:consistent|inconsistent) with\b|^different from\b"
    r"|^(?:equal|equivalent|identical|related|similar|unrelated) to\b"
    r"|^(?:arithmetic|assumption|claim|guess|math|reading|reasoning)s? (?:is|was|were)\b"
    r"|^the (?:[\w-]+ ){0,2}(?:comment|reply|thread)s? [a-z]+"
    # "The natural place is `Lamp.burn()`": for what?
    r"|^the (?:actual|best|cleanest|correct|natural|obvious|only|proper|real|right|simplest) [a-z]+"
    r" (?:is|was|would be)\b"
    r"|\b(?:all|both|each|half|most|none|part|some) of (?:it|them)\b"
    r"|^(?:nobody|none|nothing|no [a-z]+)\b[^,;]{0,100}\b(?:it|them)\b"
    r"|\bboth (?:callers|cases|files|functions|methods|paths|sites|tests)\b"
    r"|^(?:best|biggest|main|others?|remaining|strongest|top|worst) (?:are|is)\b"
    r"|\bthat (?:exact|particular|specific|very)\b|^(?:sub)?tests (?:are|have|run|show|still|use)\b"
    r"|^the (?:change|fix) [a-z]+s\b[^`]*$|^the `[^\w`]{1,3}`"
    r"|\bon (?:the )?first (?:pass|try)\b|^the rest of\b"
    r"|\bthe (?:earlier|initial|previous|prior) `?(?:attempt|crash|error|fail|failure|run)s?\b"
    r"|\b(?:are|became|is|was) (?:now )?`\w`$"
    r"|^(?:the )?original (?:[^\s,;]+ ){0,2}"
    r"(?:claim|finding|idea|plan|proposal|report|scenario)s?\b"
    # "`a` lamps getting dimmed": no clause
    r"|^(?:(?!(?:is|are|was|were|be|by|of|for|from|keeps?|stops?) )[^\s,;]+ ){1,8}"
    r"(?:being|getting) [a-z]+(?:ed|en|t)\b"
)
_ITEM = re.compile(r"(?:the|an?|\d+|one|two|three|four|five|six|seven)\s", re.IGNORECASE)
_ITEM_END = re.compile(r", (?:and )?")
_NOUN_END = re.compile(r", (?:and )?| \+ ")
FEWEST_ITEMS, FEWEST_NOUNS, WORDS_OF_NOUN = 2, 3, 4


def refers_to_unnamed(title: str) -> bool:
    """Whether what it is about is known only from the text before."""
    place, said = _place_and_statement(title)
    return (
        _has_unnamed_subject(place, said)
        or _OF_THE_CONVERSATION.search(said) is not None
        or _NO_NOUN_BEFORE.search(said) is not None
        or _COMPARED.search(said) is not None
        or _POSSESSIVE_END.search(said) is not None
        or (lacks_subject(said) and _PRONOUN.search(said) is not None)
        or (verb_of(place) is None and (_is_list_of_things(said) or _is_list_of_nouns(said)))
    )


def _place_and_statement(title: str) -> tuple[str, str]:
    place, _, said = title.partition(": ")
    return (place, said) if said and len(place.split()) <= LONGEST_PLACE else ("", title)


def _has_unnamed_subject(place: str, said: str) -> bool:
    """ "The function returns early", unless the place before it is one: "LampFunction.py"."""
    words = said[:80].lower().split()
    if not words or words[0] not in _DETERMINERS:
        return False
    position = 1
    while position < len(words) - 1 and _is_modifier(words[position], words[position + 1]):
        position += 1
    if position >= len(words) - 1:
        return False
    thing = _singular(words[position])
    if thing not in _THINGS or thing in place.lower():
        return False
    return _may_be_verb(words[position + 1].strip(",;:"), is_plural=thing != words[position])


def _is_modifier(word: str, following: str) -> bool:
    """ "New", "two", and "error" before "message"."""
    if word in _THINGS:
        return _singular(following) in _THINGS
    return word in _MODIFIERS or word in _NUMBERS or word.isdigit()


def _singular(word: str) -> str:
    if word in _THINGS:
        return word
    return next((form for form in (word[:-1], word[:-2]) if form in _THINGS), word)


def _may_be_verb(word: str, *, is_plural: bool) -> bool:
    if word in _ADVERBS or word in _AUXILIARIES or word in THIRD_PERSON:
        return True
    if is_plural:
        return f"{word}s" in THIRD_PERSON or f"{word}es" in THIRD_PERSON
    return word.isalpha() and word.endswith("s") and not word.endswith("ss")


def _is_list_of_things(said: str) -> bool:
    """ "The lamp rule, two broken tests, and open relays": nothing is said of them."""
    items = _ITEM_END.split(said)
    if len(items) < FEWEST_ITEMS or not all(map(_ITEM.match, items[:FEWEST_ITEMS])):
        return False
    return not _has_verb(said)


def _is_list_of_nouns(said: str) -> bool:
    """ "Harbour quirks, relay traps, lamp facts", or the same with plus signs."""
    items = _NOUN_END.split(said)
    if len(items) < FEWEST_NOUNS or any(len(item.split()) > WORDS_OF_NOUN for item in items):
        return False
    is_done = any(word.strip(",").endswith("ed") for word in said.split())
    return not (is_done or tells_change(said) or verb_of(said) is not None or _has_verb(said))


def _has_verb(said: str) -> bool:
    words = said.lower().replace(",", " ").split()
    return any(word in _AUXILIARIES or word in THIRD_PERSON for word in words)
