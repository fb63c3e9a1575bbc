-- The schema of a new database. Frozen: a change is a migration (migrations.py).
-- Tables are in the order in which rows can be inserted.

-- Projects

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

-- What the user decided, and what a directory says of itself until the user does
CREATE TABLE project_overrides (
  directory TEXT PRIMARY KEY,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  decided_at_epoch INTEGER NOT NULL
);
CREATE TABLE project_aliases (
  key TEXT PRIMARY KEY,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  decided_at_epoch INTEGER NOT NULL
);
CREATE TABLE project_claims (
  directory TEXT NOT NULL,
  key TEXT NOT NULL,
  asked_at_epoch INTEGER NOT NULL,
  PRIMARY KEY (directory, key)
) WITHOUT ROWID;
CREATE TABLE project_checkouts (
  main TEXT PRIMARY KEY,
  identity TEXT NOT NULL,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX checkouts_of_project ON project_checkouts(project_id);

-- Sessions, turns and their events

-- title_source: who gave the title: the user, the client, or (NULL) the observer
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
  provider_session_id TEXT,
  title_source TEXT
);
CREATE INDEX sessions_by_project ON sdk_sessions(project_id, updated_at_epoch DESC);
CREATE INDEX sessions_by_status ON sdk_sessions(status, updated_at_epoch);
CREATE INDEX sessions_by_update ON sdk_sessions(updated_at_epoch DESC);
-- SQLite counts a table by its pages, but a condition by reading every row.
CREATE INDEX unlisted_sessions ON sdk_sessions(id) WHERE prompt_counter = 0;
-- Few sessions have a conversation, and the main loop looks for finished ones at each cycle.
CREATE INDEX sessions_with_conversation ON sdk_sessions(id) WHERE provider IS NOT NULL;

-- sealed: how often a turn lost rows of its own to forgetting. observer_version: of the local
-- observer that distilled it. outside: it came with somebody else's export.
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
  imported INTEGER NOT NULL DEFAULT 0,
  sealed INTEGER NOT NULL DEFAULT 0,
  notice INTEGER NOT NULL DEFAULT 0,
  parent_turn INTEGER,
  observer_version INTEGER NOT NULL DEFAULT 0,
  pinned INTEGER NOT NULL DEFAULT 0,
  wrong INTEGER NOT NULL DEFAULT 0,
  changed_by TEXT CHECK (changed_by IN ('person', 'agent')),
  outside INTEGER NOT NULL DEFAULT 0,
  UNIQUE (session_id, prompt_id),
  UNIQUE (session_id, prompt_number)
);
CREATE INDEX prompts_by_project ON user_prompts(project_id, id DESC);
CREATE INDEX prompts_open ON user_prompts(updated_at_epoch) WHERE closed = 0;
CREATE INDEX prompts_by_id ON user_prompts(prompt_id);
CREATE INDEX prompts_without_text ON user_prompts(id)
  WHERE private OR coalesce(prompt_text, '') = '';
CREATE INDEX turns_by_time ON user_prompts(created_at_epoch DESC, id DESC);
CREATE INDEX turns_of_project_by_time ON user_prompts(project_id, created_at_epoch DESC, id DESC);
CREATE INDEX turns_by_version ON user_prompts(closed, observer_version);
CREATE INDEX turns_by_parent ON user_prompts(parent_turn) WHERE parent_turn IS NOT NULL;
CREATE INDEX outside_turns ON user_prompts(id) WHERE outside <> 0;
CREATE INDEX wrong_user_prompts ON user_prompts(id) WHERE wrong <> 0;
CREATE INDEX pinned_user_prompts ON user_prompts(project_id) WHERE pinned <> 0;
-- No foreign key: undo restores turns in any order.
CREATE TRIGGER user_prompts_go_parent AFTER DELETE ON user_prompts BEGIN
  UPDATE user_prompts SET parent_turn = NULL WHERE parent_turn = OLD.id;
END;

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
  created_at_epoch INTEGER NOT NULL,
  words TEXT
);
CREATE INDEX events_by_turn ON tool_events(turn_id, id);
CREATE INDEX events_by_session ON tool_events(session_id);
CREATE INDEX events_raw ON tool_events(created_at_epoch) WHERE bytes > 0;

