"""Secrets go, whatever stands around them; ordinary code stays.

The examples are put together from parts, so that no scanner takes this file for a leak.
"""

import json
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from claude_mem.redaction import DETECTORS, Redactor
from claude_mem.types import Json

MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA2cD4fG6iJ8kL0nP2rS4uV6wX8yZ0bC2eF4hI6jL8mO0"
UPPER = "A1B2C3D4E5F6G7H8J9K0L1M2N3P4Q5R6S7T8U9V0W1X2Y3Z4A5B6C7D8E9F0G1H2"
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"


def pem(label: str) -> str:
    dashes = "-" * 5
    return f"{dashes}BEGIN {label}{dashes}\n{MIXED}\n{MIXED[::-1]}\n{dashes}END {label}{dashes}"


# For each kind of secret: texts, and what of each must not be there afterwards.
EXAMPLES: dict[str, list[tuple[str, str]]] = {
    "private-key": [
        (pem("PRIVATE " + "KEY"), MIXED),
        (pem("RSA PRIVATE " + "KEY"), MIXED[::-1]),
        (pem("PGP PRIVATE " + "KEY BLOCK"), MIXED),
        (pem("EC PRIVATE " + "KEY").replace("\n", "\\n"), MIXED),
        (pem("OPENSSH PRIVATE " + "KEY")[:100], MIXED[:40]),
    ],
    "anthropic-key": [("sk-" + "ant-api03-" + MIXED[:40], MIXED[:40])],
    "openai-key": [
        ("sk-" + MIXED[:48], MIXED[:48]),
        ("sk-" + "proj-" + MIXED[:48], MIXED[:48]),
        ("sk-" + "or-v1-" + HEX, HEX),
    ],
    "aws-access-key": [("AKIA" + UPPER[:16], UPPER[:16]), ("ASIA" + UPPER[:16], UPPER[:16])],
    "aws-secret-key": [
        ("aws_secret_access_" + "key = " + MIXED[:40], MIXED[:40]),
        ("AWS_SECRET_ACCESS_" + 'KEY: "' + MIXED[:40] + '"', MIXED[:40]),
    ],
    "github-token": [
        ("ghp" + "_" + MIXED[:36], MIXED[:36]),
        ("ghs" + "_" + MIXED[:36], MIXED[:36]),
        ("github" + "_pat_" + MIXED[:22] + "_" + MIXED[:59], MIXED[:59]),
    ],
    "gitlab-token": [("glpat" + "-" + MIXED[:20], MIXED[:20])],
    "slack-token": [
        ("xoxb" + "-1234567890-" + MIXED[:24], MIXED[:24]),
        ("xapp" + "-1-" + MIXED[:24], MIXED[:24]),
    ],
    "slack-webhook": [("https://hooks.slack" + ".com/services/T0/B0/" + MIXED[:24], MIXED[:24])],
    "google-key": [("AIza" + MIXED[:35], MIXED[:35])],
    "google-oauth": [
        ("ya29" + "." + MIXED[:40], MIXED[:40]),
        ("GOCSPX" + "-" + MIXED[:28], MIXED[:28]),
    ],
    "stripe-key": [
        ("sk_" + "live_" + MIXED[:24], MIXED[:24]),
        ("rk_" + "test_" + MIXED[:24], MIXED[:24]),
        ("whsec" + "_" + MIXED[:32], MIXED[:32]),
    ],
    "npm-token": [("npm" + "_" + MIXED[:36], MIXED[:36])],
    "pypi-token": [("pypi" + "-AgEIcHlwaS5vcmc" + MIXED[:60], MIXED[:60])],
    "huggingface-token": [("hf" + "_" + MIXED[:34], MIXED[:34])],
    "sendgrid-key": [("SG" + "." + MIXED[:22] + "." + MIXED[:43], MIXED[:22])],
    "twilio-key": [("twilio: SK" + HEX[:32], HEX[:32])],
    "digitalocean-token": [("dop" + "_v1_" + HEX, HEX)],
    "shopify-token": [("shpat" + "_" + HEX[:32], HEX[:32])],
    "telegram-token": [("123456789" + ":AA" + MIXED[:33], MIXED[:33])],
    "env-password": [
        ("DB_" + "PASSWORD=" + "hunter22", "hunter22"),
        ("docker run -e POSTGRES_" + "PASSWORD=" + "swordfish db", "swordfish"),
    ],
    "plain-password": [
        ("the pass" + "word: hunter2xyz9", "hunter2xyz9"),
        ("pass" + "word=swordfish42 is it", "swordfish42"),
    ],
    "age-key": [("AGE-SECRET-" + "KEY-1" + UPPER[:58], UPPER[:58])],
    "vault-token": [("hvs" + "." + MIXED[:24], MIXED[:24])],
    "databricks-token": [("dapi" + HEX[:32], HEX[:32])],
    "azure-key": [("AccountName=x;Account" + "Key=" + MIXED[:64] + "==", MIXED[:64])],
    "jwt": [
        ("eyJ" + MIXED[:20] + ".eyJ" + MIXED[:30] + "." + MIXED[:43], MIXED[:20]),
        ("id-eyJ" + MIXED[:20] + ".eyJ" + MIXED[:30] + "." + MIXED[:43], MIXED[:20]),
    ],
    "url-password": [
        ("postgres://app:" + "hunter22" + "@db.local/harbor", "hunter22"),
        ("redis://:" + "hunter22" + "@cache:6379/0", "hunter22"),
        ("https://dev:" + "p%40ss" + "@github.com/dev/harbor.git", "p%40ss"),
    ],
    "authorization": [
        ("Authorization: Bear" + "er " + MIXED[:32], MIXED[:32]),
        ("curl -H 'authorization: Bas" + "ic " + MIXED[:32] + "=='", MIXED[:32]),
        ("Bear" + "er " + MIXED[:32], MIXED[:32]),
    ],
    "password": [
        ('pass' + 'word = "hunter22"', "hunter22"),
        ("PASS" + "WORD: 'Hunter-22'", "Hunter-22"),
        ('db_pass' + 'wd="correct-horse"', "correct-horse"),
        ("pass" + 'word = "back\\slash-22"', "back\\slash-22"),
        ('{"pass' + 'phrase": "open-sesame"}', "open-sesame"),
        ("'pass" + "word' => 'hunter22'", "hunter22"),
        ('curl -d "{\\"pass' + 'word\\": \\"hunter22\\"}"', "hunter22"),
    ],
    "secret": [
        ("API_" + "KEY=" + MIXED[:32], MIXED[:32]),
        ("client_" + "secret: '" + MIXED[:32] + "'", MIXED[:32]),
        ('"access_' + 'token" := "' + MIXED[:32] + '"', MIXED[:32]),
        ("SECRET_" + "KEY_BASE=" + HEX, HEX),
        ("to" + "ken=" + MIXED * 6, MIXED[-30:]),
        ("to" + "ken=\\\"" + MIXED[:32] + '\\"', MIXED[:32]),
    ],
}  # fmt: skip
EACH = [(kind, text, secret) for kind, some in EXAMPLES.items() for text, secret in some]


