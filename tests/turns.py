"""Turns of a session as an observer gets them, and what the store relies on in what it makes."""

from dataclasses import replace
from typing import Any

from claude_mem.observer.local.observer import distil
from claude_mem.types import (
    OBSERVATION_TYPES,
    CommandRun,
    Distillate,
    EnvironmentFault,
    Observation,
    OpenStep,
    Project,
    Summary,
    ToolUse,
    Turn,
)
from tests.payloads import PROJECT_DIR, SESSION, Payload, one_of_each

TURN = Turn(
    id=7,
    session_db_id=3,
    content_session_id=SESSION,
    memory_session_id="",
    project=Project(PROJECT_DIR, "harbor"),
    project_dir=PROJECT_DIR,
    transcript_path="",
    prompt_id="p1",
    prompt_number=1,
    prompt="Make the harbour light blink twice",
    started_ms=1_760_000_000_000,
    events=(),
)


def use(number: int, kind: str = "PostToolUse", **fields: Any) -> ToolUse:
    empty = {"tool_name": None, "tool_input": None, "tool_response": None, "text": None}
    return ToolUse(number, kind, **{**empty, "agent_id": None, **fields})


def of_payload(number: int, payload: Payload) -> ToolUse:
    return use(
        number,
        payload["hook_event_name"],
        tool_name=payload.get("tool_name"),
        tool_input=payload.get("tool_input"),
        tool_response=payload.get("tool_response"),
        text=payload.get("last_assistant_message") or payload.get("error"),
    )


def turn(*events: ToolUse, **changes: Any) -> Turn:
    return replace(TURN, events=events, **changes)


def told(*payloads: Payload, **changes: Any) -> Turn:
    return turn(*(of_payload(n, one) for n, one in enumerate(payloads, start=100)), **changes)


FULL_TURN = told(*one_of_each())


def stopped(text: str | None, number: int = 900) -> ToolUse:
    return use(number, "Stop", text=text)


def said(text: str, number: int = 800) -> ToolUse:
    """On the way."""
    return use(number, "Statement", text=text)


def ran(command: str, output: str = "", number: int = 1, failed: bool = False) -> ToolUse:
    given = {"command": command}
    if failed:
        return use(number, "PostToolUseFailure", tool_name="Bash", tool_input=given, text=output)
    answered = {"stdout": output, "stderr": ""}
    return use(number, tool_name="Bash", tool_input=given, tool_response=answered)


def edited(path: str, number: int = 500, old: str = "a", new: str = "b") -> ToolUse:
    whole = f"{PROJECT_DIR}/{path}"
    given = {"file_path": whole, "old_string": old, "new_string": new}
    return use(number, tool_name="Edit", tool_input=given, tool_response={"filePath": whole})


def session(*turns: Turn, memories: int = 10) -> list[Distillate]:
    """Distilled one after the other, each told what the memory says of those before."""
    before: list[str] = []
    made: list[Distillate] = []
    for number, one in enumerate(turns, start=1):
        previous_statements = tuple(before[-memories:])
        made.append(distil(replace(one, prompt_number=number, recent_memories=previous_statements)))
        before += [*(o.text for o in made[-1].observations), made[-1].summary.text]
    return made


def texts(made: Distillate) -> list[str | None]:
    """Every single text of a distillate."""
    summary = made.summary
    found = [made.title, made.subtitle, summary.request, summary.investigated, summary.learned,
             summary.completed, summary.next_steps, summary.notes, *summary.files_read,
             *summary.files_edited, *(run.text for run in summary.commands),
             *(fault.text for fault in summary.faults),
             *(step.text for step in summary.open_steps)]  # fmt: skip
    for one in made.observations:
        found += [one.title, one.subtitle, one.narrative, *one.facts, *one.concepts,
                  *one.files_read, *one.files_modified]  # fmt: skip
    return found


def check(made: Distillate, of: Turn) -> None:
    """What the store relies on."""
    known = {event.id for event in of.events}
    assert isinstance(made, Distillate) and isinstance(made.summary, Summary)
    assert set(made.summary.sources) <= known
    for fact in (*made.summary.commands, *made.summary.faults, *made.summary.open_steps):
        assert isinstance(fact, CommandRun | EnvironmentFault | OpenStep)
        assert set(fact.sources) <= known
    for observation in made.observations:
        assert isinstance(observation, Observation)
        assert observation.type in OBSERVATION_TYPES
        assert set(observation.sources) <= known
    for text in texts(made):
        assert text is None or (isinstance(text, str) and len(text) < 100_000)
    assert made.observer
