"""The observer in the real worker: killed at every step, switched, asked, and leaving no trace."""

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.config import record_consent
from claude_mem.observer.models.prompts import PROMPT_VERSION
from claude_mem.server.client import ask_worker
from claude_mem.worker.lock import is_held
from tests.conftest import Home, wait_until
from tests.fake_api import FakeApi
from tests.live_files import paths_below
from tests.observed import (
    MODEL,
    answer,
    by_topic,
    client_pids,
    for_observer,
    is_alive,
    says,
    use,
    wrapped_client,
)
from tests.payloads import Payload, edit, prompt, session_end, session_start, stop, tool
from tests.real_client import Client, needs_client
from tests.terminal import Terminal

DRAFTING = [
    "queue.after_claim",
    "store.before_save",
    "queue.before_acknowledge",
    "queue.after_acknowledge",
]
REVISING = [
    "refine.after_claim",
    "refine.before_call",
    "refine.after_call",
    "refine.before_save",
    "refine.before_acknowledge",
    "refine.after_acknowledge",
]
KINDS = ["anthropic", "openai", pytest.param("claude", marks=needs_client)]


def one_turn() -> list[Payload]:
    return [session_start(), prompt("Blink for topic-one"), tool(), edit(), stop("It blinks.")]


def refined(home: Home) -> bool:
    waiting = "SELECT 1 FROM refinements WHERE status IN ('pending', 'processing')"
    return home.settled() and not home.rows(waiting)


def observers(home: Home) -> list[str]:
    return [row["observer"] for row in home.rows("SELECT observer FROM session_summaries")]


@pytest.fixture
def observing(home: Home) -> Iterator[Home]:
    """Whatever happens, no client of it is left."""
    yield home
    pids = client_pids(home.layout.root)
    home.end_worker()
    wait_until(lambda: not any(map(is_alive, pids)), "the end of the clients")


# The steps are the same for every kind: `make test-all` runs the others.
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("anthropic", marks=pytest.mark.extra),
        "openai",
        pytest.param("claude", marks=[needs_client, pytest.mark.extra]),
    ],
)
@pytest.mark.parametrize("point", [*DRAFTING, *REVISING])
def test_a_worker_killed_at_any_step_of_a_draft_or_its_revision_loses_and_doubles_nothing(
    observing: Home, api: FakeApi, tmp_path: Path, kind: str, point: str
) -> None:
    home = observing
    api.otherwise = by_topic
    use(home, api, kind)
    marker = tmp_path / "armed"
    marker.touch()
    home.environment["CLAUDE_MEM_FAULT"] = f"{point}:{marker}"
    with home.without_worker():
        for payload in one_turn():
            assert home.hook(payload).returncode == 0
    home.hook(session_end(), "Wake")
    wait_until(lambda: not marker.exists(), "the kill")
    wait_until(lambda: not is_held(home.layout), "the death")
    pids = client_pids(home.layout.root)
    wait_until(lambda: not any(map(is_alive, pids)), "the end of the clients")
    if point in REVISING:
        assert len(observers(home)) == 1  # the draft, or what took its place
    home.hook(session_end())
    wait_until(lambda: refined(home), "the revision")
    assert_revised_once(home, kind)
    # The clients that were killed left nothing behind either.
    wait_until(lambda: not {*pids} & {*client_pids(home.layout.root)}, "the end of their names")


def assert_revised_once(home: Home, kind: str) -> None:
    assert observers(home) == [kind]
    rows = home.rows("SELECT title, observer FROM observations")
    assert rows == [{"title": "About topic-one", "observer": kind}]
    assert home.rows("SELECT * FROM refinements") == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_killed_while_a_model_thinks_takes_its_clients_with_it(
    observing: Home, api: FakeApi, kind: str
) -> None:
    hold = threading.Event()
    api.otherwise = by_topic
    api.say(says("never", hold=hold))
    use(observing, api, kind)
    for payload in one_turn():
        observing.hook(payload)
    wait_until(lambda: any(map(for_observer, api.requests)), "the call")
    pids = client_pids(observing.layout.root)
    assert len(pids) == (kind == "claude") and all(map(is_alive, pids))
    observing.kill_worker()
    wait_until(lambda: not any(map(is_alive, pids)), "the end of the client")
    hold.set()
    assert observers(observing) == ["local"]
    observing.hook(session_end())
    wait_until(lambda: refined(observing), "the revision")
    assert_revised_once(observing, kind)


