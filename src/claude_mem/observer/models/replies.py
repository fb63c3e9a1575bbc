"""Parses a model's reply: permissive, in linear time, and without losing any of its text.

Known tags are recognised wherever they occur. A field that is closed before its block ends is
taken as it is, including tags in it; an unclosed field ends at the next tag. Text of a block that
is in no field, or too long for its field, goes into the narrative or the notes. Unknown tags are
text. Text that fits into no memory (around the blocks, or beyond a limit) is listed in
`Parsed.unplaced`: then the whole reply must be stored next to the memories.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from claude_mem.text import shorten, without_controls
from claude_mem.types import OBSERVATION_TYPES, ObservationType, Summary

MAX_OBSERVATIONS, MAX_ITEMS = 12, 40
MAX_TITLE_CHARS, MAX_TEXT_CHARS, MAX_ITEM_CHARS, MAX_CONCEPT_CHARS = 200, 4_000, 500, 40
MAX_RAW_CHARS = 4 * MAX_TEXT_CHARS  # of a field, before entities are decoded

_LISTS = {"facts": "fact", "concepts": "concept", "files_read": "file", "files_modified": "file",
          "files_edited": "file", "rejected": "way", "rules": "rule"}  # fmt: skip
_ITEMS = {"fact": "facts", "concept": "concepts", "way": "rejected", "rule": "rules"}
_ARTIFACTS = {"branch": "branch", "commit": "commit", "pull_request": "pull request"}
_OBSERVATION_FIELDS = ("type", "status", "title", "subtitle", "narrative", "facts", "rejected",
                       "concepts", "files_read", "files_modified")  # fmt: skip
_SUMMARY_FIELDS = ("request", "investigated", "learned", "completed", "next_steps", "notes",
                   "files_edited", "rules", "rule", *_ARTIFACTS)  # fmt: skip
_ALIASES = {"text": "narrative", "description": "narrative", "next-steps": "next_steps",
            "nextsteps": "next_steps", "file_read": "files_read",
            "file_modified": "files_modified", "pr": "pull_request"}  # fmt: skip
_BLOCKS = ("observation", "summary")
_EMPTY = ("skip_summary", "no_observation", "no_observations")
_WRAPPERS = ("observations", "summaries", "response", "memory", "record")
TAG_NAMES = frozenset(
    (*_BLOCKS, *_EMPTY, *_WRAPPERS, *_OBSERVATION_FIELDS, *_SUMMARY_FIELDS, *_ITEMS, "file",
     *_ALIASES)
)  # fmt: skip
_NAMES = "|".join(sorted(map(re.escape, TAG_NAMES), key=len, reverse=True))
_TAG = re.compile(rf"<(/?)[ \t]{{0,4}}({_NAMES})(?![\w-])([^<>]{{0,400}})>", re.IGNORECASE)
_TYPE_ATTRIBUTE = re.compile(r"""type\s{0,4}=\s{0,4}["']?(\w{1,40})["']?""", re.IGNORECASE)
_REASON_ATTRIBUTE = re.compile(r"""reason\s{0,4}=\s{0,4}(["'])(.{0,400}?)\1""", re.IGNORECASE)
_ENTITY = re.compile(r"&(lt|gt|amp|quot|apos|nbsp|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_NAMED_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "nbsp": " "}
_CDATA = re.compile(r"<!\[CDATA\[|\]\]>")
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+")
_FENCE_LINE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)
_TRUNCATED_TAG = re.compile(r"</?[\w-]{0,20}\Z")


@dataclass(frozen=True, slots=True)
class PartialObservation:
    """An observation as the reply has it: any field may be missing, but not all."""

    type: ObservationType | None = None
    title: str | None = None
    subtitle: str | None = None
    narrative: str | None = None
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    status: str | None = None  # done, proposed, unverified, failed, or the reply's own word
    rejected: tuple[str, ...] = ()


@dataclass(slots=True)
class Parsed:
    observations: list[PartialObservation] = field(default_factory=list)
    summary: Summary | None = None
    no_observations: bool = False  # the reply says that nothing is worth one
    skip_summary: bool = False
    skip_reason: str = ""
    rules: tuple[str, ...] = ()  # that the user is said to have typed
    artifacts: tuple[tuple[str, str], ...] = ()  # "branch", "commit" or "pull request", and it
    unplaced: list[str] = field(default_factory=list)

    @property
    def is_usable(self) -> bool:
        return bool(self.observations or self.summary or self.no_observations or self.skip_summary)


@dataclass(frozen=True, slots=True)
class _Token:
    name: str
    is_closing: bool
    start: int
    end: int
    attributes: str


@dataclass(slots=True)
class _Block:
    kind: str
    texts: dict[str, list[str]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    untagged: list[str] = field(default_factory=list)

    def extend(self, other: "_Block") -> None:
        for name, texts in other.texts.items():
            self.texts.setdefault(name, []).extend(texts)
        for name, items in other.lists.items():
            self.lists.setdefault(name, []).extend(items)
        self.untagged += other.untagged

    def pop_remaining(self) -> list[str]:
        """Takes out untagged text, and fields that belong to the other kind of block."""
        remaining = [*self.untagged, *(text for texts in self.texts.values() for text in texts),
                     *(item for items in self.lists.values() for item in items)]  # fmt: skip
        self.untagged, self.texts, self.lists = [], {}, {}
        return remaining


def parse_reply(text: str) -> Parsed:
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.parsed = Parsed()
        self.unplaced = _Unplaced(self.parsed.unplaced)
        self.closing: dict[str, list[int]] = {}  # indices of closing tags, by name
        self.bounds: list[int] = []  # indices of tags at which every field ends
        for index, token in enumerate(self.tokens):
            if token.is_closing:
                self.closing.setdefault(token.name, []).append(index)
            if token.name in _BLOCKS or token.name in _WRAPPERS:
                self.bounds.append(index)
            self._keep_attributes(token)
        self.block: _Block | None = None
        self.blocks: list[_Block] = []

    def parse(self) -> Parsed:
        index, position = 0, 0
        while index < len(self.tokens):
            token = self.tokens[index]
            self._add_untagged(self.text[position : token.start])
            index, position = self._read_token(index, token)
        self._add_untagged(self._without_truncated_tag(self.text[position:]))
        self._finish_block()
        self._build_memories()
        return self.parsed

    def _build_memories(self) -> None:
        builder, observations = _Builder(self.unplaced), self.parsed.observations
        summary = _Block("summary")
        self.parsed.rules = builder.rules(self.blocks)
        self.parsed.artifacts = builder.artifacts(self.blocks)
        for block in self.blocks:
            if block.kind == "summary":  # a turn has one summary: several are its parts
                summary.extend(block)
            elif len(observations) == MAX_OBSERVATIONS:
                self.unplaced.add(*block.pop_remaining())
            elif observation := builder.observation(block):
                observations.append(observation)
        self.parsed.summary = builder.summary(summary)

    def _keep_attributes(self, token: _Token) -> None:
        """No attribute but the type and a reason is asked for, but others may carry text."""
        text = token.attributes
        if token.name in _BLOCKS:
            text = _TYPE_ATTRIBUTE.sub("", text, 1)
        elif token.name == "skip_summary" and (reason := _REASON_ATTRIBUTE.search(text)):
            self.parsed.skip_reason = self.unplaced.clean(reason.group(2))
            text = _REASON_ATTRIBUTE.sub("", text, 1)
        if text.strip(" /"):
            self.unplaced.add(text)

    def _read_token(self, index: int, token: _Token) -> tuple[int, int]:
        """Returns the index of the next token and the position in the text."""
        if token.name in _EMPTY:
            self.parsed.skip_summary |= token.name == "skip_summary"
            self.parsed.no_observations |= token.name != "skip_summary"
        elif token.name in _WRAPPERS or (token.name in _BLOCKS and token.is_closing):
            self._finish_block()
        elif token.name in _BLOCKS:
            self._finish_block()
            self.block = _Block(token.name)
            if attribute := _TYPE_ATTRIBUTE.search(token.attributes):
                self.block.texts["type"] = [attribute.group(1)]
        elif not token.is_closing and not token.attributes.endswith("/"):
            return self._read_field(index, token)
        return index + 1, token.end

    def _read_field(self, index: int, token: _Token) -> tuple[int, int]:
        end = self._end_of_field(index, token.name)
        stop = self.tokens[end].start if end < len(self.tokens) else len(self.text)
        content = self.text[token.end : stop]
        if end == len(self.tokens):
            content = self._without_truncated_tag(content)
        block = self._block_for(token.name)
        name = token.name
        if name in _LISTS:
            block.lists.setdefault(name, []).extend(_split_items(content, _LISTS[name]))
        elif name in _ITEMS:
            block.lists.setdefault(_ITEMS[name], []).append(content)
        elif name == "file":
            target = "files_modified" if block.kind == "observation" else "files_edited"
            block.lists.setdefault(target, []).append(content)
        else:
            block.texts.setdefault(name, []).append(content)
        is_closed = end < len(self.tokens) and self.tokens[end].is_closing
        if is_closed and self.tokens[end].name == name:
            return end + 1, self.tokens[end].end
        return end, stop

    def _end_of_field(self, index: int, name: str) -> int:
        """Finds the closing tag, if that comes before the end of the block; else the next tag."""
        closings = self.closing.get(name, [])
        closing_index = bisect_left(closings, index)
        bound_index = bisect_left(self.bounds, index)
        bound = self.bounds[bound_index] if bound_index < len(self.bounds) else len(self.tokens)
        if closing_index < len(closings) and closings[closing_index] < bound:
            return closings[closing_index]
        following = index + 1
        if name in _LISTS:  # skip the tags of its items
            while following < bound and self.tokens[following].name == _LISTS[name]:
                following += 1
        return following

    def _block_for(self, name: str) -> _Block:
        if self.block is None:  # a field outside of any block
            kind = "summary" if name in _SUMMARY_FIELDS else "observation"
            self.block = _Block(kind)
        return self.block

    def _add_untagged(self, text: str) -> None:
        if not text.strip():
            return
        if self.block is None:
            self.unplaced.add(_FENCE_LINE.sub("", text))
        else:
            self.block.untagged.append(text)

    def _without_truncated_tag(self, text: str) -> str:
        """The reply may end in the middle of a tag, or with a word that only looks like one."""
        tag = _TRUNCATED_TAG.search(text, max(0, len(text) - 24))
        name = tag.group().strip("</").lower() if tag else ""
        if tag is None or not any(tag_name.startswith(name) for tag_name in TAG_NAMES):
            return text
        self.unplaced.add(name)
        return text[: tag.start()]

    def _finish_block(self) -> None:
        if self.block is not None:
            self.blocks.append(self.block)
            self.block = None


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TAG.finditer(text):
        name = match.group(2).lower()
        yield _Token(_ALIASES.get(name, name), bool(match.group(1)), match.start(), match.end(),
                     match.group(3).strip())  # fmt: skip


def _split_items(content: str, name: str) -> list[str]:
    """Splits a list by its tags, text between them included; without tags, by lines."""
    parts = re.split(rf"(?i)</?[ \t]{{0,4}}{name}(?![\w-])[^<>]{{0,400}}>", content)
    if len(parts) > 1:
        return parts
    return [_BULLET.sub("", line) for line in content.splitlines()]


class _Unplaced:
    """Collects every text that no memory holds, or that a memory holds only in part."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def add(self, *texts: str) -> None:
        self._texts += [text for text in texts if text.strip()]

    def shorten(self, text: str, max_chars: int) -> str:
        if len(text) > max_chars:
            self.add(text)
        return shorten(text, max_chars)

    def first_unique(self, texts: Iterable[str], count: int) -> tuple[str, ...]:
        unique = tuple(dict.fromkeys(texts))
        self.add(*unique[count:])
        return unique[:count]

    def clean(self, text: str) -> str:
        if len(text) > MAX_RAW_CHARS:
            self.add(text)
            text = text[:MAX_RAW_CHARS]
        text = _CDATA.sub("", text)
        text = _FENCE_LINE.sub("", text) if text.count("```") == 1 else text
        text = _ENTITY.sub(_decode_entity, text)
        return without_controls(text).strip()


class _Builder:
    """Builds memories of blocks: known fields first, the remaining text as narrative or notes."""

    def __init__(self, unplaced: _Unplaced) -> None:
        self._unplaced = unplaced

    def rules(self, blocks: Iterable[_Block]) -> tuple[str, ...]:
        """Returns the rules of all blocks: they are about the user, not a part of the turn."""
        rules = (rule for block in blocks for rule in self._list(block, "rules"))
        return self._names(rules, MAX_ITEM_CHARS)

    def artifacts(self, blocks: Iterable[_Block]) -> tuple[tuple[str, str], ...]:
        rows = [(noun, line) for block in blocks for name, noun in _ARTIFACTS.items()
                for line in self._text(block, name).splitlines() if line.strip()]  # fmt: skip
        self._unplaced.add(*(line for _, line in rows[MAX_ITEMS:]))
        return tuple(
            (noun, self._unplaced.shorten(line.strip(), MAX_ITEM_CHARS))
            for noun, line in rows[:MAX_ITEMS]
        )

    def observation(self, block: _Block) -> PartialObservation | None:
        unplaced = self._unplaced
        type_, type_text = self._type(block)
        title, subtitle = self._text(block, "title"), self._text(block, "subtitle")
        facts, rejected = self._list(block, "facts"), self._list(block, "rejected")
        status = self._text(block, "status").replace("\n", ", ")
        concepts = [concept.lower().replace(" ", "-") for concept in self._list(block, "concepts")
                    if concept.lower() not in OBSERVATION_TYPES]  # fmt: skip
        read = self._list(block, "files_read")
        modified = (*self._list(block, "files_modified"), *self._list(block, "files_edited"))
        # The full text of a field that is too long goes into the narrative.
        too_long = [title] if len(title) > MAX_TITLE_CHARS else []
        too_long += [text for text in (subtitle, *facts, *rejected) if len(text) > MAX_ITEM_CHARS]
        too_long += [status] if len(status) > MAX_CONCEPT_CHARS else []
        narrative = self._joined_text(
            [*too_long, self._text(block, "narrative"),
             *map(unplaced.clean, block.pop_remaining()), type_text, *facts[MAX_ITEMS:],
             *rejected[MAX_ITEMS:]]
        )  # fmt: skip
        has_text = title or subtitle or narrative or facts or rejected
        if not (has_text or type_ or concepts or read or modified):
            unplaced.add(status)
            return None
        return PartialObservation(
            type=type_,
            title=shorten(title, MAX_TITLE_CHARS) or None,
            subtitle=shorten(subtitle, MAX_ITEM_CHARS) or None,
            narrative=narrative or None,
            facts=tuple(shorten(fact, MAX_ITEM_CHARS) for fact in facts[:MAX_ITEMS]),
            concepts=self._names(concepts, MAX_CONCEPT_CHARS),
            files_read=self._names(read, MAX_ITEM_CHARS),
            files_modified=self._names(modified, MAX_ITEM_CHARS),
            status=status if 0 < len(status) <= MAX_CONCEPT_CHARS else None,
            rejected=tuple(shorten(way, MAX_ITEM_CHARS) for way in rejected[:MAX_ITEMS]),
        )

    def _type(self, block: _Block) -> tuple[ObservationType | None, str]:
        """The type; and the text in its place, if that is longer than a word."""
        texts = [self._unplaced.clean(text) for text in block.texts.pop("type", [])]
        for index, text in enumerate(texts):
            for type_ in OBSERVATION_TYPES:
                if text.lower().strip(" .|`\"'") == type_:
                    self._unplaced.add(*texts[:index], *texts[index + 1 :])
                    return type_, ""
        joined = " ".join(texts)
        if len(joined) > MAX_CONCEPT_CHARS:
            return None, joined
        self._unplaced.add(joined)
        return None, ""

    def summary(self, block: _Block) -> Summary | None:
        unplaced = self._unplaced
        unplaced.add(*block.texts.pop("type", []), *block.texts.pop("status", []))
        request, investigated, learned, completed, next_steps = (
            unplaced.shorten(self._text(block, name), MAX_TEXT_CHARS) or None
            for name in ("request", "investigated", "learned", "completed", "next_steps")
        )
        notes = self._text(block, "notes")
        read = self._list(block, "files_read")
        edited = (*self._list(block, "files_edited"), *self._list(block, "files_modified"))
        # Fields of an observation in a summary are text too.
        remaining = map(unplaced.clean, block.pop_remaining())
        summary = Summary(
            request=request,
            investigated=investigated,
            learned=learned,
            completed=completed,
            next_steps=next_steps,
            files_read=self._names(read, MAX_ITEM_CHARS),
            files_edited=self._names(edited, MAX_ITEM_CHARS),
            notes=self._joined_text([notes, *remaining]) or None,
        )
        return summary if summary.text or read or edited else None

    def _text(self, block: _Block, name: str) -> str:
        texts = map(self._unplaced.clean, block.texts.pop(name, []))
        return "\n".join(dict.fromkeys(filter(None, texts)))

    def _list(self, block: _Block, name: str) -> tuple[str, ...]:
        items = block.lists.pop(name, [])
        self._unplaced.add(*items[MAX_ITEMS * 20 :])
        cleaned = map(self._unplaced.clean, items[: MAX_ITEMS * 20])
        return tuple(dict.fromkeys(filter(None, cleaned)))

    def _names(self, names: Iterable[str], max_chars: int) -> tuple[str, ...]:
        shortened = (self._unplaced.shorten(name, max_chars) for name in names)
        return self._unplaced.first_unique(shortened, MAX_ITEMS)

    def _joined_text(self, parts: Iterable[str]) -> str:
        return self._unplaced.shorten("\n".join(dict.fromkeys(filter(None, parts))), MAX_TEXT_CHARS)


def _decode_entity(match: re.Match[str]) -> str:
    name = match.group(1)
    if not name.startswith("#"):
        return _NAMED_ENTITIES[name]
    number = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return chr(number) if number < 0x110000 else match.group()
