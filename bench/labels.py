"""Compares the memories of imported sessions with what a reader noted about their turns.

    python -m bench.labels --sessions DIR --labels FILE [--weights FILE] [--titles]

DIR has transcripts as the client writes them; FILE a JSON object per line with `session_id`,
`prompt_id`, `worth` (0 to 3), `title` and `keep`, the sentences of the turn worth keeping. The
sessions are imported into a temporary store. Measured are

- noise: turns of worth 0 with an observation; missed: turns of worth 2 or 3 without one;
- title: F1 of the words of the first observation's title and of the reader's, over worth 2 and 3,
  where no title counts 0; of a title only the first twelve words count;
- kept: the share of `keep` sentences of whose words the memories of their turn have 80%;
- memory: the size of all memories as a share of what was said.

A word has more than two letters, in any case. `--weights` measures other weights than those of the
package, for example trained without these sessions.
"""

import argparse
import json
import re
import sqlite3
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.questions import memory_bytes, memory_texts
from bench.transcripts import import_options, text_bytes
from claude_mem.cli.imports import find_transcripts, processes
from claude_mem.intake.transcripts.importer import import_transcripts
from claude_mem.observer.local import learned_trees
from claude_mem.store import Store

TITLE_WORDS = 12
COVERED = 0.8
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class Label:
    session_id: str
    prompt_id: str
    worth: int
    title: str
    keep: tuple[str, ...]

    @property
    def is_worth_remembering(self) -> bool:
        return self.worth >= 2


@dataclass(frozen=True, slots=True)
class Memory:
    """What the store has of a turn."""

    title: str | None = None  # of the first observation; None without one
    text: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    part: float
    of: int

    @property
    def value(self) -> float:
        return self.part / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class Figures:
    noise: Share
    missed: Share
    title: Share
    kept: Share
    memory: Share

    def __str__(self) -> str:
        return (
            f"noise {self.noise.part:.0f} of {self.noise.of},"
            f" missed {self.missed.part:.0f} of {self.missed.of},"
            f" title {_decimal(self.title.value)}, kept {_decimal(self.kept.value)},"
            f" memory {100 * self.memory.value:.0f}%"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--weights", type=Path, help="a table that training/observer.py wrote")
    parser.add_argument("--titles", action="store_true", help="print the titles of each turn")
    options = parser.parse_args()
    files = find_transcripts([options.sessions])
    if not files:
        print(f"there are no transcripts in {options.sessions}")
        return 1
    if options.weights:
        learned_trees.use(learned_trees.load(options.weights))
    labels = read_labels(options.labels)
    with tempfile.TemporaryDirectory(prefix="claude-mem-bench-") as temporary:
        root = Path(temporary)
        with Store.open(root / "memory.db", root / "backups") as store:
            import_transcripts(store, files, import_options(), processes=processes())
            memories = store.read(load_memories)
            memory = Share(store.read(memory_bytes), text_bytes(files))
    if options.titles:
        print_titles(labels, memories)
    print(compare(labels, memories, memory))
    return 0


def read_labels(path: Path) -> list[Label]:
    lines = path.read_text("utf-8").splitlines()
    values = [json.loads(line) for line in lines if line.strip()]
    return [
        Label(x["session_id"], x["prompt_id"], int(x["worth"]), x.get("title") or "",
              tuple(x.get("keep") or ()))
        for x in values
    ]  # fmt: skip


def load_memories(connection: sqlite3.Connection) -> dict[tuple[str, str], Memory]:
    """Loads memories by session and prompt; a turn that sessions share is stored once, so also by
    prompt."""
    titles: dict[int, str] = {}
    for turn_id, title in connection.execute(
        "SELECT turn_id, title FROM observations ORDER BY id DESC"
    ):
        titles[turn_id] = title or ""
    texts = memory_texts(connection)
    memories: dict[tuple[str, str], Memory] = {}
    rows = connection.execute(
        "SELECT t.id, t.prompt_id, s.content_session_id FROM user_prompts t"
        " JOIN sdk_sessions s ON s.id = t.session_id"
    )
    for turn_id, prompt_id, session_id in rows:
        memory = Memory(titles.get(turn_id), "\n".join(texts.get(turn_id, ())))
        memories[session_id, prompt_id] = memories["", prompt_id] = memory
    return memories


def memory_of(label: Label, memories: dict[tuple[str, str], Memory]) -> Memory:
    missing = memories.get(("", label.prompt_id), Memory())
    return memories.get((label.session_id, label.prompt_id), missing)


def compare(
    labels: Iterable[Label], memories: dict[tuple[str, str], Memory], memory: Share
) -> Figures:
    pairs = [(label, memory_of(label, memories)) for label in labels]
    worthless = [turn for label, turn in pairs if label.worth == 0]
    worthy = [(label, turn) for label, turn in pairs if label.is_worth_remembering]
    sentences = [(text, turn) for label, turn in pairs for text in label.keep]
    return Figures(
        noise=Share(sum(turn.title is not None for turn in worthless), len(worthless)),
        missed=Share(sum(turn.title is None for _, turn in worthy), len(worthy)),
        title=Share(sum(title_f1(turn.title, label.title) for label, turn in worthy), len(worthy)),
        kept=Share(sum(is_covered(text, turn.text) for text, turn in sentences), len(sentences)),
        memory=memory,
    )


def title_f1(title: str | None, readers: str) -> float:
    ours = words(" ".join((title or "").split()[:TITLE_WORDS]))
    theirs = words(readers)
    shared = len(ours & theirs)
    return 2 * shared / (len(ours) + len(theirs)) if shared else 0.0


def is_covered(sentence: str, text: str) -> bool:
    expected = words(sentence)
    return bool(expected) and len(expected & words(text)) >= COVERED * len(expected)


def words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def print_titles(labels: Iterable[Label], memories: dict[tuple[str, str], Memory]) -> None:
    for label in labels:
        title = memory_of(label, memories).title
        f1 = title_f1(title, label.title)
        print(f"{label.worth} {_decimal(f1)} {title or '-'}\n      {label.title or '-'}")


def _decimal(value: float) -> str:
    """Two decimals without the zero before the point."""
    return f"{value:.2f}".removeprefix("0")


if __name__ == "__main__":
    sys.exit(main())
