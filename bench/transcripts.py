"""Imports past sessions into a new store and searches it for the answers to questions.

    python -m bench.transcripts --sessions DIR --questions FILE [--unanswerable FILE …]
                                [--questions-only] [--weights FILE]

DIR has transcripts as the client writes them, damaged files included; FILE has a JSON object per
line with `session_id`, `question` and `answer_terms` (`bench/questions.py` says what is measured).
Questions that no session answers need a `question` only: a strong result for them is wrong.
Observations and contexts, sampled with a fixed seed, are printed first for review. `--weights`
takes other weights of the observer than those of the package, for example trained without these
sessions.
"""

import argparse
import json
import os
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # where it runs as a script

from bench.questions import FIELDS, ask, read_questions
from bench.semantic import embed_all
from claude_mem.agents.agent import Payload
from claude_mem.cli.demo import payloads
from claude_mem.cli.imports import find_transcripts, processes
from claude_mem.config import Layout
from claude_mem.config.settings import RetentionSettings
from claude_mem.errors import BadInput
from claude_mem.index import indexing
from claude_mem.install.launcher import write_launcher
from claude_mem.intake import spool
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.importer import distil_waiting, import_transcripts
from claude_mem.observer.local import learned_trees
from claude_mem.recall.context import build_context
from claude_mem.server import client
from claude_mem.store import Store, StoreReader
from claude_mem.store.memories import column_texts
from claude_mem.store.memory_rows import JsonRow
from claude_mem.types import Json

ROUNDS = 3
OBSERVATIONS, CONTEXTS = 30, 5
DAY_MS = 86_400_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--unanswerable", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=int, default=8, help="sessions to send through the hooks")
    parser.add_argument("--quiet", action="store_true", help="print figures only")
    parser.add_argument("--questions-only", action="store_true", help="no timing and no replay")
    parser.add_argument("--weights", type=Path, help="a table that training/observer.py wrote")
    options = parser.parse_args()
    files = find_transcripts([options.sessions])
    if not files:
        print(f"there are no transcripts in {options.sessions}")
        return 1
    if options.weights:
        learned_trees.use(learned_trees.load(options.weights))
    with tempfile.TemporaryDirectory(prefix="claude-mem-bench-") as temporary:
        directory = Path(temporary)
        with import_all(directory / "memory", files) as store:
            if not (options.quiet or options.questions_only):
                _print_samples(store, files, options.seed, directory)
            if not options.questions_only:
                _measure(files, options.sessions, directory)
                if not options.weights:  # the worker behind the hooks has those of the package
                    _replay(store, files, options.replay, options.seed, directory)
                _measure_backups(store, directory)
            questions = read_questions(options.questions)
            ask(store, questions, options.unanswerable, text_bytes(files), options.seed)
    return 0


def import_options() -> ImportOptions:
    now = int(time.time() * 1000)
    skipped = ("ListMcpResourcesTool", "SlashCommand", "Skill", "TodoWrite", "AskUserQuestion")
    return ImportOptions("/nowhere", "", now - 30 * DAY_MS, skipped)


def import_all(directory: Path, files: list[Path], count: int | None = None) -> Store:
    store = import_unindexed(directory, files[:count])
    indexing.rebuild(store)
    store.run_before_commit(indexing.refresh)
    return store


def import_unindexed(directory: Path, files: list[Path]) -> Store:
    """Imports with the memories of all turns, as `claude-mem import --wait` makes them."""
    directory.mkdir(parents=True)
    store = Store.open(directory / "memory.db", directory / "backups")
    import_transcripts(store, files, import_options(), processes=processes())
    return store


def parse_lines(path: Path) -> Iterator[Json]:
    """Every JSON value in the file; skips what cannot be parsed, and a file that cannot be read."""
    try:
        with path.open("rb") as file:
            for line in file:
                yield from _parse_line(line)
    except OSError:
        return


def _parse_line(line: bytes) -> Iterator[Json]:
    """Usually one value; a writer that was interrupted may leave two on a line."""
    try:
        yield json.loads(line)
        return
    except (ValueError, RecursionError):
        text = line.decode("utf-8", "replace").strip()
    decoder = json.JSONDecoder()
    while text:
        try:
            value, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            return
        yield value
        text = text[end:].lstrip()


# Time and memory


class Spent(NamedTuple):
    elapsed: float
    processor: float  # also of processes that have ended

    @classmethod
    def now(cls) -> "Spent":
        usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return cls(time.perf_counter(), sum(use.ru_utime + use.ru_stime for use in usages))

    def since(self, begun: "Spent") -> "Spent":
        return Spent(self.elapsed - begun.elapsed, self.processor - begun.processor)


