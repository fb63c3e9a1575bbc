"""Facts that a turn reveals besides its commands: what the user decided, and branches, commits and
pull requests that came of it."""

import re
from collections.abc import Iterator

from claude_mem.observer.local.commands import (
    READ_COMMAND,
    READ_LINE,
    READ_OUTPUT,
    commit_subject,
    output_of,
)
from claude_mem.types import Json, ProposedFact, ToolUse, Turn

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
        for fact in _facts_of(event):
            key = (fact.kind, fact.subject, fact.value)
            sources = facts[key].sources if key in facts else ()
            note = fact.note or (facts[key].note if key in facts else "")
            facts[key] = ProposedFact(
                fact.kind, fact.subject, fact.value, origin=fact.origin, note=note,
                sources=(*sources, event.id),
            )  # fmt: skip
    return tuple(facts.values())


def _facts_of(event: ToolUse) -> Iterator[ProposedFact]:
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
    is_told = "hook" in text.lower() and _GIT_HOOK.search(text)
    for line in text.splitlines() if is_told else ():
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
