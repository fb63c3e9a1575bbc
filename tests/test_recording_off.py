"""Nothing is recorded: while it is paused, in excluded projects, and on a full disk."""

import json
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.config import Layout
from claude_mem.config.pausing import current_pause, parse_duration, pause, resume
from claude_mem.errors import BadInput
from claude_mem.hook import trouble
from claude_mem.intake.projects import Exclusions
from claude_mem.types import Project
from tests.api import open_api
from tests.conftest import Home
from tests.payloads import PROJECT_DIR, as_bytes, prompt, session_start, stop, tool
from tests.transcripts import Chat, recently
from tests.variants import mostly_extra

LINE = b'{"continue":true,"suppressOutput":true}\n'
WORD = b"xanthocroid77"
OTHER_DIR = "/home/dev/bakery"


def system_message(home: Home, **environment: str) -> str:
    done = home.hook(session_start(), **environment)
    return str(json.loads(done.stdout).get("systemMessage", ""))


def snapshot(home: Home) -> dict[Path, bytes]:
    return {path: content for path, content in home.files().items() if "logs" not in path.parts}


# Pause


def test_while_paused_no_event_touches_the_disk(home: Home) -> None:
    home.record_environment()
    assert home.command("pause").returncode == 0
    before = snapshot(home)
    for payload in (prompt(f"Say {WORD.decode()}"), tool(), stop(WORD.decode())):
        assert home.hook(payload).stdout == LINE
    message = system_message(home)
    assert "recording is paused" in message and "claude-mem resume" in message
    assert snapshot(home) == before and home.worker_pid() is None


def test_a_pause_is_shown_everywhere_and_resume_ends_it(home: Home) -> None:
    home.start_worker()
    shown = home.command("pause", "--for", "2h").stdout
    assert shown.startswith("Recording is paused until ")
    home.hook(prompt(WORD.decode()))
    assert "recording is paused until 2" in system_message(home)
    assert "recording" in (status := home.command("status").stdout) and "paused until" in status
    assert "paused until" in home.command("doctor").stdout
    assert json.loads(home.command("status", "--json").stdout)["capture"]["paused"] is True
    assert not any(WORD in content for content in home.files().values())
    assert home.command("resume").stdout == "Recording resumed.\n"
    assert home.command("resume").stdout == "Recording was not paused.\n"
    home.hook(prompt(WORD.decode()))
    home.wait_settled()
    assert any(WORD in content for content in home.files().values())
    assert "paused" not in system_message(home)
    assert home.command("pause", "--for", "soon").returncode == 1


def test_a_pause_over_http_skips_events_and_still_gives_memories(tmp_path: Path) -> None:
    with open_api(tmp_path / "data") as api:
        api.add_turn("one", "Mend the lamp", "The lamp is mended.")
        state = api.post_json("/api/pause", **{"for": "1d"})
        assert state["paused"] is True and state["until"]
        about = {"contentSessionId": "two", "project_dir": PROJECT_DIR}
        answer = api.post_json("/api/sessions/init", prompt="Hello", **about)
        assert answer == {"status": "skipped", "reason": "recording is paused"}
        body = as_bytes(session_start(session_id="two"))
        head = f"claude-mem-spool\t1\t0\tclaude\tSessionStart\t1\t{PROJECT_DIR}\n".encode()
        line = api.send("/hook/session-start", head + body).json()
        assert "recording is paused until" in line["systemMessage"]
        assert "lamp" in line["hookSpecificOutput"]["additionalContext"]
        assert api.count("sdk_sessions") == 1
        assert api.get_json("/api/stats")["capture"]["paused"] is True
        assert api.post_json("/api/resume")["paused"] is False
        assert api.post_json("/api/sessions/init", prompt="Hello", **about)["status"] != "skipped"
        assert api.post("/api/pause", **{"for": "x"}).status_code == 400


