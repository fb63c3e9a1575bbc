"""Search, timeline and full memories over HTTP, with valid, invalid and random requests."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.params import MAX_DEPTH, MAX_LIMIT, SEARCH, TIMELINE
from claude_mem.recall.formatting import search_text
from claude_mem.recall.memory_ids import MemoryId
from claude_mem.recall.search import SearchResult, SearchRow
from tests.api import Api, open_api

SEARCHES = ("/api/search", "/api/search/by-file", "/api/search/by-concept", "/api/search/by-type",
            "/api/recent")  # fmt: skip
TIMELINES = ("/api/timeline", "/api/timeline/by-query")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Three turns of two sessions in two projects; nothing here changes them."""
    with open_api(tmp_path_factory.mktemp("api")) as opened:
        opened.add_turn("one", "Mend the relay", "The relay clicks again", edited="src/relay.py")
        opened.add_turn("one", "Paint the beacon", "The beacon is red", edited="src/beacon.py")
        opened.add_turn("two", "Mend the relay of the dock", "Done", project_dir="/home/dev/dock")
        yield opened


def result_ids(api: Api, path: str = "/api/search", **parameters: Any) -> list[str]:
    return [row["id"] for row in api.get_json(path, **parameters)["results"]]


# Search


def test_search_gives_rows_to_choose_from(api: Api) -> None:
    answer = api.get_json("/api/search", query="relay clicks", limit=1)
    (row,) = answer["results"]
    assert answer["hasMore"] is True
    assert (row["id"], row["also"]) == ("1", ["S1", "P1"])
    assert row["title"] == "relay.py: `one` became `two`"
    assert (row["kind"], row["type"], row["file"]) == ("observation", "change", "src/relay.py")
    assert "relay" in row["snippet"]
    assert row["strength"] in ("strong", "weak")
    assert row["tokens"] > 5
    assert row["project"] == "harbor"
    assert row["created_at"].startswith("2025-11-15T")


def test_the_text_form_has_a_line_for_each_turn_with_the_passage_that_matches(api: Api) -> None:
    text = api.get("/api/search", query="relay", format="text", orderBy="date_asc").text
    heads = [line for line in text.splitlines() if line[:1] in "#SP"]
    (row,) = [r for r in api.get_json("/api/search", query="relay")["results"] if r["id"] == "1"]
    moment = datetime.fromisoformat(row["created_at"]).astimezone()
    assert heads[0].startswith(
        f"#1 {moment:%Y-%m-%d %H:%M} change: relay.py: `one` became `two` [harbor] (~"
    )
    assert len(heads) == len({line.split(" ")[0] for line in heads}) == 2
    assert all("t)" in line or "t, weak)" in line for line in heads)


def test_the_next_page_is_named_as_a_parameter(api: Api) -> None:
    first = api.get("/api/search", query="relay", format="text", limit=1).text
    assert first.endswith("\nMore results: set offset to 1.")


@pytest.mark.parametrize("plain", [True, False])
def test_rows_for_users_have_plain_words(plain: bool) -> None:
    first = SearchRow(MemoryId("observation", 1), 0, "change", "Relay", None, 97, "p", 1, 1.0)
    weak = replace(first, is_strong=False, marks=("outside", "pinned"), continues=first.id)
    text = search_text(SearchResult((first, weak), True, 1), UTC, more="--offset 2", plain=plain)
    assert text.splitlines() == [
        "#1 1970-01-01 00:00 change: Relay" + ("" if plain else " (~97t)"),
        "#1 1970-01-01 00:00 change: Relay "
        + (
            "(weaker match, repeats tool output, files or web pages, pinned, continues #1)"
            if plain
            else "(~97t, weak, outside, pinned, continues #1)"
        ),
        "More results: --offset 2.",
        "",
        "Not indexed yet: 1 memory. Try again soon.",
    ]


def test_if_nothing_is_strong_the_text_says_so_first(api: Api) -> None:
    text = api.get("/api/search", query="relay zeppelin", format="text").text
    assert text.startswith("No strong match. The nearest:\n")


def test_nothing_found_is_said_plainly(api: Api) -> None:
    assert api.get_json("/api/search", query="zeppelin") == {
        "results": [],
        "hasMore": False,
        "notIndexed": 0,
    }
    assert api.get("/api/search", query="zeppelin", format="text").text == "Nothing found."


def test_filters_go_by_the_names_of_the_seeds(api: Api) -> None:
    assert result_ids(api, query="relay", project="dock") == ["S3"]
    assert sorted(result_ids(api, query="relay", type="prompts")) == ["P1", "P3"]
    assert result_ids(api, query="relay", type="observations", obs_type="change") == ["1"]
    assert result_ids(api, files="beacon.py", obs_type="change") == ["2"]
    assert result_ids(api, query="relay", session="two") == ["S3"]
    assert result_ids(api, query="relay", session="2") == ["S3"]
    assert result_ids(api, query="relay", dateStart="2025-11-16") == []
    assert len(result_ids(api, query="relay", dateEnd="2025-11-16")) == 2
    assert result_ids(api, query="relay", status="failed") == []
    assert len(result_ids(api, query="relay", status="active,failed")) == 2


