"""Earlier turns on the branch that a prompt speaks of without naming it, as "this branch" does."""

import re
import sqlite3
from collections.abc import Iterable

from claude_mem.index.text import passage_queries
from claude_mem.index.text.filters import Filters, result_condition
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.hint_lines import Source
from claude_mem.recall.named_turns import nearest_passage
from claude_mem.store.turns import MAIN_BRANCHES

MOST_TURNS = 40  # the latest of the branch
MIN_COSINE = 0.45
ON_BRANCH = 1.0  # evidence of a turn for being on the branch
_REFERS = re.compile(
    r"\b(?:this|the|my|our|current) (?:\w+ )?(?:branch|pr|mr|pull request|merge request)\b",
    re.IGNORECASE,
)


def names_a_branch(text: str) -> bool:
    return _REFERS.search(text) is not None


def refers_to(branch: str, typed: str) -> bool:
    return branch not in ("", *MAIN_BRANCHES) and names_a_branch(typed)


def find_branch_turns(
    connection: sqlite3.Connection,
    branch: str,
    typed: str,
    filters: Filters,
    without: Iterable[int],
    semantic_index: SemanticIndex,
) -> list[Source]:
    """Finds turns of sessions that worked on the branch, the nearest to the prompt first; `without`
    turns of these sessions."""
    ids = [
        row[0]
        for row in connection.execute(
            "SELECT id FROM user_prompts WHERE session_id IN (SELECT t.session_id FROM facts f"
            " JOIN fact_sources x ON x.fact_id = f.id JOIN user_prompts t ON t.id = x.turn_id"
            " WHERE f.project_id = ? AND f.kind = 'artifact' AND f.subject = 'branch'"
            " AND f.value = ?) ORDER BY id DESC LIMIT ?",
            (filters.project_id, branch, MOST_TURNS),
        )
    ]
    condition = result_condition(connection, filters)
    rows = passage_queries.turn_rows(connection, ids, condition.sql, condition.values)
    sessions = set(without)
    cosines = {
        turn: nearest_passage(connection, turn, typed, semantic_index)
        for turn, row in rows.items()
        if row.session_id not in sessions
    }
    near = [turn for turn, cosine in cosines.items() if cosine >= MIN_COSINE]
    return [
        Source(rows[turn], (branch,), ON_BRANCH + cosines[turn])
        for turn in sorted(near, key=lambda turn: (-cosines[turn], -turn))
    ]
