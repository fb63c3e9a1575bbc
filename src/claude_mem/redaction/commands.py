"""Passwords and tokens in the arguments of well-known commands."""

import re
from collections.abc import Iterator

from claude_mem.redaction.spans import Span
from claude_mem.redaction.values import (
    is_gibberish,
    is_made_up,
    is_odd_password,
    is_password,
    looks_random,
)
from claude_mem.redaction.word_patterns import Rule, RuleSet, Subject, rule

KIND = "command-password"
_VALUE = r"[\"']?(?P<value>[^\s\"'-][^\s\"']{2,200})"
_TOKEN = r"[\"']?(?P<value>[^\s\"'-][^\s\"']{15,1000})"
_COMMAND = r"[^\n|;&]{0,200}?[ \t]"  # the rest of a command up to one of its options
_LINES = r"(?:[^\n]|\\\n){0,400}?\s"  # the same, continued on the next line
_USER = r"[\"']?[^\s\"':/]{1,100}:"
_OPTION = r"(?:[ \t]{1,4}-[\w-]{1,30}(?:[ =][^\s-]\S{0,80})?)"


def _is_token(value: str) -> bool:
    return looks_random(value) or is_gibberish(value)


def _is_typed(value: str) -> bool:
    """Whether the value is a password, and not a port, a file or a directory, which other commands
    have behind -p."""
    return is_password(value) and any(map(str.isalpha, value)) and "/" not in value.strip("/")


def _is_made_up(value: str) -> bool:
    return is_made_up(value) or _is_token(value)


def _password(word: str, *parts: str) -> Rule:
    begin = rf"\b{re.escape(word)}"
    return rule(word, KIND, begin, *parts, _VALUE, accept=is_password, whole=True)


def _token(word: str, *parts: str) -> Rule:
    begin = rf"\b{re.escape(word)}"
    return rule(word, "command-token", begin, *parts, _TOKEN, accept=_is_made_up, whole=True)


# What may stand between the name of a command and what it sets.
_SET_OPTIONS = r"(?:[ \t]{1,4}[^\s=\"'|;&]{1,100}(?=[ \t])){0,6}?[ \t]{1,4}"
_SET_VALUE = r"[\"']?(?P<value>[^\s\"'=-][^\s\"']{3,1000})"

