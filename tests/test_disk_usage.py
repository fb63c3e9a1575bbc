"""Disk usage by kind of data."""

import json

from claude_mem.store.disk_usage import database_usage
from claude_mem.types import Observation
from tests.conftest import Home
from tests.remembering import look, remember, titles
from tests.story import Story
from tests.transcripts import harbour


def test_every_table_is_counted_once_and_the_parts_add_up_to_the_file(story: Story) -> None:
    remember(story, "The lamp flickers", prompt="Why does the lamp flicker?")
    usage = story.store.read(database_usage)
    assert usage is not None
    assert usage["memories"] > 0 and usage["full-text index"] > 0 and usage["vectors"] > 0
    pages, size = (story.column(f"PRAGMA {name}")[0] for name in ("page_count", "page_size"))
    assert sum(usage.values()) == int(pages) * int(size)


def test_the_text_of_a_memory_is_stored_once(story: Story) -> None:
    remember(story, Observation("change", title="The lamp", narrative="A zyzzyva sat in it"))
    tables = story.column(
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        " AND name NOT IN ('passage_text', 'memory_text')"
    )
    holding = [
        table
        for table in tables
        if any("zyzzyva sat" in str(value) for row in story.rows(f"SELECT * FROM {table}")
               for value in row.values())
    ]  # fmt: skip
    assert holding == ["observations"]
    assert titles(story, "zyzzyva") == ["The lamp"]
    (row,) = look(story, "zyzzyva").rows
    assert row.snippet == "The lamp A zyzzyva sat in it"


def test_stats_shows_it(home: Home) -> None:
    harbour().save_in(home.path)
    assert home.command("import").returncode == 0
    home.command("worker", "stop")  # all that it wrote is in the file then, and not in the journal
    shown = home.command("stats", "--disk")
    assert "full-text index" in shown.stdout and "backups" in shown.stdout, shown.stderr
    usage = json.loads(home.command("stats", "--disk", "--json").stdout)
    assert usage["files"]["database"] == sum(usage["database"].values())
    assert usage["turns"] == 3
