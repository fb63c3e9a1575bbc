"""What the user reads before agreeing to a model."""

import pytest

from claude_mem.config import load_settings
from claude_mem.observer.models.consent_text import terms_of


@pytest.mark.parametrize(
    ("address", "uses_quota"),
    [
        ("http://127.0.0.1:11434/v1", False),
        ("http://localhost:1234/v1", False),
        ("http://[::1]:8080", False),
        ("https://api.example.org/v1", True),
        ("Claude Code, with your login", True),
    ],
)
def test_a_model_on_this_machine_costs_no_quota(address: str, uses_quota: bool) -> None:
    text = terms_of(load_settings({"HOME": "/nonexistent"}), "openai", address)
    assert ("quota" in text) is uses_quota
    assert ("on this machine" in text) is not uses_quota
    assert address in text and "tokens a day" in text
