"""Paths of transcripts over HTTP: only those in the client's own directory are read."""

from pathlib import Path

import httpx

from tests.api import open_api
from tests.conftest import Home
from tests.payloads import PROJECT_DIR
from tests.transcripts import SESSION, Chat, harbour, recently


def test_a_path_that_comes_over_http_is_kept_only_where_the_client_keeps_transcripts(
    tmp_path: Path,
) -> None:
    projects = tmp_path / "claude/projects"
    chat = Chat(start=recently()).prompt("Go").agent("Said in the transcript: `pier 7` is rotten.")
    inside, outside = chat.save(projects / "x/a.jsonl"), chat.save(tmp_path / "outside.jsonl")
    (projects / "x/link.jsonl").symlink_to(outside)
    prompt_id = f"prompt-{SESSION}-0001"
    with open_api(tmp_path / "data") as api:
        api.worker.transcripts_dir = projects
        for number, (path, is_kept) in enumerate(
            [(inside, True), (outside, False), (projects / "x/link.jsonl", False), (7, False)]
        ):
            about = {"contentSessionId": f"s-{number}", "cwd": PROJECT_DIR}
            api.post_json("/api/sessions/init", prompt="Go", prompt_id="p",
                     transcript_path=path if path == 7 else str(path), **about)  # fmt: skip
            (row,) = api.rows(
                "SELECT transcript_path FROM sdk_sessions WHERE content_session_id = ?",
                about["contentSessionId"],
            )
            assert row["transcript_path"] == (str(inside) if is_kept else "")
        about = {
            "contentSessionId": SESSION,
            "transcript_path": str(outside),
            "prompt_id": prompt_id,
        }
        api.post_json("/api/sessions/init", prompt="Go", **about)
        api.post_json("/api/sessions/summarize", last_assistant_message="Done.", **about)
        api.catch_up()
        assert api.rows("SELECT * FROM tool_events WHERE event = 'Statement'") == []


def test_the_worker_knows_where_the_client_keeps_its_transcripts(home: Home) -> None:
    chat = harbour(start=recently())
    file = chat.save_in(home.path)
    home.start_worker()
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(home.layout.socket))) as client:
        about = {"contentSessionId": SESSION, "prompt": "Go", "transcript_path": str(file)}
        assert client.post("http://x/api/sessions/init", json=about).status_code == 200
    assert home.rows("SELECT transcript_path FROM sdk_sessions") == [{"transcript_path": str(file)}]
