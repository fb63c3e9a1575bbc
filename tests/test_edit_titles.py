"""Titles from the edits of a turn, for want of words."""

from claude_mem.observer.local.titles.candidates import TitleCandidate, TitleSource, after_file
from claude_mem.observer.local.titles.wording import (
    LONGEST_EDIT,
    from_edits,
    main_file,
    of_changed_files,
    of_created_files,
)
from claude_mem.observer.local.tool_uses import FileWork, files_changed
from claude_mem.types import Json
from tests.payloads import PROJECT_DIR
from tests.turns import turn, use


def replaced(path: str, old: str, new: str) -> dict[str, FileWork]:
    params = {"file_path": f"{PROJECT_DIR}/{path}", "old_string": old, "new_string": new}
    return files_changed(turn(use(1, tool_name="Edit", tool_input=params)))


def title_of(path: str, old: str, new: str) -> str:
    return from_edits(replaced(path, old, new).values())


def test_what_an_edit_defines_is_told() -> None:
    old = "def light():\n    ...\n"
    new = f"{old}\ndef blink():\n    const = 1\n\nclass Bell:\n    def ring(self): ...\n"
    assert title_of("pier/lamp.py", old, new) == "lamp.py: added `blink` and `Bell` and others"
    assert title_of("lamp.go", "", "func (l *Lamp) Blink() {}\n") == "lamp.go: added `Blink`"


def test_a_heading_counts_in_a_text_and_not_in_a_program() -> None:
    assert title_of("notes.md", "x", "x\n\n## Winter\n") == "notes.md: added the section “Winter”"
    assert title_of("run.sh", "x\ny", "x\n# Winter starts\n\ny") == ""


def test_a_symbol_that_an_edit_deletes_or_renames_is_told() -> None:
    assert title_of("lamp.py", "def light(): ...\n", "") == "lamp.py: removed `light`"
    old, new = "def light(): ...\n", "def blink(): ...\n"
    assert title_of("lamp.py", old, new) == "lamp.py: renamed `light` to `blink`"


def test_a_short_replacement_is_told_without_the_lines_around_it() -> None:
    assert title_of("lamp.py", "blink(1)", "blink(2)") == "lamp.py: `blink(1)` became `blink(2)`"
    old, new = "open()\nblink(1)\nclose()\n", "open()\nblink(2)\nclose()\n"
    assert title_of("lamp.py", old, new) == "lamp.py: `blink(1)` became `blink(2)`"


def test_the_edits_of_one_call_are_told_as_those_of_several() -> None:
    edits: list[Json] = [
        {"old_string": "lines\nof\ntext", "new_string": "other\nlines"},
        {"old_string": "blink(1)", "new_string": "blink(2)"},
        "no edit",
    ]
    params: Json = {"file_path": f"{PROJECT_DIR}/lamp.py", "edits": edits}
    files = files_changed(turn(use(1, tool_name="MultiEdit", tool_input=params)))
    assert from_edits(files.values()) == "lamp.py: `blink(1)` became `blink(2)`"


def test_edits_that_are_too_large_to_tell_give_no_title() -> None:
    assert title_of("lamp.py", "x\ny", "y\nx") == ""
    assert from_edits([]) == ""


def test_a_new_file_is_told() -> None:
    created = FileWork("pier/horn.py", created=True)
    assert of_changed_files([created]) == "Created horn.py"
    assert of_created_files([created]) == "Created horn.py"
    both = [created, FileWork("lamp.py")]
    assert of_changed_files(both) == "Changed horn.py and lamp.py"
    assert of_created_files(both) == "", "that a file was changed says nothing of it"


def test_a_value_that_another_tool_removed_is_no_symbol() -> None:
    assert title_of("lamp.py", "", "class REDACTED:\n    ...\n") == ""


def test_a_line_that_was_only_formatted_is_no_title() -> None:
    assert title_of("lamp.py", "burn = {1:  True}", "burn = {1:   True}") == ""


def test_a_title_is_never_too_long() -> None:
    old, new = "a" * 70, "b" * 70
    assert title_of("lamp.py", old, new) == ""
    assert len(title_of("lamp.py", "", f"def {'a' * 50}(): ...\n")) <= LONGEST_EDIT


def said(text: str, source: TitleSource = "final") -> TitleCandidate:
    return TitleCandidate(text, source, "all", 0, 0, is_question=False, named_text=text)


def test_a_clause_that_was_said_gets_the_file_of_its_edits() -> None:
    files = replaced("pier/lamp.py", "blink(1)", "blink(2)").values()
    text = "The `Relay` waits for the horn"
    assert after_file(said(text), files) == "lamp.py: the `Relay` waits for the horn"
    assert after_file(said(text, "commit"), files) == text
    assert after_file(said(text), ()) == text
    for named in ("The `Relay` of bell.go waits", "Horn: the `Relay` waits", "The `Lamp` waits"):
        assert after_file(said(named), files) == named


def test_the_file_of_a_clause_is_a_test_only_if_no_other_was_edited() -> None:
    test = replaced("tests/test_horn.py", "blink(1)", "blink(2)")
    files = [*test.values(), *replaced("lamp.py", "blink(1)", "blink(2)").values()]
    assert main_file(files) == "lamp.py"
    assert main_file(test.values()) == "test_horn.py"
