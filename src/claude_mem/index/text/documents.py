"""Memories as documents: one numbering over observations, summaries and prompts, and their text."""

import json
import re
import sqlite3
from dataclasses import dataclass

from claude_mem.index.text.words import pieces, plain_text, searchable, stem
from claude_mem.store.summary_facts import commands_from, faults_from

KINDS = ("observation", "summary", "prompt")
_STEP = 4  # document = memory id * 4 + kind: both can be computed from it
DOCUMENT_BITS = 40

# The place of a document in its session: by turn, then prompt, observations, summary.
_PLACES = 1 << 20
MAX_TITLE, MAX_HEAD, MIN_REQUEST = 200, 2_000, 12

_TELLS_TIME = re.compile(
    r"(?i)\b(?:yesterday|today|tonight|tomorrow|ago|last|next|recently|since|soon|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|weekend|"
    r"jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?|summer|winter|spring|autumn|"
    r"(?:day|week|month|year|night|morning)s?|(?:19|20)\d\d)\b"
)


@dataclass(frozen=True, slots=True)
class Text:
    """The columns of the full-text table."""

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

    @property
    def size(self) -> int:
        """In bytes, from which the tokens to read it are estimated."""
        return sum(len(part.encode("utf-8", "replace")) for part in self._parts)

    @property
    def words(self) -> int:
        return sum(len(part.split()) for part in self._parts)

    @property
    def tells_time(self) -> bool:
        return (
            _TELLS_TIME.search(f"{self.text.title} {self.text.body} {self.text.facts}") is not None
        )

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

    def indexed(self) -> tuple[str, ...]:
        return tuple(searchable(part) for part in self._parts)


def text_id(project_id: int, document: int) -> int:
    """The rowid of its text: by project, so that one is searched without reading the others."""
    return project_id << DOCUMENT_BITS | document


def document_id(kind: str, memory_id: int) -> int:
    return memory_id * _STEP + KINDS.index(kind)


def kind_of(document: int) -> str:
    return KINDS[document % _STEP]


def memory_id_of(document: int) -> int:
    return document // _STEP


def load(connection: sqlite3.Connection, documents: list[int]) -> list[Document]:
    """Those that exist and have any text."""
    loaded: list[Document] = []
    for kind in KINDS:
        ids = [memory_id_of(document) for document in documents if kind_of(document) == kind]
        if ids:
            rows = connection.execute(_SELECTS[kind], (json.dumps(ids),))
            loaded += [_READERS[kind](row) for row in rows]
    return [document for document in loaded if document.words]


_FROM = " JOIN sdk_sessions s ON s.id = t.session_id WHERE m.id IN (SELECT value FROM json_each(?))"
_SELECTS = {
    "observation": "SELECT m.*, s.id AS session_id FROM observations m"
    " JOIN user_prompts t ON t.id = m.turn_id" + _FROM,
    "summary": "SELECT m.*, s.id AS session_id FROM session_summaries m"
    " JOIN user_prompts t ON t.id = m.turn_id" + _FROM,
    "prompt": "SELECT * FROM user_prompts WHERE private = 0 AND prompt_text IS NOT NULL"
    " AND id IN (SELECT value FROM json_each(?))",
}


def _observation(row: sqlite3.Row) -> Document:
    files = _list(row["files_modified"]) + _list(row["files_read"])
    concepts = _list(row["concepts"])
    text = Text(
        title=row["title"] or "",
        subtitle=row["subtitle"] or "",
        body=row["narrative"] or "",
        facts="\n".join(_list(row["facts"])),
        files="\n".join(files),
        concepts="\n".join(concepts),
    )
    title = text.title or text.subtitle or text.body
    place = 1 + min(row["ordinal"], _PLACES - 3)
    return _document("observation", row, row["type"], title, place, text, files, concepts)


def _summary(row: sqlite3.Row) -> Document:
    files = _list(row["files_edited"]) + _list(row["files_read"])
    prose = ("investigated", "learned", "completed", "next_steps", "notes")
    lines = [row[name] for name in prose if row[name]]
    lines += [run.text for run in commands_from(json.loads(row["commands"]))]
    lines += [fault.text for fault in faults_from(json.loads(row["faults"]))]
    body = "\n".join(lines)
    text = Text(title=row["request"] or "", body=body, files="\n".join(files))
    title = text.title or body
    if len(title) < MIN_REQUEST and row["completed"]:
        title = f"{title}: {row['completed']}"  # "commit" alone identifies no turn
    return _document("summary", row, "summary", title, _PLACES - 1, text, files, [])


def _prompt(row: sqlite3.Row) -> Document:
    text = Text(body=row["prompt_text"])
    return _document("prompt", row, "prompt", text.body, 0, text, [], [])


_READERS = {"observation": _observation, "summary": _summary, "prompt": _prompt}


def _document(
    kind: str,
    row: sqlite3.Row,
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
        place=row["prompt_number"] * _PLACES + place,
        created_at_epoch=row["created_at_epoch"],
        type=type_,
        title=_first_line(title),
        files=tuple(files),
        concepts=tuple(concepts),
        text=text,
    )


def _first_line(text: str) -> str:
    """With the next one where it only introduces it: "Implement the following plan:"."""
    lines = [line for raw in text[:MAX_HEAD].splitlines() if (line := " ".join(raw.split()))]
    if len(lines) > 1 and lines[0].endswith(":"):
        return f"{lines[0]} {lines[1]}"[:MAX_TITLE]
    return lines[0][:MAX_TITLE] if lines else ""


def _list(text: str) -> list[str]:
    return [str(value) for value in json.loads(text)]
