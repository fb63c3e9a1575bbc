"""Named, append-only migrations from an empty file to the current schema.

Each is applied and recorded in one transaction. A file with an unknown migration was made by a
newer version and is not changed.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing

from claude_mem.errors import NewerDatabase
from claude_mem.hook.kill_points import reach
from claude_mem.store import given_hints, listing, project_assignments, team_tables, viewer_pages
from claude_mem.store.migration_steps import (
    client_messages,
    edits,
    facts,
    lines_of_notifications,
    previous_rows,
    summary_sentences,
)

_FIRST = """
CREATE TABLE projects (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL
);
CREATE INDEX projects_by_name ON projects(name);

CREATE TABLE project_dirs (
  directory TEXT PRIMARY KEY,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  seen_at_epoch INTEGER NOT NULL
);

CREATE TABLE sdk_sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  content_session_id TEXT NOT NULL UNIQUE,
  memory_session_id TEXT UNIQUE,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  project_dir TEXT NOT NULL,
  transcript_path TEXT NOT NULL DEFAULT '',
  dialect TEXT NOT NULL,
  title TEXT,
  subtitle TEXT,
  user_prompt TEXT,
  prompt_counter INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL CHECK (status IN ('active', 'completed', 'failed', 'interrupted')),
  started_at TEXT NOT NULL,
  started_at_epoch INTEGER NOT NULL,
  updated_at TEXT NOT NULL,
  updated_at_epoch INTEGER NOT NULL,
  completed_at TEXT,
  completed_at_epoch INTEGER,
  start_context TEXT,
  provider TEXT,
  provider_session_id TEXT
);
CREATE INDEX sessions_by_project ON sdk_sessions(project_id, updated_at_epoch DESC);
CREATE INDEX sessions_by_status ON sdk_sessions(status, updated_at_epoch);
CREATE INDEX sessions_by_update ON sdk_sessions(updated_at_epoch DESC);

CREATE TABLE user_prompts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL REFERENCES sdk_sessions(id) ON DELETE CASCADE,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  prompt_id TEXT NOT NULL,
  prompt_number INTEGER NOT NULL,
  prompt_text TEXT,
  private INTEGER NOT NULL DEFAULT 0,
  closed INTEGER NOT NULL DEFAULT 0,
  retired INTEGER NOT NULL DEFAULT 0,
  updated_at_epoch INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL,
  UNIQUE (session_id, prompt_id),
  UNIQUE (session_id, prompt_number)
);
CREATE INDEX prompts_by_project ON user_prompts(project_id, id DESC);
CREATE INDEX prompts_open ON user_prompts(updated_at_epoch) WHERE closed = 0;

CREATE TABLE tool_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  event_key TEXT NOT NULL UNIQUE,
  session_id INTEGER NOT NULL REFERENCES sdk_sessions(id) ON DELETE CASCADE,
  turn_id INTEGER REFERENCES user_prompts(id) ON DELETE CASCADE,
  event TEXT NOT NULL,
  tool_name TEXT,
  tool_use_id TEXT,
  agent_id TEXT,
  cwd TEXT,
  tool_input TEXT,
  tool_response TEXT,
  text TEXT,
  detail TEXT,
  bytes INTEGER NOT NULL DEFAULT 0,
  created_at_epoch INTEGER NOT NULL
);
CREATE INDEX events_by_turn ON tool_events(turn_id, id);
CREATE INDEX events_by_session ON tool_events(session_id);
CREATE INDEX events_raw ON tool_events(created_at_epoch) WHERE bytes > 0;

CREATE TABLE observations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  memory_session_id TEXT NOT NULL
    REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  turn_id INTEGER NOT NULL REFERENCES user_prompts(id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  prompt_number INTEGER NOT NULL,
  type TEXT NOT NULL
    CHECK (type IN ('bugfix', 'feature', 'refactor', 'change', 'discovery', 'decision')),
  title TEXT,
  subtitle TEXT,
  narrative TEXT,
  facts TEXT NOT NULL DEFAULT '[]',
  concepts TEXT NOT NULL DEFAULT '[]',
  files_read TEXT NOT NULL DEFAULT '[]',
  files_modified TEXT NOT NULL DEFAULT '[]',
  observer TEXT NOT NULL,
  model TEXT,
  prompt_version TEXT,
  created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL,
  UNIQUE (turn_id, ordinal)
);
CREATE INDEX observations_by_session ON observations(memory_session_id);
CREATE INDEX observations_by_project ON observations(project_id, id DESC);
CREATE INDEX observations_by_time ON observations(project_id, created_at_epoch DESC, id DESC);

