"""Cookies that keep somebody logged in."""

import re
from collections.abc import Iterator

from claude_mem.redaction.spans import MARK, Span
from claude_mem.redaction.values import is_gibberish, is_uuid, looks_random
from claude_mem.redaction.word_patterns import RuleSet, Subject, rule

_COOKIE = re.compile(
    r"(?P<name>[\w.%-]{1,80})[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?P<value>[^;,\s\"']{12,4000})"
)
_SESSION_NAME = re.compile(
    r"(?i)sess|sid\b|auth|token|csrf|xsrf|jwt|login|logged|remember|user|identity|cookies?$"
)
_Q = r"(?:\\{0,7}[\"'`])?"  # a quote, perhaps escaped
_VALUE = r"(?P<value>[A-Za-z0-9%._~+/:|-]{16,4000}=*)"


def _is_session(cookie: re.Match[str]) -> bool:
    value = cookie["value"]
    if value.startswith(MARK) or not _SESSION_NAME.search(cookie["name"]):
        return False
    return looks_random(value) or is_gibberish(value)


def _is_random(value: str) -> bool:
    return looks_random(value) and not is_uuid(value)


# Texts that hold cookies, of which those of sessions go.
HEADERS = RuleSet((
    rule("cookie", "cookie",
         r"(?i)cookie", _Q, r"\s{0,4}[:=,]\s{0,4}", _Q, r"(?P<value>[^\"'\n`]{8,4000})"),
    rule("cookie", "cookie", r"(?i)cookies?[\"']?\s{0,4}[:=]\s{0,4}\{(?P<value>[^}\n]{8,4000})"),
    rule("curl", "cookie",
         r"\bcurl\b(?:[^\n]|\\\n){0,400}?\s(?:-b|--cookie)[ \t=]{0,4}[\"']?",
         r"(?P<value>[^\"'\n]{8,4000})", whole=True),
))  # fmt: skip
# Cookies that are known by their name alone.
NAMED = RuleSet((
    rule("sess", "cookie",
         r"(?i)sess(?:ID|ionid|ion|ion[-_.]token|ionid[A-Z]{0,8}|ion_?id)(?:\.\d)?=", _VALUE,
         accept=_is_random),
    *(rule(word, "cookie", "(?i)", re.escape(word), r"[\w.-]{0,60}=", _VALUE, accept=looks_random,
           whole=True)
      for word in ("connect.sid", ".aspnetcore.", ".aspxauth")),
    rule("wordpress_", "cookie", r"(?i)wordpress_(?:logged_in|sec)\w{0,60}=", _VALUE,
         accept=looks_random),
    *(rule(word, "cookie",  # a cookie file
           f"(?i){word}", r"[^\t\n]{1,200}\t(?:TRUE|FALSE)\t\d{1,12}\t",
           r"[^\t\n]{0,80}(?:sess|sid|auth|token|login|jwt)[^\t\n]{0,80}\t(?P<value>[^\s]{12,4000})",
           accept=looks_random, whole=True)
      for word in ("\ttrue\t", "\tfalse\t")),
))  # fmt: skip


def find_cookies(subject: Subject) -> Iterator[Span]:
    for header in HEADERS.find(subject):
        cookies = _COOKIE.finditer(subject.text, header.start, header.end)
        for cookie in filter(_is_session, cookies):
            yield Span(cookie.start("value"), cookie.end("value"), "cookie")
    yield from NAMED.find(subject)
