"""What the user or an agent changes in stored memories: their text, a pin, a mark as wrong.

A memory with such a change is protected: observers, models and imports never overwrite it. An agent
cannot change what the user changed or said, and so can never make or confirm a rule. Nor can it
edit or pin facts: what they count is what happened.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Literal

from claude_mem.errors import BadInput, NotFound
from claude_mem.store import outside_words

Editor = Literal["person", "agent"]
Kind = Literal["observation", "summary", "prompt", "fact"]
Value = str | tuple[str, ...] | None

TABLES: dict[str, str] = {
    "observation": "observations",
    "summary": "session_summaries",
    "prompt": "user_prompts",
    "fact": "facts",
}
# What can be edited; a prompt is a record of what was typed.
FIELDS: dict[str, tuple[str, ...]] = {
    "observation": ("type", "title", "subtitle", "narrative", "facts", "concepts"),
    "summary": ("request", "investigated", "learned", "completed", "next_steps", "notes"),
    "prompt": (),
    "fact": ("subject", "value", "scope"),
}
LISTS = ("facts", "concepts")
PROTECTED = "(edited <> 0 OR pinned <> 0 OR wrong <> 0)"  # of observations and summaries
_PREFIX = {"observation": "#", "summary": "S", "prompt": "P", "fact": "F"}


def edit(
    connection: sqlite3.Connection,
    kind: str,
    number: int,
    values: Mapping[str, Value],
    editor: Editor,
    outside: Sequence[str] = (),
) -> int:
    """Replaces these fields; returns the project's id. `outside`: hashes of the words that an
    agent has from outside."""
    row = _row(connection, kind, number, editor)
    if kind == "fact" and editor == "agent":
        raise BadInput("only the user can edit a fact; mark it as wrong instead", "id")
    unknown = sorted(values.keys() - set(FIELDS[kind]))
    if unknown:
        allowed = ", ".join(FIELDS[kind]) or "nothing: it is a record of what was typed"
        raise BadInput(f"{unknown[0]} is not a field of a {kind}; it has {allowed}", unknown[0])
    if not values:
        raise BadInput(f"set at least one of {', '.join(FIELDS[kind])}", "id")
    if kind == "fact":
        return _edit_fact(connection, row, values, editor)
    stored = {
        name: json.dumps(value, ensure_ascii=False) if name in LISTS else value
        for name, value in values.items()
    }
    texts = {**dict(row), **stored}
    if not any(texts[name] for name in FIELDS[kind] if name not in ("type", *LISTS)):
        raise BadInput(f"a {kind} needs a text: to remove it, use forget or wrong", "id")
    if outside:
        outside_words.add(connection, row["turn_id"], outside)
    return _update(connection, kind, row, {**stored, "edited": 1}, editor)


def _edit_fact(
    connection: sqlite3.Connection, row: sqlite3.Row, values: Mapping[str, Value], editor: Editor
) -> int:
    """Edits a fact for the user. A turn that reveals the original again is one more source of the
    edited fact."""
    new = {name: str(values.get(name, row[name]) or "") for name in FIELDS["fact"]}
    if not new["value"]:
        raise BadInput("a fact needs a value: to remove it, use wrong", "value")
    same = connection.execute(
        "SELECT id FROM facts WHERE project_id = ? AND kind = ? AND scope = ? AND subject = ?"
        " AND value = ? AND id <> ?",
        (row["project_id"], row["kind"], new["scope"], new["subject"], new["value"], row["id"]),
    ).fetchone()
    if same is not None:
        raise BadInput(f"the project has this fact already: F{same[0]}", "value")
    changes: dict[str, object] = dict(new)
    if row["original_value"] is None:
        changes |= {f"original_{name}": row[name] for name in FIELDS["fact"]}
    changes["origin"] = "person"
    changes["status"] = "holds" if row["status"] == "candidate" else row["status"]
    return _update(connection, "fact", row, changes, editor)


def set_pinned(
    connection: sqlite3.Connection, kind: str, number: int, pinned: bool, editor: Editor
) -> int:
    row = _row(connection, kind, number, editor)
    if kind == "fact" and editor == "agent":
        raise BadInput("only the user can pin a fact", "id")
    return _update(connection, kind, row, {"pinned": int(pinned)}, editor)


def set_wrong(
    connection: sqlite3.Connection, kind: str, number: int, wrong: bool, editor: Editor
) -> int:
    row = _row(connection, kind, number, editor)
    if kind != "fact":
        return _update(connection, kind, row, {"wrong": int(wrong)}, editor)
    if not wrong and row["status"] != "wrong":
        return int(row["project_id"])
    restored = "past" if row["superseded_by"] is not None else "holds"
    return _update(connection, kind, row, {"status": "wrong" if wrong else restored}, editor)


def confirm(connection: sqlite3.Connection, number: int, editor: Editor) -> int:
    """A candidate holds from now on."""
    row = _row(connection, "fact", number, editor)
    if row["status"] not in ("candidate", "holds"):
        raise BadInput(f"F{number} is {row['status']}: only a candidate can be confirmed", "id")
    origin = "person" if row["origin"] == "outside" else row["origin"]
    return _update(connection, "fact", row, {"status": "holds", "origin": origin}, editor)


def _row(connection: sqlite3.Connection, kind: str, number: int, editor: Editor) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(
        f"SELECT * FROM {TABLES[kind]} WHERE id = ?", (number,)
    ).fetchone()
    name = f"{_PREFIX[kind]}{number}"
    if row is None or (kind == "prompt" and (row["private"] or row["prompt_text"] is None)):
        raise NotFound(f"there is no memory {name}")
    if editor == "agent" and _is_of_user(kind, row):
        raise BadInput(f"{name} is the user's: only the user can change it", "id")
    return row


def _is_of_user(kind: str, row: sqlite3.Row) -> bool:
    if kind == "prompt" or row["changed_by"] == "person":
        return True
    return kind in ("observation", "fact") and row["origin"] == "person"


def _update(
    connection: sqlite3.Connection,
    kind: str,
    row: sqlite3.Row,
    changes: Mapping[str, object],
    editor: Editor,
) -> int:
    """Records who changed it; a pin or mark that is undone leaves no trace."""
    after = {**dict(row), **changes}
    is_changed = kind == "fact" or after.get("edited") or after["pinned"] or after["wrong"]
    values = {**changes, "changed_by": editor if is_changed else None}
    assignments = ", ".join(f"{name} = :{name}" for name in values)
    connection.execute(
        f"UPDATE {TABLES[kind]} SET {assignments} WHERE id = :id", {**values, "id": row["id"]}
    )
    return int(row["project_id"])


def protected_ordinals(connection: sqlite3.Connection, turn_id: int) -> set[int]:
    """Returns those of the turn's observations that observers leave as they are."""
    rows = connection.execute(
        f"SELECT ordinal FROM observations WHERE turn_id = ? AND {PROTECTED}", (turn_id,)
    )
    return {row[0] for row in rows}


def has_protected_summary(connection: sqlite3.Connection, turn_id: int) -> bool:
    row = connection.execute(
        f"SELECT 1 FROM session_summaries WHERE turn_id = ? AND {PROTECTED}", (turn_id,)
    ).fetchone()
    return row is not None


def has_protected(connection: sqlite3.Connection, turn_id: int) -> bool:
    return has_protected_summary(connection, turn_id) or bool(
        protected_ordinals(connection, turn_id)
    )
