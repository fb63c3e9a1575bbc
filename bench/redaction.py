"""Redaction of ordinary code: how long it takes, and how many false findings it has.

Compared with the library detect-secrets, if it is installed; it is not a dependency.
"""

import importlib
import importlib.util
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

import claude_mem
from bench.material import code
from bench.measure import Figure, in_turns, median, run, seconds_of, table
from claude_mem.redaction import Redactor

ROUNDS, PIECES, SIZE = 20, 20, 12_000
PARSING, OURS, LIBRARY = "json.loads", "Redactor", "detect-secrets"
HAS_LIBRARY = importlib.util.find_spec("detect_secrets") is not None


def measure() -> list[Figure]:
    per_piece = _seconds_per_piece()
    wrong = _findings_in_own_source()
    if not HAS_LIBRARY:
        print(f"  {LIBRARY} is not installed")
    table(
        (f"{SIZE:,} characters", "median ms", "ratio", "findings in our source"),
        [
            (
                name,
                f"{seconds * 1e3:.3f}",
                f"{seconds / per_piece[PARSING]:.1f}x",
                str(wrong.get(name, "")),
            )
            for name, seconds in per_piece.items()
        ],
    )
    figures = [Figure(f"{OURS} to {PARSING}", per_piece[OURS] / per_piece[PARSING])]
    if HAS_LIBRARY:
        figures.append(Figure(f"{LIBRARY} to {OURS}", per_piece[LIBRARY] / per_piece[OURS]))
    return figures + [
        Figure(f"false findings in our source, {name}", count, "") for name, count in wrong.items()
    ]


def _seconds_per_piece() -> dict[str, float]:
    texts = [code(SIZE, number) for number in range(PIECES)]
    encoded = [json.dumps(text) for text in texts]
    redactor = Redactor()
    with tempfile.TemporaryDirectory(prefix="claude-mem-bench-") as directory:
        files = [Path(directory, f"{number}.py") for number in range(PIECES)]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, "utf-8")
        works = {
            PARSING: lambda: [json.loads(text) for text in encoded],
            OURS: lambda: [redactor.redact_json(text) for text in texts],
        }
        if HAS_LIBRARY:
            works[LIBRARY] = lambda: [_library_findings(file) for file in files]
        cases = {name: partial(seconds_of, work) for name, work in works.items()}
        timings = in_turns(cases, ROUNDS, warm_up=1)
    return {name: median(seconds) / PIECES for name, seconds in timings.items()}


def _findings_in_own_source() -> dict[str, int]:
    """The source has no secrets, so every finding is false."""
    sources = sorted(Path(claude_mem.__file__).parent.rglob("*.py"))
    findings = {OURS: sum(_our_findings(path) for path in sources)}
    if HAS_LIBRARY:
        findings[LIBRARY] = sum(_library_findings(path) for path in sources)
    return findings


def _our_findings(path: Path) -> int:
    mark, text = "[redacted:", path.read_text("utf-8")
    return Redactor().redact(text).count(mark) - text.count(mark)


def _library_findings(path: Path) -> int:
    """With its default settings."""
    scan = importlib.import_module("detect_secrets.core.scan")
    settings = importlib.import_module("detect_secrets.settings")
    with settings.default_settings():
        return len(list(scan.scan_file(str(path))))


if __name__ == "__main__":
    sys.exit(run({"redaction": measure}))
