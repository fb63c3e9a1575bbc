"""Pages of turns, sessions, searches, projects, health and settings; nothing in them is markup."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claude_mem.index.text.documents import document_id
from claude_mem.index.vectors import duplicates
from claude_mem.server.app import page_routes
from claude_mem.server.viewer.plots import weekly_plot
from claude_mem.server.viewer.template_filters import inline, prose
from claude_mem.types import Distillate, Observation, OpenStep, ProposedFact, Summary
from tests.payloads import PROJECT_DIR
from tests.viewer import ATTACKS, Page, Viewer, open_viewer


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[Viewer]:
    with open_viewer(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def busy(viewer: Viewer) -> Viewer:
    """Three turns in two sessions of two projects."""
    viewer.api.add_turn("one", "Mend the lamp", "The lamp burns again: the fuse was broken.",
                        edited=f"{PROJECT_DIR}/lamp.py")  # fmt: skip
    viewer.api.add_turn("one", "Paint the door", "It is red.", edited=f"{PROJECT_DIR}/door.py")
    viewer.api.add_turn("two", "Ring the bell", "It rings.", "/home/dev/belfry")
    return viewer


# Turns and sessions


def test_a_turn_shows_prompt_summary_memories_words_and_events(busy: Viewer) -> None:
    page = busy.get("/turn/1")
    assert page.status == 200
    assert page.has("Mend the lamp", "the fuse was broken", "Word for word", "Events", "lamp.py")
    assert page.has("written by the local observer", "from event")
    assert "/turn/2" in page.attributes("a", "href")  # the next one
    assert any(href.startswith("#e") for href in page.attributes("a", "href"))


def test_a_memory_that_repeats_what_a_tool_printed_says_so(viewer: Viewer) -> None:
    about = {"contentSessionId": "one", "project_dir": PROJECT_DIR}
    viewer.api.post_json("/api/sessions/init", prompt="Mend the lamp", **about)
    viewer.api.post_json(
        "/api/sessions/observations", tool_name="Read", tool_input={"file_path": "README.md"},
        tool_response="Every keeper polishes the northern lens before sunset.", **about,
    )  # fmt: skip
    change = {"file_path": f"{PROJECT_DIR}/lamp.py", "old_string": "one", "new_string": "two"}
    viewer.api.post_json("/api/sessions/observations", tool_name="Edit", tool_input=change, **about)
    reply = "Fixed lamp.py: every keeper polishes the northern lens before sunset."
    viewer.api.post_json("/api/sessions/summarize", last_assistant_message=reply, **about)
    viewer.api.catch_up()
    assert viewer.get("/turn/1").has("has words of tools, files or web pages")
    viewer.api.add_turn("one", "Paint the door", "It is red.", edited=f"{PROJECT_DIR}/door.py")
    assert not viewer.get("/turn/2").has("has words of tools, files or web pages")


def test_the_diff_of_an_event_is_shown_while_it_is_kept(busy: Viewer) -> None:
    page = busy.get("/turn/1")
    assert '<span class="del">-one\n</span>' in page.text
    assert '<span class="add">+two\n</span>' in page.text
    busy.api.worker.store.retire_raw_events(busy.api.clock.ms + 1, 0).result()
    gone = busy.get("/turn/1")
    assert '<span class="del">' not in gone.text
    assert gone.has("The raw texts of these events were deleted", "Mend the lamp")


def test_the_local_draft_is_shown_beside_what_a_model_wrote(viewer: Viewer) -> None:
    about = {"contentSessionId": "one", "project_dir": PROJECT_DIR}
    viewer.api.post_json("/api/sessions/init", prompt="Mend the lamp", **about)
    reply = "The lamp burns again: the fuse was broken."
    viewer.api.post_json("/api/sessions/summarize", last_assistant_message=reply, **about)
    finish(viewer, Distillate(Summary(completed="Polished."), observer="claude", model="a-model"))
    page = viewer.get("/turn/1")
    assert page.has("Polished.", "written by a-model (claude)", "The local draft")
    assert page.attributes("details", "data-load") == ["/turn/1/draft"]
    assert viewer.get("/turn/1/draft").has("The lamp burns again")
    viewer.api.worker.store.retire_raw_events(viewer.api.clock.ms + 1, 0).result()
    assert not viewer.get("/turn/1").has("The local draft")


def test_an_observation_names_those_that_say_the_same(viewer: Viewer) -> None:
    text = "The fuse of the lamp was broken and is replaced by a stronger fuse"
    viewer.api.add_turn("one", "Look", "Seen.")
    first = viewer.post("/api/memories", text=text, project="harbor")["id"]
    second = viewer.post("/api/memories", text=f"{text} now", project="harbor")["id"]
    viewer.api.worker.store.write(
        lambda c: duplicates.link(
            c, [(document_id("observation", first), document_id("observation", second))]
        )
    ).result()
    page = viewer.get(viewer.get(f"/memory/{first}").headers["location"])
    assert page.has("says the same as") and f"/memory/{second}" in page.attributes("a", "href")


def test_a_session_is_told_from_its_beginning(busy: Viewer) -> None:
    page = busy.get("/session/1")
    assert page.attributes("article", "data-turn") == ["1", "2"]
    assert page.has("Files it changed", "door.py", "harbor")


@pytest.mark.parametrize(
    ("name", "address"), [("P2", "/turn/2"), ("S1", "/turn/1#summary"), ("p2", "/turn/2")]
)
def test_every_memory_has_an_address(busy: Viewer, name: str, address: str) -> None:
    assert busy.get(f"/memory/{name}").headers["location"] == address
    (observation,) = busy.api.column("SELECT min(id) FROM observations")
    assert busy.get(f"/memory/{observation}").headers["location"].endswith(f"#m{observation}")


@pytest.mark.parametrize(
    "path", ["/turn/99", "/session/99", "/memory/99", "/memory/S99", "/memory/x", "/project/99",
             "/timeline/99", "/project/99/context"]
)  # fmt: skip
def test_what_is_not_there_is_a_page_that_says_so(busy: Viewer, path: str) -> None:
    page = busy.get(path)
    assert page.status == 404
    assert page.has("That is not here", "Go to the feed")


@pytest.mark.parametrize("path", ["/turn/x", "/session/0", "/timeline/x", "/session/1?x=1"])
def test_an_address_that_makes_no_sense_is_an_error_page(busy: Viewer, path: str) -> None:
    assert busy.get(path).status == 400


def test_a_private_turn_has_no_page(viewer: Viewer) -> None:
    prompt = "<private>secret plan</private>"
    viewer.api.post_json("/api/sessions/init", contentSessionId="s", prompt=prompt)
    assert viewer.get("/turn/1").status == 404
    assert viewer.get("/memory/P1").status == 404


def test_a_saved_memory_has_a_page(viewer: Viewer) -> None:
    viewer.api.add_turn("one", "Look", "Seen.")
    saved = viewer.post("/api/memories", text="The bell is cracked", project="harbor")
    page = viewer.get(viewer.get(f"/memory/{saved['id']}").headers["location"])
    assert page.has("The bell is cracked", "saved by you")


# Search and timeline


def test_search_ranks_as_the_api_does_and_marks_the_words(busy: Viewer) -> None:
    page = busy.get("/search", q="broken fuse of the lamp")
    ids = [value.removeprefix("r") for value in page.attributes("article", "id")]
    rows = busy.api.get_json("/api/search", query="broken fuse of the lamp", limit=20)["results"]
    assert ids == [row["id"] for row in rows] and ids
    assert "<mark>" in page.text and page.has("fuse")
    part = busy.api.request(
        "GET", "/search", params={"q": "broken fuse of the lamp"}, headers={"x-part": "results"}
    )
    assert part.text.strip().startswith('<div id="results"')


def test_search_filters_and_says_when_nothing_matches(busy: Viewer) -> None:
    assert busy.get("/search").has("Search all memories")
    assert busy.get("/search", q="zeppelin").has("No memories match")
    assert "article" not in busy.get("/search", q="lamp", project="belfry").tags
    assert busy.get("/search", q="lamp", type="prompt").has("Mend the lamp")
    assert busy.get("/search", q="lamp", type="song").status == 400
    assert busy.get("/search", q="lamp", project="nowhere").status == 404


def test_the_timeline_is_around_a_memory(busy: Viewer) -> None:
    page = busy.get("/timeline/P2")
    assert page.has("Mend the lamp", "Paint the door") and not page.has("Ring the bell")
    assert page.text.count('aria-current="true"') == 1


# Projects


def test_projects_are_listed_with_their_activity(busy: Viewer) -> None:
    page = busy.get("/projects")
    assert page.has("harbor", "belfry", "1 session")
    assert "svg" in page.tags


def test_a_project_shows_what_its_next_session_is_given(busy: Viewer) -> None:
    page = busy.get("/project/1")
    expected = busy.api.request(
        "GET", "/api/context/inject", params={"project_dir": PROJECT_DIR}
    ).text
    assert (
        expected
        and expected.split()
        == page.text.partition('id="context"')[2]
        .partition("</pre>")[0]
        .partition(">")[2]
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#39;", "'")
        .split()
    )
    assert page.has("lamp.py", "1 turn", "Activity")


def test_the_preview_follows_the_budget(busy: Viewer) -> None:
    whole = busy.api.request("GET", "/project/1/context")
    less = busy.api.request("GET", "/project/1/context", params={"tokens": 70})
    nothing = busy.api.request("GET", "/project/1/context", params={"tokens": 0})
    assert nothing.text == ""
    assert 0 < int(less.headers["x-tokens"]) <= 70 < int(whole.headers["x-tokens"])
    assert busy.get("/project/1/context?tokens=x").status == 400


def test_facts_of_a_project_are_sorted_by_what_they_are(viewer: Viewer) -> None:
    viewer.api.add_turn("one", "From now on always use tabs.", "Noted.")
    add_facts(viewer, [
        ProposedFact("rule", "", "Always use tabs.", origin="person"),
        ProposedFact("rule", "", "Perhaps use spaces.", origin="person", status="candidate"),
        ProposedFact("decision", "Which database?", "SQLite"),
        ProposedFact("fault", "make light", "make lights"),
        ProposedFact("place", "staging", "10.0.0.7"),
    ])  # fmt: skip
    page = viewer.get("/project/1")
    assert page.has("Rules", "always use tabs.", "Not confirmed", "Perhaps use spaces.")
    assert page.has("Decisions", "Which database?", "SQLite", "make lights", "Places", "10.0.0.7")


def add_facts(viewer: Viewer, facts: list[ProposedFact]) -> None:
    """Adds facts as a turn that is distilled would."""
    about = {"contentSessionId": "facts", "project_dir": PROJECT_DIR}
    viewer.api.post_json("/api/sessions/init", prompt="Facts", **about)
    viewer.api.post_json("/api/sessions/summarize", last_assistant_message="-", **about)
    finish(viewer, Distillate(Summary(), facts=tuple(facts)))


def finish(viewer: Viewer, distillate: Distillate) -> int:
    store = viewer.api.worker.store
    claimed = store.claim_job().result()
    assert claimed is not None
    job, turn = claimed
    assert turn is not None
    assert store.finish_job(job, turn, distillate).result()
    return turn.id


def test_a_plot_has_a_bar_for_each_week() -> None:
    from datetime import date, timedelta

    today = date(2026, 3, 11)  # a Wednesday
    days = {(today - timedelta(days=ago) - date(1970, 1, 1)).days: 1 for ago in (0, 1, 2, 3, 13)}
    plot = weekly_plot(days, today, 4)
    assert [bar.label.rpartition(": ")[2] for bar in plot.bars] == [
        "0 turns", "1 turn", "1 turn", "3 turns",
    ]  # fmt: skip
    assert (plot.total, plot.highest) == (5, 3)
    assert plot.bars[-1].height > plot.bars[-2].height > plot.bars[0].height


# Health and settings


def test_the_health_page_has_the_figures(busy: Viewer) -> None:
    page = busy.get("/doctor")
    assert page.has("Queue", "0 waiting", "Observer", "local", "UserPromptSubmit", "2 sessions")


def test_the_checks_are_those_of_doctor_and_cost_the_worker_no_lock(busy: Viewer) -> None:
    page = busy.get("/doctor/checks")
    assert page.has("database", "no errors", "recording", "on", "claude-mem install")
    # A connection that believes to be the last one deletes the journal.
    code = (
        f"import sqlite3; c = sqlite3.connect({str(busy.api.layout.database)!r});"
        "c.execute('UPDATE projects SET name = name'); c.commit(); c.close()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    journal = busy.api.layout.database
    assert journal.with_name(f"{journal.name}-shm").exists()
    assert busy.get("/turn/1").status == 200


def test_the_settings_page_has_every_setting_with_its_help(viewer: Viewer) -> None:
    page = viewer.get("/settings")
    for setting in viewer.api.get_json("/api/settings")["settings"]:
        assert page.has(setting["name"], setting["help"])


def test_the_settings_page_says_what_a_model_would_use(busy: Viewer, tmp_path: Path) -> None:
    assert busy.get("/settings").has("tokens on a day with sessions (3 turns)", "at list prices")
    with open_viewer(tmp_path / "empty") as empty:
        assert not empty.get("/settings").has("on a day with sessions")


def test_a_setting_is_changed_and_reset(viewer: Viewer) -> None:
    changed = viewer.post("/api/settings", name="CONTEXT_TOKENS", value="400")
    assert (changed["value"], changed["source"]) == ("400", "settings.json")
    assert viewer.api.worker.settings.context.tokens == 400
    reset = viewer.post("/api/settings", name="CLAUDE_MEM_CONTEXT_TOKENS", value=None)
    assert (reset["value"], reset["source"]) == ("1000", "default")


@pytest.mark.parametrize(
    ("body", "field", "reason"),
    [
        ({"name": "NOPE", "value": "1"}, "value", "there is no setting"),
        ({"name": "CONTEXT_TOKENS", "value": "many"}, "value", "whole number"),
        ({"name": "API_KEY", "value": "k"}, "name", "keyring"),
        ({"name": "DATA_DIR", "value": "/x"}, "name", "environment"),
        ({"value": "1"}, "name", "required"),
        ({"name": "OBSERVER", "value": "anthropic"}, "value", "cannot be used"),
    ],
)
def test_a_setting_that_cannot_be_changed_here_says_why(
    viewer: Viewer, body: dict[str, Any], field: str, reason: str
) -> None:
    answer = viewer.api.request("POST", "/api/settings", json=body)
    assert answer.status_code == 400
    assert answer.json()["field"] == field and reason in answer.json()["error"]
    assert not viewer.api.layout.settings.exists()


def test_a_model_is_used_only_after_the_user_agreed(viewer: Viewer) -> None:
    viewer.post("/api/settings", name="API_URL", value="http://127.0.0.1:9/v1")
    viewer.post("/api/settings", name="MODEL", value="a-model")
    body = {"name": "OBSERVER", "value": "openai"}
    refused = viewer.api.request("POST", "/api/settings", json=body)
    assert refused.status_code == 400 and refused.json()["field"] == "agree"
    assert "127.0.0.1:9" in refused.json()["error"]
    assert viewer.api.worker.settings.observer.kind == "local"
    assert viewer.post("/api/settings", **body, agree=True)["value"] == "openai"
    assert viewer.api.worker.observer.active == "openai"
    assert viewer.post("/api/settings", name="OBSERVER", value="local")["value"] == "local"


def test_what_was_forgotten_is_listed_with_its_undo(busy: Viewer) -> None:
    preview = busy.post("/api/forget", ids=["P1"])
    busy.post("/api/forget", ids=["P1"], confirm=preview["confirm"])
    page = busy.get("/doctor")
    assert page.has("Forgotten recently")
    (token,) = page.attributes("button", "data-token")
    busy.post("/api/forget/undo", undo=token)
    assert not busy.get("/doctor").has("Forgotten recently")


# Nothing is markup


@pytest.fixture
def attacked(viewer: Viewer) -> Viewer:
    """A turn each of whose fields holds a script of its own."""
    count = iter(range(10_000))

    def attack() -> str:
        number = next(count)
        return " ".join(text.format(n=number) for text in ATTACKS)

    directory = f"/home/dev/{attack().replace('/', '')}"
    about = {"contentSessionId": attack()[:150], "project_dir": directory}
    viewer.api.post_json("/api/sessions/init", prompt=attack(), **about)
    for name, request, response in (
        ("Edit", {"file_path": attack(), "old_string": attack(), "new_string": attack()}, {}),
        (attack()[:60], {"command": attack()}, {"stdout": attack(), "stderr": attack()}),
        ("Write", {"file_path": attack(), "content": attack()}, attack()),
    ):
        viewer.api.post_json("/api/sessions/observations", tool_name=name, tool_input=request,
                             tool_response=response, **about)  # fmt: skip
    viewer.api.post_json("/api/sessions/summarize", last_assistant_message=attack(), **about)
    narrative = f"{attack()}\n```\n{attack()}\n```\n- {attack()}\n`{attack()}`"
    observation = Observation(
        "bugfix", attack(), attack(), narrative,
        (attack(),), (attack(),), (attack(),), (attack(),),
    )  # fmt: skip
    summary = Summary(
        attack(), attack(), attack(), attack(), attack(), (attack(),), (attack(),), attack(),
        open_steps=(OpenStep(attack(), (), "announced"),),
    )  # fmt: skip
    facts = tuple(
        ProposedFact(kind, attack(), attack(), attack(), note=attack())
        for kind in ("rule", "decision", "command", "fault", "open", "place", "artifact")
    )
    finish(viewer, Distillate(summary, (observation,), attack(), attack(), facts=facts,
                              observer=attack(), model=attack()))  # fmt: skip
    viewer.post("/api/memories", text=attack(), title=attack()[:200], project_dir=directory,
                concepts=[attack()], files=[attack()])  # fmt: skip
    return viewer


ALLOWED = {
    "a", "article", "b", "body", "button", "code", "dd", "details", "dialog", "div", "dl", "dt",
    "form", "h1", "h2", "h3", "h4", "head", "header", "html", "i", "input", "kbd", "label", "li",
    "line", "link", "main", "mark", "meta", "nav", "noscript", "ol", "option", "output", "p",
    "path", "pre", "rect", "circle", "script", "section", "select", "small", "span", "strong",
    "summary", "svg", "template", "text", "textarea", "time", "title", "ul",
}  # fmt: skip


def assert_harmless(page: Page) -> None:
    assert page.status < 500
    assert page.event_handlers == []
    assert page.tags <= ALLOWED, page.tags - ALLOWED
    assert not set("\u202e\u2066\u200b\U000e0041").intersection(page.text)
    assert page.attributes("script", "src") in ([], ["/static/main.js"])
    assert page.text.count("<script") <= 1
    assert "window.hacked" not in "".join(page.attributes("a", "href")).replace("%", "")
    for href in page.attributes("a", "href"):
        assert href.startswith(("/", "#", "?")), href


def test_text_is_text_on_every_page(attacked: Viewer) -> None:
    seen: set[str] = set()
    paths = [
        "/",
        "/feed",
        "/turn/1",
        "/turn/2",
        "/turn/1/card",
        "/turn/1/draft",
        "/session/1",
        "/session/2",
        "/projects",
        "/project/1",
        "/timeline/1",
        "/timeline/P1",
        "/doctor",
        "/settings",
        "/doctor/checks",
        "/search?q=window.hacked",
        "/search?q=%3Cscript%3E1",
        "/memory/x",
    ]
    for path in paths:
        page = attacked.get(path)
        assert_harmless(page)
        seen.add(path.split("?")[0])
    for text in ATTACKS:
        assert_harmless(attacked.get("/search", q=text.format(n=1), project="x"))
        assert_harmless(attacked.get("/", type=text.format(n=1)))
        assert_harmless(attacked.get(f"/turn/{text.format(n=1).replace('/', '')}"))
    shown = attacked.get("/turn/1")
    assert shown.has('"><img src=x onerror=window.hacked=', "{{ ", "</template>")
    missing = {route.path for route in page_routes} - {
        "/open", "/static/{name}", "/project/{id}/context",
    }  # fmt: skip
    patterns = {path.replace("/1", "/{id}").replace("/2", "/{id}").replace("/P1", "/{id}")
                .replace("/x", "/{id}") for path in seen}  # fmt: skip
    assert missing <= patterns


def test_the_preview_of_a_context_is_plain_text(attacked: Viewer) -> None:
    answer = attacked.api.request("GET", "/project/1/context")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("text", [text.format(n=1) for text in ATTACKS])
def test_markdown_adds_only_its_own_tags(text: str) -> None:
    for source in (
        text,
        f"`{text}`",
        f"**{text}**",
        f"# {text}",
        f"- {text}",
        f"```{text}\n{text}",
    ):
        page = Page(str(prose(source)) + str(inline(source)), 200, {})
        assert page.tags <= {"p", "ul", "li", "code", "pre", "strong"}
        assert page.event_handlers == [] or all(n == "class" for n in page.event_handlers)


def test_markdown_is_rendered() -> None:
    text = "Two **bold** words\n\n- `one`\n  - deep\n\n```python\nx < 1\n```\nend"
    assert str(prose(text)) == (
        "<p>Two <strong>bold</strong> words</p>\n"
        '<ul><li><code>one</code></li><li class="deep">deep</li></ul>\n'
        "<pre><code>x &lt; 1</code></pre>\n<p>end</p>\n"
    )


def test_facts_json_of_a_summary_is_shown(viewer: Viewer) -> None:
    about = {"contentSessionId": "one", "project_dir": PROJECT_DIR}
    viewer.api.post_json("/api/sessions/init", prompt="Run it", **about)
    response = {"stdout": "3 passed in 0.1s", "stderr": ""}
    viewer.api.post_json("/api/sessions/observations", tool_name="Bash", tool_response=response,
                         tool_input={"command": "pytest -q"}, **about)  # fmt: skip
    viewer.api.post_json("/api/sessions/summarize", last_assistant_message="All pass.", **about)
    viewer.api.catch_up()
    (commands,) = viewer.api.column("SELECT commands FROM session_summaries")
    assert json.loads(commands)
    assert viewer.get("/turn/1").has("pytest -q", "3 passed")
