"""The feed: a card for each turn, by day and session, with older ones after a cursor."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.server.viewer import assets
from tests.payloads import PROJECT_DIR
from tests.viewer import Page, Viewer, open_viewer

DAY = 86_400_000


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[Viewer]:
    with open_viewer(tmp_path / "data") as opened:
        yield opened


def turns_of(page: Page) -> list[int]:
    return [int(value) for value in page.attributes("article", "data-turn")]


def test_an_empty_memory_says_what_will_be_here(viewer: Viewer) -> None:
    page = viewer.get("/")
    assert page.status == 200
    assert page.has("No memories yet", "claude-mem doctor")


def test_each_turn_is_a_card_newest_first_under_its_day_and_session(viewer: Viewer) -> None:
    viewer.api.add_turn("one", "Mend the lamp", "The lamp burns.", edited=f"{PROJECT_DIR}/lamp.py")
    viewer.api.add_turn("one", "Paint it", "It is red.")
    viewer.api.clock.ms += DAY
    viewer.api.add_turn("two", "Ring the bell", "It rings.", "/home/dev/belfry")
    page = viewer.get("/", cookies="claude_mem_zone=UTC")
    assert turns_of(page) == [3, 2, 1]
    assert page.has("Ring the bell", "Paint it", "Mend the lamp", "lamp.py", "harbor", "belfry")
    assert page.text.index("Today") < page.text.index("Ring the bell")
    assert page.text.index("Yesterday") < page.text.index("Paint it")
    assert page.text.count('<h2 class="day"') == 2
    assert page.text.count('<h3 class="session"') == 2


def test_days_are_those_of_the_reader(viewer: Viewer) -> None:
    viewer.api.clock.ms = 1_763_247_600_000  # 2025-11-15 23:00 UTC
    viewer.api.add_turn("one", "Late", "Done.")
    in_utc = viewer.get("/", cookies="claude_mem_zone=UTC")
    in_tokyo = viewer.get("/", cookies="claude_mem_zone=Asia/Tokyo")
    assert in_utc.attributes("h2", "data-day") == ["2025-11-15"]
    assert in_tokyo.attributes("h2", "data-day") == ["2025-11-16"]
    assert in_tokyo.attributes("html", "data-offset") == ["540"]


@pytest.mark.parametrize("zone", ["Nowhere/Land", "../../etc/passwd", "/etc/passwd", "x" * 300])
def test_a_zone_that_does_not_exist_is_that_of_this_machine(viewer: Viewer, zone: str) -> None:
    assert viewer.get("/", cookies=f"claude_mem_zone={zone}").status == 200


def test_the_feed_is_read_in_pages_and_each_turn_comes_once(viewer: Viewer) -> None:
    for number in range(65):
        viewer.api.clock.ms += 1000 if number % 3 else 0  # some at the same moment
        viewer.api.post_json(
            "/api/sessions/init", contentSessionId=f"s{number // 4}", prompt=f"Prompt {number}"
        )
    turns: list[int] = []
    path = "/"
    sizes = []
    while path:
        page = viewer.get(path)
        turns += turns_of(page)
        sizes.append(len(turns_of(page)))
        path = next(iter(page.attributes("a", "data-more")), "")
    assert sizes == [30, 30, 5]
    assert turns == list(range(65, 0, -1))


def test_filters_by_project_and_type_hold_on_the_next_pages(viewer: Viewer) -> None:
    viewer.api.add_turn("one", "Mend the lamp", "The lamp burns.", edited=f"{PROJECT_DIR}/lamp.py")
    viewer.api.add_turn("two", "Ring the bell", "It rings.", "/home/dev/belfry")
    key = viewer.post("/api/memories", text="Bells are cast in June", project="belfry",
                      type="discovery")  # fmt: skip
    assert key["new"]
    assert turns_of(viewer.get("/", project=2)) == [3, 2]
    assert turns_of(viewer.get("/", project=1)) == [1]
    assert turns_of(viewer.get("/", project=2, type="discovery")) == [3]
    assert turns_of(viewer.get("/", type="")) == [3, 2, 1]
    nothing = viewer.get("/", project=1, type="decision")
    assert turns_of(nothing) == [] and nothing.has("No turn matches")
    assert turns_of(viewer.get("/turn/3/card", project=2)) == [3]
    assert turns_of(viewer.get("/turn/3/card", project=1)) == []
    assert turns_of(viewer.get("/turn/3/card", type="bugfix")) == []


def test_a_card_shows_what_is_pinned_and_what_is_wrong(viewer: Viewer) -> None:
    viewer.api.add_turn("one", "Look", "Seen.")
    saved = [
        viewer.post("/api/memories", text=f"Bell {name} is cracked", title=name, project="harbor")
        for name in ("first", "second")
    ]
    for memory, mark in zip(saved, ("pin", "wrong"), strict=True):
        viewer.post(f"/api/memories/{memory['id']}/{mark}")
    page = viewer.get(viewer.get(f"/memory/{saved[0]['id']}").headers["location"])
    assert page.has("pinned", "Unpin") and not page.has("marked as wrong")
    page = viewer.get(viewer.get(f"/memory/{saved[1]['id']}").headers["location"])
    assert page.has("marked as wrong", "Not wrong")


@pytest.mark.parametrize(
    "query", ["type=song", "project=x", "project=0", "before=x", "before=1", "before=1-", "x=1"]
)
def test_a_feed_that_does_not_exist_is_an_error_page(viewer: Viewer, query: str) -> None:
    for path in ("/", "/feed"):
        page = viewer.get(f"{path}?{query}")
        assert page.status == 400
        assert page.has("That cannot be shown")


def test_a_turn_in_progress_says_so_and_a_private_one_is_not_shown(viewer: Viewer) -> None:
    viewer.api.post_json("/api/sessions/init", contentSessionId="s", prompt="Look at it")
    viewer.api.post_json(
        "/api/sessions/init", contentSessionId="p", prompt="<private>secret plan</private>"
    )
    page = viewer.get("/")
    assert page.has("Look at it", "in progress")
    assert turns_of(page) == [1]
    assert "secret" not in page.text
    assert turns_of(viewer.get("/turn/2/card")) == []


def test_the_menu_says_what_the_worker_does(viewer: Viewer) -> None:
    assert viewer.get("/").has("Up to date")
    viewer.post("/api/processing", isProcessing=True)
    assert viewer.get("/").has("A session is working")
    viewer.post("/api/pause")
    assert viewer.get("/").has("Recording is paused")


def test_the_theme_is_that_of_the_cookie(viewer: Viewer) -> None:
    assert viewer.get("/", cookies="claude_mem_theme=dark").attributes("html", "data-theme") == [
        "dark"
    ]
    assert viewer.get("/", cookies='claude_mem_theme="><b>').attributes("html", "data-theme") == []


def test_pages_carry_a_policy_without_inline_code_and_have_none(viewer: Viewer) -> None:
    viewer.api.add_turn("one", "Mend the lamp", "The lamp burns.", edited=f"{PROJECT_DIR}/lamp.py")
    page = viewer.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert page.event_handlers == []
    addresses = [
        value
        for tag, name in (("a", "href"), ("link", "href"), ("script", "src"), ("form", "action"))
        for value in page.attributes(tag, name)
    ]
    assert addresses and all(value.startswith(("/", "#")) for value in addresses)


def test_assets_are_served_once_and_weigh_little(viewer: Viewer) -> None:
    total = 0
    for path in assets.STATIC.iterdir():
        answer = viewer.api.request("GET", f"/static/{path.name}")
        assert answer.status_code == 200
        total += len(answer.content)
        tag = {"if-none-match": answer.headers["etag"]}
        assert viewer.api.request("GET", f"/static/{path.name}", headers=tag).status_code == 304
    assert total + len(viewer.get("/").text) < 150_000
    for name in ("nothing.js", "..%2Fassets.py", "%2e%2e/assets.py", ""):
        assert viewer.api.request("GET", f"/static/{name}").status_code == 404


def test_no_template_is_loaded_before_a_page_is_requested(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import claude_mem.daemon, sys; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
