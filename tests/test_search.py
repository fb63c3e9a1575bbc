"""Search results: which memories match a query, which do not, and their order."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_mem.index.text.documents import DOCUMENT_BITS
from claude_mem.index.text.filters import Filters
from claude_mem.recall.search import Order, Query, search, snippet
from claude_mem.store import turn_records
from claude_mem.types import Observation, Project, RecordPart, Summary
from tests.remembering import (
    HARBOR,
    ids,
    ids_of_turns,
    look,
    remember,
    remember_turns,
    titles,
)
from tests.story import Story

MONDAY = datetime(2026, 3, 9, 12, tzinfo=UTC)


def narrative(text: str, title: str = "A thing") -> Observation:
    return Observation("discovery", title=title, narrative=text)


# Words


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("useEvaluationApi returns a new object", "evaluation api"),
        ("useEvaluationApi returns a new object", "useEvaluationApi"),
        ("useEvaluationApi returns a new object", "useevaluationapi"),
        ("the evaluation api is slow", "evaluationApi"),
        ("parse_config_file is pure", "config file"),
        ("parse_config_file is pure", "parse_config_file"),
        ("readConfigFile is pure", "read_config_file"),
        ("the flag is long-running", "long-running"),
        ("mended src/store/queue.py", "queue.py"),
        ("mended src/store/queue.py", "src/store/queue.py"),
        ("mended C:\\work\\queue.py", "work queue"),
        ("asyncio.wait_for was missing", "asyncio.wait_for"),
        ("asyncio.wait_for was missing", "wait for asyncio"),
        ("needs version 2.14.1 or later", "2.14.1"),
        ("pass --force to overwrite", "--force"),
        ("pass --force to overwrite", "force overwriting"),
        ("fails with TS2345 again", "ts2345"),
        ("fails with TS2345 again", "2345"),
        ("fails with E1234 again", "E1234"),
        ("open: ENOENT", "enoent"),
        ("OAuth2Client expired", "oauth client"),
        ("HTTPServer expired", "http server"),
        ("the lamps were blinking", "blink lamp"),
        ("written in C++ and C#", "c++"),
        ("written in C++ and C#", "C#"),
        ("a naïve café", "naive cafe"),
        ("数据库连接失败", "连接"),
        ("数据库连接失败", "失"),
        ("数据库连接失败", "败"),
        ("数据库连接失败", "为什么数据库会失败"),
        ("使用SQLite数据库", "sqlite"),
        ("港の灯台が二度点滅する", "灯台"),
        ("港の灯台が二度点滅する", "する"),
        ("데이터베이스를 고쳤다", "데이터"),
        ("प्रकाश स्तंभ ठीक है", "स्तंभ"),
        ("маяки мигают", "МАЯКИ"),
        ("ฐานข้อมูลเสีย", "ข้อมูล"),
        ("ＦＵＬＬ ｗｉｄｔｈ", "full width"),
    ],
)
def test_a_memory_is_found_by_what_it_says(story: Story, text: str, query: str) -> None:
    remember(story, narrative(text), session="a")
    remember(story, narrative("something else entirely"), session="b")
    assert ids(story, query) == ["1"]


def test_every_part_of_a_memory_is_searched(story: Story) -> None:
    remember(
        story,
        Observation(
            "bugfix", "alpha", "bravo", "charlie", ("delta",), ("echo",), ("foxtrot.py",),
            ("golf.py",),
        ),
        prompt="hotel",
        summary=Summary("india", "juliett", "kilo", "lima", "mike", ("november.py",), ("oscar",),
                        "papa"),
    )  # fmt: skip
    words = (
        "alpha bravo charlie delta echo foxtrot golf india juliett kilo lima mike november oscar"
    )
    for word in [*words.split(), "papa", "hotel"]:
        assert ids_of_turns(story, word) == [{"1", "S1", "P1"}], word


def test_a_turn_is_one_row_named_after_its_first_observation(story: Story) -> None:
    remember(story, "The relay clicks", "The relay hums", prompt="Mend the relay", session="a")
    remember(story, prompt="Paint the relay", session="b")
    rows = look(story, "relay").rows
    assert {str(row.id): list(map(str, row.also)) for row in rows} == {
        "1": ["2", "P1"],
        "P2": [],
    }


def test_snippets_are_shorter_from_the_fifth_row_on(story: Story) -> None:
    for number in range(6):
        said = f"The relay of lamp {number} hums in the rain. {'Nobody knows why yet. ' * 12}"
        remember(story, said, session=f"s{number}")
    lengths = [len(row.snippet) for row in look(story, "relay").rows]
    assert all(length > 120 for length in lengths[:4]) and len(lengths) == 6
    assert all(60 < length <= 102 for length in lengths[4:])


@pytest.mark.parametrize("mark", ["-", "—", "İ"])  # the last becomes two characters in lower case
def test_a_snippet_shows_the_words_of_the_query_whatever_is_around_them(mark: str) -> None:
    text = f"{mark} rope " * 60 + "the Ballast pump leaks" + f" {mark} rope" * 60
    assert "the Ballast pump" in snippet(text, frozenset({"ballast", "pump"}))


def test_a_snippet_is_cut_between_words() -> None:
    stems = frozenset({"pump"})
    assert snippet("a pump", stems, 6) == "a pump"
    assert snippet("rope rope pump rope", stems, 10) == "…rope pump…"
    assert snippet("rope rope pump", stems, 10) == "…rope pump"
    assert snippet(f"{'x' * 30} pump", stems, 10) == "…pump"
    assert snippet(f"{'x' * 30} rope", stems, 10) == f"{'x' * 30}…"


def test_what_was_said_is_found_though_no_memory_holds_it(story: Story) -> None:
    remember(story, "Mended the lamp", session="a")
    parts = (RecordPart("statement", "agent", "The breaker trips at 40 amperes on the pier."),)
    story.store.write(lambda c: turn_records.save_record(c, 1, parts, story.now)).result()
    (row,) = look(story, "at how many amperes does the breaker trip").rows
    assert row.title == "Mended the lamp"
    assert row.snippet == "The breaker trips at 40 amperes on the pier."


def test_any_word_may_match_and_more_words_match_better(story: Story) -> None:
    remember(story, "The relay clicks", session="a")
    remember(story, "The relay fuse clicks", session="b")
    remember(story, "An unrelated rope", session="c")
    assert titles(story, "relay fuse") == ["The relay fuse clicks", "The relay clicks"]


def test_a_phrase_in_quotes_must_match(story: Story) -> None:
    remember(story, "The light is red", session="a")
    remember(story, "Red is the light", session="b")
    assert titles(story, '"light is red"') == ["The light is red"]
    assert titles(story, 'harbour "red is"') == ["Red is the light"]
    assert not titles(story, '"light red"')


def test_a_word_with_a_dash_before_it_must_not_match(story: Story) -> None:
    remember(story, "The relay clicks", session="a")
    remember(story, "The relay hums", session="b")
    assert titles(story, "relay -hums") == ["The relay clicks"]
    assert titles(story, 'relay -"the relay clicks"') == ["The relay hums"]


def test_stop_words_match_nothing_next_to_a_content_word(story: Story) -> None:
    remember(story, "What is in the box", session="a")
    remember(story, "The relay clicks", session="b")
    assert titles(story, "what is in the relay") == ["The relay clicks"]
    assert titles(story, "what is in the") == ["What is in the box"]


# Honesty


@pytest.mark.parametrize(
    "query", ["kubernetes", "  ", "🗼", "-relay", '""', "*", "AND", "NEAR(", "\0", "\ud800"]
)
def test_nothing_is_found_where_there_is_nothing(story: Story, query: str) -> None:
    remember(story, "The relay clicks")
    assert not look(story, query).rows


def test_a_row_that_shares_one_common_word_with_a_long_question_is_noise(story: Story) -> None:
    for number in range(30):
        remember(story, f"Mended the deploy of pier {number}", session=f"s{number}")
    question = "why did the kubernetes ingress controller reject websocket upgrades after deploy"
    assert not titles(story, question)
    assert titles(story, "deploy")


# Order


def test_a_memory_beside_a_hit_answers_a_question(story: Story) -> None:
    for number in range(6):
        remember(story, f"Ropes of pier {number} were counted", session=f"other {number}")
    remember_turns(
        story,
        "Which bulb suits the northern lighthouse lantern?",
        "Sodium, forty watts",
        "The gulls were loud",
        "Paint dried",
        session="talk",
    )
    found = titles(story, "Which bulb does the northern lighthouse lantern need?")
    assert found[:2] == ["Which bulb suits the northern lighthouse lantern?", "Sodium, forty watts"]


def test_a_neighbour_comes_in_neither_for_a_keyword_nor_for_a_phrase(story: Story) -> None:
    remember_turns(story, "The lantern needs a bulb for the northern pier", "Sodium, forty watts")
    assert len(titles(story, "lantern")) == 1
    assert len(titles(story, '"lantern needs a bulb" northern pier')) == 1


def test_neighbours_lend_nothing_across_sessions(story: Story) -> None:
    remember(story, "The lantern needs a bulb for the northern pier", session="a")
    remember(story, "Sodium, forty watts", session="b")
    assert len(titles(story, "which bulb does the lantern of the northern pier need")) == 1


@pytest.mark.parametrize(
    ("query", "when"),
    [
        ("relay yesterday", "yesterday"),
        ("relay last week", "yesterday"),
        ("the relay on Thursday", "thursday"),
        ("what about the relay 3 weeks ago", "february"),
        ("relay in January", "january"),
        ("relay on 8 January", "january"),
        ("relay 2026-01-08", "january"),
        ("relay before February", "january"),
        ("relay in August 2025", "august"),
        ("relay in 2025", "august"),
    ],
)
def test_the_time_in_a_question_lifts_the_memories_of_that_time(
    story: Story, query: str, when: str
) -> None:
    days = {"august": 200, "january": 60, "february": 21, "thursday": 4, "yesterday": 1, "now": 0}
    rows = {
        remember(story, "The relay clicked", session=name, at=MONDAY - timedelta(days=ago))[0]: name
        for name, ago in days.items()
    }
    story.now = int(MONDAY.timestamp() * 1000)
    names = [rows[row.id.number] for row in look(story, query).rows]
    assert names[0] == when
    assert len(names) == len(days)


# Filters


@pytest.fixture
def library(story: Story) -> Story:
    """Three projects' worth of relays."""
    remember(
        story,
        Observation("bugfix", "Relay bug", concepts=("gotcha",), files_modified=("src/relay.py",)),
        Observation("decision", "Relay choice", files_read=("docs/relay.md",)),
        session="one",
        prompt="Mend the relay",
        at=MONDAY - timedelta(days=10),
    )
    remember(story, "Relay elsewhere", session="two", project=Project("dock", "dock"), at=MONDAY)
    return story


