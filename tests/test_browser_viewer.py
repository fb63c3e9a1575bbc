"""What people do in the viewer, in a real browser on a real worker with real hooks."""

import importlib.util
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="pip install 'claudemem[browser]'")

from claude_mem.server import client
from claude_mem.types import Json
from tests.browsing import Browsing, open_browser, open_home, open_link, run_turn
from tests.conftest import Home
from tests.payloads import PROJECT_DIR, prompt, stop
from tests.viewer import ATTACKS

pytestmark = pytest.mark.extra

SESSION = "4c1b3d5e-0f2a-4b6c-8d7e-9fa0b1c2d3e4"
STORIES = (
    ("Why does the lamp go out at night?", "The lamp goes out because the fuse of the relay is too "
     "weak. I replaced it with one of five amperes.", "lamp.py"),
    ("Paint the door of the tower red", "The door is red now. I used two coats.", "door.py"),
    ("Make the fog horn louder", "The fog horn was throttled by a wrong sample rate of the driver. "
     "It is set to 48 kHz now, and the horn is loud.", "horn.py"),
)  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with open_home(tmp_path_factory.mktemp("viewer") / "home") as opened:
        for number, (text, reply, file) in enumerate(STORIES, 1):
            run_turn(opened, SESSION, number, text, reply, file)
        opened.wait_settled()
        yield opened


@pytest.fixture(scope="module")
def opened(home: Home) -> Iterator[Browsing]:
    with open_browser(home) as browsing:
        yield browsing


@pytest.fixture
def browsing(opened: Browsing) -> Iterator[Browsing]:
    """A browser at the feed; afterwards nothing was asked of another server, and nothing failed."""
    opened.requests.clear()
    opened.problems.clear()
    opened.go("/")
    yield opened
    assert {url for url in opened.requests if not url.startswith(f"{opened.address}/")} == set()
    assert opened.problems == []


def test_without_the_link_the_page_says_how_to_get_in(browsing: Browsing) -> None:
    browser = browsing.context.browser
    assert browser is not None
    stranger = browser.new_context().new_page()
    answer = stranger.goto(browsing.address)
    assert answer is not None and answer.status == 401
    assert stranger.locator("pre").inner_text() == "claude-mem open"
    link = open_link(browsing.home)
    stranger.goto(link)
    stranger.wait_for_url(f"{browsing.address}/")
    assert stranger.locator("article").count() >= 3
    other = browser.new_context().new_page()
    again = other.goto(link)
    assert again is not None and again.status == 401
    assert "used before" in other.locator("h1").inner_text()
    for page in (stranger, other):
        page.context.close()


def test_the_event_of_a_hook_appears_without_a_reload(browsing: Browsing) -> None:
    page, home = browsing.page, browsing.home
    page.evaluate("window.sameDocument = true")
    identity = {"session_id": "live", "prompt_id": "live-1"}
    home.hook(prompt("Count the ships in the bay", **identity))
    card = page.locator("article", has_text="Count the ships in the bay")
    card.wait_for()
    assert "in progress" in card.inner_text()
    home.hook(stop("There are seven ships in the bay, and two of them are tugs.", **identity))
    page.locator("article", has_text="seven ships in the bay").wait_for()
    assert page.locator("article", has_text="Count the ships").count() == 1
    assert page.locator("article").first.inner_text() == card.inner_text()
    page.locator("#state .words", has_text="Up to date").wait_for(state="attached")
    assert page.evaluate("window.sameDocument") is True


def test_search_open_timeline_and_back(browsing: Browsing) -> None:
    page = browsing.page
    page.keyboard.press("/")
    page.keyboard.type("fuse of the relay")
    page.wait_for_url("**/search?q=fuse+of+the+relay")
    first = page.locator("#results article").first
    first.wait_for()
    assert "fuse" in first.locator("mark").first.inner_text().lower()
    first.locator("[data-open]").click()
    page.wait_for_url("**/turn/*")
    assert "Why does the lamp go out" in page.locator("main").inner_text()
    page.get_by_role("link", name="Timeline").click()
    page.wait_for_url("**/timeline/*")
    assert page.locator("[aria-current=true]").count() == 1
    assert page.locator(".timeline li").count() >= 3
    page.go_back()
    page.wait_for_url("**/turn/*")
    page.go_back()
    page.wait_for_url("**/search?q=*")
    assert page.locator("#results article").count() >= 1


