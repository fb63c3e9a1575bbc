"""Secrets in URLs: passwords, tokens in place of a user, in the query, in the path."""

import re
from collections.abc import Iterator

from claude_mem.redaction.names import Certainty, certainty
from claude_mem.redaction.prefilter import VOCABULARY, longest_piece
from claude_mem.redaction.spans import MARK, Span
from claude_mem.redaction.values import (
    is_gibberish,
    is_made_up,
    is_odd_password,
    is_password,
    is_placeholder,
    is_reference,
    looks_random,
)
from claude_mem.redaction.word_patterns import Subject

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}\Z")
_AUTHORITY = re.compile(r"[^\s\"'<>`\\]{1,400}")
_HOST = re.compile(
    r"@(?!sha256)(?:localhost|tcp\(|unix\(|[A-Za-z][\w-]{1,60}\.[A-Za-z][\w.-]{1,60}|(?:\d{1,3}\.){3}\d)"
)
_USER = re.compile(r"(?:\A|(?<=[\s\"'(=]))[A-Za-z][\w.-]{1,40}:(?P<value>[^\s:@/\"'`<>()]{6,60})\Z")
_LONGEST_USER = 110
_STRICT = re.compile(r"[^/?#]*")
_QUERY = re.compile(r"[?&;#](?P<name>[\w.%~-]{1,60})=(?P<value>[^\s&\"'<>`#;\\)\]}]{6,2000})")
# Names that are those of secrets in a query only.
_QUERY_NAMES = frozenset((
    "sig", "signature", "x-amz-signature", "x-goog-signature", "x-amz-security-token", "code",
    "key", "sas", "auth",
))  # fmt: skip


def _path(kind: str, word: str, before: str, value: str) -> tuple[str, str, re.Pattern[str]]:
    return kind, word, re.compile(f"{before}(?P<value>{value})")


# By a word that is in the lowered text. Most of these words have one part in common.
_COMMON_PART = "hook"
_PATHS = (
    _path(
        "slack-webhook",
        "hooks.slack",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/",
        r"[A-Za-z0-9/+_-]{16,}",
    ),
    _path(
        "discord-webhook",
        "/webhooks/",
        r"discord(?:app)?\.com/api/(?:v\d{1,3}/)?webhooks/\d{6,30}/",
        r"[A-Za-z0-9_-]{20,}",
    ),
    _path("teams-webhook", "webhook.office.com", r"/webhookb2/", r"[A-Za-z0-9@/-]{30,}"),
    _path("telegram-token", "/bot", r"/bot", r"\d{5,16}:[A-Za-z0-9_-]{20,}"),
    _path("webhook", "chat.googleapis.com", r"[?&](?:key|token)=", r"[A-Za-z0-9_%-]{20,}"),
    _path("teams-webhook", "office.com/webhook/", r"office\.com/webhook/", r"[A-Za-z0-9@/-]{20,}"),
    _path("infura-key", "infura.io/", r"infura\.io/(?:ws/)?v3/", r"[A-Za-z0-9]{20,}"),
    _path("alchemy-key", "alchemy.com/v2/", r"alchemy\.com/v2/", r"[A-Za-z0-9_-]{20,}"),
    _path("quicknode-key", "quiknode.pro/", r"quiknode\.pro/", r"[A-Za-z0-9]{20,}"),
    _path("webhook", "/bot/v2/hook/", r"/bot/v2/hook/", r"[A-Za-z0-9-]{20,}"),
    _path("webhook", "pagerduty.com/integration/", r"/integration/", r"[A-Za-z0-9]{20,}"),
    _path("webhook", "/hooks/", r"/hooks/", r"[a-zA-Z0-9]{24,40}(?![\w/-])"),
    _path("webhook", "webhook.site/", r"webhook\.site/", r"[0-9a-f-]{36}"),
    _path("webhook", "hook.", r"hook\.(?:\w{2,4}\.)?(?:make|integromat)\.com/", r"[a-z0-9]{20,}"),
    _path("webhook", "zapier.com/hooks", r"zapier\.com/hooks/catch/", r"[\w/]{10,}"),
    _path("webhook", "maker.ifttt.com", r"with/key/", r"[A-Za-z0-9_-]{15,}"),
)
_PATHS_BY_CLUE: dict[str, list[tuple[str, str, re.Pattern[str]]]] = {}
for _row in _PATHS:
    _clue = _COMMON_PART if _COMMON_PART in _row[1] else longest_piece(_row[1])
    _PATHS_BY_CLUE.setdefault(_clue, []).append(_row)
_PATH_CLUES = frozenset(_PATHS_BY_CLUE)
VOCABULARY.add_parts(_PATH_CLUES)


def find_url_secrets(subject: Subject) -> Iterator[Span]:
    text, lowered = subject.text, subject.lowered
    if "@" in text:
        yield from _with_scheme(text)
        yield from _without_scheme(text)
    if "=" in text and ("?" in text or "&" in text or "#" in text):
        yield from _in_query(text)
    for clue in _PATH_CLUES & subject.clues:
        for kind, word, pattern in _PATHS_BY_CLUE[clue]:
            if word in lowered:
                for match in pattern.finditer(text):
                    yield Span(match.start("value"), match.end("value"), kind)


def _with_scheme(text: str) -> Iterator[Span]:
    place = text.find("://")
    while place >= 0:
        if _SCHEME.search(text, max(0, place - 20), place):
            yield from _in_authority(text, place + 3)
        place = text.find("://", place + 3)


def _in_authority(text: str, start: int) -> Iterator[Span]:
    authority = _AUTHORITY.match(text, start)
    if authority is None or "@" not in authority[0]:
        return
    end = _end_of_user(authority[0])
    user, colon, password = authority[0][:end].partition(":")
    if end < 0 or "/" in user:
        return
    if len(user) >= 16 and (_is_token(user) or is_gibberish(user)):
        yield Span(start, start + len(user), "url-token")
    if colon and password and not password.startswith(MARK) and is_password(password):
        yield Span(start + len(user) + 1, start + end, "url-password")


def _without_scheme(text: str) -> Iterator[Span]:
    """`user:password@host`."""
    place = text.find("@")
    while place >= 0:
        if _HOST.match(text, place):
            user = _USER.search(text, max(0, place - _LONGEST_USER), place)
            if user is not None and is_odd_password(user["value"]):
                yield Span(user.start("value"), place, "url-password")
        place = text.find("@", place + 1)


def _end_of_user(authority: str) -> int:
    """Where `user:password` ends; people also write passwords that hold `/`, `?` or `#`."""
    strict = _STRICT.match(authority)
    if strict is not None and "@" in strict[0]:
        return strict[0].rindex("@")
    end = authority.find("@")
    _, colon, password = authority[:end].partition(":")
    head = re.split(r"[/?#]", password, maxsplit=1)[0]
    is_port = not head or head.isdigit() or head.startswith("[")
    return -1 if is_port or not colon or "//" in password else end


def _is_token(value: str) -> bool:
    return looks_random(value) or is_made_up(value)


def _in_query(text: str) -> Iterator[Span]:
    for match in _QUERY.finditer(text):
        name, value = match["name"].lower(), match["value"]
        sure = certainty(match["name"])
        if name in _QUERY_NAMES:
            sure = max(sure, Certainty.POSSIBLE)
        if sure is Certainty.NONE or value.startswith(MARK) or is_placeholder(value):
            continue
        is_secret = is_password(value) if sure is Certainty.PASSWORD else _is_token(value)
        if is_secret and not is_reference(value):
            yield Span(match.start("value"), match.end("value"), "url-token")