@needs_client
def test_a_worker_that_is_stopped_ends_its_calls_and_takes_them_up_again(
    observing: Home, api: FakeApi
) -> None:
    hold = threading.Event()
    api.otherwise = by_topic
    api.say(says("never", hold=hold))
    use(observing, api, "claude")
    for payload in one_turn():
        observing.hook(payload)
    wait_until(lambda: any(map(for_observer, api.requests)), "the call")
    (pid,) = client_pids(observing.layout.root)
    assert observing.command("worker", "stop").stdout == "stopped\n"
    wait_until(lambda: not is_alive(pid), "the end of the client")
    assert observing.rows("SELECT status, attempts FROM refinements") == [
        {"status": "pending", "attempts": 0}
    ]
    observing.start_worker()
    wait_until(lambda: refined(observing), "the revision")
    hold.set()
    assert observers(observing) == ["claude"]


@needs_client
def test_deleting_a_session_ends_its_client(observing: Home, api: FakeApi) -> None:
    from claude_mem.server.client import _SocketConnection

    hold = threading.Event()
    api.say(says("never", hold=hold))
    use(observing, api, "claude")
    for payload in one_turn():
        observing.hook(payload)
    wait_until(lambda: any(map(for_observer, api.requests)), "the call")
    (pid,) = client_pids(observing.layout.root)
    connection = _SocketConnection(observing.layout.socket, 30)
    connection.request("DELETE", "/sessions/1")
    assert json.loads(connection.getresponse().read())["status"] == "failed"
    connection.close()
    wait_until(lambda: not is_alive(pid), "the end of the client")
    hold.set()
    assert observers(observing) == ["local"]
    assert observing.rows("SELECT status FROM refinements") == [{"status": "held"}]


def observer_transcripts(projects: Path) -> list[Path]:
    return [path for path in paths_below(projects) if path.parent.name.endswith("-observer")]


@needs_client
def test_the_observer_leaves_no_trace_in_the_users_project_or_resume_list(
    observing: Home, api: FakeApi
) -> None:
    home = observing
    client = Client.in_new_project(home, api, "harbor")
    session = client.ask_session_id("Say OK")
    projects = home.path / ".claude" / "projects"
    before = {path: path.read_bytes() for path in paths_below(projects, "*.jsonl")}
    assert [path.stem for path in before] == [session]
    api.otherwise = by_topic
    use(home, api, "claude")
    for payload in one_turn():
        home.hook(payload)
    wait_until(lambda: refined(home), "the revision")
    assert observers(home) == ["claude"]
    theirs = [path for path in paths_below(projects, "*.jsonl") if path in before]
    assert {path: path.read_bytes() for path in theirs} == before
    assert {p.parent for p in paths_below(projects, "*.jsonl")} - {p.parent for p in before} == {
        path for path in projects.iterdir() if path.name.endswith("-observer")
    }
    # What `claude --continue` takes up in the project is still the user's own.
    assert client.ask_session_id("And now?", "--continue") == session
    home.hook(session_end())
    wait_until(lambda: not observer_transcripts(projects), "the end of its transcripts")
    assert observers(home) == ["claude"]  # its own prompts were never captured
    assert len(home.rows("SELECT * FROM sdk_sessions")) == 1


# What a person sees


def test_a_model_is_used_only_after_the_person_agreed(home: Home, api: FakeApi) -> None:
    home.environment |= {
        "CLAUDE_MEM_API_URL": f"{api.url}/v1", "CLAUDE_MEM_MODEL": "m", "CLAUDE_MEM_OBSERVER": "",
    }  # fmt: skip
    home.environment["CLAUDE_MEM_API_KEY"] = "sk-never-to-be-seen"
    refused = home.command("observer", "openai")
    assert refused.returncode == 1
    assert "200 requests and 1000000 tokens a day" in refused.stderr
    assert "claude-mem observer openai --yes" in refused.stderr
    home.command("settings", "OBSERVER", "openai")
    shown = json.loads(home.command("observer", "--json").stdout)
    assert shown["used"] == "local" and "you have not agreed to it yet" in shown["why"]
    assert home.command("observer", "openai", "--yes").returncode == 0
    shown = json.loads(home.command("observer", "--json").stdout)
    assert (shown["used"], shown["why"]) == ("openai", "set in settings.json")
    # What was agreed to holds for this address alone.
    home.environment["CLAUDE_MEM_API_URL"] = "https://elsewhere.invalid/v1"
    shown = json.loads(home.command("observer", "--json").stdout)
    assert shown["used"] == "local"


def test_a_person_at_a_terminal_is_asked_once(home: Home, api: FakeApi) -> None:
    home.environment |= {"CLAUDE_MEM_API_URL": f"{api.url}/v1", "CLAUDE_MEM_MODEL": "m"}
    import sys

    command = [sys.executable, "-m", "claude_mem", "observer", "openai"]
    first = Terminal(command, home.path, home.env())
    wait_until(lambda: first.shows("Use it?"))
    first.press("y\n")
    wait_until(lambda: first.process.poll() is not None)
    first.close()
    assert home.command("observer", "local").returncode == 0
    again = home.command("observer", "openai")
    assert again.returncode == 0
    assert "openai (set in settings.json)" in again.stdout


