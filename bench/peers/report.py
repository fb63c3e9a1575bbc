"""`docs/benchmarks.md` and its plots, from the raw numbers alone."""

from collections.abc import Callable
from pathlib import Path

from bench.peers.baselines import MIN_SEARCH, MIN_SPOOL
from bench.peers.plots import Group, bars
from bench.peers.samples import BARE, OURS, PEER, SHIPPED, Results
from bench.peers.scale import FIRST, LATER
from bench.peers.tables import MISSING, Column, Medians, Ratio, markdown, number, pair

_INTRO = """# Benchmarks

This page compares this claude-mem (*ours*) with the TypeScript [claude-mem on
npm](https://www.npmjs.com/package/claude-mem). The runs alternate on one machine.
`make bench-peers` measures and writes this page; every measured value is in
[`bench/results/peers.json`](../bench/results/peers.json).

Times, rates and sizes are medians. The figures of sessions of the real client are means, and tool
uses after a kill, processes and answered questions are counts. Other programs shared the machine
(the last table has its load after each measure), so compare the columns of a row, not rows of
different tables. *CPU* is processor time, which depends least on the load. No model can be reached
in these runs: the npm package's observer asks an API on loopback. Its vector store (Chroma) and its
telemetry are off, because both need the network.
"""
_FOOTPRINT = """## Footprint

An idle worker after its start. The npm package is installed with bun, which it needs, but without
the parsers that its own installer adds later; Python and node are not counted.

"""


def write(results: Results, docs: Path) -> None:
    sections = [
        section(Medians(results.samples(name)), docs / "images")
        for name, section in _SECTIONS.items()
        if results.samples(name)
    ]
    text = "\n".join([_INTRO, *sections, _conditions(results)])
    (docs / "benchmarks.md").write_text(text, "utf-8")


def _conditions(results: Results) -> str:
    lines = ["## Versions", "", "| measure | date | versions | load |", "|---|---|---|---|"]
    for name, measure in results.measures.items():
        versions = ", ".join(f"{key} {value}" for key, value in measure["versions"].items())
        machine = measure["machine"]
        load = f"{machine['load (1, 5, 15 minutes)']} on {machine['cores']} cores"
        lines.append(f"| {name} | {measure['date']} | {versions} | {load} |")
    return "\n".join(lines) + "\n"


def _hooks(medians: Medians, images: Path) -> str:
    us, them = Column("ours, ms", OURS, "ms"), Column("npm, ms", PEER, "ms")
    us_cpu, them_cpu = Column("ours, ms CPU", OURS, "ms CPU"), Column("npm, ms CPU", PEER, "ms CPU")
    bare = medians.of("", BARE, "ms") or 1.0
    bare_cpu = medians.of("", BARE, "ms CPU") or 1.0
    cases = [case for case in medians.cases if case]
    table = medians.table(
        "hook",
        [us, them, Ratio("npm / ours", them, us), us_cpu, them_cpu,
         Ratio("npm / ours, CPU", them_cpu, us_cpu)],
        cases,
    )  # fmt: skip
    groups = [
        Group(case, (medians.of(case, OURS, "ms CPU"), medians.of(case, PEER, "ms CPU")))
        for case in cases
    ]
    _plot(images / "benchmark-hooks.svg", bars("Processor time of a hook", (OURS, PEER), groups,
                                               "ms"))  # fmt: skip
    return f"""## Hooks

The command that the agent runs, from its start to its end; the tool result is 12 KB.
`{BARE}` takes {number(bare)} ms ({number(bare_cpu)} ms CPU) in the same run. *No worker*: the hook
starts the worker; the two SessionStart hooks of the npm package count together. Its hooks are run
without the shell line around them that looks for the plugin.

{table}

![Processor time of a hook](images/benchmark-hooks.svg)
"""


