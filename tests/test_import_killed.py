"""An import that is killed at any point can be run again, and its processes end with it."""

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.config import load_settings
from claude_mem.recall.context import build_context
from claude_mem.store import StoreReader
from claude_mem.worker.contexts import rendered_context
from tests.conftest import Home, wait_until
from tests.contents import contents_of
from tests.importing import (
    import_alone,
    library,
)
from tests.variants import mostly_extra

KILLED = """
import os, signal, sys
from claude_mem.cli import main
from claude_mem.cli import imports as command
from claude_mem.store import database
from claude_mem.store import imported_sessions
from claude_mem.intake.transcripts import importer, newest_sessions

module, name, number, when = sys.argv[1:5]
owners = {"imported_sessions": imported_sessions, "Writer": database.Writer, "command": command}
owner = owners[module]
work, remaining = getattr(owner, name), [int(number)]

def killed(*args, **kwargs):
    remaining[0] -= 1
    if remaining[0] == 0 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = work(*args, **kwargs)
    if remaining[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(owner, name, killed)
importer.MAX_PENDING_SESSIONS = importer.GROUP = 1
newest_sessions.FEW_BYTES = newest_sessions.CONTEXT_SESSIONS = 0
sys.argv = ["claude-mem", *sys.argv[5:]]
main()
"""


def killed_import(home: Home, *point: str) -> int:
    arguments = [*point[:4], "import", *point[4:], str(home.path / "library")]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments],
        env=home.env(),
        capture_output=True,
        start_new_session=True,
        timeout=60,
    )
    return done.returncode


@pytest.mark.parametrize(
    "points",
    mostly_extra([
        [("Writer", "_commit", "2", "before"), ("Writer", "_commit", "3", "after")],
        [("imported_sessions", "import_session", "1", "before"),
         ("imported_sessions", "import_session", "4", "after")],
        [("imported_sessions", "mark_imported", "1", "before"),
         ("imported_sessions", "mark_imported", "5", "after")],
        [("imported_sessions", "import_session", "9", "after"),
         ("imported_sessions", "save_session_memories", "3", "before", "--wait"),
         ("command", "render_all_contexts", "1", "before", "--wait")],
        [("imported_sessions", "import_session", "9", "after"),
         ("imported_sessions", "save_session_memories", "1", "before", "--wait"),
         ("imported_sessions", "save_session_memories", "2", "after", "--wait"),
         ("imported_sessions", "finish_transcript", "1", "before", "--wait"),
         ("imported_sessions", "finish_transcript", "1", "after", "--wait"),
         ("imported_sessions", "contexts_rendered", "1", "before", "--wait")],
    ]),
    ids=["around a commit", "in a session", "around a note", "before the contexts",
         "around memories"],
)  # fmt: skip
def test_an_import_that_was_killed_is_run_again_as_if_nothing_had_happened(
    home: Home, tmp_path: Path, points: list[tuple[str, ...]]
) -> None:
    files = library(home.path / "library")
    for point in points:
        assert killed_import(home, *point) == -signal.SIGKILL
    assert home.command("import", "--wait", str(home.path / "library")).returncode == 0
    assert contents_of(home.layout.database) == import_alone(tmp_path / "alone", *files)
    assert_contexts_are_of_today(home)


def assert_contexts_are_of_today(home: Home) -> None:
    with closing(StoreReader.open_existing(home.layout.database)) as store:
        budget = load_settings(home.env()).context.tokens
        keys = [str(project["key"]) for project in store.projects()]
        assert len(keys) == 3
        for key in keys:
            project_id = store.project_by_key(key)
            assert project_id is not None
            (directory,) = store.recent_directories(project_id)
            rendered = rendered_context(home.layout, directory)
            assert rendered == build_context(store, project_id, budget) != ""


def test_readers_of_an_import_that_was_killed_end_with_it(home: Home) -> None:
    library(home.path / "library")
    script = KILLED.replace("main()", "command.processes = lambda: 3\nmain()")
    process = subprocess.Popen(
        [sys.executable, "-c", script, "imported_sessions", "import_session", "1", "after",
         "import", str(home.path / "library")],
        env=home.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    assert process.wait(60) == -signal.SIGKILL
    wait_until(lambda: not processes_of(process.pid), "the end of the readers")


def processes_of(session: int) -> list[int]:
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, _, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(of) == session and state != "Z":
                processes.append(int(entry.name))
    return processes
