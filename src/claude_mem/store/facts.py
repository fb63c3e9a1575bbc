"""Facts of a project: what its turns revealed, merged.

The same kind, subject, value and scope is the same fact, and every turn that reveals it is one of
its sources. So is the same in other words, and another value replaces the one before
(`supersession`). A turn that is distilled again replaces its sources, so it counts once. Triggers
of the table keep the counts and times (`schema.sql`).
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from claude_mem.store.fact_comparison.supersession import FAILED, relation
from claude_mem.store.insert_row import insert_row
from claude_mem.store.outside_words import IS_OUTSIDE
from claude_mem.store.stored_json import parse_stored
from claude_mem.types import (
    Distillate,
    Fact,
    FactKind,
    FactStatus,
    ProposedFact,
    Summary,
)

LOCAL = "local"
LATEST_ARTIFACTS = 400
LONGEST_SUBJECT, LONGEST_VALUE, LONGEST_NOTE = 500, 2_000, 300
MOST_COMPARED = 500
MIN_RUNS = 2  # turns that ran a command since another was last run, before it replaces that one
REWORDED = ("rule", "decision", "place")  # kinds that come in the user's or the agent's words
REPLACEABLE = ("rule", "decision", "command", "fault", "place", "open")
COMPARED: dict[FactKind, tuple[FactKind, ...]] = {
    "command": ("command", "fault"),
    "rule": ("rule", "decision"),
    "decision": ("decision", "rule"),
}  # of other kinds only the same
_NOTE = (
    "coalesce((SELECT note FROM fact_sources s WHERE s.fact_id = f.id"
    " ORDER BY seen_at_epoch DESC, turn_id DESC LIMIT 1), '') AS note"
)
_ORIGIN_RANK = "CASE {} WHEN 'person' THEN 2 WHEN 'agent' THEN 1 ELSE 0 END"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A branch, commit, pull request or document, and the turn that it came from."""

    subject: str
    value: str
    note: str  # a commit's subject, a pull request's title
    session: str  # the agent's id
    prompt_number: int
    seen_ms: int


def facts_of_summary(summary: Summary) -> Iterator[ProposedFact]:
    """A command that does not work here is a fault, not a command of the project."""
    faulty = {fault.command for fault in summary.faults}
    for run in (run for run in summary.commands if run.command not in faulty):
        yield ProposedFact("command", run.purpose, run.command, run.scope,
                           note=run.counts or run.outcome, sources=run.sources)  # fmt: skip
    for fault in summary.faults:
        yield ProposedFact(
            "fault", fault.command, fault.alternative, note=fault.error, sources=fault.sources
        )
    for step in summary.open_steps:
        yield ProposedFact("open", "", step.text, note=step.evidence, sources=step.sources,
                           status="holds" if step.evidence else "candidate")  # fmt: skip


def save_proposals(connection: sqlite3.Connection, turn_id: int, distillate: Distillate) -> None:
    """Saves what a model proposes apart from the draft's facts: each replaces only its own."""
    if distillate.model is None:
        proposals = (*facts_of_summary(distillate.summary), *distillate.facts)
        replace_facts(connection, turn_id, proposals, LOCAL)
    elif distillate.facts:
        replace_facts(connection, turn_id, distillate.facts, distillate.observer)


def replace_facts(
    connection: sqlite3.Connection, turn_id: int, proposals: Iterable[ProposedFact], observer: str
) -> None:
    """Makes these the facts that the observer has from the turn."""
    turn = connection.execute(
        "SELECT project_id, outside, created_at_epoch FROM user_prompts WHERE id = ?", (turn_id,)
    ).fetchone()
    if turn["outside"]:
        return  # it has the facts that came with it, as candidates
    current: dict[int, ProposedFact] = {}
    for proposal in proposals:
        if _is_acceptable(connection, turn["project_id"], proposal):
            fact_id = _merge(connection, turn["project_id"], proposal, turn["created_at_epoch"])
            current[fact_id] = proposal
    connection.execute(
        "DELETE FROM fact_sources WHERE turn_id = ? AND (observer = 'local') = ?"
        " AND fact_id NOT IN (SELECT value FROM json_each(?))",
        (turn_id, observer == LOCAL, json.dumps(list(current))),
    )
    for fact_id, proposal in current.items():
        connection.execute(
            "INSERT INTO fact_sources (fact_id, turn_id, observer, note, events, seen_at_epoch)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET note = excluded.note,"
            " events = excluded.events",
            (fact_id, turn_id, observer, proposal.note[:LONGEST_NOTE],
             json.dumps(proposal.sources), turn["created_at_epoch"]),
        )  # fmt: skip
        _supersede(connection, fact_id)