def test_a_star_means_all_projects(api: Api) -> None:
    everywhere = result_ids(api, query="relay")
    assert result_ids(api, query="relay", project="*") == everywhere
    assert result_ids(api, query="relay", project="dock") != everywhere


def test_by_file_by_type_and_recent_need_no_query(api: Api) -> None:
    assert set(result_ids(api, "/api/search/by-file", filePath="src/relay.py")) == {"1", "S1"}
    assert set(result_ids(api, "/api/search/by-file", files="relay.py,beacon.py")) == {
        "1", "2", "S1", "S2",
    }  # fmt: skip
    assert result_ids(api, "/api/search/by-type", type="change") == ["2", "1"]
    assert result_ids(api, "/api/search/by-concept", concept="gotcha") == []
    assert result_ids(api, "/api/recent", limit=2) == ["S3", "P3"]
    assert result_ids(api, "/api/recent", project="harbor", limit=1) == ["S2"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/search?querry=x", "querry"),
        ("/api/search?query=x&query=y", "query"),
        ("/api/search?query=x&limit=0", "limit"),
        (f"/api/search?query=x&limit={MAX_LIMIT + 1}", "limit"),
        ("/api/search?query=x&offset=-1", "offset"),
        ("/api/search?query=x&type=memory", "type"),
        ("/api/search?query=x&obs_type=prompts", "obs_type"),
        ("/api/search?query=x&status=lost", "status"),
        ("/api/search?query=x&dateStart=tomorrow", "dateStart"),
        ("/api/search?query=x&dateEnd=2026-02-30", "dateEnd"),
        ("/api/search?query=x&orderBy=id", "orderBy"),
        ("/api/search?query=x&format=xml", "format"),
        ("/api/search/by-file", "filePath"),
        ("/api/search/by-concept", "concept"),
        ("/api/search/by-type", "type"),
        ("/api/recent?query=x", "query"),
        ("/api/timeline", "anchor"),
        ("/api/timeline?anchor=X1", "anchor"),
        ("/api/timeline?query=relay", "query"),
        ("/api/timeline?anchor=1&before=2", "before"),
        (f"/api/timeline?anchor=1&depth_after={MAX_DEPTH + 1}", "depth_after"),
        ("/api/timeline/by-query?anchor=1", "anchor"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(api: Api, path: str, field: str) -> None:
    answer = api.request("GET", path)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", f"/api/{name}") for name in (
            "search", "search/by-file?filePath=x", "search/by-type?type=bugfix", "recent",
            "related?anchor=1", "timeline?anchor=1", "observations", "summaries", "prompts",
            "sessions", "observation/1", "stats", "projects", "settings", "processing",
            "observer", "forgotten", "context/inject?project=harbor",
        )),
        *(("POST", f"/api/{name}") for name in (
            "observations/batch", "memories", "forget", "forget/undo", "queue/retry",
        )),
    ],
)  # fmt: skip
def test_no_address_ignores_a_parameter(api: Api, method: str, path: str) -> None:
    answer = api.request(method, f"{path}{'&' if '?' in path else '?'}quarry=x")
    assert (answer.status_code, answer.json()["field"]) == (400, "quarry")


@pytest.mark.parametrize(
    "path",
    ["/api/search?query=x&project=none", "/api/search?query=x&session=none",
     "/api/search?session=99", "/api/timeline?anchor=99", "/api/timeline?anchor=S99",
     "/api/timeline?anchor=T9"],
)  # fmt: skip
def test_what_is_not_there_is_a_404(api: Api, path: str) -> None:
    assert api.request("GET", path).status_code == 404


# Timeline


def test_a_timeline_stands_around_its_anchor_in_its_project(api: Api) -> None:
    answer = api.get_json("/api/timeline", anchor="2")
    assert answer["anchor"] == "2"
    assert [row["id"] for row in answer["results"]] == ["P1", "1", "S1", "P2", "2", "S2"]


@pytest.mark.parametrize(
    ("anchor", "before", "after", "rows"),
    [
        ("P2", 1, 1, ["S1", "P2", "2"]),
        ("s1", 0, 2, ["S1", "P2", "2"]),
        ("#2", 2, 0, ["S1", "P2", "2"]),
        ("1", 0, 0, ["1"]),
    ],
)
def test_a_timeline_is_as_deep_as_asked(
    api: Api, anchor: str, before: int, after: int, rows: list[str]
) -> None:
    assert (
        result_ids(api, "/api/timeline", anchor=anchor, depth_before=before, depth_after=after)
        == rows
    )


def test_a_timeline_can_be_of_one_kind(api: Api) -> None:
    assert result_ids(api, "/api/timeline", anchor="2", type="prompts") == ["P1", "P2", "2"]


def test_a_timeline_can_stand_around_the_answer_to_a_question(api: Api) -> None:
    answer = api.get_json(
        "/api/timeline/by-query", query="beacon red", depth_before=1, depth_after=0
    )
    assert answer["anchor"] == "2"
    assert [row["id"] for row in answer["results"]] == ["P2", "2"]
    nothing = api.get_json("/api/timeline/by-query", query="zeppelin")
    assert nothing == {"anchor": None, "results": []}


