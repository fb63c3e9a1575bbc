"""A context is made once, and anew after each change to what it is made of."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem.recall.context import build_context
from claude_mem.store import Store
from claude_mem.store.memory_versions import _WATCHED, MemoryVersion
from tests import payloads
from tests.api import Api, open_api
from tests.payloads import PROJECT_DIR, SESSION

BUDGET = 1000
PROJECT = 1


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        opened.add_sessions(2)
        opened.add_turn("s2", "From now on, always use tabs. Paint the lamp.", "The lamp is green.")
        opened.post_json("/api/memories", text="The lamp needs 12 V.", project_dir=PROJECT_DIR)
        yield opened


def version(api: Api) -> MemoryVersion:
    return api.worker.store.memory_version(PROJECT).result()


def context(api: Api) -> str:
    return api.worker.contexts.context(PROJECT, BUDGET, "", "")


def forget(api: Api, **selection: Any) -> None:
    preview = api.post_json("/api/forget", **selection)
    api.post_json("/api/forget", **selection, confirm=preview["confirm"])


def forget_and_undo(api: Api) -> None:
    forget(api, session="s0")
    assert context(api) == build_context(api.worker.store, PROJECT, BUDGET)
    api.post_json("/api/forget/undo")


CHANGES: dict[str, Callable[[Api], object]] = {
    "a turn": lambda api: api.add_turn("s9", "Mend the horn", "The horn sounds."),
    "a saved memory": lambda api: api.post_json(
        "/api/memories", text="The horn needs 24 V.", project_dir=PROJECT_DIR
    ),
    "an edit": lambda api: api.request("PATCH", "/api/memories/4", json={"title": "It needs 9 V"}),
    "a pin": lambda api: api.post_json("/api/memories/S1/pin"),
    "a wrong memory": lambda api: api.post_json("/api/memories/S3/wrong"),
    "a wrong prompt": lambda api: api.post_json("/api/memories/P3/wrong"),
    "a rejected rule": lambda api: api.post_json("/api/facts/1/reject"),
    "forgetting": lambda api: forget(api, session="s2"),
    "forgetting for good": lambda api: forget(api, session="s2", hard=True),
    "forgetting and undo": forget_and_undo,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_makes_it_anew(api: Api, change: str) -> None:
    before = version(api)
    assert context(api) == build_context(api.worker.store, PROJECT, BUDGET) != ""
    CHANGES[change](api)
    assert version(api) != before
    assert context(api) == build_context(api.worker.store, PROJECT, BUDGET)


def test_what_is_in_no_context_leaves_it_valid(api: Api) -> None:
    """Otherwise each start would make it anew: it is stored before the next."""
    before = version(api)
    api.start_session(payloads.session_start())
    api.start_session(payloads.session_start(session_id="second"))
    api.catch_up()
    assert api.worker.store.has_session(SESSION)
    api.submit_prompt(payloads.prompt("Why is the lamp green in this harbour?"))
    api.catch_up()
    assert version(api) == before
    api.add_turn("elsewhere", "Mend the horn", "The horn sounds.", "/home/dev/other")
    assert version(api) == before
    assert context(api) is context(api)


def test_what_another_process_stores_makes_it_anew(api: Api) -> None:
    context(api)
    with Store.open(api.layout.database, api.layout.backups) as other:
        other.write(
            lambda c: c.execute("UPDATE session_summaries SET completed = 'The lamp is red.'")
        ).result()
    assert "The lamp is red." in context(api) == build_context(api.worker.store, PROJECT, BUDGET)


def test_what_is_rolled_back_changes_nothing(api: Api) -> None:
    before = version(api)

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE observations SET title = 'x'")
        connection.execute("ROLLBACK")  # as a full disk does it: the commit fails

    with pytest.raises(sqlite3.OperationalError):
        api.worker.store.write(fail).result()
    assert version(api) == before


def test_every_table_that_a_context_reads_is_watched(api: Api) -> None:
    read: set[str] = set()

    def note(action: int, table: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and table:
            read.add(table)
        return sqlite3.SQLITE_OK

    with Store.open(api.layout.database, api.layout.backups) as store:
        with store._readers.connection() as connection:
            connection.set_authorizer(note)
        build_context(store, PROJECT, BUDGET)  # with the same connection
    without_rows = {"sqlite_master", "json_each", "wrong_turns"}  # the last is a view of prompts
    assert {"observations", "facts", "user_prompts"} <= read
    assert read - without_rows <= set(_WATCHED)


def test_a_start_alone_in_the_spool_is_stored_after_its_response(api: Api) -> None:
    api.start_session(payloads.session_start(session_id="first"))  # with the welcome, once
    api.catch_up()
    answer = api.start_session(payloads.session_start()).json()
    given = answer["hookSpecificOutput"]["additionalContext"]
    assert not api.worker.store.has_session(SESSION)
    assert len(list(api.layout.spool.glob("*.event"))) == 1
    api.add_turn("another", "Mend the horn", "The horn sounds.")
    assert api.worker.store.start_context(SESSION) == given


def test_another_context_than_the_rendered_one_is_stored_before_it_is_sent(api: Api) -> None:
    api.start_session(payloads.session_start(session_id="first"))
    api.catch_up()
    for file in api.layout.contexts.glob("*harbor*"):
        file.write_bytes(b'"another"')
    answer = api.start_session(payloads.session_start()).json()
    given = answer["hookSpecificOutput"]["additionalContext"]
    assert api.worker.store.start_context(SESSION) == given != "another"


def test_a_context_that_is_given_after_the_start_was_stored_is_not_kept(api: Api) -> None:
    api.start_session(payloads.session_start())
    api.catch_up()
    assert not api.worker.intake.give_context(SESSION, "late")
    assert api.worker.intake.give_context("unknown", "early")