COMMANDS = RuleSet((
    _password("sshpass", r"[ \t]{1,4}(?:-[a-z]+[ \t]{1,4}){0,2}-p[ \t]{0,4}"),
    rule(
        "login",
        KIND,
        r"\b(?:docker|podman|helm|oras|nerdctl|buildah|skopeo|crane|az|oc|cf|heroku|vault|registry)",
        r"\b[^\n|;&]{0,120}\blogin\b", _COMMAND, r"(?:-p|--password)[ =]{0,4}", _VALUE,
        accept=is_password,
        before=140,
    ),
    rule(
        "curl",
        KIND,
        r"\bcurl\b", _LINES, r"(?:-u|--user|--proxy-user|-U)[ \t=]{0,4}", _USER,
        r"(?P<value>[^\s\"']{3,200})",
        accept=is_password,
        whole=True,
    ),
    *(
        rule(
            word,
            KIND,
            rf"\b{word}(?:{_LINES})?(?:-a|--auth)[ \t=]{{1,4}}", _USER,
            r"(?P<value>[^\s\"']{3,200})",
            accept=is_password,
            whole=True,
        )
        for word in ("http ", "https ", "xh ", "xhs ")
    ),
    *(
        _password(word, r"\b", _COMMAND, "-p")
        for word in (
            "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mysqlcheck", "mariadb",
            "7z", "7za", "7zz", "unrar",
        )
    ),
    *(
        _password(word, r"\b", _COMMAND, r"-p[ \t]")
        for word in ("mongo", "mongosh", "mongodump", "mongorestore", "mongoimport", "mongoexport")
    ),
    _password("sqlcmd", r"\b", _COMMAND, r"-P[ \t]{0,4}"),
    _password("bcp ", r"[^\n|;&]{0,200}?[ \t]-P[ \t]{0,4}"),
    *(
        _password(word, r"\b", _COMMAND, r"-P[ \t]{1,4}")
        for word in ("mosquitto_pub", "mosquitto_sub", "zip", "unzip")
    ),
    _password("useradd", _COMMAND, r"-p[ \t]{1,4}"),
    _password("redis-cli", _COMMAND, r"(?:-a|--pass)[ \t]{1,4}"),
    *(
        _password(f"ldap{word}", r"\b", _COMMAND, r"-w[ \t]{1,4}")
        for word in ("search", "add", "modify", "delete", "whoami", "passwd")
    ),
    _password("smbclient", _COMMAND, r"-U[ \t]{0,4}[\"']?[^\s%]{1,80}%"),
    _password("lftp", _COMMAND, r"-u[ \t]{1,4}[\"']?[^\s,]{1,80},"),
    _password(
        "htpasswd",
        r"[ \t]{1,4}-\w{0,10}b\w{0,10}[ \t]{1,4}\S{1,100}[ \t]{1,4}\S{1,100}[ \t]{1,4}",
    ),
    _password("openssl enc", _COMMAND, r"-k[ \t]{1,4}"),
    *(
        _password(word, r"\b", _COMMAND, option, r"[ \t]{0,4}")
        for word, option in (
            ("dgst", "-hmac"), ("ipmitool", "-P"), ("ldappasswd", "-[asw]"), ("usermod", "-p"),
            ("unlock-keychain", "-p"), ("keychain", "-[pkP]"), ("add-generic-password", "-w"),
            ("add-internet-password", "-w"), ("rar", "-h?p"), ("plink", "-pw"), ("pscp", "-pw"),
            ("psftp", "-pw"), ("keygen", "-[NP]"), ("openvpn", "--askpass"), ("cqlsh", "-p"),
            ("beeline", "-p"), ("ncftpput", "-p"), ("ncftpget", "-p"), ("x11vnc", "-passwd"),
            ("snmpwalk", "-[AXc]"), ("snmpget", "-[AXc]"), ("snmpset", "-[AXc]"), ("bteq", "-p"),
            ("link", "-p"), ("kadmin", "-w"), ("kinit", "-w"), ("rpcclient", "-U[ \t]?\\S+%"),
            ("put-parameter", "--value"), ("create-secret", "--secret-string"),
            ("put-secret-value", "--secret-string"), ("keyvault", "--value"),
            ("secret:create", "--value"), ("secrets:create", "--value"), ("openconnect", "-p"),
            ("twine", "-p"), ("psexec", "-p"), ("evil-winrm", "-p"), ("crackmapexec", "-p"),
            ("xfreerdp", "/p:"), ("rdesktop", "-p"), ("nxc", "-p"), ("hydra", "-p"),
        )
    ),
    _password("openssl passwd", _OPTION.replace("?)", ")"), r"{0,3}[ \t]{1,4}"),
    _password("passwd -", r"[\w-]{1,10}[ \t]{1,4}"),
    _token("influx ", _COMMAND, r"-t[ \t]{1,4}"),
    _token("bearer -a", r"[ \t]{1,4}"),
    rule("-auth ", KIND, r"-auth[ \t]{1,4}", _USER, r"(?P<value>[^\s\"']{3,200})",
         accept=is_password),
    rule("-pass", KIND, r"-pass(?:in|out)?[ \t]{1,4}pass:", _VALUE, accept=is_password),
    rule(
        " -p",
        KIND,  # of any command that also has a user
        r"[ \t](?:-u|-U|--user|--username)[ =]?[^\s-]\S{0,80}",
        rf"{_OPTION}{{0,3}}[ \t]{{1,4}}-p[ =]?",
        _VALUE,
        accept=_is_typed,
        before=300,
    ),
    _token("nuget push", _COMMAND, r"-k[ \t]{1,4}"),
    _token("doctl ", r"(?:[^\n|;&]{0,100}?[ \t])?-t[ \t]{1,4}"),
    _token("codecov", _LINES, r"-t[ \t]{1,4}"),
    rule(
        "secret ",
        "command-token",
        r"\b(?:gh|wrangler|flyctl|fly|vercel|supabase|railway)\b[^\n|;&]{0,40}\bsecrets?\b",
        _COMMAND, r"(?:--body|-b|--value)[ =]?[\"']?(?P<value>[^\s\"'-][^\s\"']{7,1000})",
        accept=_is_token,
        before=60,
        whole=True,
    ),
))  # fmt: skip