def redact(text: str, *allowed: str) -> str:
    return Redactor(allowed).redact(text)


# What goes


def test_every_detector_has_an_example() -> None:
    assert set(EXAMPLES) == {detector.kind for detector in DETECTORS}


@pytest.mark.parametrize(("kind", "text", "secret"), EACH)
def test_a_secret_is_replaced_by_its_kind(kind: str, text: str, secret: str) -> None:
    redacted = redact(text)
    assert secret not in redacted
    assert f"[redacted:{kind}]" in redacted


@pytest.mark.parametrize(("kind", "text", "secret"), EACH)
def test_a_secret_goes_from_a_value_whatever_else_is_in_it(
    kind: str, text: str, secret: str
) -> None:
    value: Json = {"İ": 1, "first": "nothing", "notes": ["İ", {"İ": [f"İ {text}"]}, None]}
    redacted = json.dumps(Redactor().redact_json(value), ensure_ascii=False)
    assert secret not in redacted
    assert f"[redacted:{kind}]" in redacted


def test_what_stands_around_a_secret_stays() -> None:
    before, after = "export API_" + "KEY=", "  # of the harbour\n"
    assert redact(before + MIXED[:32] + after) == f"{before}[redacted:secret]{after}"
    url = "postgres://app:{}@db.local:5432/harbor?sslmode=require"
    assert redact(url.format("hunter22")) == url.format("[redacted:url-password]")


def test_every_secret_of_a_text_goes() -> None:
    text = "\n".join(text for _, text, _ in EACH if "BEGIN" not in text)
    redacted = redact(text)
    assert [secret for _, text, secret in EACH if "BEGIN" not in text and secret in redacted] == []


around = st.text(max_size=60)
separator = st.sampled_from([" ", "\n", "\t", ", ", "; ", " | "])


@given(one=st.sampled_from(EACH), before=around, after=around, left=separator, right=separator)
@example(one=EACH[0], before="İ" * 30, after="İ", left=" ", right=" ")
@example(one=("secret", *EXAMPLES["secret"][0]), before="İ" * 30, after="İ", left=" ", right=" ")
def test_a_secret_goes_wherever_it_stands(
    one: tuple[str, str, str], before: str, after: str, left: str, right: str
) -> None:
    _, text, secret = one
    redacted = redact(f"{before}{left}{text}{right}{after}")
    assert secret not in redacted
    assert redacted.startswith(before)


