"""The table of facts, and the facts of summaries that were stored before it.

A released migration uses this, so it imports nothing that may change.
"""

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

# Triggers keep `count` and the times of a fact right, however its sources come and go: a turn may
# be forgotten, turn out to be private, move to another session, or be distilled again. A fact that
# has lost its last source goes with it; what the user pinned or marked as wrong stays.
STATEMENTS = (
    """CREATE TABLE facts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN
    ('rule', 'decision', 'command', 'fault', 'open', 'place', 'artifact')),
  subject TEXT NOT NULL,
  value TEXT NOT NULL,
  scope TEXT NOT NULL DEFAULT '',
  origin TEXT NOT NULL CHECK (origin IN ('person', 'agent', 'outside')),
  status TEXT NOT NULL CHECK (status IN ('candidate', 'holds', 'past', 'wrong')),
  count INTEGER NOT NULL DEFAULT 0,
  first_seen_epoch INTEGER NOT NULL,
  last_seen_epoch INTEGER NOT NULL,
  superseded_by INTEGER REFERENCES facts(id) ON DELETE SET NULL,
  pinned INTEGER NOT NULL DEFAULT 0,
  UNIQUE (project_id, kind, scope, subject, value),
  CHECK (kind <> 'rule' OR origin = 'person')
)""",
    "CREATE INDEX facts_superseded ON facts(superseded_by) WHERE superseded_by IS NOT NULL",
    """CREATE TABLE fact_sources (
  fact_id INTEGER NOT NULL REFERENCES facts(id) ON DELETE CASCADE,
  turn_id INTEGER NOT NULL REFERENCES user_prompts(id) ON DELETE CASCADE,
  observer TEXT NOT NULL,
  note TEXT NOT NULL DEFAULT '',
  events TEXT NOT NULL DEFAULT '[]',
  seen_at_epoch INTEGER NOT NULL,
  PRIMARY KEY (fact_id, turn_id, observer)
) WITHOUT ROWID""",
    "CREATE INDEX facts_of_turn ON fact_sources(turn_id)",
    "CREATE INDEX fact_sources_by_time ON fact_sources(fact_id, seen_at_epoch)",
    """CREATE TRIGGER fact_source_come AFTER INSERT ON fact_sources BEGIN
  UPDATE facts SET
    count = count + (SELECT count(*) = 1 FROM fact_sources
      WHERE fact_id = NEW.fact_id AND turn_id = NEW.turn_id),
    first_seen_epoch = min(first_seen_epoch, NEW.seen_at_epoch),
    last_seen_epoch = max(last_seen_epoch, NEW.seen_at_epoch)
  WHERE id = NEW.fact_id;
END""",
    """CREATE TRIGGER fact_source_go AFTER DELETE ON fact_sources BEGIN
  UPDATE facts SET
    count = count - (SELECT count(*) = 0 FROM fact_sources
      WHERE fact_id = OLD.fact_id AND turn_id = OLD.turn_id),
    first_seen_epoch = coalesce((SELECT min(seen_at_epoch) FROM fact_sources
      WHERE fact_id = OLD.fact_id), first_seen_epoch),
    last_seen_epoch = coalesce((SELECT max(seen_at_epoch) FROM fact_sources
      WHERE fact_id = OLD.fact_id), last_seen_epoch)
  WHERE id = OLD.fact_id;
  DELETE FROM facts WHERE id = OLD.fact_id AND pinned = 0 AND status <> 'wrong'
    AND NOT EXISTS (SELECT 1 FROM fact_sources WHERE fact_id = OLD.fact_id);
END""",
)


def fill_from_summaries(connection: sqlite3.Connection) -> None:
    rows = connection.execute(
        "SELECT t.id, t.project_id, t.created_at_epoch, m.commands, m.faults, m.open_steps"
        " FROM session_summaries m JOIN user_prompts t ON t.id = m.turn_id"
        " WHERE m.commands <> '[]' OR m.faults <> '[]' OR m.open_steps <> '[]' ORDER BY m.id"
    ).fetchall()
    for turn_id, project_id, ms, *columns in rows:
        for kind, subject, value, note, sources in _facts(*map(json.loads, columns)):
            _add(connection, (project_id, kind, subject, value), (turn_id, note, sources), ms)


def _facts(
    commands: Any, faults: Any, steps: Any
) -> Iterator[tuple[str, str, str, str, list[int]]]:
    faulty = {fault["command"] for fault in faults}
    for run in (run for run in commands if run["command"] not in faulty):
        outcome = run["counts"] or run["outcome"]
        yield "command", run["purpose"], run["command"], outcome, run["sources"]
    for fault in faults:
        yield "fault", fault["command"], fault["alternative"], fault["error"], fault["sources"]
    for step in steps:
        yield "open", "", step["text"], "", step["sources"]


def _add(
    connection: sqlite3.Connection,
    key: tuple[int, str, str, str],
    source: tuple[int, str, list[int]],
    ms: int,
) -> None:
    connection.execute(
        "INSERT INTO facts (project_id, kind, subject, value, origin, status, first_seen_epoch,"
        " last_seen_epoch) VALUES (?, ?, ?, ?, 'agent', ?, ?, ?) ON CONFLICT DO NOTHING",
        (*key, "candidate" if key[1] == "open" else "holds", ms, ms),
    )
    turn_id, note, sources = source
    connection.execute(
        "INSERT INTO fact_sources (fact_id, turn_id, observer, note, events, seen_at_epoch)"
        " SELECT id, ?, 'local', ?, ?, ? FROM facts WHERE project_id = ? AND kind = ?"
        " AND scope = '' AND subject = ? AND value = ? ON CONFLICT DO NOTHING",
        (turn_id, note, json.dumps(sources), ms, *key),
    )
