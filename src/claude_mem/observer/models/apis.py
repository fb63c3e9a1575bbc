"""Models over HTTP: Anthropic's Messages API, and OpenAI's chat completions, which many servers
implement (OpenRouter, Gemini's compatible endpoint, Ollama, LM Studio)."""

from collections.abc import Mapping

from claude_mem.errors import InvalidCertificate, RequestFailed
from claude_mem.http_client import post_json
from claude_mem.observer.models.active_observer import ANTHROPIC_URL, OPENAI_URL
from claude_mem.observer.models.failures import (
    Refused,
    TooLong,
    Transient,
    UnusableReply,
    failure_for_status,
)
from claude_mem.observer.models.model import Reply, StatelessModel
from claude_mem.observer.models.prompts import MAX_REPLY_TOKENS, ModelRequest
from claude_mem.types import Json

ANTHROPIC_VERSION = "2023-06-01"
MAX_MODEL_NAME_CHARS = 100


class AnthropicModel(StatelessModel):
    name = "anthropic"

    def __init__(self, url: str, model: str, key: str, seconds: float) -> None:
        base = (url or ANTHROPIC_URL).rstrip("/").removesuffix("/v1")
        self._url = f"{base}/v1/messages"
        self._model, self._key, self._seconds = model, key, seconds

    async def ask(self, request: ModelRequest, session: int, resume: str | None) -> Reply:
        body: dict[str, Json] = {
            "model": self._model,
            "max_tokens": MAX_REPLY_TOKENS,
            "system": request.system,
            "messages": [{"role": "user", "content": request.text}],
        }
        headers = {"x-api-key": self._key, "anthropic-version": ANTHROPIC_VERSION}
        message = await _post(self._url, headers, body, self._seconds, self._key)
        text = _content_text(message.get("content"))
        if message.get("stop_reason") == "refusal":
            raise UnusableReply("the model refused to answer", text)
        return Reply(
            text,
            _model_name(message, self._model),
            _token_count(message, "input_tokens", "output_tokens", "cache_read_input_tokens",
                         "cache_creation_input_tokens"),
        )  # fmt: skip


class OpenAIModel(StatelessModel):
    name = "openai"

    def __init__(self, url: str, model: str, key: str, seconds: float) -> None:
        base = (url or OPENAI_URL).rstrip("/").removesuffix("/chat/completions")
        self._url = f"{base}/chat/completions"
        self._model, self._key, self._seconds = model, key, seconds
        # OpenAI's newer models refuse the old name; most other servers know only that one.
        self._limit = "max_completion_tokens" if base == OPENAI_URL else "max_tokens"

    async def ask(self, request: ModelRequest, session: int, resume: str | None) -> Reply:
        body: dict[str, Json] = {
            "model": self._model,
            self._limit: MAX_REPLY_TOKENS,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.text},
            ],
        }
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        completion = await _post(self._url, headers, body, self._seconds, self._key)
        choice = _first_choice(completion)
        message = choice.get("message")
        text = _content_text(message.get("content") if isinstance(message, dict) else None)
        if not text and choice.get("finish_reason") == "length":
            raise TooLong("the context had no room for a reply")
        return Reply(
            text,
            _model_name(completion, self._model),
            _token_count(completion, "prompt_tokens", "completion_tokens"),
        )


async def _post(
    url: str, headers: Mapping[str, str], body: dict[str, Json], seconds: float, key: str
) -> dict[str, Json]:
    try:
        response = await post_json(url, headers, body, seconds, secret=key)
        if response.status != 200:
            raise failure_for_status(response.status, response.text, response.headers)
        return response.json_object()
    except InvalidCertificate as error:
        raise Refused(str(error)) from None
    except RequestFailed as error:
        raise Transient(str(error)) from None


def _first_choice(completion: dict[str, Json]) -> dict[str, Json]:
    """Returns the first choice; some servers report an error with status 200 and no choice."""
    choices = completion.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        raise Transient("the response has no choice")
    return first


def _content_text(content: Json) -> str:
    """A plain string, or parts of which some have text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _model_name(response: dict[str, Json], requested: str) -> str:
    name = response.get("model")
    return name[:MAX_MODEL_NAME_CHARS] if isinstance(name, str) and name else requested


def _token_count(response: dict[str, Json], *names: str) -> int | None:
    usage = response.get("usage")
    if not isinstance(usage, dict):
        return None
    values = [usage.get(name) for name in names]
    counts = [n for n in values if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    return sum(counts) if counts else None
