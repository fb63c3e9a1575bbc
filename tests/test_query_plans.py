"""Queries whose cost must not grow with the database: each uses the index that is made for it."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from claude_mem.store import given_hints, listing, project_assignments, viewer_pages
from claude_mem.store.listing import Page
from claude_mem.store.viewer_pages import TurnCursor, TurnQuery
from tests.remembering import remember
from tests.story import Story

AFTER = TurnCursor(1_790_000_000_000, 7)
Query = Callable[[sqlite3.Connection], Any]


def plan_of(story: Story, query: Query) -> list[str]:
    """The steps of the plans of the statements that the query runs."""

    def work(connection: sqlite3.Connection) -> list[str]:
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        query(connection)
        connection.set_trace_callback(None)
        rows = (connection.execute(f"EXPLAIN QUERY PLAN {one}") for one in statements)
        return [row["detail"] for plan in rows for row in plan]

    return story.store.read(work)


@pytest.mark.parametrize(
    ("query", "step"),
    [
        (lambda c: given_hints.session_state(c, "a-session", "p1"),
         "SEARCH hints USING INDEX hints_by_session (content_session_id=?)"),
        (lambda c: given_hints.count_hints(c, "a-session"),
         "SEARCH hints USING INDEX hints_by_session (content_session_id=?)"),
        (lambda c: listing.list_page(c, "observations", Page(), 1),
         "SEARCH m USING INDEX observations_by_project (project_id=?)"),
        (lambda c: listing.list_page(c, "summaries", Page(), 1),
         "SEARCH m USING INDEX summaries_by_project (project_id=?)"),
        (lambda c: listing.list_page(c, "prompts", Page(), 1),
         "SEARCH m USING INDEX prompts_by_project (project_id=?)"),
        (lambda c: listing.list_sessions(c, Page()), "SCAN m USING INDEX sessions_by_update"),
        (lambda c: listing.list_sessions(c, Page(before=3), 1),
         "SEARCH m USING INDEX sessions_by_project (project_id=? AND updated_at_epoch<?)"),
        (lambda c: viewer_pages.list_turns(c, TurnQuery(before=AFTER)),
         "SEARCH t USING INDEX turns_by_time (created_at_epoch<?)"),
        (lambda c: viewer_pages.list_turns(c, TurnQuery(project_id=1, before=AFTER)),
         "SEARCH t USING INDEX turns_of_project_by_time (project_id=? AND created_at_epoch<?)"),
        (lambda c: viewer_pages.turns_per_day(c, 1, AFTER.created_ms, 0),
         "SEARCH t USING INDEX turns_of_project_by_time (project_id=? AND created_at_epoch>?)"),
        (lambda c: viewer_pages.touched_files(c, 1),
         "SEARCH observations USING INDEX observations_by_time (project_id=?)"),
        (lambda c: project_assignments.checkout_project(c, "/home/dev/harbor/.git", "1"),
         "SEARCH c USING PRIMARY KEY (main=?)"),
        (lambda c: project_assignments.is_shared_with_team(c, "harbor"),
         "SEARCH team_projects USING COVERING INDEX sqlite_autoindex_team_projects_1"
         " (project_key=?)"),
    ],
)  # fmt: skip
def test_a_query_uses_the_index_that_is_made_for_it(story: Story, query: Query, step: str) -> None:
    remember(story, "The lamp blinks")
    assert step in plan_of(story, query)


@pytest.mark.parametrize(
    "query",
    [
        lambda c: listing.list_page(c, "observations", Page(), 1),
        lambda c: viewer_pages.list_turns(c, TurnQuery(before=AFTER)),
        lambda c: viewer_pages.list_turns(c, TurnQuery(project_id=1, before=AFTER)),
    ],
)
def test_a_page_is_read_in_the_order_of_its_index(story: Story, query: Query) -> None:
    assert "USE TEMP B-TREE FOR ORDER BY" not in plan_of(story, query)
