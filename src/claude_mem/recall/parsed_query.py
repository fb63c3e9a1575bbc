"""The text of a query as it is looked up: words of which any may match, phrases that must match,
words that must not, and the times that it names, such as "last week" or "before 7 June 2023". Every
text can be parsed; what the index cannot hold is left out.

The times are read by patterns of ours and not by a library (dateparser, parsedatetime): those find
moments, while a query needs spans ("last week" is seven days), relations ("before") and the words
that name them.
"""

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from claude_mem.index.text.filters import phrase
from claude_mem.index.text.words import (
    grams,
    is_unspaced,
    parts_of,
    pieces,
    plain_text,
    spoken_symbols,
    stem,
    stems,
)

MAX_TEXT = 20_000
MAX_WORDS = 64
MAX_PHRASES = 64  # the time FTS5 takes for a conjunction grows with the square of its phrases
MAX_NAME_WORDS = 16  # of a path or a dotted name
MAX_UNSPACED_WORD = 3
SENTENCE_WORDS = 3
FOREVER = 2**62

_QUOTED = re.compile(r'(-?)"([^"]*)"')
_APOSTROPHE = re.compile(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)

_COMMON = """a about above after again against all also am an and any are aren as at be because been
before being below between both but by can cannot could couldn d did didn do does doesn doing don
down during each few for from further had hadn has hasn have haven having he her here hers herself
him himself his how i if in into is isn it its itself just ll m me more most my myself no nor not of
off on once only or other our ours ourselves out over own re s same she should so some such t than
that the their theirs them themselves then there these they this those through to too under until
up us ve very was wasn we were weren what when where which while who whom why will with won would
you your yours yourself"""
STOP_WORDS = frozenset(_COMMON.split())


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the text, in all the ways in which the index may hold it."""

    forms: tuple[str, ...]  # as FTS5 strings
    pieces: tuple[str, ...]  # in lower case
    is_time: bool = False
    is_part: bool = False  # of another word: a path is one word to the user


@dataclass(frozen=True, slots=True)
class Span:
    """A span [since, until) in Unix milliseconds, in the time zone of the query."""

    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Occasion:
    """An occasion such as "before the release": its time must be looked up in the memories."""

    relation: str
    words: str

    def span_around(self, moment: int) -> Span:
        return Span(0, moment) if self.relation in ("before", "until") else Span(moment, FOREVER)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    text: str
    words: tuple[Word, ...] = ()
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    occasions: tuple[Occasion, ...] = ()  # whose time must be looked up

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.phrases)

    @property
    def is_sentence(self) -> bool:
        """A keyword, a name or a phrase asks for everything that holds it and nothing else; a
        sentence asks for its answer, which may be the neighbour of what matches."""
        if self.phrases or self.excluded:
            return False
        return sum(not word.is_part for word in self.words) >= SENTENCE_WORDS


def parse_query(text: str, now: datetime) -> ParsedQuery:
    plain = plain_text(text[:MAX_TEXT])
    times = read_times(plain, now)
    phrases: list[str] = []
    excluded: list[str] = []
    for dash, quoted in _QUOTED.findall(plain):
        if expression := phrase(quoted):
            (excluded if dash else phrases).append(expression)
    unquoted = _APOSTROPHE.sub("", _QUOTED.sub(" ", plain))
    chunks: list[str] = []
    for chunk in unquoted.split():
        if _is_exclusion(chunk):
            excluded.append(phrase(chunk[1:]))
        else:
            chunks.append(chunk)
    time_pieces = frozenset(piece.lower() for time in times.texts for piece in pieces(time))
    words = _mark_times(_words(chunks), time_pieces) if time_pieces else _words(chunks)
    return ParsedQuery(
        plain,
        words,
        tuple(dict.fromkeys(phrases))[:MAX_PHRASES],
        tuple(dict.fromkeys(excluded)),
        times.spans,
        times.occasions,
    )


def _mark_times(words: tuple[Word, ...], time_pieces: frozenset[str]) -> tuple[Word, ...]:
    """Marks the words that only name a time, unless all of them do."""
    marked = tuple(replace(word, is_time=time_pieces.issuperset(word.pieces)) for word in words)
    return words if all(word.is_time for word in marked) else marked


def content_word_forms(text: str) -> list[str]:
    """The words of a text that are not stop words, as FTS5 strings."""
    return [form for word in _words(text.split()) for form in word.forms[:1]]


def stems_of(parsed: ParsedQuery) -> frozenset[str]:
    return frozenset(stem(piece) for word in parsed.words for piece in word.pieces)


def content_stems(text: str) -> frozenset[str]:
    """Returns the stems of the words that say something."""
    words = {piece.lower() for piece in pieces(text) if len(piece) > 2} - STOP_WORDS
    return frozenset(stems(words).values())


def _is_exclusion(chunk: str) -> bool:
    """`-word`; but `--force` is a flag, and a lone dash is nothing."""
    return chunk[0] == "-" and chunk[1:2].isalnum() and bool(phrase(chunk[1:]))


def _words(chunks: list[str]) -> tuple[Word, ...]:
    """Returns the words without stop words, unless there is nothing else."""
    words: dict[tuple[str, ...], Word] = {}  # by their pieces, which ignore case
    for chunk in chunks:
        for word in _words_of(chunk):
            words.setdefault(word.pieces, word)
    content = [word for word in words.values() if not STOP_WORDS.issuperset(word.pieces)]
    return tuple((content or list(words.values()))[:MAX_WORDS])


def _words_of(chunk: str) -> list[Word]:
    """Each word of a chunk, and all of them as one where it is a path, a name or a version."""
    if chunk.isascii() and chunk.isalpha() and chunk.islower():  # as most are
        return [Word((f'"{chunk}"',), (chunk,))]
    split = pieces(chunk)
    words = [word for piece in split for word in _words_of_piece(piece)]
    words += [_part(spoken) for spoken in spoken_symbols(chunk)]
    if not 1 < len(split) <= MAX_NAME_WORDS:
        return words
    name = Word((phrase(chunk),), tuple(piece.lower() for piece in split))
    return [name, *(replace(word, is_part=True) for word in words)]


def _words_of_piece(piece: str) -> list[Word]:
    if is_unspaced(piece):
        run = Word((phrase(piece),), (piece,))
        if len(piece) <= MAX_UNSPACED_WORD:
            return [run]
        # Its words are not separated: any two characters may be one.
        return [run, *(Word((phrase(pair),), (pair,)) for pair in grams(piece)[:-1])]
    parts = parts_of(piece)
    forms = (phrase(piece), phrase(" ".join(parts))) if parts else (phrase(piece),)
    return [Word(forms, (piece.lower(),)), *(_part(part) for part in parts if len(part) > 1)]


def _part(text: str) -> Word:
    return Word((phrase(text),), (text.lower(),), is_part=True)


# Times. A month or a day without a year means that of any recent year.

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
            "seven": 7, "eight": 8, "nine": 9, "ten": 10, "few": 3, "couple of": 2}  # fmt: skip
YEARS_BACK = 10
MAX_TIME_TEXT = 2_000

_MONTH = r"(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + r")\.?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_AMOUNT = r"(?P<amount>\d{1,3}|" + "|".join(_NUMBERS) + r")"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_RELATION = r"(?:(?P<relation>before|after|since|until|till|by)\s+(?:the\s+)?)?"

# Tried in this order; the first match at a place wins.
_PATTERNS = tuple(
    (name, re.compile(rf"(?i)(?<![\w-]){_RELATION}{pattern}(?![\w-])"))
    for name, pattern in (
        ("date", r"(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?"),
        ("date", rf"{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?"),
        ("date", rf"{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?"),
        ("date", rf"{_MONTH},?\s+(?:of\s+)?{_YEAR}"),
        ("month", _MONTH),
        ("year", rf"(?:in\s+)?{_YEAR}"),
        ("ago", rf"{_AMOUNT}\s+{_UNIT}\s+ago"),
        ("past", rf"(?:last|past)\s+{_AMOUNT}\s+{_UNIT}"),
        ("this", r"(?P<which>this|last|past|previous)\s+(?P<unit>week|month|year)"),
        ("weekday", rf"(?:(?:on|last|this)\s+)?(?P<weekday>{'|'.join(_DAYS)})"),
        ("near", r"(?P<near>the day before yesterday|yesterday|last night|today|tonight|"
                 r"this morning|recently|lately)"),
    )
)  # fmt: skip
_MAY_NAME_TIME = re.compile(  # one search instead of eleven: most queries name no time
    r"(?i)\d|ago\b|day|night|week|month|year|morning|lately|recently|"
    + "|".join(rf"\b{name[:3]}" for name in _MONTHS)
)
# Words are possessive: a failure is retried for each of four words, not for each character.
_OCCASION = re.compile(
    r"(?i)\b(before|after|since|until)\s++([\w.-]++(?:\s++[\w.-]++){0,3})"
    r"(?:(?<=\.)|\s*+(?=[?!,;:]|$))"
)
_BEFORE_MONTH = re.compile(
    r"(?i)\b(?:in|during|of|last|this|since|before|after|until|till|by|early|late|mid|next)[\s-]+$"
)


@dataclass(frozen=True, slots=True)
class Times:
    spans: tuple[Span, ...] = ()  # alternatives: any of them
    texts: tuple[str, ...] = ()  # the words that name them
    occasions: tuple[Occasion, ...] = ()


def read_times(text: str, now: datetime) -> Times:
    text = text[:MAX_TIME_TEXT]
    occasions = tuple(
        Occasion(match[1].lower(), match[2].rstrip(".")) for match in _OCCASION.finditer(text)
    )
    if not _MAY_NAME_TIME.search(text):
        return Times(occasions=occasions)
    spans: list[Span] = []
    places: list[tuple[int, int]] = []
    for name, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in places):
                continue
            matched = [_apply_relation(match, span) for span in _spans(name, match, text, now)]
            if matched:
                places.append(match.span())
                spans += matched
    texts = tuple(text[start:end] for start, end in places)
    return Times(tuple(spans), texts, () if spans else occasions)


def _spans(name: str, match: re.Match[str], text: str, now: datetime) -> list[Span]:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        return _READERS[name](match, text, today)
    except (ValueError, OverflowError):
        return []  # the 31st of June, a thousand years ago


def _apply_relation(match: re.Match[str], span: Span) -> Span:
    relation = (match["relation"] or "").lower()
    if relation in ("before", "until", "till", "by"):
        return Span(0, span.since if relation == "before" else span.until)
    if relation in ("after", "since"):
        return Span(span.until if relation == "after" else span.since, FOREVER)
    return span


def _date(match: re.Match[str], text: str, today: datetime) -> list[Span]:
    month = _month_number(match["month"])
    groups = match.groupdict()
    day = int(groups["day"]) if groups.get("day") else None
    years = [int(groups["year"])] if groups.get("year") else _recent_years(today)
    return [span for year in years if (span := _span_of(today, year, month, day))]


def _month(match: re.Match[str], text: str, today: datetime) -> list[Span]:
    """Reads a month. May and march are other words too: they must follow a word like "in"."""
    word = match["month"].lower()
    ambiguous = word in ("may", "march", "mar", "jun", "dec", "sep", "oct", "jan")
    before = text[: match.start("month")]
    if ambiguous and not (match["relation"] or _BEFORE_MONTH.search(before)):
        return []
    months = [_span_of(today, year, _month_number(word), None) for year in _recent_years(today)]
    return [span for span in months if span]


def _year(match: re.Match[str], text: str, today: datetime) -> list[Span]:
    start = today.replace(year=int(match["year"]), month=1, day=1)
    return [_span(start, start.replace(year=start.year + 1))]


def _ago(match: re.Match[str], text: str, today: datetime) -> list[Span]:
    """Reads a span as precise as its unit: three weeks ago is a week, give or take a few days."""
    unit = match["unit"].lower()
    days = _amount(match) * {"day": 1, "week": 7, "month": 30, "year": 365}[unit]
    spread = {"day": 0, "week": 4, "month": 15, "year": 183}[unit]
    middle = today - timedelta(days=days)
    return [_span(middle - timedelta(days=spread), middle + timedelta(days=spread + 1))]


def _past(match: re.Match[str], text: str, today: datetime) -> list[Span]:
    days = _amount(match) * {"day": 1, "week": 7, "month": 31, "year": 366}[match["unit"].lower()]
    return [_span(today - timedelta(days=days), today + timedelta(days=1))]


def _this(match: re.Match[str], text: str, today: datetime) -> list[Span]:
    start = _start_of(match["unit"].lower(), today)
    if match["which"].lower() == "this":
        return [_span(start, today + timedelta(days=1))]
    return [_span(_start_of(match["unit"].lower(), start - timedelta(days=1)), start)]


def _weekday(match: re.Match[str], text: str, today: datetime) -> list[Span]:
    """The last one before today."""
    back = (today.weekday() - _DAYS.index(match["weekday"].lower()) - 1) % 7 + 1
    start = today - timedelta(days=back)
    return [_span(start, start + timedelta(days=1))]


def _near(match: re.Match[str], text: str, today: datetime) -> list[Span]:
    word = match["near"].lower()
    back, length = {
        "the day before yesterday": (2, 1),
        "yesterday": (1, 1),
        "last night": (1, 1),
        "recently": (14, 15),
        "lately": (14, 15),
    }.get(word, (0, 1))
    start = today - timedelta(days=back)
    return [_span(start, start + timedelta(days=length))]


_READERS = {
    "date": _date, "month": _month, "year": _year, "ago": _ago, "past": _past, "this": _this,
    "weekday": _weekday, "near": _near,
}  # fmt: skip


def _amount(match: re.Match[str]) -> int:
    word = match["amount"].lower()
    return _NUMBERS.get(word) or int(word)


def _month_number(word: str) -> int:
    if word.isdecimal():
        return int(word)
    return next(at for at, name in enumerate(_MONTHS, 1) if name[:3] == word[:3].lower())


def _recent_years(today: datetime) -> list[int]:
    return list(range(today.year - YEARS_BACK, today.year + 1))


def _span_of(today: datetime, year: int, month: int, day: int | None) -> Span | None:
    try:
        start = today.replace(year=year, month=month, day=day or 1)
    except ValueError:
        return None  # 29 February
    if day is not None:
        return _span(start, start + timedelta(days=1))
    return _span(start, _start_of("month", start + timedelta(days=32)))


def _start_of(unit: str, day: datetime) -> datetime:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def _span(since: datetime, until: datetime) -> Span:
    return Span(int(since.timestamp() * 1000), int(until.timestamp() * 1000))
