"""A session that starts without a worker in a directory for which no context was rendered."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import claude_mem
from claude_mem.worker.lock import WorkerLock
from tests.conftest import Home, wait_until
from tests.payloads import as_bytes, prompt, session_start, stop
from tests.trust_dialog import accept_trust_dialog

# A machine under load takes longer to start a worker than a session should wait.
_PATIENT_HOOK = """
import sys
sys.path.insert(0, sys.argv[1])
from claude_mem.hook import response
response.NEW_WORKER_SECONDS = float(sys.argv[2])
from claude_mem.hook.capture import run
run(["claude", "SessionStart"])
"""


def start_cold(home: Home, directory: Path, seconds: float = 60, **fields: str) -> str:
    """What SessionStart gives in that directory."""
    source = str(Path(str(claude_mem.__file__)).parent.parent)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PATIENT_HOOK, source, str(seconds)],
        input=as_bytes(session_start(cwd=str(directory), **fields)),
        capture_output=True,
        env=home.env(CLAUDE_PROJECT_DIR=str(directory)),
        timeout=45,  # a hook that waits when it should not is ended
    )
    assert done.stderr == b""
    answer = json.loads(done.stdout)
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def repository(path: Path, origin: str = "https://example.com/dev/harbor.git") -> Path:
    (path / ".git").mkdir(parents=True)
    (path / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {origin}\n')
    return path


def worktree(main: Path, path: Path) -> Path:
    linked = main / ".git" / "worktrees" / path.name
    linked.mkdir(parents=True)
    (linked / "commondir").write_text("../..\n")
    (linked / "gitdir").write_text(f"{path / '.git'}\n")
    path.mkdir(parents=True)
    (path / ".git").write_text(f"gitdir: {linked}\n")
    return path


@pytest.fixture
def known(home: Home, tmp_path: Path) -> Path:
    """A repository with memories, and no worker."""
    directory = repository(tmp_path / "harbor")
    home.environment["CLAUDE_PROJECT_DIR"] = str(directory)
    for payload in (
        prompt("Make the light blink", cwd=str(directory)),
        stop("The light blinks because of the new relay.", cwd=str(directory)),
    ):
        home.hook(payload)
    home.wait_settled()
    wait_until(lambda: list(home.layout.contexts.glob("*harbor*")), "the rendered context")
    home.kill_worker()
    return directory


@pytest.mark.parametrize("kind", ["clone", "worktree"])
def test_a_new_directory_of_a_known_repository_gets_its_context(
    home: Home, known: Path, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "new" / kind
    directory = repository(path) if kind == "clone" else worktree(known, path)
    if kind == "clone":
        accept_trust_dialog(home.path, directory)
    assert "Make the light blink" in start_cold(home, directory, session_id="next")


def test_a_copy_that_claims_a_known_repository_gets_nothing(
    home: Home, known: Path, tmp_path: Path
) -> None:
    copy = repository(tmp_path / "copy")
    assert start_cold(home, copy, session_id="next") == ""
    assert "Make the light blink" in start_cold(home, known, session_id="third")


def test_a_directory_with_a_rendered_context_does_not_wait(home: Home, known: Path) -> None:
    lock = WorkerLock.acquire(home.layout)  # no worker can start
    assert lock is not None
    try:
        assert "Make the light blink" in start_cold(home, known, session_id="next")
    finally:
        lock.release()


@pytest.mark.parametrize("source", ["resume", "fork"])
def test_a_session_that_has_its_context_does_not_wait(
    home: Home, known: Path, tmp_path: Path, source: str
) -> None:
    lock = WorkerLock.acquire(home.layout)
    assert lock is not None
    try:
        assert start_cold(home, repository(tmp_path / "clone"), source=source) == ""
    finally:
        lock.release()


def test_without_memories_nothing_waits(home: Home, tmp_path: Path) -> None:
    lock = WorkerLock.acquire(home.layout)
    assert lock is not None
    try:
        assert start_cold(home, repository(tmp_path / "clone")) == ""
    finally:
        lock.release()


def test_a_worker_that_does_not_come_is_not_waited_for_long(
    home: Home, known: Path, tmp_path: Path
) -> None:
    lock = WorkerLock.acquire(home.layout)
    assert lock is not None
    try:
        assert start_cold(home, repository(tmp_path / "clone"), seconds=0.1) == ""
    finally:
        lock.release()
