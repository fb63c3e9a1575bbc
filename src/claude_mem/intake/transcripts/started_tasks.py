"""The background tasks that the turns of a session started, for the messages that report them."""

from dataclasses import dataclass, field

from claude_mem.store.message_parents import BACKGROUND_TOOLS, IN_BACKGROUND
from claude_mem.types import ClientMessage, Event


@dataclass(slots=True)
class StartedTasks:
    """The same answers as `store/message_parents.py`, before anything is stored."""

    by_call: dict[str, str] = field(default_factory=dict)  # tool_use_id -> prompt_id
    responses: list[tuple[str, str]] = field(default_factory=list)  # of starts, with prompt_id
    latest: str | None = None

    def add(self, prompt_id: str, events: list[Event]) -> None:
        for event in events:
            if event.tool_use_id is not None:
                self.by_call.setdefault(event.tool_use_id, prompt_id)
            if event.tool_name in BACKGROUND_TOOLS or IN_BACKGROUND in (event.tool_input or ""):
                self.latest = prompt_id
                self.responses.append((event.tool_response or "", prompt_id))

    def parent_of(self, message: ClientMessage) -> str | None:
        if message.tool_use_id in self.by_call:
            return self.by_call[message.tool_use_id]
        task_id = message.task_id
        by_task = (turn for text, turn in self.responses if task_id and task_id in text)
        return next(by_task, self.latest)