def _measure(files: list[Path], sessions: Path, directory: Path) -> None:
    """What the command does, and what it leaves to the worker; both with all processor cores."""
    rounds = [_measure_once(files, directory / f"timed-{number}") for number in range(ROUNDS)]
    parsing, importing, recent, distilling, index = (
        _median(spent) for spent in zip(*rounds, strict=True)
    )
    print(f"\njson.loads over the same lines: {parsing.elapsed:.2f} s")
    for what, spent, target in (
        ("import", importing, " (target at most 5x)"),
        ("import if all sessions were recent", recent, " (target at most 5x)"),
        ("what it leaves to the worker: the other memories", distilling, ""),
        ("and the index", index, ""),
    ):
        print(f"{what}: {spent.elapsed:.2f} s, {spent.elapsed / parsing.elapsed:.2f}x{target}; "
              f"processor time {spent.processor:.2f} s, "
              f"{spent.processor / max(parsing.processor, 1e-6):.2f}x")  # fmt: skip
    all_distilled = importing.elapsed + distilling.elapsed
    print(f"until all turns have memories: {all_distilled / parsing.elapsed:.2f}x")
    largest = max(files, key=lambda path: path.stat().st_size)
    print(f"peak memory of claude-mem import: {_peak_megabytes(sessions, directory):.0f} MB for all"
          f" files, {_peak_megabytes(largest, directory):.0f} MB for the largest"
          " (target under 200)")  # fmt: skip


def _measure_once(files: list[Path], directory: Path) -> tuple[Spent, ...]:
    directory.mkdir()
    options = replace(import_options(), reads="newest")
    moments = [Spent.now()]
    for path in files:
        for _ in parse_lines(path):
            pass
    moments.append(Spent.now())
    with Store.open(directory / "memory.db", directory / "backups") as store:
        import_transcripts(store, files, options, processes=processes())
        moments.append(Spent.now())
        distil_waiting(store, options, processes=processes())
        moments.append(Spent.now())
        indexing.rebuild(store)
        moments.append(Spent.now())
    parsing, importing, distilling, index = (
        after.since(before) for before, after in pairwise(moments)
    )
    begun = Spent.now()
    with Store.open(directory / "recent.db", directory / "recent-backups") as store:
        # Their raw events are kept.
        recent = replace(options, keep_raw_since=0)
        import_transcripts(store, files, recent, processes=processes())
    return parsing, importing, Spent.now().since(begun), distilling, index


def _median(spent: Iterable[Spent]) -> Spent:
    return Spent(*map(statistics.median, zip(*spent, strict=True)))


def _peak_megabytes(transcripts: Path, directory: Path) -> float:
    """The sum of the command and the largest of its processes."""
    script = (
        "import resource, sys; from claude_mem.cli import commands\n"
        "try: commands(['import', sys.argv[1], '--json'], standalone_mode=False)\n"
        "finally: print(sum(resource.getrusage(who).ru_maxrss for who in"
        " (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)), file=sys.stderr)"
    )
    home = tempfile.mkdtemp(dir=directory)
    environment = {**os.environ, "HOME": home, "CLAUDE_MEM_DATA_DIR": f"{home}/.claude-mem"}
    done = subprocess.run([sys.executable, "-c", script, str(transcripts)], env=environment,
                          capture_output=True, text=True, check=True)  # fmt: skip
    client.stop(Layout(Path(home, ".claude-mem")))  # the command has started it
    return int(done.stderr.split()[-1]) / 1024


# Replay through hooks


def _replay(store: Store, files: list[Path], count: int, seed: int, directory: Path) -> None:
    """Sends sessions through the real launcher and compares their memory with the import's."""
    sample = random.Random(seed).sample(files, min(count, len(files)))
    transcripts = [events for path in sample if (events := _hook_events(path))]
    if not transcripts:
        return
    layout = Layout(directory / "live")
    layout.create()
    launcher = write_launcher(layout)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(directory),
        "CLAUDE_MEM_DATA_DIR": str(layout.root),
        "CLAUDE_MEM_WORKER_PORT": "0",
    }
    client.start(layout, environment)
    try:
        for events in transcripts:
            for event, payload in events:
                environment["CLAUDE_PROJECT_DIR"] = str(payload["cwd"])
                subprocess.run([launcher, "claude", event], input=json.dumps(payload).encode(),
                               stdout=subprocess.DEVNULL, env=environment, check=True)  # fmt: skip
        _wait_until_distilled(layout)
    finally:
        client.stop(layout)
    sessions = {str(payload["session_id"]) for events in transcripts for _, payload in events}
    with StoreReader.open_existing(layout.database) as live:
        same = sum(_memory(live, session) == _memory(store, session) for session in sessions)
    hooks = sum(map(len, transcripts))
    print(f"\n{len(sessions)} sessions replayed through {hooks} hooks: "
          f"the memory of {same} equals the import's")  # fmt: skip