@pytest.mark.parametrize(
    "names",
    [
        ["local", "openai", "local"],
        pytest.param(
            ["local", "claude", "openai", "local"], marks=[needs_client, pytest.mark.extra]
        ),
    ],
    ids=" ".join,
)
def test_the_observer_is_switched_in_a_session_without_a_restart(
    observing: Home, api: FakeApi, names: list[str]
) -> None:
    home = observing
    api.otherwise = by_topic
    home.environment |= {"CLAUDE_MEM_API_URL": f"{api.url}/v1", "CLAUDE_MEM_MODEL": MODEL}
    if "claude" in names:
        home.environment["CLAUDE_CODE_PATH"] = str(wrapped_client(home, api))
    home.start_worker()
    pid = home.worker_pid()
    for number, name in enumerate(names, 1):
        assert home.command("observer", name, "--yes").returncode == 0
        for payload in (prompt(f"topic-n{number}", prompt_id=f"p{number}"),
                        stop("Done.", prompt_id=f"p{number}")):  # fmt: skip
            home.hook(payload)
        wait_until(lambda: refined(home), "the revision")
    rows = home.rows("SELECT observer, prompt_number FROM session_summaries ORDER BY turn_id")
    assert [row["observer"] for row in rows] == names
    titles = home.rows("SELECT title FROM observations WHERE model IS NOT NULL ORDER BY turn_id")
    assert [row["title"] for row in titles] == [
        f"About topic-n{number}" for number, name in enumerate(names, 1) if name != "local"
    ]
    assert home.worker_pid() == pid
    assert client_pids(home.layout.root) == []  # nobody's client is open any more
    count = len(names) - names.count("local")
    spent = f"{count} of 200 requests, {60 * count} of 1000000 tokens today"
    for name in ("local", "openai"):  # what was spent is shown also by those who spend nothing
        assert spent in home.command("observer", name).stdout
        assert spent in home.command("status").stdout
        assert spent in home.command("doctor").stdout
    today = {"requests": count, "requests_cap": 200, "tokens": 60 * count, "tokens_cap": 1000000}
    assert json.loads(home.command("status", "--json").stdout)["observer"]["today"] == today
    stats = ask_worker(home.layout, "/api/stats")
    assert isinstance(stats, dict) and isinstance(stats["observing"], dict)
    assert stats["observing"]["today"] == today


def test_the_key_is_never_shown_logged_or_stored(home: Home, api: FakeApi) -> None:
    api.say(says("sk-never-to-be-seen is not valid", status=401))
    use(home, api, "anthropic")
    assert home.command("worker", "start").returncode == 0  # with the key of the user's shell
    for payload in one_turn():
        home.hook(payload)
    wait_until(lambda: refined(home), "the end")
    assert "sk-never-to-be-seen" in api.keys
    shown = [home.command(*command).stdout for command in (
        ["settings"], ["settings", "API_KEY"], ["settings", "--json"], ["observer"],
        ["observer", "--json"], ["status"], ["status", "--json"], ["doctor"], ["worker", "logs"],
    )]  # fmt: skip
    assert "(hidden)" in shown[0]
    shown += [json.dumps(ask_worker(home.layout, path)) for path in (
        "/api/settings", "/api/stats", "/api/observer")]  # fmt: skip
    for text in shown:
        assert "sk-never-to-be-seen" not in text
    for path, data in home.files().items():
        assert b"sk-never-to-be-seen" not in data, path


def test_answers_that_were_kept_can_be_looked_at(home: Home, api: FakeApi) -> None:
    assert home.command("observer", "--replies").stdout == "no replies are stored\n"
    api.say(says("nothing in \x1b[31mthat form"), says("Sure! " + answer("The lamp blinks")))
    use(home, api, "openai")
    for number in (1, 2):
        for payload in (prompt(prompt_id=f"p{number}"), stop(prompt_id=f"p{number}")):
            home.hook(payload)
        wait_until(lambda: refined(home), "the end")
    shown = home.command("observer", "--replies").stdout
    assert "turn 1: openai: the reply contains no memory\nnothing in that form\n" in shown
    assert "turn 2: contains more than was stored as memories\nSure! <observation>" in shown
    replies = json.loads(home.command("observer", "--answers", "--json").stdout)
    assert [reply["turn"] for reply in replies] == [2, 1]
    state = json.loads(home.command("observer", "--json").stdout)
    assert state["drafts"]["kept"] == 1  # the other was revised


def test_asking_for_an_observer_again_gives_it_another_try(home: Home, api: FakeApi) -> None:
    api.say(says("bad key", status=401))
    use(home, api, "anthropic")
    for payload in one_turn():
        home.hook(payload)
    wait_until(lambda: refined(home), "the end")
    before = home.command("observer").stdout
    assert "open until" in before and "HTTP 401" in before
    assert "is paused: " in home.command("doctor").stdout
    assert re.search("breaker +closed", home.command("observer", "anthropic").stdout)


