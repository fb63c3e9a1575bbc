"""What UserPromptSubmit prints: the worker's hint for the prompt, or nothing beyond the usual."""

from claude_mem.hook.ask import ask

ROUTE = b"/hook/prompt"
RESPONSE_SECONDS = 0.15  # the user waits for it
MAX_PAYLOAD = 1024 * 1024


def hint_line(data_dir: bytes, record_header: bytes, payload: bytes) -> bytes | None:
    if len(payload) > MAX_PAYLOAD:
        return None  # pasted as a whole
    return ask(data_dir, ROUTE, record_header + payload, RESPONSE_SECONDS)