def test_keyboard_only_from_the_feed_to_a_memory_and_back(browsing: Browsing) -> None:
    page = browsing.page
    page.keyboard.press("j")
    page.keyboard.press("j")
    chosen = page.evaluate("document.activeElement.id")
    assert chosen == page.locator("article").nth(1).get_attribute("id")
    page.keyboard.press("k")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/turn/*")
    assert page.url.endswith(chosen.removeprefix("turn-"))
    page.keyboard.press("Escape")
    page.wait_for_url(f"{browsing.address}/")
    page.wait_for_function("id => document.activeElement.id === id", arg=chosen)
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()


def test_edit_pin_mark_wrong_forget_and_undo(browsing: Browsing) -> None:
    page = browsing.page
    page.locator("article", has_text="fog horn").locator("[data-open]").click()
    page.wait_for_url("**/turn/*")
    memory = page.locator("article.memory").first
    identity = memory.get_attribute("id")
    memory = page.locator(f"#{identity}")
    memory.get_by_role("button", name="Edit").click()
    page.locator("dialog[open] [name=title]").fill("The horn is loud at 48 kHz")
    page.locator("dialog[open]").get_by_role("button", name="Save").click()
    memory.get_by_text("The horn is loud at 48 kHz").wait_for()
    memory.get_by_text("edited by you").wait_for()
    memory.get_by_role("button", name="Pin").click()
    memory.get_by_role("button", name="Unpin").wait_for()
    memory.get_by_role("button", name="Wrong").click()
    memory.get_by_role("button", name="Not wrong").click()
    memory.get_by_role("button", name="Wrong", exact=True).wait_for()
    count = len(browsing.home.rows("SELECT id FROM observations"))
    memory.get_by_role("button", name="Forget").click()
    assert "This will go" in page.locator("dialog[open]").inner_text()
    assert len(browsing.home.rows("SELECT id FROM observations")) == count
    page.locator("dialog[open]").get_by_role("button", name="Forget").click()
    page.get_by_text("Forgotten:").wait_for()
    assert len(browsing.home.rows("SELECT id FROM observations")) == count - 1
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Restored.").wait_for()
    (row,) = browsing.home.rows(
        "SELECT title, pinned, wrong FROM observations WHERE id = ?", str(identity)[1:]
    )
    assert row == {"title": "The horn is loud at 48 kHz", "pinned": 1, "wrong": 0}


def test_a_saved_memory_appears_in_the_feed(browsing: Browsing) -> None:
    page = browsing.page
    page.get_by_role("button", name="Save a memory").click()
    page.locator("dialog[open] [name=text]").fill("Tugs have the right of way at low tide")
    page.locator("dialog[open]").get_by_role("button", name="Save").click()
    page.locator("article", has_text="Tugs have the right of way").wait_for()


def test_the_preview_of_the_context_follows_the_budget(browsing: Browsing) -> None:
    page = browsing.go("/project/1")
    context = page.locator("#context")
    before = context.inner_text()
    assert "claude-mem-context" in before and "Last session" in before
    page.locator("#budget").fill("100")
    page.wait_for_function("() => document.getElementById('limit').textContent === '100'")
    assert 0 < len(context.inner_text()) < len(before)
    assert int(page.locator("#used").inner_text()) <= 100
    page.get_by_role("button", name="Use this budget").click()
    page.get_by_text("Saved:").wait_for()
    text = json.loads(browsing.home.layout.settings.read_text())
    assert text["CLAUDE_MEM_CONTEXT_TOKENS"] in ("100", 100)
    page.goto(f"{browsing.address}/settings#CLAUDE_MEM_CONTEXT_TOKENS")
    setting = page.locator("[id='CLAUDE_MEM_CONTEXT_TOKENS']")
    setting.locator("input").fill("1000")
    setting.get_by_role("button", name="Save").click()
    page.get_by_text("is saved.").wait_for()


def expect_refusals(browsing: Browsing, status: str) -> None:
    """The browser reports each of them as a problem."""
    assert browsing.problems and all(status in problem for problem in browsing.problems)
    browsing.problems.clear()


def test_a_program_is_chosen_only_in_a_browser_that_a_link_has_just_let_in(
    browsing: Browsing,
) -> None:
    page = browsing.go("/settings")
    setting = page.locator("[id='CLAUDE_CODE_PATH']")
    confirmation = page.evaluate("localStorage.getItem('confirmation')")
    page.evaluate("localStorage.removeItem('confirmation')")
    setting.locator("input").fill("/usr/bin/true")
    setting.get_by_role("button", name="Save").click()
    page.get_by_text("run `claude-mem open` and change it").wait_for()
    page.evaluate("value => localStorage.setItem('confirmation', value)", confirmation)
    setting.get_by_role("button", name="Default").click()
    page.get_by_text("CLAUDE_CODE_PATH is saved.").wait_for()
    expect_refusals(browsing, "403")


def test_after_a_restart_of_the_worker_nothing_is_missed_or_doubled(browsing: Browsing) -> None:
    page, home = browsing.page, browsing.home
    page.evaluate("window.sameDocument = true")
    run_turn(home, "restart", 1, "Before the restart", "Done before.", "a.py")
    page.locator("article", has_text="Before the restart").wait_for()
    home.kill_worker()
    page.locator("#state.off").wait_for(state="attached")
    for number in range(2, 5):
        run_turn(home, "restart", number, f"While it was away {number}", "Done away.", "b.py")
    home.start_worker()
    page.get_by_text("To connect again: claude-mem open").wait_for()
    browsing.context.new_page().goto(open_link(home))
    page.locator("article", has_text="While it was away 4").wait_for()
    run_turn(home, "restart", 5, "After the restart", "Done after.", "c.py")
    page.locator("article", has_text="After the restart").wait_for()
    home.wait_settled()
    page.wait_for_function("() => !document.querySelector('.now')")
    turns = page.locator("article").evaluate_all("cards => cards.map(c => Number(c.dataset.turn))")
    stored = home.column("SELECT id FROM user_prompts ORDER BY created_at_epoch DESC, id DESC")
    assert turns == stored
    assert page.evaluate("window.sameDocument") is True
    expect_refusals(browsing, "401")


def test_a_rule_that_is_not_certain_is_confirmed_or_rejected(browsing: Browsing) -> None:
    home = browsing.home
    with closing(sqlite3.connect(home.layout.database, timeout=10)) as connection:
        for value in ("Perhaps ring twice.", "Perhaps never ring."):
            connection.execute(
                "INSERT INTO facts (project_id, kind, subject, value, scope, origin, status,"
                " first_seen_epoch, last_seen_epoch) VALUES (1, 'rule', '', ?, '', 'person',"
                " 'candidate', 1, 1)",
                (value,),
            )
        connection.commit()
    page = browsing.go("/project/1")
    for value, name, status in (
        ("Perhaps ring twice.", "Confirm", "holds"),
        ("Perhaps never ring.", "Reject", "wrong"),
    ):
        fact = page.locator(".fact", has_text=value)
        with page.expect_navigation():
            fact.get_by_role("button", name=name).click()
        assert home.column("SELECT status FROM facts WHERE value = ?", value) == [status]
    assert page.get_by_text("Perhaps ring twice.").count() >= 1
    assert page.locator(".fact", has_text="Perhaps never ring.").count() == 0


def test_reading_works_without_scripts(browsing: Browsing) -> None:
    browser = browsing.context.browser
    assert browser is not None
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(open_link(browsing.home))
    page.wait_for_url(f"{browsing.address}/#*")
    page.locator("[data-open]").first.click()
    page.wait_for_url("**/turn/*")
    assert page.get_by_role("button", name="Forget").count() == 0
    page.locator("#find").fill("fog horn")
    page.locator("#find").press("Enter")
    page.wait_for_url("**/search?q=fog+horn")
    assert page.locator("#results article").count() >= 1
    page.context.close()


