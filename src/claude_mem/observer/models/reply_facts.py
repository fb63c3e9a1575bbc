"""Rules, branches, commits and pull requests that a reply states, as facts, where the turn proves
them: a rule stands word for word in what the user typed, the rest in what the turn contains."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from claude_mem.observer.local.proposed_facts import propose_facts
from claude_mem.observer.local.user_rules import (
    LONGEST_RULE,
    SHORTEST_RULE,
    certain_sentences,
    typed_sentences,
)
from claude_mem.observer.models.reply_evidence import is_placeholder
from claude_mem.types import FactStatus, ProposedFact, Turn, TurnEvent

_VALUES = {
    "branch": re.compile(r"[A-Za-z0-9][\w./#-]{0,199}"),
    "commit": re.compile(r"\b[0-9a-f]{7,40}\b"),
    "pull request": re.compile(r"https://[\w.-]{1,100}/[\w./-]{1,200}/\d{1,9}\b"),
}
_NOTHING = frozenset(("none", "n/a", "-", "no", "unknown"))


@dataclass(frozen=True, slots=True)
class Claims:
    facts: tuple[ProposedFact, ...]
    unproven: tuple[str, ...]


def check_claims(turn: Turn, rules: Iterable[str], artifacts: Iterable[tuple[str, str]]) -> Claims:
    facts: list[ProposedFact] = []
    unproven: list[str] = []
    for text, fact in (*_rules(turn, rules), *_artifacts(turn, artifacts)):
        if fact is not None:
            facts.append(fact)
        elif text.strip(" .").lower() not in _NOTHING and not is_placeholder(text):
            unproven.append(text)
    return Claims(tuple(dict.fromkeys(facts)), tuple(unproven))


def _rules(turn: Turn, rules: Iterable[str]) -> list[tuple[str, ProposedFact | None]]:
    prompt = turn.prompt or ""
    typed, certain = (
        " ".join(" ".join(parts).split())
        for parts in (typed_sentences(prompt), certain_sentences(prompt))
    )
    return [(rule, _rule(rule, typed, certain)) for rule in rules]


def _rule(rule: str, typed: str, certain: str) -> ProposedFact | None:
    text = " ".join(rule.split()).strip("\"'“”")
    if not SHORTEST_RULE <= len(text) <= LONGEST_RULE or text not in typed:
        return None
    status: FactStatus = "holds" if text in certain else "candidate"
    return ProposedFact("rule", "", text, origin="person", status=status)


def _artifacts(
    turn: Turn, artifacts: Iterable[tuple[str, str]]
) -> list[tuple[str, ProposedFact | None]]:
    artifacts = list(artifacts)
    if not artifacts:
        return []
    local = propose_facts(turn)
    texts = [turn.prompt or "", *map(_text_of, turn.events)]
    return [(text, _artifact(noun, text, local, texts)) for noun, text in artifacts]


def _artifact(
    noun: str, text: str, local: tuple[ProposedFact, ...], texts: list[str]
) -> ProposedFact | None:
    match = _VALUES[noun].search(text)
    if match is None or not any(match.group() in part for part in texts):
        return None
    value = match.group()
    for fact in local:  # a hash may be longer or shorter than git printed it
        if fact.subject == noun and (fact.value.startswith(value) or value.startswith(fact.value)):
            return fact
    return ProposedFact("artifact", noun, value)


def _text_of(event: TurnEvent) -> str:
    values = (json.dumps(value, ensure_ascii=False) for value in
              (event.tool_input, event.tool_response) if value)  # fmt: skip
    return "\n".join((event.text or "", *values))
