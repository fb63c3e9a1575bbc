"""Facts of projects as a list: which of them, and as lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from claude_mem.recall.fence import escape_fences
from claude_mem.recall.handover.what_holds import owner_of
from claude_mem.store import StoreReader
from claude_mem.store.clock import iso
from claude_mem.store.memory_rows import JsonRow
from claude_mem.text import one_line, shorten
from claude_mem.types import FactKind, FactStatus

DEFAULT_LIMIT = 50
LONGEST_VALUE = 300


@dataclass(frozen=True, slots=True)
class FactsQuery:
    """A query for facts; an empty field means any."""

    project_id: int | None = None
    kinds: tuple[FactKind, ...] = ()
    statuses: tuple[FactStatus, ...] = ()
    limit: int = DEFAULT_LIMIT
    offset: int = 0


def list_facts(store: StoreReader, query: FactsQuery) -> tuple[list[JsonRow], bool]:
    """Lists the facts, first those that hold; also returns whether there are more."""
    rows = store.fact_records(
        query.project_id, query.kinds, query.statuses, query.limit + 1, query.offset
    )
    return rows[: query.limit], len(rows) > query.limit


def list_team_facts(store: StoreReader, query: FactsQuery) -> list[JsonRow]:
    """Lists the facts of others of a team, on the first page: all of them hold."""
    if query.offset or (query.statuses and "holds" not in query.statuses):
        return []
    rows = store.facts_of_team(query.project_id)
    return [row for row in rows if not query.kinds or row["kind"] in query.kinds]


def facts_text(
    facts: Sequence[JsonRow],
    *,
    has_more: bool = False,
    of_team: Sequence[JsonRow] = (),
    more: str,
) -> str:
    """`more` says how to get further facts."""
    lines = [_line(fact) for fact in facts] or ["No facts."]
    if has_more:
        lines.append(f"More facts: {more}.")
    if of_team:
        lines += ["From the team:", *map(_team_line, of_team)]
    return "\n".join(lines)


def _team_line(fact: JsonRow) -> str:
    day = iso(cast(int, fact["last_seen_epoch"]))[:10]
    owner = escape_fences(one_line(owner_of(fact)))
    return f"{fact['kind']} of {owner}{_scope(fact)}: {_text(fact)} ({day})"


def _line(fact: JsonRow) -> str:
    origin = {"person": "the user", "agent": "the agent"}.get(str(fact["origin"]), "outside")
    notes = [origin, f"{fact['count']}x", f"{str(fact['last_seen'])[:10]}"]
    notes += [mark for mark in ("edited", "pinned") if fact[mark]]
    sources = fact["sources"]
    if isinstance(sources, list) and sources:
        notes.append(f"from {' '.join(map(str, sources[:3]))}")
    status = str(fact["status"])
    if fact["superseded_by"] is not None:
        status += f", replaced by F{fact['superseded_by']}"
    return (
        f"F{fact['id']} {fact['kind']} ({status}){_scope(fact)}: {_text(fact)} ({', '.join(notes)})"
    )


def _text(fact: JsonRow) -> str:
    subject = f"{fact['subject']}: " if fact["subject"] else ""
    # An obstacle is told by a sentence.
    sentence = f": {fact['note']}" if fact["kind"] == "fault" and not fact["subject"] else ""
    return shorten(escape_fences(one_line(f"{subject}{fact['value']}{sentence}")), LONGEST_VALUE)


def _scope(fact: JsonRow) -> str:
    return f" in {escape_fences(one_line(str(fact['scope'])))}" if fact["scope"] else ""