-- What was said in a turn, word for word
CREATE TABLE turn_records (
  turn_id INTEGER PRIMARY KEY REFERENCES user_prompts(id) ON DELETE CASCADE,
  parts TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  created_at_epoch INTEGER NOT NULL
);
CREATE INDEX records_by_time ON turn_records(created_at_epoch, turn_id, bytes);

-- Hashes of words that came from outside; those of records apart from those of memories, by which
-- the lines of contexts are marked
CREATE TABLE outside_words (
  turn_id INTEGER PRIMARY KEY REFERENCES user_prompts(id) ON DELETE CASCADE,
  hashes TEXT NOT NULL,
  of_record TEXT NOT NULL DEFAULT ''
);
CREATE TABLE unstored_words (
  event_key TEXT PRIMARY KEY,
  turn_id INTEGER NOT NULL REFERENCES user_prompts(id) ON DELETE CASCADE,
  checksums BLOB NOT NULL
);
CREATE INDEX unstored_words_of_turn ON unstored_words(turn_id);

-- Transcripts that were imported; those whose turns are distilled later. distilled: they were, and
-- the contexts of the project have to be rendered.
CREATE TABLE transcripts (
  path TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  modified_ns INTEGER NOT NULL
);
CREATE TABLE undistilled_transcripts (
  session_id INTEGER NOT NULL REFERENCES sdk_sessions(id) ON DELETE CASCADE,
  path TEXT NOT NULL,
  keep_raw_since INTEGER NOT NULL,
  distilled INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session_id, path)
) WITHOUT ROWID;

-- Memories

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
  edited INTEGER NOT NULL DEFAULT 0,
  pinned INTEGER NOT NULL DEFAULT 0,
  wrong INTEGER NOT NULL DEFAULT 0,
  changed_by TEXT CHECK (changed_by IN ('person', 'agent')),
  origin TEXT NOT NULL DEFAULT 'agent',
  UNIQUE (turn_id, ordinal)
);
CREATE INDEX observations_by_session ON observations(memory_session_id);
CREATE INDEX observations_by_project ON observations(project_id, id DESC);
CREATE INDEX observations_by_time ON observations(project_id, created_at_epoch DESC, id DESC);
CREATE INDEX wrong_observations ON observations(id) WHERE wrong <> 0;
CREATE INDEX pinned_observations ON observations(project_id) WHERE pinned <> 0;

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
  created_at_epoch INTEGER NOT NULL,
  commands TEXT NOT NULL DEFAULT '[]',
  faults TEXT NOT NULL DEFAULT '[]',
  open_steps TEXT NOT NULL DEFAULT '[]',
  edited INTEGER NOT NULL DEFAULT 0,
  pinned INTEGER NOT NULL DEFAULT 0,
  wrong INTEGER NOT NULL DEFAULT 0,
  changed_by TEXT CHECK (changed_by IN ('person', 'agent'))
);
CREATE INDEX summaries_by_session ON session_summaries(memory_session_id);
CREATE INDEX summaries_by_project ON session_summaries(project_id, id DESC);
CREATE INDEX summaries_by_time ON session_summaries(project_id, created_at_epoch DESC, id DESC);
CREATE INDEX wrong_session_summaries ON session_summaries(id) WHERE wrong <> 0;
CREATE INDEX pinned_session_summaries ON session_summaries(project_id) WHERE pinned <> 0;

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

-- By the numbers of the index
CREATE VIEW wrong_documents (document) AS
  SELECT id * 4 FROM observations WHERE wrong <> 0
  UNION ALL SELECT id * 4 + 1 FROM session_summaries WHERE wrong <> 0
  UNION ALL SELECT id * 4 + 2 FROM user_prompts WHERE wrong <> 0;
-- The memory that stands for the turn is wrong: its first observation, else its summary.
CREATE VIEW wrong_turns (turn_id) AS
  SELECT turn_id FROM observations o WHERE wrong <> 0
    AND id = (SELECT min(id) FROM observations WHERE turn_id = o.turn_id)
  UNION ALL SELECT turn_id FROM session_summaries s WHERE wrong <> 0
    AND NOT EXISTS (SELECT 1 FROM observations WHERE turn_id = s.turn_id)
  UNION ALL SELECT id FROM user_prompts WHERE wrong <> 0;

-- Facts

