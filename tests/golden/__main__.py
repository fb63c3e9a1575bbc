"""`python -m tests.golden` writes the golden files anew; `git diff` shows what has changed."""

import tempfile
from pathlib import Path

from tests.golden.outcomes import golden_files, outcome_of
from tests.golden.sessions import SESSIONS

for name in SESSIONS:
    with tempfile.TemporaryDirectory() as directory:
        outcome = outcome_of(name, Path(directory))
    context, facts = golden_files(name)
    context.write_text(outcome.context, "utf-8")
    facts.write_text(outcome.facts, "utf-8")
