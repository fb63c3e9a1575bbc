"""Databases as the TypeScript claude-mem wrote them, in every generation of its schema."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from claude_mem.redaction import Redactor
from claude_mem.store.transfer.typescript.importer import DatabaseReport, import_typescript
from tests.story import Story

T = 1_750_000_000_000
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2

# Its generations, by what they call things and what they have. The times are always
# `created_at` and `created_at_epoch`, but for a session's `started_at`.
FIRST = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, claude_session_id TEXT UNIQUE NOT NULL,
  sdk_session_id TEXT UNIQUE, project TEXT NOT NULL, user_prompt TEXT, started_at TEXT NOT NULL,
  started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER, status TEXT);
CREATE TABLE observations (id INTEGER PRIMARY KEY, sdk_session_id TEXT NOT NULL,
  project TEXT NOT NULL, text TEXT NOT NULL, type TEXT NOT NULL, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, sdk_session_id TEXT NOT NULL,
  project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT,
  next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL);
"""
_PROMPTS = """
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, {id} TEXT NOT NULL,
  prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL);
"""
_FIELDS = ("title", "subtitle", "facts", "narrative", "concepts", "files_read", "files_modified")
HIERARCHICAL = (
    FIRST.replace("text TEXT NOT NULL,", "text TEXT,")
    + "".join(f"ALTER TABLE observations ADD COLUMN {name} TEXT;\n" for name in _FIELDS)
    + "ALTER TABLE observations ADD COLUMN prompt_number INTEGER;\n"
    "ALTER TABLE session_summaries ADD COLUMN prompt_number INTEGER;\n"
    "ALTER TABLE sdk_sessions ADD COLUMN prompt_counter INTEGER DEFAULT 0;\n"
    + _PROMPTS.format(id="claude_session_id")
)
RENAMED = (
    HIERARCHICAL.replace("claude_session_id", "content_session_id").replace(
        "sdk_session_id", "memory_session_id"
    )
    + "ALTER TABLE observations ADD COLUMN discovery_tokens INTEGER DEFAULT 0;\n"
    "ALTER TABLE session_summaries ADD COLUMN discovery_tokens INTEGER DEFAULT 0;\n"
)
LATEST = (
    RENAMED.replace("content_session_id TEXT UNIQUE NOT NULL", "content_session_id TEXT NOT NULL")
    + "ALTER TABLE sdk_sessions ADD COLUMN custom_title TEXT;\n"
    "ALTER TABLE sdk_sessions ADD COLUMN platform_source TEXT NOT NULL DEFAULT 'claude';\n"
    "ALTER TABLE observations ADD COLUMN content_hash TEXT;\n"
    "ALTER TABLE observations ADD COLUMN generated_by_model TEXT;\n"
    "ALTER TABLE user_prompts ADD COLUMN session_db_id INTEGER;\n"
    "CREATE INDEX by_session ON observations(memory_session_id);\n"
    "CREATE VIRTUAL TABLE observations_fts USING fts5(title, content='observations');\n"
)
GENERATIONS = {"first": FIRST, "hierarchical": HIERARCHICAL, "renamed": RENAMED, "latest": LATEST}
_OLD_NAMES = {"content_session_id": "claude_session_id", "memory_session_id": "sdk_session_id"}


class LegacyDatabase:
    """A database that the other program left, in the words of its latest version."""

    def __init__(self, path: Path, schema: str = LATEST) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(schema)

    def add(self, table: str, **values: Any) -> None:
        """Adds a row as far as this generation has the columns."""
        with closing(sqlite3.connect(self.path)) as connection:
            has = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            renamed = {
                name if name in has else _OLD_NAMES.get(name, name): value
                for name, value in values.items()
            }
            present = {name: value for name, value in renamed.items() if name in has}
            places = ", ".join("?" * len(present))
            connection.execute(
                f"INSERT INTO {table} ({', '.join(present)}) VALUES ({places})",
                tuple(present.values()),
            )
            connection.commit()

    def session(self, name: str = "c1", **values: Any) -> None:
        self.add("sdk_sessions", **{
            "content_session_id": name, "memory_session_id": f"m-{name}", "project": "harbor",
            "user_prompt": "Blink twice", "started_at": "2025-06-15T15:06:40Z",
            "started_at_epoch": T, "status": "completed", **values,
        })  # fmt: skip

    def prompt(self, number: int, text: str, session: str = "c1", **values: Any) -> None:
        self.add("user_prompts", **{
            "content_session_id": session, "prompt_number": number, "prompt_text": text,
            "created_at": "x", "created_at_epoch": T + number * 1000, **values,
        })  # fmt: skip

    def observation(self, title: Any, session: str = "c1", **values: Any) -> None:
        self.add("observations", **{
            "memory_session_id": f"m-{session}", "project": "harbor", "type": "discovery",
            "title": title, "text": title or "", "prompt_number": 1, "created_at": "x",
            "created_at_epoch": T + 1500, **values,
        })  # fmt: skip

    def summary(self, request: str, session: str = "c1", **values: Any) -> None:
        self.add("session_summaries", **{
            "memory_session_id": f"m-{session}", "project": "harbor", "request": request,
            "prompt_number": 1, "created_at": "x", "created_at_epoch": T + 1800, **values,
        })  # fmt: skip


def imported(story: Story, legacy: LegacyDatabase) -> DatabaseReport:
    return import_typescript(story.store, legacy.path, Redactor())


def everything(story: Story) -> list[list[dict[str, Any]]]:
    tables = ("projects", "sdk_sessions", "user_prompts", "observations", "session_summaries")
    return [story.rows(f"SELECT * FROM {table}") for table in tables]