-- original_...: before the first edit. A turn that states that again is a source of the edited fact.
CREATE TABLE facts (
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
  changed_by TEXT CHECK (changed_by IN ('person', 'agent')),
  original_subject TEXT,
  original_value TEXT,
  original_scope TEXT,
  UNIQUE (project_id, kind, scope, subject, value),
  CHECK (kind <> 'rule' OR origin = 'person')
);
CREATE INDEX facts_superseded ON facts(superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX edited_facts ON facts(project_id, kind, original_value)
  WHERE original_value IS NOT NULL;

CREATE TABLE fact_sources (
  fact_id INTEGER NOT NULL REFERENCES facts(id) ON DELETE CASCADE,
  turn_id INTEGER NOT NULL REFERENCES user_prompts(id) ON DELETE CASCADE,
  observer TEXT NOT NULL,
  note TEXT NOT NULL DEFAULT '',
  events TEXT NOT NULL DEFAULT '[]',
  seen_at_epoch INTEGER NOT NULL,
  PRIMARY KEY (fact_id, turn_id, observer)
) WITHOUT ROWID;
CREATE INDEX facts_of_turn ON fact_sources(turn_id);
CREATE INDEX fact_sources_by_time ON fact_sources(fact_id, seen_at_epoch);

-- These keep the count and the times of a fact right, however its sources come and go: a turn may
-- be forgotten, turn out to be private, move to another session, or be distilled again. A fact that
-- has lost its last source goes with it; what the user pinned, changed or marked as wrong stays.
CREATE TRIGGER fact_source_come AFTER INSERT ON fact_sources BEGIN
  UPDATE facts SET
    count = count + (SELECT count(*) = 1 FROM fact_sources
      WHERE fact_id = NEW.fact_id AND turn_id = NEW.turn_id),
    first_seen_epoch = min(first_seen_epoch, NEW.seen_at_epoch),
    last_seen_epoch = max(last_seen_epoch, NEW.seen_at_epoch)
  WHERE id = NEW.fact_id;
END;
CREATE TRIGGER fact_source_go AFTER DELETE ON fact_sources BEGIN
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
END;
-- What a fact replaced holds again when the fact goes.
CREATE TRIGGER fact_gone BEFORE DELETE ON facts BEGIN
  UPDATE facts SET status = 'holds', superseded_by = NULL
  WHERE superseded_by = OLD.id AND status = 'past';
END;

-- Queues: of turns to distil, and of drafts that wait for a model

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

-- requested: by the user; it then comes after the turns of today, and may wait.
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
  created_at_epoch INTEGER NOT NULL,
  requested INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX refinements_by_status ON refinements(status, available_at_epoch);
CREATE INDEX refinements_by_session ON refinements(session_id, status);

-- Requests and tokens per day, and circuit breakers
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

-- Hints that prompts were given, and messages that the user gets once

CREATE TABLE hints (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  content_session_id TEXT NOT NULL,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  turn_id INTEGER NOT NULL REFERENCES user_prompts(id) ON DELETE CASCADE,
  memory TEXT NOT NULL,
  text TEXT NOT NULL,
  words TEXT NOT NULL,
  score REAL NOT NULL,
  created_at_epoch INTEGER NOT NULL
);
CREATE INDEX hints_by_session ON hints(content_session_id);
CREATE INDEX hints_by_turn ON hints(turn_id);
CREATE INDEX hints_by_project ON hints(project_id);

CREATE TABLE notices (name TEXT PRIMARY KEY, given_at_epoch INTEGER);
INSERT INTO notices (name) VALUES ('welcome');

-- Forgetting: rows move out of their tables. erased: without undo. A scrub removes text that was
-- forgotten for good from the files.

CREATE TABLE forgotten (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  token TEXT NOT NULL UNIQUE,
  at_epoch INTEGER NOT NULL,
  counts TEXT NOT NULL,
  erased INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE forgotten_rows (
  id INTEGER PRIMARY KEY,
  forgotten_id INTEGER NOT NULL REFERENCES forgotten(id) ON DELETE CASCADE,
  of_table TEXT NOT NULL,
  kind TEXT NOT NULL,
  content TEXT NOT NULL
);
CREATE INDEX rows_of_forgotten ON forgotten_rows(forgotten_id);
CREATE TABLE tombstones (
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  forgotten_id INTEGER NOT NULL,
  at_epoch INTEGER NOT NULL,
  PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE TABLE scrub_requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  requested_at_epoch INTEGER NOT NULL
);

-- Marks for the index, which is derived and no part of this schema. Triggers only mark what it has
-- to read again, and use no functions of ours, so that other programs can write to these tables.

CREATE TABLE unindexed (id INTEGER PRIMARY KEY, document INTEGER NOT NULL);
CREATE INDEX unindexed_documents ON unindexed(document);

CREATE TRIGGER observations_come AFTER INSERT ON observations BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 0);
END;
CREATE TRIGGER observations_change AFTER UPDATE OF title, subtitle, narrative, facts, concepts,
  files_read, files_modified, type, project_id, turn_id, ordinal, prompt_number, created_at_epoch
  ON observations
BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 0);
END;
CREATE TRIGGER observations_go AFTER DELETE ON observations BEGIN
  INSERT INTO unindexed (document) VALUES (OLD.id * 4 + 0);
