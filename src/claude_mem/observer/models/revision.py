"""Merges a model's reply into the draft, field by field: a field that the reply leaves empty keeps
the draft's value. The result, without secrets, replaces the draft in the store."""

import re
from dataclasses import dataclass, fields, is_dataclass, replace
from html import unescape
from typing import Any, TypeVar

from claude_mem.observer.local.provenance import with_outside_words
from claude_mem.observer.models.failures import UnusableReply
from claude_mem.observer.models.model import Reply
from claude_mem.observer.models.prompts import PROMPT_VERSION
from claude_mem.observer.models.replies import Parsed, PartialObservation, parse_reply
from claude_mem.observer.models.reply_evidence import check_reply
from claude_mem.observer.models.reply_facts import check_claims
from claude_mem.redaction import Redactor
from claude_mem.text import shorten
from claude_mem.title_rules import without_topics
from claude_mem.types import Distillate, Observation, Summary, Turn

MAX_DERIVED_TITLE_CHARS = 80
MIN_SHARED_WORDS = 0.25  # of the shorter text: below, two observations are about different things
STATUS, REJECTED = "Status: ", "Rejected: "
DONE = "done"  # what an observation is without a status
_WORD = re.compile(r"\w{3,}")
_QUOTE = re.compile(r"&(?:quot|apos|#0?3[49]|#x2[27]);")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Revision:
    distillate: Distillate
    kept_reply: str | None  # if the memories do not hold all of it; what was dropped, if only that
    skip_reason: str = ""  # why it has no summary


def revise_draft(
    turn: Turn, draft: Distillate, reply: Reply, observer: str, redactor: Redactor
) -> Revision:
    """Raises UnusableReply if the reply contains no memory.

    Secrets are removed before and after parsing, which unescapes characters.
    """
    reply = replace(reply, text=_redact_markup(redactor, reply.text))
    parsed = parse_reply(reply.text)
    if not parsed.is_usable:
        is_empty = not reply.text.strip()
        message = "the reply is empty" if is_empty else "the reply contains no memory"
        raise UnusableReply(message, reply.text)
    # A sentence that is dropped may be what shows that the next one is a secret.
    parsed.observations = [_redact(redactor, observation) for observation in parsed.observations]
    parsed.summary = _redact(redactor, parsed.summary)
    dropped = check_reply(turn, draft, parsed)
    if not parsed.is_usable:
        raise UnusableReply("the turn shows nothing of what the reply says", reply.text)
    if draft.model is not None:
        draft = _with_later_events(draft, turn)
    claims = check_claims(turn, parsed.rules, parsed.artifacts)
    distillate = replace(
        merge(draft, parsed),
        facts=claims.facts,  # the draft's own are stored already
        observer=observer,
        model=reply.model,
        prompt_version=PROMPT_VERSION,
    )
    distillate = with_outside_words(turn, distillate)
    kept_reply = "\n".join(dropped) or None  # without secrets already
    if parsed.unplaced or claims.unproven:
        kept_reply = redact_reply(redactor, reply.text)
    return Revision(
        _redact(redactor, distillate),
        kept_reply,
        redactor.redact(parsed.skip_reason),
    )


def merge(draft: Distillate, parsed: Parsed) -> Distillate:
    if parsed.observations:
        observations = _merge_observations(draft, parsed.observations)
    elif parsed.no_observations and draft.model is None:
        observations = ()
    else:  # in a turn that was revised before, "no observation" means no further one
        observations = draft.observations
    return replace(
        draft,
        summary=_merge_summary(draft.summary, parsed.summary or Summary()),
        observations=observations,
        title=draft.title or next((o.title for o in observations), None),
    )


def _merge_summary(draft: Summary, reply: Summary) -> Summary:
    return replace(
        draft,
        request=reply.request or draft.request,
        investigated=reply.investigated or draft.investigated,
        learned=reply.learned or draft.learned,
        completed=reply.completed or draft.completed,
        next_steps=reply.next_steps or draft.next_steps,
        files_read=reply.files_read or draft.files_read,
        files_edited=reply.files_edited or draft.files_edited,
        notes=reply.notes or draft.notes,
    )


def _merge_observations(
    draft: Distillate, replies: list[PartialObservation]
) -> tuple[Observation, ...]:
    pairs, sources = _pair(draft.observations, replies), _sources(draft)
    return tuple(
        _merge_observation(
            draft.observations[pairs[index]] if index in pairs else None, reply, sources
        )
        for index, reply in enumerate(replies)
    )


def _merge_observation(
    draft: Observation | None, reply: PartialObservation, sources: tuple[int, ...]
) -> Observation:
    draft = draft or Observation("change")
    return Observation(
        type=reply.type or draft.type,
        title=reply.title or draft.title or _derived_title(reply),
        subtitle=reply.subtitle or draft.subtitle,
        narrative=reply.narrative or draft.narrative,
        facts=_merge_facts(draft, reply),
        concepts=reply.concepts or draft.concepts,
        files_read=reply.files_read or draft.files_read,
        files_modified=reply.files_modified or draft.files_modified,
        sources=sources,
    )