CREATE TABLE session_summaries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  memory_session_id TEXT NOT NULL
    REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  turn_id INTEGER NOT NULL UNIQUE REFERENCES user_prompts(id) ON DELETE CASCADE,
  prompt_number INTEGER NOT NULL,
  request TEXT,
  investigated TEXT,
  learned TEXT,
  completed TEXT,
  next_steps TEXT,
  files_read TEXT NOT NULL DEFAULT '[]',
  files_edited TEXT NOT NULL DEFAULT '[]',
  notes TEXT,
  observer TEXT NOT NULL,
  model TEXT,
  prompt_version TEXT,
  created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL
);
CREATE INDEX summaries_by_session ON session_summaries(memory_session_id);
CREATE INDEX summaries_by_project ON session_summaries(project_id, id DESC);
CREATE INDEX summaries_by_time ON session_summaries(project_id, created_at_epoch DESC, id DESC);

CREATE TABLE observation_events (
  observation_id INTEGER NOT NULL REFERENCES observations(id) ON DELETE CASCADE,
  event_id INTEGER NOT NULL REFERENCES tool_events(id) ON DELETE CASCADE,
  PRIMARY KEY (observation_id, event_id)
) WITHOUT ROWID;
CREATE INDEX observations_of_event ON observation_events(event_id);

CREATE TABLE summary_events (
  summary_id INTEGER NOT NULL REFERENCES session_summaries(id) ON DELETE CASCADE,
  event_id INTEGER NOT NULL REFERENCES tool_events(id) ON DELETE CASCADE,
  PRIMARY KEY (summary_id, event_id)
) WITHOUT ROWID;
CREATE INDEX summaries_of_event ON summary_events(event_id);

