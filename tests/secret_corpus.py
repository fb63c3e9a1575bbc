"""Made-up secrets of many kinds, each in the text that it would stand in. The same for a seed.

No value here was ever anyone's: all are drawn from a seeded generator, in the shape that the
issuer documents. Values are put together from parts, so that no scanner takes this file for a leak.
"""

import base64
import json
import random
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.secret_kinds import AROUND, MISSED, NAMED, SYNTAX, VENDORS
from tests.secret_syntax import PLACES

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = LOWER + UPPER + DIGITS
HEX = DIGITS + "abcdef"
BASE32 = UPPER + "234567"
URL = ALNUM + "-_"
BASE64 = ALNUM + "+/"
WORDS = (
    "harbour", "lantern", "copper", "meadow", "thunder", "saddle", "orchid", "velvet", "pepper",
    "canyon", "marble", "falcon", "walnut", "ribbon", "glacier", "timber", "anchor", "breeze",
    "cobalt", "ember",
)  # fmt: skip


# Kinds that were written by somebody who did not see the finders: a line each, with {S} in `text`
# for what `pattern` describes, or for `secret`.
OTHERS = Path(__file__).parent / "data" / "secret_kinds.jsonl"
_DIGITS_FOR_LETTERS = str.maketrans("aeo", "430")


@dataclass(frozen=True)
class Planted:
    kind: str
    text: str
    secret: str


class Maker:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def some(self, alphabet: str, size: int) -> str:
        return "".join(self.chance.choice(alphabet) for _ in range(size))

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def size(self, *choices: int) -> int:
        return self.chance.choice(choices)

    def base64(self, size: int) -> str:
        return base64.b64encode(self.chance.randbytes(size)).decode()

    def lines(self, count: int, width: int = 64) -> str:
        return "\n".join(self.some(BASE64, width) for _ in range(count))

    def word(self) -> str:
        return self.chance.choice(WORDS)

    def password(self) -> str:
        """Makes a password as people and generators do."""
        ways: tuple[Callable[[], str], ...] = (
            lambda: self.word() + self.some(DIGITS, 3),
            lambda: self.word().title() + self.some(DIGITS, 2) + self.pick("!", "#", "?"),
            lambda: f"{self.word()}-{self.word()}-{self.some(DIGITS, 2)}",
            lambda: self.some(ALNUM, 14),
            lambda: self.some(ALNUM + "!@#%^*", 18),
            lambda: self.word().translate(_DIGITS_FOR_LETTERS) + "!" + self.some(DIGITS, 2),
        )
        return self.chance.choice(ways)()

    def letters_password(self) -> str:
        return self.pick(
            self.word() + self.word(), self.some(LOWER, 12), self.some(LOWER + UPPER, 14)
        )


Value = Callable[[Maker], str]

# Templates: [a:36] stands for 36 characters of the alphabet a.
ALPHABETS = {
    "a": ALNUM, "l": LOWER + DIGITS, "L": LOWER + UPPER, "U": UPPER + DIGITS, "9": DIGITS,
    "1": "123456789", "2": "12", "h": HEX, "H": HEX.upper(), "u": URL, "e": URL + "=",
    "d": URL + ".", "t": ALNUM + "_.~-", "b": BASE64, "B": BASE32,
    "q": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}  # fmt: skip
_PLACE = re.compile(r"\[(\w):(\d+)\]")


def fill(template: str, maker: Maker) -> str:
    filled = template.replace("[uuid]", "[h:8]-[h:4]-[h:4]-[h:4]-[h:12]")
    return _PLACE.sub(lambda place: maker.some(ALPHABETS[place[1]], int(place[2])), filled)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _basic(m: Maker) -> str:
    return _encoded(f"{m.word()}:{m.password()}")


