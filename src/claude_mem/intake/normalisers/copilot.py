"""Copilot CLI: camelCase fields, or snake_case where it runs a hook of Claude Code's settings.

Both spellings of an event give the same payload, so that it is stored once. There are no ids of
tool calls and no last message, which is read from the transcript.
"""

from claude_mem.intake.normalisers.payloads import (
    PROMPT,
    TOOL,
    TOOL_FAILURE,
    Normalised,
    Payload,
    compact,
    first,
    made_up_id,
    mapping,
    plain_text,
    text,
    time_of,
)
from claude_mem.intake.normalisers.tools import exit_code, tool_events, tool_name

_SOURCES = {"new": "startup"}


def normalise(kind: str, payload: Payload) -> list[Normalised]:
    session_id, source = first(payload, "sessionId", "session_id"), text(payload, "source")
    common = compact(
        session_id=session_id,
        cwd=payload.get("cwd"),
        timestamp=time_of(payload),
        transcript_path=first(payload, "transcriptPath", "transcript_path"),
        source=_SOURCES.get(source, source),
        reason=payload.get("reason"),
    )
    if kind == PROMPT:
        return [Normalised(kind, {**common, "prompt": text(payload, "prompt")})]
    if kind not in (TOOL, TOOL_FAILURE):
        return [Normalised(kind, common)]
    name = tool_name(text(payload, "toolName", "tool_name"))
    arguments = first(payload, "toolArgs", "tool_input", "toolInput")
    result = mapping(first(payload, "toolResult", "tool_result"))
    output = text(result, "textResultForLlm", "text_result_for_llm")
    has_failed = text(result, "resultType", "result_type") in ("failure", "error")
    error = plain_text(payload.get("error")) or (output if has_failed else "")
    if kind == TOOL_FAILURE:
        error = error or output or "failed"
    return tool_events(
        common, name, arguments, without_mark(output), error=error, code=_code(name, output),
        call_id=made_up_id(session_id, name, arguments, time_of(payload)),
    )  # fmt: skip


def without_mark(output: str) -> str:
    """The output of a command without the line that the client adds."""
    return "\n".join(line for line in output.splitlines() if not line.startswith("<shellId: "))


def _code(name: str, output: str) -> int:
    return exit_code(output) if name == "Bash" else 0
