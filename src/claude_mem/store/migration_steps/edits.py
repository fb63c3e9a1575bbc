"""Columns for what users and agents change in memories: text, pins, marks as wrong.

A released migration uses this, so it imports nothing that may change.
"""

_EDITED = "edited INTEGER NOT NULL DEFAULT 0"
_PINNED = "pinned INTEGER NOT NULL DEFAULT 0"
_WRONG = "wrong INTEGER NOT NULL DEFAULT 0"
_CHANGED_BY = "changed_by TEXT CHECK (changed_by IN ('person', 'agent'))"
_COLUMNS = {
    "observations": (_EDITED, _PINNED, _WRONG, _CHANGED_BY),
    "session_summaries": (_EDITED, _PINNED, _WRONG, _CHANGED_BY),
    "user_prompts": (_PINNED, _WRONG, _CHANGED_BY),
    # Before its first edit; a turn that reveals that again is a source of the edited fact.
    "facts": (
        _CHANGED_BY,
        "original_subject TEXT",
        "original_value TEXT",
        "original_scope TEXT",
    ),
}
STATEMENTS = (
    *(
        f"ALTER TABLE {table} ADD COLUMN {column}"
        for table, columns in _COLUMNS.items()
        for column in columns
    ),
    *(
        f"CREATE INDEX wrong_{table} ON {table}(id) WHERE wrong <> 0"
        for table in ("observations", "session_summaries", "user_prompts")
    ),
    *(
        f"CREATE INDEX pinned_{table} ON {table}(project_id) WHERE pinned <> 0"
        for table in ("observations", "session_summaries", "user_prompts")
    ),
    "CREATE INDEX edited_facts ON facts(project_id, kind, original_value)"
    " WHERE original_value IS NOT NULL",
    # By the numbers of the index.
    "CREATE VIEW wrong_documents (document) AS"
    " SELECT id * 4 FROM observations WHERE wrong <> 0"
    " UNION ALL SELECT id * 4 + 1 FROM session_summaries WHERE wrong <> 0"
    " UNION ALL SELECT id * 4 + 2 FROM user_prompts WHERE wrong <> 0",
    # The memory that stands for the turn is wrong: its first observation, else its summary.
    "CREATE VIEW wrong_turns (turn_id) AS"
    " SELECT turn_id FROM observations o WHERE wrong <> 0"
    " AND id = (SELECT min(id) FROM observations WHERE turn_id = o.turn_id)"
    " UNION ALL SELECT turn_id FROM session_summaries s WHERE wrong <> 0"
    " AND NOT EXISTS (SELECT 1 FROM observations WHERE turn_id = s.turn_id)"
    " UNION ALL SELECT id FROM user_prompts WHERE wrong <> 0",
    # What is wrong is left out of the passages of its turn.
    *(
        f"CREATE TRIGGER {table}_wrong AFTER UPDATE OF wrong ON {table} BEGIN"
        " INSERT INTO unindexed (document) VALUES (NEW.turn_id * 4 + 3); END"
        for table in ("observations", "session_summaries")
    ),
    # As before, but a fact that was changed stays when its last source goes.
    "DROP TRIGGER fact_source_go",
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
    AND changed_by IS NULL
    AND NOT EXISTS (SELECT 1 FROM fact_sources WHERE fact_id = OLD.fact_id);
END""",
)
