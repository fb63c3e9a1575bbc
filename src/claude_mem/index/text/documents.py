"""Documents: one numbering over observations, summaries, prompts and whole turns, and their text.

A turn is the document that searches rank: the record of what was said in it, and its memories. It
is cut into passages, which a search compares with a question. Neighbouring paragraphs are packed
together up to a size at which a vector is still about one thing. Short notes (descriptions of
commands, tasks) are packed with each other.
"""

import json
import re
import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from claude_mem.index.text.words import pieces, plain_text, searchable, stem
from claude_mem.store.memories import commands_from, faults_from
from claude_mem.store.stored_json import parse_stored
from claude_mem.store.turn_records import load_records
from claude_mem.text import one_line
from claude_mem.types import RecordPart

KINDS = ("observation", "summary", "prompt")  # of memories
TURN = "turn"
_ALL_KINDS = (*KINDS, TURN)
_STEP = 4  # document = memory id * 4 + kind: both can be computed from it
DOCUMENT_BITS = 40

# The place of a document in its session: by turn, then prompt, observations, summary.
PLACES = 1 << 20
MAX_TITLE, MAX_HEAD, MIN_REQUEST = 200, 2_000, 12

_TELLS_TIME = re.compile(
    r"(?i)\b(?:yesterday|today|tonight|tomorrow|ago|last|next|recently|since|soon|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|weekend|"
    r"jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?|summer|winter|spring|autumn|"
    r"(?:day|week|month|year|night|morning)s?|(?:19|20)\d\d)\b"
)

PASSAGE_SIZE = 450  # characters of a passage, about
MOST_PASSAGES = 1 << 10  # of a turn: its number takes ten bits of a passage's id
NOTES = ("description", "task")
MEMORY = "memory"  # the kind of passages that are not of the record
_LIMITS = {"prompt": 6_000, "report": 12_000, "compaction": 12_000, "statement": 20_000}
_DEFAULT_LIMIT = 20_000

_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")
# Space after the end of a sentence, or the end of a line. It begins with what it matches: a pattern
# that begins with a condition is tried at every character.
_SENTENCES = re.compile(r"[ \t\n](?:(?<=\n)|(?<=[.!?;:][ \t])[ \t]*)")


# Where the text of a passage is: the notes of the record, a part of it (less than 0), or a memory
# (its document, doubled; one more for the names of its files and concepts).
NOTES_SOURCE = 0


@dataclass(frozen=True, slots=True)
class Passage:
    kind: str  # of the part of the record, or MEMORY
    text: str
    source: int = field(default=NOTES_SOURCE, compare=False)
    place: int = field(default=0, compare=False)  # among the passages of its source


def cut_parts(parts: Sequence[RecordPart]) -> list[Passage]:
    """The passages of a record, each text once."""
    passages: dict[str, Passage] = {}
    for number, part in enumerate(parts):
        if part.kind not in NOTES:
            source = part_source(number)
            for passage in cut(part.kind, source_text(parts, source), source):
                passages.setdefault(passage.text, passage)
    for passage in cut("description", source_text(parts, NOTES_SOURCE), NOTES_SOURCE):
        passages.setdefault(passage.text, passage)
    return list(passages.values())


def part_source(number: int) -> int:
    return -1 - number


def source_text(parts: Sequence[RecordPart], source: int) -> str:
    """Returns the text of a part of a record, or of its notes."""
    if source == NOTES_SOURCE:
        return "\n".join(dict.fromkeys(part.text for part in parts if part.kind in NOTES))
    if -1 - source >= len(parts):
        return ""  # the record is damaged
    part = parts[-1 - source]
    return _shorten(part.text, _LIMITS.get(part.kind, _DEFAULT_LIMIT))


def cut(kind: str, text: str, source: int) -> Iterator[Passage]:
    for place, packed in enumerate(pack(text)):
        yield Passage(kind, packed, source, place)