def test_the_doctor_says_what_an_observer_lacks_and_where_its_key_lies(
    home: Home, api: FakeApi
) -> None:
    home.environment["CLAUDE_MEM_OBSERVER"] = "anthropic"
    lacking = json.loads(home.command("doctor", "--json").stdout)
    (check,) = [check for check in lacking if check["check"] == "observer"]
    assert check["verdict"] == "warning" and "there is no key" in check["found"]
    result = home.command("settings", "API_KEY", "sk-in-the-file")
    assert "sk-in-the-file" not in result.stdout
    assert home.layout.settings.stat().st_mode & 0o077 == 0
    record_consent(home.layout, "anthropic", "https://api.anthropic.com")
    checks = json.loads(home.command("doctor", "--json").stdout)
    by_name = {check["check"]: check for check in checks}
    assert by_name["observer"]["verdict"] == "ok"
    assert "0 of 200 requests" in by_name["observer"]["found"]
    assert by_name["key"]["verdict"] == "warning"


def test_a_key_goes_into_a_keyring_that_works(home: Home, tmp_path: Path) -> None:
    ring = tmp_path / "modules" / "keyring"
    ring.mkdir(parents=True)
    (ring / "__init__.py").write_text(KEYRING)
    home.environment |= {
        "PYTHONPATH": str(ring.parent), "RING": str(tmp_path / "ring"),
        "CLAUDE_MEM_OBSERVER": "anthropic",
    }  # fmt: skip
    result = home.command("settings", "API_KEY", "sk-in-the-ring")
    assert "in the keyring" in result.stdout
    assert b"sk-in-the-ring" not in b"".join(home.files().values())
    assert json.loads(home.command("observer", "--json").stdout)["key"] == "keyring"
    home.command("settings", "API_KEY", "--unset")
    assert json.loads(home.command("observer", "--json").stdout)["key"] == "none"


KEYRING = """
import os, pathlib
place = pathlib.Path(os.environ["RING"])
class Ring: priority = 5
def get_keyring(): return Ring()
def get_password(service, name): return place.read_text() if place.exists() else None
def set_password(service, name, value): place.write_text(value)
def delete_password(service, name): place.unlink()
"""


def test_a_worker_started_by_a_hook_has_no_key_of_the_client(home: Home, api: FakeApi) -> None:
    home.starts_cold = True
    use(home, api, "anthropic")
    home.environment["ANTHROPIC_API_KEY"] = "sk-of-the-client"
    home.hook(prompt())
    wait_until(lambda: home.worker_pid() is not None)
    environment = Path(f"/proc/{home.worker_pid()}/environ").read_bytes()
    assert b"sk-of-the-client" not in environment


def test_a_worker_started_by_a_hook_can_reach_the_keyring(home: Home) -> None:
    """A Secret Service is found by this address alone."""
    home.starts_cold = True
    home.environment["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/run/user/1000/bus"
    home.hook(prompt())
    wait_until(lambda: home.worker_pid() is not None)
    environment = Path(f"/proc/{home.worker_pid()}/environ").read_bytes()
    assert b"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus\0" in environment


def test_a_client_dies_with_its_parent(tmp_path: Path) -> None:
    """Without the client: a parent that is killed, and a child that would live on."""
    import sys

    from claude_mem.observer.models import parent_death

    pid_file = tmp_path / "pid"
    script = (
        "import os, subprocess, sys, time\n"
        f"env = {{**os.environ, '{parent_death.PARENT_PID}': str(os.getpid()),"
        f" '{parent_death.PID_FILE}': {str(pid_file)!r}}}\n"
        f"subprocess.Popen([sys.executable, '-I', '-S', {parent_death.__file__!r}, '/bin/sleep',"
        " '600'],"
        " env=env)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    wait_until(lambda: pid_file.exists() and pid_file.read_bytes())
    child = int(pid_file.read_bytes())
    wait_until(lambda: b"sleep" in Path(f"/proc/{child}/cmdline").read_bytes())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not is_alive(child), "the end of the child")


def test_one_result_is_stored_where_the_model_answers_at_once(home: Home, api: FakeApi) -> None:
    api.say(says(answer("The lamp blinks twice")))
    use(home, api, "openai")
    for payload in (*one_turn(), session_end()):
        home.hook(payload)
    wait_until(lambda: refined(home), "the revision")
    (row,) = home.rows("SELECT observer, model, prompt_version FROM observations")
    assert row == {"observer": "openai", "model": "some-model", "prompt_version": PROMPT_VERSION}
    context = home.context(session_start(session_id="another"))
    assert "The lamp blinks twice" in context
