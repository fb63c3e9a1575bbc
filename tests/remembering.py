"""Memories added to a story without events, as an observer would make them."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from claude_mem.index.text.filters import Filters
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.search import Query, SearchResult, search
from claude_mem.types import Distillate, Event, Observation, Project, Summary
from tests.story import Story

HARBOR = Project("harbor", "harbor")


def remember(
    story: Story,
    *observations: Observation | str,
    session: str = "s",
    prompt: str | None = None,
    summary: Summary | None = None,
    project: Project = HARBOR,
    at: datetime | None = None,
) -> list[int]:
    """Adds a distilled turn; a string is an observation with that title. Returns their ids."""
    story.now = int(at.timestamp() * 1000) if at else story.now + 60_000
    turn = f"{session}-{story.now}"
    about = (session, story.now, turn, project, f"/{project.key}")
    if prompt:
        story.store.record_events(
            [Event("UserPromptSubmit", *about, prompt_id=turn, prompt=prompt)]
        )
    stop = Event("Stop", about[0], about[1], f"{turn}-stop", *about[3:], prompt_id=turn, text="-")
    story.store.record_events([stop]).result()
    return distil_as(story, observations, summary)


def distil_as(
    story: Story, observations: Sequence[Observation | str], summary: Summary | None = None
) -> list[int]:
    """Finishes the next job with this result; the ids of its observations."""
    job, turn = story.claim()
    distillate = Distillate(
        summary or Summary(),
        tuple(Observation("change", title=o) if isinstance(o, str) else o for o in observations),
    )
    assert story.store.finish_job(job, turn, distillate).result()
    return [
        int(identity)
        for identity in story.column(
            "SELECT id FROM observations WHERE turn_id = ? ORDER BY ordinal", turn.id
        )
    ]


def look(
    story: Story,
    query: str,
    filters: Filters | None = None,
    limit: int = 40,
    semantic_index: SemanticIndex | None = None,
) -> SearchResult:
    now = datetime.fromtimestamp(story.now / 1000, UTC)
    return search(story.store, Query(query, filters or Filters(), limit), now, semantic_index)


def titles(
    story: Story,
    query: str,
    filters: Filters | None = None,
    semantic_index: SemanticIndex | None = None,
) -> list[str]:
    """Titles of the results, best first: each stands for its turn."""
    return [row.title for row in look(story, query, filters, semantic_index=semantic_index).rows]


def ids(story: Story, query: str, filters: Filters | None = None) -> list[str]:
    return [str(row.id) for row in look(story, query, filters).rows]


def ids_of_turns(story: Story, query: str, filters: Filters | None = None) -> list[set[str]]:
    """Returns for each result the ids of all memories of its turn."""
    rows = look(story, query, filters).rows
    return [{str(memory_id) for memory_id in (row.id, *row.also)} for row in rows]


def remember_turns(
    story: Story, *memories: Observation | str, session: str = "s", project: Project = HARBOR
) -> None:
    """Each memory in a turn of its own, one after the other."""
    for memory in memories:
        remember(story, memory, session=session, project=project)


def words_of_memories(story: Story) -> list[dict[str, Any]]:
    """Each word of `memory_text`, with the id of its row (`doc`)."""
    with closing(sqlite3.connect(story.layout.database)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute(
            "CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, memory_text, instance)"
        )
        return [dict(row) for row in connection.execute("SELECT * FROM temp.words")]