def _search(medians: Medians, images: Path) -> str:
    us, shipped, them = (
        Column(f"{name}, ms CPU", name, "ms CPU") for name in (OURS, SHIPPED, PEER)
    )
    searches = [c for c in medians.cases if "project" in c]
    contexts = [c for c in medians.cases if c.startswith("context")]
    starts = [c for c in medians.cases if c.startswith((FIRST, LATER))]
    columns: list[Column | Ratio] = [us, them, Ratio("ours / npm", us, them), shipped]
    wall = [Column(f"{name}, ms", name, "ms") for name in (OURS, PEER, SHIPPED)]
    compared = [c for c in searches if medians.of(c, PEER, "ms CPU")]
    largest = compared[-1].rpartition(", ")[2] if compared else ""
    groups = [
        Group(case, tuple(medians.of(case, name, "ms CPU") for name in (OURS, SHIPPED, PEER)))
        for case in searches
        if case.endswith(f", {largest}")
    ]
    if groups:
        _plot(images / "benchmark-search.svg", bars("Processor time of a search",
              (OURS, SHIPPED, PEER), groups, "ms"))  # fmt: skip
    memory = [c for c in medians.cases if c.startswith("private")]
    megabytes, sizes = (
        [Column(f"{name}, {unit}", name, unit) for name in (OURS, SHIPPED, PEER)]
        for unit in ("MB", "bytes per observation")
    )
    disk = [c for c in medians.cases if c.startswith(("database", "of this"))]
    return f"""## Search and context

The same memories in both databases (observations, a summary for every four, prompts), asked over
HTTP with one connection. *Ours* has no record and no vectors here, so that it does the same work as
the npm package: full text over memories. *As shipped* also searches what was said in each turn, and
by meaning. The npm package requires all words of a query in one memory; ours ranks memories that
have some of them. CPU is that of the worker. The number at the end of a label is the number of
observations; with a million, ours is measured alone. Above 300,000
passages, search does not read all matches of common words, so the rows of such memories are not
comparable with those of smaller ones.

Ours ranks passages, about five per observation, and returns turns. The length of a passage is part
of its row id, so FTS5 need not look it up for every match. Text is stored once: passages are cut
again from the memories that they come from.

{medians.table("query", [*columns, *wall], searches)}

![Processor time of a search](images/benchmark-search.svg)

{medians.table("context", [*columns, *wall], contexts)}

As shipped, the first search after a start waits until numpy and the model are loaded. In a memory
of 100,000 turns or more it does not wait, and searches full text only. A turn has four observations
here, so only the memory of 1,000,000 observations is that large. A rare word, in all projects:

{medians.table("", wall, starts)}

### Memory and disk

{medians.table("memory", megabytes, memory)}

{medians.table("disk", sizes, disk)}
"""


def _ingest(medians: Medians, images: Path) -> str:
    events = medians.table("events over HTTP", pair("events/s"))
    processor = medians.table("events over HTTP", pair("ms CPU"))
    health = medians.table("requests", pair("ms"))
    return f"""## Ingest over HTTP

Tool uses of 2 KB, posted one after the other by each client. Ours answers when the event is on
disk.

{events}

{processor}

{health}
"""


def _kill(medians: Medians, images: Path) -> str:
    return f"""## kill -9

Tool uses are posted while the observer waits for a model; the worker is killed and started again,
the turn ends, and the model answers.

{medians.table("", pair("tool uses")[:2])}
"""


def _footprint(medians: Medians, images: Path) -> str:
    tables = [
        medians.table("", pair(unit), [c for c in medians.cases if medians.of(c, OURS, unit)])
        for unit in ("MB", "ms", "per second", "processes")
    ]
    return _FOOTPRINT + "\n\n".join(tables) + "\n"


def _sessions(medians: Medians, images: Path) -> str:
    return f"""## Sessions of the real client

`claude -p` with each product as its plugin and an API on loopback as the model; a run has one
prompt and three tool uses. Figures are means of all runs. Tokens are estimated from the text that
was sent. The npm package's hooks for tools and for the end of a turn run in the background: the
client does not wait for them when it ends, and the busier the machine, the more events are lost.

{medians.table("", pair("per run")[:2])}
"""


def _recall(medians: Medians, images: Path) -> str:
    columns = [Column(product, product, "questions") for product in medians.products]
    same = "The npm package has the same memories."
    missing = "The npm package was not measured."
    return f"""## Recall

Questions that a developer might ask weeks later, each answered by one session. Ours imports and
distils the sessions. {same if PEER in medians.products else missing} A question counts as answered
if a result belongs to the right session and its turn (or message) contains all terms of the answer.
For ours and for FTS5 the first ten results count, for the npm package all, up to thirty per search.

{medians.table("", columns)}
"""


