"""Which version is newer decides who replaces whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem import __version__
from claude_mem.errors import NewerWorker
from claude_mem.server import client
from claude_mem.versions import OLDEST, parse_version

ASCENDING = [
    "0.9", "0.10.0.dev1", "0.10.0a1", "0.10.0b2", "0.10.0rc1", "0.10.0rc2", "0.10.0",
    "0.10.0+local.1", "0.10.0+local.2", "0.10.0.post1", "0.10.1.dev3", "0.10.1", "1.0", "1!0.1",
]  # fmt: skip


def test_versions_are_ordered_as_pep_440_orders_them() -> None:
    assert sorted(ASCENDING, key=parse_version) == ASCENDING
    assert len({parse_version(text) for text in ASCENDING}) == len(ASCENDING)


@pytest.mark.parametrize(
    ("text", "same"), [("1.0", "1.0.0"), ("v1.2", "1.2"), ("1.0-rc.1", "1.0rc1")]
)
def test_two_spellings_of_a_version_are_equal(text: str, same: str) -> None:
    assert parse_version(text) == parse_version(same)


@pytest.mark.parametrize("text", ["", "unknown", "1.0.0-dirty!", "1..2", "１.0"])
def test_a_text_that_is_no_version_is_older_than_every_release(text: str) -> None:
    assert parse_version(text) == OLDEST
    assert parse_version(text) < parse_version("0.0.1a1") < parse_version(__version__)


@pytest.mark.parametrize("suffix", ["", "rc1", ".dev1"])
def test_a_worker_of_this_release_or_one_before_it_may_be_replaced(suffix: str) -> None:
    client.refuse_newer({"worker": {"version": __version__ + suffix}})


@pytest.mark.parametrize("suffix", [".post1", "+build.7", ".1.dev1"])
def test_a_worker_of_a_later_version_is_not_replaced(suffix: str) -> None:
    with pytest.raises(NewerWorker, match="newer worker"):
        client.refuse_newer({"worker": {"version": __version__ + suffix}})


@given(st.text())
def test_every_text_can_be_compared(text: str) -> None:
    assert parse_version(text) >= OLDEST
