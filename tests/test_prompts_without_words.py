"""A turn whose prompt has no typed words is a turn: images, words of a client or an editor."""

import json
from pathlib import Path
from typing import Any

import pytest

from claude_mem.hook.private_text import strip_payload
from claude_mem.intake.event_reader import EventHeader
from claude_mem.intake.spool import normalise
from claude_mem.intake.transcripts.importer import import_transcripts
from claude_mem.types import Json
from tests.agent_payloads import REQUEST, STORIES
from tests.agent_transcripts import TRANSCRIPTS, opencode_session
from tests.conftest import Home
from tests.payloads import PROJECT_DIR, edit, prompt, stop, tool
from tests.story import Story
from tests.test_agent_transcripts import OPTIONS
from tests.transcripts import SESSION, Chat, image, read_prompts, text

TASK = (
    "<task-notification>\n<task-id>t9</task-id>\n<summary>Lamp lit</summary>\n</task-notification>"
)
RESULT = "Read the output file to retrieve the result: /tmp/t9.output"
ATTACHED = "<system_instruction>\nAlways dim the lamp in every commit.\n</system_instruction>"
HYPHENS = ATTACHED.replace("_", "-")
PRIVATE = "<private>show me the treasure map</private>"
DONE = "I moved the oil pump to its own file, so the lamp starts."


def turns(story: Story | Home) -> list[tuple[Any, ...]]:
    rows = story.rows("SELECT prompt_text, private, notice FROM user_prompts ORDER BY id")
    return [tuple(row.values()) for row in rows]


def turns_about_pumps(story: Story | Home) -> int:
    """Turns of which a memory is titled by what was done."""
    rows = story.rows("SELECT turn_id FROM observations WHERE title LIKE '%pump to its%'")
    return len({row["turn_id"] for row in rows})


# Hooks


def test_hooks_record_turns_whose_prompt_is_an_image_or_words_of_the_client(home: Home) -> None:
    home.start_worker()
    prompts = (ATTACHED, HYPHENS, "", "[Image #1]", f"{TASK}\n{RESULT}", f"{HYPHENS}\nLight it")
    pumps = ("oil", "water", "bilge", "fuel", "air", "heat")
    for words, pump in zip(prompts, pumps, strict=True):
        turn = {"prompt_id": pump}
        done = f"I moved the {pump} pump to its own file, so the {pump} burner starts."
        change = edit(f"{PROJECT_DIR}/{pump}.py", tool_use_id=pump, **turn)
        for payload in (prompt(words, **turn), change, stop(done, **turn)):
            assert home.hook(payload).returncode == 0
    home.wait_settled()
    assert turns(home) == [
        ("", 0, 0), ("", 0, 0), ("", 0, 0), ("[Image #1]", 0, 0), (None, 0, 1), ("Light it", 0, 0),
    ]  # fmt: skip
    (calls,) = home.rows("SELECT count(*) AS count FROM tool_events WHERE tool_name = 'Edit'")
    assert calls["count"] == len(prompts)
    assert turns_about_pumps(home) == len(prompts)
    assert home.rows("SELECT 1 FROM facts WHERE kind = 'rule'") == []


def test_a_prompt_of_private_text_and_words_of_the_client_is_private(home: Home) -> None:
    home.start_worker()
    for number, words in enumerate((PRIVATE, f"{ATTACHED}\n{PRIVATE}", f"{HYPHENS}{PRIVATE}")):
        turn = {"prompt_id": f"p{number}"}
        for payload in (prompt(words, **turn), edit(new="treasure-under-the-oak", **turn),
                        stop("The treasure-under-the-oak is yours.", **turn)):  # fmt: skip
            assert home.hook(payload).returncode == 0
    home.wait_settled()
    assert turns(home) == [(None, 1, 0)] * 3
    assert not any(b"treasure" in content for content in home.files().values())


