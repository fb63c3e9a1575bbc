"""Past sessions imported into a fresh store, and questions asked of what is remembered.

    python -m bench.transcripts --sessions DIR --questions FILE

DIR holds transcripts as the client writes them; FILE a JSON object per line with `session_id`,
`question` and `answer_terms`. A hit is a returned memory of that session that holds all terms: by
words alone, by words and meaning, by meaning alone.
Printed first, to be read by a person: observations and contexts drawn with a fixed seed.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # where it runs as a script

from bench.semantic import embed_all
from claude_mem.cli.imports import processes
from claude_mem.cli.replay import payloads
from claude_mem.config import Layout
from claude_mem.index.text import full_text
from claude_mem.index.vectors.semantic import SemanticIndex
from claude_mem.install.launcher import write_launcher
from claude_mem.intake.transcripts.importer import (
    ImportOptions,
    find_transcripts,
    import_transcripts,
)
from claude_mem.recall.context import build_context
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.query import Query
from claude_mem.recall.search import search
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.server import client
from claude_mem.store import Store, StoreReader
from claude_mem.store.pages import Page, Record
from claude_mem.store.summary_facts import fact_texts
from claude_mem.types import Json

ROUNDS = 3
OBSERVATIONS, CONTEXTS = 30, 5
FEW_TOKENS = 1_000
DAY_MS = 86_400_000
KINDS = {"observation": "observations", "summary": "summaries"}
FIELDS = {
    "observations": ("title", "subtitle", "narrative", "facts", "files_read", "files_modified"),
    "summaries": ("request", "investigated", "learned", "completed", "next_steps", "notes",
                  "commands", "faults", "files_read", "files_edited"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    session_id: str
    text: str
    terms: tuple[str, ...]


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--sessions", type=Path, required=True)
    asked.add_argument("--questions", type=Path, required=True)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--replay", type=int, default=8, help="sessions to play through the hooks")
    asked.add_argument("--quiet", action="store_true", help="print figures only")
    asked.add_argument("--questions-only", action="store_true", help="neither timing nor replay")
    given = asked.parse_args()
    files = find_transcripts([given.sessions])
    with tempfile.TemporaryDirectory(prefix="claude-mem-bench-") as place:
        store = _imported(Path(place) / "memory", files)
        with store:
            if not (given.quiet or given.questions_only):
                _show(store, files, given.seed, Path(place))
            if not given.questions_only:
                _measure(files, Path(place))
                _replay(store, files, given.replay, given.seed, Path(place))
            _ask(store, files, _questions(given.questions))
    return 0


def wishes() -> ImportOptions:
    now = int(time.time() * 1000)
    skipped = ("ListMcpResourcesTool", "SlashCommand", "Skill", "TodoWrite", "AskUserQuestion")
    return ImportOptions("/nowhere", "", now - 30 * DAY_MS, skipped)


def _imported(directory: Path, files: list[Path], count: int | None = None) -> Store:
    directory.mkdir(parents=True)
    store = Store.open(directory / "memory.db", directory / "backups")
    full_text.keep_current(store)
    import_transcripts(store, files[:count], wishes(), processes=processes())
    return store


def _questions(path: Path) -> list[Question]:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [Question(x["session_id"], x["question"], tuple(x["answer_terms"])) for x in lines]


# What it costs


def _measure(files: list[Path], place: Path) -> None:
    parse: list[float] = []
    whole: list[float] = []
    for number in range(ROUNDS):
        parse.append(_seconds_to_parse(files))
        begun = time.perf_counter()
        _imported(place / f"timed-{number}", files).close()
        whole.append(time.perf_counter() - begun)
    ratio = statistics.median(whole) / statistics.median(parse)
    print(f"\nimport {statistics.median(whole):.2f} s, json.loads over the same lines "
          f"{statistics.median(parse):.2f} s: {ratio:.2f}x (target at most 4x)")  # fmt: skip
    largest = max(files, key=lambda path: path.stat().st_size)
    print(f"peak memory of claude-mem import: {_peak(files[0].parent, place):.0f} MB on the tree, "
          f"{_peak(largest, place):.0f} MB on the largest file (target under 200)")  # fmt: skip


def _seconds_to_parse(files: list[Path]) -> float:
    begun = time.perf_counter()
    for path in files:
        with path.open("rb") as file:
            for line in file:
                json.loads(line)
    return time.perf_counter() - begun


def _peak(what: Path, place: Path) -> float:
    """Of the command and its processes together, as they are at the end of each."""
    script = (
        "import resource, sys; from claude_mem.cli import commands\n"
        "try: commands(['import', sys.argv[1], '--json'], standalone_mode=False)\n"
        "finally: print(sum(resource.getrusage(who).ru_maxrss for who in"
        " (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)), file=sys.stderr)"
    )
    home = tempfile.mkdtemp(dir=place)
    environment = {**os.environ, "HOME": home, "CLAUDE_MEM_DATA_DIR": f"{home}/.claude-mem"}
    done = subprocess.run([sys.executable, "-c", script, str(what)], env=environment,
                          capture_output=True, text=True, check=True)  # fmt: skip
    return int(done.stderr.split()[-1]) / 1024


# The same from hooks


def _replay(store: Store, files: list[Path], count: int, seed: int, place: Path) -> None:
    """Sessions through the real launcher and hooks; then their memory beside the import's."""
    chosen = random.Random(seed).sample(files, min(count, len(files)))
    if not chosen:
        return
    layout = Layout(place / "live")
    layout.create()
    launcher = write_launcher(layout)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(place),
        "CLAUDE_MEM_DATA_DIR": str(layout.root),
        "CLAUDE_MEM_WORKER_PORT": "0",
    }
    client.start(layout, environment)
    hooks = 0
    try:
        for path in chosen:
            for event, payload in payloads(path):
                environment["CLAUDE_PROJECT_DIR"] = str(payload["cwd"])
                subprocess.run([launcher, "claude", event], input=json.dumps(payload).encode(),
                               stdout=subprocess.DEVNULL, env=environment, check=True)  # fmt: skip
                hooks += 1
        _settle(layout)
    finally:
        client.stop(layout)
    same = 0
    with StoreReader.open_existing(layout.database) as live:
        for path in chosen:
            same += _memory(live, path.stem) == _memory(store, path.stem)
    print(f"\n{len(chosen)} sessions played through {hooks} hooks: "
          f"the memory of {same} equals the import's")  # fmt: skip