PAGES = ("/", "/turn/1", "/session/1", "/search?q=lamp", "/timeline/P1", "/projects", "/project/1",
         "/doctor", "/settings")  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browsing: Browsing, scheme: str) -> None:
    specification = importlib.util.find_spec("axe_core_python")
    assert specification is not None and specification.origin is not None
    axe = Path(specification.origin).with_name("axe.min.js").read_text("utf-8")
    browsing.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    found = []
    for path in PAGES:
        page = browsing.go(path)
        if path == "/doctor":
            page.locator("#checks").wait_for()
        page.evaluate(axe)
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        found += [
            (path, violation["id"], node["html"][:200])
            for violation in result["violations"]
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]
    assert found == []


def test_every_page_fits_a_narrow_screen(browsing: Browsing) -> None:
    page = browsing.page
    page.set_viewport_size({"width": 360, "height": 740})
    try:
        for path in PAGES:
            browsing.go(path)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360, (path, width)
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


def test_a_page_weighs_little(browsing: Browsing) -> None:
    sizes: dict[str, int] = {}

    def add(response: object) -> None:
        url = getattr(response, "url", "")
        if "/stream" not in url:
            sizes[url] = len(response.body())  # type: ignore[attr-defined]

    page = browsing.context.new_page()
    page.on("response", add)
    page.goto(f"{browsing.address}/", wait_until="load")
    page.locator("article").first.wait_for()
    page.close()
    assert len(sizes) > 5
    assert sum(sizes.values()) < 150_000, sizes


