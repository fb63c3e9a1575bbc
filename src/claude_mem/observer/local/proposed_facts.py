"""Facts that a turn reveals besides its commands: what the user decided, branches, commits and pull
requests that came of it, places and obstacles."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from claude_mem.observer.local.any_case import AnyCase
from claude_mem.observer.local.markdown import sentences
from claude_mem.observer.local.tool_uses import (
    AMENDS,
    CLIENT_FILES,
    EDITING,
    READ_COMMAND,
    READ_LINE,
    READ_OUTPUT,
    commit_subject,
    output_of,
    path_of,
    relative,
)
from claude_mem.observer.local.user_rules import certain_sentences
from claude_mem.store.obstacles import REMEDY_SEPARATOR
from claude_mem.text import one_line
from claude_mem.types import Json, ProposedFact, Turn, TurnEvent

BRANCH, COMMIT, PULL_REQUEST, PUSH = "branch", "commit", "pull request", "push"
_LONGEST_NAME = 200

_NEW_BRANCH = re.compile(
    r"\bgit\b[^|;&\n]{0,80}?\b(?:checkout\s+-[bB]|switch\s+(?:-[cC]|--create))\s+"
    r"([\w][\w./-]{0,200})"
)
# "[main 1a2b3c4] Subject" or "[main (root-commit) 1a2b3c4] Subject", as `git commit` prints it.
_COMMITTED = re.compile(
    r"^\[([\w./-]{1,200})(?: \([a-z-]{1,40}\))? ([0-9a-f]{7,40})\] ([^\n]{1,300})", re.MULTILINE
)
HOOK = "hook"  # the purpose of what git runs by itself
_GIT_HOOK = re.compile(r"\b(pre-commit|pre-push|commit-msg)\b(?=[`\"']? hooks?\b)", re.IGNORECASE)
_HOOK_RAN = re.compile(
    r"\b(?:run|runs|ran|running|pass(?:es|ed)?|verif(?:ies|ied))\b", re.IGNORECASE
)
_GATE_CHECKS = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in (
        ("tests", r"\btests?\b"), ("lint", r"\blint"), ("typecheck", r"\btype[- ]?check|\btypes\b"),
        ("format", r"\bformat|\bfmt\b"), ("build", r"\bbuild\b"),
    )
}  # fmt: skip
_REVERTS = re.compile(r"\bgit\b[^|;&\n]{0,80}?\b(?:revert|cherry-pick)\b")
_BRANCH_NAME = re.compile(r"[\w][\w./+@#-]{0,199}")
_DETACHED = "detached"
# " * [new branch]      fix-lamp -> fix-lamp", as `git push` prints it.
_PUSHED = re.compile(
    r"^ [*+! ]? (?!\[new tag\]).{3,60}? {1,20}\S{1,200} -> ([\w./-]{1,200})$", re.MULTILINE
)
_GIT_PUSH = re.compile(r"\bgit\b[^|;&\n]{0,80}?\bpush\b")
# Not one that is only looked at.
_CREATES_PULL_REQUEST = re.compile(
    r"\b(?:(?:gh\s+pr|glab\s+mr)\s+(?:create|edit|ready|reopen|merge)|hub\s+pull-request)\b"
)
_PULL_REQUEST_URL = re.compile(
    r"https://[\w.-]{1,100}/[\w./-]{1,200}?/(?:pull|merge_requests|pull-requests)/\d{1,9}\b"
)
# Commands that make one have one of these; most commands have none.
_WORDS_OF_ARTIFACTS = ("git", "commit", "gh", "glab", "hub")
_PULL_REQUEST_TOOL = re.compile(r"create_(?:pull|merge)_request$")
_TITLE = re.compile(r"""\s(?:--title|-t)[\s=]+(?:"((?:[^"\\]|\\.){1,300})"|'([^']{1,300})')""")


