"""The command, as users and scripts run it."""

import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest

from claude_mem.cli import commands
from tests.conftest import Home, temporary_home
from tests.payloads import SESSION, as_bytes, edit, prompt, session_end, session_start, stop, tool


def remember_a_session(home: Home) -> Home:
    home.start_worker()
    for payload in (session_start(), prompt(), tool(), edit(), stop(), session_end()):
        home.hook(payload)
    home.wait_settled()
    return home


@pytest.fixture
def remembering(home: Home) -> Home:
    return remember_a_session(home)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home for commands that are refused, whatever else was remembered there."""
    with temporary_home(tmp_path_factory.mktemp("shared")) as home:
        yield remember_a_session(home)


def as_json(home: Home, *arguments: str) -> Any:
    done = home.command(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name", ["status", "sessions", "stats", "context", "settings", "search", "retry"]
)
def test_before_there_is_memory_each_command_says_so_and_creates_nothing(
    home: Home, name: str
) -> None:
    done = home.command(name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not home.layout.database.exists()


def test_status(remembering: Home) -> None:
    report = as_json(remembering, "status")
    assert report["worker"]["pid"] == remembering.worker_pid()
    assert report["database"]["observations"] == 1
    assert report["spool"] == {"waiting": 0, "rejected": 0, "set_aside": 0, "lost": 0}
    text = remembering.command("status").stdout
    assert "claude-mem open" in text
    assert "running, version" in text and "1 observation, 1 summary, 1 session, 1 project" in text


def test_sessions(remembering: Home) -> None:
    (session,) = as_json(remembering, "sessions")
    assert session["content_session_id"] == SESSION
    assert (session["status"], session["title"]) == (
        "completed",
        "Make the harbour light blink twice",
    )
    (line,) = remembering.command("sessions").stdout.splitlines()
    assert line.split("\t")[2:5] == ["harbor", "completed", "1"]
    assert as_json(remembering, "sessions", "--project", "harbor") == [session]
    missing = remembering.command("sessions", "--project", "nope")
    assert (missing.returncode, missing.stderr) == (
        1,
        "claude-mem: there is no project 'nope': `claude-mem stats` lists them\n",
    )


def test_show(remembering: Home) -> None:
    shown = as_json(remembering, "show", "1", "S1", "P1")
    assert [record["kind"] for record in shown] == ["observations", "summaries", "prompts"]
    assert shown[0]["title"] == "light.py: make the harbour light blink twice"
    text = remembering.command("show", "1").stdout
    assert text.startswith("#1 change  harbor")
    assert "narrative: The light blinks twice now." in text and "light.py" in text
    records = as_json(remembering, "show", "session", SESSION)
    assert [record["kind"] for record in records] == [
        "sessions", "summaries", "observations", "prompts",
    ]  # fmt: skip
    assert as_json(remembering, "show", "session", "1") == records


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["99"], "no memory with id 99"),
        (["x9"], "'x9' is not an id"),
        (["S"], "'S' is not an id"),
        (["9" * 40], "is not an id"),
        (["session", "nope"], "no session 'nope'"),
    ],
)
def test_show_says_what_is_wrong_with_an_id(shared: Home, ids: list[str], message: str) -> None:
    done = shared.command("show", *ids)
    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr


def test_a_fact_is_shown_with_the_memories_it_comes_from(home: Home) -> None:
    home.command("remember", "The relay needs 5 V", "--type", "decision")
    (fact,) = as_json(home, "facts", "--project", "*")["facts"]
    shown = home.command("show", f"F{fact['id']}").stdout
    assert shown.startswith(f"F{fact['id']} decision  ") and "words of the user" in shown
    assert "value: The relay needs 5 V\nstatus: holds\nseen in 1 turn, first " in shown
    assert shown.endswith("from 1: The relay needs 5 V\n")
    (record,) = as_json(home, "show", f"f{fact['id']}")
    assert record == {**fact, "memory_kind": "fact", "memories": record["memories"]}
    assert [memory["id"] for memory in record["memories"]] == fact["sources"]
    missing = home.command("show", "F59")
    assert missing.returncode == 1 and "`claude-mem facts`" in missing.stderr


def test_the_next_page_is_named_as_an_option(home: Home) -> None:
    for text in ("The relay needs 5 V", "The relay is slow", "The relay rusts"):
        home.command("remember", text, "--type", "decision")
    for environment in ({}, {"TZ": "UTC"}):  # by the worker, and by the command
        shown = home.command("search", "relay", "--limit", "1", "--offset", "1", **environment)
        assert "More results: --offset 2." in shown.stdout
        details = home.command("search", "relay", "-v", **environment).stdout
        assert re.search(r"\(~\d+t", details) and "~" not in shown.stdout
    assert (
        "More facts: --offset 2." in home.command("facts", "--project", "*", "--limit", "2").stdout
    )
    assert "More results: --limit 2." in home.command("related", "1", "--limit", "1").stdout
    assert re.search(r"\(~\d+t", home.command("timeline", "1", "-v").stdout)
    assert "~" not in home.command("timeline", "1").stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("edit P1 --title x", "P1 is a prompt, which stays as it was typed"),
        ("edit P1", "claude-mem wrong P1; to forget it: claude-mem forget P1"),
        ("edit S1 --title x", "S1 has no --title: set --request, "),
        ("edit 1 --next-steps x", "1 has no --next-steps: set --type, --title"),
        ("edit S1", "or --notes, such as claude-mem edit S1 --investigated TEXT"),
        ("facts edit 59", "nothing to change: set --subject, --value or --scope, such as"
                          " claude-mem edit F59 --value TEXT"),
    ],
)  # fmt: skip
def test_an_edit_that_cannot_be_made_says_what_can_be_set(
    shared: Home, command: str, message: str
) -> None:
    done = shared.command(*command.split())
    assert done.returncode == 1 and message in done.stderr, done.stderr


def groups(context: click.Context) -> Iterator[click.Context]:
    """The command and each group in it."""
    group = context.command
    assert isinstance(group, click.Group)
    yield context
    for name in group.list_commands(context):
        if isinstance(command := group.get_command(context, name), click.Group):
            yield from groups(click.Context(command, context, name))


def test_each_command_that_is_misspelled_is_named() -> None:
    for context in groups(click.Context(commands, info_name="claude-mem")):
        group = context.command
        assert isinstance(group, click.Group)
        for name in group.list_commands(context):
            misspelled = name[0] + name[2:]
            with pytest.raises(click.UsageError) as raised:
                group.resolve_command(context, [misspelled])
            assert f"{context.command_path} {name}" in raised.value.format_message()


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        ("staus", "Did you mean claude-mem status or claude-mem stats?"),
        ("worker strat", "Did you mean claude-mem worker start or "),
        ("xyzzy", "claude-mem --help lists the commands."),
        ("facts rules", "claude-mem facts --help lists the commands."),
    ],
)
def test_an_unknown_command_is_answered_with_the_next_step(
    shared: Home, typed: str, advice: str
) -> None:
    done = shared.command(*typed.split())
    assert done.returncode == 2 and advice in done.stderr, done.stderr


def test_stats(remembering: Home) -> None:
    report = as_json(remembering, "stats")
    assert report["database"]["summaries"] == 1
    (project,) = report["projects"]
    assert (project["name"], project["observations"]) == ("harbor", 1)


def test_context_shows_what_the_hook_would_give(remembering: Home) -> None:
    shown = remembering.command("context", "--project", "harbor").stdout.rstrip("\n")
    assert shown == remembering.context(session_start(session_id="next"))
    report = as_json(remembering, "context", "--project", "harbor")
    assert report["context"] == shown and report["tokens"] > 20


def test_context_with_a_payload_answers_as_the_hook_does(remembering: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "claude_mem", "context"],
        input=as_bytes(session_start(session_id="next")),
        capture_output=True,
        env=remembering.env(),
    )
    context = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    assert "Files edited: light.py" in context


def test_the_old_names_of_the_hooks_do_what_the_launcher_does(home: Home) -> None:
    for name, payload in (("new", prompt()), ("save", tool()), ("summary", stop()),
                          ("cleanup", session_end())):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "claude_mem", name],
            input=as_bytes(payload),
            capture_output=True,
            env=home.env(),
        )
        assert (done.returncode, done.stdout) == (0, b'{"continue":true,"suppressOutput":true}\n')
    home.wait_settled()
    events = [row["event"] for row in home.rows("SELECT event FROM tool_events ORDER BY id")]
    assert events == ["UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]
    assert home.rows("SELECT status FROM sdk_sessions") == [{"status": "completed"}]


@pytest.fixture
def with_dead_letter(remembering: Home) -> Home:
    """A home with a turn that failed for good."""
    remembering.command("worker", "stop")
    with closing(sqlite3.connect(remembering.layout.database)) as connection, connection:
        connection.execute("DELETE FROM session_summaries")
        connection.execute(
            "INSERT INTO pending_messages (session_id, turn_id, status, attempts, last_error,"
            " available_at_epoch, created_at_epoch) VALUES (1, 1, 'dead', 3, 'out of luck', 0, 0)"
        )
    return remembering


@pytest.mark.parametrize("running", [True, False], ids=["worker up", "no worker"])
def test_what_could_not_be_distilled_is_tried_again_on_demand(
    with_dead_letter: Home, running: bool
) -> None:
    if running:
        with_dead_letter.start_worker()
    assert "claude-mem retry" in with_dead_letter.command("status").stdout
    done = with_dead_letter.command("retry")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Retrying 1 turn")
    with_dead_letter.wait_settled()
    assert with_dead_letter.rows("SELECT * FROM pending_messages") == []
    assert len(with_dead_letter.rows("SELECT * FROM session_summaries")) == 1
    assert "Nothing to retry" in with_dead_letter.command("retry").stdout


def test_a_dry_run_of_retry_lists_the_turns_and_changes_nothing(with_dead_letter: Home) -> None:
    before = with_dead_letter.rows("SELECT * FROM pending_messages")
    done = with_dead_letter.command("retry", "--dry-run")
    assert done.stdout == f"1 turn would be retried:\n  {SESSION} prompt 1: out of luck\n"
    report = as_json(with_dead_letter, "retry", "--dry-run")
    assert (report["dead"], report["dead_letters"][0]["attempts"]) == (1, 3)
    assert with_dead_letter.rows("SELECT * FROM pending_messages") == before
    assert with_dead_letter.worker_pid() is None


def test_retry_without_anything_dead_starts_no_worker(home: Home) -> None:
    assert as_json(home, "retry") == {"retried": 0}
    assert home.worker_pid() is None and not home.layout.database.exists()


def test_settings_are_shown_changed_and_unset(home: Home) -> None:
    home.environment.pop("CLAUDE_MEM_WORKER_PORT", None)
    assert home.command("settings", "context-tokens", "900").returncode == 0
    report = {row["name"]: row for row in as_json(home, "settings")}
    assert report["CLAUDE_MEM_CONTEXT_TOKENS"]["value"] == "900"
    assert report["CLAUDE_MEM_CONTEXT_TOKENS"]["source"] == "settings.json"
    assert report["CLAUDE_MEM_WORKER_PORT"]["source"] == "environment"
    assert "900" in home.command("settings", "CLAUDE_MEM_CONTEXT_TOKENS").stdout
    assert home.command("settings", "context-tokens", "--unset").returncode == 0
    assert "CLAUDE_MEM_CONTEXT_TOKENS" not in home.layout.settings.read_text()
    refused = home.command("settings", "context-tokens", "many")
    assert refused.returncode == 1 and "must be a whole number" in refused.stderr
    too_large = home.command("settings", "CONTEXT_TOKENS", "99999999")
    assert too_large.returncode == 1
    assert "must be a whole number from 0 to 7425 (default 1000)" in too_large.stderr
    assert home.command("settings", "no-such-thing").returncode == 1
    assert "did you mean CONTEXT_TOKENS?" in home.command("settings", "CONTEXT_TOKEN", "5").stderr


def test_a_broken_settings_file_is_a_clear_error_for_people_and_no_harm_to_hooks(
    home: Home,
) -> None:
    home.layout.settings.write_text("{broken")
    done = home.command("status")
    assert done.returncode == 1 and "cannot be read" in done.stderr
    assert home.hook(tool()).returncode == 0
    home.wait_settled()
    assert len(home.rows("SELECT * FROM tool_events")) == 1


@pytest.mark.parametrize(
    "command",
    [
        "",
        "status",
        "sessions",
        "show",
        "stats",
        "context",
        "worker",
        "settings",
        "demo",
        "new",
        "retry",
    ],
)
def test_help_teaches(shared: Home, command: str) -> None:
    done = shared.command(*command.split(), "--help")
    assert done.returncode == 0
    assert "Usage:" in done.stdout and len(done.stdout) > 150


def test_help_lists_every_command_that_is_not_hidden(home: Home) -> None:
    text = home.command("--help").stdout
    listed = re.findall(r"^  ([a-z]+)  ", text, re.MULTILINE)
    context = click.Context(commands)
    every = {name: commands.get_command(context, name) for name in commands.list_commands(context)}
    shown = {name for name, command in every.items() if command and not command.hidden}
    assert sorted(listed) == sorted(shown)


def test_of_several_ids_those_that_are_there_are_shown(shared: Home) -> None:
    done = shared.command("show", "S1", "S77", "P88")
    assert done.returncode == 1 and "no memory with id S77, P88" in done.stderr
    assert "request: " in done.stdout


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("search --since yesterweek", "--since"),
        ("search --until 2026-99-01", "--until"),
        ("search x --limit none", "--limit"),
        ("search x --order upwards", "--order"),
        ("search x --type poem", "--type"),
        ("search x --status lost", "--status"),
        ("facts --kind poems", "--kind"),
        ("facts --status open", "--status"),
        ("timeline S1 --before 201", "--before"),
        ("timeline S1 --after=-1", "--after"),
        ("related S1 --limit 0", "--limit"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_that_was_typed(
    shared: Home, command: str, option: str
) -> None:
    done = shared.command(*command.split())
    assert done.returncode == 1
    assert done.stderr.startswith(f"claude-mem: Invalid value for '{option}': ")


@pytest.mark.parametrize(
    "command",
    [
        "search", "search --project", "search --session", "search --file", "search --since",
        "timeline", "show", "show session", "related", "sessions --project", "context --project",
        "remember", "remember x --project", "forget", "forget --query", "forget --session",
        "settings", "export - --project", "import --project",
    ],
)  # fmt: skip
def test_bytes_that_are_no_text_are_answered_or_clearly_refused(shared: Home, command: str) -> None:
    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"claude_mem", *command.encode().split(), b"caf\xe9 \xff"],
        env=shared.env(), capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 or done.stderr.startswith(b"claude-mem: ")
    assert b"Traceback" not in done.stderr and done.stderr.count(b"\n") <= 1


def test_on_a_terminal_sessions_are_a_table_and_context_is_shown(remembering: Home) -> None:
    text = on_a_terminal(remembering, "sessions")
    assert "project" in text and "harbor" in text and "\t" not in text
    shown = on_a_terminal(remembering, "context", "--project", "harbor")
    assert "Files edited: light.py" in shown


def test_what_a_memory_holds_does_not_steer_the_terminal(home: Home) -> None:
    home.command("remember", "The bell \x1b[31mis \x07cracked\x1b]0;owned")
    for command in (["search", "bell"], ["timeline", "1"], ["show", "1"], ["context"]):
        shown = on_a_terminal(home, *command)
        assert "cracked" in shown, command
        assert "\x07" not in shown and "[31m" not in shown and "\x1b]" not in shown, command


def on_a_terminal(home: Home, *arguments: str) -> str:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "claude_mem", *arguments],
        stdin=terminal, stdout=terminal, stderr=terminal,
        env=home.env(TERM="xterm", COLUMNS="120"),
    )  # fmt: skip
    os.close(terminal)
    shown = b""
    try:
        while chunk := os.read(controller, 65536):
            shown += chunk
    except OSError:
        pass  # Linux returns EIO when the program has exited
    os.close(controller)
    assert process.wait() == 0
    return shown.decode()


def test_the_demo_shows_what_the_next_session_would_get(home: Home) -> None:
    done = home.command("demo")
    assert done.returncode == 0, done.stderr
    context = done.stdout.split("<claude-mem-context>")[1]
    assert "sessions.md says why the cookie is SameSite=Lax" in context
    assert "swordfish" not in context
    assert "a cookie with SameSite=Strict is not sent on that first request" in context
    assert "Files edited: harbor/views.py" in context
    search = done.stdout.split("3. A search\n")[1].split("\n4. ")[0]
    assert search.startswith("$ claude-mem search 'why was the cookie not sent'\n#1 ")
    assert "SameSite=Strict" in search
    hint = done.stdout.split("\n4. ")[1].split("\n5. ")[0]
    assert "Perhaps related, from earlier sessions here" in hint and "#1 " in hint
    assert "claude-mem install" in done.stdout.split("\n5. What to type next\n")[1]
    assert not home.layout.database.exists()


def test_the_demo_plays_any_transcript(home: Home, tmp_path: Path) -> None:
    lines: list[Any] = [
        {"type": "summary", "summary": "no session here"},
        {"type": "user", "sessionId": "s1", "cwd": "/home/dev/quay", "uuid": "u1",
         "message": {"role": "user", "content": "Count the boats"}},
        {"type": "assistant", "sessionId": "s1", "uuid": "u2", "message": {"id": "m", "content": [
            {"type": "text", "text": "There are seven boats."}]}},
        "not an object",
    ]  # fmt: skip
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"cut": ')
    done = home.command("demo", "--transcript", str(path))
    assert done.returncode == 0, done.stderr
    assert "- There are seven boats." in done.stdout
    assert "$ claude-mem search 'Count the boats'\n" in done.stdout
    assert "Perhaps related" in done.stdout or "\nNo hint: " in done.stdout
    path.write_text("nothing\n")
    refused = home.command("demo", "--transcript", str(path))
    assert refused.returncode == 1 and "contains no session" in refused.stderr


def test_search_lists_what_is_found_with_its_id(remembering: Home) -> None:
    rows = as_json(remembering, "search", "blinks", "twice")["results"]
    assert [(row["id"], row["also"]) for row in rows] == [("1", ["S1", "P1"])]
    text = remembering.command("search", "blinks", "--type", "change").stdout
    assert text.startswith("#1 ") and "change: " in text
    assert "\x1b" not in text


def test_search_marks_the_words_of_the_question_on_a_terminal_alone(remembering: Home) -> None:
    shown = on_a_terminal(remembering, "search", "blinking", "--type", "prompts")
    assert "\x1b[1mblink\x1b[0m" in shown


def test_search_takes_a_word_to_leave_out_and_refuses_an_unknown_option(
    remembering: Home,
) -> None:
    assert as_json(remembering, "search", "harbour")["results"]
    assert not as_json(remembering, "search", "harbour", "-light")["results"]
    refused = remembering.command("search", "blink", "--projct=harbor")
    assert refused.returncode == 1
    assert "no such option: --projct=harbor" in refused.stderr


def test_search_says_plainly_that_nothing_was_found(remembering: Home) -> None:
    assert remembering.command("search", "zeppelin").stdout == "Nothing found.\n"
    assert remembering.command("timeline", "zeppelin").stdout == "Nothing found.\n"


@pytest.mark.parametrize("arguments", [("--limit", "many"), ("--since", "then"), ("--type", "x")])
def test_a_search_that_makes_no_sense_ends_with_one_clear_line(
    shared: Home, arguments: tuple[str, ...]
) -> None:
    refused = shared.command("search", "blink", *arguments)
    assert refused.returncode == 1
    assert refused.stderr.startswith("claude-mem: ")
    assert refused.stderr.count("\n") == 1


def test_timeline_shows_what_stood_around_an_id_or_an_answer(remembering: Home) -> None:
    assert [row["id"] for row in as_json(remembering, "timeline", "1")["results"]] == [
        "P1", "1", "S1",
    ]  # fmt: skip
    assert "<-- anchor" in remembering.command("timeline", "S1", "--before", "1").stdout
    result = as_json(remembering, "timeline", "blinks", "twice", "--before=0", "--after=0")
    assert [row["id"] for row in result["results"]] == [result["anchor"]]