def _merge_facts(draft: Observation, reply: PartialObservation) -> tuple[str, ...]:
    """A status and rejected ways are facts as well; alone, they do not replace the draft's."""
    facts = reply.facts or draft.facts
    if reply.status:
        facts = tuple(fact for fact in facts if not fact.startswith(STATUS))
    status = reply.status.strip(" .").lower() if reply.status else DONE
    stated = (f"{STATUS}{reply.status}",) if status != DONE else ()
    rejected = (way if way.startswith(REJECTED) else REJECTED + way for way in reply.rejected)
    return tuple(dict.fromkeys((*stated, *facts, *rejected)))


def _derived_title(reply: PartialObservation) -> str:
    texts = (reply.subtitle, reply.narrative, *reply.facts, *reply.rejected)
    text = next((text for text in texts if text), "") or _title_without_text(reply)
    return shorten(text.splitlines()[0], MAX_DERIVED_TITLE_CHARS)


def _title_without_text(reply: PartialObservation) -> str:
    """Makes a title for a block that has only a type, concepts or files."""
    if reply.files_modified:
        return f"Changed {', '.join(reply.files_modified)}"
    if reply.files_read:
        return f"Read {', '.join(reply.files_read)}"
    type_ = (reply.type or "change").capitalize()
    return f"{type_}: {', '.join(reply.concepts)}" if reply.concepts else type_


def _pair(drafts: tuple[Observation, ...], replies: list[PartialObservation]) -> dict[int, int]:
    """Which observation of the draft each one of the reply revises, as indices.

    Where both have a single observation, it is that one. Otherwise those with the same title, then
    those with the most words in common.
    """
    if len(drafts) == len(replies) == 1:
        return {0: 0}
    draft_words = [_words(o.title, o.subtitle, o.narrative, *o.facts) for o in drafts]
    reply_words = [_words(o.title, o.subtitle, o.narrative, *o.facts) for o in replies]
    scores = [
        (
            _has_title(draft, reply.title) or _overlap(draft_words[draft_index], words),
            reply_index,
            draft_index,
        )
        for reply_index, (reply, words) in enumerate(zip(replies, reply_words, strict=True))
        for draft_index, draft in enumerate(drafts)
    ]
    pairs: dict[int, int] = {}
    for score, reply_index, draft_index in sorted(scores, key=lambda entry: -entry[0]):
        is_free = reply_index not in pairs and draft_index not in pairs.values()
        if is_free and score >= MIN_SHARED_WORDS:
            pairs[reply_index] = draft_index
    return pairs


def _has_title(draft: Observation, title: str | None) -> bool:
    if not (title and draft.title):
        return False
    return without_topics(title).casefold() == without_topics(draft.title).casefold()


def _overlap(first: set[str], second: set[str]) -> float:
    return len(first & second) / max(1, min(len(first), len(second)))


def _words(*texts: str | None) -> set[str]:
    return {word for text in texts if text for word in _WORD.findall(text.casefold())}


def _with_later_events(draft: Distillate, turn: Turn) -> Distillate:
    """Adds the later events of a turn that went on to the sources: the model has seen them, whether
    or not the draft, which is mostly its own earlier revision, mentions them."""
    sources = _sources(draft)
    later = [event.id for event in turn.events if event.id > max(sources, default=0)]
    return replace(draft, summary=replace(draft.summary, sources=(*sources, *later)))


def _sources(draft: Distillate) -> tuple[int, ...]:
    ids = (*draft.summary.sources, *(id_ for o in draft.observations for id_ in o.sources))
    return tuple(dict.fromkeys(ids))


def _redact_markup(redactor: Redactor, text: str) -> str:
    """Tags stay tags; quotes, which show where a value ends, are unescaped."""
    return redactor.redact(_QUOTE.sub(lambda quote: unescape(quote[0]), text))


def redact_reply(redactor: Redactor, text: str) -> str:
    """Redacts a reply, unescaped if only that shows a secret."""
    redacted = _redact_markup(redactor, text)
    unescaped = unescape(redacted)
    without = redactor.redact(unescaped)
    return redacted if without == unescaped else without


def _redact(redactor: Redactor, value: T) -> T:
    """The same, with every text in it redacted."""
    changed: Any = value
    if isinstance(value, str):
        changed = redactor.redact(value)
    elif isinstance(value, tuple):
        changed = tuple(_redact(redactor, item) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        items = {field.name: getattr(value, field.name) for field in fields(value)}
        changed = replace(value, **{name: _redact(redactor, item) for name, item in items.items()})
    return changed  # type: ignore[no-any-return]
