"""What the hook prints for agents other than Claude Code, and which agent runs it.

Some agents also run the hooks in Claude Code's settings. They are recognised by variables that they
set and by fields that Claude Code's payloads do not have: a shell of one agent may run another.
"""

CLAUDE, CODEX, GEMINI, QWEN = b"claude", b"codex", b"gemini", b"qwen"
COPILOT, CURSOR, OPENCODE, VSCODE, WINDSURF = (
    b"copilot", b"cursor", b"opencode", b"vscode", b"windsurf",
)  # fmt: skip

PLAIN = b"{}"
MARKS = (b"COPILOT_CLI", b"CURSOR_VERSION", b"GEMINI_SESSION_ID")

_NESTED = (b'{"hookSpecificOutput":{"hookEventName":"%s","additionalContext":', b"}")
_FLAT = (b'{"additionalContext":', b"")
# Before and after the context, as a JSON string; the brace that ends the line is added last.
_WITH_CONTEXT = {
    CODEX: _NESTED,
    GEMINI: _NESTED,
    QWEN: _NESTED,
    VSCODE: _NESTED,
    COPILOT: _FLAT,
    OPENCODE: _FLAT,
    CURSOR: (b'{"additional_context":', b""),
}
# What the client calls the events that take a context, where that is not our name of them.
_EVENTS = {(GEMINI, b"UserPromptSubmit"): b"BeforeAgent"}
SHOWS_MESSAGES = (CODEX, GEMINI, QWEN, VSCODE)  # to the user
MAX_BYTES = {
    CODEX: 10_000
}  # of a context; Codex gives the agent only the beginning of a longer one
_FENCE_END = rb"\n</claude-mem-context>"


def caller(dialect: bytes, environ: dict[bytes, bytes], payload: bytes) -> bytes:
    """The agent that runs a hook which was installed for `dialect`."""
    if b'"session_id"' not in payload and b'"hookEventName"' in payload:
        return VSCODE
    if dialect != CLAUDE:
        return dialect
    if b"COPILOT_CLI" in environ and (
        b'"transcript_path"' not in payload or b"/.copilot/" in payload
    ):
        return COPILOT
    if b"CURSOR_VERSION" in environ and b'"conversation_id"' in payload:
        return CURSOR
    session = environ.get(b"GEMINI_SESSION_ID")
    return GEMINI if session and session in payload else dialect


def line(dialect: bytes, event: bytes, context: bytes = b"", message: bytes = b"") -> bytes:
    """`context` and `message` are JSON strings with their quotes, or empty."""
    parts = _WITH_CONTEXT.get(dialect)
    text = b"{"
    if context and parts is not None:
        before, after = parts
        if b"%s" in before:
            before %= _EVENTS.get((dialect, event), event)
        text = before + fit_context(dialect, context) + after
    if message and dialect in SHOWS_MESSAGES:
        text += (b"" if text == b"{" else b",") + b'"systemMessage":' + message
    return text + b"}"


def fit_context(dialect: bytes, context: bytes) -> bytes:
    """The JSON string of a context, as this agent takes it."""
    if dialect == GEMINI:  # it would escape them
        context = context.replace(b"<", rb"\u2039").replace(b">", rb"\u203a")
    limit = MAX_BYTES.get(dialect)
    if limit is None or len(context) <= limit:
        return context
    return _whole_lines(context, limit - len(_FENCE_END) - 1) + _FENCE_END + b'"'


def _whole_lines(context: bytes, size: int) -> bytes:
    """The lines that fit; `\\n` after an odd number of backslashes is not the end of a line."""
    end = size
    while (end := context.rfind(rb"\n", 0, end)) > 0:
        before = context[:end]
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            return before
    return b'"'