def test_no_text_becomes_a_script(browsing: Browsing) -> None:
    attack = " ".join(text.format(n=1) for text in ATTACKS)
    run_turn(browsing.home, "attack", 1, f"{attack} first", f"{attack} second", "x<b>.py")
    browsing.home.wait_settled()
    page = browsing.page
    page.locator("article", has_text="first").first.wait_for()
    href = (
        page.locator("article", has_text="first").first.locator("[data-open]").get_attribute("href")
    )
    for path in ("/", str(href), "/search?q=hacked", "/project/1", "/doctor"):
        browsing.go(path)
        page.wait_for_load_state()
        assert page.evaluate("window.hacked") is None
    page.locator("#find").fill("<img src=x onerror=window.hacked=1>")
    page.wait_for_url("**/search?*img*")
    assert page.evaluate("window.hacked") is None


def test_older_turns_come_when_one_scrolls_each_once(browsing: Browsing) -> None:
    page, home = browsing.page, browsing.home
    for number in range(70):
        body: dict[str, Json] = {
            "contentSessionId": f"many-{number // 5}", "prompt": f"Old prompt {number}",
            "project_dir": PROJECT_DIR,
        }  # fmt: skip
        client.ask_worker(home.layout, "/api/sessions/init", body)
    stored = home.column(
        "SELECT id FROM user_prompts WHERE private = 0 ORDER BY created_at_epoch DESC, id DESC"
    )
    browsing.go("/")
    page.wait_for_function(
        """count => {
          scrollTo(0, document.documentElement.scrollHeight);
          return document.querySelectorAll("article").length >= count;
        }""",
        arg=len(stored),
    )
    turns = page.locator("article").evaluate_all("cards => cards.map(c => Number(c.dataset.turn))")
    assert turns == stored
    days = page.locator(".day").evaluate_all("days => days.map(d => d.dataset.day)")
    assert len(days) == len(set(days))


def test_a_directory_is_split_off_and_merged_again(browsing: Browsing, tmp_path: Path) -> None:
    for name in ("north", "south"):
        (tmp_path / name).mkdir()
        run_turn(browsing.home, name, 1, f"Paint the {name} pier", "It is blue now.", "pier.py",
                 directory=str(tmp_path / name))  # fmt: skip
    browsing.home.wait_settled()
    page = browsing.go("/projects")
    main = page.locator("#main")
    main.get_by_role("link", name="north").click()
    page.get_by_role("button", name="Merge").click()
    page.locator("dialog[open] [name=into]").select_option(str(tmp_path / "south"))
    page.locator("dialog[open]").get_by_role("button", name="Merge").click()
    page.wait_for_url("**/projects")
    assert main.get_by_role("link", name="north").count() == 0
    main.get_by_role("link", name="south").click()
    page.get_by_role("button", name="Split off").click()
    page.locator("dialog[open]").get_by_role("button", name="Split off").click()
    main.get_by_role("button", name="Split off").wait_for(state="detached")
    browsing.go("/projects")
    main.get_by_role("link", name="north").wait_for()
