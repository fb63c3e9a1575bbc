"""`python -m bench.peers [MEASURE …]`: all measures or the named ones, then the page."""

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.peers import (
    baselines,
    footprint,
    hooks,
    ingest,
    recall,
    report,
    scale,
    sessions,
    summary,
)
from bench.peers.install import Installation, install
from bench.peers.samples import Results, Sample
from bench.peers.stores import make_stores

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "bench" / "results" / "peers.json"
SIZES = "1000,10000,100000,1000000"
TURNS = "1000,10000,100000"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench.peers", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE")
    parser.add_argument("--sizes", default=SIZES, help=f"observations (default {SIZES})")
    parser.add_argument("--shipped-sizes", default=SIZES, help="with record and vectors, the same")
    parser.add_argument("--turns", default=TURNS, help=f"of bare-search (default {TURNS})")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=20, help="of the real client")
    parser.add_argument("--events", type=int, default=480, help="of a round of ingest")
    parser.add_argument("--install", type=Path, help="where the npm package is or will be")
    parser.add_argument("--stores", type=Path, help="where filled databases are kept")
    parser.add_argument("--questions", type=Path, metavar="DIR", help="adds the measure recall")
    parser.add_argument("--report-only", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    results = Results(RESULTS)
    failed = [] if options.report_only else _measure(options, results)
    report.write(results, ROOT / "docs")
    summary.write(results, ROOT / "README.md")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _measure(options: argparse.Namespace, results: Results) -> list[str]:
    failed = []
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="claude-mem-")))
        own = _own_measures(options, temporary)
        versions: dict[str, str] = {}
        measures = own
        if any(name not in own for name in options.measures or ["all"]):
            installation = install(options.install or temporary / "npm")
            versions = installation.versions
            measures = _measures(options, installation, temporary) | own
        for name in options.measures or measures:
            print(f"== {name}", flush=True)
            try:
                samples = measures[name]()
            except Exception:
                traceback.print_exc()
                failed.append(name)
                continue
            results.add(name, samples, {} if name in own else versions)
            for sample in samples:
                print(f"  {sample.product}: {sample.case}: {sample.median:.4g} {sample.unit}")
    return failed


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _measures(
    options: argparse.Namespace, installation: Installation, temporary: Path
) -> dict[str, Callable[[], list[Sample]]]:
    rounds = options.rounds
    measures: dict[str, Callable[[], list[Sample]]] = {
        "hooks": lambda: hooks.measure(installation, rounds),
        "search": lambda: _search(options, installation, temporary),
        "ingest": lambda: ingest.measure(installation, options.events, max(3, rounds // 4)),
        "kill": lambda: ingest.measure_kill(installation),
        "footprint": lambda: footprint.measure(installation, max(3, rounds // 4), temporary),
        "sessions": lambda: sessions.measure(installation, options.runs),
    }
    if options.questions:
        measures["recall"] = lambda: recall.measure(installation, options.questions)
    return measures


def _search(
    options: argparse.Namespace, installation: Installation, temporary: Path
) -> list[Sample]:
    sizes, shipped_sizes = _numbers(options.sizes), _numbers(options.shipped_sizes)
    stores = options.stores or temporary / "stores"
    make_stores(stores, {"plain": sizes, "full": [s for s in shipped_sizes if s in sizes]})
    return scale.measure(installation, stores, sizes, shipped_sizes, options.rounds)


def _own_measures(
    options: argparse.Namespace, temporary: Path
) -> dict[str, Callable[[], list[Sample]]]:
    """Makes the measures that need no npm package."""
    rounds, stores = options.rounds, options.stores or temporary / "stores"
    sizes = _numbers(options.shipped_sizes)
    return {
        "hook-starts": lambda: baselines.measure_hook_starts(5 * rounds),
        "commands": lambda: baselines.measure_commands(stores, sizes, rounds),
        "mcp": lambda: baselines.measure_mcp(max(3, rounds // 4)),
        "spool": lambda: baselines.measure_spool(max(3, rounds // 4)),
        "bare-search": lambda: baselines.measure_bare_search(_numbers(options.turns)),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
