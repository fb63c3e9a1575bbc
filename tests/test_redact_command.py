"""`claude-mem redact`: secrets that are already stored are shown in part, and removed everywhere.

They get there as a setting lets them pass; then the setting is gone, as after an upgrade that
knows more kinds of secrets.
"""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.redaction import Redactor
from claude_mem.server import client
from claude_mem.store.stored_secrets import TABLES, find_in_text
from tests.conftest import Home, wait_until
from tests.fake_api import FakeApi
from tests.observed import says, use
from tests.payloads import edit, prompt, session_end, session_start, stop, tool
from tests.terminal import Terminal
from tests.test_hard_forgetting import back_up

TOKEN = "ghp" + "_" + "Zx9Qw7Lk2Vb5" * 3
PASSWORD = "Harbour-Lantern-77"
LINE = f'password = "{PASSWORD}"'


# Names, paths, times, counts and hashes.
NO_CONTENT = {
    "forgotten", "notices", "observer_usage", "project_aliases", "project_claims",
    "project_checkouts", "project_overrides", "schema_migrations",
    "team_facts", "team_projects", "team_state", "team_turns",
    "tombstones", "transcripts", "undistilled_transcripts",
}  # fmt: skip
DERIVED = {"documents", "indexed_turns", "passages", "unindexed_turns", "vector_models"}


def turn(home: Home, session: str, text: str) -> None:
    about = {"session_id": session, "prompt_id": f"prompt-of-{session}"}
    for payload in (
        session_start(session_id=session),
        prompt(f"Rotate the lamp key: {text}", **about),
        tool(tool_input={"command": text}, tool_response={"stdout": text}, **about),
        edit(new=text, **about),
        stop(f"I decided to rotate the lamp key because {text} was too old.", **about),
        session_end(**about),
    ):
        assert home.hook(payload).returncode == 0
    home.wait_settled()


@pytest.fixture
def leaky(home: Home, api: FakeApi) -> Home:
    """A home with secrets in every kind of file that may hold them."""
    use(home, api, "anthropic")
    home.environment["CLAUDE_MEM_EMBEDDER"] = "none"
    home.environment["CLAUDE_MEM_REDACT_ALLOW"] = f"{TOKEN},{PASSWORD}"
    api.say(says(f"I will not answer as you ask. {LINE} {TOKEN}"))
    turn(home, "first", f"{LINE} {TOKEN}")
    wait_until(lambda: home.rows("SELECT 1 FROM refinements WHERE reply IS NOT NULL"), "a reply")
    turn(home, "trash", f"{LINE} {TOKEN}")
    assert home.command("forget", "--session", "trash", "--yes").returncode == 0
    assert home.context(session_start(session_id="later"))
    home.hook(b'{"session_id": 5, "note": "' + TOKEN.encode() + b'"}', "Stop")
    home.wait_settled()
    with home.layout.worker_log.open("a") as log:
        log.write(f"something about {TOKEN}\n")
    back_up(home)
    del home.environment["CLAUDE_MEM_REDACT_ALLOW"]
    home.record_environment()
    client.stop(home.layout)
    return home


def files_with_secrets(home: Home) -> list[str]:
    return sorted(
        path.name
        for path, content in home.files().items()
        if TOKEN.encode() in content or PASSWORD.encode() in content
    )


def test_a_scan_shows_kinds_and_places_but_no_secret(leaky: Home) -> None:
    before = files_with_secrets(leaky)
    done = leaky.command("redact", "--scan", "--json")
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)["findings"]
    assert {finding["kind"] for finding in findings} == {"github-token", "password"}
    places = {finding["place"] for finding in findings}
    for place in (
        "user_prompts.prompt_text",
        "tool_events.tool_input",
        "turn_records.parts",
        "session_summaries.request",
        "refinements.reply",
        "forgotten_rows.content",
    ):
        assert place in places
    assert any(place.startswith("memory-") for place in places), "no backup"
    assert any(place.startswith("contexts/") for place in places), "no context"
    text = leaky.command("redact", "--scan").stdout
    assert "ghp… (40 characters)" in text and "user_prompts.prompt_text: " in text
    for output in (done.stdout, text):
        assert TOKEN[4:] not in output and PASSWORD not in output
    assert files_with_secrets(leaky) == before, "a scan changes nothing"