def test_a_filter_leaves_only_what_passes_it(library: Story) -> None:
    day = int((MONDAY - timedelta(days=1)).timestamp() * 1000)
    session = library.session_db_id("one")
    expected = {
        Filters(project_id=library.store.find_project("dock")): {"Relay elsewhere"},
        Filters(types=("bugfix", "decision")): {"Relay bug"},
        Filters(types=("decision",)): {"Relay choice"},
        Filters(kinds=("prompt",)): {"Mend the relay"},
        Filters(kinds=("prompt",), types=("bugfix",)): {"Relay bug"},
        Filters(concepts=("gotcha",)): {"Relay bug"},
        Filters(files=("src/relay.py",)): {"Relay bug"},
        Filters(files=("relay.md", "relay.py")): {"Relay bug"},
        Filters(files=("relay.md",)): {"Relay choice"},
        Filters(files=("src",)): {"Relay bug"},
        Filters(files=("elay.py",)): set(),
        Filters(since=day): {"Relay elsewhere"},
        Filters(until=day): {"Relay bug"},
        Filters(session_id=session): {"Relay bug"},
        Filters(statuses=("completed",)): set(),
        Filters(statuses=("active",), types=("change",)): {"Relay elsewhere"},
    }
    for filters, names in expected.items():
        assert set(titles(library, "relay", filters)) == names, filters
        assert names <= set(titles(library, "", filters)), filters


