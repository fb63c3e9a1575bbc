"""A turn as a card of the feed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from claude_mem.language.prompt import parse_prompt
from claude_mem.server.viewer.rendering import Reader
from claude_mem.server.viewer.texts import day_name, line
from claude_mem.store.sessions import MANUAL
from claude_mem.store.viewer_pages import TurnPage

SHOWN_FILES = 3
UNTITLED = "Untitled session"


@dataclass(frozen=True, slots=True)
class CardMemory:
    id: int
    type: str
    title: str
    is_pinned: bool
    is_wrong: bool


@dataclass(frozen=True, slots=True)
class Card:
    turn_id: int
    moment: datetime
    day: date
    day_name: str
    session_db_id: int
    session_title: str
    project_id: int
    project: str
    title: str
    state: str  # "open", "queued", "revising", "saved" or ""
    is_prompt: bool  # whether the title is what the user wrote
    outcome: str
    memories: tuple[CardMemory, ...]
    files: tuple[str, ...]
    more_files: int
    tools: int
    writer: str


def cards_of(pages: Sequence[TurnPage], reader: Reader) -> list[Card]:
    return [_card(page, reader) for page in pages]


def _card(page: TurnPage, reader: Reader) -> Card:
    turn: dict[str, Any] = page.turn
    moment = reader.moment(turn["created_at_epoch"])
    summary: dict[str, Any] = page.summary or {}
    files = _files(page)
    title, is_prompt = _title(page)
    memories = tuple(
        CardMemory(
            int(str(o["id"])),
            str(o["type"]),
            line(o["title"], 160),
            is_pinned=bool(o["pinned"]),
            is_wrong=bool(o["wrong"]),
        )
        for o in page.observations
    )
    return Card(
        turn_id=turn["id"],
        moment=moment,
        day=moment.date(),
        day_name=day_name(moment.date(), reader.now.date()),
        session_db_id=turn["session_db_id"],
        session_title=line(turn["session_title"], 120) or UNTITLED,
        project_id=turn["project_id"],
        project=turn["project"],
        title=title,
        is_prompt=is_prompt,
        state=_state(turn),
        outcome=line(summary.get("completed") or summary.get("learned"), 320),
        memories=tuple(memory for memory in memories if memory.title and memory.title != title),
        files=tuple(files[:SHOWN_FILES]),
        more_files=max(0, len(files) - SHOWN_FILES),
        tools=turn["tools"],
        writer=_writer(page),
    )


def _title(page: TurnPage) -> tuple[str, bool]:
    if prompt := line(parse_prompt(str(page.turn["prompt_text"] or "")).own, 280):
        return prompt, True
    if page.turn["notice"]:
        return "A message of the client", False
    for observation in page.observations:
        if title := line(observation["title"], 200):
            return title, False
    request = page.summary["request"] if page.summary else None
    return line(request, 200) or "A turn without a prompt", False


def _state(turn: dict[str, Any]) -> str:
    if turn["dialect"] == MANUAL:
        return "saved"
    if not turn["closed"]:
        return "open" if turn["session_status"] == "active" else ""
    if turn["queued"] in ("pending", "processing"):
        return "queued"
    return "revising" if turn["refining"] in ("pending", "processing") else ""


def _files(page: TurnPage) -> list[str]:
    names: dict[str, None] = {}
    summary: dict[str, Any] = page.summary or {}
    for file in summary.get("files_edited") or ():
        names[str(file)] = None
    for observation in page.observations:
        of_observation: Any = observation["files_modified"]
        names.update(dict.fromkeys(map(str, of_observation)))
    return list(names)


def _writer(page: TurnPage) -> str:
    """Who wrote the memories: the model's name, or that of the observer."""
    for memory in (page.summary, *page.observations):
        if memory is not None:
            return str(memory["model"] or memory["observer"])
    return ""
