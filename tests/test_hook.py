"""The hook as the client runs it: through the launcher, with bytes on stdin."""

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.config import Layout
from claude_mem.hook import spooling
from claude_mem.install.launcher import write_launcher
from claude_mem.server import client
from tests.conftest import Home, wait_until
from tests.payloads import (
    PROJECT_DIR,
    SESSION,
    Payload,
    as_bytes,
    one_of_each,
    prompt,
    session_end,
    session_start,
    stop,
    tool,
    write,
)
from tests.variants import mostly_extra

LINE = b'{"continue":true,"suppressOutput":true}\n'


def spooled(home: Home) -> list[bytes]:
    return [path.read_bytes() for path in sorted(home.layout.spool.glob("*.event"))]


@pytest.fixture
def quiet(home: Home) -> Iterator[Home]:
    """A home whose lock is taken, so that no worker comes and the spool can be looked at."""
    holder = subprocess.Popen(
        [sys.executable, "-c", "import fcntl,sys; f=open(sys.argv[1],'w');"
         "fcntl.flock(f,fcntl.LOCK_EX); print('held',flush=True); sys.stdin.read()",
         str(home.layout.lock)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None and holder.stdin is not None
    assert holder.stdout.readline() == b"held\n"
    yield home
    holder.stdin.close()
    holder.stdout.close()
    holder.wait()


def test_a_capturing_hook_prints_its_line_and_spools_the_bytes(quiet: Home) -> None:
    payload = tool()
    done = quiet.hook(payload)
    assert (done.returncode, done.stdout, done.stderr) == (0, LINE, b"")
    (record,) = spooled(quiet)
    head, _, body = record.partition(b"\n")
    fields = head.split(b"\t")
    assert fields[:2] == [b"claude-mem-spool", b"1"]
    assert fields[3:5] == [b"claude", b"PostToolUse"]
    assert fields[6] == PROJECT_DIR.encode()
    assert body == as_bytes(payload)


def test_spool_files_and_directories_are_the_owners_alone(quiet: Home) -> None:
    shutil.rmtree(quiet.layout.spool)
    quiet.hook(tool())
    (path,) = quiet.layout.spool.glob("*.event")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(quiet.layout.spool.stat().st_mode) == 0o700


def test_a_missing_data_directory_is_made_for_the_owner_alone(tmp_path: Path, home: Home) -> None:
    place = tmp_path / "elsewhere" / ".claude-mem"
    place.parent.mkdir()
    home.write_launcher_for(place)
    done = home.hook(tool())
    assert (done.returncode, done.stdout) == (0, LINE)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    layout = Layout(place)
    wait_until(lambda: client.running_worker(layout), "the worker's start")
    client.stop(layout)


@pytest.mark.parametrize("payload", one_of_each(), ids=lambda p: p["hook_event_name"])
def test_every_event_the_client_sends_is_taken(quiet: Home, payload: Payload) -> None:
    done = quiet.hook(payload)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["continue"] is True
    assert len(spooled(quiet)) == 1


def test_the_project_directory_may_have_any_name(quiet: Home) -> None:
    name = "/odd\tplace\nwith \\ and é"
    quiet.hook(tool(), CLAUDE_PROJECT_DIR=name)
    from claude_mem.intake.spool import parse

    assert parse(spooled(quiet)[0]).header.project_dir == name


def test_the_guard_variable_keeps_the_observers_own_session_out(quiet: Home) -> None:
    done = quiet.hook(tool(), CLAUDE_MEM_INTERNAL="1")
    assert (done.returncode, done.stdout) == (0, LINE)
    assert spooled(quiet) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ('{"session_id": "x"}'.encode("utf-16"), "not UTF-8"),
        ('{"session_id": "x"}'.encode("utf-16-le"), "not UTF-8"),
        ('{"session_id": "x"}'.encode("utf-32"), "not UTF-8"),
    ],
)
def test_what_cannot_be_a_payload_is_logged_and_told_once(
    quiet: Home, data: bytes, reason: str
) -> None:
    done = quiet.hook(data, "PostToolUse")
    assert (done.returncode, done.stdout) == (0, LINE)
    assert spooled(quiet) == []
    assert reason in quiet.layout.hook_log.read_text()
    first, second = (json.loads(quiet.hook(session_start()).stdout) for _ in range(2))
    assert reason in first["systemMessage"]
    assert "systemMessage" not in second


