"""A model revises earlier turns because the user asked for it: in order, within the limits."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.observer.models.estimates import estimate
from claude_mem.store.refine_requests import RefineSelection
from claude_mem.store.spending import Caps
from tests.conftest import Home, wait_until
from tests.fake_api import FakeApi
from tests.observed import Observed, by_topic, policy, use
from tests.payloads import bash, edit, prompt, stop
from tests.story import DAY, Story

COMMITTED = "[main 1a2b3c4d] Replace the fuse\n 1 file changed"


@pytest.fixture
def observed(tmp_path: Path, api: FakeApi) -> Iterator[Observed]:
    api.otherwise = by_topic
    with Story(tmp_path) as story:
        yield Observed(story, api, "anthropic")


def tell_of(story: Story, name: str, *, edits: bool = False, commits: bool = False) -> None:
    """A turn that the local observer alone has summarised."""
    of = {"session_id": name, "prompt_id": f"prompt-{name}"}
    work = [edit(**of)] if edits else []
    work += [bash("git commit -am x", COMMITTED, **of)] if commits else []
    story.tell(prompt(f"Work on topic-{name}", **of), *work,
               stop(f"topic-{name}: `lamp.py` was bent because of the rain.", **of))  # fmt: skip
    story.distil()


def request(observed: Observed, **changes: int) -> int:
    return observed.story.store.request_refinements(RefineSelection(**changes)).result()


def revised(observed: Observed) -> list[str]:
    rows = observed.rows("SELECT request FROM session_summaries WHERE model IS NOT NULL")
    return sorted(str(row["request"]).removeprefix("About topic-") for row in rows)


def topics_asked(observed: Observed) -> list[str]:
    texts = (json.dumps(body).rpartition("The turn:")[2] for body in observed.api.requests)
    return [text.partition("topic-")[2][:1] for text in texts]


def test_the_most_valuable_turns_come_first_then_the_latest(observed: Observed) -> None:
    for name, options in (("a", {}), ("b", {"edits": True}), ("c", {"commits": True}), ("d", {})):
        tell_of(observed.story, name, **options)
    observed.policy = policy(max_concurrent=1)
    assert request(observed, limit=3) == 3
    observed.refine()
    assert topics_asked(observed) == ["c", "b", "d"]
    assert revised(observed) == ["b", "c", "d"]


def test_only_turns_of_the_project_and_the_time_are_revised(observed: Observed) -> None:
    tell_of(observed.story, "a")
    observed.story.now += DAY
    tell_of(observed.story, "b")
    assert request(observed, project_id=99) == 0
    assert request(observed, since_ms=observed.story.now - DAY // 2) == 1
    observed.refine()
    assert revised(observed) == ["b"]


def test_what_a_model_wrote_is_not_revised_again(observed: Observed) -> None:
    tell_of(observed.story, "a")
    assert request(observed) == 1
    assert request(observed) == 0  # it waits already
    observed.refine()
    assert request(observed) == 0


def test_over_the_daily_limit_turns_wait_for_the_next_day(observed: Observed) -> None:
    for name in "abcdef":
        tell_of(observed.story, name)
    observed.policy = policy(caps=Caps(5, 10_000_000))
    request(observed)
    observed.refine()
    assert len(revised(observed)) == 4  # a fifth of the limit is for the turns of today
    assert observed.story.store.requested_refinements() == 2
    assert observed.kept() == []
    observed.story.now += DAY
    observed.refine()
    assert len(revised(observed)) == 6


def test_turns_of_today_come_before_earlier_ones(observed: Observed) -> None:
    tell_of(observed.story, "a")
    request(observed)
    observed.story.now += 1000
    observed.tell(prompt("Work on topic-n", session_id="n"), stop("topic-n.", session_id="n"))
    observed.policy = policy(max_concurrent=1)
    observed.refine()
    assert topics_asked(observed) == ["n", "a"]


def test_a_turn_without_raw_events_is_revised_by_what_was_said(observed: Observed) -> None:
    tell_of(observed.story, "a", commits=True)
    observed.story.store.retire_raw_events(observed.story.now + 1, 10**9).result()
    assert request(observed) == 1
    observed.refine()
    assert revised(observed) == ["a"]
    asked = json.dumps(observed.api.requests[-1])
    assert "was bent because of the rain" in asked


def test_what_the_user_changed_stays(observed: Observed) -> None:
    tell_of(observed.story, "a")
    tell_of(observed.story, "b")
    observed.story.store.write(
        lambda c: c.execute("UPDATE session_summaries SET edited = 1 WHERE turn_id = 1")
    ).result()
    assert request(observed) == 1
    observed.refine()
    assert revised(observed) == ["b"]


def test_turns_that_wait_can_be_cancelled(observed: Observed) -> None:
    for name in "abc":
        tell_of(observed.story, name)
    request(observed, limit=2)
    assert observed.story.store.cancel_refinements().result() == 2
    observed.refine()
    assert (observed.asked(), revised(observed)) == (0, [])
    assert request(observed) == 3


def test_the_estimate_counts_tokens_days_and_dollars(observed: Observed) -> None:
    for name in "abc":
        tell_of(observed.story, name)
    store = observed.story.store
    turns = store.refinable_turns(RefineSelection())
    preview = estimate(turns, store.drafted_turn, "normal", Caps(2, 10**6), "claude-haiku-4-5")
    assert (preview.turns, preview.days) == (3, 2)
    assert preview.input_tokens > 3 * 500
    assert preview.dollars == pytest.approx(
        preview.input_tokens / 10**6 + 5 * preview.output_tokens / 10**6
    )
    unknown = estimate(turns, store.drafted_turn, "normal", Caps(0, 0), "some-model")
    assert (unknown.dollars, unknown.days) == (None, -1)
    assert estimate([], store.drafted_turn, "normal", Caps(1, 1), "x").days == 0


def test_the_command_previews_queues_and_cancels(home: Home, api: FakeApi) -> None:
    home.start_worker()
    refused = home.command("refine", "--yes")
    assert refused.returncode == 1
    assert "claude-mem observer claude" in refused.stderr
    of = {"prompt_id": "p1"}
    for payload in (prompt("Work on topic-one", **of), edit(**of), stop("topic-one done.", **of)):
        assert home.hook(payload, payload["hook_event_name"]).returncode == 0
    home.wait_settled()
    home.end_worker()
    api.otherwise = by_topic
    use(home, api, "anthropic")
    preview = home.command("refine", "--dry-run")
    assert "1 turn, about" in preview.stdout
    assert "Under the daily limits it takes 1 day." in preview.stdout
    assert home.command("refine").returncode == 1  # it asks, and nobody can answer
    done = home.command("refine", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["queued"] == 1
    wait_until(
        lambda: home.column("SELECT model FROM session_summaries") == ["some-model"], "the model"
    )
    assert "Nothing to refine" in home.command("refine", "--yes").stdout
    assert home.command("refine", "--cancel").stdout.startswith("0 turns taken out")