# What the name of a member says about its value


@pytest.mark.parametrize(
    ("member", "kind"),
    [
        ({"password": "hunter22"}, "password"),
        ({"dbPassword": "hunter22"}, "password"),
        ({"api_key": MIXED[:32]}, "secret"),
        ({"clientSecret": MIXED[:32]}, "secret"),
        ({"ACCESS_TOKEN": MIXED[:32]}, "secret"),
        ({"access_token": MIXED * 6}, "secret"),
        ({"private_key": MIXED[:32]}, "secret"),
    ],
)
def test_a_member_is_judged_with_its_name(member: dict[str, Json], kind: str) -> None:
    (name,) = member
    assert Redactor().redact_json(member) == {name: f"[redacted:{kind}]"}


def test_secrets_go_wherever_they_are_in_a_value() -> None:
    token = "ghp" + "_" + MIXED[:36]
    value: Json = {"a": [{"b": [f"see {token}", 1, None, True, 2.5]}], token: "name", "c": token}
    kept = "[redacted:github-token]"
    assert Redactor().redact_json(value) == {
        "a": [{"b": [f"see {kept}", 1, None, True, 2.5]}],
        kept: "name",
        "c": kept,
    }


@pytest.mark.parametrize(
    "member",
    [
        {"max_tokens": 4096},
        {"token": "eof"},
        {"password": "<your password>"},
        {"password": None},
        {"password": ""},
        {"key": "light.blink.twice.2024"},
        {"file_path": "/home/dev/harbor/tokens_v2/secret_santa_2024.py"},
        {"command": "pytest tests/test_password_reset_2.py -k token"},
        {"pwd": "/home/dev/harbor"},
        {"session_id": "4c1b3d5e-0f2a-4b6c-8d7e-9fa0b1c2d3e4"},
    ],
)
def test_an_ordinary_member_stays(member: dict[str, Json]) -> None:
    assert Redactor().redact_json(member) == member


# What stays