@pytest.mark.parametrize(
    ("data", "is_marked"),
    [
        (b'{"prompt": "<private>x</private>"}', True),
        (b'{"prompt": "<private>x"}', True),
        (b'{"prompt": "\\u003cprivate>x"}', True),
        (b'{"prompt": "<system_instruction>a <private>x"}', True),
        (b'{"prompt": "<system_instruction>x</system_instruction>"}', False),
        (b'{"prompt": "<system-reminder>say <private> x</private></system-reminder>"}', False),
        (b'{"prompt": "no private text"}', False),
        (b'{"prompt": "</private>"}', False),
    ],
)
def test_a_payload_says_whether_it_had_private_text_of_the_user(
    data: bytes, is_marked: bool
) -> None:
    assert ("claude_mem_private" in json.loads(strip_payload(data))) == is_marked
    assert strip_payload(strip_payload(data)) == strip_payload(data)


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize(
    ("words", "turn"), [(HYPHENS, ("", 0, 0)), (ATTACHED, ("", 0, 0)), (PRIVATE, (None, 1, 0))]
)
def test_hooks_of_other_agents_tell_private_prompts_from_others_without_words(
    name: str, words: str, turn: tuple[Any, ...], story: Story
) -> None:
    for kind, payload in STORIES[name]():
        data = json.dumps(payload).replace(REQUEST, json.dumps(words)[1:-1]).encode()
        story.now += 1000
        header = EventHeader(kind, story.now, PROJECT_DIR, name)
        events = normalise(header, json.loads(strip_payload(data)))
        story.store.record_events([story.reader.read(*event) for event in events]).result()
    assert turns(story) == [turn]
    (calls,) = story.rows("SELECT count(*) AS count FROM tool_events WHERE tool_name = 'Edit'")
    assert calls["count"] == (not turn[1])


def test_an_image_in_a_prompt_of_opencode_is_no_words(story: Story) -> None:
    header = EventHeader("UserPromptSubmit", story.now, PROJECT_DIR, "opencode")
    parts: list[Json] = [{"type": "file", "mime": "image/png", "url": "data:image/png;base64,xxxx"}]
    payload: dict[str, Json] = {"session_id": SESSION, "message_id": "m1", "parts": parts}
    ((_, normalised),) = normalise(header, payload)
    assert normalised["prompt"] == ""


def test_an_empty_prompt_that_comes_after_the_tools_of_its_turn_keeps_them(story: Story) -> None:
    story.tell(tool(prompt_id="p1"), prompt("", prompt_id="p1"), stop(DONE, prompt_id="p1"))
    assert turns(story) == [("", 0, 0)]
    assert len(story.rows("SELECT 1 FROM tool_events WHERE tool_name = 'Bash'")) == 1


def test_the_turn_of_an_empty_prompt_is_not_listed_as_a_prompt(story: Story) -> None:
    story.tell(prompt("", prompt_id="p1"), tool(prompt_id="p1"), stop(DONE, prompt_id="p1"))
    story.tell(prompt("Light it", prompt_id="p2"), stop("Lit.", prompt_id="p2"))
    story.distil()
    rows, _ = story.rows("SELECT id FROM user_prompts"), None
    listed = story.store.get_many("prompts", [row["id"] for row in rows])
    assert [row["prompt_text"] for row in listed] == ["Light it"]


# Imports