SORTS: dict[str, Value] = {
    "password": Maker.password,
    "url-password": lambda m: m.pick(m.word() + m.some(DIGITS, 3), m.some(ALNUM, 16)),
    "letters": Maker.letters_password,
    "random-letters": lambda m: m.some(LOWER + UPPER, 24),
    "plain": lambda m: m.word().title() + m.word().title() + m.some(DIGITS, 2),
    "phrase": lambda m: " ".join(m.word() for _ in range(4)),
    "mnemonic": lambda m: " ".join(m.word() for _ in range(12)),
    "base32": lambda m: m.some(BASE32, 32),
    "mixed-long": lambda m: m.some(ALNUM + "!@#%^&*()-_=+[]|;:,.<>?/~", 64),
    "fernet": lambda m: m.some(URL, 43) + "=",
    "token43": lambda m: m.some(URL, 43),
    "wif": lambda m: "K" + m.some("123456789abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ", 51),
    "minisign": lambda m: "RWRTY0Iy" + m.some(BASE64, 204),
    "apr1": lambda m: fill("$apr1$[a:8]$[a:22]", m),
    "bcrypt": lambda m: fill("$2y$12$[a:53]", m),
    "sha512-crypt": lambda m: fill("$6$[a:16]$[a:86]", m),
    "yescrypt": lambda m: fill("$y$j9T$[a:22]$[a:43]", m),
    "argon2": lambda m: fill("$argon2id$v=19$m=65536,t=3,p=4$[a:22]$[a:43]", m),
    "pbkdf2": lambda m: fill("pbkdf2_sha256$600000$[a:22]$[a:43]=", m),
    "token": lambda m: m.some(m.pick(ALNUM, URL, HEX, LOWER + DIGITS), m.size(20, 24, 32, 40)),
    "words": lambda m: m.word() + m.word(),
    "slashed": lambda m: f"{m.some(ALNUM, 5)}/{m.some(ALNUM, 9)}",
    "mixed-password": lambda m: m.word().title() + m.some(DIGITS, 3) + m.pick("!", "#"),
    "hex32": lambda m: m.some(HEX, 32),
    "hex64": lambda m: m.some(HEX, 64),
    "base64": lambda m: m.base64(32),
    "base64-64": lambda m: m.base64(64),
    "base64-short": lambda m: m.base64(12),
    "base64-url": lambda m: m.some(ALNUM, 43) + "%3D",
    "basic": _basic,
    "aws": lambda m: m.some(BASE64, 40),
    "session": lambda m: m.some(LOWER + DIGITS, 32),
    "webhook": lambda m: m.some(URL, 68),
    "telegram": lambda m: m.some("123456789", 10) + ":AA" + m.some(URL, 33),
    "dockerconfig": lambda m: _encoded('{"auths":{"r":{"auth":"' + _basic(m) + '"}}}'),
    "jwt": lambda m: fill("eyJ[u:33].eyJ[u:60].[u:43]", m),
    "jwe": lambda m: fill("eyJ[u:40].[u:340].[u:16].[u:200].[u:22]", m),
}  # fmt: skip


def _pem(m: Maker, label: str) -> tuple[str, str]:
    body = m.lines(8)
    dashes = "-" * 5
    return f"{dashes}BEGIN {label}{dashes}\n{body}\n{dashes}END {label}{dashes}", body


def _file(m: Maker, sort: str) -> tuple[str, str]:
    """A key file, and a line of it that must be gone."""
    key = "PRIVATE " + "KEY"
    if sort == "ppk":
        body = m.lines(4)
        text = (
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: lamp\nPublic-Lines: 2\n"
            f"{m.lines(2)}\nPrivate-Lines: 4\n{body}\nPrivate-MAC: {m.some(HEX, 64)}\n"
        )
        return text, body.splitlines()[2]
    label = {"pem-rsa": f"RSA {key}", "pem-ec": f"EC {key}", "pem-openssh": f"OPENSSH {key}",
             "pem-pgp": f"PGP {key} BLOCK", "pem-ssh2": f"SSH2 ENCRYPTED {key}",
             }.get(sort, key)  # fmt: skip
    text, body = _pem(m, label)
    line = body.splitlines()[5]
    if sort == "pem-base64":
        encoded = _encoded(text)
        return encoded, encoded[200:260]
    shapes: dict[str, Callable[[str], str]] = {
        "pem-escaped": lambda text: text.replace("\n", "\\n"),
        "pem-one-line": lambda text: text.replace("\n", " "),
        "pem-quoted": lambda text: "\n".join(f'"{line}\\n" +' for line in text.split("\n")),
        "pem-indented": lambda text: "\n".join(f"  {line}" for line in text.split("\n")),
        "pem-crlf": lambda text: text.replace("\n", "\r\n"),
        "pem-html": lambda text: text.replace("\n", "<br>"),
        "pem-ssh2": lambda text: (
            text.replace("-----BEGIN", "---- BEGIN")
            .replace("-----END", "---- END")
            .replace("KEY-----", "KEY ----")
        ),
    }
    return shapes.get(sort, str)(text), line


