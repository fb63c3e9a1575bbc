"""Fixtures: a real client in a project of its own."""

import pytest

from tests.conftest import Home
from tests.fake_api import FakeApi
from tests.real_client import Client


@pytest.fixture
def client(home: Home, api: FakeApi) -> Client:
    client = Client.in_new_project(home, api, "lighthouse")
    (client.project / "light.py").write_text("blink(1)\nwait()\n")
    return client


@pytest.fixture
def attached(client: Client) -> Client:
    """The client with the plugin installed by the command that the README names."""
    done = client.claude_mem("install", "--yes")
    assert done.returncode == 0, done.stderr + done.stdout
    return client
