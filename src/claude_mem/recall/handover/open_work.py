"""Work that earlier sessions left open, as far as nothing later is about it."""

import re
from collections.abc import Iterator, Sequence

from claude_mem.recall.handover.digests import SessionDigest
from claude_mem.recall.handover.lines import (
    QUESTION_MARKS,
    Line,
    content_words,
    flat,
    is_about,
)
from claude_mem.store.summary_json import open_steps_from

MAX_STEPS = 3
_TO_THE_USER = re.compile(r"\b(?:you|your|whenever|ready|let me know)\b", re.IGNORECASE)
LAPSES_AFTER = 6  # sessions
RELATED = 0.3  # share of a step's words in a later text from which it may be done


def left_open(
    sessions: Sequence[SessionDigest], without: SessionDigest | None = None
) -> Iterator[Line]:
    """Of the last turn of a session; the next turn would have taken it up. The latest first.

    `without` is the session whose steps are told with it.
    """
    count = 0
    for position, session in enumerate(sessions[:LAPSES_AFTER]):
        if session is without:
            continue
        for step in open_steps_from(session.turns[-1].summary["open_steps"]):
            is_offer = step.text.rstrip().endswith(QUESTION_MARKS) or _TO_THE_USER.search(step.text)
            if is_offer or count == MAX_STEPS or _is_taken_up(step.text, sessions[:position]):
                continue
            count += 1
            yield Line(flat(f"- {session.day} {step.text}"), subject=step.text)


def _is_taken_up(step: str, later: Sequence[SessionDigest]) -> bool:
    words = content_words(step)
    for session in later:
        for turn in session.turns:
            texts = [result.text for result in turn.results]
            texts += [str(turn.summary[name] or "") for name in ("request", "completed")]
            if any(_shares(words, content_words(text)) for text in texts):
                return True
    return False


def _shares(words: frozenset[str], later: frozenset[str]) -> bool:
    return is_about(words, later) or len(words & later) >= max(3, RELATED * len(words))
