"""The real Gemini CLI client, from npm, against a model on loopback."""

import pytest

from tests.agent_clients import needs
from tests.real_agents import RealAgentTests, models, project

__all__ = ["models", "project"]
pytestmark = [pytest.mark.extra, needs("gemini", "qwen", "node")]


class TestGemini(RealAgentTests):
    name, other = "gemini", "qwen"
