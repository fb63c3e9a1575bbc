"""One record that hangs or kills its worker does not stop the others.

Real worker processes, killed or hung at a point of the intake.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from claude_mem.config import Layout
from claude_mem.hook import spooling as hook_spool
from claude_mem.intake import rejected_events
from claude_mem.intake.crash_mark import CrashMark
from claude_mem.intake.event_reader import EventHeader, EventReader
from claude_mem.intake.spool import Intake
from claude_mem.redaction import Redactor
from claude_mem.types import Event, Json
from claude_mem.worker.lock import is_held
from tests.conftest import Home, wait_until
from tests.payloads import as_bytes, prompt, stop, tool
from tests.story import Story

TOKEN = "ghp_" + "Zx9Y" * 10


def arm(home: Home, tmp_path: Path, point: str, action: str = "") -> Path:
    marker = tmp_path / "armed"
    marker.write_text(action)
    home.environment["CLAUDE_MEM_FAULT"] = f"{point}:{marker}"
    return marker


def die_once(home: Home, tmp_path: Path, point: str, action: str = "") -> None:
    """Starts a worker, which hits the first record of the spool and ends."""
    marker = arm(home, tmp_path, point, action)
    home.hook(tool(), "Wake")
    wait_until(lambda: not marker.exists(), f"the end at {point}")
    wait_until(lambda: not is_held(home.layout), "the worker's end")


def spool_events(home: Home) -> None:
    """Spools events without a worker: the first of three is the bad one."""
    events = (tool(tool_response={"stdout": f"export GITHUB_TOKEN={TOKEN}"}), prompt(), stop())
    for number, payload in enumerate(events):
        head = hook_spool.header(b"claude", payload["hook_event_name"].encode(), number + 1, b"/x")
        hook_spool.put(bytes(home.layout.root), head, as_bytes(payload))


@pytest.mark.parametrize("action", ["", "hang"], ids=["kill", "hang"])
def test_a_record_that_ends_its_worker_twice_is_set_aside_and_the_others_go_on(
    home: Home, tmp_path: Path, action: str
) -> None:
    home.environment["CLAUDE_MEM_EVENT_SECONDS"] = "1"
    spool_events(home)
    die_once(home, tmp_path, "intake.before_read", action)
    assert len(list(home.layout.spool.glob("*.event"))) == 3
    assert rejected_events.records_set_aside(home.layout) == []
    die_once(home, tmp_path, "intake.before_read", action)
    home.start_worker()
    home.wait_settled()
    stored = home.rows("SELECT event FROM tool_events ORDER BY id")
    assert [row["event"] for row in stored] == ["UserPromptSubmit", "Stop"]
    (aside,) = rejected_events.records_set_aside(home.layout)
    assert TOKEN.encode() not in aside.read_bytes() and b"[redacted:" in aside.read_bytes()
    # The user is told at the next start of a session, in status and by doctor.
    line = json.loads(home.hook(b'{"session_id":"s","source":"startup"}', "SessionStart").stdout)
    assert "hang or die twice" in line["systemMessage"]
    assert "1 set aside" in home.command("status").stdout
    assert "made the worker hang or die" in home.command("doctor").stdout
    # It can be tried again: it is a record like any other.
    aside.rename(home.layout.spool / aside.name)
    home.hook(stop(prompt_id="another"))
    home.wait_settled()
    assert home.rows("SELECT 1 FROM tool_events WHERE event = 'PostToolUse'")


def test_a_record_whose_worker_died_once_is_stored(home: Home, tmp_path: Path) -> None:
    spool_events(home)
    die_once(home, tmp_path, "intake.before_read")
    home.start_worker()
    home.wait_settled()
    assert len(home.rows("SELECT * FROM tool_events")) == 3
    home.kill_worker()
    spool_events(home)
    die_once(home, tmp_path, "intake.before_read")
    home.start_worker()
    home.wait_settled()
    assert rejected_events.records_set_aside(home.layout) == [], "two records, each once"


def test_workers_that_die_while_they_store_a_batch_accuse_no_record_of_it(
    home: Home, tmp_path: Path
) -> None:
    spool_events(home)
    for _ in range(2):
        die_once(home, tmp_path, "intake.before_commit")
    # The records are stored one by one now: the next death accuses the first of them.
    die_once(home, tmp_path, "intake.before_commit")
    home.start_worker()
    home.wait_settled()
    assert len(rejected_events.records_set_aside(home.layout)) <= 1
    assert len(home.rows("SELECT * FROM tool_events")) >= 2


HOLDING_THE_LOCK = """
import re, sys
from claude_mem.intake.watchdog import Watchdog
watchdog = Watchdog()
with open(sys.argv[1], "w") as log:
    watchdog.start(log)
    with watchdog.limit(0.2) as step:
        step.advance()
    with watchdog.limit(3600), watchdog.limit(1):
        re.match("(a+)+$", "a" * 60 + "b")  # for years, and no other thread runs meanwhile
