"""Models over HTTP: what is sent, how failures are told apart, where a key may go."""

import asyncio
import socket
import time
from email.utils import formatdate
from typing import Any

import pytest

from claude_mem.observer.models.apis import AnthropicModel, OpenAIModel
from claude_mem.observer.models.failures import (
    NotAllowed,
    ObserverError,
    QuotaSpent,
    RateLimited,
    Refused,
    TooLong,
    Transient,
    UnknownModel,
    UnusableReply,
    failure_for_message,
    failure_for_status,
    retry_after,
)
from claude_mem.observer.models.model import Reply
from claude_mem.observer.models.prompts import ModelRequest
from tests.fake_api import FakeApi, json_response, raw_server
from tests.fake_api import Reply as Says

REQUEST = ModelRequest("the system", "the turn")


def always(text: str, **options: Any) -> Says:
    return Says(text, when=lambda body: True, **options)


def ask(model: AnthropicModel | OpenAIModel) -> Reply:
    return asyncio.run(model.ask(REQUEST, 1, None))


def anthropic(url: str, seconds: float = 30) -> AnthropicModel:
    return AnthropicModel(url, "claude-x", "sk-secret", seconds)


def openai(url: str, key: str = "sk-secret", seconds: float = 30) -> OpenAIModel:
    return OpenAIModel(f"{url}/v1", "gpt-x", key, seconds)


def test_anthropic_is_asked_in_its_own_language(api: FakeApi) -> None:
    api.say(always("An answer"))
    reply = ask(anthropic(api.url))
    assert (reply.text, reply.model, reply.tokens) == ("An answer", "claude-x", 60)
    (body,) = api.requests
    assert body["system"] == "the system"
    assert body["messages"] == [{"role": "user", "content": "the turn"}]
    assert body["max_tokens"] == 4096
    assert "tools" not in body
    assert api.keys == ["sk-secret"]


@pytest.mark.parametrize("url", ["{}", "{}/", "{}/v1", "{}/v1/"])
def test_anthropics_address_may_be_given_with_or_without_its_version(
    api: FakeApi, url: str
) -> None:
    api.say(always("An answer"))
    assert ask(anthropic(url.format(api.url))).text == "An answer"


def test_openai_is_asked_in_its_own_language(api: FakeApi) -> None:
    api.say(always("An answer"))
    reply = ask(openai(api.url))
    assert (reply.text, reply.model, reply.tokens) == ("An answer", "gpt-x", 60)
    (body,) = api.requests
    assert [part["role"] for part in body["messages"]] == ["system", "user"]
    assert body["max_tokens"] == 4096
    assert api.keys == ["Bearer sk-secret"]


def test_a_server_on_this_machine_needs_no_key(api: FakeApi) -> None:
    api.say(always("An answer"))
    assert ask(openai(api.url, key="")).text == "An answer"
    assert api.keys == [None]


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (401, "bad key", NotAllowed),
        (403, "no", NotAllowed),
        (400, "API key not valid. Please pass a valid API key.", NotAllowed),
        (402, "pay", QuotaSpent),
        (400, "Your credit balance is too low", QuotaSpent),
        (429, "You exceeded your current quota", QuotaSpent),
        (429, "slow down", RateLimited),
        (413, "big", TooLong),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", TooLong),
        (400, "This model's maximum context length is 8192 tokens", TooLong),
        (400, "no such field", Refused),
        (404, "no such model", UnknownModel),
        (302, "go there", Refused),
        (408, "late", Transient),
        (500, "oh no", Transient),
        (503, "", Transient),
        (529, "overloaded", Transient),
    ],
)
def test_failures_are_told_apart_by_status_and_words(
    status: int, text: str, kind: type[ObserverError]
) -> None:
    for body in (text, f'{{"error": {{"message": "{text}"}}}}', f'{{"error": "{text}"}}'):
        failure = failure_for_status(status, body, {})
        assert type(failure) is kind, body
        assert str(status) in str(failure)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Invalid API key · Please run /login", NotAllowed),
        ("Claude AI usage limit reached|1760000000", QuotaSpent),
        ("Prompt is too long", TooLong),
        ("Something odd", Transient),
    ],
)
def test_a_client_without_a_status_is_understood_by_its_words(
    text: str, kind: type[ObserverError]
) -> None:
    assert type(failure_for_message(text)) is kind


