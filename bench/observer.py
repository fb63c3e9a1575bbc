"""Requests and tokens of the observer on real sessions, compared with one request per tool use.

    python bench/observer.py --sessions DIR --questions FILE

DIR contains transcripts of the client; FILE a JSON object per line with `session_id`, `question`
and `answer_terms`. The sessions of the questions are read into turns, and each turn becomes the
request that the observer would send. The baseline is an observer that sends a request per tool
use, with the same prompts and limits. No model is contacted.
A client that keeps a conversation sends it again with each request; that is counted as well, with
a new conversation after the same number of tokens for both.
Each turn is distilled locally, too, and the CPU time of that is measured.
"""

import argparse
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # when it runs as a script

from bench.questions import Question, read_questions
from claude_mem.cli.imports import find_transcripts
from claude_mem.intake.event_reader import EventReader
from claude_mem.intake.projects import Projects
from claude_mem.intake.transcripts.past_sessions import PastSessionReader, turn_event
from claude_mem.observer.local.observer import distil
from claude_mem.observer.models.claude import MAX_CONVERSATION_TOKENS
from claude_mem.observer.models.prompts import (
    ModelRequest,
    build_request,
    continuation,
    estimate_tokens,
    first_request,
    format_revision,
    format_tool_use,
    system_prompt,
)
from claude_mem.redaction import Redactor
from claude_mem.types import PastSession, PastTurn, Turn, Verbosity

FEWER_REQUESTS, FEWER_TOKENS, ANSWERABLE = 5, 3, 14
TARGET_MS = 5.0  # of CPU time, for the local observer to distil a turn
SKIPPED = frozenset(
    ("ListMcpResourcesTool", "SlashCommand", "Skill", "TodoWrite", "AskUserQuestion")
)


@dataclass(slots=True)
class Cost:
    requests: int = 0
    tokens: int = 0

    def add(self, tokens: int) -> None:
        self.requests += 1
        self.tokens += tokens


class Conversation:
    """Requests that send the conversation so far again."""

    def __init__(self, cost: Cost, system: str) -> None:
        self._cost, self._system, self._previous = cost, estimate_tokens(system), 0

    def add(self, text: str, reply_tokens: int) -> None:
        sent = self._system + self._previous + estimate_tokens(text)
        self._cost.add(sent)
        is_over = sent > MAX_CONVERSATION_TOKENS
        self._previous = 0 if is_over else sent - self._system + reply_tokens


@dataclass(slots=True)
class Costs:
    """The costs of an observer, with separate requests and in a conversation."""

    separate: Cost = field(default_factory=Cost)
    conversation: Cost = field(default_factory=Cost)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--verbosity", default="normal", choices=get_args(Verbosity))
    options = parser.parse_args()
    questions = read_questions(options.questions)
    session_ids = {question.session_id for question in questions}
    files = [path for path in find_transcripts([options.sessions]) if path.stem in session_ids]
    system = system_prompt(options.verbosity)
    by_turn, by_tool = Costs(), Costs()
    cpu_ms: list[float] = []
    prompts = {path.stem: _count(path, system, by_turn, by_tool, cpu_ms) for path in files}
    answerable = [question for question in questions if _has_terms(prompts, question)]
    in_one = [question for question in questions if _has_terms(prompts, question, in_one=True)]
    _report(len(files), by_turn, by_tool)
    print(f"local observer: median {statistics.median(cpu_ms or [0.0]):.1f} ms, mean "
          f"{statistics.mean(cpu_ms or [0.0]):.1f} ms of CPU time per turn "
          f"(target: median at most {TARGET_MS:.0f} ms)")  # fmt: skip
    print(f"answer terms in the prompts of their session: {len(answerable)} of {len(questions)} "
          f"questions ({len(in_one)} in one prompt; target at least {ANSWERABLE})")  # fmt: skip
    good = (
        by_turn.separate.requests * FEWER_REQUESTS <= by_tool.separate.requests
        and by_turn.separate.tokens * FEWER_TOKENS <= by_tool.separate.tokens
        and len(answerable) >= min(ANSWERABLE, len(questions))
    )
    return 0 if good else 1


