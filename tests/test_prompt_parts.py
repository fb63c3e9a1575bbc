"""What of a prompt was typed, what pasted or attached, and what a client added."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.language import pasted_document, printed_lines, prompt
from claude_mem.language.prompt import PromptPart, parse_prompt

TASK = (
    "<task-notification>\n<task-id>t9</task-id>\n<summary>Lamp lit</summary>\n</task-notification>"
)
PARAGRAPH = "The lamp is dark at night, and the ships cannot see the pier. " * 10
DOCUMENT = f"# Light the pier\n\n## Why\n{PARAGRAPH}\n## How\n- With two lamps."


def parts(text: str) -> list[tuple[str, str]]:
    """Kinds with their texts, without the spaces around these."""
    return [(part.kind, part.text.strip()) for part in parse_prompt(text).parts]


# What is typed


@pytest.mark.parametrize(
    "text",
    [
        "Light the lamp", "<Button> fails", "<b>Now</b> light it", "What is a <task-notification>?",
        "<task-notification> stands in my titles, why?", "Why <system-reminder> here?",
        "What does `<task-notification>x</task-notification>` mean?",
        'The log says "<system-reminder>x</system-reminder>" and nothing else',
        "My titles are <task-notification>x</task-notification> since Monday, why?",
        "Read the output file to retrieve the result: it has the oil level",
        "Stop hook feedback is too long", "Caveat: the messages are in German",
        "This session is being recorded", "The user has selected a lamp, and then it is dark.",
        "Implement the following plan: light it, then dim it",
        "/review 12 with care", "ERROR handling is missing",
        "src/lamp.py:12 is wrong", "at least the lamp works", "[optional] dim the lamp",
        "- dim it\n- [ ] light it\n1. oil", "# Plan\n\nLight it", "see @docs/lamp.md",
        "Error handling: log it", "INFO lines are too many", "看看这个灯塔的问题，" * 100,
        "I think we should light the lamp a little earlier in winter, " * 20,
    ],
)  # fmt: skip
def test_what_people_type_is_typed(text: str) -> None:
    assert parse_prompt(text).parts == (PromptPart("typed", text),)
    assert parse_prompt(text).sender == "user"


# What is pasted or attached


@pytest.mark.parametrize(
    "paste",
    [
        "```py\nlamp()\n```", "~~~\nlamp\n~~~", "> The lamp is dark\n> since Monday",
        "<log>\nlamp lit\nlamp dark\n</log>", '<lamp id="1"><oil/></lamp>',
        '{\n  "lamp": {\n    "lit": true\n  }\n}', '{"lamp": "lit"}', "| lamp | lit |\n|---|---|",
        "2026-03-09 10:00:00 ERROR lamp stuck", "diff --git a/x b/x\n@@ -1 +1 @@\n-dark\n+lit",
        "$ make light\nlamp.c:4: no oil\nmake: *** [light] Error 1",
        "❯ make light\nChecking 3 lamps...\nfailed: no oil",
        'Traceback (most recent call last):\n  File "/x.py", line 8, in main\n    light()\n'
        "harbor.NoOil: empty",
        "TypeError: lamp is not lit\n    at light (/srv/lamp.js:12:3)",
        "[Lamp] started\n[Lamp] stopped", "[Image #1]", "[Pasted text #2 +31 lines]",
        "--- Content from referenced files ---\nAlways dim it.\n--- End of content ---",
    ],
)  # fmt: skip
def test_a_paste_between_typed_words_is_a_part_of_its_own(paste: str) -> None:
    text = f"The relay clicks:\n\n{paste}\n\nWhy is that?"
    assert parts(text) == [
        ("typed", "The relay clicks:"), ("pasted", paste), ("typed", "Why is that?"),
    ]  # fmt: skip


def test_an_element_that_begins_behind_typed_words_is_pasted() -> None:
    assert parts("Look at this: <file>\nAlways dim it.\n</file>\nOk?") == [
        ("typed", "Look at this:"), ("pasted", "<file>\nAlways dim it.\n</file>"), ("typed", "Ok?"),
    ]  # fmt: skip


def test_words_after_a_command_and_its_output_are_typed() -> None:
    assert parse_prompt("$ make light\nNo oil in 3 lamps\nplease fix that now").typed == (
        "please fix that now"
    )


def test_words_between_two_logs_are_typed() -> None:
    log = "10:00:01 lamp lit\n10:00:02 lamp dark\n10:00:03 oil pump failed"
    assert parse_prompt(f"{log}\nand after a restart:\n{log}").typed == "and after a restart:"


def test_a_log_that_begins_behind_typed_words_is_cut_off_there() -> None:
    text = "I get this: [Lamp] no oil\n[Lamp] no wick\n[Lamp] dark"
    assert parse_prompt(text).typed == "I get this:"


def test_words_behind_an_unclosed_fence_are_typed() -> None:
    assert parse_prompt("```py\nlamp()\n\ndark()\n\nwhy does it fail?").typed == "why does it fail?"


def test_a_document_is_pasted_but_not_the_words_before_and_after_it() -> None:
    text = f"Review this:\n\n{DOCUMENT}\n\nand tell me what is missing"
    assert parts(text) == [
        ("typed", "Review this:"), ("pasted", DOCUMENT), ("typed", "and tell me what is missing"),
    ]  # fmt: skip


def test_a_plan_that_the_user_confirmed_is_pasted() -> None:
    tail = "If you need specific details from before exiting plan mode, read the transcript"
    assert parts(f"Implement the following plan:\n\n# Plan\n\nBuy oil.\n\n{tail}") == [
        ("pasted", "Implement the following plan:\n\n# Plan\n\nBuy oil."), ("notice", tail),
    ]  # fmt: skip


# What a client added


@pytest.mark.parametrize(
    "notice",
    [
        "<system_instruction>\nBe kind.\n</system_instruction>",
        "<system-instruction>Be kind.</system-instruction>",
        "<system-reminder>Be kind.\n```\n</system-reminder>",
        "<ide_opened_file>The user opened lamp.py.</ide_opened_file>",
        "<ide_selection>lines 1 to 2:\nlamp()\n</ide_selection>",
        "<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>",
        "<user_instructions>\nAlways dim it.\n</user_instructions>",
        "# AGENTS.md instructions for /srv\n\n<INSTRUCTIONS>\nAlways dim it.\n</INSTRUCTIONS>",
        "<hook_context>Always dim it.</hook_context>",
    ],
)
def test_what_a_client_adds_to_a_prompt_is_a_notice(notice: str) -> None:
    alone = parse_prompt(notice)
    assert (alone.sender, alone.typed, alone.own, alone.notice) == ("user", "", "", notice)
    assert parts(f"{notice}\nLight the lamp") == [("notice", notice), ("typed", "Light the lamp")]
    assert parse_prompt(f"{notice}\nLight the lamp").sender == "user"


@pytest.mark.parametrize(
    "message",
    [
        TASK,
        f"{TASK}\nFull transcript available at: /tmp/t9.output",
        f"{TASK}\nRead the output file to retrieve the result: /tmp/t9.output",
        f"{TASK}\n{TASK}",
        "Read the output file to retrieve the result: /tmp/t9.output",
        "<task-notification>\n<task-id>t9</task-id>\ncut",
        "<task-notification>\n<result>It says </task-notification>, I think.\n</result>\n"
        "<task-notification>\n</task-notification>",
        '<teammate-message teammate_id="ann">\nAlways dim it.\n</teammate-message>',
        '<channel source="chat" user="bob">Always dim it.</channel>',
        "<ci-monitor-event>red</ci-monitor-event>",
        "<github-webhook-activity>\nAlways dim it.\n</github-webhook-activity>",
        "This session is being continued from a previous conversation that ran out of context.",
        "You are Claude, an AI assistant designed to help with GitHub issues and pull requests.\n"
        "<trigger_comment>\nAlways dim it.\n</trigger_comment>",
        "The following is the Codex agent history whose request action you are assessing.",
        "Another Claude session sent a message:\nAlways dim it.",
        "Tool loaded.",
    ],
)
def test_a_message_that_a_client_sends_in_place_of_a_prompt_is_not_the_users(message: str) -> None:
    parsed = parse_prompt(message)
    if "It says" not in message:
        assert {part.kind for part in parsed.parts} == {"notice"}
        assert (parsed.sender, parsed.typed) == ("client", "")


@pytest.mark.parametrize(
    "line",
    [
        "[Request interrupted by user]", "[Request interrupted by user for tool use]",
        "Caveat: The messages below were generated by the user while running local commands.",
        "<local-command-stdout>| Model | 12 |</local-command-stdout>",
        "<bash-input>ls</bash-input>",
        "<bash-stdout>lamp</bash-stdout><bash-stderr></bash-stderr>",
        "Stop hook feedback:\n- run the tests first", "PostToolUse:Edit hook feedback:\n- lint",
        "<turn_aborted>\nby the user\n</turn_aborted>",
    ],
)  # fmt: skip
def test_a_line_that_no_agent_was_asked_is_an_aside(line: str) -> None:
    assert parse_prompt(line).sender == "aside"


def test_a_message_of_a_client_behind_typed_words_was_pasted() -> None:
    assert parts(f"Why do I see this?\n{TASK}\nIt is in my title.") == [
        ("typed", "Why do I see this?"), ("pasted", TASK), ("typed", "It is in my title."),
    ]  # fmt: skip
    assert not parse_prompt(f"Why do I see this?\n{TASK}").has_message


def test_words_after_a_message_of_a_client_are_typed() -> None:
    parsed = parse_prompt(f"{TASK}\nFull transcript available at: /tmp/t9.output\n\nNow seal it")
    assert (parsed.sender, parsed.typed, parsed.has_message) == ("user", "Now seal it", True)


def test_a_notice_directly_behind_typed_words_ends_them() -> None:
    text = "Light [Image #1] the lamp<ide_opened_file>lamp.py</ide_opened_file>"
    assert parts(text) == [
        ("typed", "Light"), ("pasted", "[Image #1]"), ("typed", "the lamp"),
        ("notice", "<ide_opened_file>lamp.py</ide_opened_file>"),
    ]  # fmt: skip


def test_a_command_is_typed_without_the_tags_of_the_client() -> None:
    text = (
        "<command-message>review is running…</command-message>\n"
        "<command-name>/review</command-name>\n<command-args>12 with care</command-args>"
    )
    assert parse_prompt(text).typed == parse_prompt(text).own == "/review 12 with care"


def test_of_a_message_of_cursor_the_query_is_typed() -> None:
    text = (
        "<user_info>\nLinux\n</user_info>\n<user_query>\nLight it\n</user_query>\nToday is Monday"
    )
    assert parse_prompt(text).typed == "Light it"
    assert parse_prompt(text).own == "Light it"


def test_of_a_request_in_the_app_of_codex_the_request_is_typed() -> None:
    text = (
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.md\n\n## My request for Codex:\nDim it"
    )
    assert [kind for kind, _ in parts(text)] == ["notice", "typed"]
    assert parse_prompt(text).typed == "Dim it"
    attached = (
        "# Files mentioned by the user:\n\n## a.png: /a.png\n\n## My request for Codex:\nDim it"
    )
    assert [kind for kind, _ in parts(attached)] == ["pasted", "typed"]


def test_what_is_stored_of_a_prompt_has_the_same_typed_words() -> None:
    for text in (f"{TASK}\nNow seal it", "<ide_selection>x</ide_selection>\n> dark\nWhy?"):
        assert parse_prompt(parse_prompt(text).own).typed == parse_prompt(text).typed


# Typed beside pasted, without a blank line


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("lamps  oil  wicks\n3 12 33\n10 14 35\n100 90 412\nwhy does the third rise",
         "why does the third rise"),
        ("| lamps | oil |\n|---|---|\n| 3 | 12 |\nwhy is it so much for 3?",
         "why is it so much for 3?"),
        ("esse é o log da lanterna\n10:00:01 lamp dark\n10:00:02 lamp dark\n"
         "acho que é o óleo, pode corrigir?",
         "esse é o log da lanterna\nacho que é o óleo, pode corrigir?"),
        ("lamp.c:4: no oil\nexit status 1can you light it again", "can you light it again"),
        ("$ lamp\nUsage:\n  lamp light [flags]\n  lamp dim [flags]how can I light it on the pier",
         "how can I light it on the pier"),
        ("make: *** [light] Error 2\ngcc: error: no oil\ndas ist so seit gestern, warum?",
         "das ist so seit gestern, warum?"),
        ("could it be one line? source: lamps  89% (26/29)\nsource: lamps  90% (27/29)\n"
         "source: lamps 100% (29/29)", "could it be one line?"),
        ("why is this so: ❯ make light\nlamp.c:4: no oil\nexit status 1", "why is this so:"),
        ("it fails since then: light: fetch: open lamp: no oil", "it fails since then:"),
        ("  /srv/pier/lamps/light/the-first-lamp.png\n  /srv/pier/lamps/light/the-second-lamp.png\n"
         "Commit the changes", "Commit the changes"),
        ("10:00:01 lamp lit\n10:00:02 lamp dark\nyeah 2 and 3", "yeah 2 and 3"),
        ("any problem with        3 OIL-2\n       4 WICK-2.0\n       5 LAMP-3\n      10 PIER-1",
         "any problem with"),
    ],
)  # fmt: skip
def test_words_that_touch_a_paste_are_typed(text: str, typed: str) -> None:
    assert parse_prompt(text).typed.split() == typed.split()


@pytest.mark.parametrize("words", ["I agree with 1 only", "only 1", "Do 1 and 3", "Merge it"])
def test_a_few_words_apart_at_the_end_are_typed(words: str) -> None:
    text = f"10:00:01 lamp lit\n10:00:02 lamp dark\n\n{words}"
    assert parse_prompt(text).typed == words


@pytest.mark.parametrize(
    "text",
    [
        "- src/lamp.py\n- src/oil.py\n- docs/pier.md", "/review /lamp\n/simplify",
        "1. use sqlite\n2. no orm\n3. pytest -q", "lamp 2.0.1\noil 20\nwick 14.2",
        "rename old_lamp to oldLamp\nrename old_oil to oldOil\nrename a_b to aB",
        "GET /lamps -> all\nPOST /lamps -> add\nDELETE /lamps/:id -> remove",
        "it should say:\n\n  lamp on\n  lamp off\n\nnot the other way", "fix the lamp\n然后点亮它",
        "- keep `light()` in `lamp.py`\n- set `OIL=3` and `WICK=4`\n- run `make light`",
        "Why does `lamp: oil: wick: dark` appear",
        "Name: Lamp\nMail: a@b.example\nPhone: 12\nadd it",
        "Three of them:\n/lamps\n/lamps/{id}\n/oil\nall with auth",
        "Goal\nMake it fast, and easy for everybody on the pier.\nScope\nOnly the lamp and the oil,"
        " nothing of the pier.\nTests\nWrite them before, and run all of them.",
        "--dim should not write\n--light should",
    ],
)  # fmt: skip
def test_typed_lists_of_names_are_typed(text: str) -> None:
    assert parse_prompt(text).typed == text


# Output without a frame


@pytest.mark.parametrize(
    "paste",
    [
        "To harbor.example:pier/lamp.git\n ! [rejected]        main -> main (fetch first)\n"
        "error: failed to push some refs to 'harbor.example:pier/lamp.git'",
        "[main 1a2b3c4] Light the lamp\n 3 files changed, 12 insertions(+), 4 deletions(-)",
        "Pushing lamps to the pier... done\nWarning: failed to light them after 3 attempts",
        "vite v5.0.0 building for production...\ntransforming (12) src/lamp.ts\n"
        "error during build:\nLampError: no oil",
        "ann@pier harbor % make light\nLamps lit\nno oil is left",
        "➜  harbor git:(main) ✗ make light\nlight started\nnothing went well here",
        "(venv) $ pytest -q\n3 failed in 2s\ncollected 3 items",
        "lamp,oil,wick\n1,20,3\n2,5,4",
        "[10:02] ann: the lamp is dark again\n[10:03] bob: yes, since monday",
        "ann  10:02 AM\nthe lamp is dark again\nbob  10:03 AM\nyes, since monday",
        "src/lamp.ts(12,5): error TS2: no oil\nsrc/oil.ts(3,1): error TS2: no wick",
        "-rw-r--r-- 1 ann ann 120 Mar 2 10:00 lamp.py\ndrwxr-xr-x 3 ann ann 96 Mar 2 10:00 oil",
        "NAME     READY   STATUS   AGE\nlamp-1   0/1     Dark     3m",
        "1. Medium: src/lamp.py:12 opens the lamp twice and never closes it, so that the\n"
        "     oil leaks when it is lit more than once in a night and nobody on the pier\n"
        "     notices it.\n  2. Low: src/oil.py:40 counts the lamps, not the oil.",
    ],
)
def test_output_and_tables_without_a_frame_are_pasted(paste: str) -> None:
    assert parts(f"This is new:\n\n{paste}\n\nwhat can I do about it?") == [
        ("typed", "This is new:"), ("pasted", paste), ("typed", "what can I do about it?"),
    ]  # fmt: skip


def test_paths_below_the_sentence_of_a_linter_are_pasted_with_it() -> None:
    text = "fix :\nlamp: 3 files:/srv/a:/srv/b\nThese files are not formatted:\nsrc/lamp.go"
    assert parse_prompt(text).typed.startswith("fix :")
    log = "10:00:01 lint\nThese files are not formatted yet:\nsrc/lamp.go"
    assert parse_prompt(log).typed == ""


# Whole texts

MAIL = (
    "From: Ann <ann@pier.example>\nTo: bob@pier.example\nSubject: Lamp\n\nHi Bob,\n\n"
    "the lamp is dark. Could you look at it?\n\nBest,\nAnn"
)
LINE = "The lamp can be lit by anybody who knows the pier and has some oil."


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        (f"Answer this:\n\n{MAIL}", "Answer this:"),
        (f"{MAIL}\n\nwrite a short answer", "write a short answer"),
        (f"Check this report\n\nSummary\n{LINE}\nDetails\n{LINE}\nImpact\n{LINE}",
         "Check this report"),
        ("gemini says:\n\n**Summary**\nBuy oil.\n\n**Why**\n- It is dark.", "gemini says:"),
        (f"on the old branch:\n\nLamp is lit twice\n\nHigh Severity\n\n{LINE}",
         "on the old branch:"),
        (f"an agent says:\n\nI looked at it.\n\n## Lamp\n\n{PARAGRAPH}\n\n## Oil\n\n- None.",
         "an agent says:"),
    ],
)  # fmt: skip
def test_a_text_with_headers_or_headings_is_pasted(text: str, typed: str) -> None:
    assert parse_prompt(text).typed == typed


# What a client added, cut or continued


@pytest.mark.parametrize(
    "text",
    ["<system-reminder>\nAlways dim it.\nNever tell.", "<system-reminder>Always dim it.",
     "<task-notification>\n<task-id>t9</task-id>\ncut", "<ide_selection>lines 1 to 2:\nlamp()"],
)  # fmt: skip
def test_what_a_client_began_and_did_not_end_is_all_of_the_client(text: str) -> None:
    assert [kind for kind, _ in parts(text)] == ["notice"]


SUMMARY = "This session is being continued from a previous conversation that was long.\nLamp lit.\n"


@pytest.mark.parametrize(
    "end",
    [
        "Please continue the conversation from where we left it off without asking the user any"
        " further questions. Continue with the last task that you were asked to work on.",
        "Continue the conversation from where it left off without asking the user any further"
        " questions. Resume directly — do not recap. Pick up the last task as if the break never"
        " happened.",
    ],
)
def test_words_behind_the_summary_of_a_continued_session_are_typed(end: str) -> None:
    parsed = parse_prompt(f"{SUMMARY}{end}\n\nnow light the second lamp")
    assert (parsed.typed, parsed.sender, parsed.has_message) == (
        "now light the second lamp", "user", True,
    )  # fmt: skip
    assert parse_prompt(f"{SUMMARY}{end}").sender == "client"


def test_arguments_of_a_skill_are_typed() -> None:
    skill = "Base directory for this skill: /srv/skills/lamp\n\n# Lamp\nLight it."
    parsed = parse_prompt(f"{skill}\n\nARGUMENTS: only the second one, on feat/lamp")
    assert (parsed.typed, parsed.sender) == ("only the second one, on feat/lamp", "user")
    assert parse_prompt(skill).sender == "client"


# All of it

PIECES = (
    "<task-notification>", "</task-notification>", "<system-reminder>", "</system-reminder>",
    "<user_query>", "</user_query>", "<command-name>", "</command-name>", "<bash-input>", "<div>",
    "</div>", "<b x='1'>", "```", "~~~", "\n", "\n\n", " ", "  ", "word", "words of mine", "> ",
    "$ ls",
    "Error: x", "[Lamp] ", "10:00:01 ", "{", "}", '"a": 1', "|a|b|", "# Head",
    "## My request for Codex:",
    "Implement the following plan:", "[Image #1]", "[Request interrupted by user]", "@@ -1 +1 @@",
    "--- Content from referenced files ---", "Full transcript available at: x", "é", "\u2028", "\t",
    "# Context from my IDE setup:", "The user has attached a.md:", "<", ">", "/", "`", "?", ":",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=30).map("".join)


@given(TEXTS)
def test_the_parts_of_a_prompt_cover_it(text: str) -> None:
    parsed = parse_prompt(text)
    assert "".join(part.text for part in parsed.parts) == text
    assert all(part.text.strip() for part in parsed.parts) or not text.strip()


WORDS = st.lists(
    st.from_regex(r"[a-zäñ]{2,9}", fullmatch=True), min_size=1, max_size=12
).map(" ".join)  # fmt: skip
NOTICES = st.sampled_from((TASK, "<system_instruction>\nDim.\n</system_instruction>",
                           "<ide_opened_file>a</ide_opened_file>", "```\ndim()\n```",
                           "> dim", "10:00:01 dim", "<log>\ndim\n</log>"))  # fmt: skip


@given(st.lists(WORDS | NOTICES, max_size=6))
def test_no_typed_word_is_lost(pieces: list[str]) -> None:
    notices = (TASK, "<", "`", ">", "10:")
    typed = " ".join(piece for piece in pieces if not piece.startswith(notices))
    parsed = parse_prompt("\n\n".join(pieces))
    assert parsed.typed.split() == typed.split()


@pytest.mark.parametrize(
    "piece",
    ["<div>", "</div>", "<task-notification>", "<task-notification>\n", "<system-reminder>\n",
     "```\n", "~~~", "{\n", "[{\n", "}\n", "<a><b>", "x<a>\n", "> a\n", "$ a\n",
     "Implement the following plan:\n", "\n\n", "# a\n", "[Image", "<command-name>",
     "<user_query>\n",
     "--- Content from referenced files ---\n", "The user has attached ", "[Lamp] ", "a:1:",
     "<a ", "at a", "a.b", "10:00:01 ", "a: ", "From: a\n", "a,b,c\n", "word word word\n",
     "Head\n", "Head\n" + "word " * 10 + "\n", "a\n\n", "  a\n", "1]aa ", "@a.", "a@b % ", "1aaa "],
)  # fmt: skip
def test_hostile_prompts_cost_work_in_proportion_to_their_length(
    piece: str,
) -> None:
    small, large = (steps_of(piece * count) for count in (500, 2_000))
    assert large < 6 * small + 2_000


def steps_of(text: str) -> int:
    """Lines of Python that ran."""
    files = (prompt.__file__, printed_lines.__file__, pasted_document.__file__)
    count = 0

    def trace(frame, event, argument):  # type: ignore[no-untyped-def]
        nonlocal count
        if frame.f_code.co_filename not in files:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        prompt.parse_prompt.__wrapped__(text)
    finally:
        sys.settrace(before)
    return count
