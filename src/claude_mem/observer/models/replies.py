"""What a model answered, as memories: permissive, in linear time, and nothing that it said is lost.

Known tags are looked for, whatever stands around them. A field that is closed before its block
ends is taken as it is, tags in it included; one that is not runs to the next tag. Words of a block
that stand in no field of its own, or in one that is too small for them, become part of its
narrative or notes. Unknown tags are text. What stands in no memory then, because it was said
around the blocks or is beyond a limit, is told in `left_out`: the answer must be kept with it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from claude_mem.types import OBSERVATION_TYPES, Distillate, Observation, ObservationType, Summary

OBSERVATIONS, LISTED = 12, 40
LONGEST_TITLE, LONGEST_TEXT, LONGEST_ITEM = 200, 4_000, 500
LONGEST_CONCEPT = 40
CLEANED = 4 * LONGEST_TEXT  # of one text: entities make it shorter, nothing makes it longer

_LISTS = {"facts": "fact", "concepts": "concept", "files_read": "file", "files_modified": "file",
          "files_edited": "file"}  # fmt: skip
_ITEMS = {"fact": "facts", "concept": "concepts"}
_OBSERVATION_FIELDS = ("type", "title", "subtitle", "narrative", "facts", "concepts", "files_read",
                       "files_modified")  # fmt: skip
_SUMMARY_FIELDS = ("request", "investigated", "learned", "completed", "next_steps", "notes",
                   "files_edited")  # fmt: skip
_ALIASES = {"text": "narrative", "description": "narrative", "next-steps": "next_steps",
            "nextsteps": "next_steps", "file_read": "files_read",
            "file_modified": "files_modified"}  # fmt: skip
_BLOCKS = ("observation", "summary")
_EMPTY = ("skip_summary", "no_observation", "no_observations")
_WRAPPERS = ("observations", "summaries", "response", "memory")
_KNOWN = {*_BLOCKS, *_EMPTY, *_WRAPPERS, *_OBSERVATION_FIELDS, *_SUMMARY_FIELDS, *_ITEMS, "file",
          *_ALIASES}  # fmt: skip
_NAMES = "|".join(sorted((re.escape(name) for name in _KNOWN), key=len, reverse=True))
_TAG = re.compile(rf"<(/?)[ \t]{{0,4}}({_NAMES})(?![\w-])([^<>]{{0,400}})>", re.IGNORECASE)
_TYPE = re.compile(r"""type\s{0,4}=\s{0,4}["']?(\w{1,40})["']?""", re.IGNORECASE)
_ENTITY = re.compile(r"&(lt|gt|amp|quot|apos|nbsp|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "nbsp": " "}
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_CDATA = re.compile(r"<!\[CDATA\[|\]\]>")
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+")
_FENCE_LINE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)
_CUT_TAG = re.compile(r"</?[\w-]{0,20}\Z")


@dataclass(slots=True)
class Parsed:
    observations: list[Observation] = field(default_factory=list)
    summary: Summary | None = None
    says_nothing_to_observe: bool = False
    skips_summary: bool = False
    left_out: list[str] = field(default_factory=list)  # texts that no memory holds, or not whole

    @property
    def is_usable(self) -> bool:
        return bool(
            self.observations or self.summary or self.says_nothing_to_observe or self.skips_summary
        )


@dataclass(frozen=True, slots=True)
class _Token:
    name: str
    closes: bool
    start: int
    end: int
    rest: str


@dataclass(slots=True)
class _Block:
    kind: str
    texts: dict[str, list[str]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)

    def join(self, other: "_Block") -> None:
        for name, texts in other.texts.items():
            self.texts.setdefault(name, []).extend(texts)
        for name, items in other.lists.items():
            self.lists.setdefault(name, []).extend(items)
        self.loose += other.loose

    def take_rest(self) -> list[str]:
        """All that nobody took: words in no field, and fields that another kind of block has."""
        rest = [*self.loose, *(one for said in self.texts.values() for one in said),
                *(one for said in self.lists.values() for one in said)]  # fmt: skip
        self.loose, self.texts, self.lists = [], {}, {}
        return rest


def parse_reply(text: str) -> Parsed:
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.parsed = Parsed()
        self.left = _Left(self.parsed.left_out)
        self.closing: dict[str, list[int]] = {}
        self.bounds: list[int] = []
        for place, token in enumerate(self.tokens):
            if token.closes:
                self.closing.setdefault(token.name, []).append(place)
            if token.name in _BLOCKS or token.name in _WRAPPERS:
                self.bounds.append(place)
            self._note_attributes(token)
        self.block: _Block | None = None
        self.stated: list[_Block] = []

    def parse(self) -> Parsed:
        place, at = 0, 0
        while place < len(self.tokens):
            token = self.tokens[place]
            self._loose(self.text[at : token.start])
            place, at = self._take(place, token)
        self._loose(self._without_cut_tag(self.text[at:]))
        self._finish()
        makes, found = _Making(self.left), self.parsed.observations
        summary = _Block("summary")
        for block in self.stated:
            if block.kind == "summary":  # several of one turn are one, said in pieces
                summary.join(block)
            elif len(found) == OBSERVATIONS:
                self.left.add(*block.take_rest())
            elif one := makes.observation(block):
                found.append(one)
        self.parsed.summary = makes.summary(summary)
        return self.parsed

    def _note_attributes(self, token: _Token) -> None:
        """Nobody asked for any but a type, but they may say much."""
        said = _TYPE.sub("", token.rest, 1) if token.name in _BLOCKS else token.rest
        if said.strip(" /"):
            self.left.add(said)

    def _take(self, place: int, token: _Token) -> tuple[int, int]:
        """Where to go on: the next token, and the place in the text."""
        if token.name in _EMPTY:
            self.parsed.skips_summary |= token.name == "skip_summary"
            self.parsed.says_nothing_to_observe |= token.name != "skip_summary"
        elif token.name in _WRAPPERS or (token.name in _BLOCKS and token.closes):
            self._finish()
        elif token.name in _BLOCKS:
            self._finish()
            self.block = _Block(token.name)
            if kind := _TYPE.search(token.rest):
                self.block.texts["type"] = [kind.group(1)]
        elif not token.closes and not token.rest.endswith("/"):
            return self._field(place, token)
        return place + 1, token.end

    def _field(self, place: int, token: _Token) -> tuple[int, int]:
        end = self._end_of_field(place, token.name)
        stop = self.tokens[end].start if end < len(self.tokens) else len(self.text)
        content = self.text[token.end : stop]
        if end == len(self.tokens):
            content = self._without_cut_tag(content)
        block = self._block_for(token.name)
        name = token.name
        if name in _LISTS:
            block.lists.setdefault(name, []).extend(_items(content, _LISTS[name]))
        elif name in _ITEMS:
            block.lists.setdefault(_ITEMS[name], []).append(content)
        elif name == "file":
            target = "files_modified" if block.kind == "observation" else "files_edited"
            block.lists.setdefault(target, []).append(content)
        else:
            block.texts.setdefault(name, []).append(content)
        closed = end < len(self.tokens) and self.tokens[end].closes
        if closed and self.tokens[end].name == name:
            return end + 1, self.tokens[end].end
        return end, stop

    def _end_of_field(self, place: int, name: str) -> int:
        """Its own closing tag, if that comes before the block ends; else the next tag at all."""
        closings = self.closing.get(name, [])
        index = bisect_left(closings, place)
        bound_index = bisect_left(self.bounds, place)
        bound = self.bounds[bound_index] if bound_index < len(self.bounds) else len(self.tokens)
        if index < len(closings) and closings[index] < bound:
            return closings[index]
        following = place + 1
        if name in _LISTS:  # its items are part of it
            while following < bound and self.tokens[following].name == _LISTS[name]:
                following += 1
        return following

    def _block_for(self, name: str) -> _Block:
        if self.block is None:  # a field that nobody opened a block for
            summary = name in _SUMMARY_FIELDS
            self.block = _Block("summary" if summary else "observation")
        return self.block

    def _loose(self, text: str) -> None:
        if not text.strip():
            return
        if self.block is None:
            self.left.add(_FENCE_LINE.sub("", text))
        else:
            self.block.loose.append(text)

    def _without_cut_tag(self, text: str) -> str:
        """The answer may end in the middle of a tag, or with a word that only looks like one."""
        cut = _CUT_TAG.search(text, max(0, len(text) - 24))
        begun = cut.group().strip("</").lower() if cut else ""
        if cut is None or not any(name.startswith(begun) for name in _KNOWN):
            return text
        self.left.add(begun)
        return text[: cut.start()]

    def _finish(self) -> None:
        if self.block is not None:
            self.stated.append(self.block)
            self.block = None


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TAG.finditer(text):
        name = match.group(2).lower()
        yield _Token(_ALIASES.get(name, name), bool(match.group(1)), match.start(), match.end(),
                     match.group(3).strip())  # fmt: skip


def _items(content: str, name: str) -> list[str]:
    """By their tags; what stands beside them, by lines."""
    parts = re.split(rf"(?i)</?[ \t]{{0,4}}{name}(?![\w-])[^<>]{{0,400}}>", content)
    if len(parts) > 1:
        return parts
    return [_BULLET.sub("", line) for line in content.splitlines()]


class _Left:
    """Where every text goes that no memory holds, or that one holds in part."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def add(self, *texts: str) -> None:
        self._texts += [text for text in texts if text.strip()]

    def limited(self, text: str, longest: int) -> str:
        if len(text) > longest:
            self.add(text)
        return _shortened(text, longest)

    def first(self, texts: Iterable[str], most: int) -> tuple[str, ...]:
        """So many of them, each once."""
        found = tuple(dict.fromkeys(texts))
        self.add(*found[most:])
        return found[:most]

    def clean(self, text: str) -> str:
        if len(text) > CLEANED:
            self.add(text)
            text = text[:CLEANED]
        text = _CDATA.sub("", text)
        text = _FENCE_LINE.sub("", text) if text.count("```") == 1 else text
        text = _ENTITY.sub(_character, text)
        return _UNPRINTABLE.sub("", text).strip()


class _Making:
    """Memories of blocks: each takes the fields it knows, and the rest of the block as words."""

    def __init__(self, left: _Left) -> None:
        self._left = left

    def observation(self, block: _Block) -> Observation | None:
        left = self._left
        kind, more = self._type(block)
        title, subtitle = self._text(block, "title"), self._text(block, "subtitle")
        facts = self._list(block, "facts")
        concepts = (one.lower().replace(" ", "-") for one in self._list(block, "concepts")
                    if one.lower() not in OBSERVATION_TYPES)  # fmt: skip
        read = self._list(block, "files_read")
        modified = (*self._list(block, "files_modified"), *self._list(block, "files_edited"))
        # What does not fit its field is told whole in the narrative.
        long = [title] if len(title) > LONGEST_TITLE else []
        long += [one for one in (subtitle, *facts) if len(one) > LONGEST_ITEM]
        narrative = self._joined_text(
            [*long, self._text(block, "narrative"), *map(left.clean, block.take_rest()), more,
             *facts[LISTED:]]
        )  # fmt: skip
        if not (title or subtitle or narrative or facts):
            left.add(*concepts, *read, *modified)
            return None  # a block that says nothing
        if not title:
            title = _shortened((subtitle or narrative or facts[0]).splitlines()[0], 80)
        return Observation(
            type=kind,
            title=_shortened(title, LONGEST_TITLE),
            subtitle=_shortened(subtitle, LONGEST_ITEM) or None,
            narrative=narrative or None,
            facts=tuple(_shortened(one, LONGEST_ITEM) for one in facts[:LISTED]),
            concepts=self._names(concepts, LONGEST_CONCEPT),
            files_read=self._names(read, LONGEST_ITEM),
            files_modified=self._names(modified, LONGEST_ITEM),
        )

    def _type(self, block: _Block) -> tuple[ObservationType, str]:
        """And what was said in its place, where that is more than a word."""
        said = [self._left.clean(one) for one in block.texts.pop("type", [])]
        for number, one in enumerate(said):
            for known in OBSERVATION_TYPES:
                if one.lower().strip(" .|`\"'") == known:
                    self._left.add(*said[:number], *said[number + 1 :])
                    return known, ""
        more = " ".join(said)
        if len(more) > LONGEST_CONCEPT:
            return "change", more
        self._left.add(more)
        return "change", ""

    def summary(self, block: _Block) -> Summary | None:
        left = self._left
        left.add(*block.texts.pop("type", []))
        request, investigated, learned, completed, next_steps = (
            left.limited(self._text(block, name), LONGEST_TEXT) or None
            for name in ("request", "investigated", "learned", "completed", "next_steps")
        )
        notes = self._text(block, "notes")
        read = self._list(block, "files_read")
        edited = (*self._list(block, "files_edited"), *self._list(block, "files_modified"))
        # A field of an observation that strayed into a summary is still said.
        stray = map(left.clean, block.take_rest())
        made = Summary(
            request=request,
            investigated=investigated,
            learned=learned,
            completed=completed,
            next_steps=next_steps,
            files_read=self._names(read, LONGEST_ITEM),
            files_edited=self._names(edited, LONGEST_ITEM),
            notes=self._joined_text([notes, *stray]) or None,
        )
        if made.text:
            return made
        left.add(*read, *edited)
        return None

    def _text(self, block: _Block, name: str) -> str:
        said = map(self._left.clean, block.texts.pop(name, []))
        return "\n".join(dict.fromkeys(filter(None, said)))

    def _list(self, block: _Block, name: str) -> tuple[str, ...]:
        said = block.lists.pop(name, [])
        self._left.add(*said[LISTED * 20 :])
        return tuple(dict.fromkeys(filter(None, map(self._left.clean, said[: LISTED * 20]))))

    def _names(self, said: Iterable[str], longest: int) -> tuple[str, ...]:
        return self._left.first((self._left.limited(one, longest) for one in said), LISTED)

    def _joined_text(self, parts: Iterable[str]) -> str:
        return self._left.limited("\n".join(dict.fromkeys(filter(None, parts))), LONGEST_TEXT)


def _character(match: re.Match[str]) -> str:
    name = match.group(1)
    if not name.startswith("#"):
        return _NAMED[name]
    number = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return chr(number) if number < 0x110000 else match.group()


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


# The answer and the draft


def revise(draft: Distillate, parsed: Parsed, *, observer: str, model: str,
           prompt_version: str) -> Distillate:  # fmt: skip
    """The draft with what the model said in its place; what it did not speak of stands."""
    sources = _sources(draft)
    if parsed.observations:
        observations = tuple(replace(one, sources=sources) for one in parsed.observations)
    elif parsed.says_nothing_to_observe and draft.model is None:
        observations = ()  # of a turn that went on it means that nothing came to them
    else:
        observations = draft.observations
    summary = draft.summary
    if parsed.summary is not None:
        said = parsed.summary
        summary = replace(
            said,
            request=said.request or draft.summary.request,
            files_read=said.files_read or draft.summary.files_read,
            files_edited=said.files_edited or draft.summary.files_edited,
            commands=draft.summary.commands,
            faults=draft.summary.faults,
            open_steps=draft.summary.open_steps,
            sources=draft.summary.sources,
        )
    return Distillate(
        summary=summary,
        observations=observations,
        title=draft.title or next((one.title for one in observations), None),
        subtitle=draft.subtitle,
        observer=observer,
        model=model,
        prompt_version=prompt_version,
    )


def go_on(standing: Distillate, fresh: Distillate) -> Distillate:
    """What a model made of a turn is its draft when the turn went on; its events are more now."""
    sources = tuple(dict.fromkeys((*_sources(standing), *_sources(fresh))))
    return replace(
        standing,
        summary=replace(
            standing.summary,
            commands=fresh.summary.commands,
            faults=fresh.summary.faults,
            open_steps=fresh.summary.open_steps,
            sources=sources,
        ),
        title=fresh.title,
        subtitle=fresh.subtitle,
    )


def _sources(made: Distillate) -> tuple[int, ...]:
    ids = (*made.summary.sources, *(i for one in made.observations for i in one.sources))
    return tuple(dict.fromkeys(ids))