def propose_facts(turn: Turn) -> tuple[ProposedFact, ...]:
    """Each once, with all its events; the last note wins."""
    facts: dict[tuple[str, str, str], ProposedFact] = {}
    for event in turn.events:
        of_event = list(_facts_of(event))
        for replaced in _replaced_commits(facts.values(), event, of_event):
            del facts[replaced.kind, replaced.subject, replaced.value]
        for fact in of_event:
            key = (fact.kind, fact.subject, fact.value)
            sources = facts[key].sources if key in facts else ()
            note = fact.note or (facts[key].note if key in facts else "")
            facts[key] = ProposedFact(
                fact.kind, fact.subject, fact.value, origin=fact.origin, note=note,
                sources=(*sources, event.id),
            )  # fmt: skip
    return tuple(facts.values())


def _replaced_commits(
    facts: Collection[ProposedFact], event: TurnEvent, of_event: Collection[ProposedFact]
) -> list[ProposedFact]:
    """Returns the commits that the event amended, as far as its output shows: a new hash for the
    same subject."""
    params = event.tool_input if isinstance(event.tool_input, dict) else {}
    command = params.get("command")
    if not isinstance(command, str) or AMENDS not in command[:READ_COMMAND]:
        return []
    new = {fact.note: fact.value for fact in of_event if fact.subject == COMMIT}
    return [
        fact
        for fact in facts
        if fact.subject == COMMIT and new.get(fact.note, fact.value) != fact.value
    ]


def _facts_of(event: TurnEvent) -> Iterator[ProposedFact]:
    if event.kind == "PullRequest":
        yield from _pull_requests((event.text or "")[:READ_LINE], "")
        return
    if event.kind == "Branch" and _BRANCH_NAME.fullmatch(event.text or ""):
        yield ProposedFact("artifact", BRANCH, event.text or "")
        return
    if event.kind in ("Statement", "Stop") and not event.agent_id:
        yield from _gates(event.text or "")
        return
    params = event.tool_input if isinstance(event.tool_input, dict) else {}
    if event.kind != "PostToolUse" or event.agent_id:
        return
    if event.tool_name == "AskUserQuestion":
        yield from _answers(params, event.tool_response)
    elif event.tool_name == "Bash" and isinstance(command := params.get("command"), str):
        yield from _artifacts(command[:READ_COMMAND], output_of(event)[-READ_OUTPUT:])
    elif _PULL_REQUEST_TOOL.search(event.tool_name or ""):
        title = params.get("title")
        yield from _pull_requests(output_of(event)[:READ_OUTPUT], title)


def _answers(params: dict[str, Json], response: Json) -> Iterator[ProposedFact]:
    """The user decided by choosing an answer, or by typing one."""
    answers = response.get("answers") if isinstance(response, dict) else None
    questions = params.get("questions")
    for item in questions if isinstance(questions, list) else ():
        question = item.get("question") if isinstance(item, dict) else None
        if not isinstance(question, str) or not isinstance(answers, dict):
            continue
        answer = answers.get(question)
        if isinstance(answer, str) and answer.strip():
            yield ProposedFact("decision", question.strip(), answer.strip(), origin="person")


def _gates(text: str) -> Iterator[ProposedFact]:
    """What a hook of git runs, as the agent tells it after a commit or a push."""
    text = text[:READ_OUTPUT]
    has_git_hook = "hook" in text.lower() and _GIT_HOOK.search(text)
    for line in text.splitlines() if has_git_hook else ():
        for hook in dict.fromkeys(_GIT_HOOK.findall(line)):
            checks = [name for name, pattern in _GATE_CHECKS.items() if pattern.search(line)]
            if len(checks) > 1 and _HOOK_RAN.search(line):
                yield ProposedFact("command", HOOK, hook.lower(), note=", ".join(checks))


def _artifacts(command: str, output: str) -> Iterator[ProposedFact]:
    if not any(map(command.__contains__, _WORDS_OF_ARTIFACTS)):
        return
    for name in _NEW_BRANCH.findall(command):
        yield ProposedFact("artifact", BRANCH, name[:_LONGEST_NAME])
    if "commit" in command or _REVERTS.search(command):
        commits = _COMMITTED.findall(output)
        for branch, commit_hash, subject in commits:
            yield ProposedFact("artifact", COMMIT, commit_hash, note=subject.strip())
            if branch != _DETACHED:
                yield ProposedFact("artifact", BRANCH, branch)
        if not commits and (subject := commit_subject(command)):
            # A quiet commit, or a wrapper with its own output: the subject stands for the hash.
            yield ProposedFact("artifact", COMMIT, subject, note=subject)
    if _GIT_PUSH.search(command):
        for name in _PUSHED.findall(output):
            yield ProposedFact("artifact", BRANCH, name)
            yield ProposedFact("artifact", PUSH, name)
    if _CREATES_PULL_REQUEST.search(command):
        title = _TITLE.search(command)
        yield from _pull_requests(output, title and (title[1] or title[2]))


