"""A context is made once, and anew after each change to what it is made of."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from claude_mem.hook import spooling
from claude_mem.recall.context import build_context
from claude_mem.store import Store
from claude_mem.store.change_counters import _WATCHED, ChangeCounts
from claude_mem.worker.session_start import answer_session_start
from tests import payloads
from tests.api import Api, open_api, record_header
from tests.payloads import PROJECT_DIR, SESSION, as_bytes

BUDGET = 1000
PROJECT = 1


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as opened:
        opened.add_sessions(2)
        opened.add_turn("s2", "From now on, always use tabs. Paint the lamp.", "The lamp is green.")
        opened.post_json("/api/memories", text="The lamp needs 12 V.", project_dir=PROJECT_DIR)
        yield opened


def changes(api: Api) -> ChangeCounts:
    return api.worker.store.change_counts(PROJECT).result()


def context(api: Api) -> str:
    return api.worker.contexts.text_for(PROJECT, BUDGET, "", "")


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
    before = changes(api)
    assert context(api) == build_context(api.worker.store, PROJECT, BUDGET) != ""
    CHANGES[change](api)
    assert changes(api) != before
    assert context(api) == build_context(api.worker.store, PROJECT, BUDGET)


def test_what_is_in_no_context_leaves_it_valid(api: Api) -> None:
    """Otherwise each start would make it anew: it is stored before the next."""
    before = changes(api)
    api.start_session(payloads.session_start())
    api.start_session(payloads.session_start(session_id="second"))
    api.catch_up()
    assert api.worker.store.has_session(SESSION)
    api.submit_prompt(payloads.prompt("Why is the lamp green in this harbour?"))
    api.catch_up()
    assert changes(api) == before
    api.add_turn("elsewhere", "Mend the horn", "The horn sounds.", "/home/dev/other")
    assert changes(api) == before
    assert context(api) is context(api)


def test_what_another_process_stores_makes_it_anew(api: Api) -> None:
    context(api)
    with Store.open(api.layout.database, api.layout.backups) as other:
        other.write(
            lambda c: c.execute("UPDATE session_summaries SET completed = 'The lamp is red.'")
        ).result()
    assert "The lamp is red." in context(api) == build_context(api.worker.store, PROJECT, BUDGET)


def test_what_is_rolled_back_changes_nothing(api: Api) -> None:
    before = changes(api)

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE observations SET title = 'x'")
        connection.execute("ROLLBACK")  # as a full disk does it: the commit fails

    with pytest.raises(sqlite3.OperationalError):
        api.worker.store.write(fail).result()
    assert changes(api) == before


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
    given = start_alone(api, SESSION)
    assert len(list(api.layout.spool.glob("*.event"))) == 1
    api.catch_up()
    assert api.worker.store.start_context(SESSION) == given
    answer = api.start_session(payloads.session_start(session_id="next"))
    assert api.worker.store.start_context("next") == given_by(answer) == given


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
    assert not api.worker.unsaved_contexts.add(SESSION, "late")
    assert api.worker.unsaved_contexts.add("unknown", "early")


def test_a_pinned_prompt_that_is_restored_is_in_the_context_again(api: Api) -> None:
    api.post_json("/api/memories/P1/pin")
    pinned = context(api)
    forget_and_undo(api)
    assert context(api) == build_context(api.worker.store, PROJECT, BUDGET) == pinned


def test_a_session_does_not_wait_for_a_busy_writer(api: Api) -> None:
    expected = context(api)
    may_go_on = threading.Event()
    api.worker.store.write(lambda c: may_go_on.wait())
    try:
        assert context(api) == expected
    finally:
        may_go_on.set()


def test_what_was_given_is_stored_before_a_rendered_context_is_replaced(api: Api) -> None:
    api.start_session(payloads.session_start(session_id="first"))
    api.catch_up()
    given = start_alone(api, SESSION)
    api.post_json("/api/memories", text="The horn needs 24 V.", project_dir=PROJECT_DIR)
    assert api.worker.store.start_context(SESSION) == given != context(api)


def test_a_resume_repeats_what_was_given_and_is_not_stored_yet(api: Api) -> None:
    api.start_session(payloads.session_start(session_id="first"))
    api.catch_up()
    given = start_alone(api, SESSION)
    api.worker.intake.stop()  # nothing is drained any more
    api.post_json("/api/memories", text="The horn needs 24 V.", project_dir=PROJECT_DIR)
    assert given_by(api.start_session(payloads.session_start("resume"))) == given


def test_a_context_with_forgotten_text_is_not_stored(api: Api) -> None:
    api.start_session(payloads.session_start(session_id="first"))
    api.catch_up()
    assert "The lamp is green" in start_alone(api, SESSION)
    forget(api, session="s2")
    api.catch_up()
    assert "The lamp is green" not in (api.worker.store.start_context(SESSION) or "")


def start_alone(api: Api, session: str) -> str:
    """A start whose response came, and no background task after it: as if killed then."""
    header, payload = (
        record_header(api.clock.ms),
        as_bytes(payloads.session_start(session_id=session)),
    )
    spooling.put(bytes(api.layout.root), header, payload)
    answer = api.runner.run(answer_session_start(api.worker, header + payload))
    assert not api.worker.store.has_session(session)
    return answer.context


def given_by(response: httpx.Response) -> str:
    return str(response.json()["hookSpecificOutput"]["additionalContext"])


def test_a_context_that_cannot_be_rendered_is_rendered_the_next_time(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = api.worker.contexts
    contexts.mark_all_stale()
    marked = set(contexts.stale)
    with monkeypatch.context() as patch:
        patch.setattr(contexts, "render", lambda project_id: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            api.runner.run(contexts.render_stale())
    assert contexts.stale == marked != set()
    api.runner.run(contexts.render_stale())
    assert contexts.stale == set()