@pytest.mark.parametrize("prompt_ids", [True, False])
@pytest.mark.parametrize(
    ("content", "turn"),
    [
        (ATTACHED, ("", 0, 0)),
        (HYPHENS, ("", 0, 0)),
        ([image()], ("", 0, 0)),
        ([image(), text(ATTACHED)], ("", 0, 0)),
        ([text("<ide_opened_file>a.py</ide_opened_file>"), text("Light it")], ("Light it", 0, 0)),
        (f"{TASK}\n{RESULT}", (None, 0, 1)),
        (RESULT, (None, 0, 1)),
        ('<teammate-message teammate_id="ann">\nDim it.\n</teammate-message>', (None, 0, 1)),
        (PRIVATE, (None, 1, 0)),
        ([image(), text(PRIVATE)], (None, 1, 0)),
    ],
)
def test_an_import_records_turns_whose_prompt_has_no_typed_words(
    content: Any, turn: tuple[Any, ...], prompt_ids: bool, story: Story, tmp_path: Path
) -> None:
    chat = Chat(prompt_ids=prompt_ids).prompt(content).edit("/srv/pump.py").agent(DONE)
    import_transcripts(story.store, [chat.save(tmp_path / f"{SESSION}.jsonl")], OPTIONS)
    assert turns(story) == [turn]
    (calls,) = story.rows("SELECT count(*) AS count FROM tool_events WHERE tool_name = 'Edit'")
    assert calls["count"] == (not turn[1])
    assert turns_about_pumps(story) == (not turn[1])


def test_a_file_that_goes_on_with_a_session_keeps_the_tools_before_its_first_prompt(
    story: Story, tmp_path: Path
) -> None:
    summary = "This session is being continued from a previous conversation. Summary: oil."
    chat = Chat().user(summary, isCompactSummary=True).edit("/srv/pump.py").agent(DONE)
    import_transcripts(story.store, [chat.save(tmp_path / f"{SESSION}.jsonl")], OPTIONS)
    assert turns(story) == [(None, 0, 1)]
    assert len(story.rows("SELECT 1 FROM tool_events WHERE tool_name = 'Edit'")) == 1


def test_tools_without_a_prompt_are_a_turn(story: Story, tmp_path: Path) -> None:
    chat = Chat().edit("/srv/pump.py").agent(DONE)
    import_transcripts(story.store, [chat.save(tmp_path / f"{SESSION}.jsonl")], OPTIONS)
    assert turns(story) == [("", 0, 0)]
    assert len(story.rows("SELECT 1 FROM tool_events WHERE tool_name = 'Edit'")) == 1


def test_what_the_user_typed_after_an_interruption_is_a_prompt(tmp_path: Path) -> None:
    chat = Chat().prompt("Light it").agent("Lit.")
    chat.user([text("[Request interrupted by user]")]).agent("Stopped.")
    chat.prompt([text("[Request interrupted by user]"), text("Dim it instead")]).agent("Dimmed.")
    assert read_prompts(tmp_path / "x.jsonl", chat)[0] == "Light it"
    assert read_prompts(tmp_path / "x.jsonl", chat)[1].endswith("Dim it instead")


@pytest.mark.parametrize("name", [name for name in TRANSCRIPTS if name != "opencode"])
@pytest.mark.parametrize(
    ("words", "turn"), [(HYPHENS, ("", 0, 0)), (ATTACHED, ("", 0, 0)), (PRIVATE, (None, 1, 0))]
)
def test_transcripts_of_other_agents_tell_private_prompts_from_others_without_words(
    name: str, words: str, turn: tuple[Any, ...], story: Story, tmp_path: Path
) -> None:
    path = TRANSCRIPTS[name](tmp_path)
    path.write_text(path.read_text().replace(REQUEST, json.dumps(words)[1:-1]))
    import_transcripts(story.store, [path], OPTIONS)
    assert turns(story) == [turn]
    (calls,) = story.rows("SELECT count(*) AS count FROM tool_events WHERE tool_name = 'Edit'")
    assert calls["count"] == (not turn[1])


@pytest.mark.parametrize(
    ("words", "turn"), [(HYPHENS, ("", 0, 0)), ("", ("", 0, 0)), (PRIVATE, (None, 1, 0))]
)
def test_an_export_of_opencode_tells_private_prompts_from_others_without_words(
    words: str, turn: tuple[Any, ...], story: Story, tmp_path: Path
) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps(opencode_session()).replace(REQUEST, json.dumps(words)[1:-1]))
    import_transcripts(story.store, [path], OPTIONS)
    assert turns(story) == [turn]


