"""Requests of the session routes, with bodies that they accept."""

from typing import Any

from tests.api import Api
from tests.payloads import PROJECT_DIR, SESSION

INIT, OBSERVE = "/api/sessions/init", "/api/sessions/observations"
SUMMARIZE, COMPLETE = "/api/sessions/summarize", "/api/sessions/complete"
BY_CONTENT_ID = ("/sessions/init", "/sessions/observations", "/sessions/summarize",
                 "/sessions/complete", INIT, OBSERVE, SUMMARIZE, COMPLETE)  # fmt: skip
EXAMPLES: dict[str, dict[str, Any]] = {
    "init": {"prompt": "Make the light blink"},
    "observations": {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": "ok"},
    "summarize": {"last_assistant_message": "It blinks."},
    "complete": {"reason": "other"},
}


def example_body(path: str) -> dict[str, Any]:
    fields = EXAMPLES.get(path.rsplit("/", 1)[-1], {})
    return {"contentSessionId": SESSION, "project_dir": PROJECT_DIR, **fields}


def begin(api: Api, prompt: str = "Make the light blink", session: str = SESSION) -> int:
    """Sends a prompt; the row id of its session."""
    body = {"contentSessionId": session, "project_dir": PROJECT_DIR}
    return int(api.post_json(INIT, prompt=prompt, **body)["sessionDbId"])
