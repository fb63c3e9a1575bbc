"""Which names announce a secret, and how surely.

A name is read as its words (`dbPassword`, `DB_PASSWORD` and `db-password` are the same), and what
counts is what it ends in: `password_reset_url` is a URL.
"""

import re
from enum import IntEnum
from functools import lru_cache


class Certainty(IntEnum):
    NONE = 0
    POSSIBLE = 1  # a key of some kind: its value must look random
    LIKELY = 2  # an API key, a token: a shorter value will do
    SECRET = 3  # a secret, which people also make up themselves
    ODD = 4  # `pass` and `pwd`, which have other meanings: no word, no path, not too short
    PASSWORD = 5  # anything that is not a word of code


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-zß-öø-ÿ]+|[0-9]+|[^\W\d_]+")
LONGEST_NAME = 80

# May follow the noun without changing what it is.
_SUFFIXES = _words("""
    value values val base str string text raw plain b64 base64 hex encoded bytes env var
    prod production dev development test testing stage staging qa live sandbox local main primary
    secondary backup old new current previous default override temp tmp final data
    """)
_PASSWORDS = _words("""
    password passwd passphrase passcode passwort kennwort senha psk pw pword sshpass requirepass
    storepass keypass dbpass userpass smtppass mailpass ftppass rootpass adminpass mysqlpass pgpass
    redispass proxypass wifipass sudopass loginpass authpass contrase contraseña contrasena passe
    askpass chiave
    clave wachtwoord heslo geslo salasana lozinka parola parool haslo hasla jelszo sifre sifresi
    losenord losen passord adgangskode kodeord sandi khau parole palavra slaptazodis salasana
""")
_PLURALS = _words("passwords keys tokens")
_ASKING = _words("get has is no not without require requires needs change reset forgot")
_SECRETS = _words("""
    secret secrets secretkey clientsecret appsecret mnemonic segredo secreto geheimnis geheim
    schlussel schluessel jeton sleutel chave llave
""")
_API_KEYS = _words("apikey authkey accesskey privatekey apitoken authtoken accesstoken bottoken")
_CREDENTIALS = _words("credential credentials creds cred")
# Words before `key` that make it a secret, and those that make it something else.
_SECRET_KEYS = _words("""
    api access private secret encryption encrypt decryption decrypt auth signing sign signature
    account service master storage license licence activation subscription deploy ssh gpg pgp tls
    ssl jwt jwe hmac aes rsa ecdsa ed25519 session cookie consumer admin root server ingest
    instrumentation crypto vault unseal recovery app application client webhook shared security
    authentication authorization bot publish write host shodan
    """)
_OTHER_KEYS = _words("""
    public pub primary foreign sort partition cache unique index hash map dict row column object s3
    bucket composite natural surrogate candidate range shard routing message event state store
    storage lookup group order query param header json yaml config setting settings translation i18n
    locale react list item data node tree leaf field property prop attribute sequence type name
    registry hkey hot press arrow enter escape tab shift function modifier shortcut keyboard
    idempotency dedup deduplication join link ref reference kebab camel snake any each every no
    """)
_OTHER_TOKENS = _words("""
    page next prev previous continuation sync cursor pagination resume start end eos bos pad unk
    sep cls mask special stop max min total prompt completion input output cancellation cancel key
    public count num number per first last current lookahead peek syntax lexer parser operator
    design theme color css
    """)


def certainty(name: str) -> Certainty:
    return _certainty(name[-LONGEST_NAME:])


@lru_cache(maxsize=4096)
def _certainty(name: str) -> Certainty:
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and (words[-1] in _SUFFIXES or words[-1].isdigit()):
        words.pop()
    if not words or words[0] in _ASKING:
        return Certainty.NONE
    noun, before = words[-1], words[-2] if len(words) > 1 else ""
    if noun in _PLURALS and (before or noun == "passwords"):
        noun = noun[:-1]
    if noun in ("pass", "pwd"):
        return Certainty.PASSWORD if before else Certainty.ODD
    if noun in _PASSWORDS or noun.endswith(("password", "passwd", "passphrase")):
        return Certainty.PASSWORD
    if noun in _SECRETS or noun.endswith("secret"):
        return Certainty.SECRET
    if noun in _API_KEYS or noun.endswith("apikey"):
        return Certainty.LIKELY
    if noun == "key":
        return _of_key(before)
    if noun == "token" or noun.endswith("token"):
        return _of_token(before if noun == "token" else noun.removesuffix("token"))
    return Certainty.POSSIBLE if noun in _CREDENTIALS else Certainty.NONE


def _of_key(before: str) -> Certainty:
    if before in ("secret", "preshared"):
        return Certainty.SECRET
    if before in _SECRET_KEYS:
        return Certainty.LIKELY
    if not before or before in _OTHER_KEYS:
        return Certainty.NONE
    return Certainty.POSSIBLE


def _of_token(before: str) -> Certainty:
    if before in _OTHER_TOKENS:
        return Certainty.NONE
    return Certainty.LIKELY
