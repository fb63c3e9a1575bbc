"""Whether to recommend the observer claude, and what it would use, from the user's own history."""

from collections.abc import Mapping
from pathlib import Path

from claude_mem.cli.open_store import open_reader
from claude_mem.config import OBSERVER, Settings, load_settings
from claude_mem.observer.models.active_observer import missing_requirement, model_name
from claude_mem.observer.models.estimates import estimate
from claude_mem.store.refine_requests import RefineSelection
from claude_mem.text import pluralize
from claude_mem.worker.refiner import caps_of

SAMPLED_TURNS = 400
LARGEST_STATE = 20_000_000  # bytes of the client's state file


def is_logged_in(environ: Mapping[str, str]) -> bool:
    """Whether Claude Code has a login in its files; a login in a keychain leaves a trace there."""
    home = Path(environ.get("HOME", "/"))
    config_dir = environ.get("CLAUDE_CONFIG_DIR")
    directory = Path(config_dir) if config_dir else home / ".claude"
    if (directory / ".credentials.json").is_file():
        return True
    state = (directory if config_dir else home) / ".claude.json"
    try:
        return state.stat().st_size <= LARGEST_STATE and b'"oauthAccount"' in state.read_bytes()
    except OSError:
        return False


def recommendation(settings: Settings, environ: Mapping[str, str]) -> str:
    """Empty where claude cannot be used, or is used already."""
    changed = load_settings({**environ, OBSERVER.name: "claude"})
    if settings.observer.kind == "claude" or not is_logged_in(environ):
        return ""
    if missing_requirement(changed, environ):
        return ""
    return f"Recommended: claude. Claude Code is logged in here.{_cost(changed)}"


def _cost(settings: Settings) -> str:
    """Of a day with sessions; empty without a history."""
    with open_reader(settings) as store:
        if store is None:
            return ""
        turns, days = store.turns_and_days()
        sample = store.refinable_turns(RefineSelection(limit=SAMPLED_TURNS))
        if not turns or not sample:
            return ""
        model = model_name(settings)
        of_sample = estimate(
            sample, store.drafted_turn, settings.observer.verbosity, caps_of(settings), model
        )
    per_day = turns / days
    tokens = round(per_day * of_sample.tokens / of_sample.turns, -3)
    dollars = of_sample.dollars
    price = (
        "" if dollars is None else f", ${per_day * dollars / of_sample.turns:.2f} at list prices"
    )
    return (
        f" By your history it would use about {tokens:,.0f} tokens on a day with sessions"
        f" ({pluralize(round(per_day), 'turn')}){price}; a plan counts them against its limits."
    )
