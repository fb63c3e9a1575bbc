"""Secrets that a protocol, a file format or a call gives away, whatever their name."""

import base64
import re
from collections.abc import Iterator

from claude_mem.redaction.prefilter import VOCABULARY, whole
from claude_mem.redaction.spans import MARK, Span
from claude_mem.redaction.values import (
    is_gibberish,
    is_made_up,
    is_odd_password,
    is_password,
    is_path,
    is_placeholder,
    looks_random,
)
from claude_mem.redaction.word_patterns import Rule, RuleSet, Subject, judged, rule, rules_for


def _is_token(value: str) -> bool:
    return looks_random(value) or is_gibberish(value)


def _is_user_and_password(value: str) -> bool:
    """Whether the value is base64 of `user:password`."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except ValueError:
        return False
    return b":" in decoded[1:] and decoded.isascii() and decoded.decode().isprintable()


def _is_authorization(value: str) -> bool:
    return _is_user_and_password(value) or _is_bearer(value)


def _is_bearer(value: str) -> bool:
    return _is_token(value) or (is_made_up(value) and not is_path(value))


_Q = r"(?:\\{0,7}[\"'`])?"  # a quote, perhaps escaped
_ASSIGN = r"\s{0,4}[:=]\s{0,4}"
_ARGUMENT = r"[\"'][^\"'\n]{1,100}[\"']\s{0,4},\s{0,20}"
_QUOTED = r"[\"'](?P<value>[^\"'\s]{4,200})[\"']"

# A key in a call: a literal, perhaps as bytes.
_KEY = (
    r"(?:\[\]byte\(|Encoding\.\w{1,10}\.GetBytes\(|Buffer\.from\(|new TextEncoder\(\)\.encode\()?"
    r"[bru@]?[\"'](?P<value>[^\"'\s]{6,200})[\"']"
)
_ALGORITHM = re.compile(
    r"(?i)(?:hs|rs|es|ps|sha|hmac|aes|md|des|utf|hex|base|latin|ascii|dbi:)[\w:.-]*$"
)


def _is_key_of_call(value: str) -> bool:
    return is_password(value.removeprefix("0x")) and not _ALGORITHM.match(value)


HEADERS = (
    rule("eyj", "jwt", r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,4000}(?:\.[A-Za-z0-9_-]{0,8000}){2,4}"),
    *(
        rule(
            word,
            "authorization",
            r"(?i)(?<![A-Za-z])", word, r"(?:entication)?", _Q, r"\]?\s{0,4}[:=,]\s{0,4}[bfru]?",
            _Q, r"(?:[A-Za-z][A-Za-z-]{1,20}[ \t]{1,4}){0,1}+(?:token=\\{0,3}\")?",
            r"(?P<value>[A-Za-z0-9._~+/:-]{12,4000}=*)",
            accept=_is_authorization,
        )
        for word in ("authorization", "x-auth")
    ),
    rule(
        "bearer ",
        "authorization",
        r"(?i)\bbearer[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/-]{10,4000}=*)",
        whole=True,
        accept=_is_bearer,
    ),
    rule(
        "bearer ",
        "authorization",
        r"(?i)[:=(,]\s{0,4}[\"'`]?bearer[ \t]{1,4}(?P<value>[a-z]{10,60})[\"'`]",
        accept=is_password,
        before=6,
    ),
    rule(
        "signature=",
        "authorization",
        r"(?i)signature=(?P<value>[0-9a-f]{40,}|[A-Za-z0-9+/%]{27,}=*)",
        accept=looks_random,
    ),
    rule("sig=", "sas", r"(?i)\bsig=(?P<value>[A-Za-z0-9%+/_-]{30,}=*)", accept=looks_random),
)  # fmt: skip

FILES = (
    rule(
        "auth",
        "docker-auth",
        r"(?i)(?<![A-Za-z])auth", _Q, _ASSIGN, _Q, r"(?P<value>[A-Za-z0-9+/]{8,4000}={0,2})",
        accept=_is_user_and_password,
    ),
    rule(
        "authident",
        "docker-auth",
        r"(?i)authident", _Q, _ASSIGN, _Q, r"(?P<value>[^\s\"']{8,4000})",
        accept=lambda value: ":" in value or _is_user_and_password(value),
    ),
    rule(
        "-oauth",
        "secret",
        r"(?i)-oauth[\"']\s{0,4}:\s{0,4}\{\s{0,40}[\"'][^\"'\n]{1,100}[\"']\s{0,4}:\s{0,4}",
        r"[\"'](?P<value>[^\"'\s]{16,200})",
        accept=_is_token,
    ),
    *rules_for(
        (".dockerconfigjson", ".dockercfg"),
        "docker-auth",
        _Q, _ASSIGN, r"(?:[|>][-+]?\s{1,40})?", _Q, r"(?P<value>[A-Za-z0-9+/]{20,}={0,2})",
        whole=True,
    ),
    *(
        rule(word, "azure-key", rf"(?i){word}(?P<value>[A-Za-z0-9+/%&=_-]{{30,}})", whole=True)
        for word in ("accountkey=", "sharedaccesskey=", "sharedaccesssignature=")
    ),
    rule(
        "machine",
        "netrc-password",
        r"(?i)\bmachine[ \t]{1,8}\S{1,200}\s{1,8}(?:(?:login|account)\s{1,8}\S{1,200}\s{1,8}){0,2}"
        r"password\s{1,8}(?P<value>\S{3,200})",
        accept=is_password,
        whole=True,
    ),
    rule(
        "login ",
        "netrc-password",
        r"(?i)\blogin[ \t]{1,8}\S{1,100}[ \t]{1,8}password[ \t]{1,8}(?P<value>\S{3,200})",
        accept=is_password,
    ),
    rule(
        '"kty',
        "jwk",
        r"\\{0,3}\"(?:d|p|q|dp|dq|qi|k)\\{0,3}\"\s{0,4}:\s{0,4}\\{0,3}\""
        r"(?P<value>[A-Za-z0-9_-]{30,1000})",
        whole=True,
        before=2000,
    ),
    *rules_for(
        ("mnemonic", "seed phrase", "seed_phrase", "recovery phrase", "recovery_phrase"),
        "mnemonic",
        _Q, r"\s{0,4}(?:[:=]|is)\s{0,4}", _Q, r"(?P<value>[a-z]{3,8}(?: [a-z]{3,8}){11,23})",
        whole=True,
    ),
    *rules_for(
        ("requirepass", "masterauth", "rootpw", "bindpw"),
        "config-password",
        r"[ \t]{1,8}[\"']?(?P<value>[^\s\"']{4,200})",
        accept=is_password,
        whole=True,
    ),
    rule(
        "username ",
        "config-password",  # of a router
        r"(?i)username[ \t]{1,4}\S{1,60}[ \t]{1,4}(?:privilege \d{1,2} )?(?:password|secret)",
        r"[ \t]{1,4}(?:\d[ \t])?(?P<value>[^\s\"']{4,200})",
        accept=is_odd_password,
        whole=True,
    ),
    rule(
        "enable secret ",
        "config-password",
        r"(?i)enable secret (?:\d )?(?P<value>[^\s\"']{4,200})",
        accept=is_password,
        whole=True,
    ),
    rule(
        "snmp-server community ",
        "config-password",
        r"(?i)snmp-server community (?P<value>[^\s\"']{4,200})",
        accept=lambda value: value not in ("public", "private"),
        whole=True,
    ),
    rule(
        "password ",
        "config-password",
        r"(?i)(?:(?<![\s\S])|(?<=\n)|(?<=\n )|(?<=\n  )|(?<=\n    )|(?<=\nenable ))"
        r"password[ \t]{1,8}(?:\d )?[\"']?(?P<value>[^\s\"']{6,200})[\"']?[ \t]*(?=\n|\Z)",
        accept=is_odd_password,
    ),
    rule(
        "sonar.login=",
        "secret",
        r"(?i)sonar\.login=(?P<value>[^\s\"']{16,200})",
        accept=_is_token,
    ),
    rule(
        "/pass",
        "config-password",  # user/password: admin/…
        r"(?i)/pass(?:word)?[ \t]{0,4}[:=][ \t]{0,4}[\w.@-]{1,60}[ \t]{0,2}/[ \t]{0,2}",
        r"(?P<value>[^\s\"']{6,200})",
        accept=is_odd_password,
    ),
    rule(
        "bundle_",
        "config-password",
        r"(?i)BUNDLE_[A-Z0-9]{1,40}__[A-Z0-9_]{1,80}(?:=|:[ \t])[\"']?[\w.-]{1,60}:"
        r"(?P<value>[^\s\"']{6,200})",
        accept=is_password,
    ),
)  # fmt: skip

SQL = (
    rule(
        "identified",
        "sql-password",
        r"(?i)IDENTIFIED(?:\s{1,4}WITH\s{1,4}\S{1,40})?\s{1,4}BY\s{1,4}(?:PASSWORD\s{1,4})?"
        r"\\?[\"'](?P<value>[^\"'\n\\]{3,200})",
        accept=is_password,
    ),
    rule(
        "identified by ",
        "sql-password",
        r"(?i)\b(?:CREATE|ALTER|GRANT|CONNECT)\s{1,4}[^\n;]{1,100}\bIDENTIFIED\s{1,4}BY\s{1,4}"
        r"(?P<value>[^\s\"'`;,(]{3,200})",
        accept=is_password,
        before=120,
    ),
    rule(
        "password",
        "sql-password",
        r"(?i)\b(?:(?:(?:CREATE|ALTER)\s{1,4}(?:USER|ROLE|LOGIN)\b[^\n;]{1,80}?"
        r"|WITH|ENCRYPTED|SET)\s{1,4}PASSWORD"
        r"|PASSWORD\s{1,4}FOR\b[^\n;]{1,60}?|OPTIONS\s{0,4}\([^\n;)]{0,120}?PASSWORD)"
        r"(?:\s{1,4}|\s{0,4}[=(]\s{0,4}(?:PASSWORD\()?)"
        r"N?\\?'(?P<value>[^'\s\\,()]{3,200})",
        accept=is_password,
        before=140,
    ),
    rule(
        "pragma ",
        "sql-password",
        r"(?i)PRAGMA\s{1,4}(?:re)?key\s{0,4}=\s{0,4}\\?[\"'](?P<value>[^\"'\n\\]{4,200})",
        accept=is_password,
        whole=True,
    ),
)

CALLS = (
    *rules_for(
        ("mysqli_connect(", "new mysqli(", "new pdo(", "getconnection("),
        "basic-auth",
        r"[^,\n]{1,200},\s{0,20}", _ARGUMENT, _QUOTED,
        accept=is_password,
        whole=True,
    ),
    rule(
        ".connect(",
        "basic-auth",
        r"\.connect\(\s{0,20}", _ARGUMENT, _ARGUMENT, _QUOTED,
        accept=is_odd_password,
    ),
    rule(
        "secure:",
        "secret",
        r"\bsecure:[ \t]{1,4}[\"']?(?P<value>[A-Za-z0-9+/=]{40,2000})",
        accept=_is_token,
        whole=True,
    ),
    *rules_for(
        ("auth=(", "basicauth(", "basic_auth(", "passwordauthentication(", "credential(",
         "credentials("),
        "basic-auth",
        r"\s{0,20}", _ARGUMENT, _QUOTED,
        accept=is_password,
    ),
    *rules_for(
        ("login(", "auth = ("),
        "basic-auth",
        r"\s{0,20}", _ARGUMENT, _QUOTED,
        accept=is_odd_password,
    ),
    *rules_for(
        ("creds = (", "credentials = (", "wifi.begin("),
        "basic-auth",
        r"\s{0,20}", _ARGUMENT, _QUOTED,
        accept=is_odd_password,
        whole=True,
    ),
    *(  # the key is the last of these arguments
        rule(word, "secret", r"(?i)", re.escape(word), before, _KEY, accept=_is_key_of_call,
             whole=whole)
        for before, whole, words in (
            (r"[^\n]{1,200}?,\s{0,20}", True,
             ("jwt.sign(", "jwt.verify(", "jwt.encode(", "jwt.decode(", "createhmac(",
              "createcipher(", "createcipheriv(", "createdecipheriv(", "hash_hmac(", ".signwith(",
              "hmac.hexdigest(", "hmac.digest(", "hmac::hexdigest(", "hmac.new(", "db.auth(",
              "jwt::encode(", "jwt::decode(")),
            (r"[^\n]{1,120}?,[^\n]{1,120}?,\s{0,20}", True, ("openssl_encrypt(", "dbi->connect(")),
            (r"\s{0,20}", True,
             ("hmac.new(", "signedstring(", "secretkeyspec(", "pbekeyspec(", "hmac256(", "hmac512(",
              "hmacsha256(", "hmacsha512(", "hmacsha1(", "symmetricsecuritykey(", "fernet(",
              "cookieparser(", "scryptsync(", "pbkdf2sync(", "wallet(", "crypt(", "sendline(",
              "hmac384(", "setsigningkey(")),
        )
        for word in words
    ),
    *rules_for(
        ("oracle.connect(", "oracledb.connect("),
        "basic-auth",
        r"\s{0,20}[\"'][\w.$-]{1,60}(?:/|[\"'],\s{0,20}[\"'])(?P<value>[^\"'\s@]{4,200})",
        accept=is_password,
        whole=True,
    ),
    rule(
        "buildconfigfield(",
        "secret",
        r"(?i)buildConfigField\([^\n,]{1,40},\s{0,4}[\"']\w{0,60}(?:key|token|secret|password)\w{0,20}[\"'],"
        r"\s{0,4}[\"']\\{0,3}[\"']?(?P<value>[^\"'\\\s]{6,200})",
        accept=is_password,
        whole=True,
    ),
    rule(
        "convertto-securestring",
        "basic-auth",
        r"(?i)ConvertTo-SecureString\s{1,4}(?:-String\s{1,4})?[\"']?(?P<value>[^\"'\n\s$(-][^\"'\n\s]{3,200})",
        accept=is_password,
        whole=True,
    ),
)  # fmt: skip

FORMATS = RuleSet((*HEADERS, *FILES, *SQL, *CALLS))

# host:port:database:user:password
_PGPASS_PORT = re.compile(r":(?:[0-9]{4,5}|\*):")
PGPASS = Rule(
    "pgpass-password",
    ":",
    re.compile(
        r"(?m)^[ \t]{0,4}(?:[\w.-]{1,100}|\*):(?:\d{4,5}|\*):[\w*-]{1,63}:[\w*.@-]{1,63}:"
        r"(?P<value>[^\s:]{3,200})[ \t]*$"
    ),
    is_password,
)


# What a password is stored as: it can be guessed from it.
_HASH = re.compile(
    r"\$(?:(?:[1567y]|apr1|2[abxy]|argon2\w{1,2}|scrypt)\$[A-Za-z0-9./$=,+-]{24,300}"
    r"|[0-9]{3,8}\$[A-Za-z0-9./+=]{6,60}\$[A-Za-z0-9./+=]{30,100}"  # of Django
    r"|[0-9]{4,7}:[A-Za-z0-9/+=]{16,60}\$[A-Za-z0-9/+=]{20,60}:[A-Za-z0-9/+=]{20,60})"  # SCRAM
)
_LDAP_HASH = re.compile(r"\{(?:SSHA|SHA|SMD5|PBKDF2|CRYPT)[\w-]{0,10}\}[A-Za-z0-9./$=+-]{24,300}")


def _find_hashes(text: str) -> Iterator[Span]:
    is_of_ldap = any(start in text for start in ("{S", "{PB", "{CR"))
    for pattern in (_HASH, _LDAP_HASH) if is_of_ldap else (_HASH,):
        for match in pattern.finditer(text):
            yield Span(*match.span(), "password-hash")


_SECRET = whole("secret")
VOCABULARY.add_words(["secret"])
_KIND_SECRET = re.compile(r"kind[\"']?:[ \t]{0,4}[\"']?secret[\"']?[\s,}]")
# The values of a Secret of Kubernetes, whatever their names
_SECRET_DATA = re.compile(
    r"(?m)^[ \t]{0,20}(?:data|stringData):[ \t]{0,8}\n"
    r"(?P<lines>(?:[ \t]{1,20}[\w.-]{1,80}:[^\n]{0,4000}\n?){1,50})"
)
_SECRET_MEMBERS = re.compile(r"\"(?:data|stringData)\"\s{0,8}:\s{0,8}\{(?P<lines>[^{}]{1,20000})\}")
_SECRET_LINE = re.compile(r"(?m):[ \t]{0,8}[\"']?(?P<value>[^\s\"'#|>$<{]{8,4000})")


def _find_kubernetes_secrets(text: str) -> Iterator[Span]:
    for block in (*_SECRET_DATA.finditer(text), *_SECRET_MEMBERS.finditer(text)):
        for line in _SECRET_LINE.finditer(text, block.start("lines"), block.end("lines")):
            if not is_placeholder(line["value"]) and not line["value"].startswith(MARK):
                yield Span(line.start("value"), line.end("value"), "kubernetes-secret")


def find_formats(subject: Subject) -> Iterator[Span]:
    yield from FORMATS.find(subject)
    yield from _find_hashes(subject.text)
    if _SECRET in subject.clues and _KIND_SECRET.search(subject.lowered):
        yield from _find_kubernetes_secrets(subject.text)
    if _PGPASS_PORT.search(subject.text):
        for match in PGPASS.pattern.finditer(subject.text):
            yield from judged(PGPASS, match)
