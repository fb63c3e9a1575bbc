"""The benchmark of imports measures a directory with damaged files."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench.transcripts import parse_lines

from tests.transcripts import Chat

BENCH = Path(__file__).resolve().parent.parent / "bench" / "transcripts.py"
CLOSING_LINE = (
    r"hits @1 1 @5 1 @10 1 of 1, within 1000 tokens 1, memory [\d.]+% of text, record [\d.]+%"
)
ANSWER = "Buoy 17 is dark, because its lamp driver lost the relay."


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """One good transcript between damaged ones."""
    directory = tmp_path / "sessions"
    good = Chat("good").prompt("Which buoy is dark?").agent(ANSWER)
    good.save(directory / "good.jsonl")
    for name, data in damaged().items():
        (directory / f"{name}.jsonl").write_bytes(data)
    return directory


def damaged() -> dict[str, bytes]:
    chat = Chat("damaged").prompt("Paint the pier").agent("The pier is green now.")
    return {
        "two-objects-on-a-line": b"".join(chat.lines),
        "half-a-line": chat.data()[:-30],
        "not-utf8": chat.data().replace(b"green", b"gr\xff\xfen"),
        "too-deep": chat.data() + b"[" * 200_000,
        "not-json": b"\0\0 once upon a time\n{'a': 1}\n",
        "no-session": b'{"type": "summary", "summary": "x"}\n',
        "empty": b"",
    }


def run(sessions: Path, *options: str) -> subprocess.CompletedProcess[str]:
    question = {"session_id": "good", "question": "Which buoy?", "answer_terms": ["lost the relay"]}
    questions = sessions.parent / "questions.jsonl"
    questions.write_text(json.dumps(question) + "\n")
    return subprocess.run(
        [sys.executable, BENCH, "--sessions", sessions, "--questions", questions, *options],
        capture_output=True,
        text=True,
    )


def test_all_parts_run_over_damaged_files(sessions: Path) -> None:
    unanswerable = sessions.parent / "unanswerable.jsonl"
    unanswerable.write_text('{"question": "Which zeppelin did we moor?"}\n')
    done = run(sessions, "--replay", "20", "--unanswerable", str(unanswerable))
    assert done.returncode == 0, done.stderr
    assert "== context" in done.stdout
    assert "json.loads over the same lines" in done.stdout
    assert "sessions replayed through" in done.stdout
    assert "@5: 1, 95% of bootstrap samples from 1 to 1" in done.stdout
    assert "tokens read until all terms were there, median of 1 questions" in done.stdout
    assert "without an answer: 0 of 1 (unanswerable.jsonl)" in done.stdout
    assert re.fullmatch(CLOSING_LINE, done.stdout.splitlines()[-1])


def test_a_directory_without_transcripts_is_reported(tmp_path: Path) -> None:
    done = run(tmp_path / "nothing")
    assert done.returncode == 1
    assert "there are no transcripts in" in done.stdout


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (b'{"a": 1}\n', [{"a": 1}]),
        (b'{"a": 1}{"b": 2}\n', [{"a": 1}, {"b": 2}]),
        (b'{"a": 1} {"b": 2} {"c\n', [{"a": 1}, {"b": 2}]),
        (b'{"a": "\xff"}\n', [{"a": "\ufffd"}]),
        (b"\n", []),
        (b"nothing\n", []),
        (b"[" * 200_000 + b"\n", []),
    ],
)
def test_every_value_of_a_line_is_parsed_and_the_rest_is_skipped(
    tmp_path: Path, line: bytes, values: list[object]
) -> None:
    file = tmp_path / "file.jsonl"
    file.write_bytes(line + b'{"last": true}\n')
    assert list(parse_lines(file)) == [*values, {"last": True}]


def test_a_file_that_cannot_be_read_has_no_values(tmp_path: Path) -> None:
    assert list(parse_lines(tmp_path)) == []
    assert list(parse_lines(tmp_path / "missing.jsonl")) == []
