"""Made-up secrets of many kinds, each in the text that it would stand in. The same for a seed.

No value here was ever anyone's: all are drawn from a seeded generator, in the shape that the
issuer documents. Values are put together from parts, so that no scanner takes this file for a leak.
"""

import base64
import random
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
        """As people and generators make them."""
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


# What issuers prefix or shape; the part behind the prefix is what must be gone.
VENDORS: dict[str, str] = {
    "1password-secret-key": "A3-[U:6]-[U:6]-[U:5]-[U:5]-[U:5]-[U:5]",
    "1password-service-token": "ops_eyJ[a:300]",
    "adafruit": "aio_[a:28]",
    "adobe-client-secret": "p8e-[l:32]",
    "age": "AGE-SECRET-KEY-1[q:58]",
    "airtable-pat": "pat[a:14].[h:64]",
    "alibaba-key-id": "LTAI[a:20]",
    "anthropic": "sk-ant-api03-[u:93]AA",
    "anthropic-admin": "sk-ant-admin01-[u:93]AA",
    "artifactory-key": "AKCp[a:69]",
    "artifactory-reference": "cmVmd[a:59]",
    "atlassian": "ATATT3[e:186]",
    "aws-key-id": "AKIA[B:16]",
    "aws-temporary-key-id": "ASIA[B:16]",
    "azure-client-secret": "[a:3][9:1]Q~[t:34]",
    "bitbucket-app-password": "ATBB[a:28][H:8]",
    "buildkite": "bkua_[h:40]",
    "cargo": "cio[a:32]",
    "circleci": "CCIPAT_[a:22]_[h:40]",
    "clickhouse": "4b1d[a:38]",
    "clojars": "CLOJARS_[l:60]",
    "cloudflare-origin": "v1.0-[h:24]-[h:146]",
    "contentful-pat": "CFPAT-[u:43]",
    "databricks": "dapi[h:32]",
    "defined-networking": "dnkey-[B:26]-[B:52]",
    "digitalocean": "dop_v1_[h:64]",
    "digitalocean-refresh": "dor_v1_[h:64]",
    "docker-hub": "dckr_pat_[u:27]",
    "doppler": "dp.pt.[a:43]",
    "doppler-service": "dp.st.prd.[a:43]",
    "duffel": "duffel_test_[u:43]",
    "dynatrace": "dt0c01.[U:24].[U:64]",
    "easypost": "EZAK[a:54]",
    "facebook-page": "EAAC[a:160]",
    "figma": "figd_[u:40]",
    "flutterwave": "FLWSECK_TEST-[h:32]-X",
    "fly": "fo1_[u:43]",
    "fly-macaroon": "fm2_[b:160]",
    "frameio": "fio-u-[u:64]",
    "github-pat": "ghp_[a:36]",
    "github-app": "ghs_[a:36]",
    "github-oauth": "gho_[a:36]",
    "github-fine-grained": "github_pat_[a:22]_[a:59]",
    "gitlab-pat": "glpat-[u:20]",
    "gitlab-runner": "glrt-[u:20]",
    "gitlab-deploy": "gldt-[u:20]",
    "gitlab-feed": "glft-[u:20]",
    "gitlab-trigger": "glptt-[h:40]",
    "gitlab-runner-registration": "GR1348941[u:20]",
    "google-api": "AIza[u:35]",
    "google-oauth-access": "ya29.[u:120]",
    "google-oauth-secret": "GOCSPX-[u:28]",
    "google-refresh": "1//0[u:100]",
    "grafana-service": "glsa_[a:32]_[h:8]",
    "grafana-cloud": "glc_[b:80]",
    "grafana-key": "eyJrIjoi[a:90]",
    "groq": "gsk_[a:52]",
    "harness": "pat.[u:22].[a:24].[a:20]",
    "heroku-v2": "HRKU-AA[u:58]",
    "hubspot": "pat-na1-[uuid]",
    "huggingface": "hf_[L:34]",
    "huggingface-organisation": "api_org_[L:34]",
    "infracost": "ico-[a:32]",
    "intercom": "dG9rO[b:55]",
    "intra42": "s-s4t2ud-[h:64]",
    "langsmith": "lsv2_pt_[h:32]_[h:10]",
    "linear": "lin_api_[a:40]",
    "mailchimp": "[h:32]-us[2:1][9:1]",
    "mailgun": "key-[h:32]",
    "mapbox-secret": "sk.eyJ[a:80].[u:22]",
    "maxmind": "[a:6]_[a:29]_mmk",
    "netlify": "nfp_[a:40]",
    "new-relic-user": "NRAK-[U:27]",
    "new-relic-insert": "NRII-[u:32]",
    "new-relic-license": "[h:36]NRAL",
    "notion": "ntn_[9:11][a:35]",
    "notion-old": "secret_[a:43]",
    "npm": "npm_[a:36]",
    "nuget": "oy2[l:43]",
    "nvidia": "nvapi-[u:64]",
    "octopus": "API-[U:26]",
    "openai": "sk-[a:20]T3BlbkFJ[a:20]",
    "openai-project": "sk-proj-[u:74]T3BlbkFJ[u:74]",
    "openrouter": "sk-or-v1-[h:64]",
    "openshift": "sha256~[u:43]",
    "perplexity": "pplx-[a:48]",
    "plaid": "access-sandbox-[uuid]",
    "planetscale": "pscale_tkn_[u:43]",
    "planetscale-password": "pscale_pw_[u:43]",
    "posthog": "phx_[a:43]",
    "postman": "PMAK-[h:24]-[h:34]",
    "prefect": "pnu_[a:36]",
    "pulumi": "pul-[h:40]",
    "pypi": "pypi-AgEIcHlwaS5vcmc[u:120]",
    "readme": "rdme_[l:70]",
    "replicate": "r8_[a:37]",
    "resend": "re_[a:8]_[a:24]",
    "rubygems": "rubygems_[h:48]",
    "scalingo": "tk-us-[u:48]",
    "sendgrid": "SG.[u:22].[u:43]",
    "sendinblue": "xkeysib-[h:64]-[a:16]",
    "sentry-user": "sntryu_[h:64]",
    "sentry-organisation": "sntrys_eyJpYXQiO[b:120]_[b:43]",
    "settlemint": "sm_pat_[a:16]",
    "shippo": "shippo_live_[h:40]",
    "shopify": "shpat_[h:32]",
    "shopify-shared": "shpss_[h:32]",
    "slack-bot": "xoxb-[9:12]-[9:12]-[a:24]",
    "slack-user": "xoxp-[9:12]-[9:12]-[9:12]-[h:32]",
    "slack-app": "xapp-1-A[U:10]-[9:13]-[h:64]",
    "slack-refresh": "xoxe-1-[U:146]",
    "sonarqube": "sqp_[h:40]",
    "sourcegraph": "sgp_[h:16]_[h:40]",
    "square": "sq0atp-[u:22]",
    "square-production": "EAAA[u:60]",
    "stripe-live": "sk_live_[a:24]",
    "stripe-restricted": "rk_live_[a:99]",
    "stripe-webhook": "whsec_[a:32]",
    "supabase": "sbp_[h:40]",
    "tailscale": "tskey-auth-[a:12]-[a:32]",
    "telegram": "[1:10]:AA[u:33]",
    "terraform-cloud": "[a:14].atlasv1.[u:64]",
    "twilio": "SK[h:32]",
    "typeform": "tfp_[d:59]",
    "vault-service": "hvs.[u:95]",
    "vault-batch": "hvb.[u:150]",
    "xai": "xai-[a:80]",
    "yandex-key": "AQVN[u:36]",
    "yandex-token": "t1.[a:40].[u:86]",
}  # fmt: skip

