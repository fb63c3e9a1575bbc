"""Secrets go, whatever stands around them; ordinary code stays.

The examples are put together from parts, so that no scanner takes this file for a leak.
"""

import json
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from claude_mem.redaction import Redactor
from claude_mem.redaction.commands import COMMANDS, PLAIN_COMMANDS
from claude_mem.redaction.formats import FORMATS
from claude_mem.redaction.vendor_table import VENDORS, Vendor
from claude_mem.types import Json
from tests.growth import too_fast_growth
from tests.secret_corpus import Maker, Planted, corpus, fill, sample_of
from tests.secret_kinds import AROUND, MISSED, MISSED_OF_OTHERS
from tests.secret_kinds import VENDORS as PLANTED_VENDORS

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
    ],
    "openrouter-key": [("sk-" + "or-v1-" + HEX, HEX)],
    "aws-access-key": [("AKIA" + UPPER[:16], UPPER[:16]), ("ASIA" + UPPER[:16], UPPER[:16])],
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
        ("DB_" + "PASSWORD=" + "hunter22", "hunter22"),
        ("docker run -e POSTGRES_" + "PASSWORD=" + "swordfish db", "swordfish"),
        ("the pass" + "word: hunter2xyz9", "hunter2xyz9"),
        ("pass" + "word=swordfish42 is it", "swordfish42"),
    ],
    "secret": [
        ("API_" + "KEY=" + MIXED[:32], MIXED[:32]),
        ("client_" + "secret: '" + MIXED[:32] + "'", MIXED[:32]),
        ('"access_' + 'token" := "' + MIXED[:32] + '"', MIXED[:32]),
        ("SECRET_" + "KEY_BASE=" + HEX, HEX),
        ("to" + "ken=" + MIXED * 6, MIXED[-30:]),
        ("to" + "ken=\\\"" + MIXED[:32] + '\\"', MIXED[:32]),
        ("to" + 'ken = "' + MIXED * 90 + '"', MIXED[-30:]),
        ("aws_secret_access_" + "key = " + MIXED[:40], MIXED[:40]),
        ("AWS_SECRET_ACCESS_" + 'KEY: "' + MIXED[:40] + '"', MIXED[:40]),
    ],
}  # fmt: skip
EACH = [(kind, text, secret) for kind, some in EXAMPLES.items() for text, secret in some]


def redact(text: str, *allowed: str) -> str:
    return Redactor(allowed).redact(text)


# What goes


@pytest.mark.parametrize(
    "vendor", VENDORS, ids=lambda vendor: f"{vendor.kind} {vendor.prefixes[0]}"
)
def test_every_row_of_the_vendors_table_is_used(vendor: Vendor) -> None:
    maker = Maker(7)
    for prefix in vendor.prefixes:
        token = prefix + sample_of(vendor.body, maker)
        assert token not in redact(f"with {token} it works")
        assert token not in redact(f"https://lamp.dev/a?b%3D{token}")


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