CREATE TABLE pending_messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL REFERENCES sdk_sessions(id) ON DELETE CASCADE,
  turn_id INTEGER NOT NULL UNIQUE REFERENCES user_prompts(id) ON DELETE CASCADE,
  status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'held', 'dead')),
  revision INTEGER NOT NULL DEFAULT 1,
  attempts INTEGER NOT NULL DEFAULT 0,
  available_at_epoch INTEGER NOT NULL,
  lease TEXT,
  lease_until_epoch INTEGER,
  last_error TEXT,
  created_at_epoch INTEGER NOT NULL
);
CREATE INDEX messages_by_status ON pending_messages(status, available_at_epoch);
CREATE INDEX messages_by_session ON pending_messages(session_id);
"""


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in _FIRST.split(";\n"):
        if statement.strip():
            connection.execute(statement)


_IMPORTS = (
    "ALTER TABLE user_prompts ADD COLUMN imported INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX prompts_by_id ON user_prompts(prompt_id)",
    "CREATE TABLE transcripts ("
    "path TEXT PRIMARY KEY, size INTEGER NOT NULL, modified_ns INTEGER NOT NULL)",
)


def _add_imports(connection: sqlite3.Connection) -> None:
    for statement in _IMPORTS:
        connection.execute(statement)


# The index is derived and not part of the schema; triggers only mark what it has to read again.
# They use no functions of ours, so that other programs can write to these tables.
_MARKS = """
CREATE TABLE unindexed (id INTEGER PRIMARY KEY, document INTEGER NOT NULL);
CREATE INDEX unindexed_documents ON unindexed(document);
"""
_INDEXED = (
    ("observations", 0, "title, subtitle, narrative, facts, concepts, files_read, files_modified,"
     " type, project_id, turn_id, ordinal, prompt_number, created_at_epoch"),
    ("session_summaries", 1, "request, investigated, learned, completed, next_steps, notes,"
     " files_read, files_edited, project_id, turn_id, prompt_number, created_at_epoch"),
    ("user_prompts", 2, "prompt_text, private, session_id, project_id, prompt_number,"
     " created_at_epoch"),
)  # fmt: skip


def _add_index_marks(connection: sqlite3.Connection) -> None:
    for statement in _MARKS.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    for table, kind, columns in _INDEXED:
        for name, event, row in (
            ("come", "INSERT", "NEW"),
            ("change", f"UPDATE OF {columns}", "NEW"),
            ("go", "DELETE", "OLD"),
        ):
            connection.execute(
                f"CREATE TRIGGER {table}_{name} AFTER {event} ON {table} BEGIN"
                f" INSERT INTO unindexed (document) VALUES ({row}.id * 4 + {kind}); END"
            )
        connection.execute(
            f"INSERT INTO unindexed (document) SELECT id * 4 + {kind} FROM {table} ORDER BY id"
        )


# Forgotten rows move out of their tables; `sealed` counts how often a turn lost some of its own.
_FORGETTING = (
    "ALTER TABLE user_prompts ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0",
    "CREATE TABLE forgotten (id INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL UNIQUE,"
    " at_epoch INTEGER NOT NULL, counts TEXT NOT NULL)",
    "CREATE TABLE forgotten_rows (id INTEGER PRIMARY KEY, forgotten_id INTEGER NOT NULL"
    " REFERENCES forgotten(id) ON DELETE CASCADE, of_table TEXT NOT NULL, kind TEXT NOT NULL,"
    " content TEXT NOT NULL)",
    "CREATE INDEX rows_of_forgotten ON forgotten_rows(forgotten_id)",
    "CREATE TABLE tombstones (kind TEXT NOT NULL, key TEXT NOT NULL,"
    " forgotten_id INTEGER NOT NULL, at_epoch INTEGER NOT NULL, PRIMARY KEY (kind, key))"
    " WITHOUT ROWID",
)


def _add_forgetting(connection: sqlite3.Connection) -> None:
    for statement in _FORGETTING:
        connection.execute(statement)


# Drafts that wait for a model, requests and tokens per day, and circuit breakers.
_OBSERVER_STATE = """
CREATE TABLE refinements (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id INTEGER NOT NULL REFERENCES sdk_sessions(id) ON DELETE CASCADE,
  turn_id INTEGER NOT NULL UNIQUE REFERENCES user_prompts(id) ON DELETE CASCADE,
  status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'held', 'kept')),
  revision INTEGER NOT NULL DEFAULT 1,
  attempts INTEGER NOT NULL DEFAULT 0,
  available_at_epoch INTEGER NOT NULL,
  lease TEXT,
  lease_until_epoch INTEGER,
  last_error TEXT,
  reply TEXT,
  created_at_epoch INTEGER NOT NULL
);
CREATE INDEX refinements_by_status ON refinements(status, available_at_epoch);
CREATE INDEX refinements_by_session ON refinements(session_id, status);
CREATE TABLE observer_usage (
  day INTEGER NOT NULL,
  observer TEXT NOT NULL,
  requests INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  PRIMARY KEY (day, observer)
) WITHOUT ROWID;
CREATE TABLE observer_breakers (
  observer TEXT PRIMARY KEY,
  reason TEXT NOT NULL,
  failures INTEGER NOT NULL,
  open_until_epoch INTEGER,
  probe_until_epoch INTEGER,
  lasting INTEGER NOT NULL DEFAULT 0
);
"""


def _add_observer_state(connection: sqlite3.Connection) -> None:
    for statement in _OBSERVER_STATE.split(";\n"):
        if statement.strip():
            connection.execute(statement)


# Commands, faults and open steps as values; before, they were sentences of the notes.
def _add_summary_facts(connection: sqlite3.Connection) -> None:
    for column in summary_sentences.COLUMNS:
        connection.execute(
            f"ALTER TABLE session_summaries ADD COLUMN {column} TEXT NOT NULL DEFAULT '[]'"
        )
    table, kind, indexed = next(entry for entry in _INDEXED if entry[0] == "session_summaries")
    columns = ", ".join((indexed, *summary_sentences.COLUMNS))
    connection.execute(f"DROP TRIGGER {table}_change")
    connection.execute(
        f"CREATE TRIGGER {table}_change AFTER UPDATE OF {columns} ON {table} BEGIN"
        f" INSERT INTO unindexed (document) VALUES (NEW.id * 4 + {kind}); END"
    )
    rows = connection.execute(
        "SELECT id, notes, next_steps, model FROM session_summaries"
        " WHERE notes IS NOT NULL OR next_steps IS NOT NULL"
    ).fetchall()
    names = ("id", "notes", "next_steps", "model")
    for row in rows:
        values = dict(zip(names, row, strict=True))
        connection.execute(
            "UPDATE session_summaries SET notes = :notes, commands = :commands, faults = :faults,"
            " open_steps = :open_steps WHERE id = :id",
            {**values, **summary_sentences.facts_of_notes(values)},
        )
    _add_facts_to_forgotten(connection)


def _add_facts_to_forgotten(connection: sqlite3.Connection) -> None:
    """Rows that an undo would insert again."""
    rows = connection.execute(
        "SELECT id, content FROM forgotten_rows WHERE of_table = 'session_summaries'"
        " AND kind = 'gone'"
    ).fetchall()
    for row_id, content in rows:
        row = json.loads(content)
        connection.execute(
            "UPDATE forgotten_rows SET content = ? WHERE id = ?",
            (json.dumps({**row, **summary_sentences.facts_of_notes(row)}), row_id),
        )


# The words of a turn, kept beside its memories. Transcripts that were imported before are read
# again, so that turns which are known already get their record.
_RECORD = (
    "ALTER TABLE tool_events ADD COLUMN words TEXT",
    "CREATE TABLE turn_records (turn_id INTEGER PRIMARY KEY REFERENCES user_prompts(id)"
    " ON DELETE CASCADE, parts TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " created_at_epoch INTEGER NOT NULL)",
    "CREATE INDEX records_by_time ON turn_records(created_at_epoch, turn_id, bytes)",
    "CREATE TABLE notices (name TEXT PRIMARY KEY, given_at_epoch INTEGER)",
    # To users of a version that kept no record.
    "INSERT INTO notices (name) SELECT 'record_begins' WHERE EXISTS (SELECT 1 FROM user_prompts)",
    "DELETE FROM transcripts",
)


def _add_record(connection: sqlite3.Connection) -> None:
    for statement in _RECORD:
        connection.execute(statement)
    columns = {table: names for table, _, names in _INDEXED} | {"turn_records": "parts"}
    for table, names in columns.items():
        turn = "id" if table == "user_prompts" else "turn_id"
        for name, event, row in (
            ("come", "INSERT", "NEW"),
            ("change", f"UPDATE OF {names}", "NEW"),
            ("go", "DELETE", "OLD"),
        ):
            connection.execute(
                f"CREATE TRIGGER {table}_{name}_turn AFTER {event} ON {table} BEGIN"
                f" INSERT INTO unindexed (document) VALUES ({row}.{turn} * 4 + 3); END"
            )


# Text that was forgotten for good is also removed from the files; `erased`: without undo.
_SCRUBBING = (
    "CREATE TABLE scrub_requests ("
    "id INTEGER PRIMARY KEY AUTOINCREMENT, requested_at_epoch INTEGER NOT NULL)",
    "ALTER TABLE forgotten ADD COLUMN erased INTEGER NOT NULL DEFAULT 0",
)


def _add_scrubbing(connection: sqlite3.Connection) -> None:
    for statement in _SCRUBBING:
        connection.execute(statement)


def _add_facts(connection: sqlite3.Connection) -> None:
    for statement in facts.STATEMENTS:
        connection.execute(statement)
    facts.fill_from_summaries(connection)


def _add_notices(connection: sqlite3.Connection) -> None:
    for statement in client_messages.STATEMENTS:
        connection.execute(statement)
    client_messages.convert_prompts(connection)


# Turns that an older version of the local observer distilled are distilled again.
_OBSERVER_VERSION = (
    "ALTER TABLE user_prompts ADD COLUMN observer_version INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX turns_by_version ON user_prompts(closed, observer_version)",
)


def _add_observer_version(connection: sqlite3.Connection) -> None:
    for statement in _OBSERVER_VERSION:
        connection.execute(statement)


def _add_hints(connection: sqlite3.Connection) -> None:
    for statement in given_hints.STATEMENTS:
        connection.execute(statement)


# What a fact replaced holds again when the fact goes.
_FACT_GONE = """CREATE TRIGGER fact_gone BEFORE DELETE ON facts BEGIN
  UPDATE facts SET status = 'holds', superseded_by = NULL
  WHERE superseded_by = OLD.id AND status = 'past';
