"""Counts of memories, which a status shows at any size."""

import sqlite3

from claude_mem.store import listing
from tests.remembering import remember
from tests.story import Story


def test_prompts_without_text_and_sessions_without_prompts_are_not_counted(story: Story) -> None:
    remember(story, "The lamp blinks", prompt="Why does the lamp blink?")
    remember(story, "The relay was loose", session="other")
    counts = story.store.counts()
    assert (counts["prompts"], counts["observations"], counts["sessions"]) == (1, 2, 2)


def test_counting_reads_no_rows_but_those_that_are_left_out(story: Story) -> None:
    plans: list[str] = []

    def work(connection: sqlite3.Connection) -> None:
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        listing.table_counts(connection)
        connection.set_trace_callback(None)
        for statement in statements:
            if " WHERE " in statement:
                rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}")
                plans.extend(row["detail"] for row in rows)

    story.store.read(work)
    assert len(plans) == 2
    assert all("USING INDEX" in plan or "USING COVERING INDEX" in plan for plan in plans)
