"""Gemini CLI: events of its own names, which the installed hooks pass as ours.

Its prompt contains the context that hooks gave, and its tool calls have no id.
"""

import re

from claude_mem.intake.normalisers.payloads import (
    PROMPT,
    STOP,
    TOOL,
    Normalised,
    Payload,
    compact,
    made_up_id,
    mapping,
    plain_text,
    text,
    time_of,
)
from claude_mem.intake.normalisers.tools import tool_events

_HOOK_CONTEXT = re.compile(r"<hook_context>.*?(?:</hook_context>|\Z)\s*", re.DOTALL)
_UNTRUSTED = re.compile(r"</?untrusted_context>\n?")
_OUTPUT = re.compile(r"(?:^|\n)Output: (.*?)(?=\n(?:Error|Exit Code|Signal|Process Group PGID"
                     r"|Background PIDs): |\Z)", re.DOTALL)  # fmt: skip


def normalise(kind: str, payload: Payload) -> list[Normalised]:
    common = compact(
        session_id=payload.get("session_id"),
        transcript_path=payload.get("transcript_path"),
        cwd=payload.get("cwd"),
        timestamp=time_of(payload),
        source=payload.get("source"),
        reason=payload.get("reason"),
    )
    if kind == PROMPT:
        return [Normalised(kind, {**common, "prompt": text(payload, "prompt")})]
    if kind == STOP:
        last = text(payload, "prompt_response")
        return [Normalised(kind, {**common, "last_assistant_message": last})]
    if kind != TOOL:
        return [Normalised(kind, common)]
    name, response = text(payload, "tool_name"), mapping(payload.get("tool_response"))
    call_id = text(payload, "tool_use_id") or made_up_id(
        payload.get("session_id"), name, payload.get("tool_input"), time_of(payload)
    )
    return tool_events(
        common,
        name,
        payload.get("tool_input"),
        output_of(response),
        error=failure_of(response),
        call_id=call_id,
    )


def without_context(output: str) -> str:
    """What a tool printed, without the context that hooks gave for it."""
    return _HOOK_CONTEXT.sub("", output).strip()


def output_of(response: Payload) -> str:
    """What the tool printed, with the exit code if the command failed."""
    whole = _UNTRUSTED.sub("", plain_text(response.get("llmContent")))
    output = _OUTPUT.search(whole)
    if output is None:
        return whole or plain_text(response.get("returnDisplay"))
    code = re.search(r"\nExit Code: ([1-9]\d{0,2})\b", whole)
    printed = "" if output[1].strip() in ("(empty)", "(none)") else output[1].rstrip()
    error = re.search(r"\nError: (.*?)(?=\n(?:Exit Code|Signal): |\Z)", whole, re.DOTALL)
    if error and error[1].strip() not in ("(none)", ""):
        printed = f"{printed}\n{error[1].rstrip()}".strip()
    return f"{printed}\nExit Code: {code[1]}" if code else printed


def failure_of(response: Payload) -> str:
    error = response.get("error")
    if not error:
        return ""
    message = mapping(error).get("message") if isinstance(error, dict) else error
    return plain_text(message) or "failed"
