"""When a newer fact replaces an older one, says the same again, or is about something else.

`relation` decides for two facts. It is conservative: two facts that merely share words stay. What
the user said yields only to the user.
"""

import re
from functools import lru_cache
from typing import Literal

from claude_mem.store.wording import Wording, read_wording, stem_of
from claude_mem.types import Fact, ProposedFact

Relation = Literal["supersedes", "same", "unrelated"]
Statement = Fact | ProposedFact

SAME_TOPIC = 0.7  # shared words by all words
SAME_QUESTION = 0.75
COVERED = 0.65  # shared words by those of the shorter statement
MAX_EXTRAS = 2  # words that only the longer statement has, where it says that it changes
FAILED = "fail"
AMOUNTS = ("number", "duration", "size", "clock")  # classes of values
_ADDED = frozenset(map(stem_of, ("support", "cover")))  # each has several objects
_DEICTIC = re.compile(r"\b(?:this|these|it)\b", re.IGNORECASE)  # means another thing each time
_INDEPENDENT = ("artifact", "open")  # kinds of which one never replaces another
_UNDECIDED = frozenset(
    ("pullrequest", *map(stem_of, ("proceed", "continue", "next", "option", "approach", "step",
                                   "ready", "commit", "push", "merge", "task")))
)  # fmt: skip
_WRAPPERS = (("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("npx",),
             ("bunx",), ("python", "-m"), ("python3", "-m"), ("bundle", "exec"))  # fmt: skip
_PREFIXES = tuple(tuple(word for word in wrapper if word != "run") for wrapper in _WRAPPERS)
_RUNNERS = frozenset(
    ("npm", "pnpm", "yarn", "bun", "make", "just", "task", "npx", "bunx", "rake", "invoke", "nox",
     "tox")
)  # fmt: skip


def relation(older: Statement, newer: Statement) -> Relation:
    """What the newer of two facts of a project is to the older one."""
    if older.origin == "person" and newer.origin != "person":
        return "unrelated"
    if older.scope != newer.scope:
        return "unrelated"
    if older.kind == "fault" and newer.kind == "command":
        return _compare_fault_with_run(older, newer)
    if older.kind != newer.kind:
        return "unrelated"
    if (older.subject, older.value) == (newer.subject, newer.value):
        return "same"
    is_obstacle = older.kind == "fault" and not (older.subject and newer.subject)
    if older.kind in _INDEPENDENT or is_obstacle:
        return "unrelated"
    if older.kind == "command":
        return _compare_commands(older, newer)
    if older.subject and newer.subject:
        return _compare_values(older, newer)
    return compare_texts(_text(older), _text(newer))


def _text(fact: Statement) -> str:
    return f"{fact.subject} {fact.value}" if fact.subject else fact.value


def _compare_fault_with_run(fault: Statement, run: Statement) -> Relation:
    is_over = run.value == fault.subject and FAILED not in run.note
    return "supersedes" if is_over else "unrelated"


def _compare_commands(older: Statement, newer: Statement) -> Relation:
    """Many commands serve a purpose; one replaces another only if they differ in the runner."""
    if older.subject != newer.subject:
        return "unrelated"
    old, new = _bare(older.value), _bare(newer.value)
    if not old or not new:
        return "unrelated"
    if old == new:
        return "supersedes"  # with another wrapper
    runs_same = old[1:] == new[1:] and old[0] != new[0]
    return "supersedes" if runs_same and {old[0], new[0]} <= _RUNNERS else "unrelated"


@lru_cache(maxsize=512)  # a command is compared with each of the same purpose
def _bare(command: str) -> tuple[str, ...]:
    words = tuple(word for word in command.split() if word != "run")
    for prefix in _PREFIXES:
        if words[: len(prefix)] == prefix and len(words) > len(prefix):
            return words[len(prefix) :]
    return words


def _compare_values(older: Statement, newer: Statement) -> Relation:
    """Answers to questions, and values of named subjects."""
    is_same = _is_same_subject(read_wording(older.subject), read_wording(newer.subject))
    is_same = is_same or (older.kind == "place" and _plain(older.subject) == _plain(newer.subject))
    if not is_same or _DEICTIC.search(older.subject) or _DEICTIC.search(newer.subject):
        return "unrelated"
    if _plain(older.value) == _plain(newer.value):
        return "same"
    old, new = read_wording(older.value), read_wording(newer.value)
    is_same = old.terms == new.terms != frozenset() and old.forbids == new.forbids
    return "same" if is_same else "supersedes"


def _is_same_subject(old: Wording, new: Wording) -> bool:
    if not old.terms - _UNDECIDED or not new.terms - _UNDECIDED:
        return False
    if old.qualifiers != new.qualifiers or old.values != new.values:
        return False
    return _overlap(old.terms, new.terms) >= SAME_QUESTION


def _plain(value: str) -> str:
    return " ".join(value.lower().replace("(recommended)", "").strip(" .`'\"").split())


def compare_texts(older: str, newer: str) -> Relation:
    """For statements in free words, such as rules and saved notes."""
    old, new = read_wording(older), read_wording(newer)
    for compare in (_withdrawal, _fix, _changed_value, _named_change, _contradiction, _repetition):
        result = compare(old, new)
        if result != "unrelated":
            return result
    return "unrelated"


def is_withdrawal(text: str) -> bool:
    """Whether it reads as taking back a rule; whether there is such a rule, `relation` says."""
    return read_wording(text).has("lifted", "permits", "cancels", "ends")


def _withdrawal(old: Wording, new: Wording) -> Relation:
    if not new.has("lifted", "permits", "cancels", "ends") or not _is_about(new, old):
        return "unrelated"
    if new.has("cancels"):
        return "supersedes"
    if new.has("permits") and not new.forbids:
        return "supersedes" if old.forbids else "unrelated"
    if new.has("lifted"):
        return "unrelated" if old.forbids else "supersedes"
    if new.has("ends") and not new.has("fixed"):
        return "unrelated" if old.forbids or old.has("ends", "problem") else "supersedes"
    return "unrelated"


def _is_about(new: Wording, old: Wording) -> bool:
    """Nearly all words of a withdrawal are words of what it withdraws."""
    shared = new.terms & old.terms
    if not shared or not (new.qualifiers <= old.qualifiers and new.values <= old.values):
        return False
    if new.terms - old.terms and old.terms - new.terms:
        return False
    is_specific = len(shared) >= 2 or len(new.terms) == 1 == len(old.terms)
    is_specific = is_specific or (len(new.terms) == 1 and len(old.terms) <= 3)
    return is_specific and len(shared) >= COVERED * len(new.terms)


def _fix(old: Wording, new: Wording) -> Relation:
    if not old.has("problem") or not new.has("fixed") or old.has("fixed"):
        return "unrelated"
    shared = old.terms & new.terms
    if (
        not shared
        or old.qualifiers ^ new.qualifiers
        or (old.terms - new.terms and new.terms - old.terms)
    ):
        return "unrelated"
    shorter = min(len(old.terms), len(new.terms))
    is_covered = len(shared) >= COVERED * shorter
    return "supersedes" if is_covered and (len(shared) >= 2 or shorter == 1) else "unrelated"


def _changed_value(old: Wording, new: Wording) -> Relation:
    changed = [
        group
        for group in old.classes & new.classes
        if not new.of_class(group) <= old.of_class(group)
    ]
    if len(changed) != 1 or not _is_same_topic(old, new) or _can_coexist(old, new, changed[0]):
        return "unrelated"
    stable = (old.classes | new.classes) - set(changed)
    is_stable = all(
        old.of_class(group) == new.of_class(group) or (group in AMOUNTS and group in new.classes)
        for group in stable
    )
    return "supersedes" if is_stable else "unrelated"


def _can_coexist(old: Wording, new: Wording, group: str) -> bool:
    """Two names can both be forbidden or supported; two states of a thing are compared as such."""
    if old.forbids != new.forbids or old.has("problem") != new.has("problem"):
        return True
    is_list = old.forbids or (not _ADDED.isdisjoint(old.topic) and not new.has("changes"))
    return is_list and (group not in AMOUNTS or not old.forbids)


def _is_same_topic(old: Wording, new: Wording) -> bool:
    """Words on both sides that the other does not have: two things, each with its own value."""
    only_old, only_new = old.topic - new.topic, new.topic - old.topic
    if old.qualifiers != new.qualifiers or (only_old and only_new):
        return False
    if not old.topic or not new.topic:
        return old.topic == new.topic
    shared = len(old.topic & new.topic)
    extras = len(only_old) + len(only_new)
    return extras <= (MAX_EXTRAS if new.has("changes") else 0) and shared >= COVERED * min(
        len(old.topic), len(new.topic)
    )


def _named_change(old: Wording, new: Wording) -> Relation:
    """The newer statement names what was before, or differs in one word and says it is new."""
    if not new.has("changes", "switches") or old.forbids or old.qualifiers - new.qualifiers:
        return "unrelated"
    shared = old.terms & new.terms
    replaced = {stem for stem in new.former if stem in old.terms}
    rest = old.terms - replaced
    if replaced and (shared - replaced or not rest):
        return "supersedes" if len(shared - replaced) >= len(rest) / 2 else "unrelated"
    only_old, only_new = old.terms - new.terms, new.terms - old.terms
    if not new.has("switches"):
        return "unrelated"
    is_swap = len(only_old) == 1 == len(only_new) and len(shared) >= 2
    is_swap = is_swap and old.qualifiers == new.qualifiers and old.values == new.values
    return "supersedes" if is_swap else "unrelated"


def _contradiction(old: Wording, new: Wording) -> Relation:
    if old.forbids == new.forbids or old.qualifiers != new.qualifiers:
        return "unrelated"
    if (old.terms - new.terms) and (new.terms - old.terms):
        return "unrelated"
    return "supersedes" if _overlap(old.terms, new.terms) >= SAME_TOPIC else "unrelated"


def _repetition(old: Wording, new: Wording) -> Relation:
    if old.forbids != new.forbids or old.qualifiers != new.qualifiers:
        return "unrelated"
    if old.values != new.values or old.has("problem") != new.has("problem"):
        return "unrelated"
    if old.terms - new.terms and new.terms - old.terms:
        return "unrelated"
    return "same" if _overlap(old.terms, new.terms) >= SAME_TOPIC else "unrelated"


def _overlap(old: frozenset[str], new: frozenset[str]) -> float:
    return len(old & new) / len(old | new) if old | new else 0.0