# Commands that need no option for it.
PLAIN_COMMANDS = RuleSet((
    _password("sqlplus", r"[ \t]{1,4}(?:-\w+[ \t]{1,4}){0,3}[\w$#]{1,40}/"),
    *(_password(word, r"[ \t]{1,4}[\w$#]{1,40}/") for word in ("impdp", "expdp", "sqlldr", "rman")),
    rule(
        "jdbc:oracle",
        "url-password",
        r"(?i)jdbc:oracle:\w{1,10}:[\w$#]{1,40}/(?P<value>[^\s\"'@/]{3,100})@",
        accept=is_password,
        whole=True,
    ),
    *(
        _password(f"rabbitmqctl {word}", r"[ \t]{1,4}\S{1,60}[ \t]{1,4}")
        for word in ("add_user", "change_password")
    ),
    _password("mc alias set", r"[ \t]{1,4}\S{1,60}[ \t]{1,4}\S{1,200}[ \t]{1,4}\S{1,60}[ \t]{1,4}"),
    _password("net use", r"[ \t][^\n]{1,200}?/user:\S{1,80}[ \t]{1,4}"),
    _password("net use", r"[ \t]{1,4}(?:\w:[ \t]{1,4})?\\\\\S{1,200}[ \t]{1,4}(?!/)"),
    _password("net user", r"[ \t]{1,4}[\w.$-]{1,60}[ \t]{1,4}(?!/)"),
    *(
        rule(word, KIND, rf"(?i){word}(?:word|d)?[: =]", _VALUE, accept=is_password)
        for word in (" /pass", " /pw", " /rp")
    ),
    rule("signtool", KIND, r"\bsigntool\b[^\n]{1,200}? /p[ \t]", _VALUE, accept=is_password,
         whole=True),
    *(
        _password(word, r"[ \t]{1,4}(?:-[\w-]{1,20}[ \t]{1,4})?")
        for word in (
            "setcookie", "encrypt_string", "operator unseal", "bw unlock", "service install",
            "importprivkey", "insecure-password",
        )
    ),
    rule("auth ", KIND, r"(?im)(?:^|(?<=redis-cli )|(?<=> )|(?<=[>\"'`]))auth[ \t]",
         r"(?:[\w.-]{1,40}[ \t])?(?P<value>[^\s\"']{6,200})[\"'`]?[ \t]*$", accept=_is_made_up),
    rule("send ", KIND, r"\bsend[ \t]{1,4}(?:-- )?\"(?P<value>[^\s\"'$\\]{6,200})\\[rn]",
         accept=is_odd_password, whole=True),
    rule("move ", KIND, r"(?i)MOVE[ \t]{1,4}'(?P<value>[^'\n]{4,100})'\s{1,8}TO\s{1,8}[\w-]{0,40}"
         r"(?:password|passwd|secret|token)", accept=is_password, whole=True),

    rule("setuser ", KIND, r"(?i)\bsetuser[ \t]{1,4}[^\n]{1,120}?[ \t]>(?P<value>[^\s\"']{4,200})",
         accept=is_password, whole=True),
    _password("set-env", r"[ \t]{1,4}[\w.-]{1,60}[ \t]{1,4}[\w.-]{1,80}[ \t]{1,4}"),
    *(  # NAME=value, NAME value or -b value behind what sets secrets
        rule(
            word, "command-token", rf"\b{re.escape(word)}\b", _SET_OPTIONS,
            r"(?:(?:--body|--value|--data|-b|-v)[ =]?|[\"']?[\w.:/\[\]-]{1,80}"
            r"(?:=|[ \t]{1,4}(?!\S+[ \t]+[^\s-])))", _SET_VALUE,
            accept=_is_made_up, whole=True,
        )
        for word in (
            "secret set", "secret add", "secrets set", "secrets:set", "env:set", "env set",
            "config:set", "variable set", "variables set", "kv put", "vault write",
            "chamber write", "secret put", "config set --secret", "functions:config:set",
            "item create", "consul kv",
        )
    ),
    rule("kv put", KIND, r"\bkv put[ \t]{1,4}\S{1,100}[ \t]{1,4}[\w-]{1,60}=", _VALUE,
         accept=is_password, whole=True),
    rule("--from-literal", "command-token", r"--from-literal[= ][\"']?[\w.-]{1,80}=", _VALUE,
         accept=is_password),
    *(
        _token(word, r"[ \t]{1,4}")
        for word in ("auth token", "snyk auth", "semgrep auth")
    ),
    _token("github-oauth.", r"\S{1,60}[ \t]{1,4}"),
    rule("rclone", KIND, r"\brclone\b[^\n]{1,200}?[ \t]pass(?:word)?[ =]", _VALUE,
         accept=is_password, whole=True),
    rule("login=", KIND, r"\blogin=[\w.@-]{1,60}:(?P<value>[^\s\"']{4,200})", accept=is_password,
         whole=True),
    rule("<auth-user-pass>", KIND,
         r"<auth-user-pass>\s{1,8}\S{1,80}\s{1,8}(?P<value>[^\s<]{4,200})", accept=is_password),
    *(
        rule(f"]:{port}", KIND, rf"\]:{port}[ \t]{{1,8}}[\w.@+-]{{1,80}}:", _VALUE,
             accept=is_password)
        for port in (587, 465, 25)
    ),
    rule("user ", KIND, r"user[ \t]{1,4}[\w.@-]{1,60}[ \t]{1,4}",
         r"(?P<value>[^\s\"':=]{6,100})[ \t]*(?:\n|\Z)", accept=is_odd_password, whole=True),
    rule(",pass", KIND, r"-o[ \t]{1,4}[\w,=.@/-]{0,200}?,pass(?:word)?=(?P<value>[^\s\"',]{4,200})",
         accept=is_password, before=200),
    rule("access key [", "command-token", r"(?i)access key \[[^\]\n]{0,40}\]: ?", _TOKEN,
         accept=_is_token),
    rule("--set ", KIND, r"--set[ \t]{1,4}'(?:\[\"[\w.-]{1,60}\"\]){1,6}[ \t]",
         r"\"(?P<value>[^\"\n]{4,200})", accept=is_password),
    rule("/p:", KIND, r"/p:", _VALUE, accept=is_odd_password, whole=True),
    rule("http-basic.", KIND, r"http-basic\.\S{1,100}[ \t]{1,4}(?:\S{1,60}[ \t]{1,4})?", _VALUE,
         accept=is_password, whole=True),
    _token("vault login", r"[ \t]{1,4}(?:token=)?"),
    _token("cargo login", r"[ \t]{1,4}"),
    _token("setapikey", r"[ \t]{1,4}"),
    _token("authtoken", r"[ \t]{1,4}"),
    _token("pypi-token.", r"[\w-]{1,40}[ \t]{1,4}"),
    _token("bundle config", r"[ \t]{1,4}(?:set[ \t]{1,4})?(?:--\w+[ \t]{1,4})?\S{1,80}[ \t]{1,4}"),
    rule("kv put", KIND,
         r"\bkv put[ \t]{1,4}\S{0,100}(?:password|passwd|secret|token|key)[ \t]{1,4}", _VALUE,
         accept=is_password, whole=True),
    rule("configure set", "command-token",
         r"\bconfigure set[ \t]{1,4}\S{0,60}(?:secret|token|key)\S{0,20}[ \t]{1,4}", _TOKEN,
         accept=_is_token, whole=True),
    rule("user-secrets set", KIND,
         r"\buser-secrets set[ \t]{1,4}[\"']?[\w:.-]{0,60}(?i:pass\w{0,4}|secret|token|key)[\"']?",
         r"[ \t]{1,4}", _VALUE, accept=is_password, whole=True),
    rule("<<<", KIND,
         r"(?:\b(?:kinit|login|passwd|token|stdin)\b|\bsudo -S\b|secret)[^\n]{0,80}<<<[ \t]{0,4}",
         _VALUE,
         accept=is_password, before=120),
    rule("chpasswd", KIND,
         r"[\w.-]{1,40}:(?P<value>[^\s\"':|]{3,200})[\"']?[ \t]{0,4}\|[ \t]{0,4}"
         r"(?:sudo[ \t]{1,4})?chpasswd", accept=is_password, before=260, whole=True),
    *(
        rule(word, KIND,
             r"\b(?:echo|printf)[ \t]{1,4}(?:-n[ \t]{1,4})?[\"']?(?P<value>[^\s\"'|]{6,400})[\"']?",
             rf"[ \t]{{0,4}}\|[^\n|]{{0,100}}(?i:{word})\b", accept=is_password, before=520,
             whole=True)
        for word in (
            "-stdin", "--with-token", "sudo -s", "kinit", "runas", "secret create", "secret set",
            "secrets create", "secrets set", "secret put", "env add", "versions add", "cryptsetup",
            "smbpasswd", "vault login",
        )
    ),
    rule("assword", KIND,
         r"assword[:?*]{0,3}\s?\*?[\"'][^\n]{0,20}(?:\n[^\n]{0,20}?)?",
         r"\bsend(?:line)?[ \t(]{1,4}(?:-- )?[\"'](?P<value>[^\s\"'$\\]{4,200})",
         accept=is_password),
))  # fmt: skip


def find_command_secrets(subject: Subject) -> Iterator[Span]:
    if " -" in subject.text:
        yield from COMMANDS.find(subject)
    yield from PLAIN_COMMANDS.find(subject)