def _settle(layout: Layout) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with StoreReader.open_existing(layout.database) as store:
            waiting = store.queue_state()
        if not any(layout.spool.glob("*.hook")) and not waiting["pending"] + waiting["processing"]:
            return
        time.sleep(0.2)


def _memory(store: StoreReader, session_id: str) -> list[object]:
    session = store.session_by_content_id(session_id)
    if session is None:
        return []
    found = store.memories_of_session(int(str(session["id"])))
    told: list[object] = [session["title"], session["subtitle"]]
    for noun in ("summaries", "observations"):
        told += [
            [fact_texts(record, name) or record[name] for name in FIELDS[noun]]
            for record in _records(found[noun])
        ]
    return told


def _records(value: Json) -> list[Record]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


# What is found


Way = Callable[[str], list[MemoryId]]


def _ways(store: Store, semantic_index: SemanticIndex) -> dict[str, Way]:
    now = datetime.now(UTC)

    def fused(text: str, asked: SemanticIndex | None = semantic_index) -> list[MemoryId]:
        rows = search(store, Query(text), now, asked).rows
        return [row.id for row in rows if row.id.kind in KINDS]

    def meant(text: str) -> list[MemoryId]:
        similarities = store.read(lambda c: semantic_index.similarities(c, text))
        hits = [MemoryId.of_document(document) for document, _ in similarities.best(100)]
        return [hit for hit in hits if hit[0] in KINDS][:40]

    return {"words": lambda text: fused(text, None), "both": fused, "meaning": meant}


