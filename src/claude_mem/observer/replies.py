"""What a model answered, as memories: permissive, in linear time, and nothing that it said is lost.

Known tags are looked for, whatever stands around them. A field that is closed before its block
ends is taken as it is, tags in it included; one that is not runs to the next tag. Words of a block
that stand in no field become part of its narrative or notes. Unknown tags are text.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from claude_mem.types import OBSERVATION_TYPES, Distillate, Observation, ObservationType, Summary

OBSERVATIONS, LISTED = 12, 40
LONGEST_TITLE, LONGEST_TEXT, LONGEST_ITEM = 200, 4_000, 500
LONGEST_CONCEPT = 40

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
_TYPE = re.compile(r"""type\s{0,4}=\s{0,4}["']?(\w{1,40})""", re.IGNORECASE)
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
    outside: str = ""  # what was said around the blocks

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


def parse_reply(text: str) -> Parsed:
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.closing: dict[str, list[int]] = {}
        self.bounds: list[int] = []
        for place, token in enumerate(self.tokens):
            if token.closes:
                self.closing.setdefault(token.name, []).append(place)
            if token.name in _BLOCKS or token.name in _WRAPPERS:
                self.bounds.append(place)
        self.parsed = Parsed()
        self.block: _Block | None = None
        self.outside: list[str] = []
        self.stated: list[_Block] = []

    def parse(self) -> Parsed:
        place, at = 0, 0
        while place < len(self.tokens):
            token = self.tokens[place]
            self._loose(self.text[at : token.start])
            place, at = self._take(place, token)
        self._loose(_CUT_TAG.sub("", self.text[at:]))
        self._finish()
        summaries = [one for one in map(_summary, self._of("summary")) if one is not None]
        found = [one for one in map(_observation, self._of("observation")) if one is not None]
        self.parsed.observations = found[:OBSERVATIONS]
        self.parsed.summary = _joined(summaries)
        self.parsed.outside = _clean("\n".join(self.outside))
        return self.parsed

    def _of(self, kind: str) -> list[_Block]:
        return [block for block in self.stated if block.kind == kind]

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
            content = _CUT_TAG.sub("", content)
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
        target = self.outside if self.block is None else self.block.loose
        if text.strip():
            target.append(text)

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


def _observation(block: _Block) -> Observation | None:
    title = _text(block, "title", LONGEST_TEXT)
    narrative = _text(block, "narrative", LONGEST_TEXT, more=block.loose)
    if len(title) > LONGEST_TITLE:
        narrative = _limited(f"{title}\n{narrative}".strip(), LONGEST_TEXT)
        title = _limited(title, LONGEST_TITLE)
    facts = _list(block, "facts", LONGEST_ITEM)
    subtitle = _text(block, "subtitle", LONGEST_ITEM)
    files = _list(block, "files_modified", LONGEST_ITEM)
    read = _list(block, "files_read", LONGEST_ITEM)
    kind, more = _type(block)
    concepts = tuple(
        one.lower().replace(" ", "-")
        for one in _list(block, "concepts", LONGEST_CONCEPT)
        if one.lower() not in OBSERVATION_TYPES
    )
    if more:
        narrative = _limited(f"{narrative}\n{more}".strip(), LONGEST_TEXT)
    if not (title or subtitle or narrative or facts):
        return None  # a block that says nothing
    if not title:
        title = _limited((subtitle or narrative or facts[0]).splitlines()[0], 80)
    return Observation(
        type=kind,
        title=title,
        subtitle=subtitle or None,
        narrative=narrative or None,
        facts=facts,
        concepts=tuple(dict.fromkeys(concepts)),
        files_read=read,
        files_modified=files,
    )


def _type(block: _Block) -> tuple[ObservationType, str]:
    """And what was said in its place, where that is more than a word."""
    said = _clean(" ".join(block.texts.get("type", [])))
    for known in OBSERVATION_TYPES:
        if said.lower().strip(" .|`\"'") == known:
            return known, ""
    return "change", said if len(said) > LONGEST_CONCEPT else ""


def _summary(block: _Block) -> Summary | None:
    notes = _text(block, "notes", LONGEST_TEXT, more=block.loose)
    # A field of an observation that strayed into a summary is still said.
    for stray in ("title", "subtitle", "narrative"):
        if said := _text(block, stray, LONGEST_TEXT):
            notes = _limited(f"{notes}\n{said}".strip(), LONGEST_TEXT)
    notes = _limited("\n".join(filter(None, (notes, *_list(block, "facts", LONGEST_ITEM)))),
                     LONGEST_TEXT)  # fmt: skip
    made = Summary(
        request=_text(block, "request", LONGEST_TEXT) or None,
        investigated=_text(block, "investigated", LONGEST_TEXT) or None,
        learned=_text(block, "learned", LONGEST_TEXT) or None,
        completed=_text(block, "completed", LONGEST_TEXT) or None,
        next_steps=_text(block, "next_steps", LONGEST_TEXT) or None,
        files_read=_list(block, "files_read", LONGEST_ITEM),
        files_edited=tuple(dict.fromkeys((*_list(block, "files_edited", LONGEST_ITEM),
                                          *_list(block, "files_modified", LONGEST_ITEM)))),
        notes=notes or None,
    )  # fmt: skip
    return made if made.text else None


def _joined(summaries: list[Summary]) -> Summary | None:
    """Several summaries of one turn are one, said in pieces."""
    if not summaries:
        return None
    first, *others = summaries
    for other in others:
        said = {
            name: _limited("\n".join(dict.fromkeys(filter(None, (getattr(first, name),
                                                                 getattr(other, name))))),
                           LONGEST_TEXT) or None
            for name in ("request", "investigated", "learned", "completed", "next_steps", "notes")
        }  # fmt: skip
        first = replace(
            first,
            **said,  # type: ignore[arg-type]
            files_read=tuple(dict.fromkeys((*first.files_read, *other.files_read)))[:LISTED],
            files_edited=tuple(dict.fromkeys((*first.files_edited, *other.files_edited)))[:LISTED],
        )
    return first


def _text(block: _Block, name: str, longest: int, more: list[str] | None = None) -> str:
    parts = [*block.texts.get(name, []), *(more or [])]
    return _limited("\n".join(filter(None, map(_clean, parts))), longest)


def _list(block: _Block, name: str, longest: int) -> tuple[str, ...]:
    found = (_limited(_clean(one), longest) for one in block.lists.get(name, [])[: LISTED * 20])
    return tuple(dict.fromkeys(filter(None, found)))[:LISTED]


def _clean(text: str) -> str:
    if len(text) > 4 * LONGEST_TEXT:
        text = text[: 4 * LONGEST_TEXT]
    text = _CDATA.sub("", text)
    text = _FENCE_LINE.sub("", text) if text.count("```") == 1 else text
    text = _ENTITY.sub(_character, text)
    return _UNPRINTABLE.sub("", text).strip()


def _character(match: re.Match[str]) -> str:
    name = match.group(1)
    if not name.startswith("#"):
        return _NAMED[name]
    number = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return chr(number) if number < 0x110000 else ""


def _limited(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


# The answer and the draft


def revise(draft: Distillate, parsed: Parsed, *, observer: str, model: str,
           prompt_version: str) -> Distillate:  # fmt: skip
    """The draft with what the model said in its place; what it did not speak of stands."""
    sources = tuple(dict.fromkeys(
        (*draft.summary.sources, *(i for one in draft.observations for i in one.sources))
    ))  # fmt: skip
    if parsed.observations:
        observations = tuple(replace(one, sources=sources) for one in parsed.observations)
    elif parsed.says_nothing_to_observe:
        observations = ()
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
