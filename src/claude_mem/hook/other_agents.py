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

# Before and after the context, which is a JSON string.
NESTED = (b'"hookSpecificOutput":{"hookEventName":"%s","additionalContext":', b"}")
FLAT = (b'"additionalContext":', b"")


class Output:
    """How an agent takes a context from a hook, and whether it shows the user a message."""

    def __init__(
        self,
        context: tuple[bytes, bytes] | None = None,
        *,
        opening: bytes = b"{",
        prompt_event: bytes = b"UserPromptSubmit",  # as the client names it
        shows_messages: bool = False,
        max_bytes: int | None = None,  # of a context
        escapes_brackets: bool = False,
    ) -> None:
        self.context = context
        self.opening = opening
        self.prompt_event = prompt_event
        self.shows_messages = shows_messages
        self.max_bytes = max_bytes
        self.escapes_brackets = escapes_brackets

    def line(self, event: bytes, context: bytes = b"", message: bytes = b"") -> bytes:
        """`context` and `message` are JSON strings with their quotes, or empty."""
        fields = []
        if context and self.context is not None:
            before, after = self.context
            if b"%s" in before:
                before %= self.prompt_event if event == b"UserPromptSubmit" else event
            fields.append(before + self.fit(context) + after)
        if message and self.shows_messages:
            fields.append(b'"systemMessage":' + message)
        comma = b"," if fields and self.opening != b"{" else b""
        return self.opening + comma + b",".join(fields) + b"}"

    def fit(self, context: bytes) -> bytes:
        """The JSON string of a context, as this agent takes it."""
        if self.escapes_brackets:
            context = context.replace(b"<", rb"\u2039").replace(b">", rb"\u203a")
        if self.max_bytes is None or len(context) <= self.max_bytes:
            return context
        return _whole_lines(context, self.max_bytes - len(_FENCE_END) - 1) + _FENCE_END + b'"'


# What a hook prints without a worker, by the agent: as `agents/` declares it, which no hook can
# import.
OUTPUTS = {
    CODEX: Output(NESTED, shows_messages=True, max_bytes=10_000),
    GEMINI: Output(NESTED, prompt_event=b"BeforeAgent", shows_messages=True, escapes_brackets=True),
    QWEN: Output(NESTED, shows_messages=True),
    VSCODE: Output(NESTED, shows_messages=True),
    COPILOT: Output(FLAT),
    OPENCODE: Output(FLAT),
    CURSOR: Output((b'"additional_context":', b"")),
}
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
    output = OUTPUTS.get(dialect)
    return output.line(event, context, message) if output is not None else PLAIN


def _whole_lines(context: bytes, size: int) -> bytes:
    """The lines that fit; `\\n` after an odd number of backslashes is not the end of a line."""
    end = size
    while (end := context.rfind(rb"\n", 0, end)) > 0:
        before = context[:end]
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            return before
    return b'"'
