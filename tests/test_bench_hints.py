"""The benchmark of hints, on sessions written here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.transcripts import OLD, Chat

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = ROOT / "src" / "claude_mem" / "observer" / "local" / "weights.json"
ASKED = "Why is the foghorn on the north quay silent since the storm?"
REPLY = (
    "The foghorn on the north quay is silent because its compressor lost the pressure valve in the"
    " storm. I replaced valve-7 and set the pressure of the horn to 4."
)
QUESTION = (
    "What made the foghorn on the north quay fall silent after the storm, and which part of its"
    " compressor was replaced?"
)
OFF_TOPIC = (
    "Which colour palette did the marketing team pick for the newsletter template, and who signs"
    " off on the fonts of the printed brochure?"
)
DAY = 86_400_000


def write_lines(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def test_questions_and_prompts_in_their_order_get_hints(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    Chat("foghorn").prompt(ASKED).agent(REPLY).save(sessions / "foghorn.jsonl")
    for number, thing in enumerate(("crane", "ferry", "slipway", "dredger", "buoy")):
        chat = Chat(thing, start=OLD + number * DAY)
        chat.prompt(f"Paint the {thing}").agent(f"The {thing} is painted.")
        chat.save(sessions / f"{thing}.jsonl")
    later = Chat("later", start=OLD + 9 * DAY).prompt(QUESTION).agent("It was the valve.")
    later.prompt("thanks").agent("You are welcome.").save(sessions / "later.jsonl")
    answer = {"session_id": "foghorn", "question": QUESTION, "answer_terms": ["valve-7"]}
    done = subprocess.run(
        [
            sys.executable, "-m", "bench.hints", "--sessions", sessions,
            "--questions", write_lines(tmp_path / "questions.jsonl", answer),
            "--unanswerable", write_lines(tmp_path / "none.jsonl", {"question": OFF_TOPIC}),
            "--nearmiss", write_lines(tmp_path / "near.jsonl", {"question": "Who built it?"}),
            "--weights", WEIGHTS,
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (
        "questions: 1 hints for 1, the right turn in 1, all terms of the answer in 1" in done.stdout
    )
    assert "without an answer: 0 hints for 1 (none.jsonl)" in done.stdout
    assert "without an answer: 0 hints for 1 (near.jsonl)" in done.stdout
    # Of the prompts only the last session's first has something before it to be told.
    assert "prompts of the sessions: 1 hints for 8 (12.5%)" in done.stdout
    assert done.stdout.count("\n== ") == 1 and "first prompt, evidence" in done.stdout


def test_a_directory_without_transcripts_is_an_error(tmp_path: Path) -> None:
    empty = write_lines(tmp_path / "empty.jsonl")
    done = subprocess.run(
        [sys.executable, "-m", "bench.hints", "--sessions", tmp_path / "none",
         "--questions", empty, "--unanswerable", empty],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 1
    assert "there are no transcripts" in done.stdout