def _ask(store: Store, files: list[Path], questions: list[Question]) -> None:
    semantic_index = embed_all(store)
    print(f"\nread by {semantic_index.id}")
    ways = _ways(store, semantic_index)
    ranks: dict[str, list[int | None]] = {way: [] for way in ways}
    within = 0
    costs: list[int] = []
    for question in questions:
        for way, asked in ways.items():
            texts = [_text(store, *hit) for hit in asked(question.text)]
            ranks[way].append(_rank(texts, question))
            if way == "both":
                within += _within_few_tokens(texts, question)
                costs += _cost(texts, ranks[way][-1])
        shown = ", ".join(f"{way} {ranks[way][-1] or '-':>2}" for way in ways)
        print(f"  {shown}: {question.text[:70]}")
    if costs:
        print(f"tokens read to hold an answer (rows and the hit's text), median: "
              f"{statistics.median(costs):.0f}")  # fmt: skip
    said, size = _said(files)
    memory = _memory_tokens(store)
    print(f"memory {memory:,} tokens, text {said:,}, files {size:,} bytes: "
          f"{100 * 4 * memory / size:.2f}% of the files")  # fmt: skip
    for way, found in ranks.items():
        print(f"{way:>8}: {_hits(found)}")
    pairs = zip(ranks["words"], ranks["both"], strict=True)
    lost = sum(bool(a and a <= 5) and not (b and b <= 5) for a, b in pairs)
    print(f"lost by meaning from the first 5: {lost}")
    share = 100 * memory / max(1, said)
    print(f"{_hits(ranks['both'])}, within 1000 tokens {within}, memory {share:.1f}% of text")


def _hits(ranks: list[int | None]) -> str:
    hits = [sum(rank is not None and rank <= top for rank in ranks) for top in (1, 5, 10)]
    return f"hits @1 {hits[0]} @5 {hits[1]} @10 {hits[2]} of {len(ranks)}"


Told = list[tuple[str, str]]  # texts of memories, and their sessions


def _rank(texts: Told, question: Question) -> int | None:
    return next(
        (rank for rank, (text, session) in enumerate(texts, 1)
         if session == question.session_id and _holds(text, question.terms)), None,
    )  # fmt: skip


def _within_few_tokens(texts: Told, question: Question) -> bool:
    own = "\n".join(text for text, session in texts if session == question.session_id)
    return _holds(own.encode()[: 4 * FEW_TOKENS].decode("utf-8", "ignore"), question.terms)


def _cost(texts: Told, rank: int | None) -> list[int]:
    if rank is None:
        return []
    shown = "\n".join(text.partition("\n")[0][:120] for text, _ in texts)
    return [estimate_tokens(shown) + estimate_tokens(texts[rank - 1][0])]


def _holds(text: str, terms: Iterable[str]) -> bool:
    return all(term in text for term in terms)


def _text(store: StoreReader, kind: str, memory_id: int) -> tuple[str, str]:
    """The full text of a memory, and its session."""
    (record,) = store.get_many(KINDS[kind], [memory_id])
    return _full(KINDS[kind], record), str(record["content_session_id"])


def _full(noun: str, record: Record) -> str:
    parts: list[str] = []
    for name in FIELDS[noun]:
        value = fact_texts(record, name) or record[name]
        parts += map(str, value) if isinstance(value, list) else [str(value)] if value else []
    return "\n".join(parts)


def _memory_tokens(store: Store) -> int:
    total = 0
    for noun in FIELDS:
        last: int | None = None
        while True:
            records, more = _page(store, noun, last)
            total += sum(estimate_tokens(_full(noun, record)) for record in records)
            if not more:
                break
            last = int(str(records[-1]["id"]))
    return total


def _page(store: Store, noun: str, before: int | None) -> tuple[list[Record], bool]:
    return store.page(noun, Page(limit=100, before=before))


def _said(files: list[Path]) -> tuple[int, int]:
    """Tokens of the user's and the agent's text, and bytes of the files."""
    characters = size = 0
    for path in files:
        size += path.stat().st_size
        with path.open("rb") as file:
            for line in file:
                try:
                    characters += _characters(json.loads(line))
                except (ValueError, RecursionError):
                    continue
    return characters // 4, size


def _characters(line: Json) -> int:
    if not isinstance(line, dict) or line.get("type") not in ("user", "assistant"):
        return 0
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return len(content)
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return sum(len(text) for text in texts if isinstance(text, str))


# For a person's eye


def _show(store: Store, files: list[Path], seed: int, place: Path) -> None:
    chance = random.Random(seed)
    count = store.counts()["observations"]
    ids = sorted(chance.sample(range(1, count + 1), min(OBSERVATIONS, count)))
    for record in store.get_many("observations", ids):
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
        upto = chance.randint(max(1, len(files) // 10), len(files))
        with _imported(place / f"context-{number}", by_time, upto) as partial:
            busiest = max(partial.projects(), key=lambda one: int(str(one["sessions"])))
            project = partial.project_by_key(str(busiest["key"]))
            assert project is not None
            print(f"\n== context {number + 1}, after {upto} sessions")
            print(build_context(partial, project, 1800))


if __name__ == "__main__":
    sys.exit(main())