def _pull_requests(output: str, title: Json) -> Iterator[ProposedFact]:
    note = title if isinstance(title, str) else ""
    for url in dict.fromkeys(_PULL_REQUEST_URL.findall(output)):
        yield ProposedFact("artifact", PULL_REQUEST, url, note=note)


# Where things are: addresses of servers, hosts, documents and scripts.
#
# Only what is certain: an address that a server printed, a port that a container publishes, a host
# that a command reached, a sentence of the user that says where something is, a new file.

DOCUMENT, SCRIPT = "document", "script"
LONGEST_SUBJECT, LONGEST_COMMAND = 40, 60
MOST_LINES = 400  # of an output

_ANNOUNCES_SERVER = re.compile(
    r"\b(?:listening|running|ready|serving|started|available|local|server|open)\b", re.IGNORECASE
)
_ADDRESS = re.compile(r"\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{2,5})\b")
_STARTS_SERVER = re.compile(
    r"\b(?:(?:run )?(?:dev|start|serve|preview|storybook)|runserver|up|uvicorn|flask|http\.server"
    r"|jekyll|hugo|vite|server)\b"
)
_CONTAINER = re.compile(
    r"\b(?:docker|podman)\s+run\b[^|;&\n]{0,200}?\s(?:-p|--publish)[\s=]+(?:[\d.]{7,15}:)?(\d{2,5}):\d{2,5}"
    r"[^|;&\n]{0,300}?\s((?:[\w.-]{1,60}/){0,3}[\w.-]{2,60})(?::[\w.-]{1,40})?\s*(?:$|[|;&\n])"
)
_REMOTE = re.compile(
    r"(?:^|[;&|]\s{0,5})ssh\s+(?:-[46AaCfGgKkMNnqsTtVvXxYy]{1,5}\s+|-[a-zA-Z]\s+[^\s-]\S{0,80}\s+){0,6}"
    r"((?:[\w.-]{1,40}@)?[a-zA-Z][\w-]{0,60}(?:\.[\w-]{1,60}){0,6})(?=\s|$)"
)
_WHERE = re.compile(
    r"(?:the |our |my )?(?P<subject>[\w][\w /-]{2,40}?) "
    r"(?:is|are|runs?|lives?|listens?|sits?|is (?:served|deployed|hosted|reachable|available))"
    r" (?:now )?(?:at|on|under|in) "
    r"(?P<place>https?://[^\s,;]{3,200}|localhost:\d{2,5}|port \d{2,5}"
    r"|(?:[a-z][\w-]{0,60}\.){1,5}[a-z]{2,10}(?::\d{2,5})?|`[^`\n]{3,100}`|[~/][\w.-]+/[\w./-]{2,100})"
    r"(?=[\s.,;!)]|$)",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"(?:it|this|that|they|there|what|which|everything|one|he|she|we|i|you)\b"
    r"|(?:error|bug|issue|problem|tests?|code|change|file|fix)s?$",
    re.IGNORECASE,
)
_DOCUMENTS = (".md", ".mdx", ".rst", ".adoc")
_SCRIPT = re.compile(
    r"(?:^|[/\\])(?:scripts?|bin|tools|hack)[/\\][^/\\]{1,80}\.(?:sh|bash|py|ps1|ts|js|mjs|rb)$"
)
_HEADING = re.compile(r"^#{1,3}[ \t]+(\S[^\n]{2,120})$", re.MULTILINE)


