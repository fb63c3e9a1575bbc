"""What time brings, with a clock that a test turns."""

import json
import os
import time
from pathlib import Path

import pytest

from claude_mem.config import (
    RecordSettings,
    RetentionSettings,
    SessionSettings,
    load_settings,
)
from claude_mem.intake import spool
from claude_mem.store.clock import iso
from claude_mem.worker.housekeeping import DAY, HOUR, MINUTE, Housekeeping
from tests.payloads import prompt, stop, tool
from tests.story import Story


@pytest.fixture
def keeper(story: Story, tmp_path: Path) -> Housekeeping:
    settings = load_settings({"CLAUDE_MEM_DATA_DIR": str(tmp_path / "data")})
    settings.layout.create()
    return Housekeeping(
        settings.layout, story.store, settings.sessions, settings.retention, settings.record
    )


def test_a_turn_without_an_event_for_long_is_closed_and_queued(
    story: Story, keeper: Housekeeping
) -> None:
    story.tell(prompt(), tool())
    assert keeper.tick(story.now + 29 * MINUTE) == 0
    assert story.queue() == {}
    assert keeper.tick(story.now + 31 * MINUTE) == 1
    assert story.queue() == {"pending": 1}


def test_turns_that_a_wrong_clock_dated_are_not_the_last_ones_for_ever(
    story: Story, keeper: Housekeeping
) -> None:
    story.now = today = time.time_ns() // 1_000_000
    story.tell(prompt("Light the lamp", prompt_id="p1"), stop(prompt_id="p1"))
    story.now = today + 68 * 365 * DAY
    story.tell(prompt("Paint the pier", prompt_id="p2"), stop(prompt_id="p2"))
    story.distil()
    story.now = today + HOUR
    keeper.tick(story.now)
    story.now += HOUR
    story.tell(prompt("Mend the net", prompt_id="p3"), stop(prompt_id="p3"))
    story.distil()
    newest_first = "SELECT prompt_text FROM user_prompts ORDER BY created_at_epoch DESC, id DESC"
    assert story.column(newest_first) == ["Mend the net", "Paint the pier", "Light the lamp"]
    for table in ("tool_events", "session_summaries", "turn_records", "fact_sources"):
        times = "seen_at_epoch" if table == "fact_sources" else "created_at_epoch"
        assert not story.rows(f"SELECT 1 FROM {table} WHERE {times} > {story.now}"), table
    assert story.column("SELECT created_at FROM user_prompts WHERE id = 2") == [iso(today + HOUR)]


def test_a_clock_that_is_behind_the_installation_dates_nothing_anew(
    story: Story, keeper: Housekeeping
) -> None:
    story.now = time.time_ns() // 1_000_000
    story.tell(prompt("Light the lamp"), stop())
    before = story.rows("SELECT * FROM user_prompts")
    keeper.tick(1_000_000_000_000)
    assert story.rows("SELECT id, created_at FROM user_prompts") == [
        {"id": row["id"], "created_at": row["created_at"]} for row in before
    ]


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


def test_rejected_payloads_are_kept_for_thirty_days(story: Story, keeper: Housekeeping) -> None:
    for directory in (story.layout.rejected, story.layout.set_aside):
        path = directory / "00000000000000000001-1.event"
        path.write_bytes(b"what could not be read")
        os.utime(path, (story.now / 1000,) * 2)
        keeper.tick(story.now + 29 * DAY)
        assert path.exists()
        keeper.tick(story.now + 31 * DAY)
        assert not path.exists()


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
    keeper.back_up_if_due(now)
    assert list(backups.glob("memory-*.db.gz")) == []
    story.tell(prompt(), stop())
    story.distil()
    keeper.back_up_if_due(now)
    (first,) = backups.glob("memory-*.db.gz")
    os.utime(first, (now / 1000, now / 1000))
    keeper.back_up_if_due(now + DAY - MINUTE)
    assert len(list(backups.glob("memory-*.db.gz"))) == 1
    keeper.back_up_if_due(now + DAY)
    assert len(list(backups.glob("memory-*.db.gz"))) == 2