END;
CREATE TRIGGER observations_come_turn AFTER INSERT ON observations BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.turn_id * 4 + 3);
END;
CREATE TRIGGER observations_change_turn AFTER UPDATE OF title, subtitle, narrative, facts, concepts,
  files_read, files_modified, wrong, type, project_id, turn_id, ordinal, prompt_number,
  created_at_epoch
  ON observations
BEGIN
  INSERT INTO unindexed (document) SELECT OLD.turn_id * 4 + 3 UNION SELECT NEW.turn_id * 4 + 3;
END;
CREATE TRIGGER observations_go_turn AFTER DELETE ON observations BEGIN
  INSERT INTO unindexed (document) VALUES (OLD.turn_id * 4 + 3);
END;

CREATE TRIGGER session_summaries_come AFTER INSERT ON session_summaries BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 1);
END;
CREATE TRIGGER session_summaries_change AFTER UPDATE OF request, investigated, learned, completed,
  next_steps, notes, files_read, files_edited, project_id, turn_id, prompt_number, created_at_epoch,
  commands, faults, open_steps
  ON session_summaries
BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 1);
END;
CREATE TRIGGER session_summaries_go AFTER DELETE ON session_summaries BEGIN
  INSERT INTO unindexed (document) VALUES (OLD.id * 4 + 1);
END;
CREATE TRIGGER session_summaries_come_turn AFTER INSERT ON session_summaries BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.turn_id * 4 + 3);
END;
CREATE TRIGGER session_summaries_change_turn AFTER UPDATE OF request, investigated, learned,
  completed, next_steps, notes, commands, faults, files_read, files_edited, wrong, open_steps,
  project_id, turn_id, prompt_number, created_at_epoch
  ON session_summaries
BEGIN
  INSERT INTO unindexed (document) SELECT OLD.turn_id * 4 + 3 UNION SELECT NEW.turn_id * 4 + 3;
END;
CREATE TRIGGER session_summaries_go_turn AFTER DELETE ON session_summaries BEGIN
  INSERT INTO unindexed (document) VALUES (OLD.turn_id * 4 + 3);
END;

CREATE TRIGGER user_prompts_come AFTER INSERT ON user_prompts BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 2);
END;
CREATE TRIGGER user_prompts_change AFTER UPDATE OF prompt_text, private, session_id, project_id,
  prompt_number, created_at_epoch
  ON user_prompts
BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 2);
END;
CREATE TRIGGER user_prompts_go AFTER DELETE ON user_prompts BEGIN
  INSERT INTO unindexed (document) VALUES (OLD.id * 4 + 2);
END;
CREATE TRIGGER user_prompts_come_turn AFTER INSERT ON user_prompts BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 3);
END;
CREATE TRIGGER user_prompts_change_turn AFTER UPDATE OF prompt_text, private, session_id,
  project_id, prompt_number, created_at_epoch
  ON user_prompts
BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 3);
END;
CREATE TRIGGER user_prompts_go_turn AFTER DELETE ON user_prompts BEGIN
  INSERT INTO unindexed (document) VALUES (OLD.id * 4 + 3);
END;

CREATE TRIGGER turn_records_come_turn AFTER INSERT ON turn_records BEGIN
  INSERT INTO unindexed (document) VALUES (NEW.turn_id * 4 + 3);
