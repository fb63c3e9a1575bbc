"""The record: what was said in every turn, from hooks and from transcripts alike."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from claude_mem.cli.demo import payloads
from claude_mem.recall.fence import OUTSIDE_MARK
from claude_mem.store.forgetting import Forgotten, Selection
from tests.api import open_api
from tests.conftest import Home
from tests.exports import SECRET, dump, restored, sound
from tests.importing import ImportTarget, run_import
from tests.live_files import unpacked
from tests.payloads import Payload, edit, prompt, stop, tool
from tests.story import Story
from tests.test_import_with_hooks import Live
from tests.transcripts import OLD, Chat, recently

COMMIT = """git add -A && git commit -q -m "$(cat <<'EOF'
Blink twice

The pilots asked for it.
EOF
)" && git push"""


def everything_said(start: int, session: str = "said") -> Chat:
    """A turn with words of every kind."""
    chat = Chat(session, start=start).prompt("Make the harbour light blink twice")
    chat.agent("I will look at the relay first.")
    chat.tool("Bash", {"command": "make relay", "description": "Build the relay"},
              {"stdout": "the output of a tool", "stderr": ""})  # fmt: skip
    question = "Which relay should blink?"
    chat.tool("AskUserQuestion", {"questions": [{"question": question, "options": []}]},
              {"answers": {question: "The second one"}})  # fmt: skip
    chat.tool("TodoWrite", {"todos": [{"content": "Wire the relay", "status": "pending"}]}, {})
    chat.tool("Task", {"description": "Find the fuse", "prompt": "Look everywhere"},
              {"status": "completed", "content": [{"type": "text", "text": "It is below deck."}]},
              )  # fmt: skip
    chat.tool("ExitPlanMode", {"plan": "1. Wire the relay\n2. Blink"}, {"plan": "1. Wire"})
    chat.tool("TaskCreate", {"subject": "Tell the pilots", "description": "By radio"}, {"id": "1"})
    chat.tool("Bash", {"command": COMMIT, "description": "Commit the change"}, {"stdout": ""})
    chat.tool("Bash", {"command": 'gh pr create --title "Blink twice" --body "For the pilots"'},
              {"stdout": "https://example.com/pull/7"})  # fmt: skip
    chat.user(
        "This session is being continued from a previous conversation that ran out of context."
        " The summary below covers the earlier portion of the conversation.\n\nSummary:\nThe relay"
        " was wired.\n\nIf you need specific details from before compaction, read the transcript.",
        isCompactSummary=True,
    )
    chat.failing("make lamp", "no such target")
    return chat.agent("The light blinks twice now.")


SAID = [
    ["prompt", "user", "Make the harbour light blink twice"],
    ["statement", "agent", "I will look at the relay first."],
    ["description", "agent", "Build the relay"],
    ["question", "user", "Which relay should blink?\nAnswer: The second one"],
    ["task", "agent", "Wire the relay"],
    ["description", "agent", "Find the fuse"],
    ["report", "subagent", "It is below deck."],
    ["plan", "agent", "1. Wire the relay\n2. Blink"],
    ["task", "agent", "Tell the pilots"],
    ["description", "agent", "Commit the change"],
    ["commit", "agent", "Blink twice\n\nThe pilots asked for it."],
    ["pull_request", "agent", "Blink twice\n\nFor the pilots"],
    ["compaction", "agent", "The relay was wired."],
    ["statement", "agent", "The light blinks twice now."],
]


def command(text: str, description: str, **changes: Any) -> Payload:
    tool_input = {"command": text, "description": description}
    return tool("Bash", tool_input=tool_input, **changes)


def records(database: Path) -> list[list[list[str]]]:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT parts FROM turn_records ORDER BY turn_id").fetchall()
    return [json.loads(row[0]) for row in rows]


@pytest.fixture
def target(tmp_path: Path) -> ImportTarget:
    return ImportTarget(tmp_path / "target")


# From hooks and from transcripts


@pytest.mark.parametrize("start", [OLD, recently()], ids=["long ago", "of late"])
def test_an_import_records_what_was_said_in_its_order(
    target: ImportTarget, tmp_path: Path, start: int
) -> None:
    target.run(everything_said(start).save(tmp_path / "said.jsonl"))
    assert records(target.layout.database) == [SAID]


