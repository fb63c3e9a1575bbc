"""The real Qwen Code client, from npm, against a model on loopback."""

import pytest

from tests.agent_clients import needs
from tests.real_agents import RealAgentTests, models, project

__all__ = ["models", "project"]
pytestmark = [pytest.mark.extra, needs("qwen", "node", "copilot")]


class TestQwen(RealAgentTests):
    name, other = "qwen", "copilot"
    reports_end = False
