"""Summaries of versions that wrote commands, faults and open steps as sentences.

Read once: by the migration that gives them columns, and when an older export is restored. The
sentences that become values leave the notes, unless a model wrote the notes: then they stay.
A released migration uses this, so it imports nothing that may change.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

COLUMNS = ("commands", "faults", "open_steps")

_TESTS = re.compile(r"Tests: `([^`]{1,400})` \(([^)]{0,100})\)\. ?")
_FAULT = re.compile(r"`([^`]{1,400})` failed \(([^`]{1,300}?)\); `([^`]{1,400})` worked\. ?")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？؟])\s+")
_QUESTION_MARKS = ("?", "？", "؟")


def facts_of_notes(row: Mapping[str, Any]) -> dict[str, str | None]:
    """The new columns for a row of `session_summaries`, and its notes without their content."""
    notes = row.get("notes") or ""
    runs = [_run(command, result) for command, result in _TESTS.findall(notes)]
    faults = [_fault(*groups) for groups in _FAULT.findall(notes)]
    steps = _open_steps(row.get("next_steps") or "")
    if row.get("model") is None:
        notes = _FAULT.sub("", _TESTS.sub("", notes)).strip()
    return {
        "commands": json.dumps(runs, ensure_ascii=False),
        "faults": json.dumps(faults, ensure_ascii=False),
        "open_steps": json.dumps(steps, ensure_ascii=False),
        "notes": notes or None,
    }


def _run(command: str, result: str) -> dict[str, object]:
    counts = result if any(character.isdigit() for character in result) else ""
    outcome = "failed" if "failed" in result else "passed"
    return {"command": command, "purpose": "test", "outcome": outcome, "counts": counts,
            "sources": []}  # fmt: skip


def _fault(command: str, error: str, alternative: str) -> dict[str, object]:
    return {"command": command, "error": error, "alternative": alternative, "sources": []}


def _open_steps(text: str) -> list[dict[str, object]]:
    """Each sentence but questions: what was offered ends with its session."""
    sentences = _SENTENCE_END.split(text.strip())
    return [{"text": s, "sources": []} for s in sentences if s and not s.endswith(_QUESTION_MARKS)]
