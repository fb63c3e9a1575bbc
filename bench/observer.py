"""What a model would be asked for on real sessions, against one request per tool use.

    python bench/observer.py --sessions DIR --questions FILE

DIR holds transcripts as the client writes them; FILE a JSON object per line with `session_id`,
`question` and `answer_terms`. The sessions of the questions are read into turns, each becomes the
one request that the observer would make, and beside it stand the requests that an observer makes
which asks at every tool use, with the same prompts and the same cuts. No model is asked.
A client that keeps a conversation sends all of it again with each request: that is told too, for
both, begun afresh after as many tokens.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # where it runs as a script

from bench.transcripts import Question, read_questions
from claude_mem.intake.dialects import EventReader
from claude_mem.intake.projects import Projects
from claude_mem.intake.transcripts.importer import find_transcripts
from claude_mem.intake.transcripts.past_sessions import PastSessionReader, tool_use
from claude_mem.observer.local.observer import distil
from claude_mem.observer.models.claude import MAX_CONVERSATION_TOKENS
from claude_mem.observer.models.prompts import (
    Request,
    continuation,
    estimate_tokens,
    first_request,
    format_draft,
    format_tool_use,
    system_prompt,
    turn_prompt,
)
from claude_mem.privacy import Redactor
from claude_mem.types import PastTurn, Project, Turn

FEWER_REQUESTS, FEWER_TOKENS, ANSWERABLE = 5, 3, 14
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
    """The input of requests that are sent with all that was said before them."""

    def __init__(self, cost: Cost, system: str) -> None:
        self._cost, self._system, self._said = cost, estimate_tokens(system), 0

    def say(self, text: str, answer: int) -> None:
        sent = self._system + self._said + estimate_tokens(text)
        self._cost.add(sent)
        self._said = 0 if sent > MAX_CONVERSATION_TOKENS else sent - self._system + answer


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--sessions", type=Path, required=True)
    asked.add_argument("--questions", type=Path, required=True)
    asked.add_argument("--verbosity", default="normal")
    given = asked.parse_args()
    questions = read_questions(given.questions)
    wanted = {question.session_id for question in questions}
    files = [path for path in find_transcripts([given.sessions]) if path.stem in wanted]
    system = system_prompt(given.verbosity)
    by_turn, by_tool, talk_by_turn, talk_by_tool = Cost(), Cost(), Cost(), Cost()
    bodies: dict[str, list[str]] = {}
    for path in files:
        turns, tools_told = Conversation(talk_by_turn, system), Conversation(talk_by_tool, system)
        for number, turn in enumerate(turns_of(path)):
            tools = [event for event in turn.events if event.tool_name]
            draft = distil(turn)
            body = turn_prompt(turn, draft, continues=False)
            bodies.setdefault(path.stem, []).append(body)
            by_turn.add(Request(system, body).input_tokens)
            # An answer is about as long as the draft; of a tool use, as its share of that.
            answer = estimate_tokens(format_draft(draft))
            turns.say(turn_prompt(turn, draft, continues=number > 0), answer)
            for place, event in enumerate(tools):
                by_tool.add(
                    Request(system, f"{first_request(turn)}\n{format_tool_use(event)}").input_tokens
                )
                first = number == place == 0
                opening = first_request(turn) if first else continuation(turn)
                tools_told.say(f"{opening}\n{format_tool_use(event)}", answer // len(tools))
    held = [question for question in questions if _holds(bodies, question)]
    whole = [question for question in questions if _holds(bodies, question, in_one=True)]
    _report(len(files), by_turn, by_tool, talk_by_turn, talk_by_tool)
    print(f"answer terms in the bodies of their session: {len(held)} of {len(questions)} questions "
          f"({len(whole)} in one body; target at least {ANSWERABLE})")  # fmt: skip
    good = (
        by_turn.requests * FEWER_REQUESTS <= by_tool.requests
        and by_turn.tokens * FEWER_TOKENS <= by_tool.tokens
        and len(held) >= min(ANSWERABLE, len(questions))
    )
    return 0 if good else 1


def _report(sessions: int, by_turn: Cost, by_tool: Cost, turns: Cost, tools: Cost) -> None:
    print(f"{sessions} sessions, {by_turn.requests} turns, {by_tool.requests} tool uses")
    print(f"one request per turn: {by_turn.requests} requests, {by_turn.tokens} input tokens; "
          f"in a conversation {turns.tokens}")  # fmt: skip
    print(f"one request per tool use: {by_tool.requests} requests, {by_tool.tokens} input tokens; "
          f"in a conversation {tools.tokens}")  # fmt: skip
    requests = by_turn.requests / max(1, by_tool.requests)
    tokens = by_turn.tokens / max(1, by_tool.tokens)
    print(f"requests {requests:.3f} (target at most {1 / FEWER_REQUESTS:.3f}), "
          f"input tokens {tokens:.3f} (target at most {1 / FEWER_TOKENS:.3f}), "
          f"in a conversation {turns.tokens / max(1, tools.tokens):.3f}")  # fmt: skip


def turns_of(path: Path) -> list[Turn]:
    reader = PastSessionReader(
        path, EventReader(Redactor(), Projects(home=None), skip_tools=SKIPPED), 0
    )
    found: list[Turn] = []
    told: list[str] = []
    for session in reader.sessions():
        for past in session.turns:
            if past.prompt is None or past.distillate is None:
                continue
            found.append(_turn(session.session_id, session.project, session.project_dir, past,
                               tuple(told[-10:])))  # fmt: skip
            told += [
                *(one.text for one in past.distillate.observations),
                past.distillate.summary.text,
            ]
    return found


def _turn(
    session_id: str, project: Project, directory: str, past: PastTurn, told: tuple[str, ...]
) -> Turn:
    events = tuple(tool_use(place, event) for place, event in enumerate(past.events, 1))
    return Turn(
        id=0,
        session_db_id=0,
        content_session_id=session_id,
        memory_session_id="",
        project=project,
        project_dir=directory,
        transcript_path="",
        prompt_id=past.prompt_id,
        prompt_number=past.number,
        prompt=past.prompt,
        started_ms=past.events[0].arrived_ms,
        events=events,
        recent_memories=told,
    )


def _holds(bodies: dict[str, list[str]], question: Question, *, in_one: bool = False) -> bool:
    of_session = bodies.get(question.session_id, [])
    texts = of_session if in_one else ["\n".join(of_session)]
    return any(all(term in text for term in question.terms) for text in texts)


if __name__ == "__main__":
    sys.exit(main())
