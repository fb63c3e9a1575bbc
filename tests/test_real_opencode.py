"""The real OpenCode client, from npm, against a model on loopback."""

import pytest

from tests.agent_clients import needs
from tests.real_agents import RealAgentTests, models, project

__all__ = ["models", "project"]
pytestmark = [pytest.mark.extra, needs("opencode", "codex")]


class TestOpenCode(RealAgentTests):
    name, other = "opencode", "codex"