def _hook_starts(medians: Medians, images: Path) -> str:
    bare = medians.of("", BARE, "ms") or 1.0
    rows = [
        [case, number(value), f"{number(value / bare)}x"]
        for case in medians.cases
        if (value := medians.of(case, OURS, "ms")) is not None
    ]
    return f"""## Hooks compared with an interpreter

Elapsed times of ours alone, as `python -m bench hooks` measures them: with memories and a context,
and a prompt that is looked up in 10,000 turns. `{BARE}` takes {number(bare)} ms in the same run.

{markdown(["hook", "ms", "/ interpreter"], rows)}
"""


def _commands(medians: Medians, images: Path) -> str:
    sizes = [case.rpartition(", ")[2] for case in medians.cases if case.startswith(", ")]
    names = list(dict.fromkeys(case.rpartition(", ")[0] for case in medians.cases))
    head = ["command", *(f"{size} observations" for size in sizes)]
    elapsed, processor = (
        markdown(head, [[f"`{BARE}`", *(_bare(medians, size, unit) for size in sizes)],
                        *([name, *(_to_bare(medians, name, size, unit) for size in sizes)]
                          for name in names if name)])
        for unit in ("ms", "ms CPU")
    )  # fmt: skip
    return f"""## Commands

`claude-mem` with a running worker, as shipped, compared with an interpreter in the same run (the
first row). In milliseconds and, in brackets, how many times as long as the interpreter. Elapsed,
with the work of the worker:

{elapsed}

Processor time of the command alone:

{processor}
"""


def _bare(medians: Medians, size: str, unit: str) -> str:
    value = medians.of(f", {size}", BARE, unit)
    return MISSING if value is None else number(value)


def _to_bare(medians: Medians, name: str, size: str, unit: str) -> str:
    value, bare = medians.of(f"{name}, {size}", OURS, unit), medians.of(f", {size}", BARE, unit)
    return MISSING if value is None or not bare else f"{number(value)} ({number(value / bare)}x)"


def _mcp(medians: Medians, images: Path) -> str:
    us, bare = Column("ours, ms", OURS, "ms"), Column("interpreter, ms", BARE, "ms")
    return f"""## MCP

From the start of the MCP server to its first answer. *Interpreter*: a Python process that reads a
line and writes one.

{medians.table("", [us, bare, Ratio("ratio", us, bare)])}
"""


def _spool(medians: Medians, images: Path) -> str:
    columns = [
        Column(f"{name}, {unit}", name, unit)
        for unit in ("events/s", "events/s CPU")
        for name in (OURS, MIN_SPOOL)
    ]
    return f"""## Spool

Events of fifty sessions at once, from files to rows, on one core, compared with a program that only
reads, parses and inserts them. *CPU*: per second of processor time.

{medians.table("", columns)}
"""


def _bare_search(medians: Medians, images: Path) -> str:
    us, bare = (Column(f"{name}, ms CPU", name, "ms CPU") for name in (SHIPPED, MIN_SEARCH))
    return f"""## Search compared with bare FTS5 and a scan

Turns with their records, about nine passages each; the number at the end of a label is that of the
turns. *Bare FTS5 and a scan*: SQLite returns the forty best passages by bm25 and the texts of eight
of them, and numpy compares the query with the vectors of all passages once.

{medians.table("query", [us, bare, Ratio("ratio", us, bare)])}
"""


_SECTIONS: dict[str, Callable[[Medians, Path], str]] = {
    "hooks": _hooks,
    "hook-starts": _hook_starts,
    "commands": _commands,
    "mcp": _mcp,
    "search": _search,
    "bare-search": _bare_search,
    "ingest": _ingest,
    "spool": _spool,
    "kill": _kill,
    "footprint": _footprint,
    "sessions": _sessions,
    "recall": _recall,
}


def _plot(path: Path, svg: str) -> None:
    path.write_text(svg, "utf-8")
