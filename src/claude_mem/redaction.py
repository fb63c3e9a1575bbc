"""Secrets out of text, as `[redacted:kind]`, before it reaches the database or a model.

Each detector names words that must be there before its pattern runs at all: most text has none
of them, and a search for a word costs a hundredth of a pattern. bench/redaction.py has the
figures, beside a general library's.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from claude_mem.types import Json


@dataclass(frozen=True, slots=True, eq=False)
class Detector:
    kind: str
    words: tuple[str, ...]  # in lower case; one must be in the lowered text
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] | None = None  # judges the group `value`
    # The pattern is in lower case and begins with one of the words: matched where these stand,
    # which is thirty times faster than to search for it, ignoring case.
    at_words: bool = False
    rest: re.Pattern[str] | None = None  # of a longer value: judged by its head, removed whole

    def runs_on(self, lowered: str) -> bool:
        for word in self.words:  # noqa: SIM110  a generator would cost more than the search
            if word in lowered:
                return True
        return False


_PLACEHOLDER = re.compile(
    r"(?i)x{4,}|\*{3,}|\.{3}|<[^<>]{0,80}>|\$\{|\{\{|your[_-]|example|placeholder|changeme|dummy|redacted"
    r"|process\.env|os\.environ|getenv|secrets?\.|\bnull\b|\bnone\b|\btrue\b|\bfalse\b|undefined"
)


def _looks_random(value: str) -> bool:
    """Not a word, a name, a path or a placeholder."""
    if _PLACEHOLDER.search(value):
        return False
    kinds = sum((any(c.isdigit() for c in value), any(c.isupper() for c in value),
                 any(c.islower() for c in value)))  # fmt: skip
    return kinds >= 2 and any(c.isdigit() for c in value) and _entropy(value) >= 3.0


def _entropy(value: str) -> float:
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def _real_password(value: str) -> bool:
    is_reference = value.startswith(("$", "%", "{", "/", "~", "./"))
    return len(value) > 3 and not is_reference and not _PLACEHOLDER.search(value)


def _odd_password(value: str) -> bool:
    """Letters and digits in one word, as people's passwords have them and code rarely has."""
    has_both = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return has_both and "." not in value and "_" not in value and _real_password(value)


def _detector(
    kind: str,
    words: str,
    pattern: str,
    accept: Callable[[str], bool] | None = None,
    *,
    at_words: bool = False,
    rest: str | None = None,
) -> Detector:
    behind = re.compile(rest) if rest else None
    return Detector(kind, tuple(words.split()), re.compile(pattern), accept, at_words, behind)


_KEYS = (
    "api",
    "access",
    "private",
    "encryption",
    "auth",
    "signing",
    "account",
    "service",
    "master",
)
_OF_KEYS = "|".join(f"(?<={name})|(?<={name}[_ -])" for name in _KEYS)

