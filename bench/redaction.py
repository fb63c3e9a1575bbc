"""Redaction: how long it takes for ordinary code, and how much it redacts that is no secret.

    python -m bench.redaction [--sessions DIR …] [--show]

DIR has transcripts as the client writes them; each line is redacted as an event of a hook would be.
Every hit in a transcript without secrets is a false one: --show prints them for review. Time is
compared with parsing the same text as JSON, and with a plain search for names of secrets.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # where it runs as a script

import claude_mem
from bench.material import code
from bench.measure import Figure, in_turns, median, run, seconds_of, table
from claude_mem.redaction import Redactor
from claude_mem.store.stored_secrets import Finding, find_in_text

ROUNDS, PIECES, SIZE = 20, 20, 12_000
PARSING, PLAIN, OURS = "json.loads", "plain pattern", "Redactor"
PATTERN = re.compile(r"(?i)(?:password|passwd|secret|token|api_?key)\w*['\"]?\s*[:=]\s*(\S+)")
LINES = 2_000
MOST_FALSE = 0.5  # per LINES lines of transcripts


def measure(sessions: tuple[Path, ...] = (), *, show: bool = False) -> list[Figure]:
    per_piece = _seconds_per_piece()
    table(
        (f"{SIZE:,} characters", "median ms", "ratio"),
        [
            (name, f"{seconds * 1e3:.3f}", f"{seconds / per_piece[PARSING]:.1f}x")
            for name, seconds in per_piece.items()
        ],
    )
    figures = [Figure(f"{OURS} to {name}", per_piece[OURS] / per_piece[name])
               for name in (PARSING, PLAIN)]  # fmt: skip
    figures.append(Figure("hits in our source", _hits_in_own_source(), ""))
    return [*figures, *(_false_hits(directory, show=show) for directory in sessions)]


def _seconds_per_piece() -> dict[str, float]:
    texts = [code(SIZE, number) for number in range(PIECES)]
    encoded = [json.dumps(text) for text in texts]
    redactor = Redactor()
    works = {
        PARSING: lambda: [json.loads(text) for text in encoded],
        PLAIN: lambda: [PATTERN.findall(text) for text in texts],
        OURS: lambda: [redactor.redact_json(text) for text in texts],
    }
    cases = {name: partial(seconds_of, work) for name, work in works.items()}
    timings = in_turns(cases, ROUNDS, warm_up=1)
    return {name: median(seconds) / PIECES for name, seconds in timings.items()}


def _hits_in_own_source() -> int:
    redactor = Redactor()
    sources = sorted(Path(claude_mem.__file__).parent.rglob("*.py"))
    return sum(len(find_in_text(redactor, str(p), p.read_text("utf-8"))) for p in sources)


def _false_hits(directory: Path, *, show: bool) -> Figure:
    redactor, lines, hits = Redactor(), 0, 0
    for path in sorted(directory.rglob("*.jsonl")):
        for number, line in enumerate(_lines(path), 1):
            lines += 1
            for finding in find_in_text(redactor, f"{path.name}:{number}", line):
                hits += 1
                if show:
                    _print(finding)
    rate = hits * LINES / max(lines, 1)
    print(f"  {directory.name}: {hits} hits in {lines:,} lines")
    return Figure(f"hits per {LINES:,} lines, {directory.name}", rate, "", MOST_FALSE)


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from file


def _print(finding: Finding) -> None:
    print(f"  {finding.place} {finding.kind} {finding.hint}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=Path, nargs="+", default=[], metavar="DIR")
    parser.add_argument("--show", action="store_true", help="print the place of each hit")
    options = parser.parse_args()
    sessions = tuple(options.sessions)
    return run({"redaction": lambda: measure(sessions, show=options.show)})


if __name__ == "__main__":
    sys.exit(main())
