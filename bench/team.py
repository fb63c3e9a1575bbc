"""The team server next to the local search: recall, latency, and pushes per second.

    python -m bench.team recall --sessions DIR --questions FILE
    python -m bench.team locomo --file FILE --every 5
    python -m bench.team search --turns 100000 1000000 --passages 1
    python -m bench.team pushes

Each starts a PostgreSQL with pgvector of its own (extra `team-test`) and real server processes, and
measures both sides in the same run. `recall` imports transcripts, shares everything with its record
and asks the questions on both sides; a hit is a turn that holds the answer (`bench/questions.py`).
`locomo` does the same with conversations of LoCoMo (`bench/recall.py`). Processor time is that of
the process that searches, or of the server and PostgreSQL: it hardly depends on other work of the
machine.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from tests.postgres import BUFFERS, Postgres, running_postgres
from tests.team import Member, TeamServer, running_team, turn_item

from bench.questions import RANKED, TOPS, load_turns, read_questions
from bench.recall import Score, ask, locomo
from bench.search import questions
from bench.semantic import embed_all
from bench.team_scale import fill_team
from bench.transcripts import import_all
from bench.turns import Pool, fill_turns
from claude_mem.cli.imports import find_transcripts
from claude_mem.config import Layout
from claude_mem.index.embedders.static_model import StaticModel
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.answers import turn_of
from claude_mem.recall.search import Query, search
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.team.client.outgoing_turns import load_turn
from claude_mem.team.wire import TurnItem

BATCH = 100
ROUNDS = 10
SEARCH_BUFFERS = "1GB"


Search = Callable[[str], object]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recall = commands.add_parser("recall")
    recall.add_argument("--sessions", type=Path, required=True)
    recall.add_argument("--questions", type=Path, required=True)
    talks = commands.add_parser("locomo")
    talks.add_argument("--file", type=Path, required=True)
    talks.add_argument("--every", type=int, default=1, help="Ask only every Nth question.")
    scale = commands.add_parser("search")
    scale.add_argument("--turns", type=int, nargs="+", default=[100_000])
    scale.add_argument("--passages", type=int, default=3, help="Of a turn; 9 with its record.")
    pushes = commands.add_parser("pushes")
    pushes.add_argument("--turns", type=int, default=2_000)
    options = parser.parse_args()
    buffers = SEARCH_BUFFERS if options.command == "search" else BUFFERS
    with tempfile.TemporaryDirectory() as directory, running_postgres(buffers) as postgres:
        root = Path(directory)
        if options.command == "recall":
            measure_recall(postgres, root, options.sessions, options.questions)
        elif options.command == "locomo":
            measure_locomo(postgres, root, options.file, options.every)
        elif options.command == "search":
            for turns in options.turns:
                measure_search(postgres, root / str(turns), turns, options.passages)
        else:
            measure_pushes(postgres, root, options.turns)
    return 0


@contextmanager
def _opened(root: Path) -> Iterator[Store]:
    layout = Layout(root / "data")
    layout.create()
    with Store.open(layout.database, layout.backups) as store:
        yield store


def _items(store: Store) -> Iterator[tuple[int, TurnItem]]:
    """All turns, by their id here."""
    redactor = Redactor()
    ids = store.read(lambda c: [r[0] for r in c.execute("SELECT id FROM user_prompts ORDER BY id")])
    for turn_id in ids:
        item = store.read(lambda c, t=turn_id: load_turn(c, t, redactor, with_record=True))  # type: ignore[misc]
        if item is not None:
            yield turn_id, item


def _push(member: Member, project: int, items: Sequence[TurnItem]) -> None:
    for start in range(0, len(items), BATCH):
        outcomes = member.push(project, *items[start : start + BATCH])
        assert "refused" not in outcomes, outcomes


# Recall


def measure_recall(postgres: Postgres, root: Path, sessions: Path, questions: Path) -> None:
    files = find_transcripts([sessions])
    with (
        import_all(root / "memory", files) as store,
        running_team(postgres, "recall", root) as server,
    ):
        index = embed_all(store)
        pairs = list(_items(store))
        member = server.join("Bench")
        project = member.share("bench", record=True)
        _push(member, project, [item for _, item in pairs])
        by_uid = {item.uid: turn_id for turn_id, item in pairs}
        turns = store.read(load_turns)
        asked = read_questions(questions)
        ranks: dict[str, list[int | None]] = {"local": [], "team": []}
        now = datetime.now(UTC)
        for question in asked:
            rows = search(store, Query(question.text, limit=RANKED), now, index).rows
            local = store.read(lambda c, r=rows: [turn_of(c, row.id) for row in r])  # type: ignore[misc]
            found = member.search(question.text, limit=RANKED)
            team = [by_uid[str(row["uid"])] for row in found]
            for name, ids in (("local", local), ("team", team)):
                hits = (n for n, i in enumerate(ids, 1) if i and turns[i].answers(question))
                ranks[name].append(next(hits, None))
        print(f"{len(pairs)} turns, {len(asked)} questions")
        for name, of_side in ranks.items():
            counts = [sum(r is not None and r <= top for r in of_side) for top in TOPS]
            shares = ", ".join(
                f"@{top} {100 * count / len(asked):.1f}%"
                for top, count in zip(TOPS, counts, strict=True)
            )
            print(f"{name:>6}: {shares}")


def measure_locomo(postgres: Postgres, root: Path, file: Path, every: int) -> None:
    """Each conversation is a project, which is shared."""
    with locomo(file) as (store, conversations), running_team(postgres, "locomo", root) as server:
        index = embed_all(store)
        member = server.join("Bench")
        by_project: dict[str, list[TurnItem]] = {}
        turns = store.read(
            lambda c: c.execute("SELECT id, project_id FROM user_prompts").fetchall()
        )
        projects = {turn_id: store.project(project_id).key for turn_id, project_id in turns}
        turn_ids: dict[str, int] = {}
        for turn_id, item in _items(store):
            by_project.setdefault(projects[turn_id], []).append(item)
            turn_ids[item.uid] = turn_id
        for key, items in by_project.items():
            _push(member, member.share(key), items)
        lines = store.read(
            lambda c: dict(c.execute("SELECT turn_id, id FROM observations").fetchall())
        )
        local, team, asked = Score(), Score(), 0
        for conversation in conversations:
            questions = conversation.questions[::every]
            sample = replace(conversation, questions=questions)
            local += ask(store, sample, index)
            asked += len(questions)
            key = store.project(conversation.project_id).key
            now = int(conversation.now.timestamp() * 1000)
            for question in questions:
                rows = member.search(question.text, limit=10, project_key=key, now=now)
                found = [conversation.lines.get(lines[turn_ids[str(r["uid"])]]) for r in rows]
                right = [line in question.evidence for line in found]
                team += Score(((any(right[:5]), any(right)),))
        print(f"{len(turn_ids)} turns of {len(conversations)} conversations, {asked} questions")
        print(f" local: {local}\n  team: {team}")


# Search


def measure_search(postgres: Postgres, root: Path, turns: int, passages: int) -> None:
    """The same turns on both sides, in turns of the same words."""
    root.mkdir()
    pool = Pool(StaticModel.load())
    name = f"search_{turns}"
    print(f"{turns:,} turns of {passages} passages", flush=True)
    with _opened(root) as store, running_team(postgres, name, root) as server:
        member = server.join("Bench")
        project = member.share("bench")
        with ThreadPoolExecutor(1) as thread:
            filling = thread.submit(_fill_server, server, pool, project, turns, passages)
            _timed("local turns", lambda: fill_turns(store, pool, "bench", turns, passages))
            filling.result()
        index = SemanticIndex(pool.model.id, lambda: pool.model)
        now = datetime.now(UTC)
        search(store, Query(pool.words[0]), now, index)
        index.wait_until_loaded()
        sides: dict[str, Search] = {
            "local": lambda text: search(store, Query(text), now, index),
            "team": member.search,
        }
        of_sides = {"local": (os.getpid(),), "team": (server.pid, postgres.pid)}
        for text in questions(pool.words, 0).values():
            for ask_side in sides.values():
                ask_side(text)
        asked = list(_ask_both(sides, of_sides, pool.words))
        local = sum(file.stat().st_size for file in (root / "data").iterdir() if file.is_file())
        size = server.sql("SELECT pg_database_size(current_database())")[0][0]
        print(f"  disk: local {local / 1e6:,.0f} MB, team {int(size) / 1e6:,.0f} MB")
        for side in sides:
            _print_searches(side, [row for row in asked if row.side == side])
    shutil.rmtree(root)
    postgres.sql("postgres", f"DROP DATABASE {name}")


def _fill_server(server: TeamServer, pool: Pool, project: int, turns: int, passages: int) -> None:
    """Fills the server by a process of its own, while this one fills the local database."""
    url = server.database_url
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        _timed("team turns",
               processes.submit(fill_team, url, pool, project, turns, passages).result)  # fmt: skip
    _timed("vacuum", lambda: server.sql("VACUUM ANALYZE"))
    _timed("maintain", lambda: server.command("maintain", seconds=7_200))


def _timed(name: str, work: Callable[[], object]) -> None:
    started = time.perf_counter()
    work()
    print(f"  {name}: {time.perf_counter() - started:.0f} s", flush=True)


class AskedSearch(NamedTuple):
    side: str
    kind: str  # of question
    seconds: float
    processor: float


def _ask_both(
    sides: dict[str, Search], of_sides: dict[str, tuple[int, ...]], words: list[str]
) -> Iterator[AskedSearch]:
    for number in range(ROUNDS):
        for kind, text in questions(words, number).items():
            for side, ask_side in sides.items():
                before = _processor_seconds(of_sides[side])
                seconds = _seconds(lambda a=ask_side, t=text: a(t))
                yield AskedSearch(side, kind, seconds, _processor_seconds(of_sides[side]) - before)


def _print_searches(side: str, asked: Sequence[AskedSearch]) -> None:
    _print_times(side, asked)
    for kind in dict.fromkeys(row.kind for row in asked):
        _print_times(f"  {kind}", [row for row in asked if row.kind == kind])


def _seconds(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _print_times(name: str, asked: Sequence[AskedSearch]) -> None:
    seconds = [row.seconds for row in asked]
    p95 = statistics.quantiles(seconds, n=20)[-1]
    used = sum(row.processor for row in asked) / len(asked)
    print(
        f"  {name:<26} {len(asked):3} searches: p50 {statistics.median(seconds) * 1e3:.0f} ms,"
        f" p95 {p95 * 1e3:.0f} ms, processor {used * 1e3:.0f} ms",
        flush=True,
    )


def _processor_seconds(pids: Iterable[int]) -> float:
    """Returns the time of these processes and their children, also of those that have ended."""
    ticks = 0
    for pid in pids:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for process in (pid, *map(int, children)):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15] if process == pid else fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


# Pushes


def measure_pushes(postgres: Postgres, root: Path, turns: int) -> None:
    """Measures with 1, 2 and 4 server processes, and four clients that each push to the same
    project."""
    for processes in (1, 2, 4):
        with ExitStack() as stack:
            first = stack.enter_context(running_team(postgres, f"pushes_{processes}", root))
            servers = [first]
            for _ in range(processes - 1):
                other = TeamServer(postgres, first.database, root)
                stack.callback(other.kill)
                other.start()
                servers.append(other)
            owner = first.join("Bench")
            project = owner.share("bench")
            members = [owner.invite(f"Client {n}", project) for n in range(4)]
            jobs = [
                (Member(servers[n % processes], member.token), _synthetic(n, turns // 4))
                for n, member in enumerate(members)
            ]
            pids = (*(server.pid for server in servers), postgres.pid)
            used = -_processor_seconds(pids)
            started = time.perf_counter()
            with ThreadPoolExecutor(len(jobs)) as pool:
                running = [pool.submit(_push, member, project, items) for member, items in jobs]
                for push in running:
                    push.result()
            seconds = time.perf_counter() - started
            used += _processor_seconds(pids)
            print(
                f"{processes} processes: {turns / seconds:.0f} turns a second, processor"
                f" {used / turns * 1e3:.1f} ms a turn"
            )


def _synthetic(client: int, turns: int) -> list[TurnItem]:
    return [
        turn_item(f"s{client}-{n // 20}", n % 20 + 1, title=f"Step {n} of the harbour light",
                  narrative=f"Bearing {n} was replaced because the lamp {client} flickered. " * 4)
        for n in range(turns)
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
