"""A session has the title that its user or its client gave it, however it was recorded."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

from claude_mem.intake.transcripts.transcript import CHUNK, session_title
from claude_mem.recall.context import build_context
from claude_mem.redaction import Redactor
from claude_mem.store import Store
from claude_mem.store.forgetting import Selection
from claude_mem.store.listing import Page, list_sessions
from claude_mem.types import SessionTitle
from claude_mem.worker.client_titles import ClientTitles
from claude_mem.worker.distil_jobs import TranscriptAdditions
from tests.importing import ImportTarget
from tests.payloads import edit, prompt, session_end, stop
from tests.story import DAY, Story
from tests.transcripts import SESSION, Chat, harbour

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


def custom(title: str, session: str = SESSION) -> bytes:
    line = {"type": "custom-title", "customTitle": title, "sessionId": session}
    return json.dumps(line, separators=(",", ":")).encode()


def by_model(title: str, session: str = SESSION) -> bytes:
    return json.dumps({"type": "ai-title", "aiTitle": title, "sessionId": session}).encode()


def summary(title: str, leaf: str) -> bytes:
    return json.dumps({"type": "summary", "summary": title, "leafUuid": leaf}).encode()


def title_of(file: Path, chat: Chat) -> SessionTitle | None:
    return session_title(chat.save(file), SESSION, Redactor())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / f"{SESSION}.jsonl"


def test_the_users_title_counts_before_a_models_and_the_last_before_earlier_ones(
    file: Path,
) -> None:
    chat = harbour().raw(custom("Lamp")).raw(custom("Lamp of the pier")).raw(by_model("Blinking"))
    assert title_of(file, chat) == SessionTitle("Lamp of the pier", by_user=True)
    assert title_of(file, harbour().raw(by_model("Blinking twice"))) == SessionTitle(
        "Blinking twice"
    )


def test_a_title_that_the_user_removed_gives_way_to_the_models(file: Path) -> None:
    chat = harbour().raw(custom("Lamp")).raw(by_model("Blinking twice")).raw(custom(""))
    assert title_of(file, chat) == SessionTitle("Blinking twice")


def test_a_summary_counts_only_for_the_session_of_its_last_message(file: Path) -> None:
    chat = Chat().raw(summary("Of a session before", "uuid-of-another")).prompt("Go on")
    assert title_of(file, chat.agent("Done.")) is None
    leaf = json.loads(chat.lines[-1])["uuid"]
    assert title_of(file, chat.raw(summary("Twice as bright", leaf))) == SessionTitle(
        "Twice as bright"
    )


def test_a_title_of_another_session_and_words_about_titles_do_not_count(file: Path) -> None:
    chat = Chat().raw(custom("Not mine", "another")).prompt('What is "custom-title" there for?')
    assert title_of(file, chat.agent('{"type":"custom-title"} renames it.')) is None
    assert title_of(file, Chat()) is None


def test_secrets_in_a_title_are_redacted_and_private_sessions_have_none(file: Path) -> None:
    title = title_of(file, harbour().raw(custom(f"Rotate {KEY}")))
    assert title is not None
    assert KEY not in title.text
    chat = Chat().prompt("Paint it <PRIVATE>for the queen</PRIVATE>").agent("Painted.")
    assert title_of(file, chat.raw(by_model("Paint for the queen"))) is None


@pytest.mark.parametrize("tag", ["&lt;private&gt;", "＜private＞", "<pri\u200bvate>", "< private>"])
def test_a_disguised_private_tag_leaves_a_session_without_a_title(file: Path, tag: str) -> None:
    chat = Chat().prompt(f"Paint it {tag}for the queen").agent("Painted.")
    assert title_of(file, chat.raw(by_model("Paint for the queen"))) is None


@pytest.mark.parametrize("before_end", [-10, 0, 1, 4, 8, 12, 200])
def test_a_private_tag_is_found_wherever_a_large_file_is_cut(file: Path, before_end: int) -> None:
    tag = b"<PRIVATE>"
    chat = Chat().prompt(f"Paint it {tag.decode()}for the queen</PRIVATE>").agent("Painted.")
    chat.raw(by_model("Paint for the queen")).save(file)
    head, _, tail = file.read_bytes().partition(tag)
    file.write_bytes(head + b"-" * (CHUNK - len(head) - before_end) + tag + tail)
    assert session_title(file, SESSION, Redactor()) is None
    file.write_bytes(file.read_bytes().replace(b"PRIVATE", b"privet"))
    assert session_title(file, SESSION, Redactor()) is not None


def test_imported_sessions_have_the_clients_title(tmp_path: Path, file: Path) -> None:
    target = ImportTarget(tmp_path / "target")
    target.run(harbour().save(file))
    before = _titles(target)
    target.run(harbour().raw(custom("Lamp of the pier")).save(file))
    assert before != _titles(target) == [("Lamp of the pier", "user")]
    target.run(file, again=True)
    assert _titles(target) == [("Lamp of the pier", "user")]


def _titles(target: ImportTarget) -> list[tuple[str, str]]:
    with closing(Store.open(target.layout.database, target.layout.backups)) as store:
        (session,) = store.read(lambda c: list_sessions(c, Page()))[0]
        return [(str(session["title"]), str(session["title_source"]))]


def _stored_titles(story: Story) -> list[tuple[str, str]]:
    rows = story.rows("SELECT title, title_source FROM sdk_sessions")
    return [(row["title"], row["title_source"]) for row in rows]


def _work(story: Story, file: Path, prompt_id: str = "p1") -> None:
    of = {"prompt_id": prompt_id, "session_id": SESSION, "transcript_path": str(file)}
    story.tell(prompt("Make it better", **of), edit(**of), stop("It is better.", **of))


def _complete(story: Story) -> None:
    job, turn = story.claim()
    completed = asyncio.run(TranscriptAdditions(story.store, story.reader).add_to(turn))
    assert completed.id == turn.id
    assert story.store.drop_job(job).result() is None


def test_a_live_session_gets_its_title_with_the_turn_and_at_its_end(
    story: Story, file: Path
) -> None:
    harbour().raw(by_model("Blinking twice")).save(file)
    _work(story, file)
    _complete(story)
    assert _stored_titles(story) == [("Blinking twice", "client")]
    harbour().raw(by_model("Blinking twice")).raw(custom("Lamp of the pier")).save(file)
    end = story.event(session_end(session_id=SESSION, transcript_path=str(file)))
    titles = ClientTitles(story.store, story.reader)
    titles.note(list(zip([end], story.store.record_events([end]).result(), strict=True)))
    assert asyncio.run(titles.update_ended()) == {end.project}
    assert _stored_titles(story) == [("Lamp of the pier", "user")]
    assert asyncio.run(titles.update_ended()) == set()


def test_a_session_that_lost_a_turn_does_not_get_the_clients_title(
    story: Story, file: Path
) -> None:
    _work(story, file)
    _work(story, file, "p2")
    story.distil()
    first = story.column("SELECT id FROM user_prompts ORDER BY id")[:1]
    selection = Selection(prompts=tuple(first))
    token = story.store.preview_forgetting(selection).token
    story.store.forget(selection, token).result()
    title = SessionTitle("Blinking twice")
    assert not story.store.set_client_title(story.session_db_id(SESSION), title).result()


def test_the_context_shows_the_users_name_of_a_session(story: Story, file: Path) -> None:
    for number, name in enumerate(("Pier", "GCC")):
        session = f"session-{number}"
        story.now += DAY
        of = {"prompt_id": f"p{number}", "session_id": session}
        story.tell(prompt("Go on", **of), edit(f"/home/dev/harbor/{name}.py", **of),
                   stop(f"`{name}.py` has the new lamp: the old one broke.", **of))  # fmt: skip
        story.distil()
        title = SessionTitle(name, by_user=True)
        assert story.store.set_client_title(story.session_db_id(session), title).result()
    text = build_context(story.store, story.store.find_project("harbor"), 1000)
    assert "Goal: GCC" in text
    assert " Pier — Pier.py\n" in text
