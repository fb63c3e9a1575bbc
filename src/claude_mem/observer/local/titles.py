"""Titles from plans, commits, sentences and requests, a complete clause and never part of one; and
from the edits themselves."""

import re
from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple, get_args

from claude_mem.observer.local import cues
from claude_mem.observer.local.clause_grammar import has_predicate, is_proposal, tells_means
from claude_mem.observer.local.empty_phrases import is_empty_phrase, without_opening
from claude_mem.observer.local.lasting_titles import says_nothing_lasting
from claude_mem.observer.local.markdown import sentences, width, without_markup
from claude_mem.observer.local.title_references import refers_to_unnamed
from claude_mem.observer.local.title_signs import (
    LONGEST_PLACE,
    addresses_someone,
    has_definite_stand_in,
    is_anchored,
    is_document,
    lacks_subject,
    only_labels,
    refers_outside,
    without_label,
)
from claude_mem.observer.local.tool_uses import FileWork, file_name
from claude_mem.title_rules import (
    count_words,
    is_balanced,
    is_complete,
    names_subject,
    specific_words,
)

LONGEST_TITLE, LONGEST_PLAN_TITLE = 100, 150
SHORTEST_TITLE = 8
LONGEST_EDIT = 150
MOST_NAMES = 2  # of what an edit defines
READ_END = 12  # characters: the longest word with which no title ends
MIN_WORDS = 3  # of a sentence; a request may be shorter

