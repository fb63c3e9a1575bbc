"""How memories are named: 12 is an observation, S3 a summary, P4 a prompt, F5 a fact, T6 a turn
that another machine of a team recorded."""

from typing import NamedTuple

from claude_mem.index.text.documents import document_id, kind_of, memory_id_of

_PREFIXES = {"observation": "", "summary": "S", "prompt": "P", "fact": "F", "team": "T"}
_KINDS = {prefix: kind for kind, prefix in _PREFIXES.items()} | {"#": "observation"}
_MAX_DIGITS = 18  # within SQLite's integers


class MemoryId(NamedTuple):
    kind: str
    number: int

    def __str__(self) -> str:
        return f"{_PREFIXES[self.kind]}{self.number}"

    @property
    def document(self) -> int:
        return document_id(self.kind, self.number)

    @classmethod
    def of_document(cls, document: int) -> "MemoryId":
        return cls(kind_of(document), memory_id_of(document))


def parse_memory_id(text: str) -> MemoryId | None:
    """Reads 12, #12, S3 or P4; None for anything else, also for F5 (see `parse_any_id`)."""
    memory_id = parse_any_id(text)
    return memory_id if memory_id is None or memory_id.kind not in ("fact", "team") else None


def parse_any_id(text: str) -> MemoryId | None:
    """Reads an id of any kind, also F5, a fact, and T6, a turn of a team."""
    prefix = "" if text[:1].isdecimal() else text[:1].upper()
    digits = text[1:] if prefix else text
    if prefix not in _KINDS or not (digits.isascii() and digits.isdecimal()):
        return None
    return MemoryId(_KINDS[prefix], int(digits)) if len(digits) <= _MAX_DIGITS else None
