"""claude-mem import: which files it reads, what it reports, and what the next session gets."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from claude_mem.cli.imports import find_transcripts
from claude_mem.intake.transcripts.past_sessions import PastSessionReader
from claude_mem.store import Store
from tests.conftest import Home, wait_until
from tests.contents import contents_of
from tests.importing import (
    OTHER_DIR,
    ImportTarget,
    forked,
    import_alone,
    import_options,
    library,
    run_import,
)
from tests.payloads import prompt, session_start, stop
from tests.story import DAY
from tests.terminal import Terminal
from tests.transcripts import OLD, PROJECTS, SESSION, Chat, harbour


@pytest.fixture
def target(tmp_path: Path) -> ImportTarget:
    return ImportTarget(tmp_path / "target")


def test_without_paths_it_finds_what_the_client_keeps_and_leaves_out_what_is_not_a_session(
    home: Home,
) -> None:
    own = str(home.layout.root)
    directory = home.path / PROJECTS / "-home-dev-harbor"
    harbour().save_in(home.path)
    Chat("observer", cwd=own).prompt("Observe").agent("I did.").save_in(home.path)
    Chat("observer-2", cwd=f"{own}/observer").prompt("Observe").agent("I did.").save_in(home.path)
    agent = Chat("agent-1").prompt("Look").agent("I looked.")
    agent.save(directory / "agent-a1b2.jsonl")
    agent.save(directory / SESSION / "subagents/agent-c3.jsonl")
    agent.save(directory / SESSION / "subagents/workflows/other.jsonl")
    (directory / "a-directory.jsonl").mkdir()
    os.mkfifo(directory / "pipe.jsonl")
    (directory / "loop.jsonl").symlink_to("loop.jsonl")
    (directory / "around").symlink_to(directory)
    report = run_import(home)
    assert (report["sessions"], report["turns"], report["troubles"]) == (1, 3, [])
    assert [row["content_session_id"] for row in home.rows("SELECT * FROM sdk_sessions")] == [
        SESSION
    ]


def test_the_observers_own_sessions_are_left_out_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for directory in ("real", "real/deeper", "link", "link/deeper"):
        options = import_options(own_root=str(tmp_path / "link"))
        past = PastSessionReader(
            Chat(cwd=f"{tmp_path}/{directory}").prompt("x").agent("y").save(tmp_path / "o.jsonl"),
            options.reader(), 0, options.includes,
        )  # fmt: skip
        assert list(past.sessions()) == []
    past = PastSessionReader(
        Chat(cwd=f"{tmp_path}/real-work").prompt("x").agent("y").save(tmp_path / "o.jsonl"),
        options.reader(), 0, options.includes,
    )  # fmt: skip
    assert len(list(past.sessions())) == 1


def test_the_clients_own_directory_may_be_another(home: Home, tmp_path: Path) -> None:
    harbour().save(tmp_path / "elsewhere/projects/x/a.jsonl")
    home.environment["CLAUDE_CONFIG_DIR"] = str(tmp_path / "elsewhere")
    assert run_import(home)["turns"] == 3


def test_a_relative_path_is_kept_as_the_place_that_it_names(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    harbour().save(home.path / f"{SESSION}.jsonl")
    monkeypatch.chdir(home.path)
    assert find_transcripts([Path(f"{SESSION}.jsonl")]) == [home.path / f"{SESSION}.jsonl"]


def test_where_there_are_no_transcripts_it_says_where_it_looked(home: Home) -> None:
    done = home.command("import")
    assert done.returncode == 0
    others = (".codex", ".copilot", ".cursor", ".gemini", ".local/share/opencode", ".qwen")
    listed = ", ".join(f"{home.path}/{place}" for place in (PROJECTS, *others))
    assert done.stdout == f"No transcripts in {listed}.\n"
    assert not home.layout.database.exists()
    assert run_import(home)["files"] == 0


def test_a_file_that_cannot_be_read_is_reported_and_stops_nothing(home: Home) -> None:
    good = harbour().save(home.path / "good.jsonl")
    os.mkfifo(home.path / "pipe.jsonl")
    (home.path / "memory.jsonl").symlink_to("/proc/self/mem")  # opens, and then gives an error
    named = [str(home.path / name) for name in ("pipe.jsonl", "memory.jsonl")]
    report = run_import(home, *named, str(good))
    assert report["turns"] == 3
    assert [trouble["file"] for trouble in report["troubles"]] == named
    assert "is not a file" in report["troubles"][0]["reason"]
    done = home.command("import", *named)
    assert done.returncode == 0
    assert "pipe.jsonl: " in done.stdout


@pytest.mark.parametrize("content", ["# claude-mem\n\nA memory.\n", '{"a": 1}\n', "\x00\x01", ""])
def test_a_named_file_that_is_no_transcript_is_refused_before_anything_is_imported(
    home: Home, content: str
) -> None:
    good = harbour().save(home.path / "good.jsonl")
    other = home.path / "README.md"
    other.write_text(content)
    done = home.command("import", str(good), str(other))
    assert done.returncode == 1
    assert f"{other} is not a transcript" in done.stderr and "Claude Code, Codex" in done.stderr
    assert not home.layout.database.exists()


def test_ones_own_export_has_nothing_new_and_nothing_to_confirm(home: Home) -> None:
    home.hook(prompt("Always run the tests with make check, never with pytest."))
    home.hook(stop("I will."))
    home.wait_settled()
    assert home.rows("SELECT kind, status FROM facts") == [{"kind": "rule", "status": "holds"}]
    file = str(home.path / "own.jsonl")
    home.command("export", file)
    done = home.command("import", file)
    assert re.fullmatch(r"Nothing new: \d+ records already stored\n", done.stdout), done.stdout
    assert home.rows("SELECT DISTINCT status FROM facts") == [{"status": "holds"}]


def test_what_cannot_be_read_in_a_file_is_counted(home: Home) -> None:
    harbour().raw(b'{"type":"user","cut').raw(b"[1]").save_in(home.path)
    done = home.command("import")
    assert "2 lines skipped: not readable" in done.stdout
    assert len(home.rows("SELECT * FROM user_prompts")) == 3


def test_a_file_that_goes_away_while_it_is_read_stops_nothing(
    target: ImportTarget, tmp_path: Path
) -> None:
    good = harbour().save(tmp_path / "good.jsonl")
    gone = [tmp_path / "gone.jsonl"]
    reports = [target.run(good, *gone)]
    assert reports[0].all.turns == 3
    assert [path for path, _ in reports[0].troubles] == gone


def test_a_session_that_cannot_be_stored_is_reported_and_read_again_next_time(
    target: ImportTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = harbour("good").save(tmp_path / "good.jsonl")
    bad = harbour("bad").save(tmp_path / "bad.jsonl")
    expected = import_alone(tmp_path / "alone", good, bad)
    store_session = Store.import_session

    def failing(store: Store, session: Any) -> Any:
        if session.session_id == "bad":
            return store.write(lambda connection: session.no_such_thing)
        return store_session(store, session)

    monkeypatch.setattr(Store, "import_session", failing)
    report = target.run(bad, good)
    assert (report.all.turns, [path for path, _ in report.troubles]) == (3, [bad])
    monkeypatch.undo()
    assert target.run(bad, good).unchanged == 1
    assert target.contents == expected


def test_a_dry_run_writes_nothing_at_all(home: Home, tmp_path: Path) -> None:
    files = library(home.path / "library")
    bare = Home(tmp_path / "bare")
    bare.path.mkdir()
    done = bare.command("import", "--dry-run", str(home.path / "library"))
    assert done.returncode == 0, done.stderr
    assert "Would import" in done.stdout
    assert f"from {len(files)} files" in done.stdout
    assert list(bare.path.iterdir()) == []


def test_a_dry_run_knows_what_is_there_and_leaves_it_as_it_is(home: Home, tmp_path: Path) -> None:
    chat, fork = harbour(), forked(harbour(), "z-fork")
    file = chat.save_in(home.path)
    assert run_import(home, "--dry-run")["turns"] == 3
    run_import(home)
    before = contents_of(home.layout.database)
    report = run_import(home, "--dry-run")
    assert (report["turns"], report["unchanged"]) == (0, 1)
    report = run_import(home, "--dry-run", "--again")
    assert (report["turns"], report["known"]) == (0, 3)
    fork.save_in(home.path)
    chat.prompt("One more").agent("There it is.").save(file)
    report = run_import(home, "--dry-run")
    assert (report["turns"], report["known"]) == (2, 6)
    assert contents_of(home.layout.database) == before
    assert run_import(home)["turns"] == 2


def test_a_dry_run_of_an_export_is_refused(home: Home) -> None:
    harbour().save_in(home.path)
    run_import(home)
    export = home.path / "export.jsonl"
    assert home.command("export", str(export)).returncode == 0
    home.wait_settled()  # a worker may run, and changes the file without changing what it holds
    before = contents_of(home.layout.database)
    done = home.command("import", "--dry-run", str(export))
    assert done.returncode != 0
    assert "is an export" in done.stderr
    assert contents_of(home.layout.database) == before


def test_only_one_project_by_its_name_key_or_any_directory_of_it(
    home: Home, tmp_path: Path
) -> None:
    repository = tmp_path / "boats"
    for directory in (repository / ".git", repository / "src"):
        directory.mkdir(parents=True)
    harbour("harbor").save_in(home.path)
    harbour("boats", cwd=str(repository / "src")).save_in(home.path)
    for project in ("boats", str(repository), f"{repository}/", str(repository / "src")):
        report = run_import(home, "--dry-run", "--project", project)
        assert [entry["key"] for entry in report["projects"]] == [str(repository)], project
    done = home.command("import", "--project", "submarines")
    assert done.returncode == 0
    assert "These files contain no session of the project submarines." in done.stdout
    assert run_import(home, "--project", "harbor")["sessions"] == 1
    assert run_import(home)["sessions"] == 2  # a choice is no mark on the file


def test_only_turns_since_a_day(home: Home) -> None:
    chat = Chat(start=OLD).prompt("Old").agent("It was old.")
    chat.now += 5 * DAY
    chat.prompt("New").agent("It is new.").save_in(home.path)
    Chat("only-old").prompt("Older").agent("Yes.").save_in(home.path)
    report = run_import(home, "--since", "2023-11-16")  # OLD is two days before
    assert (report["sessions"], report["turns"]) == (1, 1)
    assert [row["prompt_text"] for row in home.rows("SELECT prompt_text FROM user_prompts")] == [
        "New"
    ]
    assert len(home.rows("SELECT * FROM sdk_sessions")) == 1
    done = home.command("import", "--since", "last week")
    assert done.returncode != 0
    assert "--since must be a day such as 2026-01-31" in done.stderr


def test_the_report_tells_of_each_project_and_what_the_next_session_is_given(home: Home) -> None:
    harbour().save_in(home.path)
    harbour("other", cwd=OTHER_DIR).save_in(home.path)
    done = home.command("import")
    assert "Imported 6 turns of 2 sessions from 2 files" in done.stdout
    assert "lighthouse" in done.stdout
    assert "tokens of text" in done.stdout
    assert "Context of the next session in lighthouse" in done.stdout
    assert "<claude-mem-context>" in done.stdout
    again = home.command("import")
    assert "2 files unchanged since the last import" in again.stdout
    assert "6 turns already recorded" in home.command("import", "--again").stdout


def test_on_a_terminal_it_shows_how_far_it_is(home: Home) -> None:
    library(home.path / "library")
    command = [sys.executable, "-m", "claude_mem", "import", str(home.path / "library")]
    terminal = Terminal(command, home.path, home.env())
    try:
        assert terminal.process.wait(60) == 0
        wait_until(lambda: terminal.shows("Imported"), "the report")
        assert terminal.shows("9 transcripts")
        assert terminal.shows("━")
    finally:
        terminal.close()


def test_a_pipe_is_not_shown_how_far_it_is(home: Home) -> None:
    harbour().save_in(home.path)
    done = home.command("import")
    assert done.stderr == ""
    assert "━" not in done.stdout


# The next session


def test_the_next_session_is_given_it_with_no_worker_ever_started(home: Home) -> None:
    harbour().save_in(home.path)
    run_import(home, "--wait")
    assert home.worker_pid() is None
    cold = list(home.layout.contexts.glob("*harbor*"))
    assert len(cold) == 1
    context = home.context(session_start(session_id="the-next"))
    assert json.loads(cold[0].read_bytes()) == context
    assert "pulses" in context


def test_beside_a_running_worker_the_next_session_is_given_it(home: Home) -> None:
    home.start_worker()
    worker = home.worker_pid()
    harbour().save_in(home.path)
    assert run_import(home)["turns"] == 3
    assert "pulses" in home.context(session_start(session_id="the-next"))
    assert home.worker_pid() == worker
    wait_until(lambda: not unindexed(home), "the index")


def unindexed(home: Home) -> int:
    return int(home.rows("SELECT count(*) AS count FROM unindexed")[0]["count"])


def test_without_a_worker_the_import_makes_the_index(home: Home) -> None:
    harbour().save_in(home.path)
    run_import(home, "--wait")
    assert home.worker_pid() is None
    assert unindexed(home) == 0
    assert home.rows("SELECT count(*) AS count FROM passages")[0]["count"] > 3


@pytest.mark.extra
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_transcript_of_150_megabytes_takes_no_more_memory_than_a_small_one(home: Home) -> None:
    turn = Chat("vast")
    log = "tide " * 40_000
    turn.prompt("Read the log of the tide")
    turn.tool(
        "Read", {"file_path": "/tide"}, {"type": "text", "file": {"content": log}}, content=log
    )
    turn.agent("The tide is high at 7 and low at 13.")
    data = turn.data()
    path = home.path / "vast.jsonl"
    with path.open("wb") as file:
        for number in range(150_000_000 // len(data) + 1):
            file.write(data.replace(b"-0", b"-%d" % number))
    assert path.stat().st_size > 150_000_000
    # ru_maxrss would count what this process held when it started the other.
    script = (
        "import sys; from claude_mem.cli import commands\n"
        "commands(['import', '--json', sys.argv[1]], standalone_mode=False)\n"
        "print(open('/proc/self/status').read(), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], env=home.env(),
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert json.loads(done.stdout)["turns"] == number + 1
    peak = re.search(r"VmHWM:\s+(\d+) kB", done.stderr)
    assert peak is not None and int(peak[1]) < 200 * 1024