END;
CREATE TRIGGER turn_records_change_turn AFTER UPDATE OF turn_id, parts ON turn_records BEGIN
  INSERT INTO unindexed (document) SELECT OLD.turn_id * 4 + 3 UNION SELECT NEW.turn_id * 4 + 3;
END;
CREATE TRIGGER turn_records_go_turn AFTER DELETE ON turn_records BEGIN
  INSERT INTO unindexed (document) VALUES (OLD.turn_id * 4 + 3);
END;

-- What the index had of a turn, kept from the first change of the turn until it is indexed again.
-- The index holds no text of its own: to remove the words of a turn from full text, it needs the
-- rows they came from, which may have been changed or deleted by then.

CREATE TABLE unindexed_turns (turn_id INTEGER PRIMARY KEY, rows TEXT NOT NULL);
-- A view would be shorter, but SQLite 3.40 does not find its columns where the statement that fired
-- the trigger has RETURNING.
CREATE TRIGGER unindexed_turns_come AFTER INSERT ON unindexed_turns BEGIN
  UPDATE unindexed_turns SET rows = (SELECT json_object(
    'prompt_text', t.prompt_text, 'private', t.private,
    'record', (SELECT parts FROM turn_records WHERE turn_id = t.id),
    'observations', (SELECT json_group_array(json_object(
      'id', id, 'title', title, 'subtitle', subtitle, 'narrative', narrative, 'facts', facts,
      'concepts', concepts, 'files_read', files_read, 'files_modified', files_modified,
      'wrong', wrong)) FROM (SELECT * FROM observations WHERE turn_id = t.id ORDER BY id)),
    'summaries', (SELECT json_group_array(json_object(
      'id', id, 'request', request, 'investigated', investigated, 'learned', learned,
      'completed', completed, 'next_steps', next_steps, 'notes', notes, 'commands', commands,
      'faults', faults, 'files_read', files_read, 'files_edited', files_edited,
      'wrong', wrong)) FROM (SELECT * FROM session_summaries WHERE turn_id = t.id ORDER BY id)))
    FROM user_prompts t WHERE t.id = NEW.turn_id)
  WHERE turn_id = NEW.turn_id;
END;

CREATE TRIGGER observations_keep_on_insert BEFORE INSERT ON observations BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id = NEW.turn_id
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;
CREATE TRIGGER observations_keep_on_update BEFORE UPDATE OF title, subtitle, narrative, facts,
  concepts, files_read, files_modified, wrong, type, project_id, turn_id, ordinal, prompt_number,
  created_at_epoch
  ON observations
BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id IN (OLD.turn_id, NEW.turn_id)
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;
CREATE TRIGGER observations_keep_on_delete BEFORE DELETE ON observations BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id = OLD.turn_id
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;
CREATE TRIGGER session_summaries_keep_on_insert BEFORE INSERT ON session_summaries BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id = NEW.turn_id
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;
CREATE TRIGGER session_summaries_keep_on_update BEFORE UPDATE OF request, investigated, learned,
  completed, next_steps, notes, commands, faults, files_read, files_edited, wrong, open_steps,
  project_id, turn_id, prompt_number, created_at_epoch
  ON session_summaries
BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id IN (OLD.turn_id, NEW.turn_id)
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;
CREATE TRIGGER session_summaries_keep_on_delete BEFORE DELETE ON session_summaries BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id = OLD.turn_id
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;
CREATE TRIGGER user_prompts_keep_on_update BEFORE UPDATE OF prompt_text, private, session_id,
  project_id, prompt_number, created_at_epoch
  ON user_prompts
BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id IN (OLD.id, NEW.id)
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;
CREATE TRIGGER user_prompts_keep_on_delete BEFORE DELETE ON user_prompts BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id = OLD.id
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;
CREATE TRIGGER turn_records_keep_on_insert BEFORE INSERT ON turn_records BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id = NEW.turn_id
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;
CREATE TRIGGER turn_records_keep_on_update BEFORE UPDATE OF turn_id, parts ON turn_records BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id IN (OLD.turn_id, NEW.turn_id)
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;
CREATE TRIGGER turn_records_keep_on_delete BEFORE DELETE ON turn_records BEGIN
  INSERT INTO unindexed_turns (turn_id, rows) SELECT id, '' FROM user_prompts t
    WHERE id = OLD.turn_id
    AND NOT EXISTS (SELECT 1 FROM unindexed WHERE document = t.id * 4 + 3)
    AND NOT EXISTS (SELECT 1 FROM unindexed_turns WHERE turn_id = t.id);