# Vendors whose keys have no shape: the name must do.
NAMED: dict[str, str] = {
    "algolia": "[l:32]",
    "asana": "[l:32]",
    "bitbucket": "[l:32]",
    "bittrex": "[l:32]",
    "cloudflare": "[u:40]",
    "codecov": "[l:32]",
    "cohere": "[a:40]",
    "coinbase": "[l:64]",
    "confluent": "[l:64]",
    "contentful": "[u:43]",
    "datadog": "[l:40]",
    "discord": "[h:64]",
    "droneci": "[l:32]",
    "etsy": "[l:24]",
    "facebook": "[h:32]",
    "fastly": "[u:32]",
    "finicity": "[h:32]",
    "flickr": "[l:32]",
    "freshbooks": "[l:64]",
    "gitter": "[l:40]",
    "heroku": "[uuid]",
    "jfrog": "[a:73]",
    "kraken": "[b:84]==",
    "kucoin": "[h:24]",
    "launchdarkly": "[u:40]",
    "linkedin": "[a:16]",
    "mattermost": "[l:26]",
    "messagebird": "[a:25]",
    "nytimes": "[a:32]",
    "okta": "00[u:40]",
    "plaid-secret": "[h:30]",
    "rapidapi": "[l:50]",
    "sendbird": "[h:40]",
    "snyk": "[uuid]",
    "squarespace": "[uuid]",
    "sumologic": "[a:64]",
    "travis": "[a:22]",
    "twitch": "[l:30]",
    "twitter": "[a:50]",
    "zendesk": "[a:64]",
}