@pytest.mark.parametrize("data", [b"", b" \n\t "])
@pytest.mark.parametrize("event", ["PostToolUse", "SessionStart"])
def test_an_empty_payload_is_no_event_and_no_problem(quiet: Home, data: bytes, event: str) -> None:
    done = quiet.hook(data, event)
    assert (done.returncode, done.stdout) == (0, LINE)
    assert spooled(quiet) == []
    assert not quiet.layout.hook_log.exists()
    assert b"systemMessage" not in quiet.hook(session_start()).stdout


BAD_PAYLOADS = {
    "truncated": as_bytes(tool())[:-20],
    "not json": b"hello there",
    "not an object": b'["a", "list"]',
    "not utf-8": b'{"session_id": "\xff\xfe"}',
    "a null byte inside": b'{"session_id": "a\x00b"}',
    "10,000 deep": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "no session": b'{"hook_event_name": "Stop"}',
    "session of a wrong type": b'{"session_id": {"a": 1}}',
    "endless session": b'{"session_id": "' + b"x" * 5000 + b'"}',
    "two objects": as_bytes(tool()) + as_bytes(tool()),
}


@pytest.mark.parametrize("name", mostly_extra(BAD_PAYLOADS, 4))
def test_what_might_be_a_real_payload_is_kept_aside_without_its_private_parts(
    home: Home, name: str
) -> None:
    hidden = b"<private>my-hidden-word</private> ghp_" + b"a1B2" * 10
    done = home.hook(BAD_PAYLOADS[name] + b'"' + hidden, "PostToolUse")
    assert (done.returncode, done.stdout) == (0, LINE)
    wait_until(lambda: list(home.layout.rejected.glob("*.event")), "the rejection")
    wait_until(home.settled)
    (rejected,) = home.layout.rejected.glob("*.event")
    content = rejected.read_bytes()
    assert b"my-hidden-word" not in content and b"ghp_" not in content
    assert b"[redacted:github-token]" in content
    assert stat.S_IMODE(rejected.stat().st_mode) == 0o600
    assert "spool/rejected" in json.loads(home.hook(session_start()).stdout)["systemMessage"]


def test_a_payload_of_fifty_megabytes_is_taken(home: Home) -> None:
    big = tool(tool_response={"stdout": 'line of output <b> \\ "\n' * 2_200_000})
    assert len(as_bytes(big)) > 50_000_000
    done = home.hook(big)
    assert (done.returncode, done.stdout) == (0, LINE)
    home.wait_settled()
    (row,) = home.rows("SELECT tool_use_id, tool_response FROM tool_events")
    assert row["tool_use_id"] == big["tool_use_id"]
    assert len(row["tool_response"]) <= 8192


def test_a_payload_beyond_the_limit_is_refused_and_reported(quiet: Home) -> None:
    done = quiet.hook(b'{"a":"' + b"x" * (64 * 1024 * 1024) + b'"}', "PostToolUse")
    assert (done.returncode, done.stdout) == (0, LINE)
    assert spooled(quiet) == []
    assert "the limit is" in quiet.layout.hook_log.read_text()