def test_hooks_record_the_same_in_the_same_order(tmp_path: Path) -> None:
    live = Live(tmp_path, everything_said(recently()), with_ids=True)
    live.finish()
    assert records(live.target.layout.database) == [SAID]


def test_an_import_in_between_changes_nothing(tmp_path: Path) -> None:
    live = Live(tmp_path, everything_said(recently()), with_ids=True)
    for _ in range(12):
        live.write()
    live.run_import()
    live.finish()
    assert records(live.target.layout.database) == [SAID]


def test_real_hooks_record_what_an_import_records(home: Home, target: ImportTarget) -> None:
    chat = everything_said(recently())
    file = chat.save_in(home.path)
    home.start_worker()
    for event, payload in payloads(file):
        assert home.hook(payload, event).returncode == 0
    home.wait_settled()
    (record,) = records(home.layout.database)
    target.run(file)
    assert sorted(record) == sorted(records(target.layout.database)[0]) == sorted(SAID)


# Filled in for turns that are known


@pytest.fixture
def imported(home: Home) -> Home:
    everything_said(OLD).save_in(home.path)
    other = Chat("other", start=OLD).prompt("Paint the pier").agent("The pier is green.")
    other.save_in(home.path)
    assert run_import(home)["turns"] == 2
    return home


def without_records(home: Home) -> None:
    """Deletes the records: the version before kept none."""
    with closing(sqlite3.connect(home.layout.database)) as connection, connection:
        connection.execute("DELETE FROM turn_records")
        connection.execute("DELETE FROM transcripts")


def test_an_import_fills_in_the_record_of_known_turns_and_counts_them(imported: Home) -> None:
    before = records(imported.layout.database)
    without_records(imported)
    report = run_import(imported, "--dry-run")
    assert (report["turns"], report["known"], report["records"]) == (0, 2, 2)
    assert records(imported.layout.database) == []
    done = imported.command("import")
    assert "2 turns already recorded, but without their text, which was added" in done.stdout
    assert records(imported.layout.database) == before
    assert run_import(imported, "--again")["records"] == 0


def test_a_record_of_the_end_of_a_turn_is_completed(imported: Home) -> None:
    before = records(imported.layout.database)
    with closing(sqlite3.connect(imported.layout.database)) as connection, connection:
        connection.execute(
            "UPDATE turn_records SET parts = ?, bytes = 40 WHERE turn_id = 1",
            (json.dumps(SAID[-1:]),),
        )
    assert run_import(imported, "--again")["records"] == 1
    assert records(imported.layout.database) == before


def test_what_was_forgotten_is_not_filled_in(imported: Home) -> None:
    ids = {row["prompt_text"]: row["id"] for row in imported.rows("SELECT * FROM user_prompts")}
    done = imported.command("forget", f"P{ids['Paint the pier']}", "--yes")
    assert done.returncode == 0, done.stderr
    without_records(imported)
    report = run_import(imported)
    assert (report["records"], report["forgotten"]) == (1, 1)
    assert records(imported.layout.database) == [SAID]


def test_without_a_record_an_import_keeps_none(home: Home) -> None:
    everything_said(recently()).save_in(home.path)
    home.environment["CLAUDE_MEM_RECORD_DAYS"] = "0"
    assert run_import(home)["turns"] == 1
    assert records(home.layout.database) == []
    assert home.rows("SELECT words FROM tool_events WHERE words IS NOT NULL") == []


def test_without_a_record_hooks_keep_none(home: Home) -> None:
    home.environment["CLAUDE_MEM_RECORD_DAYS"] = "0"
    home.start_worker()
    for payload in (prompt(), command("ls", "List it"), stop()):
        home.hook(payload)
    home.wait_settled()
    assert len(home.rows("SELECT * FROM session_summaries")) == 1
    assert records(home.layout.database) == []
    assert home.rows("SELECT words FROM tool_events WHERE words IS NOT NULL") == []


# Privacy


