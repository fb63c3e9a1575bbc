"""The real Codex client, from npm, against a model on loopback."""

import pytest

from tests.agent_clients import needs
from tests.real_agents import RealAgentTests, models, project

__all__ = ["models", "project"]
pytestmark = [pytest.mark.extra, needs("codex", "gemini")]


class TestCodex(RealAgentTests):
    name, other = "codex", "gemini"
