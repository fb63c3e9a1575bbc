"""Secrets in a model's reply, also where the reply escapes characters as XML does."""

import re
from dataclasses import fields, is_dataclass, replace
from html import unescape
from typing import Any, TypeVar

from claude_mem.observer.models.revision import Revision
from claude_mem.redaction import Redactor

T = TypeVar("T")
_QUOTE = re.compile(r"&(?:quot|apos|#0?3[49]|#x2[27]);")


def redact_markup(redactor: Redactor, text: str) -> str:
    """Tags stay tags; quotes, which show where a value ends, are unescaped."""
    return redactor.redact(_QUOTE.sub(lambda quote: unescape(quote[0]), text))


def redact_reply(redactor: Redactor, text: str) -> str:
    """Unescaped, if only that shows a secret."""
    redacted = redact_markup(redactor, text)
    unescaped = unescape(redacted)
    without = redactor.redact(unescaped)
    return redacted if without == unescaped else without


def redact_revision(redactor: Redactor, revision: Revision) -> Revision:
    reply = revision.full_reply
    return Revision(
        _redact(redactor, revision.distillate),
        redact_reply(redactor, reply) if reply is not None else None,
    )


def _redact(redactor: Redactor, value: T) -> T:
    """The same, with every text in it redacted."""
    changed: Any = value
    if isinstance(value, str):
        changed = redactor.redact(value)
    elif isinstance(value, tuple):
        changed = tuple(_redact(redactor, item) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        items = {field.name: getattr(value, field.name) for field in fields(value)}
        changed = replace(value, **{name: _redact(redactor, item) for name, item in items.items()})
    return changed  # type: ignore[no-any-return]