def test_no_secret_and_nothing_private_is_recorded(story: Story) -> None:
    hidden = f"{SECRET} here"
    answers = {"answers": {"Which?": hidden}}
    story.tell(
        prompt(f"Use {hidden}"),
        command("ls", f"List {hidden}", tool_use_id="t1"),
        command(f'git commit -m "Add {hidden}"', "", tool_use_id="t2"),
        tool("ExitPlanMode", tool_use_id="t3", tool_input={"plan": hidden}),
        tool("Task", tool_use_id="t4", tool_input={"description": hidden}, tool_response=hidden),
        tool("AskUserQuestion", tool_use_id="t5", tool_response=answers,
             tool_input={"questions": [{"question": "Which?"}]}),
        stop(f"Used {hidden}"),
    )  # fmt: skip
    story.distil()
    (record,) = records(story.layout.database)
    kinds = [kind for kind, _, _ in record]
    assert set(kinds) >= {"prompt", "description", "commit", "plan", "report", "question"}
    for _, _, text in record:
        assert SECRET not in text
        assert "[redacted:" in text


@pytest.mark.parametrize("start", [OLD, recently()], ids=["long ago", "of late"])
def test_private_text_of_a_transcript_is_not_recorded(
    target: ImportTarget, tmp_path: Path, start: int
) -> None:
    hidden = "<private>hushhush</private>"
    chat = Chat("p", start=start).prompt(f"Light it {hidden}").agent(f"I do. {hidden}")
    chat.tool("Bash", {"command": "ls", "description": f"List it {hidden}"}, {"stdout": ""})
    chat.tool("ExitPlanMode", {"plan": f"Wire it {hidden}"}, {})
    chat.prompt("<private>all of it: hushhush</private>").agent("It is hushhush.")
    target.run(chat.save(tmp_path / "p.jsonl"))
    (record,) = records(target.layout.database)
    assert [text for _, _, text in record] == ["Light it", "I do.", "List it", "Wire it"]


# Forgetting, exporting and restoring


@pytest.fixture
def told(story: Story) -> Iterator[Story]:
    for number, text in enumerate(("Light the lamp", "Paint the door"), 1):
        ids = {"prompt_id": f"{number}" * 36, "session_id": f"session-{number}"}
        story.tell(prompt(text, **ids), edit(**ids), command("ls", f"Do: {text}", **ids),
                   stop(f"Done: {text}", **ids))  # fmt: skip
    story.distil()
    yield story


def forget(story: Story, selection: Selection) -> Forgotten:
    preview = story.store.preview_forgetting(selection)
    return story.store.forget(selection, preview.token).result()


def words_in(story: Story, table: str, column: str) -> str:
    return " ".join(map(str, story.column(f"SELECT {column} FROM {table}")))


@pytest.mark.parametrize(
    "selection",
    [
        Selection(observations=(1,)),
        Selection(summaries=(1,)),
        Selection(prompts=(1,)),
        Selection(session=1),
    ],
    ids=["an observation", "a summary", "a prompt", "a session"],
)
def test_what_is_forgotten_has_no_record_until_it_is_undone(
    told: Story, selection: Selection
) -> None:
    before = records(told.layout.database)
    assert len(before) == 2
    forgotten = forget(told, selection)
    assert records(told.layout.database) == before[1:]
    assert "Do: Light the lamp" not in words_in(told, "tool_events", "words")
    told.store.undo_forgetting(forgotten.token).result()
    assert records(told.layout.database) == before


def test_a_project_is_forgotten_with_its_records(told: Story) -> None:
    before = records(told.layout.database)
    project = told.column("SELECT id FROM projects")[0]
    forgotten = forget(told, Selection(project=project))
    assert records(told.layout.database) == []
    told.store.undo_forgetting(forgotten.token).result()
    assert records(told.layout.database) == before


def test_an_export_holds_the_record_and_a_restore_brings_it_back(
    told: Story, tmp_path: Path
) -> None:
    with Story(tmp_path / "other") as other:
        other.tell(prompt("Mine", session_id="mine", prompt_id="m" * 36),
                   stop(session_id="mine", prompt_id="m" * 36))  # fmt: skip
        other.distil()
        mine = records(other.layout.database)
        restored(other, dump(told.store))
        assert records(other.layout.database) == mine + records(told.layout.database)
        assert sound(other)


