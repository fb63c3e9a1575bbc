"""The observer without a model: it selects from what the user, the agent and its tools wrote.

Deterministic. The texts of a turn are split into passages and scored, and the best ones that say
something new are kept, up to a share of the text. They become observations and a summary.
"""

from claude_mem.observer.local.facts import propose_facts
from claude_mem.observer.local.observations import build_observations, says_more_than
from claude_mem.observer.local.open_steps import with_open_steps
from claude_mem.observer.local.rules import proposed_rules, rule_observations
from claude_mem.observer.local.scoring import content_words
from claude_mem.observer.local.selection import select_from_turn
from claude_mem.observer.local.summaries import build_summary
from claude_mem.observer.local.turn_titles import turn_title
from claude_mem.observer.local.version import VERSION
from claude_mem.types import Distillate, Turn

NAME = "local"


def distil(turn: Turn) -> Distillate:
    selection = select_from_turn(turn)
    title = turn_title(selection)
    summary = with_open_steps(build_summary(selection, title), turn)
    has_subtitle = says_more_than(title, content_words(summary.completed or ""))
    return Distillate(
        summary=summary,
        observations=(
            *build_observations(selection, title),
            *rule_observations(turn.prompt or ""),
        ),
        title=title or None,
        subtitle=summary.completed if has_subtitle else None,
        observer=NAME,
        version=VERSION,
        facts=(*proposed_rules(turn.prompt or ""), *propose_facts(turn)),
    )
