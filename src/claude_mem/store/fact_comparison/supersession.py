"""When a newer fact replaces an older one, says the same again, or is about something else.

`relation` decides for two facts. It is conservative: two facts that merely share words stay. What
the user said yields only to the user.
"""

import re
from typing import Literal

from claude_mem.store.fact_comparison.asides import clauses, main_part, omits_requirement
from claude_mem.store.fact_comparison.command_steps import is_replaced_by
from claude_mem.store.fact_comparison.comparison_words import WEAK
from claude_mem.store.fact_comparison.named_places import is_same_place
from claude_mem.store.fact_comparison.parsed_statement import (
    Wording,
    canonical,
    read_wording,
    stem_of,
)
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
_DONE = frozenset(map(canonical, ("done", "added", "applied", "implemented", "merged", "landed")))
_WITHDRAWALS = ("lifted", "permits", "cancels")
_DROPS = re.compile(r"\b(?:drop|remove|stop|end|disable|delete|abandon)", re.IGNORECASE)
_UNDONE = re.compile(r"\b(?:not|never|yet|still|be|partly|partially)\b|n't\b", re.IGNORECASE)
_WEAK = frozenset(map(canonical, WEAK.split()))
_UNDECIDED = frozenset(
    ("pullrequest", *map(stem_of, ("proceed", "continue", "next", "option", "approach", "step",
                                   "ready", "commit", "push", "merge", "task")))
)  # fmt: skip


def relation(older: Statement, newer: Statement) -> Relation:
    """What the newer of two facts of a project is to the older one."""
    if older.origin == "person" and newer.origin != "person":
        return "unrelated"
    if older.scope != newer.scope:
        return "unrelated"
    if older.kind == "fault" and newer.kind == "command":
        return _compare_fault_with_run(older, newer)
    if older.kind == "decision" and newer.kind == "rule":
        return _compare_with_rule(older, newer)
    if older.kind != newer.kind:
        return "unrelated"
    if (older.subject, older.value) == (newer.subject, newer.value):
        return "same"
    is_obstacle = older.kind == "fault" and not (older.subject and newer.subject)
    if older.kind == "artifact" or is_obstacle:
        return "unrelated"
    if older.kind == "open":
        return _compare_open_points(older, newer)
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
    if older.subject != newer.subject:
        return "unrelated"
    is_replaced = is_replaced_by(older.subject, older.value, newer.value)
    return "supersedes" if is_replaced else "unrelated"


def _compare_with_rule(decision: Statement, rule: Statement) -> Relation:
    """What the agent decided yields to what the user then demands."""
    if rule.origin != "person" or decision.origin == "person" or decision.subject:
        return "unrelated"
    is_over = compare_texts(decision.value, rule.value) == "supersedes"
    return "supersedes" if is_over else "unrelated"


def _compare_open_points(older: Statement, newer: Statement) -> Relation:
    """One never replaces another; a later one may say that it is done."""
    if older.subject == newer.subject and not _is_generic(older.subject):
        is_over = _is_over(newer.value) and not _is_over(older.value)
        return "supersedes" if is_over else "unrelated"
    older_text = older.value if _is_generic(older.subject) else _text(older)
    is_closed = not _is_over(older_text) and _closes(older_text, _text(newer))
    return "supersedes" if is_closed else "unrelated"


def _is_over(text: str) -> bool:
    return read_wording(text).has("fixed", "done")


def _is_generic(subject: str) -> bool:
    return read_wording(subject).terms <= _UNDECIDED


def _closes(older: str, newer: str) -> bool:
    old = read_wording(older)
    return any(
        (_is_over(text) or _is_carried_out(older, text)) and _covers(read_wording(text), old)
        for text in (newer, *clauses(newer))
    )


def _is_carried_out(task: str, report: str) -> bool:
    """ "Remove the old routes", then "old routes removed"."""
    verb = canonical(task.lower().partition(" ")[0])
    words = report.lower().split()
    done = {canonical(word.strip(".,;:!")) for word in words if word.strip(".,;:!").endswith("ed")}
    return verb in done and not _UNDONE.search(report)


def _compare_values(older: Statement, newer: Statement) -> Relation:
    """Answers to questions, and values of named subjects."""
    is_same = _is_same_subject(read_wording(older.subject), read_wording(newer.subject))
    is_same = is_same or (
        older.kind == "place"
        and is_same_place((older.subject, older.value), (newer.subject, newer.value))
    )
    if not is_same or _DEICTIC.search(older.subject) or _DEICTIC.search(newer.subject):
        return "unrelated"
    if _plain(older.value) == _plain(newer.value):
        is_opposite = bool(_DROPS.search(older.subject)) != bool(_DROPS.search(newer.subject))
        return "supersedes" if is_opposite else "same"
    if older.kind == "place":
        return "supersedes"
    old, new = read_wording(older.value), read_wording(newer.value)
    is_same = old.terms == new.terms != frozenset() and old.forbids == new.forbids
    return "same" if is_same else "supersedes"


def _is_same_subject(old: Wording, new: Wording) -> bool:
    if not old.terms - _UNDECIDED or not new.terms - _UNDECIDED:
        return False
    if old.qualifiers != new.qualifiers or old.values != new.values:
        return False
    if _overlap(old.terms, new.terms) >= SAME_QUESTION or _alike(old, new, SAME_QUESTION):
        return True
    # "Should we keep supporting X 3.8?", then "Can we drop X 3.8?"
    is_versioned = "number" in old.classes and len(old.terms & new.terms) >= 2
    return is_versioned and len(old.terms ^ new.terms) <= 1