def test_a_redactor_that_has_read_many_texts_answers_as_a_new_one() -> None:
    redactor = Redactor()
    for number in (*range(2_500), *range(2_500)):
        harmless: Json = {"command": f"ls harbour/{number}"}
        assert redactor.redact_json(harmless) == harmless
    for _, text, secret in EACH:
        assert [redactor.redact(text) for _ in range(2)] == [redact(text)] * 2
        assert secret not in redactor.redact(text)


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
@example(
    one=("password", "the password: hunter2xyz9", "hunter2xyz9"),
    before="", after="=", left=" ", right=" ",
)  # fmt: skip
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
    '"nextPageToken": "CAUQAA1b2c3d4e5f6a7b8c9d0e1f2"',
    "pageToken=CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA",
    '<bindingRedirect publicKeyToken="1fc8f2b3c4d5e6a7" />',
    'PublicKeyToken=b77a5c561934e089, processorArchitecture="MSIL"',
    "secret: projects/1/secrets/lamp-key/versions/3",
    "secret: arn:aws:secretsmanager:eu-1:123456789012:secret:lamp-AbCd12",
    "password: op://vault/lamp/password",
    'Pwd: "C:\\\\Users\\\\posh\\\\lamp"',
    'PWD:           "HKLM:\\\\SOFTWARE\\\\magnetic:test\\\\",',
    "Pwd: `\\home\\src\\project\\src\\deep`,",
    'Pwd: "/a/b/1234/d/e",',
    "token=0x7ffee4c0b2a8 key=0xdeadbeef",
    "token=0x6b175474e89094c44da98b954eedeac495271d0f",
    "password: Optional[str] = None",
    "api_key: SecretStr",
    "token: Mapped[str | None] = mapped_column(String(64))",
    "secretKey: string;",
    "password: GraphQLNonNull(GraphQLString),",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "key: sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    'etag: W/"33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "session_id=4c1b3d5e-0f2a-4b6c-8d7e-9fa0b1c2d3e4",
    "![lamp](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk)",
    "the row is identified by `id`, the user identified by name",
    "Pass `verbose` and pass the key on",
    "use --token to log in; --password options come later",
    'changedSet("pwd", "status", "execution-time")',
    '["username", "password", "email"]',
    '$env:GOMODCACHE = Join-Path $PWD "gomodcache"',
    'if "-----BEGIN PRIVATE " + "KEY-----" in text: return',
    'FORCE_CHANGE_PASSWORD = "FORCE_CHANGE_PASSWORD"',
    'valid_keys = re.compile("^[A-Za-z][0-9A-Za-z_]*$")',
    '"AWS::ApiGateway::ApiKey": "48205d4ffd7feba3"',
    "src/lamp.py:1234:def light:on",
    "aa:bb:cc:dd:ee",
    "a < b and c > d; git push -u origin main:main",
    "AKIAIOSFODNN7EXAMPLE",
    "toolu_01XToQxq216BtNyMkka4Lg5x msg_01TiKaJE2CoRBc85NY8D2Zsj req_011CY4jxFXtEjm5HzJzJMjGk",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


RULES = (*FORMATS.rules, *COMMANDS.rules, *PLAIN_COMMANDS.rules)
KINDS = sorted({form.kind for form in RULES} | {v.kind for v in VENDORS} | set(EXAMPLES))


def test_our_own_marks_are_not_secrets() -> None:
    marks = "\n".join(f'password = "[redacted:{kind}]"' for kind in KINDS)
    assert redact(marks) == marks


# The corpus


KNOWN_MISSES = {kind for kind, _, _ in MISSED} | set(MISSED_OF_OTHERS)


def missed_in(planted: list[Planted]) -> list[Planted]:
    return [
        secret
        for secret in planted
        if secret.kind not in KNOWN_MISSES and secret.secret in redact(secret.text)
    ]


def test_the_corpus_is_large_and_the_same_for_a_seed() -> None:
    planted = corpus(1)
    assert len(planted) >= 1_000
    assert len({one.kind for one in planted}) >= 500
    assert len(AROUND) >= 30
    assert planted == corpus(1) != corpus(2)


@pytest.mark.parametrize("seed", range(1, 6))
def test_secrets_of_every_kind_go(seed: int) -> None:
    planted = corpus(seed)
    missed = missed_in(planted)
    assert len(missed) <= 0.01 * len(planted), missed


