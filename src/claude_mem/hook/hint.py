"""What UserPromptSubmit and PreToolUse print: the worker's hint, or nothing beyond the usual."""

from claude_mem.hook.ask import ask

ROUTE, TOOL_ROUTE = b"/hook/prompt", b"/hook/tool"
RESPONSE_SECONDS = 0.15  # the user waits for it
MAX_PAYLOAD = 1024 * 1024


def hint_line(
    data_dir: bytes, record_header: bytes, payload: bytes, *, is_tool: bool = False
) -> bytes | None:
    if len(payload) > MAX_PAYLOAD:
        return None  # pasted as a whole
    route = TOOL_ROUTE if is_tool else ROUTE
    return ask(data_dir, route, record_header + payload, RESPONSE_SECONDS)
