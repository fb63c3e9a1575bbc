"""The benchmark that compares memories with a reader's notes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench.labels import Label, Memory, Share, compare, is_covered, title_f1

from tests.transcripts import Chat

ROOT = Path(__file__).resolve().parent.parent
CAUSE = (
    "The buoy was dark because `driver.py` lost the relay whenever `reset()` ran twice per tick."
)


def run(*options: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench.labels", *options], cwd=ROOT, capture_output=True, text=True
    )


@pytest.fixture
def labelled(tmp_path: Path) -> tuple[Path, Path]:
    """A session of two turns, and the notes of a reader on them."""
    chat = Chat("harbor").prompt("Why is buoy 17 dark?").agent(CAUSE)
    chat.prompt("thanks").agent("You're welcome!")
    chat.save(tmp_path / "sessions" / "harbor.jsonl")
    prompts = list(dict.fromkeys(re.findall(r'"promptId": "([^"]+)"', chat.data().decode())))
    notes = [
        {"session_id": "harbor", "prompt_id": prompts[0], "worth": 3, "keep": [CAUSE],
         "title": "The buoy was dark because driver.py lost the relay"},
        {"session_id": "harbor", "prompt_id": prompts[1], "worth": 0, "title": "", "keep": []},
    ]  # fmt: skip
    labels = tmp_path / "harbor.labels.jsonl"
    labels.write_text("".join(f"{json.dumps(note)}\n" for note in notes))
    return tmp_path / "sessions", labels


def test_the_last_line_has_the_figures(labelled: tuple[Path, Path]) -> None:
    sessions, labels = labelled
    done = run("--sessions", sessions, "--labels", labels, "--titles")
    assert done.returncode == 0, done.stderr
    *titles, last = done.stdout.splitlines()
    assert re.fullmatch(
        r"noise 0 of 1, missed 0 of 1, title (?:1?\.\d\d), kept 1\.00, memory \d+%", last
    )
    assert titles[0].startswith("3 ") and "dark because `driver.py` lost the relay" in titles[0]


CLARITY: dict[str, object] = {"base": 0, "words": [], "weights": {}}


def test_the_weights_of_the_file_are_used(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    """Those of the package have all features that the observer asks for; these ask for another."""
    sessions, labels = labelled
    unknown = {"base": 0.0, "threshold": 0.0, "trees": [["no such feature", 0.5, 0.0, 1.0]]}
    table = dict.fromkeys(("sentence", "title", "turn", "step"), unknown)
    weights = tmp_path / "weights.json"
    weights.write_text(json.dumps({**table, "clarity": CLARITY, "rarity": {}, "rarest": 5.0}))
    done = run("--sessions", sessions, "--labels", labels, "--weights", weights)
    assert "kept .00" in done.stdout, "a session that cannot be read is left out"


def test_a_directory_without_transcripts_is_reported(tmp_path: Path) -> None:
    done = run("--sessions", tmp_path, "--labels", tmp_path / "none.jsonl")
    assert (done.returncode, done.stdout) == (1, f"there are no transcripts in {tmp_path}\n")


def test_the_figures_of_some_turns() -> None:
    labels = [
        Label("s", "noise", 0, "", ()),
        Label("s", "quiet", 0, "", ()),
        Label("s", "missed", 2, "The lamp is dark", ("The lamp is dark at night",)),
        Label("s", "half", 3, "relay lamp fuse", ("The fuse blew", "The relay was moved twice")),
        Label("s", "little", 1, "A small thing", ()),
    ]
    memories = {
        ("s", "noise"): Memory("Something", "Something"),
        ("s", "half"): Memory("relay fuse", "The fuse blew again"),
    }
    figures = compare(labels, memories, Share(20, 100))
    assert str(figures) == "noise 1 of 2, missed 1 of 2, title .40, kept .33, memory 20%"


def test_a_turn_that_another_session_has_is_measured_there() -> None:
    label = Label("fork", "p1", 2, "The lamp", ())
    figures = compare([label], {("", "p1"): Memory("The lamp", "")}, Share(0, 1))
    assert figures.missed.part == 0


def test_of_a_title_twelve_words_count() -> None:
    assert title_f1("The Relay moved", "the relay moved") == 1
    assert title_f1(None, "the relay") == 0
    assert title_f1("one two three four five six seven eight nine ten eleven twelve relay",
                    "relay") == 0  # fmt: skip


def test_a_sentence_is_covered_by_most_of_its_words() -> None:
    assert is_covered("The lamp has two lenses", "two lenses, lamp, the")
    assert not is_covered("The lamp has two lenses", "the lamp has")
    assert not is_covered("ab", "ab")