def test_no_kind_of_secret_is_missed_as_a_kind() -> None:
    planted = [secret for seed in range(20, 30) for secret in corpus(seed, 1)]
    of_kind, missed = (Counter(one.kind for one in some) for some in (planted, missed_in(planted)))
    assert [kind for kind, number in missed.items() if number > of_kind[kind] // 3] == []


@pytest.mark.parametrize("around", AROUND)
def test_a_token_goes_whatever_stands_before_and_behind_it(around: str) -> None:
    maker = Maker(11)
    tokens = [fill(template, maker) for template in PLANTED_VENDORS.values()]
    missed = [token for token in tokens if token in redact(around.format(token))]
    assert len(missed) <= 0.01 * len(tokens), missed


@pytest.mark.parametrize(
    "text",
    [
        "gh\x1b[01;31mp_\x1b[m{}",  # a match that a search coloured
        "ghp_\u200b{}",
        "\\u0067hp_{}",
        "%67hp_{}",
        "&#103;hp_{}",
        "ｇｈｐ＿{}",
    ],
)
def test_a_token_goes_that_reads_otherwise_than_it_is_written(text: str) -> None:
    assert MIXED[:36] not in redact(text.format(MIXED[:36]))


def test_what_is_written_around_a_secret_stays_as_it_is_written() -> None:
    written = "a\\u0022\x1b[32m{}\x1b[0m\\n%20&quot;b\n\\tc"
    assert redact(written.format("ghp_" + MIXED[:36])) == written.format("[redacted:github-token]")


@pytest.mark.parametrize(
    "text",
    [
        "deploy --token Tk7PlainValue88",
        "LAMP_TOKEN=Tk7PlainValue88 deploy",
        "hmac.new(b'Tk7PlainValue88', body)",
        "jwt.sign(payload, 'Tk7PlainValue88')",
        "schtasks /create /ru ann /rp Tk7PlainValue88",
        "net user ann Tk7PlainValue88 /add",
    ],
)
def test_a_secret_that_somebody_chose_goes_where_only_a_secret_can_stand(text: str) -> None:
    assert "Tk7PlainValue88" not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "psk=quay4lamp",
        'network={\n  ssid="quay"\n  psk="quay4lamp"\n}',
        "[wifi-security]\nkey-mgmt=wpa-psk\npsk=quay4lamp",
        "wpa_psk: quay4lamp",
        "the psk is quay4lamp",
    ],
)
def test_the_key_of_a_wireless_network_goes(text: str) -> None:
    assert redact(text) == text.replace("quay4lamp", "[redacted:password]")


@pytest.mark.parametrize(
    "text",
    [
        "Flags: `--source-token`, `--source-username`, and `--pwd`, `--status`",
        "the workflow has `id-token: write`",
        "hf jobs run --secrets HF_TOKEN script.py",
        '"passwd:shell", if token == "#bygroup":',
        "an environment variable set by a script, set once at load",
        "use --password authentication with --token handling",
        'token = "valid-token-1"; api_key = "test-key-12"',
        "jwt.sign(payload, algorithm, 'HS256')",
        "createHmac('sha256', key)",
        "C:\\new\\token\\table.txt\\nothing",
        "\x1b[32mtoken\x1b[0m: \x1b[1mstring\x1b[0m",
        "密码：请输入新密码",
    ],
)
def test_what_only_resembles_the_setting_of_a_secret_stays(text: str) -> None:
    assert redact(text) == text


# Texts that are never taken for a secret


@pytest.mark.parametrize(
    ("kind", "text", "secret"),
    [one for one in EACH if one[0] in ("password", "url-password")],
)
def test_an_allowed_text_stays(kind: str, text: str, secret: str) -> None:
    assert redact(text, secret) == text


def test_an_allowed_text_saves_nothing_else() -> None:
    text = 'password = "hunter22"; password = "hunter23"'
    assert redact(text, "hunter22") == 'password = "hunter22"; password = "[redacted:password]"'


def test_an_allowed_text_stays_as_the_value_of_a_member() -> None:
    assert Redactor(("hunter22",)).redact_json({"password": "hunter22"}) == {"password": "hunter22"}


# Whatever comes