def propose_places(turn: Turn) -> tuple[ProposedFact, ...]:
    """Each once, with all its events."""
    facts: dict[tuple[str, str, str], ProposedFact] = {}
    for fact in _places_of(turn):
        key = (fact.kind, fact.subject, fact.value)
        sources = facts[key].sources if key in facts else ()
        facts[key] = replace(fact, sources=(*sources, *fact.sources))
    return tuple(facts.values())


def _places_of(turn: Turn) -> Iterator[ProposedFact]:
    for sentence in certain_sentences(turn.prompt or ""):
        yield from _stated_places(sentence)
    for event in turn.events:
        if event.kind != "PostToolUse" or event.agent_id:
            continue
        params = event.tool_input if isinstance(event.tool_input, dict) else {}
        if event.tool_name == "Write":
            yield from _written(event, turn.project_dir)
        elif event.tool_name == "Bash" and isinstance(command := params.get("command"), str):
            yield from _reached(command[:READ_COMMAND], output_of(event)[-READ_OUTPUT:], event.id)


def _stated_places(sentence: str) -> Iterator[ProposedFact]:
    """ "The staging API runs at https://…", as the user typed it."""
    for match in _WHERE.finditer(sentence):
        subject = match["subject"].strip().lower()
        if len(subject) <= LONGEST_SUBJECT and not _VAGUE.match(subject):
            yield ProposedFact(
                "place", subject, match["place"].strip("`").rstrip(".,"), origin="person"
            )


def _reached(command: str, output: str, source: int) -> Iterator[ProposedFact]:
    for port, image in _CONTAINER.findall(command) if "run" in command else ():
        yield ProposedFact("place", image, f"localhost:{port}", sources=(source,))
    for host in dict.fromkeys(_REMOTE.findall(command)) if "ssh" in command else ():
        yield ProposedFact("place", host.rpartition("@")[2], f"ssh {host}", sources=(source,))
    is_short = len(command) <= LONGEST_COMMAND and "\n" not in command.strip()
    if not is_short or not _STARTS_SERVER.search(command):
        return
    lines = [line for line in output.splitlines()[:MOST_LINES] if _ANNOUNCES_SERVER.search(line)]
    ports = list(dict.fromkeys(port for line in lines for port in _ADDRESS.findall(line)))
    if len(ports) == 1:  # of several, nobody knows which is whose
        started = command.strip().rstrip("& ")
        yield ProposedFact("place", started, f"http://localhost:{ports[0]}", sources=(source,))


def _written(event: TurnEvent, project_dir: str) -> Iterator[ProposedFact]:
    """A document or a script that was not there before."""
    response, params = event.tool_response, event.tool_input
    path = path_of(event)
    is_new = isinstance(response, dict) and response.get("type") == "create"
    if path is None or not is_new or CLIENT_FILES.search(path):
        return
    shown = relative(path, project_dir)
    if shown.startswith(("/", "~")) or re.match(r"[A-Za-z]:[\\/]", shown):
        return  # not of this project
    text = params.get("content") if isinstance(params, dict) else None
    heading = _HEADING.search(text[:READ_OUTPUT]) if isinstance(text, str) else None
    if shown.lower().endswith(_DOCUMENTS):
        note = heading[1].strip() if heading else ""
        yield ProposedFact("artifact", DOCUMENT, shown, note=note, sources=(event.id,))
    elif _SCRIPT.search(shown):
        yield ProposedFact("artifact", SCRIPT, shown, sources=(event.id,))


# Obstacles that a turn ran into: what the agent blames for a failure, other than its own edits.
#
# One alone may be chance. The hand-over tells those that came back in several sessions, so each is
# proposed by the name of what was blamed, with the sentence as its note.