def _hook_events(path: Path) -> list[tuple[str, Payload]]:
    """Empty for a file without a session."""
    try:
        return list(payloads(path))
    except BadInput:
        return []


def _wait_until_distilled(layout: Layout) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with StoreReader.open_existing(layout.database) as store:
            queue = store.queue_state()
        if not spool.waiting(layout) and not queue["pending"] + queue["processing"]:
            return
        time.sleep(0.2)


def _memory(store: StoreReader, session_id: str) -> list[object]:
    session = store.session_by_content_id(session_id)
    if session is None:
        return []
    memories = store.memories_of_session(int(str(session["id"])))
    values: list[object] = [session["title"], session["subtitle"]]
    for noun in ("summaries", "observations"):
        values += [
            [column_texts(record, name) or record[name] for name in FIELDS[noun]]
            for record in _records(memories[noun])
        ]
    return values


def _records(value: Json) -> list[JsonRow]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# Backups


def _measure_backups(store: Store, directory: Path) -> None:
    """Measures as many backups as are kept by default, next to the database with its index and
    vectors."""
    embed_all(store)
    with closing(sqlite3.connect(directory / "memory" / "memory.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database = (directory / "memory" / "memory.db").stat().st_size
    backups, kept = directory / "measured-backups", RetentionSettings().backups
    for _ in range(kept):
        store.back_up(backups, kept)
    size = sum(path.stat().st_size for path in backups.iterdir())
    print(f"\nthe {kept} backups that are kept: {size / database:.2f}x of the database"
          f" ({size:,} of {database:,} bytes; target at most 1.5x)")  # fmt: skip


# What was said


def text_bytes(files: Iterable[Path]) -> int:
    """Counts the bytes of the user's and the agent's text."""
    return sum(_text_bytes(line) for path in files for line in parse_lines(path))


def _text_bytes(line: Json) -> int:
    if not isinstance(line, dict) or line.get("type") not in ("user", "assistant"):
        return 0
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))


# Samples to review


def _observations_in_order(connection: sqlite3.Connection) -> list[int]:
    """Orders observations by session and turn: their ids depend on which of the importing processes
    was faster."""
    rows = connection.execute(
        "SELECT o.id FROM observations o JOIN user_prompts t ON t.id = o.turn_id"
        " JOIN sdk_sessions s ON s.id = t.session_id"
        " ORDER BY s.content_session_id, t.prompt_number, t.prompt_id, o.title"
    )
    return [observation_id for (observation_id,) in rows]


def _print_samples(store: Store, files: list[Path], seed: int, directory: Path) -> None:
    rng = random.Random(seed)
    ids = store.read(_observations_in_order)
    drawn = set(rng.sample(ids, min(OBSERVATIONS, len(ids))))
    for record in store.get_many("observations", [each for each in ids if each in drawn]):
        print(f"\n#{record['id']} {record['type']}: {record['title']}")
        if record["narrative"]:
            print(f"  {record['narrative']}")
        for name in ("facts", "concepts", "files_modified"):
            value = record[name]
            if isinstance(value, list) and value:
                glue = "\n  - " if name == "facts" else ", "
                print(f"  {name}: {glue if name == 'facts' else ''}{glue.join(map(str, value))}")
    by_time = sorted(files, key=lambda path: path.stat().st_mtime)
    for number in range(CONTEXTS):
        files_imported = rng.randint(max(1, len(files) // 10), len(files))
        with import_all(directory / f"context-{number}", by_time, files_imported) as partial:
            projects = partial.projects()
            if not projects:
                continue
            busiest = max(projects, key=lambda record: int(str(record["sessions"])))
            project = partial.project_by_key(str(busiest["key"]))
            assert project is not None
            print(f"\n== context {number + 1}, after {files_imported} sessions")
            print(build_context(partial, project, 1000))


if __name__ == "__main__":
    sys.exit(main())