def pack(text: str) -> Iterator[str]:
    """Paragraphs, as many together as fit; a long one is cut at the ends of its sentences."""
    packed = ""
    for piece in _pieces(text):
        if packed and len(packed) + len(piece) > PASSAGE_SIZE:
            yield packed
            packed = ""
        packed = f"{packed}\n{piece}" if packed else piece
    if packed:
        yield packed


def _pieces(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPHS.split(text):
        pieces = [paragraph] if len(paragraph) <= PASSAGE_SIZE else _SENTENCES.split(paragraph)
        for piece in pieces:
            stripped = piece.strip()
            for start in (
                range(0, len(stripped), PASSAGE_SIZE) if len(stripped) > 2 * PASSAGE_SIZE else (0,)
            ):
                part = (
                    stripped[start : start + PASSAGE_SIZE]
                    if len(stripped) > 2 * PASSAGE_SIZE
                    else stripped
                )
                if part:
                    yield part


def _shorten(text: str, limit: int) -> str:
    """A pasted log says what it is at its beginning and how it ended at its end."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}\n\n{text[-(limit // 2) :]}"


@dataclass(frozen=True, slots=True)
class Text:
    """The parts of a memory."""

    title: str = ""
    subtitle: str = ""
    body: str = ""
    facts: str = ""
    files: str = ""
    concepts: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    id: int
    project_id: int
    session_id: int
    place: int
    created_at_epoch: int
    type: str
    title: str
    files: tuple[str, ...]
    concepts: tuple[str, ...]
    text: Text
    passages: tuple[Passage, ...] = ()  # of a turn
    shown: int = 0  # of a turn: the document of the memory that stands for it

    @property
    def size(self) -> int:
        """The size in bytes, from which the tokens to read it are estimated."""
        return sum(len(part.encode("utf-8", "replace")) for part in self._parts)

    @property
    def words(self) -> int:
        return sum(len(part.split()) for part in self._parts)

    @property
    def title_stems(self) -> str:
        """Each once; ranking compares them with the words of the query."""
        return " ".join(
            dict.fromkeys(stem(word.lower()) for word in pieces(plain_text(self.title)))
        )

    @property
    def _parts(self) -> tuple[str, ...]:
        text = self.text
        return text.title, text.subtitle, text.body, text.facts, text.files, text.concepts

    @property
    def searchable_text(self) -> str:
        return "\n".join(searchable(part) for part in self._parts)


def names_time(text: str) -> bool:
    return _TELLS_TIME.search(text) is not None


def text_id(project_id: int, document: int) -> int:
    """The rowid of its text: by project, so that one is searched without reading the others."""
    return project_id << DOCUMENT_BITS | document


def document_id(kind: str, memory_id: int) -> int:
    return memory_id * _STEP + _ALL_KINDS.index(kind)


def kind_of(document: int) -> str:
    return _ALL_KINDS[document % _STEP]


def memory_id_of(document: int) -> int:
    return document // _STEP


def load(connection: sqlite3.Connection, documents: list[int]) -> list[Document]:
    """Loads the documents that exist and have any text."""
    loaded: list[Document] = []
    for kind in KINDS:
        ids = [memory_id_of(document) for document in documents if kind_of(document) == kind]
        if ids:
            rows = connection.execute(_SELECTS[kind], (json.dumps(ids),))
            loaded += [_READERS[kind](row) for row in rows]
    turns = [memory_id_of(document) for document in documents if kind_of(document) == TURN]
    if turns:
        loaded += _turns(connection, turns)
    return [document for document in loaded if document.words or document.passages]


_FROM = " JOIN sdk_sessions s ON s.id = t.session_id WHERE m.id IN (SELECT value FROM json_each(?))"
_SELECTS = {
    "observation": "SELECT m.*, s.id AS session_id FROM observations m"
    " JOIN user_prompts t ON t.id = m.turn_id" + _FROM,
    "summary": "SELECT m.*, s.id AS session_id FROM session_summaries m"
    " JOIN user_prompts t ON t.id = m.turn_id" + _FROM,
    "prompt": "SELECT * FROM user_prompts WHERE private = 0 AND prompt_text <> ''"
    " AND id IN (SELECT value FROM json_each(?))",
}


Row = sqlite3.Row | Mapping[str, Any]


def _observation(row: Row) -> Document:
    files = _list(row["files_modified"]) + _list(row["files_read"])
    concepts = _list(row["concepts"])
    text = _observation_text(row)
    title = text.title or text.subtitle or text.body
    place = 1 + min(row["ordinal"], PLACES - 3)
    return _document("observation", row, row["type"], title, place, text, files, concepts)


def _observation_text(row: Row, with_names: bool = True) -> Text:
    return Text(
        title=row["title"] or "",
        subtitle=row["subtitle"] or "",
        body=row["narrative"] or "",
        facts="\n".join(_list(row["facts"])),
        files=_lines(row["files_modified"], row["files_read"]) if with_names else "",
        concepts=_lines(row["concepts"]) if with_names else "",
    )


def _summary(row: Row) -> Document:
    files = _list(row["files_edited"]) + _list(row["files_read"])
    text = _summary_text(row)
    title = text.title or text.body
    if len(title) < MIN_REQUEST and row["completed"]:
        title = f"{title}: {row['completed']}"  # "commit" alone identifies no turn
    return _document("summary", row, "summary", title, PLACES - 1, text, files, [])


def _summary_text(row: Row, with_names: bool = True) -> Text:
    prose = ("investigated", "learned", "completed", "next_steps", "notes")
    lines = [row[name] for name in prose if row[name]]
    lines += [run.text for run in commands_from(parse_stored(row["commands"], []))]
    lines += [fault.text for fault in faults_from(parse_stored(row["faults"], []))]
    files = _lines(row["files_edited"], row["files_read"]) if with_names else ""
    return Text(title=row["request"] or "", body="\n".join(lines), files=files)


def _prompt(row: Row) -> Document:
    text = Text(body=row["prompt_text"])
    return _document("prompt", row, "prompt", text.body, 0, text, [], [])


_READERS = {"observation": _observation, "summary": _summary, "prompt": _prompt}
_TEXT_READERS = {
    "observation": (
        "id, title, subtitle, narrative, facts, files_modified, files_read, concepts"
        " FROM observations",
        _observation_text,
    ),
    "summary": (
        "id, request, investigated, learned, completed, next_steps, notes, commands, faults,"
        " files_edited, files_read FROM session_summaries",
        _summary_text,
    ),
}


def load_texts(
    connection: sqlite3.Connection, documents: Iterable[int], named: Container[int]
) -> dict[int, Text]:
    """Loads the texts of observations and summaries, by document; files and concepts only of those
    in `named`."""
    texts: dict[int, Text] = {}
    by_kind: dict[str, list[int]] = {}
    for document in documents:
        by_kind.setdefault(kind_of(document), []).append(memory_id_of(document))
    for kind, ids in by_kind.items():
        columns, read = _TEXT_READERS[kind]
        rows = connection.execute(
            f"SELECT {columns} WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(ids),),
        )
        for row in rows:
            document = document_id(kind, row["id"])
            texts[document] = read(row, document in named)
    return texts


def _turns(connection: sqlite3.Connection, ids: list[int]) -> list[Document]:
    rows = connection.execute(
        "SELECT * FROM user_prompts WHERE private = 0 AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids),),
    ).fetchall()
    records = load_records(connection, ids)
    memories: dict[int, list[Document]] = {}
    for kind, table in (("observation", "observations"), ("summary", "session_summaries")):
        found = connection.execute(
            f"SELECT m.*, t.session_id FROM {table} m JOIN user_prompts t ON t.id = m.turn_id"
            " WHERE m.turn_id IN (SELECT value FROM json_each(?)) ORDER BY m.turn_id, m.id",
            (json.dumps(ids),),
        )
        for row in found:
            add_memory(memories.setdefault(row["turn_id"], []), kind, row)
    return [_turn(row, records.get(row["id"], ()), memories.get(row["id"], [])) for row in rows]


def add_memory(of_turn: list[Document], kind: str, row: Row) -> None:
    """Adds a row to the memories of a turn whose text is searched: observations, then summaries."""
    if not (row["wrong"] and of_turn):  # the first one stands for the turn
        of_turn.append(_READERS[kind](row))


def turn_document(
    turn: Row,
    record: tuple[RecordPart, ...],
    observations: Iterable[Row],
    summaries: Iterable[Row],
) -> Document:
    """Makes the document of a turn of rows that are not in a database here; memories have a
    `session_id` too."""
    memories = [*map(_observation, observations), *map(_summary, summaries)]
    return _turn(turn, record, memories)


def _turn(row: Row, record: tuple[RecordPart, ...], memories: list[Document]) -> Document:
    named = [memory for memory in memories if memory.words]
    representative = named[0] if named else _prompt(row) if row["prompt_text"] else None
    return Document(
        id=document_id(TURN, row["id"]),
        project_id=row["project_id"],
        session_id=row["session_id"],
        place=row["prompt_number"],
        created_at_epoch=row["created_at_epoch"],
        type=representative.type if representative else "",
        title=representative.title if representative else "",
        files=(),
        concepts=(),
        text=representative.text if representative else Text(),
        passages=turn_passages(record or prompt_record(row["prompt_text"]), named),
        shown=representative.id if representative else 0,
    )


def prompt_record(prompt: str | None) -> tuple[RecordPart, ...]:
    """Makes the record of a turn without one: its prompt."""
    return (RecordPart("prompt", "user", prompt),) if prompt else ()


def turn_passages(
    record: tuple[RecordPart, ...], memories: Iterable[Document]
) -> tuple[Passage, ...]:
    passages = {passage.text: passage for passage in cut_parts(record)}
    for memory in memories:
        if memory.words:
            # As a memory: the kind of the last passage of a text counts.
            passages |= {passage.text: passage for passage in _memory_passages(memory)}
    return tuple(passages.values())[:MOST_PASSAGES]


def _memory_passages(memory: Document) -> Iterator[Passage]:
    body, names = memory_texts(memory.text)
    yield from cut(MEMORY, body, memory_source(memory.id))
    yield from cut(MEMORY, names, memory_source(memory.id) + 1)


def memory_source(document: int) -> int:
    return 2 * document


def memory_texts(text: Text) -> tuple[str, str]:
    """The texts that the passages of a memory are cut from: what it says, and names."""
    body = "\n".join(filter(None, (text.title, text.subtitle, text.body, text.facts)))
    return body, "\n".join(filter(None, (text.files, text.concepts)))


def _document(
    kind: str,
    row: Row,
    type_: str,
    title: str,
    place: int,
    text: Text,
    files: list[str],
    concepts: list[str],
) -> Document:
    return Document(
        id=document_id(kind, row["id"]),
        project_id=row["project_id"],
        session_id=row["session_id"],
        place=row["prompt_number"] * PLACES + place,
        created_at_epoch=row["created_at_epoch"],
        type=type_,
        title=_first_line(title),
        files=tuple(files),
        concepts=tuple(concepts),
        text=text,
    )


def _first_line(text: str) -> str:
    """Returns the first line, with the next one where it only introduces it: "Implement the
    following plan:"."""
    lines = [line for raw in text[:MAX_HEAD].splitlines() if (line := one_line(raw))]
    if len(lines) > 1 and lines[0].endswith(":"):
        return f"{lines[0]} {lines[1]}"[:MAX_TITLE]
    return lines[0][:MAX_TITLE] if lines else ""


def _lines(*lists: str) -> str:
    return "\n".join(item for text in lists for item in _list(text))


def _list(text: str) -> list[str]:
    return [str(value) for value in parse_stored(text, [])]