def _plain(value: str) -> str:
    return " ".join(value.lower().replace("(recommended)", "").strip(" .`'\"").split())


def compare_texts(older: str, newer: str) -> Relation:
    """Compares statements in free words, such as rules and saved notes."""
    main = main_part(older), main_part(newer)
    for old, new in dict.fromkeys(((older, newer), (older, main[1]), main)):
        result = _compare_wordings(read_wording(old), read_wording(new))
        if (
            result == "same"
            and (old, new) != (older, newer)
            and any(map(omits_requirement, (older, newer)))
        ):
            continue
        if result != "unrelated":
            return "supersedes" if _swaps(older, newer) else result
    for clause in clauses(newer)[1:]:  # "The owner left, so you may change it"
        for old in dict.fromkeys((older, main[0])):
            if _withdrawal(read_wording(old), read_wording(clause)) != "unrelated":
                return "supersedes"
    return "unrelated"


def _swaps(older: str, newer: str) -> bool:
    """ "Use this, no that", then "stop using this, use that"."""
    demanded, banned = _demanded_and_banned(older)
    now_demanded, now_banned = _demanded_and_banned(newer)
    return bool(demanded & now_banned and banned & now_demanded)


def _demanded_and_banned(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of one and of the other only."""
    read = [read_wording(clause) for clause in clauses(text)]
    demanded = frozenset[str]().union(*(each.terms for each in read if not each.forbids))
    banned = frozenset[str]().union(*(each.terms for each in read if each.forbids))
    return demanded - banned, banned - demanded


def _compare_wordings(old: Wording, new: Wording) -> Relation:
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
    if new.has("lifted") and not old.forbids:
        return "supersedes"
    if new.has("permits") and not new.forbids:
        return "supersedes" if old.forbids else "unrelated"
    if new.has("lifted"):
        return "unrelated"
    if new.has("ends") and not new.has("fixed"):
        return "unrelated" if old.forbids or old.has("ends", "problem") else "supersedes"
    return "unrelated"


def _is_about(new: Wording, old: Wording) -> bool:
    """Whether nearly all words of a withdrawal are words of what it withdraws."""
    shared = new.terms & old.terms
    if not shared or not (new.qualifiers <= old.qualifiers and new.values <= old.values):
        return False
    only_old, only_new = _differences(old.terms, new.terms)
    if only_new and (only_old or not new.has("cancels")):
        return False  # of another thing, or an exception
    is_specific = len(shared) >= 2 or len(new.terms) == 1 == len(old.terms)
    is_specific = is_specific or (len(new.terms) == 1 and len(old.terms) <= 3)
    return is_specific and len(shared) >= COVERED * len(new.terms)


def _fix(old: Wording, new: Wording) -> Relation:
    if not old.has("problem") or not new.has("fixed") or old.has("fixed"):
        return "unrelated"
    return "supersedes" if _covers(new, old) else "unrelated"


def _covers(new: Wording, old: Wording) -> bool:
    """Whether what is fixed is the problem: no word of it is missing, or few of many."""
    shared = old.terms & new.terms
    only_old, only_new = _differences(old.terms, new.terms - (_DONE - old.terms))
    if not shared or new.qualifiers - old.qualifiers or (only_old and only_new):
        return False
    if old.qualifiers - new.qualifiers and len(shared) < max(3, COVERED * len(old.terms)):
        return False
    if any((first in new.terms) != (second in new.terms) for first, second in old.pairs):
        return False  # one of two is fixed
    shorter = min(len(old.terms), len(new.terms))
    return len(shared) >= COVERED * shorter and (len(shared) >= 2 or shorter == 1)


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
    is_change = new.has("changes") or not new.former.isdisjoint(old.terms)
    return extras <= (MAX_EXTRAS if is_change else 0) and shared >= COVERED * min(
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
    return "supersedes" if _alike(old, new, SAME_TOPIC) else "unrelated"


def _repetition(old: Wording, new: Wording) -> Relation:
    if old.forbids != new.forbids or old.qualifiers != new.qualifiers:
        return "unrelated"
    if old.values != new.values or old.has("problem") != new.has("problem"):
        return "unrelated"
    withdraws = new.has(*_WITHDRAWALS) and not old.has(*_WITHDRAWALS)
    if withdraws or old.excludes != new.excludes:
        return "unrelated"
    return "same" if _alike(old, new, SAME_TOPIC) else "unrelated"


def _alike(old: Wording, new: Wording, least: float) -> bool:
    only_old, only_new = _differences(old.terms, new.terms)
    if only_old and only_new:
        return False
    shared = len(old.terms & new.terms)
    return shared > 0 and shared >= least * (shared + len(only_old) + len(only_new))


def _differences(old: frozenset[str], new: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The words of each that the other lacks; a weak noun on one side alone is no difference."""
    only_old, only_new = old - new, new - old
    if only_old & _WEAK and only_new & _WEAK:
        return only_old, only_new
    return only_old - _WEAK, only_new - _WEAK


def _overlap(old: frozenset[str], new: frozenset[str]) -> float:
    return len(old & new) / len(old | new) if old | new else 0.0