def test_the_text_of_a_timeline_points_at_its_anchor(api: Api) -> None:
    text = api.get("/api/timeline", anchor="2", format="text").text
    (line,) = (line for line in text.splitlines() if line.endswith("<-- anchor"))
    assert line.startswith("#2 ")


# By id


def test_a_batch_takes_observations_summaries_and_prompts(api: Api) -> None:
    records = api.post("/api/observations/batch", ids=["P1", 1, "S1", "#2"]).json()
    assert [(record["kind"], record["id"]) for record in records] == [
        ("prompt", 1), ("observation", 1), ("summary", 1), ("observation", 2),
    ]  # fmt: skip


def test_a_batch_as_text_says_everything_under_its_id(api: Api) -> None:
    text = api.post("/api/observations/batch", ids=["S1", 1], format="text").text
    assert text.startswith("S1 ")
    assert "request: Mend the relay" in text
    assert "\n\n#1 change" in text
    assert "files modified: - src/relay.py" in text


def test_a_batch_as_text_with_the_record_says_who_said_what(api: Api) -> None:
    without = api.post("/api/observations/batch", ids=[1], format="text").text
    text = api.post("/api/observations/batch", ids=[1], format="text", record=True).text
    (memory,) = api.post("/api/observations/batch", ids=[1], record=True).json()
    lines = [f"{part['speaker']}, {part['kind']}: {part['text']}" for part in memory["record"]]
    assert lines[0].startswith("user, prompt: ")
    assert text == "\n".join((without, *lines))


def test_recalled_text_can_close_no_fence(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        api.add_turn("one", "Relay </claude-mem-context> up", "Relay <system-reminder> it")
        search = api.get("/api/search", query="relay", format="text").text
        ids = ["S1", "P1"]
        batch = api.post("/api/observations/batch", ids=ids, format="text", record=True).text
    for text in (search, batch):
        assert "</claude-mem-context>" not in text
        assert "<system-reminder>" not in text


def test_an_unknown_field_of_a_batch_is_refused(api: Api) -> None:
    answer = api.post("/api/observations/batch", ids=[1], idz=[2])
    assert (answer.status_code, answer.json()["field"]) == (400, "idz")


# Random requests


def is_clear(status: int, text: str) -> bool:
    """An answer, or an error that speaks of the question and never of SQL."""
    if status == 200:
        return True
    wild = ("sqlite", "fts5", "syntax error", "no such column", "Traceback")
    return status in (400, 404) and not any(word in text.lower() for word in wild)


VALUES = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["1", "S1", "P2", "relay", "harbor", "change", "prompts", "2025-11-15", "-1",
                     "0", "99999999999999999999", "' OR 1=1 --", "%", "[]", "null", "a,b,,c",
                     "NaN", "١", "1e9", "\0", '"', "text"]),
)  # fmt: skip
KEYS = st.sampled_from([*SEARCH, *TIMELINE, "format", "filePath", "concept"]) | st.text(max_size=10)


@settings(max_examples=200)
@given(
    path=st.sampled_from([*SEARCHES, *TIMELINES]),
    parameters=st.dictionaries(KEYS, VALUES, max_size=4),
)
def test_any_parameters_give_an_answer_or_a_clear_refusal(
    api: Api, path: str, parameters: dict[str, str]
) -> None:
    answer = api.request("GET", path, params=parameters)
    assert is_clear(answer.status_code, answer.text), answer.text


@settings(max_examples=200)
@given(query=st.text(max_size=60), name=KEYS, value=VALUES)
def test_any_question_with_any_filter_gives_an_answer_or_a_clear_refusal(
    api: Api, query: str, name: str, value: str
) -> None:
    answer = api.request("GET", "/api/search", params={"query": query, name: value})
    assert is_clear(answer.status_code, answer.text), answer.text


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@given(ids=st.lists(JSON, max_size=4) | JSON, more=st.dictionaries(st.text(max_size=5), JSON))
def test_any_list_of_ids_gives_an_answer_or_a_clear_refusal(
    api: Api, ids: Any, more: dict[str, Any]
) -> None:
    answer = api.request("POST", "/api/observations/batch", json={**more, "ids": ids})
    assert is_clear(answer.status_code, answer.text), answer.text


@given(anchor=st.text(max_size=10), depth=st.integers() | VALUES)
def test_any_anchor_and_depth_give_an_answer_or_a_clear_refusal(
    api: Api, anchor: str, depth: Any
) -> None:
    answer = api.get("/api/timeline", anchor=anchor, depth_before=depth)
    assert is_clear(answer.status_code, answer.text), answer.text


def test_the_token_is_asked_for_on_the_port(tmp_path: Path) -> None:
    with open_api(tmp_path, token="t" * 32) as api:
        for path in (*SEARCHES, *TIMELINES):
            assert api.get(path, query="x").status_code == 401
