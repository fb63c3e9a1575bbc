"""Whether a value is a secret under its name, and in the place where it stands."""

import re
from collections.abc import Callable

from claude_mem.redaction.names import Certainty, certainty
from claude_mem.redaction.spans import MARK
from claude_mem.redaction.values import (
    is_gibberish,
    is_made_up,
    is_odd_password,
    is_password,
    is_path,
    is_placeholder,
    is_reference,
    is_uuid,
    looks_random,
)

Accept = Callable[[Certainty, str], bool]
_HEX_NUMBER = re.compile(r"0x[0-9a-fA-F]+")
_SALT = 32  # different characters: letters, digits and symbols by chance
_VARIABLE = re.compile(r"[A-Z]+(?:_[A-Z0-9]+)+")
_WORDS = re.compile(r"[a-z]{3,12}(?:-[a-z]{3,12}){2,7}")
# Letters of a secret that consists of words.
_SHORTEST_WORDS = {Certainty.LIKELY: 14, Certainty.SECRET: 8, Certainty.ODD: 99}


def secret_kind(name: str, value: str) -> str | None:
    """The kind of secret that this value is under this name, as in {"name": "value"}."""
    sure = certainty(name)
    return kind_of(sure) if sure and is_quoted_secret(sure, value) else None


def kind_of(sure: Certainty) -> str:
    return "password" if sure >= Certainty.ODD else "secret"


def is_quoted_secret(sure: Certainty, value: str) -> bool:
    if len(value) < 6 or value.startswith("--") or any(c in value for c in " \t\n"):
        return False
    return is_argument(sure, value)


def is_argument(sure: Certainty, value: str) -> bool:
    """Whether the argument of a flag, or a value of the environment, is secret: there nothing but a
    value can be."""
    if value.startswith(MARK):
        return False
    if sure is Certainty.PASSWORD:
        return is_password(value)
    if sure is Certainty.ODD:
        return len(value) >= 8 and _is_unlike_words(value)
    if sure is Certainty.SECRET and _WORDS.fullmatch(value):
        return is_password(value)
    if sure >= Certainty.LIKELY and value.isalpha() and len(value) >= _SHORTEST_WORDS[sure]:
        return is_password(value)
    if sure >= Certainty.LIKELY and (is_made_up(value) or len(set(value)) >= _SALT):
        return True
    return _is_key(sure, value)


def is_flag_value(sure: Certainty, value: str) -> bool:
    """Whether a value behind `--token` or `API_TOKEN=`, where people write anything, is secret."""
    if value.startswith((MARK, "-")) or _VARIABLE.fullmatch(value):
        return False
    if sure is Certainty.POSSIBLE:
        return is_made_up(value) or _is_key(sure, value)
    return is_argument(sure, value) or (
        sure in (Certainty.LIKELY, Certainty.SECRET)
        and is_password(value)
        and "=" not in value
        and not value.isdigit()
        and not is_path(value)
    )


def is_environment_value(sure: Certainty, value: str) -> bool:
    return is_argument(sure, value) or (not value.startswith(MARK) and is_made_up(value))


def is_listed_secret(sure: Certainty, value: str) -> bool:
    """Whether a value in a list of strings or a call is secret, where the name may be a string like
    any other."""
    if any(c in value for c in " \t\n") or value.startswith(MARK):
        return False
    is_named = sure in (Certainty.LIKELY, Certainty.SECRET)
    return (is_named and is_made_up(value)) or is_plain_secret(sure, value)


def is_connection_password(sure: Certainty, value: str) -> bool:
    return is_password(value)


def is_setting(sure: Certainty, value: str) -> bool:
    """Whether a value on a line of its own, as in YAML, is secret, where it might be a type."""
    if sure is Certainty.PASSWORD and value.islower() and len(value) >= 8:
        return is_password(value)
    if sure in (Certainty.LIKELY, Certainty.SECRET) and is_made_up(value):
        return not value.startswith(MARK)
    return is_plain_secret(sure, value)


def is_plain_secret(sure: Certainty, value: str) -> bool:
    """Whether a value without quotes in code or prose is secret, where it might be any word."""
    if len(value) < 6 or value.startswith(MARK):
        return False
    if sure is Certainty.PASSWORD:
        return _is_unlike_words(value)
    return sure is not Certainty.ODD and len(value) >= 16 and _is_key(sure, value)


def is_logged_secret(sure: Certainty, value: str) -> bool:
    """`token=Value12` among other words: unlike a variable."""
    if value.startswith(MARK):
        return False
    is_unlike_name = is_made_up(value) and any(map(str.isupper, value)) and not value.isupper()
    return is_unlike_name or is_plain_secret(sure, value)


def is_told_password(sure: Certainty, value: str) -> bool:
    """`with password Value12` in a sentence."""
    return not value.startswith(MARK) and is_made_up(value)


def is_mixed(sure: Certainty, value: str) -> bool:
    """Whether a value is unlike a name, even in a sentence."""
    kinds = (str.isdigit, str.isalpha)
    return len(value) >= 20 and all(any(map(k, value)) for k in kinds) and _is_key(sure, value)


def _is_key(sure: Certainty, value: str) -> bool:
    if is_reference(value) or is_placeholder(value):
        return False
    if is_uuid(value):
        return True
    if sure is Certainty.POSSIBLE and _HEX_NUMBER.fullmatch(value):
        return False  # an address, a digest
    least = 14 if sure is Certainty.POSSIBLE else 10
    return len(value) >= least and (looks_random(value) or is_gibberish(value))


def _is_unlike_words(value: str) -> bool:
    return is_odd_password(value) or (is_gibberish(value) and not is_reference(value))