END"""


def _add_fact_revival(connection: sqlite3.Connection) -> None:
    connection.execute(_FACT_GONE)


def _add_edits(connection: sqlite3.Connection) -> None:
    for statement in edits.STATEMENTS:
        connection.execute(statement)


def _add_title_source(connection: sqlite3.Connection) -> None:
    """Who gave a session its title: the user, the client, or (NULL) the observer."""
    connection.execute("ALTER TABLE sdk_sessions ADD COLUMN title_source TEXT")


def _rename_projects_by_name(connection: sqlite3.Connection) -> None:
    """A project of which only the name is known had the name as its key, which hid projects with
    the same name: a key is looked up before a name."""
    connection.execute(
        "UPDATE projects SET key = 'name:' || key WHERE key = name AND key <> 'unknown'"
        " AND instr(key, '/') + instr(key, ':') + instr(key, '\\') = 0"
        " AND NOT EXISTS (SELECT 1 FROM projects o WHERE o.key = 'name:' || projects.key)"
        " AND NOT EXISTS (SELECT 1 FROM sdk_sessions s WHERE s.project_id = projects.id"
        "  AND s.project_dir <> '')"
    )
    connection.execute("DELETE FROM project_dirs WHERE directory = ''")


def _add_turns_by_time(connection: sqlite3.Connection) -> None:
    for statement in viewer_pages.STATEMENTS:
        connection.execute(statement)


def _add_project_decisions(connection: sqlite3.Connection) -> None:
    for statement in project_assignments.STATEMENTS:
        connection.execute(statement)


def _add_uncounted_rows(connection: sqlite3.Connection) -> None:
    for statement in listing.UNCOUNTED_ROWS:
        connection.execute(statement)


def _add_origins(connection: sqlite3.Connection) -> None:
    """Whose words memories are, and hashes of those that came from outside."""
    connection.execute("ALTER TABLE observations ADD COLUMN origin TEXT NOT NULL DEFAULT 'agent'")
    connection.execute("UPDATE observations SET origin = 'person' WHERE observer = 'person'")
    connection.execute(
        "CREATE TABLE outside_words (turn_id INTEGER PRIMARY KEY REFERENCES user_prompts(id)"
        " ON DELETE CASCADE, hashes TEXT NOT NULL)"
    )


def _add_refine_requests(connection: sqlite3.Connection) -> None:
    """Whether the user asked for it: it then comes after the turns of today, and may wait."""
    connection.execute("ALTER TABLE refinements ADD COLUMN requested INTEGER NOT NULL DEFAULT 0")


def _add_team_outbox(connection: sqlite3.Connection) -> None:
    for statement in team_tables.STATEMENTS:
        connection.execute(statement)


def _add_team_recent(connection: sqlite3.Connection) -> None:
    for statement in team_tables.RECENT:
        connection.execute(statement)


def _add_team_facts(connection: sqlite3.Connection) -> None:
    for statement in team_tables.FACTS:
        connection.execute(statement)


def _add_unindexed_turns(connection: sqlite3.Connection) -> None:
    for statement in previous_rows.STATEMENTS:
        connection.execute(statement)


def _add_welcome(connection: sqlite3.Connection) -> None:
    """It is pending until a session shows it; users of an earlier version have seen it."""
    connection.execute(
        "INSERT INTO notices (name, given_at_epoch) SELECT 'welcome', CASE WHEN EXISTS ("
        "SELECT 1 FROM sdk_sessions s WHERE dialect NOT IN ('hand', 'claude-mem-ts') AND NOT EXISTS"
        " (SELECT 1 FROM user_prompts WHERE session_id = s.id AND imported)) THEN 0 END"
    )


def _add_outside_words_of_records(connection: sqlite3.Connection) -> None:
    """Apart from those of memories, by which the lines of contexts are marked."""
    connection.execute("ALTER TABLE outside_words ADD COLUMN of_record TEXT NOT NULL DEFAULT ''")


def _add_undistilled_transcripts(connection: sqlite3.Connection) -> None:
    """Those of imported sessions whose turns are distilled later. `distilled`: they were, and the
    contexts of the project have to be rendered."""
    connection.execute(
        "CREATE TABLE undistilled_transcripts (session_id INTEGER NOT NULL REFERENCES"
        " sdk_sessions(id) ON DELETE CASCADE, path TEXT NOT NULL, keep_raw_since INTEGER NOT NULL,"
        " distilled INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session_id, path)) WITHOUT ROWID"
    )


def _add_conversations_index(connection: sqlite3.Connection) -> None:
    """Few sessions have a conversation, and the main loop looks for finished ones at each cycle."""
    connection.execute(
        "CREATE INDEX sessions_with_conversation ON sdk_sessions(id) WHERE provider IS NOT NULL"
    )


def _add_outside_turns(connection: sqlite3.Connection) -> None:
    """`outside`: the turn came with somebody else's export. All of it is from outside."""
    connection.execute("ALTER TABLE user_prompts ADD COLUMN outside INTEGER NOT NULL DEFAULT 0")
    connection.execute("CREATE INDEX outside_turns ON user_prompts(id) WHERE outside <> 0")