def sample_of(pattern: re.Pattern[str], maker: Maker) -> str:
    """A text that a pattern of classes, counts and literals matches."""
    return _sample(parser.parse(pattern.pattern), maker)


def _sample(tree: Any, maker: Maker) -> str:
    text = ""
    for operation, argument in tree:
        if operation is sre.LITERAL:
            text += chr(argument)
        elif operation is sre.IN:
            text += maker.some("".join(map(_characters, argument)), 1)
        elif operation is sre.MAX_REPEAT:
            text += "".join(_sample(argument[2], maker) for _ in range(argument[0]))
        elif operation is sre.SUBPATTERN:
            text += _sample(argument[3], maker)
        elif operation is sre.BRANCH:
            text += _sample(argument[1][0], maker)
        elif operation is not sre.ASSERT_NOT:
            raise NotImplementedError(operation)
    return text


def _characters(part: Any) -> str:
    kind, argument = part
    if kind is sre.RANGE:
        return "".join(map(chr, range(argument[0], argument[1] + 1)))
    if kind is sre.CATEGORY:
        return DIGITS
    return chr(argument)


def corpus(seed: int, of_each: int = 2) -> list[Planted]:
    """Each kind so many times, in different surroundings."""
    maker = Maker(seed)
    planted: list[Planted] = []
    for kind, template in VENDORS.items():
        for around in maker.chance.sample(AROUND, of_each):
            secret = fill(template, maker)
            planted.append(Planted(kind, around.format(secret), secret))
    for kind, template in NAMED.items():
        name = kind.replace("-", "_")
        camel = name.split("_")[0]
        ways = (
            f"{name.upper()}_TOKEN={{}}",
            f'{camel}ApiKey = "{{}}"',
            f'"{name}_secret": "{{}}"',
            f'var {camel}Token string = "{{}}"',
            f"<{camel}Token>\n  {{}}\n</{camel}Token>",
            f"{name}_access_token: {{}}",
        )
        for way in maker.chance.sample(ways, min(of_each, len(ways))):
            secret = fill(template, maker)
            planted.append(Planted(kind, way.format(secret), secret))
    for kind, around, sort in (*SYNTAX, *PLACES, *MISSED):
        for _ in range(of_each):
            shown, secret = _fresh(planted, lambda sort=sort: _shown(maker, sort))  # type: ignore[misc]
            planted.append(Planted(kind, around.format(shown), secret))
    for line in OTHERS.read_text("utf-8").splitlines():
        row = json.loads(line)
        for around in maker.chance.sample(AROUND, of_each):
            text = around if row["text"] == "{S}" else row["text"]
            _, secret = _fresh(planted, lambda row=row: _of_others(row, maker))  # type: ignore[misc]
            planted.append(Planted(row["kind"], _placed(text, secret), secret))
    return planted


def _fresh(planted: list[Planted], make: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """A secret that no other kind has: what a file holds shows then which kind was missed."""
    used = {one.secret for one in planted}
    for _ in range(1_000):
        shown, secret = make()
        if secret not in used:
            return shown, secret
    raise ValueError("too few different secrets")


def _shown(maker: Maker, sort: str) -> tuple[str, str]:
    return (SORTS[sort](maker),) * 2 if sort in SORTS else _file(maker, sort)


def _placed(text: str, secret: str) -> str:
    return text.replace("{S}", secret) if "{S}" in text else text.format(secret)


_CLASS = re.compile(r"(\[[^\]]+\])(?:\{(\d+)\})?")
_WORD_OR_DIGITS = re.compile(r"[A-Za-z]{4,}|[0-9]+")


def _of_others(row: dict[str, str], maker: Maker) -> tuple[str, str]:
    """Literal text with classes of characters, or words and numbers as in `secret`."""
    if "pattern" in row:
        filled = _CLASS.sub(
            lambda part: "".join(
                sample_of(re.compile(part[1]), maker) for _ in range(int(part[2] or 1))
            ),
            row["pattern"],
        )
        return filled, filled
    if row.get("fixed") == "base64":
        return (_basic(maker),) * 2
    varied = _WORD_OR_DIGITS.sub(lambda part: _varied(part[0], maker), row["secret"])
    return varied, varied


def _varied(part: str, maker: Maker) -> str:
    if part.isdigit():
        return maker.some("123456789", len(part) + 1)
    return maker.word().title() if part[0].isupper() else maker.word()
