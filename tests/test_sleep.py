"""A laptop that sleeps while a job runs: a lease runs only while the machine is awake."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.store import Store
from claude_mem.store.queue import LEASE_MS
from claude_mem.types import Distillate, Summary
from tests.payloads import edit, prompt, stop
from tests.story import Story

HOUR = 3_600_000
RESULT = Distillate(Summary(completed="done"), ())


class Times:
    """The clock, and the clock without sleep."""

    def __init__(self, now: int) -> None:
        self.now = self.awake = now

    def work(self, ms: int) -> None:
        self.now += ms
        self.awake += ms

    def sleep(self, ms: int) -> None:
        self.now += ms


@pytest.fixture
def times(story: Story) -> Times:
    story.tell(prompt(), edit(), stop())
    return Times(story.now)


@pytest.fixture
def store(story: Story, times: Times, tmp_path: Path) -> Iterator[Store]:
    with closing(
        Store.open(
            story.layout.database,
            tmp_path / "backups",
            clock=lambda: times.now,
            lease_clock=lambda: times.awake,
        )
    ) as opened:
        yield opened


def test_a_job_keeps_its_lease_over_a_night_and_stores_its_result(
    store: Store, times: Times
) -> None:
    claimed = store.claim_job().result()
    assert claimed is not None
    job, turn = claimed
    assert turn is not None
    times.work(LEASE_MS // 2)
    times.sleep(9 * HOUR)
    assert store.claim_job().result() is None
    assert store.finish_job(job, turn, RESULT).result()


def test_the_worker_does_not_spin_after_a_night(store: Store, times: Times) -> None:
    store.claim_job().result()
    times.work(LEASE_MS // 2)
    times.sleep(9 * HOUR)
    due = store.next_due()
    assert due == times.now + LEASE_MS // 2


def test_a_lease_ends_when_its_job_had_its_time(store: Store, times: Times) -> None:
    store.claim_job().result()
    times.sleep(HOUR)
    times.work(LEASE_MS)
    claimed = store.claim_job().result()
    assert claimed is not None and claimed[0].attempts == 2


def test_a_retry_is_due_after_its_delay_also_if_the_machine_slept(
    store: Store, times: Times
) -> None:
    claimed = store.claim_job().result()
    assert claimed is not None
    store.retry_job(claimed[0], "failed", HOUR).result()
    times.sleep(HOUR)
    assert store.claim_job().result() is not None
