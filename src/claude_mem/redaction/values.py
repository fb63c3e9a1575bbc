"""Whether a value can be a secret: random, or a password, and not a word, a name or a reference."""

import math
import re
import string
from collections import Counter
from itertools import pairwise

_PLACEHOLDER = re.compile(
    r"(?i)x{4,}|\*{3,}|\.{3}|…|•{2,}|<[^<>]{0,80}>|\$\{|\$\(|\{\{|%\(|0{8,}|1234567890abcdef"
    r"|abcdefghijkl|your[_ -]?|example|place[_-]?holder|change[_-]?(?:me|it)|dummy|redacted"
    r"|insert[_-]|replace[_-]?(?:me|with|this)|[_-]here\b|fixme|undefined|\b(?:todo|null|none|true|false)\b"
    r"|process\.env|os\.environ|getenv|secrets?\."
    r"|\[\^?[a-z0-9!-]-[a-z0-9]|\(\?|\\[wdsb][+*?{]|\.\*|a-za-z|0-9a-[fz]"  # regular expressions
    r"|\[[^\]]{0,40}a-z|\{[a-z_]{2,30}\}"
)
_NAME = re.compile(r"_?[a-z]+(?:_[a-z]+)+$|_?[A-Z]+(?:_[A-Z]+)+$|[A-Z]?[a-z]+(?:[A-Z][a-z]+)+$")
_ABOUT_SECRETS = re.compile(r"(?i)passw(?:or)?d|passphrase|secret|token|credential|api-?key")
_ABOUT_TESTS = re.compile(
    r"(?i)test|fake|mock|valid|sample|demo|expired|wrong|passw(?:or)?d|secret|token|cred|key|user"
    r"|(?<![a-z0-9])(?:id|abc|foo|bar)(?![a-z])|v\d|sha\d"
)
_CHUNK = re.compile(r"[A-Za-z0-9]+")
_PART = re.compile(r"[A-Za-z]+|[0-9]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HEX = re.compile(r"[0-9a-f]{16,}|[0-9A-F]{16,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_REFERENCE = re.compile(
    r"(?i)\$[\w({]|%[a-z_]+%|%[sdr]\b|%\(|\{|#\{|@[a-z_]+@$|~/|\?$"  # variables
    r"|0x[0-9a-f]{1,63}$"  # an address
    r"|[a-z]:[\\/]|\\|hk[a-z]{2,4}:"  # paths of Windows
    r"|(?:https?|ftp|file|git|ssh|arn|op|vault|ssm|env|ref|awssm|gcpsm|projects?|secrets?)[:/+]"
    r"|[a-z_$][\w$.:]*[(\[]"  # a call, an index
)
_DOTTED = re.compile(r"(?i)[*&]?[a-z_$][\w$]*(?:(?:\??\.|::|->)[a-z_$][\w$]*)+$")  # a.name
_PATH = re.compile(r"\.{0,2}/|[\w.-]+(?:/[\w.-]+)+/?$")
_EXTENSIONS = frozenset(("txt", "json", "yaml", "yml", "toml", "key", "pem", "env", "py", "md"))
_SHORTEST_RANDOM = 10
_LONG = 40  # characters in one word
_SHORTEST_NUMBER = 15  # digits
_LONGEST_JUDGED = 120  # characters: a longer value is judged by its beginning

# What stands in a secret's place in code, schemas and prose.
_ORDINARY_WORDS = """
    password passwd passphrase passcode pass passw pword secret token credential credentials apikey
    key auth
    str string text bytes byte int integer number float double bool boolean any object array list
    dict map char varchar nvarchar uuid guid date datetime json blob binary enum type void never
    unknown optional nullable required readonly private public protected static const final
    secretstr securestring sensitive hidden visible masked encrypted encoded hashed plain plaintext
    plaintextpassword cleartext
    input value field label name title default disabled enabled missing invalid incorrect wrong
    empty blank unset not-set notset expired revoked current new old confirm confirmation reset
    forgot forgotten change changed update updated create created generate generated random admin
    user username userpass root guest test tests testing tester example sample demo local localhost
    development production staging basic bearer digest oauth oauth2 jwt none null nil yes off on
    password1 password123 passw0rd secret123 test123 test1234 admin123 foobar foobarbaz foo bar baz
    mypassword mysecret mytoken mykey secretkey secretpassword testpassword testsecret testtoken
    testkey fakepassword fakesecret faketoken fakekey supersecret topsecret
"""
_ORDINARY = frozenset(_ORDINARY_WORDS.split())


def is_placeholder(value: str) -> bool:
    head = value[:_LONGEST_JUDGED]
    return bool(_PLACEHOLDER.search(head)) or len(set(head)) < 3


def is_reference(value: str) -> bool:
    """Names where the secret is, instead of being it: a variable, a path, a call, a URL."""
    head = value[:_LONGEST_JUDGED]
    if _REFERENCE.match(head):
        return True
    if _DOTTED.match(head):
        return not any(len(part) >= 16 and looks_random(part) for part in head.split("."))
    if not _PATH.match(head):
        return False
    least = 0 if max(map(len, head.split("/"))) < 12 else 2
    return _likeness_to_words(head) >= least


def looks_random(value: str) -> bool:
    """Letters and digits in an order that no word, name or version has."""
    head = value[:_LONGEST_JUDGED]
    if not any(map(str.isdigit, head)) or is_placeholder(head):
        return False
    if not any(map(str.isalpha, head)):
        return head.isdigit() and len(head) >= _SHORTEST_NUMBER and _entropy(head) >= 2.5
    if len(head) < _SHORTEST_RANDOM or _entropy(head) < 2.8:
        return False
    if len(head) >= _LONG and head.isalnum() and sum(map(str.isdigit, head)) >= 4:
        return True
    return any(map(_is_random_hex, _HEX.findall(head))) or _likeness_to_words(head) < 2


def is_gibberish(value: str) -> bool:
    """Letters alone, in an order that no words have."""
    head = value[:_LONGEST_JUDGED]
    return len(head) >= 12 and not is_placeholder(head) and _likeness_to_words(head) < 0


def is_uuid(value: str) -> bool:
    return bool(_UUID.fullmatch(value))


def is_password(value: str) -> bool:
    """Whether a value is typed or generated, and not a word that stands in a password's place."""
    if len(value) < 4 or is_reference(value) or is_placeholder(value):
        return False
    if not any(map(str.isalpha, value)) and not value.isdigit():
        return False  # a version, a date, an address
    return value.lower() not in _ORDINARY and not _is_name(value)


def _is_name(value: str) -> bool:
    """Whether a value is several words joined as in code, or words about secrets."""
    if any(map(str.isdigit, value)):
        return False
    if _NAME.match(value) and _likeness_to_words(value) >= 2:
        return True
    return value.replace("-", "").isalpha() and bool(_ABOUT_SECRETS.search(value))


def is_odd_password(value: str) -> bool:
    """A password that no word or name looks like: it mixes letters with digits or symbols."""
    if not is_password(value) or "." in value.rstrip(".") or is_uuid(value):
        return False
    if "_" in value and (value.count("_") > 1 or not value[-1].isdigit()):
        return False  # a name, though one with a number at its end may be a password
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    return letters and (digits or any(symbol in value for symbol in "!@#$%^&*+="))


def is_path(value: str) -> bool:
    return "/" in value or value.rpartition(".")[2] in _EXTENSIONS


def is_made_up(value: str) -> bool:
    """A token that somebody chose: letters with digits, and no word about secrets or tests."""
    if len(value) < 8 or not any(map(str.isdigit, value)) or _ABOUT_TESTS.search(value):
        return False
    return is_odd_password(value)


def _entropy(value: str) -> float:
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def _is_random_hex(digits: str) -> bool:
    letters = sum(map(str.isalpha, digits))
    return 2 <= letters <= len(digits) - 3


# How much more often than by chance a letter follows another in English words and in names of
# Python's library: a digit for each pair of letters, as a power of two; 6 is as often as by chance.
_PAIRS = (
    "67874574726979272989665563 75546322641733631663612151 83658438717743942758632150 "
    "74569543822644741665633240 85897765624879576998566753 63446730800623720645601140 "
    "62338356601545530664522032 73338212702443720546512041 76877672324879862788371516 "
    "40105000302000420020400000 52337233611514320353313030 84469433913844850366642072 "
    "85348322702463770264621051 84888694735546752489663242 56774563525779770977767543 "
    "83448435702733762867623060 20000000000201001220700000 94669563805666850788654161 "
    "73749447815654773489735161 84759538903655861887745373 66656551602768460777220212 "
    "72218211600131510221111021 62236214601315520552122200 43535403510331350236211441 "
    "43435321401445460355223253 40116001400120310010101225"
)
_WEIGHTS = {
    first + second: int(digit) - 6
    for first, row in zip(string.ascii_lowercase, _PAIRS.split(), strict=True)
    for second, digit in zip(string.ascii_lowercase, row, strict=True)
}


def _likeness_to_words(value: str) -> float:
    """Rates a value: above zero words and names made of them, below random letters and digits."""
    likeness = 0.0
    for chunk in _CHUNK.findall(value):
        parts = _PART.findall(chunk)
        likeness -= 3 * sum(part.isdigit() for part in parts[1:-1])  # a number inside of a word
        for part in parts:
            if part.isdigit():
                continue
            letters = part.lower()
            likeness += sum(_WEIGHTS[first + second] for first, second in pairwise(letters))
            likeness -= 2 * sum(len(hump) < 3 for hump in _HUMP.findall(part)[:-1])
    return likeness
