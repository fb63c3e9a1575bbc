"""General English: dictionaries, books and speeches."""

import gzip
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from prose import TextPair, cut, plain, sentences, title


def wordnet(data: str) -> Iterator[TextPair]:
    """Lemmas with their gloss, the gloss with its examples."""
    for line in data.split("\n"):
        if line.startswith("  ") or "|" not in line:
            continue
        fields, gloss = line.split(" | ", 1)
        parts = fields.split(" ")
        lemmas = [parts[4 + 2 * n].replace("_", " ") for n in range(int(parts[3], 16))]
        meaning, *examples = [part.strip(' "') for part in re.split(r";\s*(?=\")", gloss)]
        definition = title(meaning)
        if not definition:
            continue
        yield title(", ".join(lemmas)), definition
        for example in examples[:2]:
            if title(example):
                yield definition, title(example)


def dictd(folder: Path) -> Iterator[TextPair]:
    """Headword with definition; the definition's first sentence with the rest."""
    for index in sorted(folder.glob("*.index")):
        with gzip.open(index.with_suffix(".dict.dz"), "rb") as archive:
            text = archive.read()
        for line in index.read_text("utf-8", "replace").split("\n"):
            fields = line.split("\t")
            if len(fields) != 3 or fields[0].startswith("00"):
                continue
            start, size = (_number(field) for field in fields[1:])
            entry = text[start : start + size].decode("utf-8", "replace")
            meaning = cut(re.sub(r"[{}]|\[[^\]]*\]|\\[^\\]*\\", "", entry.split("\n", 1)[-1]))
            if meaning:
                yield title(fields[0]), meaning


_DIGITS = {
    character: number
    for number, character in enumerate(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    )
}


def _number(field: str) -> int:
    value = 0
    for character in field:
        value = value * 64 + _DIGITS[character]
    return value


def story(texts: list[str]) -> Iterator[TextPair]:
    """Each part with the next one."""
    parts = [cut(plain(part)) for part in texts]
    for part, following in pairwise([*parts, ""]):
        if part and following:
            yield part, following
        elif part:
            yield part, None


def speech(text: str) -> Iterator[TextPair]:
    """Prose: every three sentences with the next three."""
    if text.lstrip().startswith(("{", "[")):
        text = _strings(json.loads(text))
    for block in re.split(r"\n\s*\n", text):
        parts = sentences(block)
        groups = [" ".join(parts[at : at + 3]) for at in range(0, len(parts), 3)]
        yield from story(groups)


def _strings(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n\n".join(_strings(item) for item in value.values())
    return "\n\n".join(_strings(item) for item in value) if isinstance(value, list) else ""
