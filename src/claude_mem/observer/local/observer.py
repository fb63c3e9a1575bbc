"""The observer without a model: it selects from what the user, the agent and its tools wrote.

Deterministic. What was said in a turn is split into passages; learned weights tell which of them
are worth keeping, which text makes the best title, and whether the turn is worth an observation.
"""

from claude_mem.observer.local.content_words import content_words
from claude_mem.observer.local.facts import propose_facts
from claude_mem.observer.local.observations import build_observations, says_more_than
from claude_mem.observer.local.open_steps import with_open_steps
from claude_mem.observer.local.reading import read_turn
from claude_mem.observer.local.rules import proposed_rules, rule_observations
from claude_mem.observer.local.selection import select_passages
from claude_mem.observer.local.summaries import build_summary
from claude_mem.observer.local.turn_titles import request_title, turn_title
from claude_mem.observer.local.version import VERSION
from claude_mem.types import Distillate, Turn

NAME = "local"


def distil(turn: Turn) -> Distillate:
    reading = read_turn(turn)
    passages = select_passages(reading)
    title = turn_title(reading)
    observations = build_observations(reading, passages, title)
    observed = "\n".join(observation.text for observation in observations)
    summary = with_open_steps(build_summary(reading, passages, title, observed), turn)
    # What was asked stays the same while a turn goes on; what came of it does not.
    session_title = request_title(reading) or title
    has_subtitle = says_more_than(session_title, content_words(summary.completed or ""))
    return Distillate(
        summary=summary,
        observations=(*observations, *rule_observations(turn.prompt or "")),
        title=session_title or None,
        subtitle=summary.completed if has_subtitle else None,
        observer=NAME,
        version=VERSION,
        facts=(*proposed_rules(turn.prompt or ""), *propose_facts(turn)),
    )
