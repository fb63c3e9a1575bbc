"""Messages of the client that earlier versions stored as prompts of the user.

A released migration uses this, so it imports nothing that may change.
"""

import json
import sqlite3

STATEMENTS = (
    "ALTER TABLE user_prompts ADD COLUMN notice INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE user_prompts ADD COLUMN parent_turn INTEGER",
    "CREATE INDEX turns_by_parent ON user_prompts(parent_turn) WHERE parent_turn IS NOT NULL",
    # No foreign key: undo restores turns in any order.
    "CREATE TRIGGER user_prompts_go_parent AFTER DELETE ON user_prompts BEGIN"
    " UPDATE user_prompts SET parent_turn = NULL WHERE parent_turn = OLD.id; END",
)
_BEGIN = "<task-notification>"
_TITLE = "(a background task reported)"


def convert_prompts(connection: sqlite3.Connection) -> None:
    rows = connection.execute(
        "SELECT id, session_id, prompt_number, prompt_text FROM user_prompts"
        " WHERE ltrim(prompt_text) LIKE ?",
        (f"{_BEGIN}%",),
    ).fetchall()
    for turn_id, session_id, number, text in rows:
        connection.execute(
            "UPDATE user_prompts SET notice = 1, prompt_text = NULL, parent_turn = (SELECT t.id"
            " FROM tool_events e JOIN user_prompts t ON t.id = e.turn_id WHERE e.session_id = ?"
            " AND e.tool_use_id = ? AND t.prompt_number < ? LIMIT 1) WHERE id = ?",
            (session_id, _content(text, "tool-use-id").strip(), number, turn_id),
        )
        reports = [_content(text, tag).strip() for tag in ("summary", "result")]
        words = [["report", "subagent", report] for report in reports if report]
        connection.execute(
            "UPDATE tool_events SET words = ?, bytes = bytes + 1 WHERE turn_id = ?"
            " AND event = 'UserPromptSubmit' AND words IS NULL",
            (json.dumps(words, ensure_ascii=False), turn_id),
        )
    connection.execute(
        "UPDATE sdk_sessions SET user_prompt = (SELECT prompt_text FROM user_prompts t"
        " WHERE t.session_id = sdk_sessions.id AND prompt_text IS NOT NULL"
        " ORDER BY prompt_number LIMIT 1) WHERE ltrim(user_prompt) LIKE ?",
        (f"{_BEGIN}%",),
    )
    connection.execute("UPDATE sdk_sessions SET title = NULL WHERE title LIKE ?", (f"{_TITLE}%",))


def _content(text: str, tag: str) -> str:
    return str(text).partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
