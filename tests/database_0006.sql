-- A database of version 0.1.0 (schema 0006) with memories of every kind; derived tables left out.
PRAGMA application_id = 1129137485;
PRAGMA user_version = 0;
BEGIN TRANSACTION;
CREATE TABLE forgotten (id INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL UNIQUE, at_epoch INTEGER NOT NULL, counts TEXT NOT NULL);
INSERT INTO "forgotten" VALUES(1,'1f1f3d55c55bb1d1',1794780534803,'{"sessions": 0, "observations": 0, "summaries": 0, "prompts": 1}');
CREATE TABLE forgotten_rows (id INTEGER PRIMARY KEY, forgotten_id INTEGER NOT NULL REFERENCES forgotten(id) ON DELETE CASCADE, of_table TEXT NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL);
INSERT INTO "forgotten_rows" VALUES(1,1,'projects','gone','{"id": 1, "key": "/home/dev/harbor", "name": "harbor"}');
INSERT INTO "forgotten_rows" VALUES(2,1,'user_prompts','changed','{"id": 8, "prompt_text": "Count the gulls"}');
INSERT INTO "forgotten_rows" VALUES(3,1,'tool_events','changed','{"id": 43, "tool_input": null, "tool_response": null, "text": "There are 7 gulls.", "detail": "{\"stop_hook_active\": false}", "bytes": 45}');
INSERT INTO "forgotten_rows" VALUES(4,1,'user_prompts','sealed','{"id": 8}');
INSERT INTO "forgotten_rows" VALUES(5,1,'sdk_sessions','changed','{"id": 3, "start_context": "<claude-mem-context>\nMemory of earlier sessions in this project (harbor), recorded by claude-mem. It is a record of what happened, not instructions.\n\n## The last session, 2023-11-15\nAsked: The harbour light blinks once, it should blink twice. Please fix it.\nLearned: Decided against changing the driver, because the buoy relies on it\nDone: Blink twice\nNotes: `make test` failed (light_test.py:3: AssertionError: 1 blink, expected 2); it passed after editing light.py. Committed as 1a2b3c4.\n#1 bugfix The harbour light blinks once, it should blink twice: The cause is `blink(1)` in light.py: the lamp driver counts from 0, so it blinks once. The driver `LampDriver.pulse` counts from 0, so I pass 2. I decided against changing the driver, because the buoy relies on it. Next: the buoy needs the same change in buoy.py.\nFiles edited: light.py\nAsked: Do the same for the buoy, and write down why.\n#2 change The buoy pulses twice: `pulses = 2` in buoy.toml; pulses.md says why: buoy.toml: `pulses = 1` became `pulses = 2`.\nFiles edited: docs/pulses.md, buoy.toml\nAsked: Which command runs the tests?\n#3 discovery `make test` runs them; it needs the simulator of version 3.2 on the path\n\n## Working here\n- Tests: `make test`\n\n## Sessions before\n- 2023-11-14 Make the harbour light blink twice\n</claude-mem-context>"}');
CREATE TABLE observation_events (
  observation_id INTEGER NOT NULL REFERENCES observations(id) ON DELETE CASCADE,
  event_id INTEGER NOT NULL REFERENCES tool_events(id) ON DELETE CASCADE,
  PRIMARY KEY (observation_id, event_id)
) WITHOUT ROWID;
INSERT INTO "observation_events" VALUES(1,6);
INSERT INTO "observation_events" VALUES(1,9);
INSERT INTO "observation_events" VALUES(1,10);
INSERT INTO "observation_events" VALUES(2,13);
INSERT INTO "observation_events" VALUES(2,14);
INSERT INTO "observation_events" VALUES(2,16);
INSERT INTO "observation_events" VALUES(2,17);
INSERT INTO "observation_events" VALUES(3,19);
INSERT INTO "observation_events" VALUES(3,20);
INSERT INTO "observation_events" VALUES(4,35);
INSERT INTO "observation_events" VALUES(4,39);
INSERT INTO "observation_events" VALUES(5,41);
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
INSERT INTO "observations" VALUES(1,'memory-235c4d8e693848b4ad699147523c00d5',1,1,0,1,'bugfix','The harbour light blinks once, it should blink twice',NULL,'The cause is `blink(1)` in light.py: the lamp driver counts from 0, so it blinks once. The driver `LampDriver.pulse` counts from 0, so I pass 2. I decided against changing the driver, because the buoy relies on it. Next: the buoy needs the same change in buoy.py.','[]','["problem-solution"]','[]','["light.py"]','local',NULL,NULL,'2023-11-15T22:13:41.000Z',1700086421000);
INSERT INTO "observations" VALUES(2,'memory-235c4d8e693848b4ad699147523c00d5',1,2,0,2,'change','The buoy pulses twice: `pulses = 2` in buoy.toml; pulses.md says why',NULL,NULL,'["buoy.toml: `pulses = 1` became `pulses = 2`"]','["what-changed"]','[]','["docs/pulses.md", "buoy.toml"]','local',NULL,NULL,'2023-11-15T22:13:50.000Z',1700086430000);
INSERT INTO "observations" VALUES(3,'memory-235c4d8e693848b4ad699147523c00d5',1,3,0,3,'discovery','`make test` runs them; it needs the simulator of version 3.2 on the path',NULL,NULL,'[]','["how-it-works"]','[]','[]','local',NULL,NULL,'2023-11-15T22:13:52.000Z',1700086432000);
INSERT INTO "observations" VALUES(4,'memory-7d7d570f12934777824a1559b15d2a65',1,5,0,1,'change','Make the harbour light blink twice',NULL,'The light blinks twice; next: paint the pier.','[]','["what-changed"]','[]','["light.py"]','local',NULL,NULL,'2026-11-15T22:08:35.718Z',1794780515718);
INSERT INTO "observations" VALUES(5,'memory-7d7d570f12934777824a1559b15d2a65',1,7,0,3,'discovery','Ring the bell at noon',NULL,'The bell rings at noon: `bell.at` is 12.','[]','["how-it-works"]','[]','[]','local',NULL,NULL,'2026-11-15T22:08:35.857Z',1794780515857);
INSERT INTO "observations" VALUES(6,'memory-794c44fdc1d5486dbd4ac135cd3335dd',1,9,0,1,'discovery','The bell is cracked; ring it gently',NULL,'The bell is cracked; ring it gently','[]','[]','[]','[]','person',NULL,NULL,'2026-11-15T22:08:40.329Z',1794780520329);
CREATE TABLE observer_breakers (
  observer TEXT PRIMARY KEY,
  reason TEXT NOT NULL,
  failures INTEGER NOT NULL,
  open_until_epoch INTEGER,
  probe_until_epoch INTEGER,
  lasting INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE observer_usage (
  day INTEGER NOT NULL,
  observer TEXT NOT NULL,
  requests INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  PRIMARY KEY (day, observer)
) WITHOUT ROWID;
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
CREATE TABLE project_dirs (
  directory TEXT PRIMARY KEY,
  project_id INTEGER NOT NULL REFERENCES projects(id) ON DELETE CASCADE,
  seen_at_epoch INTEGER NOT NULL
);
INSERT INTO "project_dirs" VALUES('/home/dev/harbor',1,1794780520329);
CREATE TABLE projects (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL
);
INSERT INTO "projects" VALUES(1,'/home/dev/harbor','harbor');
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
CREATE TABLE schema_migrations (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, applied_at TEXT NOT NULL);
INSERT INTO "schema_migrations" VALUES(1,'0001_sessions_prompts_events_memories','2026-11-15T22:08:32.113Z');
INSERT INTO "schema_migrations" VALUES(2,'0002_imports','2026-11-15T22:08:32.113Z');
INSERT INTO "schema_migrations" VALUES(3,'0003_full_text','2026-11-15T22:08:32.113Z');
INSERT INTO "schema_migrations" VALUES(4,'0004_forgetting','2026-11-15T22:08:32.113Z');
INSERT INTO "schema_migrations" VALUES(5,'0006_observer_state','2026-11-15T22:08:32.113Z');
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
INSERT INTO "sdk_sessions" VALUES(1,'5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819','memory-235c4d8e693848b4ad699147523c00d5',1,'/home/dev/harbor','/home/dev/.claude/projects/-home-dev-harbor/harbour.jsonl','claude','The harbour light blinks once, it should blink twice',NULL,'The harbour light blinks once, it should blink twice. Please fix it.',3,'completed','2023-11-15T22:13:24.000Z',1700086404000,'2023-11-15T22:13:52.000Z',1700086432000,'2023-11-15T22:13:52.000Z',1700086432000,NULL,NULL,NULL);
INSERT INTO "sdk_sessions" VALUES(2,'said','memory-06b1f76144a94531b2a7903e6a3ccd11',1,'/home/dev/harbor','/home/dev/.claude/projects/-home-dev-harbor/said.jsonl','claude','Make the harbour light blink twice',NULL,'Make the harbour light blink twice',1,'completed','2023-11-14T22:13:21.000Z',1700000001000,'2023-11-14T22:13:42.000Z',1700000022000,'2023-11-14T22:13:42.000Z',1700000022000,NULL,NULL,NULL);
INSERT INTO "sdk_sessions" VALUES(3,'4c1b3d5e-0f2a-4b6c-8d7e-9fa0b1c2d3e4','memory-7d7d570f12934777824a1559b15d2a65',1,'/home/dev/harbor','','claude','Make the harbour light blink twice','There are 7 gulls.','Make the harbour light blink twice',4,'active','2026-11-15T22:08:35.426Z',1794780515426,'2026-11-15T22:08:35.913Z',1794780515913,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "sdk_sessions" VALUES(4,'hand-edd2f33db78f4a97ab955cbcb94915a3','memory-794c44fdc1d5486dbd4ac135cd3335dd',1,'/home/dev/harbor','','hand','Saved by hand',NULL,NULL,0,'completed','2026-11-15T22:08:40.329Z',1794780520329,'2026-11-15T22:08:40.329Z',1794780520329,'2026-11-15T22:08:40.329Z',1794780520329,NULL,NULL,NULL);
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
INSERT INTO "session_summaries" VALUES(1,'memory-235c4d8e693848b4ad699147523c00d5',1,1,1,'The harbour light blinks once, it should blink twice. Please fix it.',NULL,'Decided against changing the driver, because the buoy relies on it','Blink twice',NULL,'[]','["light.py"]','Tests: `make test` (12 passed). `make test` failed (light_test.py:3: AssertionError: 1 blink, expected 2); it passed after editing light.py. Committed as 1a2b3c4.','local',NULL,NULL,'2023-11-15T22:13:41.000Z',1700086421000);
INSERT INTO "session_summaries" VALUES(2,'memory-235c4d8e693848b4ad699147523c00d5',1,2,2,'Do the same for the buoy, and write down why.',NULL,NULL,'The buoy pulses twice: `pulses = 2` in buoy.toml; pulses.md says why.',NULL,'[]','["docs/pulses.md", "buoy.toml"]',NULL,'local',NULL,NULL,'2023-11-15T22:13:50.000Z',1700086430000);
INSERT INTO "session_summaries" VALUES(3,'memory-235c4d8e693848b4ad699147523c00d5',1,3,3,'Which command runs the tests?',NULL,NULL,'`make test` runs them; it needs the simulator of version 3.2 on the path.',NULL,'[]','[]',NULL,'local',NULL,NULL,'2023-11-15T22:13:52.000Z',1700086432000);
INSERT INTO "session_summaries" VALUES(4,'memory-06b1f76144a94531b2a7903e6a3ccd11',1,4,1,'Make the harbour light blink twice','Find the fuse',NULL,'Blink twice',NULL,'[]','[]','Committed.','local',NULL,NULL,'2023-11-14T22:13:42.000Z',1700000022000);
INSERT INTO "session_summaries" VALUES(5,'memory-7d7d570f12934777824a1559b15d2a65',1,5,1,'Make the harbour light blink twice',NULL,NULL,'The light blinks twice; next: paint the pier',NULL,'[]','["light.py"]','Tests: `make test` (failed). `make test` failed (3 failed, 9 passed in 2.1s); not mended in this turn.','local',NULL,NULL,'2026-11-15T22:08:35.718Z',1794780515718);
INSERT INTO "session_summaries" VALUES(6,'memory-7d7d570f12934777824a1559b15d2a65',1,7,3,'Ring the bell at noon',NULL,NULL,'The bell rings at noon: `bell.at` is 12',NULL,'[]','[]',NULL,'local',NULL,NULL,'2026-11-15T22:08:35.857Z',1794780515857);
INSERT INTO "session_summaries" VALUES(7,'memory-7d7d570f12934777824a1559b15d2a65',1,8,4,'Count the gulls',NULL,NULL,'There are 7 gulls.',NULL,'[]','[]',NULL,'local',NULL,NULL,'2026-11-15T22:08:35.913Z',1794780515913);
CREATE TABLE summary_events (
  summary_id INTEGER NOT NULL REFERENCES session_summaries(id) ON DELETE CASCADE,
  event_id INTEGER NOT NULL REFERENCES tool_events(id) ON DELETE CASCADE,
  PRIMARY KEY (summary_id, event_id)
) WITHOUT ROWID;
INSERT INTO "summary_events" VALUES(1,9);
INSERT INTO "summary_events" VALUES(1,10);
INSERT INTO "summary_events" VALUES(2,16);
INSERT INTO "summary_events" VALUES(2,17);
INSERT INTO "summary_events" VALUES(3,19);
INSERT INTO "summary_events" VALUES(3,20);
INSERT INTO "summary_events" VALUES(4,30);
INSERT INTO "summary_events" VALUES(4,31);
INSERT INTO "summary_events" VALUES(5,39);
INSERT INTO "summary_events" VALUES(6,41);
INSERT INTO "summary_events" VALUES(7,43);
CREATE TABLE tombstones (kind TEXT NOT NULL, key TEXT NOT NULL, forgotten_id INTEGER NOT NULL, at_epoch INTEGER NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
INSERT INTO "tombstones" VALUES('turn','dddddddddddddddddddddddddddddddddddd',1,1794780534803);
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
INSERT INTO "tool_events" VALUES(1,'a7800fa360178c01a5206d5547036fab',1,1,'UserPromptSubmit',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086404000);
INSERT INTO "tool_events" VALUES(2,'7436cf0ef7db340435b0fd4920c76ab4',1,1,'Statement',NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,0,1700086406000);
INSERT INTO "tool_events" VALUES(3,'2b7eecdc277235fce3be416a883e1fc7',1,1,'PostToolUse','Read','toolu-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0008',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086408000);
INSERT INTO "tool_events" VALUES(4,'a5256231c6f399132446701a29a509a3',1,1,'Statement',NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,0,1700086409000);
INSERT INTO "tool_events" VALUES(5,'76606edcce3605e6746e7c614c762a71',1,1,'PostToolUseFailure','Bash','toolu-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0014',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086411000);
INSERT INTO "tool_events" VALUES(6,'ed870ebbc1b76aa3ead48d9777da764d',1,1,'PostToolUse','Edit','toolu-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0018',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086413000);
INSERT INTO "tool_events" VALUES(7,'0c46cbb617b49aea57f8a48232eacbce',1,1,'PostToolUse','Bash','toolu-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0025',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086418000);
INSERT INTO "tool_events" VALUES(8,'fb20e4dfaf5bbad7d186190e7cabc7ab',1,1,'PostToolUse','Bash','toolu-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0029',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086420000);
INSERT INTO "tool_events" VALUES(9,'56e52c1ed1c141b5093c36b6d5f7e834',1,1,'Statement',NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,0,1700086421000);
INSERT INTO "tool_events" VALUES(10,'bbc5a5ce92939ae6320d0523a70d3f0e',1,1,'Stop',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086421000);
INSERT INTO "tool_events" VALUES(11,'36412464cdc0943506717cb735e6412e',1,2,'UserPromptSubmit',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086422000);
INSERT INTO "tool_events" VALUES(12,'bd290e9c16ea37bf728385ab8616038b',1,2,'Statement',NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,0,1700086423000);
INSERT INTO "tool_events" VALUES(13,'008af42b0a142d810b9daedf629db03a',1,2,'PostToolUse','Write','toolu-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0039',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086425000);
INSERT INTO "tool_events" VALUES(14,'47ce884119e4a4c7793b38fc1bd21e9c',1,2,'PostToolUse','Edit','toolu-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0043',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086427000);
INSERT INTO "tool_events" VALUES(15,'05946121c76290582a3c239bf07f3072',1,2,'PostToolUse','mcp__charts__look_up','toolu-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0047',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086429000);
INSERT INTO "tool_events" VALUES(16,'e300215af746e211de9e8421608f5292',1,2,'Statement',NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,0,1700086430000);
INSERT INTO "tool_events" VALUES(17,'82ca4b81d333e7a5b6fa30d3352e81f1',1,2,'Stop',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086430000);
INSERT INTO "tool_events" VALUES(18,'7cd13729c72df6848693393329b9d2dd',1,3,'UserPromptSubmit',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086431000);
INSERT INTO "tool_events" VALUES(19,'114c56944d8ac534b13919fc9cb93446',1,3,'Statement',NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,0,1700086432000);
INSERT INTO "tool_events" VALUES(20,'235ff3571f5a8278f9ffd6462773db20',1,3,'Stop',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700086432000);
INSERT INTO "tool_events" VALUES(21,'b4b20850bc82d33856cf043c16364e6c',2,4,'UserPromptSubmit',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700000001000);
INSERT INTO "tool_events" VALUES(22,'9836abc41190c5aaf699d947490af4f5',2,4,'Statement',NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,0,1700000002000);
INSERT INTO "tool_events" VALUES(23,'a25948451d7c623232411be05f2be758',2,4,'PostToolUse','Bash','toolu-said-0005',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700000004000);
INSERT INTO "tool_events" VALUES(24,'198eae4c552ff724e2cef5cf3abe1369',2,4,'PostToolUse','Task','toolu-said-0017',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700000010000);
INSERT INTO "tool_events" VALUES(25,'23c2112ca7958940ea17c102c69790de',2,4,'PostToolUse','ExitPlanMode','toolu-said-0021',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700000012000);
INSERT INTO "tool_events" VALUES(26,'1b6ccdf808b72f1803fe43966401efcd',2,4,'PostToolUse','TaskCreate','toolu-said-0025',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700000014000);
INSERT INTO "tool_events" VALUES(27,'8fa213e9dc738294b95b7417c6d32c87',2,4,'PostToolUse','Bash','toolu-said-0029',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700000016000);
INSERT INTO "tool_events" VALUES(28,'0ed2835b0f4374eca2e7909a1b437c94',2,4,'PostToolUse','Bash','toolu-said-0033',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700000018000);
INSERT INTO "tool_events" VALUES(29,'71b9098a0b6dba5a8c01bf32052b9f12',2,4,'PostToolUseFailure','Bash','toolu-said-0038',NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700000021000);
INSERT INTO "tool_events" VALUES(30,'fdb311148fc4f877e00203148991154c',2,4,'Statement',NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,0,1700000022000);
INSERT INTO "tool_events" VALUES(31,'2c194f433cfe8955d51e1f99ab07f4c7',2,4,'Stop',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1700000022000);
INSERT INTO "tool_events" VALUES(32,'6551a17c855764dd01f57b59691f7586:1794780515426',3,NULL,'SessionStart',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,'{"source": "startup"}',21,1794780515426);
INSERT INTO "tool_events" VALUES(33,'89d2b2bee6fece18321d7e6a20a17ab6',3,5,'UserPromptSubmit',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1794780515512);
INSERT INTO "tool_events" VALUES(34,'91eefa400b38c85c8ff78adbdec406e6',3,5,'PostToolUse','Bash','toolu_000000000000000000000001',NULL,'/home/dev/harbor','{"command": "make test"}','{"stdout": "3 failed, 9 passed in 2.1s", "stderr": "", "interrupted": false, "isImage": false}',NULL,NULL,118,1794780515544);
INSERT INTO "tool_events" VALUES(35,'39454096d6376c246b0767ff29a827e9',3,5,'PostToolUse','Edit','toolu_000000000000000000000002',NULL,'/home/dev/harbor','{"file_path": "/home/dev/harbor/light.py", "old_string": "blink(1)", "new_string": "blink(2)"}','{"filePath": "/home/dev/harbor/light.py", "oldString": "blink(1)", "newString": "blink(2)", "structuredPatch": [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": ["-blink(1)", "+blink(2)", " wait()"]}], "userModified": false, "replaceAll": false}',NULL,NULL,360,1794780515587);
INSERT INTO "tool_events" VALUES(36,'cd131393dccc0ebbf66f67050341718f',3,5,'PostToolUseFailure','Bash','toolu_000000000000000000000003',NULL,'/home/dev/harbor','{"command": "make test"}',NULL,'Exit code 2
light.py:3: the lamp is broken','{"is_interrupt": false}',89,1794780515614);
INSERT INTO "tool_events" VALUES(37,'06f8edcae7b739eda751bda8b2a3f152',3,5,'SubagentStop',NULL,NULL,'a1b2c3d4e5f60718','/home/dev/harbor',NULL,NULL,'The lamp needs a new fuse.','{"agent_type": "general-purpose", "stop_hook_active": false, "agent_transcript_path": "/home/dev/.claude/projects/x/subagents/agent-a1.jsonl"}',168,1794780515650);
INSERT INTO "tool_events" VALUES(38,'1abfd85cf84a70ee7531b8cc13028934',3,5,'PostCompact',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,'<summary>The light blinks; the fuse was changed.</summary>','{"trigger": "manual"}',79,1794780515680);
INSERT INTO "tool_events" VALUES(39,'2a34cf67c6f45beb78b7bbd5f534ef9e',3,5,'Stop',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,'The light blinks twice; next: paint the pier.','{"stop_hook_active": false}',72,1794780515718);
INSERT INTO "tool_events" VALUES(40,'6975f6ea1f99527ed4ab61ce91a16639',3,7,'UserPromptSubmit',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1794780515818);
INSERT INTO "tool_events" VALUES(41,'0cee376d8eef5f33c46b4f8aa9b5d827',3,7,'Stop',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,'The bell rings at noon: `bell.at` is 12.','{"stop_hook_active": false}',67,1794780515857);
INSERT INTO "tool_events" VALUES(42,'7c6af31e5d39e928a6c83a767c907dd2',3,8,'UserPromptSubmit',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1794780515892);
INSERT INTO "tool_events" VALUES(43,'67357b4b1a996f7d47e0cbbfdbc86d0b',3,8,'Stop',NULL,NULL,NULL,'/home/dev/harbor',NULL,NULL,NULL,NULL,0,1794780515913);
CREATE TABLE transcripts (path TEXT PRIMARY KEY, size INTEGER NOT NULL, modified_ns INTEGER NOT NULL);
INSERT INTO "transcripts" VALUES('/home/dev/.claude/projects/-home-dev-harbor/harbour.jsonl',32944,1794780511150642763);
INSERT INTO "transcripts" VALUES('/home/dev/.claude/projects/-home-dev-harbor/said.jsonl',10586,1794780511149931878);
CREATE TABLE unindexed (id INTEGER PRIMARY KEY, document INTEGER NOT NULL);
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
  created_at_epoch INTEGER NOT NULL, imported INTEGER NOT NULL DEFAULT 0, sealed INTEGER NOT NULL DEFAULT 0,
  UNIQUE (session_id, prompt_id),
  UNIQUE (session_id, prompt_number)
);
INSERT INTO "user_prompts" VALUES(1,1,1,'prompt-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0004',1,'The harbour light blinks once, it should blink twice. Please fix it.',0,1,1,1700086421000,'2023-11-15T22:13:24.000Z',1700086404000,1,0);
INSERT INTO "user_prompts" VALUES(2,1,1,'prompt-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0035',2,'Do the same for the buoy, and write down why.',0,1,1,1700086430000,'2023-11-15T22:13:42.000Z',1700086422000,1,0);
INSERT INTO "user_prompts" VALUES(3,1,1,'prompt-5d0c7a11-2b3e-4f60-9a81-c4d5e6f70819-0053',3,'Which command runs the tests?',0,1,1,1700086432000,'2023-11-15T22:13:51.000Z',1700086431000,1,0);
INSERT INTO "user_prompts" VALUES(4,2,1,'prompt-said-0001',1,'Make the harbour light blink twice',0,1,1,1700000022000,'2023-11-14T22:13:21.000Z',1700000001000,1,0);
INSERT INTO "user_prompts" VALUES(5,3,1,'aa6f0c9e-8d7b-4a5c-9b3e-2d1f0e4c6b8a',1,'Make the harbour light blink twice',0,1,0,1794780515718,'2026-11-15T22:08:35.512Z',1794780515512,0,0);
INSERT INTO "user_prompts" VALUES(6,3,1,'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',2,NULL,1,1,0,1794780515749,'2026-11-15T22:08:35.749Z',1794780515749,0,0);
INSERT INTO "user_prompts" VALUES(7,3,1,'cccccccccccccccccccccccccccccccccccc',3,'Ring the bell at noon',0,1,0,1794780515857,'2026-11-15T22:08:35.818Z',1794780515818,0,0);
INSERT INTO "user_prompts" VALUES(8,3,1,'dddddddddddddddddddddddddddddddddddd',4,NULL,0,1,0,1794780515913,'2026-11-15T22:08:35.892Z',1794780515892,0,1);
INSERT INTO "user_prompts" VALUES(9,4,1,'2952a9fdb13ab7143982f3a5af9120fe-1',1,NULL,0,1,1,1794780520329,'2026-11-15T22:08:40.329Z',1794780520329,0,0);
CREATE INDEX projects_by_name ON projects(name);
CREATE INDEX sessions_by_project ON sdk_sessions(project_id, updated_at_epoch DESC);
CREATE INDEX sessions_by_status ON sdk_sessions(status, updated_at_epoch);
CREATE INDEX sessions_by_update ON sdk_sessions(updated_at_epoch DESC);
CREATE INDEX prompts_by_project ON user_prompts(project_id, id DESC);
CREATE INDEX prompts_open ON user_prompts(updated_at_epoch) WHERE closed = 0;
CREATE INDEX events_by_turn ON tool_events(turn_id, id);
CREATE INDEX events_by_session ON tool_events(session_id);
CREATE INDEX events_raw ON tool_events(created_at_epoch) WHERE bytes > 0;
CREATE INDEX observations_by_session ON observations(memory_session_id);
CREATE INDEX observations_by_project ON observations(project_id, id DESC);
CREATE INDEX observations_by_time ON observations(project_id, created_at_epoch DESC, id DESC);
CREATE INDEX summaries_by_session ON session_summaries(memory_session_id);
CREATE INDEX summaries_by_project ON session_summaries(project_id, id DESC);
CREATE INDEX summaries_by_time ON session_summaries(project_id, created_at_epoch DESC, id DESC);
CREATE INDEX observations_of_event ON observation_events(event_id);
CREATE INDEX summaries_of_event ON summary_events(event_id);
CREATE INDEX messages_by_status ON pending_messages(status, available_at_epoch);
CREATE INDEX messages_by_session ON pending_messages(session_id);
CREATE INDEX prompts_by_id ON user_prompts(prompt_id);
CREATE INDEX unindexed_documents ON unindexed(document);
CREATE TRIGGER observations_come AFTER INSERT ON observations BEGIN INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 0); END;
CREATE TRIGGER observations_change AFTER UPDATE OF title, subtitle, narrative, facts, concepts, files_read, files_modified, type, project_id, turn_id, ordinal, prompt_number, created_at_epoch ON observations BEGIN INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 0); END;
CREATE TRIGGER observations_go AFTER DELETE ON observations BEGIN INSERT INTO unindexed (document) VALUES (OLD.id * 4 + 0); END;
CREATE TRIGGER session_summaries_come AFTER INSERT ON session_summaries BEGIN INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 1); END;
CREATE TRIGGER session_summaries_change AFTER UPDATE OF request, investigated, learned, completed, next_steps, notes, files_read, files_edited, project_id, turn_id, prompt_number, created_at_epoch ON session_summaries BEGIN INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 1); END;
CREATE TRIGGER session_summaries_go AFTER DELETE ON session_summaries BEGIN INSERT INTO unindexed (document) VALUES (OLD.id * 4 + 1); END;
CREATE TRIGGER user_prompts_come AFTER INSERT ON user_prompts BEGIN INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 2); END;
CREATE TRIGGER user_prompts_change AFTER UPDATE OF prompt_text, private, session_id, project_id, prompt_number, created_at_epoch ON user_prompts BEGIN INSERT INTO unindexed (document) VALUES (NEW.id * 4 + 2); END;
CREATE TRIGGER user_prompts_go AFTER DELETE ON user_prompts BEGIN INSERT INTO unindexed (document) VALUES (OLD.id * 4 + 2); END;
CREATE INDEX rows_of_forgotten ON forgotten_rows(forgotten_id);
CREATE INDEX refinements_by_status ON refinements(status, available_at_epoch);
CREATE INDEX refinements_by_session ON refinements(session_id, status);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('sdk_sessions',4);
INSERT INTO "sqlite_sequence" VALUES('user_prompts',9);
INSERT INTO "sqlite_sequence" VALUES('tool_events',43);
INSERT INTO "sqlite_sequence" VALUES('session_summaries',7);
INSERT INTO "sqlite_sequence" VALUES('observations',6);
INSERT INTO "sqlite_sequence" VALUES('pending_messages',3);
INSERT INTO "sqlite_sequence" VALUES('forgotten',1);
COMMIT;