def test_without_a_question_the_newest_comes_first(library: Story) -> None:
    assert titles(library, "")[0] == "Relay elsewhere"


@pytest.mark.parametrize("query", ["🗼", '""', "---", "NEAR(", "?!"])
def test_what_no_memory_can_hold_is_not_answered_with_all_that_pass_a_filter(
    library: Story, query: str
) -> None:
    bugfixes = Filters(types=("bugfix",))
    assert look(library, "", bugfixes).rows == look(library, "*", bugfixes).rows != ()
    assert not look(library, query, bugfixes).rows


def test_with_a_filter_a_word_can_be_excluded_from_all_that_pass(library: Story) -> None:
    assert titles(library, "-bug", Filters(types=("bugfix", "decision"))) == ["Relay choice"]


def test_a_filter_also_holds_back_neighbours(library: Story) -> None:
    question = "which relay bug was it in the morning"
    assert titles(library, question, Filters(types=("bugfix",))) == ["Relay bug"]


def test_pages_are_parts_of_one_list(story: Story) -> None:
    for number in range(9):
        remember(story, f"Relay {number}", session=f"s{number}")
    now = datetime.fromtimestamp(story.now / 1000, UTC)
    complete = search(story.store, Query("relay", limit=9), now)
    pages = [search(story.store, Query("relay", limit=4, offset=at), now) for at in (0, 4, 8)]
    assert [row for page in pages for row in page.rows] == list(complete.rows)
    assert [page.has_more for page in pages] == [True, True, False]
    assert not complete.has_more


