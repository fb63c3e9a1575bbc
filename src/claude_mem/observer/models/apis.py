"""Models over HTTP: Anthropic's own API, and the one that OpenAI made and many others speak
(OpenRouter, Gemini's compatible endpoint, Ollama, LM Studio)."""

from collections.abc import Mapping

from claude_mem.errors import InvalidCertificate, RequestFailed
from claude_mem.http_client import post_json
from claude_mem.observer.models.failures import (
    Refused,
    TooLong,
    Transient,
    UnusableReply,
    failure_of,
)
from claude_mem.observer.models.model import Reply, Stateless
from claude_mem.observer.models.prompts import REPLY_TOKENS, Ask
from claude_mem.types import Json

ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_VERSION = "2023-06-01"


class AnthropicModel(Stateless):
    name = "anthropic"

    def __init__(self, url: str, model: str, key: str, seconds: float) -> None:
        base = (url or ANTHROPIC_URL).rstrip("/").removesuffix("/v1")
        self._url = f"{base}/v1/messages"
        self._model, self._key, self._seconds = model, key, seconds

    async def ask(self, ask: Ask, session: int, resume: str | None) -> Reply:
        body: dict[str, Json] = {
            "model": self._model,
            "max_tokens": REPLY_TOKENS,
            "system": ask.system,
            "messages": [{"role": "user", "content": ask.text}],
        }
        headers = {"x-api-key": self._key, "anthropic-version": ANTHROPIC_VERSION}
        answer = await _post(self._url, headers, body, self._seconds, self._key)
        blocks = answer.get("content")
        texts = [
            block.get("text")
            for block in (blocks if isinstance(blocks, list) else [])
            if isinstance(block, dict) and block.get("type") == "text"
        ]
        said = "".join(text for text in texts if isinstance(text, str))
        if answer.get("stop_reason") == "refusal":
            raise UnusableReply("the model refused to answer", said)
        return Reply(
            text=said,
            model=_name(answer, self._model),
            tokens=_tokens(answer, "input_tokens", "output_tokens", "cache_read_input_tokens",
                           "cache_creation_input_tokens"),
        )  # fmt: skip


class OpenAIModel(Stateless):
    name = "openai"

    def __init__(self, url: str, model: str, key: str, seconds: float) -> None:
        base = (url or OPENAI_URL).rstrip("/").removesuffix("/chat/completions")
        self._url = f"{base}/chat/completions"
        self._model, self._key, self._seconds = model, key, seconds
        # Newer models of OpenAI refuse the old name; most others know only that one.
        self._limit = "max_completion_tokens" if base == OPENAI_URL else "max_tokens"

    async def ask(self, ask: Ask, session: int, resume: str | None) -> Reply:
        body: dict[str, Json] = {
            "model": self._model,
            self._limit: REPLY_TOKENS,
            "messages": [
                {"role": "system", "content": ask.system},
                {"role": "user", "content": ask.text},
            ],
        }
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        answer = await _post(self._url, headers, body, self._seconds, self._key)
        choice = _first_choice(answer)
        message = choice.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        text = _words(content)
        if not text and choice.get("finish_reason") == "length":
            raise TooLong("there was no room left for an answer")
        return Reply(text, _name(answer, self._model),
                     _tokens(answer, "prompt_tokens", "completion_tokens"))  # fmt: skip


async def _post(
    url: str, headers: Mapping[str, str], body: dict[str, Json], seconds: float, key: str
) -> dict[str, Json]:
    try:
        response = await post_json(url, headers, body, seconds, secret=key)
        if response.status != 200:
            raise failure_of(response.status, response.text, response.headers)
        return response.json_object()
    except InvalidCertificate as error:
        raise Refused(str(error)) from None
    except RequestFailed as error:
        raise Transient(str(error)) from None


def _first_choice(answer: dict[str, Json]) -> dict[str, Json]:
    """Some report an error with status 200 and no choice."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        raise Transient("the answer holds no choice")
    return first


def _words(content: Json) -> str:
    """A text, or a list of parts with texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _name(answer: dict[str, Json], asked: str) -> str:
    said = answer.get("model")
    return said[:100] if isinstance(said, str) and said else asked


def _tokens(answer: dict[str, Json], *names: str) -> int | None:
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(name) for name in names]
    found = [n for n in counts if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    return sum(found) if found else None
