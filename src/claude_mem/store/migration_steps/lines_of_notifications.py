"""Lines behind a notification of the client, which earlier versions stored as prompts of the user.

A released migration uses this, so it imports nothing that may change.
"""

import re
import sqlite3

_BEGINNINGS = ("Full transcript available at: ", "Read the output file to retrieve the result: ")
_LINE = re.compile(rf"\s*(?:{'|'.join(_BEGINNINGS)})\S+\s*")


def convert_prompts(connection: sqlite3.Connection) -> None:
    for table, column in (("user_prompts", "prompt_text"), ("sdk_sessions", "user_prompt")):
        rows = connection.execute(
            f"SELECT id, {column} FROM {table} WHERE ltrim({column}) LIKE ? OR ltrim({column})"
            " LIKE ?",
            [f"{beginning}%" for beginning in _BEGINNINGS],
        ).fetchall()
        ids = [(row_id,) for row_id, text in rows if _LINE.fullmatch(text)]
        notice = ", notice = 1" if table == "user_prompts" else ""
        connection.executemany(f"UPDATE {table} SET {column} = NULL{notice} WHERE id = ?", ids)