def test_an_older_export_does_not_bring_back_a_forgotten_record(told: Story) -> None:
    exported = dump(told.store)
    forget(told, Selection(prompts=(1,)))
    after = records(told.layout.database)
    restored(told, exported)
    assert records(told.layout.database) == after


def test_secrets_in_the_record_of_an_export_are_redacted(told: Story, tmp_path: Path) -> None:
    exported = dump(told.store).replace(b"Do: Light the lamp", f"Use {SECRET}".encode())
    exported = exported.replace(b"Do: Paint the door", b"Use <private>hushhush</private> now")
    with Story(tmp_path / "other") as other:
        restored(other, exported)
        text = json.dumps(records(other.layout.database))
    assert "[redacted:" in text and "Use  now" in text
    assert SECRET not in text and "hushhush" not in text


@pytest.mark.parametrize(
    "parts",
    ["[1]", "{}", '[["prompt","user"]]', '[["oath","user","x"]]', '[["prompt","cat","x"]]',
     '[["prompt","user",1]]', "no json"],
)  # fmt: skip
def test_a_record_of_another_shape_is_refused(told: Story, tmp_path: Path, parts: str) -> None:
    lines = dump(told.store).splitlines()
    number = next(n for n, line in enumerate(lines) if b'"table":"turn_records"' in line)
    lines[number] = json.dumps({**json.loads(lines[number]), "parts": parts}).encode()
    with Story(tmp_path / "other") as other:
        report = restored(other, b"\n".join(lines) + b"\n")
        assert report.refused == 1
        assert len(records(other.layout.database)) == 1


def test_a_backup_holds_the_record(told: Story, tmp_path: Path) -> None:
    backup = told.store.back_up(tmp_path / "backups", 1)
    assert records(unpacked(backup)) == records(told.layout.database)


# Telling the user


# Reading it


def test_show_prints_a_turn_as_it_was_said(imported: Home) -> None:
    (turn,) = imported.rows("SELECT id FROM user_prompts WHERE prompt_text <> 'Paint the pier'")
    (summary,) = imported.rows(f"SELECT id FROM session_summaries WHERE turn_id = {turn['id']}")
    done = imported.command("show", f"P{turn['id']}", "--record")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.replace(OUTSIDE_MARK, "")
    places = [shown.index(f"\n{indent(text, '  ')}\n") for _, _, text in SAID]
    assert places == sorted(places)
    assert f"subagent, report{OUTSIDE_MARK}\n" in done.stdout
    assert "user, question" in done.stdout and "subagent, report" in done.stdout
    plain = imported.command("show", f"P{turn['id']}").stdout
    assert "It is below deck." not in plain
    done = imported.command("show", f"S{summary['id']}", "--record", "--json")
    (memory,) = json.loads(done.stdout)
    assert [list(part.values()) for part in memory["record"]] == SAID
    whole = imported.command("show", "session", "said", "--record").stdout
    assert whole.count("subagent, report") == 1  # once, not with every memory of the turn


def test_the_api_gives_the_record_where_it_is_asked_for(tmp_path: Path) -> None:
    with open_api(tmp_path) as api:
        api.add_turn("one", "Light the lamp", "The lamp is lit.")
        said = [
            {"kind": "prompt", "speaker": "user", "text": "Light the lamp"},
            {"kind": "statement", "speaker": "agent", "text": "The lamp is lit."},
        ]
        for ids in (["P1"], ["S1"]):
            batch: list[Any] = api.post("/api/observations/batch", ids=ids, record=True).json()
            assert [memory["record"] for memory in batch] == [said]
            batch = api.post("/api/observations/batch", ids=ids).json()
            assert ["record" in memory for memory in batch] == [False]
        saved = api.post_json("/api/memories", text="The bell is cracked", project_dir="/x")
        observation = api.get_json(f"/api/observation/{saved['id']}", record="true")
        assert observation["record"] == []
        assert api.get(f"/api/observation/{saved['id']}", record="maybe").status_code == 400