def _add_unstored_words(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE unstored_words (event_key TEXT PRIMARY KEY, turn_id INTEGER NOT NULL"
        " REFERENCES user_prompts(id) ON DELETE CASCADE, checksums BLOB NOT NULL)"
    )
    connection.execute("CREATE INDEX unstored_words_of_turn ON unstored_words(turn_id)")


def _add_project_checkouts(connection: sqlite3.Connection) -> None:
    for statement in project_assignments.CHECKOUTS:
        connection.execute(statement)


Migration = tuple[str, Callable[[sqlite3.Connection], None]]


def _allow_empty_prompts(connection: sqlite3.Connection) -> None:
    """A prompt without typed words is empty, and has no text to show. What a client wrote behind
    a notification is no prompt."""
    connection.execute("DROP INDEX prompts_without_text")
    connection.execute(listing.UNCOUNTED_ROWS[1])
    lines_of_notifications.convert_prompts(connection)


MIGRATIONS: tuple[Migration, ...] = (
    ("0001_sessions_prompts_events_memories", _create_tables),
    ("0002_imports", _add_imports),
    ("0003_full_text", _add_index_marks),
    ("0004_forgetting", _add_forgetting),
    ("0006_observer_state", _add_observer_state),
    ("0007_summary_facts", _add_summary_facts),
    ("0008_record", _add_record),
    ("0009_scrubbing", _add_scrubbing),
    ("0010_facts", _add_facts),
    ("0011_notices", _add_notices),
    ("0012_observer_version", _add_observer_version),
    ("0013_hints", _add_hints),
    ("0014_fact_revival", _add_fact_revival),
    ("0015_edits", _add_edits),
    ("0016_title_source", _add_title_source),
    ("0018_projects_by_name", _rename_projects_by_name),
    ("0020_turns_by_time", _add_turns_by_time),
    ("0021_refine_requests", _add_refine_requests),
    ("0024_project_decisions", _add_project_decisions),
    ("0032_team_outbox", _add_team_outbox),
    ("0033_team_recent", _add_team_recent),
    ("0034_origins", _add_origins),
    ("0035_unindexed_turns", _add_unindexed_turns),
    ("0037_welcome", _add_welcome),
    ("0038_outside_words_of_records", _add_outside_words_of_records),
    ("0039_team_facts", _add_team_facts),
    ("0040_uncounted_rows", _add_uncounted_rows),
    ("0041_undistilled_transcripts", _add_undistilled_transcripts),
    ("0042_conversations_index", _add_conversations_index),
    ("0043_outside_turns", _add_outside_turns),
    ("0044_unstored_words", _add_unstored_words),
    ("0045_project_checkouts", _add_project_checkouts),
    ("0046_empty_prompts", _allow_empty_prompts),
)


def applied_names(connection: sqlite3.Connection) -> list[str]:
    exists = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'"
    ).fetchone()
    if not exists:
        return []
    rows = connection.execute("SELECT name FROM schema_migrations ORDER BY position")
    return [name for (name,) in rows]