WORDS = [form.word for form in RULES] + [v.prefixes[0] for v in VENDORS]
words = st.sampled_from(
    WORDS
    + [word.upper() for word in WORDS]
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


PIECES = [
    "-" + "eyJaaaaaaaa", "-----BEGIN ", "-----BEGIN PRIVATE " + "KEY-----",
    "-----END PRIVATE " + "KEY-----", "-----END PRIVATE " + "KEY-----\n" + MIXED, "to" + "ken=",
    "to" + "ken=\"", "to" + "ken: ", "--to" + "ken ", "sec" + "ret====", 'pass' + 'word="',
    "pass" + "word" + " " * 50, "aws key" + " " * 50, "aws ", "a.a://b:", "a://", "://", "?a=",
    "?key=" + MIXED, "bear" + "er ", "authorization: ", "Account" + "Key=aaa+",
    "-SG.aaaaaaaaaaaaaaaa", "key", "key{default", "key: a = ", "key>", "<key>", "pass is ",
    "machine a login ", "curl -u ", "mysql -p", "docker login ", "identified by ",
    "with password ", "cookie: a=", "Cookie: sid=" + MIXED, '"kty"', '"kty":"d":"', "echo a | b ",
    "\n:5432:", "*:*:*:*:a\n", "gh" + "p_", "sk-", "AAAA", "-stdin", "a:b | ",
    "private-lines: 1\n", "key\\", "key'", "user = a\npass" + "word = ", "name: key\n  value: ",
    "mnemonic: a ", "_auth=", "a_key_", "İkey=", MIXED, HEX, "a" * 50 + "=", "/" * 50, "a/", "..",
    "<" * 20, "${", "pw ", "pwd=;",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_redaction_takes_time_in_proportion_to_the_text(piece: str) -> None:
    def text(size: int) -> str:
        return piece * (size // len(piece))

    assert too_fast_growth(redact, text) is None
    assert too_fast_growth(redact, lambda size: text(size) + '"\n') is None


@pytest.mark.parametrize(
    "before", ["to" + "ken=", "to" + 'ken="', "pass" + "word: ", "https://a:", "-p"]
)
@pytest.mark.parametrize("letter", ["a", "A1", "@", "=", "/", "%", "&", "-"])
def test_one_long_value_takes_time_in_proportion(before: str, letter: str) -> None:
    assert too_fast_growth(redact, lambda size: before + letter * (2 * size)) is None


def test_many_members_take_time_in_proportion() -> None:
    def value(size: int) -> str:
        return json.dumps({"to" + f"ken{n}": {"pass" + "word": f"x{n}"} for n in range(size // 10)})

    redactor = Redactor()
    assert too_fast_growth(lambda text: redactor.redact_json(json.loads(text)), value) is None


@given(identifier=st.uuids())
def test_a_uuid_is_a_secret_by_its_name_alone_and_hides_none_beside_it(identifier: object) -> None:
    redactor, uuid = Redactor(), str(identifier)
    assert redactor.redact(uuid) == uuid
    plain: Json = {"uuid": uuid, "text": "the lamp is lit"}
    assert redactor.redact_json(plain) == plain
    assert uuid not in json.dumps(redactor.redact_json({"api" + "_key": uuid}))
    beside: Json = {"uuid": uuid, "text": f"ghp_{MIXED[:36]}"}
    assert MIXED[:36] not in json.dumps(redactor.redact_json(beside))


def test_a_text_that_was_harmless_hides_no_secret_beside_it_and_is_judged_by_its_name() -> None:
    redactor, long_text = Redactor(), "the lamp is lit " * 20
    plain: Json = {"statement": long_text, "again": long_text}
    assert redactor.redact_json(plain) == plain
    beside: Json = {"message": long_text, "text": f"ghp_{MIXED[:36]}"}
    redacted = redactor.redact_json(beside)
    assert MIXED[:36] not in json.dumps(redacted) and long_text in json.dumps(redacted)
    value = "-".join([MIXED[:36]] * 4)
    assert redactor.redact_json({"text": value}) == {"text": value}
    assert value not in json.dumps(redactor.redact_json({"api" + "_key": value}))