def _count(
    path: Path, system: str, by_turn: Costs, by_tool: Costs, cpu_ms: list[float]
) -> list[str]:
    """Adds the cost of a session; returns its prompts."""
    turn_conversation = Conversation(by_turn.conversation, system)
    tool_conversation = Conversation(by_tool.conversation, system)
    prompts: list[str] = []
    for number, turn in enumerate(turns_of(path)):
        tools = [event for event in turn.events if event.tool_name]
        started = time.thread_time()
        draft = distil(turn)
        cpu_ms.append((time.thread_time() - started) * 1000)
        prompts.append(build_request(turn, draft).text)
        by_turn.separate.add(ModelRequest(system, prompts[-1]).input_tokens)
        # A reply is about as long as the draft; for a tool use, as its share of the draft.
        reply_tokens = estimate_tokens(format_revision(draft))
        prompt = build_request(turn, draft, continues=number > 0).text
        turn_conversation.add(prompt, reply_tokens)
        for index, event in enumerate(tools):
            text = format_tool_use(event)
            by_tool.separate.add(
                ModelRequest(system, f"{first_request(turn)}\n{text}").input_tokens
            )
            opening = first_request(turn) if number == index == 0 else continuation(turn)
            tool_conversation.add(f"{opening}\n{text}", reply_tokens // len(tools))
    return prompts


def _report(sessions: int, by_turn: Costs, by_tool: Costs) -> None:
    turns, tools = by_turn.separate, by_tool.separate
    print(f"{sessions} sessions, {turns.requests} turns, {tools.requests} tool uses; "
          f"{turns.tokens / max(1, turns.requests):.0f} input tokens per turn")  # fmt: skip
    for name, costs in (("turn", by_turn), ("tool use", by_tool)):
        print(f"one request per {name}: {costs.separate.requests} requests, "
              f"{costs.separate.tokens} input tokens; "
              f"in a conversation {costs.conversation.tokens}")  # fmt: skip
    conversation = by_turn.conversation.tokens / max(1, by_tool.conversation.tokens)
    print(f"requests {turns.requests / max(1, tools.requests):.3f} "
          f"(target at most {1 / FEWER_REQUESTS:.3f}), "
          f"input tokens {turns.tokens / max(1, tools.tokens):.3f} "
          f"(target at most {1 / FEWER_TOKENS:.3f}), in a conversation {conversation:.3f}"
          )  # fmt: skip


def turns_of(path: Path) -> list[Turn]:
    reader = PastSessionReader(
        path, EventReader(Redactor(), Projects(home=None), skip_tools=SKIPPED), 0
    )
    turns: list[Turn] = []
    memories: list[str] = []
    for session in reader.sessions():
        for past in session.turns:
            if past.is_private or past.distillate is None:
                continue
            turns.append(_turn(session, past, tuple(memories[-10:])))
            memories += [
                *(observation.text for observation in past.distillate.observations),
                past.distillate.summary.text,
            ]
    return turns


def _turn(session: PastSession, past: PastTurn, previous: tuple[str, ...]) -> Turn:
    events = tuple(turn_event(place, event) for place, event in enumerate(past.events, 1))
    return Turn(
        id=0,
        session_db_id=0,
        content_session_id=session.session_id,
        memory_session_id="",
        project=session.project,
        project_dir=session.project_dir,
        transcript_path="",
        prompt_id=past.prompt_id,
        prompt_number=past.number,
        prompt=past.prompt,
        started_ms=past.events[0].arrived_ms,
        events=events,
        recent_memories=previous,
        is_client_message=past.is_client_message,
    )


def _has_terms(prompts: dict[str, list[str]], question: Question, *, in_one: bool = False) -> bool:
    of_session = prompts.get(question.session_id, [])
    texts = of_session if in_one else ["\n".join(of_session)]
    return any(all(term in text for term in question.terms) for text in texts)


if __name__ == "__main__":
    sys.exit(main())