def _is_acceptable(connection: sqlite3.Connection, project_id: int, proposal: ProposedFact) -> bool:
    """Whether a proposal is stored: only the user's own words make a rule, and one is taken back
    only if it exists."""
    if proposal.kind != "rule" or not proposal.value:
        return bool(proposal.value)
    if proposal.status == "past":
        rules = _comparable(connection, project_id, ("rule",), proposal.scope)
        return any(
            relation(rule, proposal) == "supersedes" for rule in rules if rule.status != "wrong"
        )
    return proposal.origin == "person"


def _merge(connection: sqlite3.Connection, project_id: int, proposal: ProposedFact, ms: int) -> int:
    """The id of the fact; a better origin and a surer status win, what the user decided stays."""
    proposal = replace(
        proposal,
        subject=proposal.subject[:LONGEST_SUBJECT],
        value=proposal.value[:LONGEST_VALUE],
        scope=proposal.scope[:LONGEST_SUBJECT],
    )
    stronger = f"{_ORIGIN_RANK.format('?1')} > {_ORIGIN_RANK.format('facts.origin')}"
    fact_id = _same_fact(connection, project_id, proposal)
    if fact_id is not None and _drop_outside_sources(connection, fact_id):
        fact_id = _same_fact(connection, project_id, proposal)
    if fact_id is None:
        fact_id = insert_row(
            connection,
            "facts",
            {
                "project_id": project_id,
                "kind": proposal.kind,
                "subject": proposal.subject,
                "value": proposal.value,
                "scope": proposal.scope,
                "origin": proposal.origin,
                "status": proposal.status,
                "first_seen_epoch": ms,
                "last_seen_epoch": ms,
            },
        ).lastrowid
    connection.execute(
        f"UPDATE facts SET origin = CASE WHEN {stronger} THEN ?1 ELSE origin END,"
        " status = CASE WHEN status = 'candidate' THEN ?2 ELSE status END WHERE id = ?3",
        (proposal.origin, proposal.status, fact_id),
    )
    return int(fact_id or 0)


def _drop_outside_sources(connection: sqlite3.Connection, fact_id: int) -> bool:
    """A turn of the user's own makes a candidate theirs: what somebody else's export says of it
    counts for nothing. Without another source the fact is deleted by a trigger."""
    cursor = connection.execute(
        f"DELETE FROM fact_sources WHERE fact_id = ? AND {IS_OUTSIDE.format('turn_id')}"
        " AND (SELECT status FROM facts WHERE id = fact_id) = 'candidate'",
        (fact_id,),
    )
    return cursor.rowcount > 0


def _same_fact(
    connection: sqlite3.Connection, project_id: int, proposal: ProposedFact
) -> int | None:
    """Finds the stored fact that is the same, also if it was edited since."""
    for prefix in ("", "original_"):  # one query for both would read all facts of the kind
        row = connection.execute(
            f"SELECT id FROM facts WHERE project_id = ? AND kind = ? AND {prefix}scope = ?"
            f" AND {prefix}subject = ? AND {prefix}value = ?",
            (project_id, proposal.kind, proposal.scope, proposal.subject, proposal.value),
        ).fetchone()
        if row is not None:
            return int(row[0])
    if proposal.kind not in REWORDED or proposal.status == "past":
        return None
    rows = _comparable(connection, project_id, (proposal.kind,), proposal.scope)
    same = (fact for fact in rows if relation(fact, proposal) == "same")
    return next((fact.id for fact in same), None)


def _comparable(
    connection: sqlite3.Connection, project_id: int, kinds: Sequence[FactKind], scope: str
) -> list[Fact]:
    """The latest first."""
    rows = connection.execute(
        "SELECT f.*, '' AS note FROM facts f WHERE project_id = ? AND scope = ?"
        " AND kind IN (SELECT value FROM json_each(?)) ORDER BY last_seen_epoch DESC, id DESC"
        " LIMIT ?",
        (project_id, scope, json.dumps(list(kinds)), MOST_COMPARED),
    )
    return [_fact(row) for row in rows]


def _supersede(connection: sqlite3.Connection, fact_id: int) -> None:
    """Ends what the fact replaces; or the fact, if what replaces it was seen later."""
    fact = _get(connection, fact_id)
    if fact.kind not in REPLACEABLE or fact.status in ("candidate", "wrong"):
        return
    if fact.kind == "command" and (fact.count < MIN_RUNS or FAILED in fact.note):
        return
    if fact.superseded_by is not None:
        successor = _get(connection, fact.superseded_by)
        yields = successor.origin == "person" and fact.origin != "person"
        if yields or successor.last_seen_ms >= fact.last_seen_ms:
            return
        fact = _revive(connection, fact)  # stated again after it was replaced
    kinds = COMPARED.get(fact.kind, (fact.kind,))
    for other in _comparable(connection, fact.project_id, kinds, fact.scope):
        if other.id == fact.id or other.status not in ("holds", "candidate") or other.is_pinned:
            continue
        if other.last_seen_ms <= fact.last_seen_ms:
            if relation(other, fact) == "supersedes" and _is_settled(connection, other, fact):
                _end(connection, other, fact)
        elif _yields(fact, other) and _is_settled(connection, fact, other):
            _end(connection, fact, other)
            return