def test_a_client_says_when_its_limit_is_over() -> None:
    soon = int(time.time()) + 7200
    failure = failure_for_message(f"Claude AI usage limit reached|{soon}")
    assert failure.retry_after is not None and 0 < failure.retry_after <= 7200
    assert failure_for_message("Claude AI usage limit reached|1760000000").retry_after == 0
    assert failure_for_message("Claude AI usage limit reached").retry_after is None


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after({"Retry-After": "7"}) == 7
    assert retry_after({"retry-after": "0.5"}) == 0.5
    assert retry_after({"retry-after": "-3"}) == 0
    assert retry_after({"retry-after": "1e99"}) == 86_400
    assert retry_after({"retry-after": formatdate(0)}) == 0
    for odd in ("", "soon", "nan", "Mon, 99 Foo"):
        assert retry_after({"retry-after": odd}) is None
    assert retry_after({}) is None


def test_who_must_wait_for_hours_has_spent_a_quota() -> None:
    assert type(failure_for_status(429, "slow", {"retry-after": "7200"})) is QuotaSpent
    assert type(failure_for_status(429, "slow", {"retry-after": "60"})) is RateLimited


UNUSABLE = {
    "no response": b"",
    "cut off": b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"a":',
    "not JSON": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "a list": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]",
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_response_is_tried_again(name: str) -> None:
    with raw_server(UNUSABLE[name]) as server, pytest.raises(Transient):
        ask(anthropic(server.url))


def test_a_redirect_is_refused(api: FakeApi) -> None:
    there = f"HTTP/1.1 307 Go\r\nlocation: {api.url}/v1/messages\r\ncontent-length: 0\r\n\r\n"
    with raw_server(there.encode()) as server, pytest.raises(Refused):
        ask(anthropic(server.url))
    assert api.requests == []


def test_an_address_that_does_not_answer_in_time_is_tried_again() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(Transient, match="no response within"),
    ):
        ask(anthropic(f"http://127.0.0.1:{server.getsockname()[1]}", seconds=0.2))


def test_a_key_that_a_server_repeats_is_taken_out() -> None:
    refusal = {"error": {"message": "Incorrect API key provided: sk-secret."}}
    with (
        raw_server(json_response(refusal, "401 Unauthorized")) as server,
        pytest.raises(NotAllowed) as caught,
    ):
        ask(openai(server.url))
    assert "sk-secret" not in str(caught.value)
    assert "Incorrect API key provided" in str(caught.value)


ANSWERS: list[Any] = [
    {},
    {"choices": []},
    {"choices": [None]},
    {"choices": {"message": "x"}},
    {"error": {"message": "upstream died", "code": 502}},
]


@pytest.mark.parametrize("value", ANSWERS)
def test_an_answer_without_a_choice_is_tried_again(value: Any) -> None:
    with raw_server(json_response(value)) as server, pytest.raises(Transient):
        ask(openai(server.url))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 7, {"text": None}], "ab"),
        ({"odd": 1}, ""),
    ],
)
def test_the_words_of_a_choice_are_taken_in_any_form(content: Any, text: str) -> None:
    value = {"choices": [{"message": {"content": content}}], "usage": {"prompt_tokens": "many"}}
    with raw_server(json_response(value)) as server:
        reply = ask(openai(server.url))
    assert (reply.text, reply.tokens) == (text, None)


def test_the_words_of_a_refusal_are_kept_with_it() -> None:
    content = [{"type": "text", "text": "I would not."}]
    with (
        raw_server(json_response({"stop_reason": "refusal", "content": content})) as server,
        pytest.raises(UnusableReply) as caught,
    ):
        ask(anthropic(server.url))
    assert caught.value.reply == "I would not."
