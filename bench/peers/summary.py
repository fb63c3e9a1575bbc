"""The table of the README: one figure of each measure, with its date and versions."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.peers.samples import OURS, PEER, SHIPPED, Results
from bench.peers.tables import MISSING, Medians, markdown, number

START, END = "<!-- benchmarks: written by make bench-peers -->", "<!-- end of benchmarks -->"


@dataclass(frozen=True, slots=True)
class Line:
    title: str
    measure: str
    case: str  # `{size}` is the largest size that was measured
    unit: str
    ours: str = OURS
    peer: str = PEER


LINES = (
    Line("a hook after a tool, processor time", "hooks", "PostToolUse, worker running", "ms CPU"),
    Line("the first hook of a session, no worker running, elapsed", "hooks",
         "SessionStart, no worker", "ms"),
    Line("context of a new session, {size} observations, processor time", "search",
         "context of a new session, {size}", "ms CPU"),
    Line("full-text search, processor time: a rare word, {size} observations", "search",
         "rare word, all projects, {size}", "ms CPU"),
    Line("full-text search, processor time: a phrase, {size} observations", "search",
         "phrase, all projects, {size}", "ms CPU"),
    Line("full-text search, processor time: a common word, {size} observations", "search",
         "common word, all projects, {size}", "ms CPU"),
    Line("full-text search, processor time: three words, {size} observations", "search",
         "three words, all projects, {size}", "ms CPU"),
    Line("events over HTTP, 16 clients", "ingest", "16 clients", "events/s"),
    Line("tool uses remembered after `kill -9`, of 60", "kill",
         "of 60 accepted tool uses, part of a memory", "tool uses"),
    Line("tool uses stored under `claude -p`, of 3", "sessions", "tool uses stored, of 3",
         "per run"),
    Line("requests to a model for that `claude -p` session", "sessions", "requests to a model",
         "per run"),
    Line("private memory of an idle worker", "footprint", "private memory when idle", "MB"),
    Line("installed with dependencies", "footprint", "installed with its dependencies", "MB"),
    Line("database, full text only, {size} observations", "search", "database, {size}",
         "bytes per observation"),
    Line("database as shipped, with record and vectors", "search", "database, {size}",
         "bytes per observation", SHIPPED),
)  # fmt: skip


def write(results: Results, readme: Path) -> None:
    """Replaces what is between the marks."""
    before, _, rest = readme.read_text("utf-8").partition(START)
    _, end, after = rest.partition(END)
    if end:
        readme.write_text(f"{before}{START}\n{_text(results)}\n{END}{after}", "utf-8")


def _text(results: Results) -> str:
    hooks = results.measures.get("hooks", {})
    versions = hooks.get("versions", {})
    named = ", ".join(f"{name} {value}" for name, value in versions.items() if name != "commit")
    size, cores = largest_size(results), hooks.get("machine", {}).get("cores", "?")
    table = markdown(["", "this package", "npm"], list(_rows(results, size)))
    return f"""
{table}

Medians (means for `claude -p`) of alternating runs on one shared machine with {cores} cores,
{hooks.get("date", "")}: {named}.
`make bench-peers` measures it again. [All figures](docs/benchmarks.md).

![Processor time of a hook](docs/images/benchmark-hooks.svg)
"""


def largest_size(results: Results) -> str:
    """Returns the largest size with which both were measured."""
    samples = [sample for sample in results.samples("search") if sample.product == PEER]
    sizes = [case.rpartition(", ")[2] for case in Medians(samples).cases]
    return max(sizes, key=lambda text: int(text.replace(",", "")), default="")


def _rows(results: Results, size: str) -> Iterator[list[str]]:
    for line in LINES:
        medians, case = Medians(results.samples(line.measure)), line.case.format(size=size)
        ours, peer = (medians.of(case, name, line.unit) for name in (line.ours, line.peer))
        if ours is not None:
            unit = _unit(line.unit)
            shown = (
                MISSING if value is None else f"{number(value)}{unit}" for value in (ours, peer)
            )
            yield [line.title.format(size=size), *shown]


def _unit(unit: str) -> str:
    units = {"ms CPU": " ms", "ms": " ms", "MB": " MB", "events/s": "/s",
             "bytes per observation": " bytes per observation"}  # fmt: skip
    return units.get(unit, "")