_PLAN_PREFIX = re.compile(
    r"^(?:implementation )?(?:plan|task|proposal|spec|design)\s{0,3}(?:[:—–-]{1,3}|for|to)\s+",
    re.IGNORECASE,
)
_CONVENTIONAL = re.compile(r"^[a-z]{1,20}(?:\([^)]{0,60}\))?!?:\s+")
_ABOUT_A_FILE = re.compile(
    r"`[^`]{0,120}[./][^`]{1,120}`(?:\s\([^)]{0,60}\))?\s*(?:[:—–-]|→)+\s*(?=\S)"
)
# Labels before a sentence.
_LABEL = re.compile(
    r"(?:root cause|cause|fix|the fix|solution|problem|issue|result|answer|note|important|summary"
    r"|what changed|changes?|update|ursache|lösung|cause racine|correction)\s*[:：]\s*",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:the (?:fix|change|issue|problem|bug|root cause|cause|reason|solution|answer) (?:is|was)"
    r"(?: now| very)?(?: simple| done| complete| straightforward| in place)?\s*(?:[:—–]\s*|that\s+)"
    r"|the (?:\w+ )?(?:approach|fix|solution|option|way|idea) (?:is|would be) to\s+"
    r"|(?:i|we)(?:'ve| have)?\s+(?:now\s+|also\s+|just\s+|successfully\s+)*"
    r"(?=[a-z]+ed\b|made|built|wrote|set|split|put|found|rewrote))",
    re.IGNORECASE,
)
# The text before one of these is a complete clause;
_STRONG_END = r"(?<!\s)\s++[—–]++\s+|;\s+|[.!?]\s+|[；。]"
# also before one of these, unless it starts with a conjunction.
_WEAK_END = (
    r"，|,\s+(?:which|so|but|because|since|where|while|causing|making|ensuring|and (?:the|it|now)"
    r"|aber|sodass|weil|mais|donc|car|pero|porque)\b"
    r"|(?<!\s)\s++(?:so that|because|in order to|instead of|rather than|sodass|weil|parce que)\b"
)
_MAIN_CLAUSE_END = re.compile(_STRONG_END)
_CLAUSE_END = re.compile(f"{_STRONG_END}|{_WEAK_END}")
_ASIDE = re.compile(r"\s\([^()]{0,200}\)")
_ENDS_OPEN = re.compile(
    r"(?:\b(?:the|a|an|of|to|in|on|at|for|with|and|or|from|by|is|are|was|so that|that|includes?"
    r"|including|contain(?:s|ing)?|covers?|covering|follows|following|shows?|like|as|reads|says)|[,:(])$"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# First words of sentences that refer to the one before: not understandable alone.
_REFERRING = _words(
    "this that these those it its it's they he she but and so or otherwise previously however also"
    " both either there here before: after: need needs still then such same another again was were"
    " is are now has you"
)
# Conjunctions that start a subordinate clause.
_SUBORDINATE = _words("when if since because while after before once although until unless")
# Requests that do not name their subject: "commit", "continue", "yes".
_BARE_REQUEST = re.compile(
    r"(?:(?:and|then|now|please|ok(?:ay)?)[\s,]{1,3}){0,3}"
    r"(?:(?:com+it?|push|continue|go on|go ahead|proceed|retry|clear|try again|fix it|do it|weiter"
    r"|mach das)\b[\w\s,.!@'/]{0,40}"
    r"|(?:ok(?:ay)?|yes|no|thanks?(?: you)?|again|please|next|done|great|perfect|cool|nice|sure|ja"
    r"|nein|danke|oui|non|merci|sí|gracias)\b[\w\s,!@']{0,25}[.!]*"
    r"|(?:继续|好的?|是的?|谢谢|提交|はい|続けて|ありがとう|نعم|شكرا)\W*)$",
    re.IGNORECASE,
)
_COMMIT_REQUEST = re.compile(
    r"(?:(?:and|then|now|please|ok(?:ay)?|great|perfect)[\s,.!]{1,3}){0,3}"
    r"(?:(?:re|git )?com+it?|push|release|tag|merge)\b",
    re.IGNORECASE,
)
_EMPTY_TITLE = re.compile(
    r"(?:the|this|a) (?:fix|change|issue|problem|bug|solution|root cause|reason|key|commit)s?"
    r"(?: (?:is|was|are|were))?(?: (?:simple|done|complete|straightforward|clear|here|in place"
    r"|(?:a )?(?:one|single)-\w+ \w+.*))?$|(?:both|all) .{0,30}\b(?:are|is|pass)"
    r"|(?:the|that) (?:other|same|first|second|last) (?:one|thing)s?$"
    r"|(?:\S+ )?fix(?:es)? for [\w-]+$"
    r"|no (?:additional|further|other|more) (?:changes?|work)\b",
    re.IGNORECASE,
)
# Reports of a problem, and questions: the answer makes a better title.
_REPORT = re.compile(
    r"(?:i|i've|i'm|i'd|we|it|it's|this|that|these|there|they|seems|looks? like|still|here|when|why"
    r"|what|how|which|where|who|are|is|do|does|did|should|not|wait|ok|now|but|so|great|warum|wie"
    r"|was|wo|pourquoi|comment|où|por qué|cómo)\b",
    re.IGNORECASE,
)
_FIRST_PERSON_AGENT = re.compile(r"\bI\b")
_FIRST_PERSON = re.compile(r"\b(?:i|i've|i'm|i'd|me|my|we've|we're)\b", re.IGNORECASE)
_POLITE = re.compile(
    r"(?:(?:please|can you|could you|would you|now|then|also|and|hey|hi|you (?:can|should|must)"
    r"|we (?:should|must|need to)|let's|bitte|kannst du|könntest du|peux-tu|pourrais-tu"
    r"|s'il te plaît|por favor|puedes|help me(?: to)?)[\s,]{1,3}){1,4}(?:please\s|bitte\s)?",
    re.IGNORECASE,
)
# What the user wishes follows.
_WISH = re.compile(
    r"(?:(?:ok(?:ay)?|now|so|then|and|also)[\s,]{1,3}){0,2}"
    r"(?:i|we)(?:'d| would)? (?:want|like|need)(?: you)? to\s+(?=\S)",
    re.IGNORECASE,
)
_FOR_ME = re.compile(r"^(\w{2,12}) me\b(?= \w)", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:,|\s[—–-])\s+(?:please|any ideas?|thanks?|fix (?:it|this)"
    r"|can you (?:fix|check) (?:it|this)|bitte|merci|corrige ça)\W*$",
    re.IGNORECASE,
)
# A name with an ending, or a path: not "i.e.", "I/O", "1/2" or "//nolint".
_FILE_IN_TEXT = re.compile(
    r"(?<!\bi)(?<!\be)(?<=\w)\.[a-z]{1,6}\b|(?<![\w/.-])[./~]{0,3}[\w.-]{2,}[/\\][\w.-]{2,}"
)
_LOWER_CASE_NAME = re.compile(r"[a-z]+[A-Z_./(0-9-]")


def from_plan(title: str) -> str:
    return as_title(_PLAN_PREFIX.sub("", title, count=1), LONGEST_PLAN_TITLE)


def from_commit(subject: str) -> str:
    return as_title(_CONVENTIONAL.sub("", subject, count=1))


def from_sentence(sentence: str, min_words: int = MIN_WORDS) -> str:
    """The main clause; empty if it is too long for a title."""
    text = without_lead(without_markup(sentence)).rstrip(".!?。！？:： ")
    if (
        _first_word(text) in _REFERRING
        or is_empty_phrase(text.lower())
        or _FIRST_PERSON_AGENT.search(text)
    ):
        return ""
    if len(text) > LONGEST_TITLE:
        text = _ASIDE.sub("", text)
    title = as_title(text) if len(text) <= LONGEST_TITLE else clause_of(text)
    return title if count_words(title) >= min_words else ""


def without_lead(text: str) -> str:
    """Without "Done." or "Root cause:" before the sentence itself, and without "I have"."""
    text = without_opening(text)
    for prefix in (_ABOUT_A_FILE, _LABEL, _LEAD):
        if (match := prefix.match(text)) and match.end() < len(text):
            text = text[match.end() :]
    return text


def file_before(text: str) -> str:
    """The name of the file that a sentence is about: "`src/lamp.py` — blinks now"."""
    match = _ABOUT_A_FILE.match(text)
    path = match[0].split("`")[1] if match else ""
    return file_name(path).partition(":")[0]


def clause_of(text: str, longest: int = LONGEST_TITLE) -> str:
    """The longest start of the text that is complete and short enough; empty if there is none."""
    ends = [end.start() for end in _CLAUSE_END.finditer(text[: longest + 20])]
    if _first_word(text) in _SUBORDINATE:
        # What ends before its main clause is no clause of its own.
        main = text.find(", ")
        strong = {end.start() for end in _MAIN_CLAUSE_END.finditer(text[: longest + 20])}
        ends = [end for end in ends if end in strong or 0 < main < end]
    for end in reversed(ends):
        if end <= longest and (title := as_title(text[:end], longest)):
            return title
    return ""


def from_request(text: str) -> str:
    """The first sentence, if it is short enough."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or is_bare_request(text):
        return ""
    line = _WISH.sub("", without_opening(lines[0]), count=1)
    if _REPORT.match(line):
        return ""
    sentence = sentences(line[: 4 * LONGEST_TITLE])[0]
    polite = _POLITE.match(sentence)
    first = _TAIL.sub("", sentence[polite.end() :] if polite else sentence)
    first = _FOR_ME.sub(r"\1", first)
    if len(first) > LONGEST_TITLE or _FIRST_PERSON.search(first):
        return ""
    return from_sentence(first, min_words=1)


def from_edits(files: Collection[FileWork]) -> str:
    """Which symbols or sections were added or removed, or which line became what; empty if the
    edits are too large to tell."""
    ordered = by_weight(files)
    for tell in (_definitions, _replacements):
        told = (f"{file_name(work.path)}: {text}" for work in ordered for text in tell(work))
        if title := next((title for title in told if len(title) <= LONGEST_EDIT), ""):
            return title
    return ""


def _definitions(work: FileWork) -> Iterator[str]:
    added = [name for name in work.added if name not in work.removed]
    removed = [name for name in work.removed if name not in work.added]
    if len(added) == len(removed) == 1:
        yield f"renamed `{removed[0]}` to `{added[0]}`"
    elif added:
        yield f"added {_listed(added)}"
    elif removed:
        yield f"removed {_listed(removed)}"
    yield from (f"added the section “{heading}”" for heading in work.added_headings)


def _replacements(work: FileWork) -> Iterator[str]:
    for before, after in work.replacements:
        if before.split() != after.split():  # else it was only formatted
            yield f"`{before}` became `{after}`"


def of_changed_files(files: Collection[FileWork]) -> str:
    created = all(work.created for work in files)
    return from_files([work.path for work in by_weight(files)], created=created)


def of_created_files(files: Collection[FileWork]) -> str:
    """Empty if one of them existed: that it was changed says nothing."""
    return of_changed_files(files) if all(work.created for work in files) else ""


def main_file(files: Collection[FileWork]) -> str:
    """The name of the file with the most edits; of a test only if nothing else was edited."""
    return file_name(max(files, key=lambda w: (not is_test(w.path), len(w.sources))).path)


def is_test(path: str) -> bool:
    return "test" in path.lower()


def by_weight(files: Collection[FileWork]) -> list[FileWork]:
    return sorted(files, key=lambda work: ("test" in work.path.lower(), -len(work.sources)))


def _listed(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:MOST_NAMES]]
    return " and ".join(shown) + (" and others" if len(names) > MOST_NAMES else "")


def from_files(paths: list[str], created: bool) -> str:
    names = list(dict.fromkeys(map(file_name, paths)))
    if not names:
        return ""
    verb = "Created" if created else "Changed"
    if len(names) <= 3:
        return f"{verb} " + " and ".join(", ".join(names).rsplit(", ", 1))
    return f"{verb} {names[0]}, {names[1]} and {len(names) - 2} more files"


def is_bare_request(text: str) -> bool:
    """Whether a request ("commit", "continue", "yes") does not name its subject."""
    text = text.strip()
    return bool(_BARE_REQUEST.match(text)) or width(text) < 6


def is_commit_request(text: str) -> bool:
    """Whether a request is only to commit or release earlier work."""
    return bool(_COMMIT_REQUEST.match(text.strip()))


def as_title(text: str, longest: int = LONGEST_TITLE) -> str:
    text = without_markup(text).strip(" .:;—–-'")
    if text.count('"') % 2:
        text = text.strip('"').strip(" .:;—–-'")
        if '"' in text:
            return ""  # cut within a quotation
    if width(text) < SHORTEST_TITLE or len(text) > longest or not is_balanced(text):
        return ""
    if _EMPTY_TITLE.match(text) or _ENDS_OPEN.search(text, max(0, len(text) - READ_END)):
        return ""
    return text[0].upper() + text[1:] if text[0].islower() and not _is_name(text) else text


def _first_word(text: str) -> str:
    return text[:40].split(" ", 1)[0].lower().rstrip(",")


def _is_name(text: str) -> bool:
    """Whether it starts with a name that is written in lower case."""
    return bool(_LOWER_CASE_NAME.match(text))


# What a text that may become a title is, and where it comes from.

TitleSource = Literal[
    "commit", "pull request", "request heading", "plan heading", "final heading", "emphasis",
    "subagent task", "task", "final", "request", "statement", "report", "announcement",
]  # fmt: skip
SOURCES: tuple[TitleSource, ...] = get_args(TitleSource)
# Written to be read alone; and what was said to somebody who knew the rest.
OF_REPOSITORY: tuple[TitleSource, ...] = ("commit", "pull request")  # written to be read alone
TITLES: tuple[TitleSource, ...] = (*OF_REPOSITORY, "request heading", "plan heading")
SPOKEN: tuple[TitleSource, ...] = (
    "final", "request", "statement", "report", "final heading", "emphasis", "announcement",
)  # fmt: skip
_SAID: tuple[TitleSource, ...] = ("final", "statement", "report", "announcement", "emphasis")
# How much of its text a candidate is.
Cut = Literal["all", "first clause", "later clause", "clauses", "start", "scope", "subject"]
CUTS: tuple[Cut, ...] = get_args(Cut)
UNCUT: tuple[Cut, ...] = ("all", "scope")
MAX_NAMES = 4  # that count


class TitleCandidate(NamedTuple):
    text: str
    source: TitleSource
    cut: Cut
    number: int  # among the texts of its source
    messages_after: int
    is_question: bool
    named_text: str  # where its names are counted: what it was cut from, if it is all of that
    place: str = ""  # the file, symbol or heading under which it was said

    @property
    def names(self) -> int:
        return cues.count_names(self.named_text, MAX_NAMES)


# What a title is about: the title itself says it, or a name is put before it.
#
# A title is read alone, weeks later. What was written as a title names its subject; a clause of
# the conversation often does not, because everybody knew it.

MOST_OF_SENTENCE, LONGEST_SENTENCE = 20, 130  # words and characters of a sentence that is not cut
FEWEST_SPOKEN = 4  # of a clause of the conversation; what was written as a title may be shorter
FEWEST_WITHOUT_NAME = 4  # specific words of a clause without a name
MOST_BEFORE_SUBJECT = 12  # words of a title that gets a subject although it has one
PROPOSAL = "Proposal"
DEFINITE_NOUN = re.compile(r"the ([a-z]{3,})\b", re.IGNORECASE)


def with_subject(
    candidate: TitleCandidate, subject: str, *, has_edits: bool, is_english: bool
) -> Iterator[TitleCandidate]:
    """The title, and the same with its place or the subject of the turn before it; only the latter
    where it has no subject of its own. Nothing if it is no complete clause, or if it refers to what
    only the conversation has named."""
    named = _named(candidate, subject, has_edits=has_edits, is_english=is_english)
    if not is_english or candidate.source not in SPOKEN:
        yield from named
        return
    yield from (title for title in named if not refers_to_unnamed(title.text))


def _named(
    candidate: TitleCandidate, subject: str, *, has_edits: bool, is_english: bool
) -> Iterator[TitleCandidate]:
    title = _checked(candidate, has_edits=has_edits, is_english=is_english)
    if title is None:
        return
    if not is_english:
        yield title
        return
    text = title.text
    has_subject = names_subject(text, is_english=True)
    subject = title.place or subject
    if has_subject and not _needs_subject(title, text):
        is_proposed = _is_proposed(title, has_edits)
        if whole := _as_proposal(title) if is_proposed else title:
            yield whole
        is_short = title.source in SPOKEN and count_words(text) <= MOST_BEFORE_SUBJECT
        # A symbol that an answer repeats is a guess; a file that was edited is not.
        place = subject if title.place or has_edits else ""
        if place and is_short and not is_proposed and (named := _after(place, title)):
            yield named
    # The name of a file says little before words that say nothing: "summary of changes".
    elif not has_subject and not cues.IMPERATIVE.match(text):
        return
    elif subject and _names_its_place(text, subject):
        yield title
    elif subject:
        if named := _after(subject, title):
            yield named
    elif (
        len(specific_words(text)) >= FEWEST_WITHOUT_NAME
        and not lacks_subject(text)
        and (is_anchored(text) or not has_definite_stand_in(text))
    ):
        yield title


def _names_its_place(text: str, subject: str) -> bool:
    """Whether a text of a definite thing names its place: "The horn … in horn.py"."""
    definite = DEFINITE_NOUN.match(text)
    name = subject.lower()
    return definite is not None and definite[1].lower() in name and name in text.lower()


def _checked(
    candidate: TitleCandidate, *, has_edits: bool, is_english: bool
) -> TitleCandidate | None:
    if candidate.is_question and not candidate.names:
        return None
    is_spoken = candidate.source in SPOKEN
    text = without_label(candidate.text) if is_english else candidate.text
    text = _without_second_label(text) if is_english and is_spoken else text
    text = as_title(text, LONGEST_SENTENCE if is_spoken else LONGEST_TITLE)
    if not text or "?" in text or "://" in text or not is_complete(text, is_english=is_english):
        return None
    if is_spoken and count_words(text) < FEWEST_SPOKEN:
        return None
    if is_english and is_spoken and (refers_outside(text) or only_labels(text)):
        return None
    if is_english and candidate.source not in OF_REPOSITORY:
        texts = (candidate.text, text)  # perhaps without its label: "Left alone: …"
        if any(says_nothing_lasting(each, has_edits=has_edits) for each in texts):
            return None
    if is_english:
        return None if addresses_someone(text) else candidate._replace(text=text)
    has_subject = names_subject(text, is_english=False)
    return candidate._replace(text=text) if has_subject else None


def _needs_subject(candidate: TitleCandidate, text: str) -> bool:
    """What was written as a title has its subject; a clause of the conversation may lack it."""
    if candidate.source not in SPOKEN:
        return False
    is_known = is_anchored(text) and not has_definite_stand_in(text)
    return lacks_subject(text) or tells_means(text) or not is_known or not has_predicate(text)


def _after(subject: str, candidate: TitleCandidate) -> TitleCandidate | None:
    text = candidate.text
    if count_words(text) >= MOST_OF_SENTENCE or subject.lower() in text.lower():
        return None
    # A document may be about anything: its name does not tell what the clause is about.
    if addresses_someone(subject) or (is_document(subject) and not is_anchored(text)):
        return None
    text = _without_second_label(f"{subject.rstrip(' :-–—')}: {lower_first(text)}")
    text = as_title(text, LONGEST_SENTENCE)
    return candidate._replace(text=text, cut="subject") if text else None


def names_file(title: str) -> bool:
    return _FILE_IN_TEXT.search(title) is not None


def after_file(candidate: TitleCandidate, files: Collection[FileWork]) -> str:
    """A clause that was said in a turn with edits, after the file they are about: readers asked
    where it belongs even where it names a symbol."""
    text = candidate.text
    if candidate.source not in _SAID or not files or ": " in text or names_file(text):
        return text
    file = main_file(files)
    if file.partition(".")[0].lower() in text.lower():
        return text
    placed = _after(file, candidate)
    return placed.text if placed is not None else text


def _without_second_label(title: str) -> str:
    """ "Lamps: Winter: both may burn" is a line of an outline: of its labels, the first remains."""
    label, _, statement = title.partition(": ")
    second, _, rest = statement.partition(": ")
    labels = (label, second)
    is_outline = all(len(text.split()) <= LONGEST_PLACE and "`" not in text for text in labels)
    return f"{label}: {lower_first(rest)}" if rest and is_outline else title


def _is_proposed(candidate: TitleCandidate, has_edits: bool) -> bool:
    """Whether an answer tells a change that nobody made."""
    is_answer = candidate.source in ("final", "statement", "report", "emphasis")
    return is_answer and not has_edits and is_proposal(candidate.text)


def _as_proposal(candidate: TitleCandidate) -> TitleCandidate | None:
    text = as_title(f"{PROPOSAL}: {lower_first(candidate.text)}", LONGEST_SENTENCE)
    return candidate._replace(text=text) if text else None


def lower_first(text: str) -> str:
    """Names keep their capitals: a second one tells them apart, within the word or after it."""
    first, _, rest = text.partition(" ")
    is_name = first[1:] != first[1:].lower() or rest[:1].isupper()
    return text if is_name else text[0].lower() + text[1:]
