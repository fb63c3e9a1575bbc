"""Exports of a store, written, read and restored by tests."""

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.store.transfer.restore import RestoreReport, restore
from tests.payloads import (
    SESSION,
    bash,
    edit,
    private_prompt,
    prompt,
    session_start,
    stop,
    tool,
)
from tests.story import Story

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
HEADER = b'{"format":"claude-mem-export","version":1,"schema":[]}'


def dump(store: Store, project_id: int | None = None) -> bytes:
    out = io.BytesIO()
    store.export(out.write, project_id)
    return out.getvalue()


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def rows_of(data: bytes, table: str) -> list[dict[str, Any]]:
    return [line for line in lines(data) if line.get("table") == table]


def as_file(directory: Path, *records: dict[str, Any] | bytes, end: bool = True) -> Path:
    """An export with these lines."""
    texts = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in records]
    last = [json.dumps({"records": len(texts)}).encode()] if end else []
    path = directory / "lines.jsonl"
    path.write_bytes(b"\n".join([HEADER, *texts, *last]) + b"\n")
    return path


def restored(story: Story, data: bytes | Path, *, is_own: bool = True) -> RestoreReport:
    path = data if isinstance(data, Path) else story.layout.root.parent / "in.jsonl"
    if isinstance(data, bytes):
        path.write_bytes(data)
    return restore(story.store, path, Redactor(), is_own=is_own)


def sound(story: Story) -> bool:
    with closing(sqlite3.connect(story.layout.database)) as connection:
        return not connection.execute("PRAGMA foreign_key_check").fetchall()


def live(story: Story) -> Story:
    """A session with all that can be in a database: done, private, waiting and open turns."""
    story.tell(session_start(), prompt(), tool(), edit(),
               bash("cat charts.txt", "buoy " * 2_000),  # too long to be stored as a whole
               bash("make test", "3 passed\nthe light blinks twice now"), stop())  # fmt: skip
    story.distil()
    context = "<claude-mem-context>\nMemory: ‹claude-mem-context> was said\n</claude-mem-context>"
    story.store.remember_start_context(SESSION, context).result()
    story.tell(
        private_prompt(prompt_id="secret"), tool(prompt_id="secret"), stop(prompt_id="secret")
    )
    story.tell(prompt(f"the key is {SECRET} \0 😀", prompt_id="p3"), edit(prompt_id="p3"))
    story.tell(stop(prompt_id="p3"), edit(prompt_id=None, tool_use_id="late"))
    story.tell(prompt("Another harbour", session_id="s2", prompt_id="q1"), stop(session_id="s2"),
               project_dir="/home/dev/lighthouse")  # fmt: skip
    story.claim()
    story.tell(prompt("still at it", prompt_id="p4"), tool(prompt_id="p4"))
    return story
