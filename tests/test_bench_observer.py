"""The bench that counts what a model would be asked for, on a session made up here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.transcripts import Chat

BENCH = Path(__file__).resolve().parent.parent / "bench" / "observer.py"


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """One turn of forty commands that say something each."""
    chat = Chat("s1").prompt("Which of the forty buoys is dark?")
    for number in range(40):
        chat.bash(f"buoy show {number}", f"buoy {number} shines\n" + f"measured {number}\n" * 60)
    chat.agent("Buoy 17 is dark, because its lamp driver lost the relay.")
    chat.save(tmp_path / "sessions" / "s1.jsonl")
    return tmp_path / "sessions"


def count(sessions: Path, *terms: str) -> subprocess.CompletedProcess[str]:
    asked = {"session_id": "s1", "question": "Which is dark?", "answer_terms": terms}
    questions = sessions.parent / "questions.jsonl"
    questions.write_text(json.dumps(asked) + "\n")
    return subprocess.run(
        [sys.executable, BENCH, "--sessions", sessions, "--questions", questions],
        capture_output=True,
        text=True,
        cwd=sessions,  # it runs from anywhere
    )


def test_one_request_per_turn_is_counted_against_one_per_tool_use(sessions: Path) -> None:
    done = count(sessions, "Buoy 17", "lost the relay")
    assert "1 sessions, 1 turns, 40 tool uses" in done.stdout, done.stderr
    assert "one request per turn: 1 requests" in done.stdout
    assert "ms of CPU time per turn (target: median at most 5 ms)" in done.stdout
    assert "1 of 1 questions (1 in one prompt" in done.stdout
    assert done.returncode == 0


def test_an_answer_that_is_in_no_body_is_a_missed_target(sessions: Path) -> None:
    done = count(sessions, "Buoy 17", "words that nobody said")
    assert "0 of 1 questions" in done.stdout, done.stderr
    assert done.returncode == 1