@pytest.mark.parametrize(("order", "first"), [("date_desc", "Relay 2"), ("date_asc", "Relay 0")])
def test_hits_can_be_ordered_by_time(story: Story, order: Order, first: str) -> None:
    for number in range(3):
        remember(story, f"Relay {number}", session=f"s{number}")
    now = datetime.fromtimestamp(story.now / 1000, UTC)
    result = search(story.store, Query("relay", order=order), now)
    assert result.rows[0].title == first


@settings(max_examples=200)
@given(query=st.text(max_size=120) | st.sampled_from(["'; DROP TABLE documents; --", "a" * 200]))
def test_any_text_is_a_valid_question(library: Story, query: str) -> None:
    look(library, query)


def test_a_question_of_a_hundred_kilobytes_is_answered(library: Story) -> None:
    assert ids(library, "relay " + "relay-" * 16_000)
    look(library, " ".join(map(str, range(20_000))))
    look(library, '"' * 100_000)
    look(library, "港" * 40_000)


def test_a_prompt_that_announces_its_text_is_shown_with_it(story: Story) -> None:
    remember(story, prompt="Implement the following plan:\n\n# Mend the lantern\n\nFirst, ...")
    assert titles(story, "lantern") == ["Implement the following plan: # Mend the lantern"]


def test_a_sentence_is_not_answered_with_rows_that_only_fill_the_page(story: Story) -> None:
    remember(story, "The northern lantern flickers when the relay is wet", session="best")
    for number in range(40):
        remember(story, f"Counted the gulls of relay {number}", session=f"s{number}")
    results = titles(story, "why does the northern lantern flicker with a wet relay")
    assert results == ["The northern lantern flickers when the relay is wet"]
    assert len(titles(story, "relay")) == 40


def test_a_memory_far_weaker_than_the_best_is_no_answer_to_a_sentence(story: Story) -> None:
    """The rare word alone would match; the best match is many times better."""
    lantern = narrative(
        "Water bridges the contacts of the relay, so the northern lantern flickers until it dries.",
        title="The northern lantern flickers when the relay is wet",
    )
    remember(story, lantern, session="best")
    remember(story, "Wet feet", session="weak")
    for number in range(12):
        remember(story, f"Counted the gulls of pier {number}", session=f"s{number}")
    query = "why does the northern lantern flicker with a wet relay"
    assert titles(story, query) == ["The northern lantern flickers when the relay is wet"]
    assert "Wet feet" in titles(story, "wet")


def test_what_was_reported_within_a_week_after_a_time_is_better_than_later_memories(
    story: Story,
) -> None:
    """Otherwise the newest of equal memories would come first."""
    day = datetime(2026, 1, 10, 12, tzinfo=UTC)
    names = {
        remember(story, "The relay clicked", session=name, at=day + timedelta(days=days))[0]: name
        for name, days in (("day", 0), ("week after", 7), ("later", 9), ("newest", 30))
    }
    rows = look(story, "did the relay click on 10 January 2026").rows
    assert [names[row.id.number] for row in rows] == ["day", "week after", "newest", "later"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("how did the relay behave before the release?", "spring"),
        ("how did the relay behave after the release", "autumn"),
        ("how did the relay behave before the zeppelin landed", "autumn"),
    ],
)
def test_an_event_that_a_title_names_is_a_time(story: Story, query: str, first: str) -> None:
    rows = {
        remember(story, "The relay behaved", session=name, at=MONDAY - timedelta(days=ago))[0]: name
        for name, ago in (("spring", 300), ("autumn", 100))
    }
    remember(story, "Release 2.0", session="release", at=MONDAY - timedelta(days=200))
    for number in range(9):
        remember(story, f"Counted gulls {number}", session=f"s{number}", at=MONDAY)
    assert rows[look(story, query).rows[0].id.number] == first


def test_a_path_or_a_name_is_one_word_to_whoever_asks(story: Story) -> None:
    remember(story, narrative("mended src/store/queue.py at last"), narrative("painted the gate"))
    assert ids(story, "src/store/queue.py") == ["1"]
    assert ids(story, "mendStoreQueue queue.py") == ["1"]


def test_a_search_in_a_project_reads_only_its_texts(story: Story) -> None:
    """The texts of a project are adjacent in the table, whatever was stored between them."""
    for number in range(3):
        for project in (HARBOR, Project("dock", "dock")):
            remember(story, f"lamp {number}", session=f"{project.key}-{number}", project=project)
    dock = story.store.find_project("dock")
    order = story.column(
        "SELECT d.project_id FROM memory_text JOIN documents d"
        f" ON d.id = memory_text.rowid & {(1 << DOCUMENT_BITS) - 1}"
        " WHERE memory_text MATCH 'lamp' ORDER BY memory_text.rowid"
    )
    assert order == sorted(order)
    assert len(look(story, "lamp", Filters(project_id=dock)).rows) == 3
    assert len(look(story, "lamp").rows) == 6
