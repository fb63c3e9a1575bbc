"""What a prompt is about, and what it names: of the words that the user typed, or of the plan that
they confirmed. Of a URL only the end counts: the rest is the same in every prompt."""

import re
from dataclasses import dataclass

from claude_mem.language.prompt import parse_prompt

MAX_PROMPT = 8_000  # characters that are read
MAX_TYPED = 800  # a prompt says first what it is about

_COMMAND = re.compile(r"/[A-Za-z][\w:-]*(?:\s|$)")
_PLAN = re.compile(r"\s*implement the following plan:", re.IGNORECASE)
_HEADING = re.compile(
    r"^#{1,6} (?:(?:plan: ?)|(?:context|summary|goal|overview|background)$)?", re.I | re.M
)
_FENCED = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_URL = re.compile(r"https?://([^\s<>\"')\]]+)")
_URL_PARTS = re.compile(r"[/#?&=]")


def typed_text(prompt: str) -> str:
    """Returns the typed text; empty for commands, messages of the client, and prompts that are
    pasted as a whole."""
    typed = _HEADING.sub("", _subject(prompt)).strip()
    return _URL.sub(_end_of_url, typed).strip()[:MAX_TYPED]


def _subject(prompt: str) -> str:
    """What the user typed; of a plan, the plan."""
    parsed = parse_prompt(prompt)
    if parsed.sender != "user" or _COMMAND.match(parsed.typed):
        return ""
    if plan := _PLAN.match(parsed.own):
        return _FENCED.sub("", parsed.own[plan.end() : MAX_PROMPT]).strip()
    return parsed.typed[:MAX_PROMPT]


def _end_of_url(match: re.Match[str]) -> str:
    """Returns "issues 12" of https://host/owner/name/issues/12."""
    parts = [part for part in _URL_PARTS.split(match[1]) if part]
    return " ".join(parts[-2:] if len(parts) > 3 else parts[1:][-1:])


# What a prompt names: files, identifiers, branches, issues and pull requests.
#
# A pasted plan is no question, but the names in it say which earlier work it is about.

MAX_NAMES = 24  # a prompt names first what it is about
SHORTEST_NAME = 5
_TOKEN = re.compile(r"[\w@#/\\.:-]{3,200}")
_REQUEST = re.compile(r"(?:^|/)(?:pull|issues|merge_requests|pull-requests)/(\d{2,7})\b")
_NUMBER = re.compile(r"#(\d{2,7})$")
_NUMBER_AFTER = re.compile(r"\b(?:pr|issue|pull request|mr|ticket) #?(\d{2,7})\b", re.IGNORECASE)
_FILE = re.compile(r"[\w@.-]{1,80}\.[a-z][a-z0-9]{0,5}$")
_SITES = (".com", ".org", ".net", ".io", ".dev", ".ai")
_ABBREVIATIONS = ("e.g", "i.e")
_LINE_NUMBER = re.compile(r":\d[\d:-]{0,20}$")
_IDENTIFIER = re.compile(
    r"(?:[a-z][a-z0-9]{0,40}[A-Z]|[A-Z][a-z0-9]{1,40}[A-Z])\w{1,80}$|[A-Za-z]\w{0,60}_\w{1,60}$"
)
# What every project has.
_EVERYWHERE = """typescript javascript typeerror referenceerror syntaxerror rangeerror valueerror
keyerror github gitlab bitbucket node.js next.js vue.js macos powershell vscode jetbrains graphql
readme.md changelog.md license.md claude.md agents.md gemini.md skill.md package.json
package-lock.json tsconfig.json pyproject.toml cargo.toml go.mod go.sum readfile writefile
readfilesync writefilesync usestate useeffect usememo usecallback useref classname innerhtml
addeventlistener settimeout setinterval console.log"""
_COMMON = frozenset(_EVERYWHERE.split())
# Names that many folders have a file of: the folder is part of the name.
_IN_MANY_FOLDERS = re.compile(
    r"(?:index|main|mod|lib|__init__|types|utils|page|route|config)\.\w+$"
)
_SEPARATOR = re.compile(r"[/\\]")


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    is_file: bool = False
    is_number: bool = False  # of an issue or a pull request


def names_in(prompt: str) -> list[Name]:
    """Each once, in their order; none of commands and messages of the client."""
    text = _subject(prompt)
    names: dict[str, Name] = {}
    for number in _NUMBER_AFTER.findall(text):
        names.setdefault(number, Name(number, is_number=True))
    for token in _TOKEN.findall(text):
        if (name := _name(token.strip("`'\".:@/\\-"))) is not None:
            names.setdefault(name.text.lower(), name)
    for common in _COMMON & names.keys():
        del names[common]
    stems = {name.text.rpartition(".")[0].lower() for name in names.values() if name.is_file}
    distinct = [name for name in names.values() if name.is_file or name.text.lower() not in stems]
    return distinct[:MAX_NAMES]


def _name(token: str) -> Name | None:
    if request := _REQUEST.search(token) or _NUMBER.search(token):
        return Name(request[1], is_number=True)
    if "://" in token or "//" in token:
        return None
    parts = _SEPARATOR.split(_LINE_NUMBER.sub("", token))
    last = parts[-1]
    if _FILE.match(last) and not last.endswith(_SITES) and last not in _ABBREVIATIONS:
        is_ambiguous = len(parts) > 1 and _IN_MANY_FOLDERS.match(last)
        return Name("/".join(parts[-2:]) if is_ambiguous else last, is_file=True)
    if len(parts) > 1 and "-" in last and "." not in token:
        return Name(token)  # a branch
    if len(parts) == 1 and len(last) >= SHORTEST_NAME and _IDENTIFIER.match(last):
        return Name(last)
    return None
