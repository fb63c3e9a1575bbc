"""Fixtures: sessions whose drafts a model revises."""

from collections.abc import Iterator

import pytest

from tests.conftest import wait_until
from tests.fake_api import FakeApi
from tests.observed import KINDS, Observed, children
from tests.real_client import skip_without_client
from tests.story import Story


@pytest.fixture(params=skip_without_client(KINDS))
def observed(request: pytest.FixtureRequest, story: Story, api: FakeApi) -> Iterator[Observed]:
    """A turn observed by each provider."""
    yield Observed(story, api, str(request.param))
    wait_until(lambda: children() == [], "the end of the clients")


@pytest.fixture
def simple(story: Story, api: FakeApi) -> Observed:
    """A turn observed by one provider, where it does not matter which."""
    return Observed(story, api, "anthropic")