# The shapes that issuers document for their own keys, then the general cases.
DETECTORS: tuple[Detector, ...] = (
    _detector(
        "private-key",
        "-----begin",
        r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[\s\S]*?-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|[\s\S]*\Z)",
    ),
    _detector("anthropic-key", "sk-ant-", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    _detector(
        "openai-key",
        "sk-",
        r"\bsk-(?!ant-)(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}",
        _looks_random,
    ),
    _detector("aws-access-key", "akia asia abia acca", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    _detector(
        "aws-secret-key",
        "aws",
        r"(?i)aws[\w .-]{0,20}(?:secret|key)[\w .-]{0,20}[\"']?\s*[:=]{1,2}\s*[\"']?"
        r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        _looks_random,
    ),
    _detector(
        "github-token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
    ),
    _detector(
        "gitlab-token",
        "glpat- gldt- glrt- glptt- glcbt-",
        r"\bgl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_.-]{20,}",
    ),
    _detector(
        "slack-token", "xox xapp-", r"\b(?:xox[abposre](?:\.xox[bp])?-|xapp-)[A-Za-z0-9-]{10,}"
    ),
    _detector(
        "slack-webhook",
        "hooks.slack.com",
        r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/+_-]{20,}",
    ),
    _detector("google-key", "aiza", r"\bAIza[A-Za-z0-9_-]{35}"),
    _detector(
        "google-oauth", "ya29. gocspx-", r"\b(?:ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})"
    ),
    _detector(
        "stripe-key",
        "sk_live_ sk_test_ rk_live_ rk_test_ whsec_",
        r"\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{20,})",
    ),
    _detector("npm-token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _detector("pypi-token", "pypi-ageichlwa", r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}"),
    _detector("huggingface-token", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    _detector("sendgrid-key", "sg.", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _detector("twilio-key", "twilio", r"\bSK[0-9a-f]{32}\b"),
    _detector("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}"),
    _detector(
        "shopify-token", "shpat_ shpss_ shpca_ shppa_", r"\bshp(?:at|ss|ca|pa)_[a-fA-F0-9]{32}"
    ),
    _detector("telegram-token", ":aa", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b"),
    _detector("age-key", "age-secret-key-", r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _detector("vault-token", "hvs. hvb. hvr.", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}"),
    _detector("databricks-token", "dapi", r"\bdapi[0-9a-f]{32}(?:-\d)?\b"),
    _detector(
        "azure-key",
        "accountkey= sharedaccesskey=",
        r"(?i)\b(?:AccountKey|SharedAccessKey)=(?P<value>[A-Za-z0-9+/]{40,}={0,2})",
    ),
    _detector(
        "jwt",
        "eyj",
        r"\beyJ[A-Za-z0-9_-]{8,1000}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    _detector(
        "url-password",
        "://",
        r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}:(?P<value>[^\s/@\"'<>]{1,200})@",
        _real_password,
    ),
    _detector(
        "authorization",
        "authorization bearer",
        r"(?i)\b(?:authorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)|bearer)\s+"
        r"(?P<value>[A-Za-z0-9._~+/-]{16,}=*)",
        _looks_random,
    ),
    _detector(
        "password",
        "password passwd pwd passphrase",
        r"(?:password|passwd|pwd|passphrase)\\*[\"']?\s*(?:=>|:=|=|:)\s*\\*"
        r"(?:\"(?P<value>[^\"\s]{6,120}?)\\*\"|'(?P<value2>[^'\s]{6,120}?)\\*')",
        _real_password,
        at_words=True,
    ),
    _detector(  # as in a .env file or on a command line, where nothing is quoted
        "env-password",
        "password= passwd= passphrase=",
        r"(?<![A-Za-z0-9])[A-Z0-9_]{0,60}(?:PASSWORD|PASSWD|PASSPHRASE)="
        r"(?P<value>[^\s\"'#$(){}\[\],;\\]{4,120})",
        _real_password,
    ),
    _detector(  # the same in a sentence or in YAML: there only what no word would look like
        "plain-password",
        "password passwd passphrase",
        r"(?:password|passwd|passphrase)(?:=|: {0,2})(?P<value>[^\s\"'`#$(){}<>\[\],;\\]{6,120})",
        _odd_password,
        at_words=True,
    ),
    _detector(
        "secret",
        "key secret token password passwd credential",
        rf"(?:(?:{_OF_KEYS})key|secret(?:[_-]?key)?|token|passw(?:or)?d|credentials?)"
        r"(?:_base|_value)?\\*[\"']?\s*(?:=>|:=|=|:)\s*\\*[\"']?"
        # What is called or indexed is code that gets a secret, not one.
        r"(?P<value>[a-z0-9+/_=.~!@#%^&*-]{16,200}+)(?![(\[])",
        _looks_random,
        at_words=True,
        rest=r"(?i)[a-z0-9+/_=.~!@#%^&*-]*",
    ),
)


_Words = tuple[tuple[str, tuple[Detector, ...]], ...]


def _by_beginning() -> tuple[tuple[str, _Words], ...]:
    """Many detectors wait for the same words, many words begin alike: each is looked for once."""
    asking: dict[str, list[Detector]] = {}
    for detector in DETECTORS:
        for word in detector.words:
            asking.setdefault(word, []).append(detector)
    alike: dict[str, list[str]] = {}
    for word in asking:
        alike.setdefault(word[:2], []).append(word)
    groups: list[tuple[str, _Words]] = []
    for beginning, words in alike.items():
        told = tuple((word, tuple(asking[word])) for word in words)
        if len(words) > 2:
            groups.append((beginning, told))
        else:
            groups += [(word, ((word, detectors),)) for word, detectors in told]
    return tuple(groups)


_BY_BEGINNING = _by_beginning()
PASSES = 4


class Redactor:
    def __init__(self, allowed: tuple[str, ...] = ()) -> None:
        self._allowed = frozenset(allowed)

    def redact(self, text: str) -> str:
        return self._redact(text, DETECTORS)

    def redact_json(self, value: Json) -> Json:
        """Asks once for the whole value which words are in it, and runs only their detectors.

        Of what was parsed, not of its JSON: there a word may be spelled with escapes.
        """
        lowered = _lower("\n".join(_texts(value)))
        detectors: dict[Detector, None] = {}
        for beginning, words in _BY_BEGINNING:
            if beginning in lowered:
                for word, asking in words:
                    if word in lowered:
                        detectors.update(dict.fromkeys(asking))
        if not detectors:
            return value
        return self._redact_value(value, tuple(d for d in DETECTORS if d in detectors))

    def _redact(self, text: str, detectors: tuple[Detector, ...]) -> str:
        """Again until nothing changes: what one detector removes may uncover another's."""
        for _ in range(PASSES):
            redacted = self._pass(text, detectors)
            if redacted is text:
                break
            text = redacted
        return text

    def _pass(self, text: str, detectors: tuple[Detector, ...]) -> str:
        lowered = _lower(text)
        for detector in detectors:
            if detector.runs_on(lowered):
                redacted = self._apply(detector, text, lowered)
                if redacted is not text:
                    text, lowered = redacted, _lower(redacted)
        return text

    def _redact_value(self, value: Json, detectors: tuple[Detector, ...]) -> Json:
        if isinstance(value, str):
            return self._redact(value, detectors)
        if isinstance(value, list):
            return [self._redact_value(item, detectors) for item in value]
        if isinstance(value, dict):
            return {
                self._redact(name, detectors): self._redact_member(name, inner, detectors)
                for name, inner in value.items()
            }
        return value

    def _redact_member(self, name: str, value: Json, detectors: tuple[Detector, ...]) -> Json:
        """A value is judged together with its name: {"password": "…"} is an assignment."""
        if not isinstance(value, str):
            return self._redact_value(value, detectors)
        redacted = self._redact(value, detectors)
        if redacted == value and len(name) < 60 and " " not in value:
            assigned = f'="{value[:200]}"'
            if not self._redact(name + assigned, detectors).endswith(assigned):
                kind = "password" if "pass" in name.lower() else "secret"
                return f"[redacted:{kind}]"
        return redacted

    def _apply(self, detector: Detector, text: str, lowered: str) -> str:
        parts: list[str] = []
        done = 0
        for match in _matches(detector, text, lowered):
            name = next((n for n, value in match.groupdict().items() if value), 0)
            start, end = match.span(name)
            value = text[start:end]
            if start >= done and self._is_secret(detector, value):
                if detector.rest and (rest := detector.rest.match(text, end)):
                    end = rest.end()
                parts += (text[done:start], f"[redacted:{detector.kind}]")
                done = end
        return "".join((*parts, text[done:])) if parts else text

    def _is_secret(self, detector: Detector, value: str) -> bool:
        if value in self._allowed or value.startswith("[redacted:"):
            return False
        return detector.accept is None or detector.accept(value)


def _matches(detector: Detector, text: str, lowered: str) -> Iterator[re.Match[str]]:
    if not detector.at_words:
        yield from detector.pattern.finditer(text)
        return
    for place in sorted({at for word in detector.words for at in _places(lowered, word)}):
        if match := detector.pattern.match(lowered, place):
            yield match


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def _texts(value: Json) -> Iterator[str]:
    """Every name and every text in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)


def _lower(text: str) -> str:
    """In lower case and of the same length, so that places in one are places in the other."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)


_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
