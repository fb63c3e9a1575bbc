"""Tools of editors that report over HTTP: they have names and arguments of their own.

The response of a tool stays as it is: an editor may send what Claude Code's tools return.
"""

from claude_mem.agents.agent import Payload
from claude_mem.agents.reading.fields import Fields
from claude_mem.agents.reading.tools import (
    ToolCall,
    is_patch_tool,
    tool_events,
    tool_input,
    tool_name,
)

_SAVES = ("filesave", "file_save", "savefile", "save_file")  # a file that the user saved


def tool_payloads(payload: Payload) -> list[Payload]:
    """A tool use as Claude Code reports it; of a patch, one for each file."""
    fields = Fields(payload)
    name, arguments = fields.text("tool_name"), payload.get("tool_input")
    if is_patch_tool(name):
        call = ToolCall(name, arguments, "", fields.text("tool_use_id"))
        events = tool_events(payload, call)
        is_parsed = events[0].payload["tool_name"] != name
        return [event.payload for event in events] if is_parsed else [payload]
    canonical = "Edit" if name.lower() in _SAVES else tool_name(name)
    if isinstance(arguments, dict):
        renamed = tool_input(canonical, arguments)
        assert isinstance(renamed, dict)
        arguments = {key: value for key, value in renamed.items() if value is not None}
    return [{**payload, "tool_name": canonical, "tool_input": arguments}]
