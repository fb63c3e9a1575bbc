"""The observer without a model: it selects from what the user, the agent and its tools wrote.

Deterministic. What was said in a turn is split into passages; learned weights tell which of them
are worth keeping, which text makes the best title, and whether the turn is worth an observation.
"""

from collections.abc import Iterator
from itertools import chain

from claude_mem.observer import LOCAL
from claude_mem.observer.local import titles
from claude_mem.observer.local.content_words import content_words
from claude_mem.observer.local.edit_titles import from_edits
from claude_mem.observer.local.facts import propose_facts
from claude_mem.observer.local.memory_texts import build_observations, build_summary, says_more_than
from claude_mem.observer.local.obstacles import find_obstacles
from claude_mem.observer.local.open_steps import with_open_steps
from claude_mem.observer.local.provenance import with_outside_words
from claude_mem.observer.local.rules import proposed_rules, rule_observations
from claude_mem.observer.local.scored_turn import (
    DETAILS,
    ScoredTurn,
    score_turn,
    select_passages,
    tells_stopped_commit,
)
from claude_mem.observer.local.title_candidates import announced_changes
from claude_mem.observer.local.version import VERSION
from claude_mem.title_rules import count_words, is_complete
from claude_mem.types import Distillate, Turn, Verbosity

FEWEST_TOLD = 4  # words of a message that tells more than the names of files


def distil(turn: Turn, verbosity: Verbosity = "normal") -> Distillate:
    detail = DETAILS[verbosity]
    scored = score_turn(turn, detail)
    passages = select_passages(scored, detail)
    title = turn_title(scored)
    observations = build_observations(scored, passages, title)
    observed = "\n".join(observation.text for observation in observations)
    summary = with_open_steps(build_summary(scored, passages, title, observed), turn)
    # What was asked stays the same while a turn goes on; what came of it does not.
    session_title = request_title(scored) or title
    has_subtitle = says_more_than(session_title, content_words(summary.completed or ""))
    distillate = Distillate(
        summary=summary,
        observations=(*observations, *rule_observations(turn.prompt or "")),
        title=session_title or None,
        subtitle=summary.completed if has_subtitle else None,
        observer=LOCAL,
        version=VERSION,
        facts=(
            *proposed_rules(turn.prompt or ""),
            *propose_facts(turn),
            *find_obstacles(turn),
        ),
    )
    return with_outside_words(turn, distillate)


def turn_title(scored: ScoredTurn) -> str:
    """The first title that no previous turn of the session has; empty if there is none."""
    previous = {text.partition("\n")[0].lower() for text in scored.recent_memories}
    ranked = [candidate.text for candidate in scored.titles]
    if titles.is_commit_request(scored.evidence.request.text):
        ranked.sort(key=lambda text: not tells_stopped_commit(text))  # rather than what it commits
    choices = ranked if scored.is_english else _by_structure(scored)
    evidence = scored.evidence
    announced = announced_changes(evidence) if scored.is_english and evidence.files else ()
    is_told = scored.is_english and count_words(evidence.final) >= FEWEST_TOLD
    of_edits = from_edits(evidence.files.values(), is_told=is_told)
    every = chain(choices, announced, [of_edits])
    return next((title for title in every if title.lower() not in previous), "")


def _by_structure(scored: ScoredTurn) -> Iterator[str]:
    """What was written as a title, then the request, then the first words of the answer."""
    request = scored.evidence.request
    written = [
        candidate.text
        for candidate in scored.titles
        if candidate.source in ("commit", "pull request", "request heading", "plan heading")
        and candidate.cut == "all"
    ]
    said = [c.text for c in scored.candidates if c.origin == "final" and c.passage.kind == "prose"]
    for title in (
        titles.from_plan(request.plan_title),
        *written,
        titles.from_request(request.text),
        *map(titles.from_sentence, said),
    ):
        if title and is_complete(title, is_english=False):
            yield title


def request_title(scored: ScoredTurn) -> str:
    """For the session, where the turn has no title: what was asked."""
    request = scored.evidence.request
    title = titles.from_plan(request.plan_title) or titles.from_request(request.text)
    return title if title and is_complete(title, is_english=scored.is_english) else ""