def test_a_read_only_data_directory_harms_nobody_and_is_told_at_the_next_start(
    home: Home, tmp_path: Path
) -> None:
    """A file in the directory's place: what read-only does to root, too."""
    blocked = tmp_path / "blocked"
    blocked.write_text("not a directory")
    home.write_launcher_for(blocked / "data")
    for payload in (prompt(), tool(), stop(), session_end()):
        done = home.hook(payload)
        assert (done.returncode, done.stdout) == (0, LINE)
    answer = json.loads(home.hook(session_start()).stdout)
    assert answer["continue"] is True
    assert "Not a directory" in answer["systemMessage"]


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root, no setpriv")
def test_without_write_permission_the_hook_still_ends_well(home: Home) -> None:
    home.layout.spool.chmod(0o500)
    home.layout.root.chmod(0o500)
    # Root is held to the modes like everyone else once it has lost this capability.
    bound = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    command = [*bound, sys.executable, "-I", "-S", str(hook_script()), "claude"]
    environment = home.env(CLAUDE_MEM_DATA_DIR=str(home.layout.root))
    try:
        done, start = (
            subprocess.run([*command, payload["hook_event_name"]], input=as_bytes(payload),
                           capture_output=True, env=environment)
            for payload in (tool(), session_start())
        )  # fmt: skip
    finally:
        home.layout.root.chmod(0o700)
        home.layout.spool.chmod(0o700)
    assert (done.returncode, done.stdout) == (0, LINE)
    assert "Permission denied" in json.loads(start.stdout)["systemMessage"]
    assert spooled(home) == []


def hook_script() -> Path:
    import claude_mem.hook

    return Path(str(claude_mem.hook.__file__)).with_name("__main__.py")


def test_without_any_home_the_hook_still_prints_its_line(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(hook_script()), "claude", "PostToolUse"],
        input=as_bytes(tool()),
        capture_output=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert (done.returncode, done.stdout) == (0, LINE)


def test_a_full_disk_leaves_no_half_file_and_is_told_at_the_next_start(quiet: Home) -> None:
    """A limit on file size stands in for the disk: the write fails half-way in the same manner."""
    limited = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -f 8; exec "$0" claude PostToolUse', quiet.layout.launcher],
        input=as_bytes(tool(tool_response={"stdout": "x" * 100_000})),
        capture_output=True,
        env=quiet.env(),
    )
    assert (limited.returncode, limited.stdout) == (0, LINE)
    assert set(quiet.layout.spool.iterdir()) == {quiet.layout.rejected, quiet.layout.set_aside}
    answer = json.loads(quiet.hook(session_start()).stdout)
    assert "File too large" in answer["systemMessage"]


def installed_copy(home: Home, tmp_path: Path) -> Path:
    """The launcher set to a package of its own, which a test may then destroy."""
    import claude_mem

    site = tmp_path / "site"
    unfinished = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(Path(str(claude_mem.__file__)).parent, site / "claude_mem", ignore=unfinished)
    text = home.layout.launcher.read_text()
    script = site / "claude_mem" / "hook" / "__main__.py"
    home.layout.launcher.write_text(text.replace(str(hook_script()), str(script)))
    return site