END;

-- What a machine that joined a team remembers of it: shared projects, the outbox, others' turns

CREATE TABLE team_projects (
  project_key TEXT PRIMARY KEY,
  team_id INTEGER NOT NULL,
  shares_record INTEGER NOT NULL
);
-- In the order of the changes; a turn has one row, which a change replaces.
CREATE TABLE team_outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  turn_id INTEGER NOT NULL UNIQUE,
  changed_at_epoch INTEGER NOT NULL
);
-- Every turn that the server has, had or may have; it outlives the turn.
CREATE TABLE team_turns (
  turn_id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL,
  team_id INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('sent', 'stored', 'forgotten', 'refused')),
  reason TEXT
);
CREATE INDEX team_turns_by_uid ON team_turns(uid);
-- The facts that the server has of this machine's user; without a hash: ended there.
CREATE TABLE team_facts (
  team_id INTEGER NOT NULL,
  uid TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (team_id, uid)
) WITHOUT ROWID;
CREATE TABLE team_recent (
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  team_turn INTEGER NOT NULL,
  created_at_epoch INTEGER NOT NULL,
  owner TEXT NOT NULL,
  type TEXT NOT NULL,
  title TEXT NOT NULL,
  PRIMARY KEY (project_id, place)
) WITHOUT ROWID;
CREATE TABLE team_recent_facts (
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  value TEXT NOT NULL,
  scope TEXT NOT NULL,
  origin TEXT NOT NULL,
  owner TEXT NOT NULL,
  is_own INTEGER NOT NULL,
  last_seen_epoch INTEGER NOT NULL,
  PRIMARY KEY (project_id, place)
) WITHOUT ROWID;
CREATE TABLE team_state (name TEXT PRIMARY KEY, value TEXT NOT NULL);

-- Triggers mark each turn that changes, so that nothing has to call the outbox; while no project is
-- shared they insert nothing. They delete first, as the conflict clause of a trigger gives way to
-- that of the statement that fired it.
CREATE TRIGGER team_user_prompts_insert AFTER INSERT ON user_prompts
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = NEW.id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (NEW.id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_user_prompts_update AFTER UPDATE ON user_prompts
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = NEW.id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (NEW.id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_user_prompts_delete AFTER DELETE ON user_prompts
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = OLD.id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (OLD.id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_session_summaries_insert AFTER INSERT ON session_summaries
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = NEW.turn_id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (NEW.turn_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_session_summaries_update AFTER UPDATE ON session_summaries
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = NEW.turn_id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (NEW.turn_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_session_summaries_delete AFTER DELETE ON session_summaries
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = OLD.turn_id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (OLD.turn_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_observations_insert AFTER INSERT ON observations
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = NEW.turn_id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (NEW.turn_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_observations_update AFTER UPDATE ON observations
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = NEW.turn_id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (NEW.turn_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_observations_delete AFTER DELETE ON observations
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = OLD.turn_id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (OLD.turn_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_turn_records_insert AFTER INSERT ON turn_records
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = NEW.turn_id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (NEW.turn_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_turn_records_update AFTER UPDATE ON turn_records
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = NEW.turn_id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (NEW.turn_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_turn_records_delete AFTER DELETE ON turn_records
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = OLD.turn_id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (OLD.turn_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
-- A turn is sent when nothing more is to be distilled of it.
CREATE TRIGGER team_job_done AFTER DELETE ON pending_messages
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox WHERE turn_id = OLD.turn_id;
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    VALUES (OLD.turn_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER));
END;
CREATE TRIGGER team_session_titled AFTER UPDATE OF title, status ON sdk_sessions
WHEN EXISTS (SELECT 1 FROM team_projects) BEGIN
  DELETE FROM team_outbox
    WHERE turn_id = (SELECT max(id) FROM user_prompts WHERE session_id = NEW.id);
  INSERT INTO team_outbox (turn_id, changed_at_epoch)
    SELECT id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
    FROM (SELECT max(id) AS id FROM user_prompts WHERE session_id = NEW.id) WHERE id IS NOT NULL;
END;
