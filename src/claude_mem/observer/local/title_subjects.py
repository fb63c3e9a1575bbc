"""What a title is about: the title itself says it, or a name is put before it.

A title is read alone, weeks later. What was written as a title names its subject; a clause of the
conversation often does not, because everybody knew it.
"""

from collections.abc import Iterator

from claude_mem.observer.local import cues
from claude_mem.observer.local.predicates import has_predicate, is_proposal
from claude_mem.observer.local.title_signs import (
    addresses_someone,
    is_anchored,
    lacks_subject,
    without_label,
)
from claude_mem.observer.local.title_types import SPOKEN, TitleCandidate
from claude_mem.observer.local.titles import LONGEST_TITLE, as_title
from claude_mem.title_rules import count_words, is_complete, names_subject, specific_words

MOST_OF_SENTENCE, LONGEST_SENTENCE = 20, 130  # words and characters of a sentence that is not cut
FEWEST_SPOKEN = 4  # of a clause of the conversation; what was written as a title may be shorter
FEWEST_WITHOUT_NAME = 4  # specific words of a clause without a name
MOST_BEFORE_SUBJECT = 12  # words of a title that gets a subject although it has one
PROPOSAL = "Proposal"


def with_subject(
    candidate: TitleCandidate, subject: str, *, has_edits: bool, is_english: bool
) -> Iterator[TitleCandidate]:
    """The title, and the same with its place or the subject of the turn before it; only the latter
    where it has no subject of its own. Nothing if it is no complete clause."""
    if (title := _checked(candidate, is_english=is_english)) is None:
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
    elif subject:
        if named := _after(subject, title):
            yield named
    elif len(specific_words(text)) >= FEWEST_WITHOUT_NAME and not lacks_subject(text):
        yield title


def _checked(candidate: TitleCandidate, *, is_english: bool) -> TitleCandidate | None:
    if candidate.is_question and not candidate.names:
        return None
    is_spoken = candidate.source in SPOKEN
    text = without_label(candidate.text) if is_english else candidate.text
    text = as_title(text, LONGEST_SENTENCE if is_spoken else LONGEST_TITLE)
    if not text or "?" in text or "://" in text or not is_complete(text, is_english=is_english):
        return None
    if is_spoken and count_words(text) < FEWEST_SPOKEN:
        return None
    if is_english:
        return None if addresses_someone(text) else candidate._replace(text=text)
    has_subject = names_subject(text, is_english=False)
    return candidate._replace(text=text) if has_subject else None


def _needs_subject(candidate: TitleCandidate, text: str) -> bool:
    """What was written as a title has its subject; a clause of the conversation may lack it."""
    if candidate.source not in SPOKEN:
        return False
    return lacks_subject(text) or not is_anchored(text) or not has_predicate(text)


def _after(subject: str, candidate: TitleCandidate) -> TitleCandidate | None:
    text = candidate.text
    if count_words(text) >= MOST_OF_SENTENCE or subject.lower() in text.lower():
        return None
    if addresses_someone(subject):
        return None
    text = as_title(f"{subject}: {lower_first(text)}", LONGEST_SENTENCE)
    return candidate._replace(text=text, cut="subject") if text else None


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