@pytest.mark.parametrize("gone", ["package", "hook/capture.py", "interpreter"])
def test_what_was_deleted_under_a_session_never_blocks_it(
    home: Home, tmp_path: Path, gone: str
) -> None:
    site = installed_copy(home, tmp_path)
    if gone == "package":
        shutil.rmtree(site)
    elif gone == "interpreter":
        text = home.layout.launcher.read_text()
        home.layout.launcher.write_text(text.replace(sys.executable, "/no/such/python"))
    else:
        (site / "claude_mem" / gone).unlink()
        shutil.rmtree(site / "claude_mem" / "hook" / "__pycache__", ignore_errors=True)
    headless = [{"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, {"CLAUDE_CODE_SESSION_ATTENDED": "0"}]
    for environment in headless:  # nobody reads it there
        assert home.hook(prompt(), **environment).stdout == b""
    attended = {"CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}
    first, second = home.hook(prompt(), **attended), home.hook(tool())
    assert (first.returncode, second.returncode) == (0, 0)
    message = json.loads(first.stdout)["systemMessage"]
    assert "can no longer be run" in message
    assert second.stdout == b""
    assert "exited with" in home.layout.hook_log.read_text()
    (shown,) = (home.layout.root / ".launcher-told").iterdir()
    shown.rename(shown.with_name("2020-01-01"))
    assert json.loads(home.hook(tool()).stdout)["systemMessage"] == message, "the next day"
    *_, command = message.partition("To remove its hooks: ")
    assert subprocess.run(shlex.split(command), env=home.env(), check=True).returncode == 0
    assert home.hook(tool()).stdout == b""


def test_a_deleted_data_directory_is_made_again(home: Home) -> None:
    launcher = home.layout.launcher.read_bytes()
    shutil.rmtree(home.layout.root)
    outside = home.path / "launcher"
    outside.write_bytes(launcher)
    outside.chmod(0o700)
    done = subprocess.run([outside, "claude", "Stop"], input=as_bytes(stop()),
                          capture_output=True, env=home.env())  # fmt: skip
    assert (done.returncode, done.stdout) == (0, LINE)
    home.wait_settled()
    assert len(home.rows("SELECT * FROM session_summaries")) == 1


def test_a_session_start_without_a_worker_gets_the_rendered_context(home: Home) -> None:
    for payload in (session_start(), prompt(), write(), stop(), session_end()):
        home.hook(payload)
    home.wait_settled()
    wait_until(lambda: list(home.layout.contexts.glob("*harbor*")), "the rendered context")
    warm = home.context(session_start(session_id="another"))
    home.kill_worker()
    cold = home.context(session_start(session_id="a-third"))
    assert cold == warm
    assert "Created notes.md" in cold


def test_a_session_that_began_cold_is_given_the_same_when_it_is_resumed(home: Home) -> None:
    for payload in (prompt(session_id="old"), write(session_id="old"), stop(session_id="old")):
        home.hook(payload)
    home.wait_settled()
    wait_until(lambda: list(home.layout.contexts.glob("*harbor*")), "the rendered context")
    home.kill_worker()
    cold = home.context(session_start())
    assert "Created notes.md" in cold
    for payload in (prompt("Paint it red", session_id="x", prompt_id="x"),
                    stop("It is red.", session_id="x", prompt_id="x")):  # fmt: skip
        home.hook(payload)
    home.wait_settled()
    assert home.context(session_start("resume")) == cold


@pytest.mark.parametrize("point", ["intake.after_commit", "intake.after_unlink"])
def test_a_worker_that_dies_before_it_answers_leaves_what_the_hook_gave_instead(
    home: Home, tmp_path: Path, point: str
) -> None:
    for payload in (prompt(session_id="old"), write(session_id="old"), stop(session_id="old")):
        home.hook(payload)
    home.wait_settled()
    wait_until(lambda: list(home.layout.contexts.glob("*harbor*")), "the rendered context")
    marker = tmp_path / "armed"
    home.environment["CLAUDE_MEM_FAULT"] = f"{point}:{marker}"
    home.command("worker", "restart")
    # Something else waits, so that the worker stores the start before it answers.
    header = spooling.header(b"claude", b"UserPromptSubmit", time.time_ns(), PROJECT_DIR.encode())
    spooling.put(bytes(home.layout.root), header, as_bytes(prompt(session_id="y", prompt_id="y")))
    marker.touch()
    context = home.context(session_start())
    assert not marker.exists() and "Created notes.md" in context
    for payload in (prompt("Paint it red", session_id="x", prompt_id="x"),
                    stop("It is red.", session_id="x", prompt_id="x")):  # fmt: skip
        home.hook(payload)
    home.wait_settled()
    assert home.context(session_start("resume")) == context


def test_no_context_is_given_when_the_budget_is_none(home: Home) -> None:
    for payload in (prompt(), write(), stop()):
        home.hook(payload)
    home.wait_settled()
    wait_until(lambda: list(home.layout.contexts.glob("*harbor*")), "the rendered context")
    (rendered,) = home.layout.contexts.glob("*harbor*")
    home.environment["CLAUDE_MEM_CONTEXT_TOKENS"] = "0"
    home.command("worker", "restart")
    wait_until(lambda: rendered.exists() and rendered.read_bytes() == b'""', "another context")
    home.kill_worker()
    assert home.context(session_start(session_id="next")) == ""
    assert "CLAUDE_MEM_CONTEXT_TOKENS is 0" in home.command("context", "--project", "harbor").stdout


@pytest.mark.parametrize("source", ["resume", "fork"])
def test_a_cold_resume_is_not_given_its_own_memories_again(home: Home, source: str) -> None:
    for payload in (session_start(), prompt(), write(), stop()):
        home.hook(payload)
    home.wait_settled()
    wait_until(lambda: list(home.layout.contexts.glob("*harbor*")), "the rendered context")
    home.kill_worker()
    assert home.hook(session_start(source)).stdout == LINE


def test_a_resumed_session_gets_the_bytes_it_got_before(home: Home) -> None:
    home.start_worker()
    for payload in (session_start(session_id="old"), prompt(session_id="old"),
                    write(session_id="old"), stop(session_id="old")):  # fmt: skip
        home.hook(payload)
    home.wait_settled()
    context = home.context(session_start())
    assert "Created notes.md" in context
    for payload in (prompt("Now paint the lighthouse red"), stop("It is red.")):
        home.hook(payload)
    home.wait_settled()
    assert home.context(session_start("resume")) == context
    assert "red" in home.context(session_start(session_id="next"))


def test_two_prompts_of_one_session_are_never_mixed_with_another_project(home: Home) -> None:
    home.start_worker()
    for payload in (session_start(), prompt("Blink"), write(), stop()):
        home.hook(payload)
    home.wait_settled()
    other = session_start(session_id="other", cwd="/home/dev/elsewhere")
    done = home.hook(other, CLAUDE_PROJECT_DIR="/home/dev/elsewhere")
    assert json.loads(done.stdout) == {"continue": True, "suppressOutput": True}


def test_a_closed_stdout_is_no_error(quiet: Home) -> None:
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            '"$0" claude PostToolUse >&-; echo "status $?" >&2',
            quiet.layout.launcher,
        ],
        input=as_bytes(tool()),
        capture_output=True,
        env=quiet.env(),
    )
    assert b"status 0" in done.stderr
    assert len(spooled(quiet)) == 1


def test_writing_the_launcher_again_changes_nothing(home: Home) -> None:
    before = home.layout.launcher.read_bytes()
    write_launcher(home.layout)
    assert home.layout.launcher.read_bytes() == before
    assert stat.S_IMODE(home.layout.launcher.stat().st_mode) == 0o700


def test_the_launcher_survives_odd_names(tmp_path: Path) -> None:
    layout = Layout(tmp_path / 'it\'s a "home" $HOME `x` \\ é')
    layout.create()
    launcher = write_launcher(layout)
    done = subprocess.run([launcher, "claude", "Stop"], input=as_bytes(stop()),
                          capture_output=True, env={"PATH": os.environ["PATH"]})  # fmt: skip
    assert (done.returncode, done.stdout) == (0, LINE)
    wait_until(lambda: client.running_worker(layout), "the worker's start")
    client.stop(layout)
    assert layout.database.exists()


def test_the_session_id_of_the_payloads_is_what_is_stored(home: Home) -> None:
    home.hook(prompt())
    home.wait_settled()
    wait_until(lambda: home.rows("SELECT * FROM sdk_sessions"))
    assert home.rows("SELECT content_session_id FROM sdk_sessions") == [
        {"content_session_id": SESSION}
    ]