def test_a_backup_that_cannot_be_read_does_not_stop_a_scan(leaky: Home) -> None:
    made = set(leaky.layout.backups.iterdir())
    backup = max(made)
    broken = leaky.layout.backups / "memory-99991231T235959000000.db.gz"
    broken.write_bytes(backup.read_bytes()[:1_000])
    done = leaky.command("redact", "--scan", "--json")
    places = {finding["place"] for finding in json.loads(done.stdout)["findings"]}
    assert f"{backup.name} user_prompts.prompt_text" in places
    assert f"{broken.name} was not searched for secrets" in done.stderr
    assert set(leaky.layout.backups.iterdir()) == made | {broken}
    assert leaky.command("redact", "--clean", "--yes").returncode == 0
    assert not broken.exists() and files_with_secrets(leaky) == []


def test_cleaning_leaves_no_secret_in_any_file(leaky: Home) -> None:
    assert {"memory.db", "worker.log"} <= set(files_with_secrets(leaky))
    done = leaky.command("redact", "--clean", "--yes")
    assert done.returncode == 0, done.stderr
    assert "No file contains them any more." in done.stdout
    assert files_with_secrets(leaky) == []
    assert list(leaky.layout.backups.glob("memory-*.db.gz"))
    assert "0 secrets found" in leaky.command("redact", "--scan").stdout


def test_what_is_around_a_secret_stays_and_is_found(leaky: Home) -> None:
    assert leaky.command("redact", "--clean", "--yes").returncode == 0
    (row,) = leaky.rows("SELECT prompt_text FROM user_prompts WHERE prompt_id LIKE '%first'")
    assert row["prompt_text"] == (
        'Rotate the lamp key: password = "[redacted:password]" [redacted:github-token]'
    )
    assert "rotate the lamp key" in leaky.command("search", "rotate lamp").stdout.lower()
    assert "Nothing found." in leaky.command("search", PASSWORD.split("-")[1]).stdout
    assert leaky.command("forget", "--undo").returncode == 0
    assert files_with_secrets(leaky) == []


def test_cleaning_without_a_terminal_is_refused_with_the_command_to_type(home: Home) -> None:
    home.hook(prompt("Blink"))
    home.wait_settled()
    done = home.command("redact", "--clean")
    assert done.returncode == 1 and "claude-mem redact --clean --yes" in done.stderr
    assert home.command("redact").returncode == 1


def test_cleaning_says_what_it_changes_and_asks(leaky: Home) -> None:
    before = files_with_secrets(leaky)
    command = [sys.executable, "-m", "claude_mem", "redact", "--clean"]
    terminal = Terminal(command, leaky.path, leaky.env())
    try:
        wait_until(lambda: terminal.shows("Redact secrets in all files? [y/N]"), "the question")
        assert terminal.shows("replaces 1 backup by a fresh one")
        assert terminal.shows("empties or deletes")
        assert terminal.shows("deletes 1 hook payload that could not be read or was set aside")
        terminal.press("n\n")
        assert terminal.process.wait(60) == 1
    finally:
        terminal.close()
    assert files_with_secrets(leaky) == before


def test_the_ids_of_sessions_in_our_own_log_are_no_secrets(home: Home) -> None:
    home.start_worker()
    home.command("remember", "The relay is slow")
    home.hook(prompt("Blink", session_id="ses_5f2a9c1e7ffeXk3QzBv8LmNpRt"))
    home.hook(session_end(session_id="ses_5f2a9c1e7ffeXk3QzBv8LmNpRt"))
    home.wait_settled()
    wait_until(lambda: "session ses_5f2a" in home.layout.worker_log.read_text(), "the log")
    assert "session hand-" in home.layout.worker_log.read_text()
    assert home.command("redact", "--scan").stdout == "0 secrets found.\n"


def test_a_session_cookie_is_still_a_secret() -> None:
    (finding,) = find_in_text(Redactor(), "a", "session=ses_5f2a9c1e7ffeXk3QzBv8LmNpRt; Path=/")
    assert finding.kind == "cookie"


def test_every_table_with_text_is_searched(home: Home) -> None:
    home.hook(prompt("Blink"))
    home.wait_settled()
    with closing(sqlite3.connect(home.layout.database)) as connection:
        rows = connection.execute(
            "SELECT DISTINCT m.name FROM sqlite_master m, pragma_table_info(m.name) c"
            " WHERE m.type = 'table' AND c.type = 'TEXT' AND m.sql NOT LIKE 'CREATE VIRTUAL%'"
        )
        tables = {name for (name,) in rows}
    assert tables - set(TABLES) - NO_CONTENT - DERIVED == set()


@pytest.mark.parametrize("text", [f'{{"password": "{PASSWORD}"}}', LINE, f"[1, {TOKEN}"])
def test_a_hint_is_only_the_beginning(text: str) -> None:
    (finding,) = find_in_text(Redactor(), str(Path("a")), text)
    assert finding.hint in (f"{PASSWORD[:3]}… (18 characters)", "ghp… (40 characters)")
