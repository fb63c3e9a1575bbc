"""`python -m bench.viewer`: first paint of the feed with 1,000 and with 100,000 turns.

Browser timing of one run, in turns between both; medians, and the ratio. Needs the extra `browser`
and chromium.
"""

import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from claude_mem.config import Layout
from claude_mem.store import Store
from claude_mem.store.clock import iso, now_ms

SMALL, LARGE = 1_000, 100_000
ROUNDS = 15
TURNS_PER_SESSION = 20
PROJECTS = 12
PATHS = ("/", "/project/1", "/turn/{last}")
_PAINT = """() => new Promise(resolve => new PerformanceObserver(list => {
  const paint = list.getEntriesByName("first-contentful-paint")[0];
  if (paint) resolve(paint.startTime);
}).observe({type: "paint", buffered: true}))"""


def fill(layout: Layout, turns: int) -> None:
    """Rows as an observer writes them, inserted in bulk."""
    layout.create()
    Store.open(layout.database, layout.backups).close()
    with closing(sqlite3.connect(layout.database)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        now, step = now_ms(), 300_000
        projects = [(number, f"/code/p{number}", f"p{number}") for number in range(1, PROJECTS + 1)]
        connection.executemany("INSERT INTO projects (id, key, name) VALUES (?, ?, ?)", projects)
        for number in range(1, turns // TURNS_PER_SESSION + 1):
            _insert_session(connection, number, now - (turns - number * TURNS_PER_SESSION) * step)
        for number in range(1, turns + 1):
            _insert_turn(connection, number, now - (turns - number) * step)
        connection.execute("DELETE FROM unindexed")
        connection.commit()


def _insert_session(connection: sqlite3.Connection, number: int, ms: int) -> None:
    connection.execute(
        "INSERT INTO sdk_sessions (id, content_session_id, memory_session_id, project_id,"
        " project_dir, dialect, title, prompt_counter, status, started_at, started_at_epoch,"
        " updated_at, updated_at_epoch) VALUES (?, ?, ?, ?, '', 'claude', ?, ?, 'completed', ?, ?,"
        " ?, ?)",
        (number, f"s{number}", f"m{number}", number % PROJECTS + 1, f"Session {number}",
         TURNS_PER_SESSION, iso(ms), ms, iso(ms), ms),
    )  # fmt: skip


def _insert_turn(connection: sqlite3.Connection, number: int, ms: int) -> None:
    session = (number - 1) // TURNS_PER_SESSION + 1
    ordinal, project = (number - 1) % TURNS_PER_SESSION + 1, session % PROJECTS + 1
    prompt = f"Look at part {number} of the harbour and fix what is broken there"
    connection.execute(
        "INSERT INTO user_prompts (id, session_id, project_id, prompt_id, prompt_number,"
        " prompt_text, closed, retired, updated_at_epoch, created_at, created_at_epoch)"
        " VALUES (?, ?, ?, ?, ?, ?, 1, 1, ?, ?, ?)",
        (number, session, project, f"p{number}", ordinal, prompt, ms, iso(ms), ms),
    )
    files = json.dumps([f"src/part_{number % 500}.py"])
    connection.execute(
        "INSERT INTO observations (memory_session_id, project_id, turn_id, ordinal, prompt_number,"
        " type, title, narrative, files_modified, observer, created_at, created_at_epoch)"
        " VALUES (?, ?, ?, 0, ?, 'bugfix', ?, ?, ?, 'local', ?, ?)",
        (f"m{session}", project, number, ordinal, f"Part {number} was broken and works again",
         "A loose wire was the cause. It is soldered now, and a test watches it.", files,
         iso(ms), ms),
    )  # fmt: skip
    connection.execute(
        "INSERT INTO session_summaries (memory_session_id, project_id, turn_id, prompt_number,"
        " request, completed, files_edited, observer, created_at, created_at_epoch)"
        " VALUES (?, ?, ?, ?, ?, 'The wire is soldered.', ?, 'local', ?, ?)",
        (f"m{session}", project, number, ordinal, prompt, files, iso(ms), ms),
    )


@contextmanager
def serve(turns: int, port: int) -> Iterator[str]:
    """A worker with so many turns; the link that lets a browser in."""
    with tempfile.TemporaryDirectory(prefix="claude-mem-viewer-") as directory:
        fill(Layout(Path(directory) / ".claude-mem"), turns)
        environment = {
            "PATH": os.environ["PATH"], "HOME": directory, "CLAUDE_MEM_WORKER_PORT": str(port),
            "CLAUDE_MEM_EMBEDDER": "none",
        }  # fmt: skip
        try:
            yield _command(environment, "open", "--print").strip()
        finally:
            _command(environment, "worker", "stop")


def _command(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "claude_mem", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def measure(links: dict[int, str]) -> dict[str, dict[int, list[float]]]:
    from playwright.sync_api import sync_playwright

    times: dict[str, dict[int, list[float]]] = {
        path: {turns: [] for turns in links} for path in PATHS
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        pages = {turns: _let_in(browser, link) for turns, link in links.items()}
        for _ in range(ROUNDS):
            for turns, page in pages.items():
                for path in PATHS:
                    page.goto(links[turns].partition("/open")[0] + path.format(last=turns))
                    times[path][turns].append(float(page.evaluate(_PAINT)))
        browser.close()
    return times


def _let_in(browser: Any, link: str) -> Any:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(link)
    page.wait_for_url(f"{link.partition('/open')[0]}/")
    return page


def main() -> None:
    with ExitStack() as stack:
        links = {
            turns: stack.enter_context(serve(turns, port))
            for turns, port in ((SMALL, 38810), (LARGE, 38840))
        }
        for path, times in measure(links).items():
            small, large = statistics.median(times[SMALL]), statistics.median(times[LARGE])
            print(f"first paint of {path}: {small:.0f} ms with {SMALL:,} turns,"
                  f" {large:.0f} ms with {LARGE:,}: ratio {large / small:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