def missing_migrations(connection: sqlite3.Connection) -> list[Migration]:
    """Those not yet applied; raises NewerDatabase when the file is newer than this version."""
    applied = applied_names(connection)
    unknown = sorted(set(applied) - {name for name, _ in MIGRATIONS})
    if unknown:
        raise NewerDatabase(
            f"the database was made by a newer claude-mem (it has {unknown[0]!r}), and databases"
            " are never downgraded. Upgrade this installation, or go back to a backup from before"
            " that upgrade: claude-mem worker restore"
        )
    return [migration for migration in MIGRATIONS if migration[0] not in applied]


def migrate(connection: sqlite3.Connection, now: str) -> None:
    for name, apply in missing_migrations(connection):
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_migrations ("
                "position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, applied_at TEXT NOT NULL)"
            )
            apply(connection)
            reach(b"migration.before_commit")
            connection.execute(
                "INSERT INTO schema_migrations (name, applied_at) VALUES (?, ?)", (name, now)
            )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        reach(b"migration.after_commit")


def missing_tables(connection: sqlite3.Connection) -> list[str]:
    """That the migrations made and the file does not have."""
    names = "SELECT name FROM sqlite_master WHERE type = 'table'"
    present = {name for (name,) in connection.execute(names)}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        fresh.row_factory = sqlite3.Row
        migrate(fresh, "")
        return [name for (name,) in fresh.execute(names) if name not in present]
