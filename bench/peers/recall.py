"""How often the turn that answers a question is found: ours, plain FTS5, and the npm package.

A directory has NAME.tar.xz with transcripts as the client writes them, and NAME.questions.jsonl
(`bench/questions.py` says what they are). Ours imports and distils the sessions; the npm package
has the same memories in its database. Plain FTS5 has every message of the user and the agent as a
row (porter stemmer, any of the words, stop words left out, bm25).
"""

import re
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.peers.install import Installation
from bench.peers.peer import Peer, peer
from bench.peers.product import Session, search_path
from bench.peers.rows import copy_to_peer
from bench.peers.samples import PEER, SHIPPED, Sample
from bench.questions import Question, Turn, load_turns, read_questions
from bench.semantic import embed_all
from bench.transcripts import import_all, parse_lines
from claude_mem.cli.imports import find_transcripts
from claude_mem.index.text.filters import any_of
from claude_mem.index.vectors.lazy_index import SemanticIndex
from claude_mem.recall.answers import turn_of
from claude_mem.recall.memory_ids import MemoryId, parse_memory_id
from claude_mem.recall.parsed_query import parse_query
from claude_mem.recall.search import Query, search
from claude_mem.store import Store, StoreReader

TOP = 10
PLAIN, PEER_WORDS = "FTS5 over raw messages", "npm, a search for each word"
_RESULT = re.compile(r"#([SP]?\d+)\b")

Finds = Callable[[Question], bool]  # whether the answer is among the results


def measure(installation: Installation, directory: Path) -> list[Sample]:
    samples: list[Sample] = []
    for path in sorted(directory.glob("*.questions.jsonl")):
        name = path.name.removesuffix(".questions.jsonl")
        with tempfile.TemporaryDirectory(prefix="claude-mem-bench-") as temporary:
            sessions = Path(temporary, "sessions")
            with tarfile.open(directory / f"{name}.tar.xz") as archive:
                archive.extractall(sessions, filter="data")
            samples += _of_project(installation, name, read_questions(path), sessions)
    return samples


def _of_project(
    installation: Installation, name: str, questions: list[Question], sessions: Path
) -> list[Sample]:
    files = find_transcripts([sessions])
    with import_all(sessions.parent / "memory", files) as store, peer(installation) as them:
        turns = store.read(load_turns)
        them.start()  # creates its database
        them.stop()
        copy_to_peer(sessions.parent / "memory" / "memory.db", them.database)
        them.start()
        ways: dict[str, Finds] = {
            SHIPPED: _ours(store, embed_all(store), turns),
            PLAIN: _raw_messages(files),
            PEER: _peer(them, store, turns, lambda text: [text]),
            PEER_WORDS: _peer(them, store, turns, _words),
        }
        return [
            Sample(f"{name}: answered, of {len(questions)}", way, "questions",
                   (float(sum(map(finds, questions))),))
            for way, finds in ways.items()
        ]  # fmt: skip


def _ours(store: Store, index: SemanticIndex, turns: dict[int, Turn]) -> Finds:
    def finds(question: Question) -> bool:
        rows = search(store, Query(question.text, limit=TOP), datetime.now(UTC), index).rows
        return _any_answers(store, (row.id for row in rows), turns, question)

    return finds


def _peer(
    them: Peer, store: Store, turns: dict[int, Turn], queries: Callable[[str], list[str]]
) -> Finds:
    """Any of its results, of which it returns up to ten of each of three kinds."""
    session = Session(them.address)

    def finds(question: Question) -> bool:
        paths = map(search_path, queries(question.text))
        ids = [
            id_ for path in paths for id_ in _RESULT.findall(session.request("GET", path).decode())
        ]
        return _any_answers(store, filter(None, map(parse_memory_id, ids)), turns, question)

    return finds


def _any_answers(
    store: StoreReader, ids: Iterable[MemoryId], turns: dict[int, Turn], question: Question
) -> bool:
    answers = store.read(lambda connection: [turn_of(connection, id_) for id_ in ids])
    return any(turn is not None and turns[turn].answers(question) for turn in answers)


def _words(text: str) -> list[str]:
    """It has no OR: an agent that gets nothing for a question tries its words."""
    return re.findall(r"\w{4,}", text)


def _raw_messages(files: list[Path]) -> Finds:
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE messages USING fts5(text, session UNINDEXED, tokenize = porter)"
    )
    connection.executemany(
        "INSERT INTO messages VALUES (?, ?)",
        ((text, path.stem) for path in files for text in _texts(path)),
    )

    def finds(question: Question) -> bool:
        words = parse_query(question.text, datetime.now(UTC)).words
        expression = any_of(form for word in words for form in word.forms)
        rows = connection.execute(
            "SELECT session, text FROM messages WHERE messages MATCH ? ORDER BY rank LIMIT ?",
            (expression, TOP),
        )
        return any(Turn(session, text).answers(question) for session, text in rows)

    return finds


def _texts(path: Path) -> Iterator[str]:
    """What the user and the agent wrote."""
    for line in parse_lines(path):
        message = line.get("message") if isinstance(line, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, str):
            yield content
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and isinstance(block.get("text"), str):
                yield str(block["text"])
