"""What time brings, with a clock that a test turns."""

import os
from pathlib import Path

import pytest

from claude_mem.config import load_settings
from claude_mem.intake import spool
from claude_mem.worker.housekeeping import DAY, HOUR, MINUTE, Housekeeping
from tests.payloads import prompt, stop, tool
from tests.story import Story


@pytest.fixture
def keeper(story: Story, tmp_path: Path) -> Housekeeping:
    settings = load_settings({"CLAUDE_MEM_DATA_DIR": str(tmp_path / "data")})
    settings.layout.create()
    return Housekeeping(settings.layout, story.store, settings.sessions, settings.retention)


def test_a_turn_without_an_event_for_long_is_closed_and_queued(
    story: Story, keeper: Housekeeping
) -> None:
    story.tell(prompt(), tool())
    assert keeper.tick(story.now + 29 * MINUTE) == 0
    assert story.queue() == {}
    assert keeper.tick(story.now + 31 * MINUTE) == 1
    assert story.queue() == {"pending": 1}


def test_a_session_without_an_event_for_a_day_is_interrupted(
    story: Story, keeper: Housekeeping
) -> None:
    story.tell(prompt(), stop())
    keeper.tick(story.now + 23 * HOUR)
    assert story.session()["status"] == "active"
    keeper.tick(story.now + 25 * HOUR)
    assert story.session()["status"] == "interrupted"
    story.now += 26 * HOUR
    story.tell(prompt("I am back", prompt_id="later"))
    assert story.session()["status"] == "active"


def test_raw_events_are_kept_for_thirty_days(story: Story, keeper: Housekeeping) -> None:
    story.tell(prompt(), tool(), stop())
    story.distil()
    keeper.tick(story.now + 29 * DAY)
    assert story.column("SELECT tool_input FROM tool_events WHERE event = 'PostToolUse'") != [None]
    keeper.tick(story.now + 31 * DAY)
    assert story.column("SELECT tool_input FROM tool_events WHERE event = 'PostToolUse'") == [None]
    assert len(story.column("SELECT id FROM session_summaries")) == 1


def test_a_backup_is_made_once_a_day_and_never_of_nothing(
    story: Story, keeper: Housekeeping
) -> None:
    backups = keeper._layout.backups
    now = 1_800_000_000_000
    keeper.tick(now)
    assert list(backups.glob("memory-*.db")) == []
    story.tell(prompt(), stop())
    story.distil()
    keeper.tick(now)
    (first,) = backups.glob("memory-*.db")
    os.utime(first, (now / 1000, now / 1000))
    keeper.tick(now + DAY - MINUTE)
    assert len(list(backups.glob("memory-*.db"))) == 1
    keeper.tick(now + DAY)
    assert len(list(backups.glob("memory-*.db"))) == 2


def test_half_written_records_go_after_an_hour_and_whole_ones_stay(keeper: Housekeeping) -> None:
    directory = keeper._layout.spool
    partial, complete = directory / ".0000-1", directory / f"{1:020d}-1.event"
    for path in (partial, complete):
        path.write_text("x")
        os.utime(path, (1000, 1000))
    keeper.tick(1_000_000 + HOUR - MINUTE)
    assert partial.exists()
    keeper.tick(1_000_000 + HOUR + MINUTE)
    assert not partial.exists() and complete.exists()


def test_a_long_backlog_is_reported_once_a_day_and_never_deleted(keeper: Housekeeping) -> None:
    layout = keeper._layout
    now = 1_800_000_000_000
    record = layout.spool / f"{(now - 30 * HOUR) * 1_000_000:020d}-1.event"
    record.write_text("x")
    trouble = layout.root / "trouble"
    keeper.tick(now)
    assert "1 events wait in the spool, the oldest for 30 hours" in trouble.read_text()
    trouble.unlink()
    keeper.tick(now + HOUR)
    assert not trouble.exists()
    keeper.tick(now + DAY + HOUR)
    assert trouble.exists() and record.exists()


def test_many_waiting_events_are_reported_however_young(keeper: Housekeeping) -> None:
    now = 1_800_000_000_000
    for number in range(spool.WARN_FILES):
        (keeper._layout.spool / f"{now * 1_000_000 + number:020d}-1.event").touch()
    keeper.tick(now)
    assert f"{spool.WARN_FILES} events wait" in (keeper._layout.root / "trouble").read_text()