def _is_settled(connection: sqlite3.Connection, older: Fact, newer: Fact) -> bool:
    """A command that is run now and then beside another is no successor of it."""
    if older.kind != "command":
        return True
    (runs,) = connection.execute(
        "SELECT count(DISTINCT turn_id) FROM fact_sources WHERE fact_id = ? AND seen_at_epoch > ?",
        (newer.id, older.last_seen_ms),
    ).fetchone()
    return int(runs) >= MIN_RUNS


def _yields(fact: Fact, later: Fact) -> bool:
    can_yield = fact.status == "holds" and not fact.is_pinned and later.status == "holds"
    return can_yield and relation(fact, later) == "supersedes"


def _end(connection: sqlite3.Connection, older: Fact, newer: Fact) -> None:
    connection.execute(
        "UPDATE facts SET status = 'past', superseded_by = ? WHERE id = ?", (newer.id, older.id)
    )


def _revive(connection: sqlite3.Connection, fact: Fact) -> Fact:
    connection.execute(
        "UPDATE facts SET status = 'holds', superseded_by = NULL WHERE id = ?", (fact.id,)
    )
    return _get(connection, fact.id)


def _get(connection: sqlite3.Connection, fact_id: int) -> Fact:
    row = connection.execute(f"SELECT f.*, {_NOTE} FROM facts f WHERE id = ?", (fact_id,))
    return _fact(row.fetchone())


def list_facts(
    connection: sqlite3.Connection,
    project_id: int,
    kinds: Sequence[FactKind] = (),
    statuses: Sequence[FactStatus] = (),
) -> list[Fact]:
    """Lists facts, pinned ones first, then those of the most turns, then the latest."""
    rows = connection.execute(
        f"SELECT f.*, {_NOTE} FROM facts f WHERE project_id = ?1"
        " AND (?2 = '[]' OR kind IN (SELECT value FROM json_each(?2)))"
        " AND (?3 = '[]' OR status IN (SELECT value FROM json_each(?3)))"
        " ORDER BY pinned DESC, count DESC, last_seen_epoch DESC, id",
        (project_id, json.dumps(list(kinds)), json.dumps(list(statuses))),
    )
    return [_fact(row) for row in rows]


def artifacts_of_sessions(
    connection: sqlite3.Connection, content_session_ids: Sequence[str]
) -> list[Artifact]:
    """Lists artifacts of the latest turns, oldest first."""
    rows = connection.execute(
        "SELECT f.subject, f.value, s.note, c.content_session_id, t.prompt_number, s.seen_at_epoch"
        " FROM sdk_sessions c JOIN user_prompts t ON t.session_id = c.id"
        " JOIN fact_sources s ON s.turn_id = t.id JOIN facts f ON f.id = s.fact_id"
        " WHERE c.content_session_id IN (SELECT value FROM json_each(?))"
        " AND f.kind = 'artifact' AND f.status = 'holds' AND t.outside = 0"
        " ORDER BY s.seen_at_epoch DESC, t.id DESC, f.id DESC LIMIT ?",
        (json.dumps(list(content_session_ids)), LATEST_ARTIFACTS),
    )
    return [Artifact(*row) for row in rows][::-1]


def facts_of_turn(connection: sqlite3.Connection, turn_id: int) -> list[Fact]:
    rows = connection.execute(
        "SELECT f.*, max(s.note) AS note FROM facts f JOIN fact_sources s ON s.fact_id = f.id"
        " WHERE s.turn_id = ? GROUP BY f.id ORDER BY f.id",
        (turn_id,),
    )
    return [_fact(row) for row in rows]


def sources_of(connection: sqlite3.Connection, fact_id: int) -> list[tuple[int, tuple[int, ...]]]:
    """Turns and events that the fact comes from, the latest first."""
    rows = connection.execute(
        "SELECT turn_id, events FROM fact_sources WHERE fact_id = ?"
        " ORDER BY seen_at_epoch DESC, turn_id DESC, observer",
        (fact_id,),
    )
    return [(row[0], tuple(parse_stored(row[1], []))) for row in rows]


def _fact(row: sqlite3.Row) -> Fact:
    return Fact(
        id=row["id"],
        project_id=row["project_id"],
        kind=row["kind"],
        subject=row["subject"],
        value=row["value"],
        scope=row["scope"],
        origin=row["origin"],
        status=row["status"],
        note=row["note"],
        count=row["count"],
        first_seen_ms=row["first_seen_epoch"],
        last_seen_ms=row["last_seen_epoch"],
        superseded_by=row["superseded_by"],
        is_pinned=bool(row["pinned"]),
    )