def test_a_pause_ends_by_itself(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert current_pause(layout) is None and not resume(layout)
    assert pause(layout, None).until_epoch is None and current_pause(layout) is not None
    pause(layout, 60)
    os.utime(layout.paused, (1, 1))
    assert current_pause(layout) is None
    assert (parse_duration("90s"), parse_duration("2H"), parse_duration("1d")) == (90, 7200, 86400)
    for wrong in ("", "2", "h", "0m", "-1h", "1w", "9999999d"):
        with pytest.raises(BadInput):
            parse_duration(wrong)


# Excluded projects


@pytest.mark.parametrize(
    ("glob", "is_covered"),
    [
        ("/home/dev/clients/*", True), ("/home/dev/clients", True), ("/home/dev/clients/", True),
        ("~/clients/*", True), ("*/clients/*", True), ("github.com/acme/*", True),
        ("secret-plan", True), ("secret-*", True), ("/home/dev/client", False),
        ("clients", False), ("github.com/acme", False), ("~", False), ("", False),
    ],
)  # fmt: skip
def test_a_glob_is_compared_with_directories_key_and_name(glob: str, is_covered: bool) -> None:
    project = Project("github.com/acme/secret-plan", "secret-plan")
    exclusions = Exclusions((glob,), "/home/dev")
    assert exclusions.cover(project, "/home/dev/clients/acme/src") is is_covered
    assert not Exclusions().cover(project, "/home/dev/clients/acme/src")


@pytest.mark.parametrize("way", mostly_extra(["hook", "import", "http"]))
def test_nothing_of_an_excluded_project_is_stored(home: Home, way: str) -> None:
    home.environment["CLAUDE_MEM_EXCLUDED_PROJECTS"] = "/home/dev/har*"
    if way == "hook":
        for payload in (session_start(), prompt(WORD.decode()), tool(), stop(WORD.decode())):
            home.hook(payload)
        home.hook(prompt("Bake", session_id="b", prompt_id="b"), CLAUDE_PROJECT_DIR=OTHER_DIR)
    elif way == "import":
        for directory, text in ((PROJECT_DIR, WORD.decode()), (OTHER_DIR, "Bake")):
            chat = Chat(start=recently(), cwd=directory, session=directory[-6:])
            chat.prompt(text).agent(text).save_in(home.path)
        done = home.command("import")
        assert done.returncode == 0, done.stderr
    else:
        home.start_worker()
        assert home.command("remember", WORD.decode()).returncode == 1
        home.hook(prompt("Bake", session_id="b", prompt_id="b"), CLAUDE_PROJECT_DIR=OTHER_DIR)
    home.wait_settled()
    files = home.files()
    assert not any(WORD in content for content in files.values())
    assert [row["name"] for row in home.rows("SELECT name FROM projects")] == ["bakery"]
    home.start_worker()
    assert "CLAUDE_MEM_EXCLUDED_PROJECTS excludes its project" in system_message(home)
    assert "exclude" not in system_message(home, CLAUDE_PROJECT_DIR=OTHER_DIR)
    for command in ("status", "doctor"):
        assert "/home/dev/har*" in home.command(command).stdout


def test_an_excluded_project_is_skipped_over_http(tmp_path: Path) -> None:
    with open_api(tmp_path / "data", CLAUDE_MEM_EXCLUDED_PROJECTS="harbor") as api:
        about = {"contentSessionId": "one", "project_dir": PROJECT_DIR}
        answer = api.post_json("/api/sessions/init", prompt="Hello", **about)
        assert answer == {"status": "skipped", "reason": "this project is excluded"}
        saved = api.post("/api/memories", text="The oven is hot", project_dir=PROJECT_DIR)
        assert saved.status_code == 400 and "excluded" in saved.json()["error"]
        assert api.count("sdk_sessions") == api.count("projects") == 0


# A full disk


def write_nothing() -> None:
    """Every write beyond 64 bytes of a file fails, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


def hook_on_full_disk(home: Home) -> None:
    done = subprocess.run(
        [home.layout.launcher, "claude", "Stop"], input=as_bytes(stop()), capture_output=True,
        env=home.env(), preexec_fn=write_nothing, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == LINE


def test_events_that_do_not_fit_on_the_disk_are_counted_and_reported(home: Home) -> None:
    for _ in range(3):
        hook_on_full_disk(home)
    assert list(home.layout.spool.glob("*.event")) == []
    assert trouble.lost_events(os.fsencode(home.layout.root)) == 3
    assert "3 lost" in home.command("status").stdout
    assert "3 events were lost" in home.command("doctor").stdout
    assert "3 events were lost" in system_message(home), "without a worker"
    assert "lost" not in system_message(home), "only once"
    home.start_worker()
    hook_on_full_disk(home)
    assert "1 event was lost" in system_message(home), "by the worker"


@pytest.fixture
def full_home(tmp_path: Path) -> Iterator[Home]:
    """A home on a file system of its own without any free space."""
    home = Home(tmp_path / "small")
    home.path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(home.path)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    try:
        home.layout.create()
        filler = home.path / "filler"
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(b"x" * 4096)
        yield home
    finally:
        home.end_worker()
        subprocess.run(["umount", "-l", str(home.path)], check=True)


def test_on_a_full_file_system_every_hook_exits_with_0_and_the_count_is_told(
    full_home: Home, home: Home
) -> None:
    home.write_launcher_for(full_home.layout.root)
    environment = full_home.env()
    for _ in range(2):
        done = subprocess.run(
            [home.layout.launcher, "claude", "Stop"], input=as_bytes(stop()), capture_output=True,
            env=environment, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0 and done.stdout == LINE
    assert trouble.lost_events(os.fsencode(full_home.layout.root)) == 2
    message = trouble.take(os.fsencode(full_home.layout.root))
    assert message.startswith(b"2 events were lost")
