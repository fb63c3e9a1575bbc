"""The page of the comparison with the npm package is written from raw numbers alone."""

import json
from pathlib import Path
from xml.etree import ElementTree

from bench.peers import report, summary
from bench.peers.plots import Group, bars
from bench.peers.samples import BARE, OURS, PEER, Results, Sample
from bench.peers.tables import Medians, pair


def test_a_table_shows_medians_and_their_ratio() -> None:
    medians = Medians(
        [
            Sample("PostToolUse", OURS, "ms", (30.0, 10.0, 20.0)),
            Sample("PostToolUse", PEER, "ms", (400.0,)),
        ]
    )
    assert medians.table("hook", pair("ms")).splitlines()[2:] == [
        "| PostToolUse | 20 | 400 | 0.05x |"
    ]


def test_a_ratio_below_a_hundredth_keeps_its_figures() -> None:
    samples = [Sample("context", OURS, "ms", (1.5,)), Sample("context", PEER, "ms", (400.0,))]
    assert Medians(samples).table("", pair("ms")).endswith("| context | 1.50 | 400 | 0.0037x |")


def test_what_one_product_cannot_do_is_shown_as_missing() -> None:
    medians = Medians([Sample("by meaning", OURS, "ms", (5.0,))])
    assert medians.table("search", pair("ms")).endswith("| by meaning | 5 | – | – |")


def test_a_plot_is_valid_xml_with_a_bar_for_each_value() -> None:
    groups = [Group("a < b", (0.5, 90.0)), Group("c", (None, 3.0))]
    drawn = ElementTree.fromstring(bars("Search & context", (OURS, PEER), groups, "ms"))
    namespace = "{http://www.w3.org/2000/svg}"
    legend = 2
    assert len(drawn.findall(f"{namespace}rect")) == legend + 3


def test_a_measure_replaces_its_own_results_only(tmp_path: Path) -> None:
    path = tmp_path / "results" / "peers.json"
    Results(path).add("kill", [Sample("stored", OURS, "tool uses", (60.0,))], {})
    Results(path).add("hooks", [Sample("Stop", OURS, "ms", (1.0,))], {})
    Results(path).add("hooks", [Sample("Stop", OURS, "ms", (2.0, 3.0))], {"bun": "1.3"})
    stored = Results(path)
    assert [sample.values for sample in stored.samples("hooks")] == [(2.0, 3.0)]
    assert [sample.values for sample in stored.samples("kill")] == [(60.0,)]
    assert stored.measures["hooks"]["versions"]["bun"] == "1.3"
    assert json.loads(path.read_bytes()).keys() == {"kill", "hooks"}


def test_the_page_has_the_measures_that_were_made(tmp_path: Path) -> None:
    results = Results(tmp_path / "results" / "peers.json")
    samples = [
        Sample("", BARE, unit, (12.0,)) for unit in ("ms", "ms CPU")
    ] + [
        Sample("Stop, worker running", product, unit, (value,))
        for product, value in ((OURS, 10.0), (PEER, 500.0))
        for unit in ("ms", "ms CPU")
    ]  # fmt: skip
    results.add("hooks", samples, {"node": "20.0"})
    (tmp_path / "docs" / "images").mkdir(parents=True)
    report.write(results, tmp_path / "docs")
    page = (tmp_path / "docs" / "benchmarks.md").read_text("utf-8")
    assert "| Stop, worker running | 10 | 500 | 50x |" in page
    assert "## Search" not in page
    assert "node 20.0" in page
    assert (tmp_path / "docs" / "images" / "benchmark-hooks.svg").exists()


def test_the_page_has_commands_next_to_an_interpreter_at_each_size(tmp_path: Path) -> None:
    results = Results(tmp_path / "results" / "peers.json")
    samples = [
        Sample(case, product, unit, (value,))
        for case, product, value in ((", 1,000", BARE, 10.0), ("status, 1,000", OURS, 25.0),
                                     (", 10,000", BARE, 8.0), ("status, 10,000", OURS, 32.0))
        for unit in ("ms", "ms CPU")
    ]  # fmt: skip
    results.add("commands", samples, {})
    (tmp_path / "docs").mkdir()
    report.write(results, tmp_path / "docs")
    page = (tmp_path / "docs" / "benchmarks.md").read_text("utf-8")
    assert "| command | 1,000 observations | 10,000 observations |" in page
    assert page.count("| status | 25 (2.50x) | 32 (4x) |") == 2


def test_the_readme_gets_its_table_between_the_marks(tmp_path: Path) -> None:
    results = Results(tmp_path / "results" / "peers.json")
    samples = [
        Sample("16 clients", OURS, "events/s", (900.0,)),
        Sample("16 clients", PEER, "events/s", (300.0,)),
    ]
    results.add("ingest", samples, {})
    readme = tmp_path / "README.md"
    readme.write_text(f"# Title\n{summary.START}\nold\n{summary.END}\nThe rest\n", "utf-8")
    summary.write(results, readme)
    text = readme.read_text("utf-8")
    assert "| events over HTTP, 16 clients | 900/s | 300/s |" in text
    assert text.startswith("# Title\n") and text.endswith("The rest\n") and "old" not in text
