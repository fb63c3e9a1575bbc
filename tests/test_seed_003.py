"""The analysis of the worker server. Each test names the section it is about."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from claude_mem.config import SETTINGS
from claude_mem.observer.models.replies import parse_reply
from claude_mem.observer.models.revision import merge
from claude_mem.types import OBSERVATION_TYPES, Distillate, Summary
from tests.conftest import wait_until
from tests.seed_worker import SeedWorker, running_worker


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeedWorker]:
    with running_worker(tmp_path_factory.mktemp("seed-003")) as running:
        yield running


def begin(worker: SeedWorker, session: str, prompt: str = "Tie the boat") -> int:
    body = {"claudeSessionId": session, "project": "mooring", "userPrompt": prompt}
    return int(worker.post("/sessions/init", body)["sessionDbId"])


# Deep Dive: HTTP Endpoints


def test_get_health_status_port_pid_sessions_uptime_memory(worker: SeedWorker) -> None:
    health = worker.get("/health").json()
    assert (health["status"], health["port"]) == ("ok", worker.port)
    assert {"pid", "activeSessions", "uptime", "memory", "queue"} <= health.keys()


@pytest.mark.parametrize("action", ["init", "observations", "summarize"])
def test_post_init_a_session_that_is_not_in_the_database_is_404(
    worker: SeedWorker, action: str
) -> None:
    response = worker.http.post(f"/sessions/999999/{action}", json={"tool_name": "Read"})
    assert response.status_code == 404


def test_post_observations_takes_the_fields_of_the_document_and_says_the_queue(
    worker: SeedWorker,
) -> None:
    row = begin(worker, "observed")
    answer = worker.post(
        f"/sessions/{row}/observations",
        {"tool_name": "Bash", "tool_input": {"command": "knot"}, "tool_output": "tied",
         "prompt_number": 1},
    )  # fmt: skip
    assert (answer["status"], answer["promptNumber"]) == ("queued", 1)
    assert answer["queueLength"] >= 0
    rows = worker.rows("SELECT tool_response FROM tool_events WHERE session_id = ?", row)
    assert {"tool_response": '"tied"'} in rows


@pytest.mark.parametrize("number", [9, 0, "one", None])
def test_post_observations_never_blocks_whatever_the_prompt_number(
    worker: SeedWorker, number: Any
) -> None:
    row = begin(worker, f"number-{number}")
    body = {"tool_name": "Read", "tool_output": "x", "prompt_number": number}
    answer = worker.post(f"/sessions/{row}/observations", body)
    assert (answer["status"], answer["promptNumber"]) == ("queued", 1)
    assert ("note" in answer) is (number is not None)


def test_post_summarize_by_prompt_number_and_each_prompt_has_its_summary(
    worker: SeedWorker,
) -> None:
    row = begin(worker, "twice")
    worker.post(f"/sessions/{row}/summarize", {"prompt_number": 1})
    worker.post(f"/sessions/{row}/init", {"userPrompt": "Untie it", "promptNumber": 2})
    worker.post(f"/sessions/{row}/summarize", {"prompt_number": 2})
    query = (
        "SELECT m.prompt_number FROM session_summaries m JOIN sdk_sessions s ON"
        " s.memory_session_id = m.memory_session_id WHERE s.id = ? ORDER BY 1"
    )
    wait_until(lambda: worker.column(query, row) == [1, 2], "two summaries")


def test_get_status_ids_project_and_what_waits(worker: SeedWorker) -> None:
    row = begin(worker, "stated")
    status = worker.get(f"/sessions/{row}/status").json()
    assert (status["sessionDbId"], status["project"]) == (row, "mooring")
    assert (status["sdkSessionId"], status["pendingMessages"]) == (None, 0)
    assert worker.get("/sessions/999999/status").status_code == 404


def test_delete_marks_the_session_failed_and_keeps_what_is_stored(worker: SeedWorker) -> None:
    row = begin(worker, "stopped")
    worker.post(f"/sessions/{row}/observations", {"tool_name": "Read", "tool_output": "kept"})
    assert worker.http.delete(f"/sessions/{row}").json()["status"] == "failed"
    assert worker.get(f"/sessions/{row}/status").json()["status"] == "failed"
    assert worker.rows("SELECT 1 FROM tool_events WHERE session_id = ?", row)
    assert worker.http.delete("/sessions/999999").status_code == 404


@pytest.mark.parametrize("end", ["DELETE", "forget"])
def test_delete_a_session_that_is_stopped_or_forgotten_no_longer_counts_as_working(
    worker: SeedWorker, end: str
) -> None:
    worker.post("/api/processing", {"isProcessing": False})  # whatever other sessions do
    row = begin(worker, f"working-{end}")
    assert worker.get("/api/processing").json()["isProcessing"] is True
    if end == "DELETE":
        worker.http.delete(f"/sessions/{row}")
    else:
        preview = worker.post("/api/forget", {"session": f"working-{end}"})
        body = {"session": f"working-{end}", "confirm": preview["confirm"]}
        worker.post("/api/forget", body)
    assert worker.get("/api/processing").json()["isProcessing"] is False
    assert '"active": false' in worker.layout.activity_flag.read_text()


def test_post_init_a_session_that_failed_goes_on_with_its_next_prompt(worker: SeedWorker) -> None:
    row = begin(worker, "retried")
    worker.http.delete(f"/sessions/{row}")
    again = worker.post(f"/sessions/{row}/init", {"userPrompt": "Try again", "promptNumber": 2})
    assert (again["status"], again["promptNumber"]) == ("initialized", 2)
    assert worker.get(f"/sessions/{row}/status").json()["status"] == "active"


def test_get_health_without_the_token_says_only_that_it_is_alive(worker: SeedWorker) -> None:
    response = httpx.get(f"http://127.0.0.1:{worker.port}/health", timeout=30)
    assert response.status_code == 200 and response.json().keys() == {"status"}


def test_log_lines_each_stored_summary_and_observation_names_its_session(
    worker: SeedWorker,
) -> None:
    row = begin(worker, "logged", "Fix the winch: it slips")
    change = {"file_path": "/home/dev/winch.py", "old_string": "1", "new_string": "2"}
    worker.post(f"/sessions/{row}/observations", {"tool_name": "Edit", "tool_input": change})
    message = "Fixed: the winch slipped because its brake in winch.py was worn."
    worker.post(f"/sessions/{row}/summarize", {"last_assistant_message": message})
    starts = ("session logged: summary S", "session logged: observation #")

    def has_both() -> bool:
        log = worker.layout.worker_log.read_text()
        return all(start in log for start in starts)

    wait_until(has_both, "both lines")


# Critical Findings


def test_auto_recovery_after_a_worker_that_died_nothing_is_lost_and_events_go_on(
    worker: SeedWorker,
) -> None:
    row = begin(worker, "survivor")
    worker.post(f"/sessions/{row}/observations", {"tool_name": "Read", "tool_output": "before"})
    worker.kill_worker()
    worker.http.close()
    worker.start()
    answer = worker.post(
        f"/sessions/{row}/observations", {"tool_name": "Read", "tool_output": "after"}
    )
    assert (answer["sessionDbId"], answer["promptNumber"]) == (row, 1)
    worker.post(f"/sessions/{row}/summarize", {"last_assistant_message": "It floats."})
    responses = worker.column(
        "SELECT tool_response FROM tool_events WHERE session_id = ? AND tool_name = 'Read'", row
    )
    assert responses == ['"before"', '"after"']
    summaries = "SELECT 1 FROM session_summaries WHERE completed LIKE '%floats%'"
    wait_until(lambda: worker.rows(summaries), "the summary")


# Deep Dive: Parser System


def parsed(reply: str) -> Distillate:
    return merge(Distillate(Summary()), parse_reply(reply))


def test_parse_observations_every_field() -> None:
    (observation,) = parsed(
        "<observation><type>feature</type><title>Beacon added</title>"
        "<subtitle>It turns</subtitle><facts><fact>Two lenses</fact><fact>One motor</fact></facts>"
        "<narrative>The beacon turns by a motor.</narrative><concepts>"
        "<concept>how-it-works</concept><concept>feature</concept></concepts><files_read>"
        "<file>src/lens.ts</file></files_read><files_modified><file>src/beacon.ts</file>"
        "</files_modified></observation>"
    ).observations
    assert (observation.type, observation.title) == ("feature", "Beacon added")
    assert (observation.subtitle, observation.facts) == ("It turns", ("Two lenses", "One motor"))
    assert observation.narrative == "The beacon turns by a motor."
    assert observation.concepts == ("how-it-works",)  # the type is not a concept
    assert observation.files_modified == ("src/beacon.ts",)


@pytest.mark.parametrize("type_", ["", "<type>wonder</type>"])
def test_parse_observations_a_missing_or_invalid_type_is_a_change(type_: str) -> None:
    reply = f"<observation>{type_}<title>Something happened</title></observation>"
    assert [o.type for o in parsed(reply).observations] == ["change"]


@pytest.mark.parametrize(
    ("fields", "type_", "title"),
    [
        ("<type>bugfix</type>", "bugfix", "Bugfix"),
        ("<files_modified><file>lens.ts</file></files_modified>", "change", "Changed lens.ts"),
        ("<files_read><file>lens.ts</file></files_read>", "change", "Read lens.ts"),
        ("<concepts><concept>gotcha</concept></concepts>", "change", "Change: gotcha"),
    ],
)
def test_parse_observations_is_saved_with_whatever_fields_it_has(
    fields: str, type_: str, title: str
) -> None:
    (observation,) = parsed(f"<observation>{fields}</observation>").observations
    assert (observation.type, observation.title) == (type_, title)


def test_parse_observations_valid_types() -> None:
    valid = {"bugfix", "feature", "refactor", "change", "discovery", "decision"}
    assert set(OBSERVATION_TYPES) == valid


@pytest.mark.parametrize("field", ["request", "investigated", "learned", "completed", "next_steps",
                                   "notes"])  # fmt: skip
def test_parse_summary_is_saved_with_whatever_fields_it_has(field: str) -> None:
    summary = parsed(f"<summary><{field}>Turn the beacon</{field}></summary>").summary
    assert getattr(summary, field) == "Turn the beacon"


@pytest.mark.parametrize("field", ["files_read", "files_edited"])
def test_parse_summary_is_saved_with_files_alone(field: str) -> None:
    summary = parsed(f"<summary><{field}><file>lens.ts</file></{field}></summary>").summary
    assert getattr(summary, field) == ("lens.ts",)


def test_parse_summary_may_be_skipped_with_a_reason() -> None:
    reply = parse_reply('<skip_summary reason="nothing happened"/>')
    assert (reply.summary, reply.skip_summary) == (None, True)
    assert (reply.skip_reason, reply.unplaced) == ("nothing happened", [])


# Appendix: Configuration Reference, and Recommendations


def test_environment_variables_of_the_appendix_are_settings() -> None:
    names = {setting.name for setting in SETTINGS}
    assert {"CLAUDE_MEM_MODEL", "CLAUDE_MEM_WORKER_PORT", "CLAUDE_MEM_VERBOSITY",
            "CLAUDE_MEM_DELETE_TIMEOUT", "CLAUDE_CODE_PATH"} <= names  # fmt: skip


def test_add_queue_metrics_to_health(worker: SeedWorker) -> None:
    queue = worker.get("/health").json()["queue"]
    assert queue.keys() == {"depth", "oldestSeconds", "dead", "warning"}