MAX_OBSTACLES = 6  # of a turn
READ_STATEMENT = 4_000
SHORTEST, LONGEST = 30, 220
LONGEST_REMEDY = 70
_FAILS = AnyCase(
    r"\b(?:fail(?:s|ed|ing|ures?)?|block(?:s|ed|ing)|break(?:s|ing)|broken|reject(?:s|ed)"
    r"|refus(?:es|ed)|hang(?:s|ing)?|hung|crash(?:es|ed|ing)|denied|errors?|time[sd]? out)\b"
)
# Each match has one of these, and looking for them takes a fraction of the time of the pattern.
_PARTS_OF_FAILS = (
    "fail", "block", "break", "broken", "reject", "refus", "hang", "hung", "crash", "denied",
    "error", " out",
)  # fmt: skip
# Words that put the cause outside of what was worked on.
_BLAMES = AnyCase(
    r"\b(?:because|due to|caused? by|caus(?:es|ed|ing)|(?:comes?|are|is|all|were|was) from"
    r"|pick(?:s|ed|ing) up|unrelated|not related|pre-?existing|left-?over|stale|missing"
    r"|not (?:from|caused|part|installed|available|our|my)|(?:hook|linter|sandbox|ci)\b)"
)
_LIST_ITEM = re.compile(r"\s*(?:[-*+•|>#]|\d{1,3}[.)])\s")
_NAME = re.compile(r"`([^`\s]{3,60})`")
_PATH = re.compile(r"[\w@.-]{1,60}(?:/[\w@.-]{1,60}){1,8}/?$|\.?[\w-]{2,40}\.\w{1,8}$")
_INSPECTION = re.compile(
    r"(?:ls|cat|head|tail|grep|rg|find|sed -n|wc|cd|echo|git (?:diff|log|status))\b"
)


def find_obstacles(turn: Turn) -> tuple[ProposedFact, ...]:
    edited = [path for event in turn.events if event.tool_name in EDITING
              if (path := path_of(event))]  # fmt: skip
    facts: dict[str, ProposedFact] = {}
    for position, event in enumerate(turn.events):
        for sentence in _blaming(event):
            for name in _blamed(sentence, edited):
                remedy = facts[name].note.partition(REMEDY_SEPARATOR)[2] if name in facts else ""
                remedy = remedy or _remedy(turn.events[position + 1 :], name, turn.project_dir)
                note = f"{sentence}{REMEDY_SEPARATOR}{remedy}" if remedy else sentence
                facts[name] = ProposedFact(
                    "fault", "", name, note=note, sources=(event.id,), status="candidate"
                )
    return tuple(facts.values())[:MAX_OBSTACLES]


def _blaming(event: TurnEvent) -> Iterator[str]:
    """Gives the sentences that name a cause, but not from lists: these tell what was changed."""
    if event.kind not in ("Statement", "Stop") or event.agent_id or not event.text:
        return
    text = event.text[:READ_STATEMENT]
    if text.isascii() and not any(map(text.lower().__contains__, _PARTS_OF_FAILS)):
        return
    if not (_FAILS.search(text) and _BLAMES.search(text)):
        return  # most statements, and no sentence of them need be looked at
    for line in text.splitlines():
        if _LIST_ITEM.match(line):
            continue
        for sentence in sentences(line):
            is_short = SHORTEST <= len(sentence) <= LONGEST
            if is_short and _FAILS.search(sentence) and _BLAMES.search(sentence):
                yield one_line(sentence)


def _blamed(sentence: str, edited: list[str]) -> Iterator[str]:
    """Files and folders that the turn did not edit; also the folder of each."""
    for marked in dict.fromkeys(_NAME.findall(sentence)):
        name = marked.rstrip("/")
        if not _PATH.match(marked) or any(_is_below(path, name) for path in edited):
            continue
        yield name
        folder = name.rpartition("/")[0]
        if "/" in folder:
            yield folder


def _is_below(path: str, name: str) -> bool:
    slashed = f"/{path}".replace("\\", "/")
    return slashed.endswith(f"/{name}") or f"/{name}/" in slashed


def _remedy(events: tuple[TurnEvent, ...], name: str, project_dir: str) -> str:
    """The next command that did something about it."""
    for event in events:
        params = event.tool_input if isinstance(event.tool_input, dict) else {}
        command = params.get("command")
        if event.tool_name != "Bash" or not isinstance(command, str):
            continue
        if name in command and event.kind == "PostToolUse" and not _INSPECTION.match(command):
            shown = one_line(command[:READ_COMMAND].replace(f"{project_dir.rstrip('/')}/", ""))
            return f"`{shown}`" if len(shown) <= LONGEST_REMEDY else ""
    return ""
