"""Disk usage by kind of data."""

import json

from claude_mem.store.disk_usage import database_usage
from claude_mem.types import Observation
from tests.conftest import Home
from tests.remembering import remember
from tests.story import Story
from tests.transcripts import harbour


def test_every_table_is_counted_once_and_the_parts_add_up_to_the_file(story: Story) -> None:
    remember(story, "The lamp flickers", prompt="Why does the lamp flicker?")
    usage = story.store.read(database_usage)
    assert usage is not None
    assert usage["memories"] > 0 and usage["full-text index"] > 0 and usage["vectors"] > 0
    pages, size = (story.column(f"PRAGMA {name}")[0] for name in ("page_count", "page_size"))
    assert sum(usage.values()) == int(pages) * int(size)


def test_the_text_of_a_memory_is_in_the_index_once(story: Story) -> None:
    remember(story, Observation("change", title="The lamp", narrative="A zyzzyva sat in it"))
    assert story.column("SELECT count(*) FROM passages WHERE text LIKE '%zyzzyva%'") == [1]
    copies = story.rows("SELECT * FROM memory_text_content")
    assert copies and not any("zyzzyva" in str(value) for row in copies for value in row.values())


def test_stats_shows_it(home: Home) -> None:
    harbour().save_in(home.path)
    assert home.command("import").returncode == 0
    shown = home.command("stats", "--disk")
    assert "full-text index" in shown.stdout and "backups" in shown.stdout, shown.stderr
    usage = json.loads(home.command("stats", "--disk", "--json").stdout)
    assert usage["files"]["database"] >= sum(usage["database"].values())
    assert usage["turns"] == 3
