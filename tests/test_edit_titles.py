"""Titles from the edits of a turn, for want of words."""

from claude_mem.observer.local.files import FileWork, files_changed
from claude_mem.observer.local.titles import LONGEST_TITLE, from_edits
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
    assert title_of("run.sh", "x\ny", "x\n# Winter starts\n\ny") == "Changed run.sh"


def test_a_short_replacement_is_told() -> None:
    assert title_of("lamp.py", "blink(1)", "blink(2)") == "lamp.py: `blink(1)` became `blink(2)`"


def test_at_least_the_files_are_told() -> None:
    assert title_of("lamp.py", "x\ny", "y\nx") == "Changed lamp.py"
    assert from_edits([]) == ""


def test_a_new_file_is_told() -> None:
    assert from_edits([FileWork("pier/horn.py", created=True)]) == "Created horn.py"


def test_a_title_is_never_too_long() -> None:
    old, new = "a" * 70, "b" * 70
    assert title_of("lamp.py", old, new) == "Changed lamp.py"
    assert len(title_of("lamp.py", "", f"def {'a' * 50}(): ...\n")) <= LONGEST_TITLE