def test_free_pages_are_given_back_before_the_daily_backup(
    story: Story, keeper: Housekeeping
) -> None:
    story.tell(prompt(), stop())
    story.distil()
    story.store.write(lambda c: c.execute("CREATE TABLE big AS SELECT zeroblob(4000000)")).result()
    story.store.write(lambda c: c.execute("DROP TABLE big")).result()
    pages = story.column("PRAGMA page_count")[0]
    keeper.back_up_if_due(1_800_000_000_000)
    assert story.column("PRAGMA page_count")[0] < pages - 900
    assert not story.store.compact_if_sparse()
    assert story.rows("SELECT 1 FROM documents")


def test_unfinished_backups_go_after_an_hour(keeper: Housekeeping) -> None:
    keeper._layout.backups.mkdir(exist_ok=True)
    left = [keeper._layout.backups / f"memory-1.db{suffix}.part" for suffix in ("", ".full", ".gz")]
    for path in left:
        path.write_text("x")
        os.utime(path, (1000, 1000))
    keeper.tick(1_000_000 + HOUR - MINUTE)
    assert all(path.exists() for path in left)
    keeper.tick(1_000_000 + HOUR + MINUTE)
    assert not any(path.exists() for path in left)


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
    assert "1 event waiting in the spool, the oldest for 30 hours" in trouble.read_text()
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
    assert f"{spool.WARN_FILES} events waiting" in (keeper._layout.root / "trouble").read_text()


# The record


def recorded_prompts(story: Story) -> list[str]:
    rows = story.rows("SELECT parts FROM turn_records ORDER BY turn_id")
    return [json.loads(row["parts"])[0][2] for row in rows]


def tell_turns(story: Story, *prompts: str, first: int = 0) -> None:
    for number, text in enumerate(prompts, first):
        ids = {"prompt_id": f"p{number}"}
        story.tell(prompt(text, **ids), stop(**ids))
        story.now += DAY
    story.distil()


def follow(story: Story, keeper: Housekeeping, **record: int) -> None:
    keeper.use(SessionSettings(), RetentionSettings(), RecordSettings(**record))
    keeper.tick(story.now)


def test_the_record_is_kept_for_good_by_default(story: Story, keeper: Housekeeping) -> None:
    tell_turns(story, "Light the lamp")
    keeper.tick(story.now + 10_000 * DAY)
    assert recorded_prompts(story) == ["Light the lamp"]
    raw = "SELECT count(*) FROM tool_events WHERE words IS NOT NULL"
    assert story.column(raw) == [0]  # as long as other raw events


def test_the_record_is_kept_for_as_many_days_as_the_user_wants(
    story: Story, keeper: Housekeeping
) -> None:
    tell_turns(story, "Light the lamp", "Paint the door", "Feed the gulls")
    follow(story, keeper, days=3)
    assert recorded_prompts(story) == ["Paint the door", "Feed the gulls"]
    follow(story, keeper, days=0)
    assert recorded_prompts(story) == []
    assert story.column("SELECT count(*) FROM session_summaries") == [3]


def test_beyond_its_size_the_oldest_go_and_the_user_is_warned_once_before(
    story: Story, keeper: Housekeeping
) -> None:
    long = "a word " * 4500  # 31.5 kilobytes

    def tell_until(first: int, last: int) -> list[str]:
        tell_turns(story, *(f"{number} {long}" for number in range(first, last)), first=first)
        follow(story, keeper, megabytes=1)
        return [text.split()[0] for text in recorded_prompts(story)]

    assert len(tell_until(0, 29)) == 29
    assert story.trouble() == ""
    assert len(tell_until(29, 32)) == 32
    assert "has reached 90% of its limit of 1 MB" in story.trouble()
    assert tell_until(32, 36) == [str(number) for number in range(3, 36)]
    assert story.trouble() == ""
