"""Where things are: addresses of servers, hosts, documents and scripts.

Only what is certain: an address that a server printed, a port that a container publishes, a host
that a command reached, a sentence of the user that says where something is, a new file.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from claude_mem.observer.local.commands import READ_COMMAND, READ_OUTPUT, output_of
from claude_mem.observer.local.files import CLIENT_FILES, path_of, relative
from claude_mem.observer.local.rules import certain_sentences
from claude_mem.types import ProposedFact, ToolUse, Turn

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
        yield from _told(sentence)
    for event in turn.events:
        if event.kind != "PostToolUse" or event.agent_id:
            continue
        params = event.tool_input if isinstance(event.tool_input, dict) else {}
        if event.tool_name == "Write":
            yield from _written(event, turn.project_dir)
        elif event.tool_name == "Bash" and isinstance(command := params.get("command"), str):
            yield from _reached(command[:READ_COMMAND], output_of(event)[-READ_OUTPUT:], event.id)


def _told(sentence: str) -> Iterator[ProposedFact]:
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


def _written(event: ToolUse, project_dir: str) -> Iterator[ProposedFact]:
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
