"""Rules and decisions of others in a team, as theirs: never as those of the user."""

from collections.abc import Iterator, Sequence
from typing import cast

from claude_mem.recall.handover.lines import Line, flat
from claude_mem.store.clock import iso
from claude_mem.store.json_rows import JsonRow

MAX_RULES, MAX_DECISIONS = 4, 2
LONGEST = 300


def team_facts(facts: Sequence[JsonRow]) -> Iterator[Line]:
    for kind, most in (("rule", MAX_RULES), ("decision", MAX_DECISIONS)):
        for fact in [fact for fact in facts if fact["kind"] == kind][:most]:
            value, day = str(fact["value"]), iso(cast(int, fact["last_seen_epoch"]))[:10]
            if kind == "rule":
                line = flat(f'- Rule of {owner_of(fact)}, {day}: "{value}"', LONGEST)
                yield Line(line, subject=value, is_quote=True)
            else:
                text = f"- Decision of {owner_of(fact)}, {day}: {fact['subject']} {value}"
                yield Line(flat(text, LONGEST), subject=str(fact["subject"]) or value)


def owner_of(fact: JsonRow) -> str:
    """The same user's own facts come from another machine."""
    return "the user, on another machine" if fact["is_own"] else str(fact["owner"])