def test_a_session_that_earlier_versions_of_gemini_wrote_is_imported(
    story: Story, tmp_path: Path
) -> None:
    head, *rows = map(json.loads, TRANSCRIPTS["gemini"](tmp_path).read_text().splitlines())
    path = tmp_path / "chats" / "session-1.json"
    path.parent.mkdir(exist_ok=True)
    messages = {row["id"]: row for row in rows if "id" in row}
    path.write_text(json.dumps({**head, "messages": list(messages.values())}, indent=2))
    import_transcripts(story.store, [path], OPTIONS)
    assert turns(story) == [(REQUEST, 0, 0)]
    assert [row["dialect"] for row in story.rows("SELECT dialect FROM sdk_sessions")] == ["gemini"]


def test_turns_of_versions_of_codex_that_write_only_plans_as_items_are_imported(
    story: Story, tmp_path: Path
) -> None:
    def line(kind: str, **fields: Any) -> dict[str, Any]:
        payload = {"type": kind, "turn_id": "t1", **fields}
        return {"type": "event_msg", "timestamp": "2026-11-15T18:08:10Z", "payload": payload}

    changes = {"/srv/pump.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n"}}
    call = {"server": "sea", "tool": "depth", "arguments": {"at": "pier"}}
    lines = [
        {"type": "session_meta", "payload": {"id": SESSION, "cwd": PROJECT_DIR}},
        line("user_message", message=""),
        line("item_completed", item={"type": "Plan", "id": "i1", "text": "Buy oil"}),
        line("exec_command_end", call_id="c1", command=["/bin/zsh", "-lc", "make light"],
             aggregated_output="lit", exit_code=0),
        line("patch_apply_end", call_id="c2", success=True, changes=changes),
        line("patch_apply_end", call_id="c3", success=False, changes=changes),
        line("mcp_tool_call_end", call_id="c4", invocation=call,
             result={"Ok": {"content": [{"type": "text", "text": "4 m"}]}}),
        line("agent_message", message=DONE),
    ]  # fmt: skip
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))
    import_transcripts(story.store, [path], OPTIONS)
    assert turns(story) == [("", 0, 0)]
    tools = story.rows("SELECT tool_name FROM tool_events WHERE tool_name <> '' ORDER BY id")
    assert [row["tool_name"] for row in tools] == ["Bash", "Edit", "mcp__sea__depth"]


# What the rest of the program makes of them


def test_what_a_teammate_wrote_is_a_report_from_outside(story: Story) -> None:
    message = '<teammate-message teammate_id="ann">\nThe oil pump is broken.\n</teammate-message>'
    event = story.event(prompt(message))
    assert [(part.kind, part.speaker, part.text) for part in event.parts] == [
        ("report", "subagent", "The oil pump is broken."),
    ]  # fmt: skip


def test_a_line_of_a_client_is_no_request_that_the_user_repeats(story: Story) -> None:
    for number in range(5):
        session = {"session_id": f"s{number}"}
        turn = {**session, "prompt_id": f"b{number}"}
        story.tell(prompt("Light it", **session), stop("Lit.", **session))
        story.tell(prompt(f"{TASK}\n{RESULT}", **turn), tool(**turn), stop(DONE, **turn))
    story.distil()
    (project,) = story.rows("SELECT id FROM projects")
    assert story.store.short_prompts(project["id"], None) == []


def test_an_exported_turn_without_typed_words_stays_one(home: Home, tmp_path: Path) -> None:
    home.start_worker()
    for payload in (prompt(HYPHENS), edit(), stop(DONE)):
        home.hook(payload)
    home.wait_settled()
    file = tmp_path / "export.jsonl"
    assert home.command("export", str(file)).returncode == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    (row,) = (row for row in rows if row.get("table") == "user_prompts")
    assert (row["prompt_text"], row["private"], row["notice"]) == ("", 0, 0)
