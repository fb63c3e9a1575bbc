"""Session ids: the agent's and that of the memories. Each test names the section it is about."""

import sqlite3
from collections.abc import Iterator

import pytest

from tests.conftest import wait_until
from tests.seed_worker import SeedWorker, running_worker

# Debugging Tips: the queries of the document, by the id of a session.
SESSION_STATE = """
SELECT id, content_session_id, memory_session_id,
  CASE WHEN memory_session_id IS NULL THEN 'NOT_CAPTURED' ELSE 'CAPTURED' END as state
FROM sdk_sessions WHERE content_session_id = ?
"""
ORPHANS = """
SELECT o.* FROM observations o
LEFT JOIN sdk_sessions s ON o.memory_session_id = s.memory_session_id WHERE s.id IS NULL
"""
LINKAGE = """
SELECT o.id, o.title, o.memory_session_id, s.content_session_id,
  s.memory_session_id as session_memory_id
FROM observations o JOIN sdk_sessions s ON o.memory_session_id = s.memory_session_id
WHERE s.content_session_id = ?
"""


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeedWorker]:
    with running_worker(tmp_path_factory.mktemp("seed-004")) as running:
        yield running


def prompt(worker: SeedWorker, session: str, text: str) -> None:
    body = {"contentSessionId": session, "project": "chart", "userPrompt": text}
    worker.post("/api/sessions/init", body)


def work(worker: SeedWorker, session: str, text: str) -> None:
    """A turn that is worth an observation."""
    prompt(worker, session, f"Fix the {text}: it fails in the rain")
    change = {"file_path": f"/home/dev/{text}.py", "old_string": "1", "new_string": "2"}
    about = {"contentSessionId": session}
    worker.post("/api/sessions/observations", {**about, "tool_name": "Edit", "tool_input": change})
    message = f"Fixed: the {text} failed because rain came in through the lid of {text}.py."
    worker.post("/api/sessions/summarize", {**about, "last_assistant_message": message})
    wait_until(lambda: worker.rows(LINKAGE, session), "an observation")


def restart(worker: SeedWorker) -> None:
    assert worker.command("worker", "restart").returncode == 0
    worker.http.close()
    worker.start()


def test_initialization_flow_the_memory_id_is_null_until_it_is_captured(
    worker: SeedWorker,
) -> None:
    prompt(worker, "fresh", "Look around")
    (row,) = worker.rows(SESSION_STATE, "fresh")
    assert (row["memory_session_id"], row["state"]) == (None, "NOT_CAPTURED")
    work(worker, "fresh", "horn")
    (row,) = worker.rows(SESSION_STATE, "fresh")
    assert row["state"] == "CAPTURED"
    assert row["memory_session_id"] not in (None, "", "fresh")


def test_initialization_flow_the_memory_id_is_stable_over_prompts_and_worker_restarts(
    worker: SeedWorker,
) -> None:
    work(worker, "stable", "lamp")
    (before,) = worker.rows(SESSION_STATE, "stable")
    restart(worker)
    work(worker, "stable", "bell")
    assert worker.rows(SESSION_STATE, "stable") == [before]


def test_resume_safety_no_conversation_of_a_provider_survives_a_worker_restart(
    worker: SeedWorker,
) -> None:
    work(worker, "resumed", "chain")
    prompt(worker, "resumed", "Now oil the chain")  # a continuation prompt
    with sqlite3.connect(
        worker.layout.database
    ) as connection:  # as a worker with a model leaves it
        connection.execute(
            "UPDATE sdk_sessions SET provider = 'claude', provider_session_id = ?"
            " WHERE content_session_id = 'resumed'",
            ("0f9a2b6c-1d3e-4f50-8a71-92b3c4d5e6f7",),
        )
    connection.close()
    before = worker.session("resumed")
    assert before["provider_session_id"] and before["prompt_counter"] == 2
    restart(worker)
    after = worker.session("resumed")
    assert (after["provider"], after["provider_session_id"]) == (None, None)
    assert after["memory_session_id"] == before["memory_session_id"]


def test_observation_storage_uses_the_memory_id_and_never_the_content_id(
    worker: SeedWorker,
) -> None:
    work(worker, "stored", "crane")
    rows = worker.rows(LINKAGE, "stored")
    assert rows and all(row["memory_session_id"] == row["session_memory_id"] for row in rows)
    assert not worker.rows("SELECT 1 FROM observations WHERE memory_session_id = 'stored'")


def test_session_isolation_observations_of_two_sessions_never_mix(worker: SeedWorker) -> None:
    work(worker, "left", "winch")
    work(worker, "right", "anchor")
    for session, own, other in (("left", "winch", "anchor"), ("right", "anchor", "winch")):
        titles = " ".join(str(row["title"]) for row in worker.rows(LINKAGE, session)).lower()
        assert own in titles and other not in titles
    ids = {worker.rows(SESSION_STATE, s)[0]["memory_session_id"] for s in ("left", "right")}
    assert len(ids) == 2


def test_session_isolation_a_content_id_is_one_row(worker: SeedWorker) -> None:
    for text in ("one", "two", "three"):
        prompt(worker, "single", text)
    assert len(worker.rows(SESSION_STATE, "single")) == 1


def test_foreign_key_integrity_there_are_no_orphaned_observations(worker: SeedWorker) -> None:
    work(worker, "kept", "rudder")
    assert worker.rows(ORPHANS) == []
    assert worker.rows("PRAGMA foreign_key_check") == []
    keys = worker.rows("PRAGMA foreign_key_list(observations)")
    assert any(
        (key["table"], key["from"], key["to"])
        == ("sdk_sessions", "memory_session_id", "memory_session_id")
        for key in keys
    )
