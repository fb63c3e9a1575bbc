"""Five made-up sessions come to the contexts and facts in `tests/golden/`, byte for byte.

`python -m tests.golden` writes these files anew: review their diff as you review code.
"""

from pathlib import Path

import pytest

from tests.golden.outcomes import golden_files, outcome_of
from tests.golden.sessions import SESSIONS


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_comes_to_its_golden_context_and_facts(name: str, tmp_path: Path) -> None:
    outcome = outcome_of(name, tmp_path)
    context, facts = golden_files(name)
    assert outcome.context == context.read_text("utf-8"), "if wanted: python -m tests.golden"
    assert outcome.facts == facts.read_text("utf-8"), "if wanted: python -m tests.golden"


def test_each_golden_file_is_of_a_session() -> None:
    files = {file for name in SESSIONS for file in golden_files(name)}
    assert set(Path(__file__).with_name("golden").glob("*.txt")) == files
