"""Turns as observers get them, and checks of what they return."""

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
    Turn,
    TurnEvent,
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


def use(number: int, kind: str = "PostToolUse", **fields: Any) -> TurnEvent:
    empty = {"tool_name": None, "tool_input": None, "tool_response": None, "text": None}
    return TurnEvent(number, kind, **{**empty, "agent_id": None, **fields})


def of_payload(number: int, payload: Payload) -> TurnEvent:
    return use(
        number,
        payload["hook_event_name"],
        tool_name=payload.get("tool_name"),
        tool_input=payload.get("tool_input"),
        tool_response=payload.get("tool_response"),
        text=payload.get("last_assistant_message") or payload.get("error"),
    )


def turn(*events: TurnEvent, **changes: Any) -> Turn:
    return replace(TURN, events=events, **changes)


def turn_from(*payloads: Payload, **changes: Any) -> Turn:
    events = (of_payload(number, payload) for number, payload in enumerate(payloads, start=100))
    return turn(*events, **changes)


FULL_TURN = turn_from(*one_of_each())


def stopped(text: str | None, number: int = 900) -> TurnEvent:
    return use(number, "Stop", text=text)


def statement(text: str, number: int = 800) -> TurnEvent:
    return use(number, "Statement", text=text)


def ran(command: str, output: str = "", number: int = 1, failed: bool = False) -> TurnEvent:
    params = {"command": command}
    if failed:
        return use(number, "PostToolUseFailure", tool_name="Bash", tool_input=params, text=output)
    response = {"stdout": output, "stderr": ""}
    return use(number, tool_name="Bash", tool_input=params, tool_response=response)


def edited(path: str, number: int = 500, old: str = "a", new: str = "b") -> TurnEvent:
    full_path = f"{PROJECT_DIR}/{path}"
    params = {"file_path": full_path, "old_string": old, "new_string": new}
    return use(number, tool_name="Edit", tool_input=params, tool_response={"filePath": full_path})


def session(*turns: Turn, memories: int = 10) -> list[Distillate]:
    """The turns distilled in order, each with the memories of those before it."""
    previous: list[str] = []
    results: list[Distillate] = []
    for number, each in enumerate(turns, start=1):
        recent = tuple(previous[-memories:])
        result = distil(replace(each, prompt_number=number, recent_memories=recent))
        results.append(result)
        previous += [*(observation.text for observation in result.observations)]
        previous.append(result.summary.text)
    return results


def texts(result: Distillate) -> list[str | None]:
    """Every text of a distillate."""
    summary = result.summary
    collected = [result.title, result.subtitle, summary.request, summary.investigated,
                 summary.learned, summary.completed, summary.next_steps, summary.notes,
                 *summary.files_read, *summary.files_edited,
                 *(run.text for run in summary.commands),
                 *(fault.text for fault in summary.faults),
                 *(step.text for step in summary.open_steps)]  # fmt: skip
    for each in result.observations:
        collected += [each.title, each.subtitle, each.narrative, *each.facts, *each.concepts,
                      *each.files_read, *each.files_modified]  # fmt: skip
    return collected


def check(result: Distillate, of: Turn) -> None:
    """What the store relies on."""
    event_ids = {event.id for event in of.events}
    assert isinstance(result, Distillate) and isinstance(result.summary, Summary)
    assert set(result.summary.sources) <= event_ids
    for fact in (*result.summary.commands, *result.summary.faults, *result.summary.open_steps):
        assert isinstance(fact, CommandRun | EnvironmentFault | OpenStep)
        assert set(fact.sources) <= event_ids
    for observation in result.observations:
        assert isinstance(observation, Observation)
        assert observation.type in OBSERVATION_TYPES
        assert set(observation.sources) <= event_ids
    for text in texts(result):
        assert text is None or (isinstance(text, str) and len(text) < 100_000)
    assert result.observer