# Where a token stands.
AROUND = (
    "The deploy fails. I tried it with {} and it says 403.",
    "curl -s -H 'X-Api-Key: {}' https://api.lamp.dev/v1/lights",
    "[12:04:11] INFO using credentials {} for region eu-1\n[12:04:12] INFO done",
    "# .env\nLAMP_HOST=localhost\nLAMP_TOKEN={}\nLAMP_PORT=8080\n",
    'client = LampClient(token="{}", timeout=30)',
    '{{\n  "host": "lamp.dev",\n  "apiKey": "{}",\n  "retries": 3\n}}',
    "    access_token: {}\n    region: eu-1\n",
    "diff --git a/conf.py b/conf.py\n-TOKEN = ''\n+TOKEN = '{}'\n",
    "     4\u2192const client = new Lamp('{}');\n     5\u2192client.on();",
)

# Ways to give a name its value, with the value of a password, a random token or letters alone.
_Case = tuple[str, str, str]  # kind, text with {}, sort of value
SYNTAX: tuple[_Case, ...] = (
    ("flag-long-space", "lampctl login --token {} --region eu-1", "token"),
    ("flag-long-equals", "lampctl --api-key={} lights list", "token"),
    ("flag-password", "lampctl connect --user admin --password {} --tls", "password"),
    ("flag-password-letters", "lampctl connect --user admin --password '{}' --tls", "letters"),
    ("flag-single-dash", "keytool -list -keystore a.jks -storepass {} -v", "password"),
    ("flag-secret", "vaultctl put --client-secret \"{}\"", "token"),
    ("flag-in-list", 'subprocess.run(["lampctl", "--token", "{}", "on"])', "token"),
    ("curl-user", "curl -u admin:{} https://lamp.dev/api", "password"),
    ("curl-user-long", "curl --user 'deploy:{}' -X POST https://lamp.dev/api", "password"),
    ("mysql-joined", "mysql -h db.lamp.dev -u root -p{} lamps < dump.sql", "password"),
    ("mysqldump-joined", "mysqldump -u app -p'{}' lamps > dump.sql", "password"),
    ("sshpass", "sshpass -p {} ssh deploy@lamp.dev uptime", "password"),
    ("sshpass-quoted", "sshpass -p '{}' scp a.tar deploy@lamp.dev:/srv", "password"),
    ("docker-login", "docker login -u deploy -p {} registry.lamp.dev", "password"),
    ("docker-login-long", "docker login r.lamp.dev --username deploy --password {}", "password"),
    ("helm-login", "helm registry login registry.lamp.dev -u deploy -p {}", "password"),
    ("redis-cli", "redis-cli -h cache.lamp.dev -a {} ping", "password"),
    ("openssl-passin", "openssl rsa -in key.pem -passin pass:{} -out plain.pem", "password"),
    ("ldapsearch", "ldapsearch -x -D cn=admin,dc=lamp -w {} -b dc=lamp", "password"),
    ("htpasswd", "htpasswd -b /etc/nginx/htpasswd deploy {}", "password"),
    ("typed-python", 'API_KEY: str = "{}"', "token"),
    ("typed-typescript", 'const apiKey: string = "{}";', "token"),
    ("typed-rust", 'const API_SECRET: &str = "{}";', "token"),
    ("typed-go", 'var clientSecret string = "{}"', "token"),
    ("typed-kotlin", 'val dbPassword: String = "{}"', "password"),
    ("typed-optional", 'db_password: Optional[str] = "{}"', "password"),
    ("short-go", 'token := "{}"', "token"),
    ("java-string", 'private static final String DB_PASSWORD = "{}";', "password"),
    ("csharp-verbatim", 'var password = @"{}";', "password"),
    ("c-array", 'static const char api_key[] = "{}";', "token"),
    ("c-define", '#define WIFI_PASSWORD "{}"', "password"),
    ("c-define-key", '#define API_KEY "{}"', "token"),
    ("subscript", 'os.environ["STRIPE_KEY"] = "{}"', "token"),
    ("subscript-password", "config['db_password'] = '{}'", "password"),
    ("call", 'System.setProperty("api.token", "{}");', "token"),
    ("call-define", "define('DB_PASSWORD', '{}');", "password"),
    ("call-setter", 'dataSource.setPassword("{}");', "password"),
    ("call-with", '.withSecretKey("{}")', "token"),
    ("backticks", "const token = `{}`;", "token"),
    ("backticks-go", "password := `{}`", "password"),
    ("bytes", 'SECRET_KEY = b"{}"', "token"),
    ("bytes-single", "HMAC_KEY = b'{}'", "token"),
    ("hash-rocket", "'password' => '{}',", "password"),
    ("symbol-rocket", ":client_secret => '{}',", "token"),
    ("ruby-or", "ENV['API_TOKEN'] ||= '{}'", "token"),
    ("make-conditional", "DEPLOY_TOKEN ?= {}", "token"),
    ("make-simple", "DEPLOY_TOKEN := {}", "token"),
    ("json", '{{"user": "app", "password": "{}"}}', "password"),
    ("json-escaped", 'body = "{{\\"password\\": \\"{}\\"}}"', "password"),
    ("json-letters", '{{"user": "app", "password": "{}"}}', "letters"),
    ("env-pass", "SMTP_PASS={}", "password"),
    ("env-pwd", "MYSQL_PWD={}", "password"),
    ("env-pw", "export ADMIN_PW={}", "password"),
    ("env-key", "SENDING_KEY={}", "token"),
    ("env-secret", "JWT_SECRET={}", "token"),
    ("env-letters", "POSTGRES_PASSWORD={}", "letters"),
    ("env-quoted", 'export GRAFANA_PASSWORD="{}"', "password"),
    ("env-docker", "docker run -e POSTGRES_PASSWORD={} -p 5432:5432 postgres:16", "password"),
    ("env-dockerfile", "ENV NPM_TOKEN={}", "token"),
    ("env-dockerfile-space", "ENV API_TOKEN {}", "token"),
    ("env-powershell", '$env:API_KEY = "{}"', "token"),
    ("env-setx", 'setx DB_PASSWORD "{}"', "password"),
    ("yaml", "database:\n  user: app\n  password: {}\n", "password"),
    ("yaml-quoted", "api_key: '{}'", "token"),
    ("yaml-env", "      - name: DB_PASSWORD\n        value: \"{}\"\n", "password"),
    ("yaml-upper", "  POSTGRES_PASSWORD: {}\n", "password"),
    ("toml", 'secret_key = "{}"', "token"),
    ("ini", "[database]\nuser = app\npassword = {}\n", "password"),
    ("properties", "spring.datasource.password={}", "password"),
    ("properties-token", "gradle.publish.token={}", "token"),
    ("connection-string", "Server=db;Database=lamps;User Id=app;Password={};", "password"),
    ("odbc", "DRIVER={{PostgreSQL}};SERVER=db;UID=app;PWD={};", "password"),
    ("xml", "<password>{}</password>", "password"),
    ("xml-lines", "<apiToken>\n    {}\n</apiToken>", "token"),
    ("xml-maven", "<server>\n  <username>ci</username>\n  <password>{}</password>", "password"),
    ("xml-nuget", '<add key="ClearTextPassword" value="{}" />', "password"),
    ("xml-attribute", '<dataSource url="jdbc:x" password="{}"/>', "password"),
    ("terraform-default", 'variable "db_password" {{\n  type = string\n  default = "{}"\n}}',
     "password"),
    ("terraform-argument", '  administrator_login_password = "{}"', "password"),
    ("k8s-tls-key", "data:\n  tls.crt: LS0tLS1CRUdJTg==\n  tls.key: {}\n", "base64"),
    ("k8s-password", "kind: Secret\ndata:\n  password: {}\n", "base64-short"),
    ("npmrc-token", "//registry.npmjs.org/:_authToken={}", "token"),
    ("npmrc-password", "//registry.lamp.dev/:_password={}", "base64-short"),
    ("pypirc", "[pypi]\nusername = ci\npassword = {}\n", "password"),
    ("netrc", "machine api.lamp.dev\n  login ci\n  password {}\n", "password"),
    ("netrc-line", "machine api.lamp.dev login ci password {}", "password"),
    ("netrc-default", "default login ci password {}", "password"),
    ("pgpass", "db.lamp.dev:5432:lamps:app:{}\n", "password"),
    ("pgpass-star", "*:*:*:postgres:{}", "password"),
    ("sql-identified", "CREATE USER 'app'@'%' IDENTIFIED BY '{}';", "password"),
    ("sql-identified-with", "ALTER USER app IDENTIFIED WITH x BY '{}';", "password"),
    ("sql-oracle", 'CREATE USER app IDENTIFIED BY "{}"', "password"),
    ("sql-postgres", "ALTER USER app WITH PASSWORD '{}';", "password"),
    ("sql-role", "CREATE ROLE app LOGIN ENCRYPTED PASSWORD '{}';", "password"),
    ("sql-mssql", "CREATE LOGIN app WITH PASSWORD = '{}';", "password"),
    ("url-postgres", "postgres://app:{}@db.lamp.dev:5432/lamps", "url-password"),
    ("url-redis", "redis://:{}@cache:6379/0", "url-password"),
    ("url-mongo", "mongodb+srv://app:{}@cluster0.lamp.mongodb.net/lamps", "url-password"),
    ("url-amqp", "amqps://guest2:{}@mq.lamp.dev/vhost", "url-password"),
    ("url-git", "git clone https://ci:{}@git.lamp.dev/lamps.git", "token"),
    ("url-user-token", "https://{}@git.lamp.dev/lamps.git", "token"),
    ("url-oauth2", "https://oauth2:{}@gitlab.com/lamps/lamps.git", "token"),
    ("url-remote-query", "\turl = https://git.lamp.dev/lamps.git?private_token={}", "token"),
    ("url-query", "GET https://api.lamp.dev/v1?access_token={}&page=2", "token"),
    ("url-query-key", "fetch('https://maps.lamp.dev/js?key={}&v=3')", "token"),
    ("url-sas", "https://lamps.blob.core.windows.net/a?sv=2022-11-02&sr=b&sig={}", "base64-url"),
    ("url-presigned", "https://lamps.s3.amazonaws.com/a?X-Amz-Date=1&X-Amz-Signature={}", "hex64"),
    ("url-telegram", "https://api.telegram.org/bot{}/sendMessage", "telegram"),
    ("url-discord", "https://discord.com/api/webhooks/112233445566778899/{}", "webhook"),
    ("url-slack", "https://hooks.slack" + ".com/services/T01ABCDEF/B01ABCDEF/{}", "token"),
    ("url-sentry", "SENTRY_DSN=https://{}@o112233.ingest.sentry.io/445566", "hex32"),
    ("header-bearer", "Authorization: Bear" + "er {}", "token"),
    ("header-basic", "curl -H 'Authorization: Bas" + "ic {}' https://lamp.dev", "basic"),
    ("header-token", "-H \"Authorization: token {}\"", "token"),
    ("header-api-key", "X-Api-Key: {}", "token"),
    ("header-gitlab", "curl --header 'PRIVATE-TOKEN: {}' https://gitlab.com/api", "token"),
    ("header-vault", "X-Vault-Token: {}", "token"),
    ("header-python", "headers = {{'Authorization': 'Bearer {}'}}", "token"),
    ("cookie", "Cookie: theme=dark; sessionid={}; lang=en", "session"),
    ("set-cookie", "Set-Cookie: session={}; Path=/; HttpOnly", "session"),
    ("cookie-php", "curl -b 'PHPSESSID={}' https://lamp.dev", "session"),
    ("cookie-java", "JSESSIONID={}", "session"),
    ("cookie-express", "connect.sid=s%3A{}", "session"),
    ("docker-auth", '{{"auths": {{"registry.lamp.dev": {{"auth": "{}"}}}}}}', "basic"),
    ("npmrc-auth", "_auth={}", "basic"),
    ("dockerconfigjson", "data:\n  .dockerconfigjson: {}\n", "dockerconfig"),
    ("jwt", "the session token is {} now", "jwt"),
    ("jwe", "id_token: {}", "jwe"),
    ("azure-storage", "DefaultEndpointsProtocol=https;AccountName=l;AccountKey={};", "base64-64"),
    ("azure-bus", "Endpoint=sb://l.servicebus.windows.net/;SharedAccessKey={}", "base64"),
    ("aws-secret", "aws_secret_access_key = {}", "aws"),
    ("aws-secret-env", "AWS_SECRET_ACCESS_KEY={}", "aws"),
    ("gcp-wireguard", "[Interface]\nPrivateKey = {}\nAddress = 10.0.0.2/24", "base64"),
    ("secret-letters", 'client_secret = "{}"', "random-letters"),
    ("token-letters", 'auth_token: "{}"', "random-letters"),
    ("key-letters", "API_KEY={}", "random-letters"),
    ("password-letters", 'db_password = "{}"', "letters"),
    ("pem-rsa", "{}", "pem-rsa"),
    ("pem-ec", 'key = """{}"""', "pem-ec"),
    ("pem-openssh", "cat ~/.ssh/id_ed25519\n{}", "pem-openssh"),
    ("pem-pkcs8", '"private_key": "{}"', "pem-escaped"),
    ("pem-pgp", "{}", "pem-pgp"),
    ("ppk", "{}", "ppk"),
)  # fmt: skip


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _basic(m: Maker) -> str:
    return _encoded(f"{m.word()}:{m.password()}")