"""


def test_the_watchdog_ends_a_process_whose_interpreter_is_locked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ended = subprocess.run([sys.executable, "-c", HOLDING_THE_LOCK, log], timeout=60)
    assert ended.returncode == 1
    assert "Timeout" in log.read_text() and 'File "<string>", line 10' in log.read_text()


def test_redaction_that_hangs_leaves_only_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(tmp_path)
    layout.create()
    monkeypatch.setattr(rejected_events, "REDACTION_SECONDS", 0.001)  # nothing starts so fast
    head = hook_spool.header(b"claude", b"Stop", 1, b"/home/dev/harbor")
    hook_spool.put(os.fsencode(tmp_path), head, b'{"text": "export GITHUB_TOKEN=' + TOKEN.encode())
    (path,) = layout.spool.glob("*.event")
    rejected_events.set_aside(layout, path, ())
    (aside,) = rejected_events.records_set_aside(layout)
    assert aside.read_bytes() == head


# What is no regular file, or far too large


def test_a_fifo_and_a_huge_file_in_the_spool_are_rejected_without_waiting(story: Story) -> None:
    os.mkfifo(story.layout.spool / "00000000000000000001-1.event")
    with (story.layout.spool / "00000000000000000002-1.event").open("wb") as file:
        file.truncate(1 << 33)  # sparse
    head = hook_spool.header(b"claude", b"UserPromptSubmit", 3, b"/x")
    hook_spool.put(os.fsencode(story.layout.root), head, as_bytes(prompt()))
    counts = Intake(story.layout, story.store, story.reader).drain()
    assert (counts.rejected, counts.stored) == (2, 1)
    sizes = [path.stat().st_size for path in rejected_events.rejected(story.layout)]
    assert len(sizes) == 2 and max(sizes) < 200


class Defective(EventReader):
    """Fails on one prompt with an error that nobody expects."""

    def read(self, header: EventHeader, payload: Mapping[str, Json]) -> Event:
        if payload.get("prompt") == "Break":
            raise TypeError("unexpected shape")
        return super().read(header, payload)


def test_an_event_on_which_the_reader_fails_in_any_way_is_rejected_alone(story: Story) -> None:
    for number, text in enumerate(("Break", "Light the lamp", "Paint the pier")):
        head = hook_spool.header(b"claude", b"UserPromptSubmit", number + 1, b"/x")
        payload = as_bytes(prompt(text, prompt_id=f"p{number}"))
        hook_spool.put(os.fsencode(story.layout.root), head, payload)
    reader = Defective(story.reader.redactor, story.reader.projects)
    counts = Intake(story.layout, story.store, reader).drain()
    assert (counts.rejected, counts.stored) == (1, 2)
    assert not list(story.layout.spool.glob("*.event"))


# Bounded leftovers


def test_rejected_payloads_are_redacted_as_json(story: Story) -> None:
    """In the raw text the escape hides the secret from the patterns."""
    spelled = TOKEN.replace("Z", "\\u005a")
    payload = f'{{"session_id": 5, "note": "export GITHUB_TOKEN={spelled}"}}'
    head = hook_spool.header(b"claude", b"Stop", 1, b"/x")
    hook_spool.put(os.fsencode(story.layout.root), head, payload.encode())
    Intake(story.layout, story.store, story.reader).drain()
    (rejected,) = rejected_events.rejected(story.layout)
    record = rejected.read_bytes()
    assert record.startswith(head)
    assert spelled.encode() not in record and TOKEN.encode() not in record
    assert json.loads(record.partition(b"\n")[2])["session_id"] == 5


@pytest.mark.parametrize(
    ("count", "size", "age_days", "kept"),
    [(3, 10, 0, 3), (250, 10, 0, rejected_events.MAX_FILES), (5, 600_000, 0, 3), (3, 10, 31, 0)],
)
def test_leftovers_are_bounded_in_number_size_and_age(
    tmp_path: Path, count: int, size: int, age_days: int, kept: int
) -> None:
    layout = Layout(tmp_path)
    layout.create()
    now = 1_800_000_000.0
    for directory in (layout.rejected, layout.set_aside):
        for number in range(count):
            path = directory / f"{number:020d}-1.event"
            path.write_bytes(b"x" * size)
            os.utime(path, (now - age_days * 86_400,) * 2)
    rejected_events.trim(layout, 30, 2, now)
    newest = [f"{number:020d}-1.event" for number in range(count - kept, count)]
    assert [path.name for path in rejected_events.rejected(layout)] == newest
    assert [path.name for path in rejected_events.records_set_aside(layout)] == newest


def test_a_long_rejected_payload_is_cut() -> None:
    record = rejected_events.redacted_record(b"head\n" + b"x" * 3_000_000, Redactor())
    assert len(record) < rejected_events.MAX_FILE_BYTES + 100 and b"[cut:" in record


def test_a_mark_that_is_damaged_accuses_nobody(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.create()
    layout.intake_mark.write_bytes(b"x.event")
    layout.intake_suspects.write_bytes(b"[")
    assert CrashMark(layout).after_crash() == (True, None)
    assert CrashMark(layout).after_crash() == (False, None), "each death counts once"