ORDINARY = [
    "",
    "The password is checked by the server; the token is refreshed every hour.",
    'password = input("Password: ")',
    "password = get_password(user)",
    "password: str",
    'password = os.environ["DB_PASSWORD"]',
    "password: process.env.DB_PASSWORD,",
    "const password = req.body.password;",
    'password = "<your password>"',
    'password = "your-password-here"',
    'password = "********"',
    'password = "xxxxxxxx"',
    'password = "${DB_PASSWORD}"',
    "password: '{{ vault_db_password }}'",
    'password = "changeme"',
    'password = ""',
    'password="abc"',
    '<input type="password" name="new-password" required>',
    'label for="password">Password</label>',
    'declare -x PWD="/home/dev/harbor"',
    'OLDPWD="/home/dev"',
    'passwd_file = "/etc/passwd"',
    "token = tokens[index]",
    "token = self.next_token()",
    "token = RefreshTokenProvider.currentTokenOrNothing",
    "secret: MyKubernetesSecretOfTheHarbour",
    "token = base64.urlsafe_b64encode(raw).decode()",
    "secret = hashlib.sha256_hex_digest(data)",
    "api_key = settings.openai_v2_api_key[0]",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "OPENAI_API_KEY=your_api_key_goes_here_1",
    "API_KEY=sk-...",
    "api_key = None",
    'api_key: "example-key-1234567890"',
    "token=<redacted-1234567890>",
    "SECRET_KEY = get_random_secret_key()",
    "max_tokens=4096, total_tokens: 123456789012345678",
    'sort_key = "created_at_epoch_1700000000"',
    'primary_key="user_id_0123456789"',
    'key = "cache:user:1234567890:profile"',
    "const keyboard = keys.map((k) => k.code);",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "http://localhost:8080/a@b",
    "https://example.org:8443/img@2x.png",
    "postgres://user:${DB_PASSWORD}@localhost/db",
    "postgres://user:<password>@localhost/db",
    "ssh://git@github.com:22/dev/harbor.git",
    "git@github.com:dev/harbor.git",
    "see https://en.wikipedia.org/wiki/Harbor: mail@example.org",
    "Authorization: Bearer <token>",
    "Authorization: Bearer ${ACCESS_TOKEN_FROM_ENV}",
    "the bearer of this letter has authorization",
    "task-1234567890abcdefghijklmnop and risk-management-handbook-2024",
    ".sk-fading-circle .sk-circle12 { animation: none }",
    "npm_config_registry npm_package_version_1_2_3",
    "hf_hub_download(repo_id, filename)",
    "eyJhbGciOi is how every JWT begins",
    "ghp_ is the prefix of GitHub tokens, glpat- of GitLab's, AKIA of Amazon's",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    '"integrity": "sha512-9pQ3sT5vW7xY9zA2cD4fG6iJ8kL0nP2rS4uV6wX8yZ0bC2eF4hI6jL8mO0=="',
    "4c1b3d5e-0f2a-4b6c-8d7e-9fa0b1c2d3e4",
    "mac 00:AA:BB:CC:DD:EE at 12:30:45",
    "twilio is a company",
    "aws s3 cp s3://harbor/light.py . && aws configure get region",
    "AccountKey=;SharedAccessKey=",
    "def test_token_is_refreshed_after_3600_seconds(): ...",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


def test_our_own_marks_are_not_secrets() -> None:
    marks = "\n".join(f'password = "[redacted:{detector.kind}]"' for detector in DETECTORS)
    assert redact(marks) == marks


def holds_a_word(text: str) -> bool:
    return any(word in text.lower() for detector in DETECTORS for word in detector.words)


@given(st.text().filter(lambda text: not holds_a_word(text)))
def test_a_text_without_any_detectors_word_stays(text: str) -> None:
    assert redact(text) == text


# Texts that are never taken for a secret


@pytest.mark.parametrize(
    ("kind", "text", "secret"),
    [one for one in EACH if one[0] in ("password", "url-password", "aws-secret-key")],
)
def test_an_allowed_text_stays(kind: str, text: str, secret: str) -> None:
    assert redact(text, secret) == text


def test_an_allowed_text_saves_nothing_else() -> None:
    text = 'password = "hunter22"; password = "hunter23"'
    assert redact(text, "hunter22") == 'password = "hunter22"; password = "[redacted:password]"'


def test_an_allowed_text_stays_as_the_value_of_a_member() -> None:
    assert Redactor(("hunter22",)).redact_json({"password": "hunter22"}) == {"password": "hunter22"}


# Whatever comes

words = st.sampled_from(
    [word for detector in DETECTORS for word in detector.words]
    + [word.upper() for detector in DETECTORS for word in detector.words]
    + [
        "=",
        ":",
        '"',
        "'",
        " ",
        "\n",
        "\\",
        "@",
        "/",
        "-",
        ".",
        "İ",
        "[redacted:",
        "]",
        "://",
        MIXED,
    ]
    + [text for _, text, _ in EACH]
)
hostile = st.lists(words | st.text(max_size=20), max_size=12).map("".join)


@given(hostile)
@example("AIza" + MIXED[:35] + "ghp" + "_" + MIXED[:36])
def test_what_was_redacted_once_stays_as_it_is(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(hostile | st.text(st.characters(exclude_categories=())))
def test_redaction_never_fails(text: str) -> None:
    redact(text)
    Redactor().redact_json({text: [text, {"password": text}]})


@given(before=st.text(st.sampled_from("İßǰΐﬃ aA"), max_size=30))
def test_letters_that_grow_in_lower_case_move_nothing(before: str) -> None:
    text = f'{before} pass' + 'word = "Hunter-22" end'  # fmt: skip
    assert redact(text) == f'{before} password = "[redacted:password]" end'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | hostile,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(hostile, inner, max_size=3),
    max_leaves=6,
)


@given(json_values)
def test_a_value_keeps_its_shape(value: Json) -> None:
    redacted = Redactor().redact_json(value)
    assert type(redacted) is type(value)
    assert json.loads(json.dumps(redacted)) == redacted
    if isinstance(value, list) and isinstance(redacted, list):
        assert len(redacted) == len(value)


REDACT_STDIN = (
    "import sys; from claude_mem.redaction import Redactor;"
    "sys.stdout.write(str(len(Redactor().redact(sys.stdin.read()))))"
)
KB = 1024


@pytest.mark.parametrize(
    ("piece", "size"),
    [
        ("-" + "eyJaaaaaaaa", 1500 * KB),
        ("-----BEGIN ", 1000 * KB),
        ("-----BEGIN PRIVATE " + "KEY-----", 1000 * KB),
        ("to" + "ken=", 60 * KB),
        ("sec" + "ret====", 60 * KB),
        ('pass' + 'word="', 300 * KB),
        ("pass" + "word" + " " * 1000, 300 * KB),
        ("aws key" + " " * 500, 300 * KB),
        ("aws ", 300 * KB),
        ("a.a://b:", 300 * KB),
        ("bear" + "er ", 300 * KB),
        ("authorization: ", 300 * KB),
        ("Account" + "Key=aaa+", 150 * KB),
        ("-SG.aaaaaaaaaaaaaaaa", 1000 * KB),
    ],
)  # fmt: skip
def test_hostile_text_is_worked_off_in_one_pass(piece: str, size: int) -> None:
    """Sizes at which a look at everything for each place would take minutes."""
    text = piece * (size // len(piece))
    done = subprocess.run(
        [sys.executable, "-c", REDACT_STDIN],
        input=text.encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert int(done.stdout) > 0