SORTS: dict[str, Value] = {
    "password": Maker.password,
    "url-password": lambda m: m.pick(m.word() + m.some(DIGITS, 3), m.some(ALNUM, 16)),
    "letters": Maker.letters_password,
    "random-letters": lambda m: m.some(LOWER + UPPER, 24),
    "token": lambda m: m.some(m.pick(ALNUM, URL, HEX, LOWER + DIGITS), m.size(20, 24, 32, 40)),
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
             "pem-escaped": key, "pem-pgp": f"PGP {key} BLOCK"}[sort]  # fmt: skip
    text, body = _pem(m, label)
    return text.replace("\n", "\\n") if sort == "pem-escaped" else text, body.splitlines()[5]


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
        ways = (f"{name.upper()}_TOKEN={{}}", f'{camel}ApiKey = "{{}}"', f'"{name}_secret": "{{}}"')
        for way in maker.chance.sample(ways, min(of_each, len(ways))):
            secret = fill(template, maker)
            planted.append(Planted(kind, way.format(secret), secret))
    for kind, around, sort in SYNTAX:
        for _ in range(of_each):
            shown, secret = _file(maker, sort) if sort not in SORTS else (SORTS[sort](maker),) * 2
            planted.append(Planted(kind, around.format(shown), secret))
    return planted
