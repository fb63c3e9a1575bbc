"""Whether a candidate can be the title of a turn, with what it needs before it.

A title is read alone, weeks later: it names a component and says something of it. What was written
as a title does; a clause of the conversation often names nothing, tells a step of the work, or a
scenario.
"""

from collections.abc import Iterator
from dataclasses import replace

from claude_mem.observer.local import cues
from claude_mem.observer.local.predicates import (
    has_predicate,
    has_vague_subject,
    is_named_first,
    is_proposal,
    starts_with_gerund,
    tells_change,
    tells_process,
    tells_work,
)
from claude_mem.observer.local.title_checks import (
    is_anchored,
    is_clear_remark,
    is_draft_title,
    is_inquiry,
    is_supposed,
    lacks_subject,
    without_label,
)
from claude_mem.observer.local.title_types import SPOKEN, TITLES, Clarity, TitleCandidate
from claude_mem.observer.local.titles import LONGEST_TITLE, as_title
from claude_mem.title_rules import (
    NAME,
    count_words,
    is_complete,
    names_in,
    names_subject,
    specific_words,
)

MOST_OF_SENTENCE, LONGEST_SENTENCE = 20, 130  # words and characters of a sentence that is not cut
FEWEST_SPOKEN = 4  # of a clause of the conversation; what was written as a title may be shorter
FEWEST_SPECIFIC = 3  # names and specific words of a clause of the conversation
FEWEST_WITHOUT_NAME = 4  # specific words of a clause without a name
MOST_BEFORE_SUBJECT = 12  # words of a title that gets a subject although it has one
PROPOSAL = "Proposal"


def completed(
    candidate: TitleCandidate, subject: str, *, has_edits: bool, is_english: bool
) -> Iterator[TitleCandidate]:
    """The title, and the same with its place or the subject of the turn before it; only the latter
    where it has no subject of its own."""
    if (title := _checked(candidate, has_edits=has_edits, is_english=is_english)) is None:
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
        if place and is_short and not is_proposed and (named := _with_subject(title, place)):
            yield named
    # The name of a file says little before words that say nothing: "summary of changes".
    elif not has_subject and not cues.IMPERATIVE.match(text):
        return
    elif subject:
        if named := _with_subject(title, subject):
            yield named
    elif len(specific_words(text)) >= FEWEST_WITHOUT_NAME and not lacks_subject(text):
        is_clear = title.clarity == "clear" and len(specific_words(text)) > FEWEST_WITHOUT_NAME
        yield title if is_clear else _at_most_passable(title)


def _at_most_passable(title: TitleCandidate) -> TitleCandidate:
    return replace(title, clarity="passable") if title.clarity == "clear" else title


def _checked(
    candidate: TitleCandidate, *, has_edits: bool, is_english: bool
) -> TitleCandidate | None:
    if candidate.is_question and not candidate.names:
        return None
    is_spoken = candidate.source in SPOKEN
    text = without_label(candidate.text) if is_english else candidate.text
    text = as_title(text, LONGEST_SENTENCE if is_spoken else LONGEST_TITLE)
    if not text or not is_complete(text, is_english=is_english):
        return None
    if is_spoken and count_words(text) < FEWEST_SPOKEN:
        return None
    if not is_english:
        has_subject = names_subject(text, is_english=False)
        return replace(candidate, text=text) if has_subject else None
    if not is_draft_title(text):
        return None
    return replace(candidate, text=text, clarity=_clarity(candidate, text, has_edits))


def _clarity(candidate: TitleCandidate, text: str, has_edits: bool) -> Clarity:
    source = candidate.source
    if source in TITLES:
        return "clear"
    if is_inquiry(text):
        return "unclear"
    if source == "request":
        is_work = tells_work(text) and has_edits and is_clear_remark(text)
        return "clear" if is_work else "unclear"
    if source not in SPOKEN:
        return "clear" if tells_work(text) or has_predicate(text) else "unclear"
    if not _says_something(candidate, text):
        return "unclear"
    is_doubtful = (
        starts_with_gerund(text)
        or tells_process(text)
        or has_vague_subject(text)
        or is_supposed(text)
        or (source == "statement" and has_edits and not _tells_result(text))
    )
    return "passable" if is_doubtful else "clear"


def _tells_result(text: str) -> bool:
    """Whether a remark before the end of the work tells what came of it, or why."""
    return tells_change(text) or cues.CHANGE.matches(text) or cues.CAUSE.matches(text)


def _says_something(candidate: TitleCandidate, text: str) -> bool:
    """Whether a clause of the conversation tells more than a name, a scenario or an order."""
    if "→" in text and not tells_change(text):
        return False
    if candidate.cut == "later clause" and not is_named_first(text):
        return False
    if not (has_predicate(text) or lacks_subject(text) or has_predicate(candidate.place)):
        return False
    # The last, because it takes the longest.
    return _details(text) >= FEWEST_SPECIFIC and is_clear_remark(text)


def _details(text: str) -> int:
    """How many names and specific words it has."""
    names = names_in(text)
    rest = NAME.sub(" ", text) if names else text
    return len(set(names)) + len(set(specific_words(rest)))


def _needs_subject(candidate: TitleCandidate, text: str) -> bool:
    """What was written as a title has its subject; a clause of the conversation may lack it."""
    if candidate.source not in SPOKEN:
        return False
    return lacks_subject(text) or not is_anchored(text) or not has_predicate(text)


def _with_subject(candidate: TitleCandidate, subject: str) -> TitleCandidate | None:
    text = candidate.text
    if count_words(text) >= MOST_OF_SENTENCE or subject.lower() in text.lower():
        return None
    text = as_title(f"{subject}: {lower_first(text)}", LONGEST_SENTENCE)
    return replace(candidate, text=text, cut="subject") if text else None


def _is_proposed(candidate: TitleCandidate, has_edits: bool) -> bool:
    """Whether an answer tells a change that nobody made."""
    is_answer = candidate.source in ("final", "statement", "report", "emphasis")
    return is_answer and not has_edits and is_proposal(candidate.text)


def _as_proposal(candidate: TitleCandidate) -> TitleCandidate | None:
    text = as_title(f"{PROPOSAL}: {lower_first(candidate.text)}", LONGEST_SENTENCE)
    return replace(candidate, text=text) if text else None


def lower_first(text: str) -> str:
    """Names keep their capitals: a second one tells them apart, within the word or after it."""
    first, _, rest = text.partition(" ")
    is_name = first[1:] != first[1:].lower() or rest[:1].isupper()
    return text if is_name else text[0].lower() + text[1:]
