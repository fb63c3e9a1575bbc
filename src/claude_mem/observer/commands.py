"""The commands of a turn that say something later: tests, checks, commits, and what failed.

A failure counts when it was about the work, not about a tool that was held wrong; what made it go
away is the edits and the command that then succeeded.
"""

import re
from dataclasses import dataclass, field

from claude_mem.observer.changes import EDITING, path_of, relative
from claude_mem.observer.passages import shorten
from claude_mem.types import ToolUse, Turn

LONGEST_COMMAND, LONGEST_ERROR = 120, 200

_TEST = re.compile(
    r"\b(?:(?:py\.?test|unittest|nosetests|jest|vitest|mocha|ava|rspec|phpunit|ctest|tox|nox)\b"
    r"|(?:npm|pnpm|yarn|bun|deno|go|cargo|dotnet|swift|mix|rake|make|gradlew?|mvn|bazel|just|rails"
    r"|composer|flutter|dart|zig|sbt|lein|stack|cabal)\b[^|;&]{0,40}\btests?\b)"
)
_CHECK = re.compile(
    r"\b(?:lint|eslint|biome|ruff|flake8|mypy|pyright|tsc|type-?check|clippy|vet|golangci-lint"
    r"|prettier|black|build|compile|check)\b"
)
_COMMIT = re.compile(r"\bgit\b[^|;&]{0,80}?\bcommit\b")
_MESSAGE = re.compile(
    r"(?:-m|--message)[= ]\s*(?:\"\$\(cat <<\s*[-'\"]*(\w+)['\"]*\n(?P<here>.*?)\n\s*\1"
    r"|\"(?P<double>(?:[^\"\\]|\\.)+)\"|'(?P<single>[^']+)')",
    re.DOTALL,
)
_COUNTS = re.compile(
    r"(?:^|[,;:=(]|\bresult: \w+\.)\s*(\d[\d,]*) (?:tests? )?"
    r"(pass(?:ed|ing)?|fail(?:ed|ing|ures?)?)\b",
    re.IGNORECASE | re.MULTILINE,
)
_HASH = re.compile(r"^\[[^\]\n]*?([0-9a-f]{7,12})\]", re.MULTILINE)
_PREFIX = re.compile(r"^(?:cd \S+\s*(?:&&|;)\s*|[A-Z_]+=\S*\s+|sudo\s+|time\s+|timeout \S+\s+)+")
_TAIL = re.compile(r"\s*(?:2>&1|\d?>\s*/dev/null|\|\s*(?:tail|head|grep|cat|less|tee|sed|wc)\b.*|"
                   r";\s*echo\b.*|&&\s*echo\b.*|\|\|\s*true)\s*", re.DOTALL)  # fmt: skip
_TELLING = re.compile(
    r"(?:error|exception|fail(?:ed|ure|s)?\b|not found|cannot|can't|undefined|unexpected|unrecogni"
    r"|denied|refused|invalid|missing|no such|✗|×|assert|panic|expected)",
    re.IGNORECASE,
)
_FAILED_TEST = re.compile(r"^\s*(?:\(fail\)|FAIL(?:ED)?:?\s|✗|×|--- FAIL|not ok )")
_VERDICT = re.compile(
    r"^\s*(?:E\s{2,}|[\w.]*(?:Error|Exception):|error(?:\[\w+\])?:|fatal:"
    r"|\S+:\d+(?::\d+)?:? .*error|panic:|npm ERR!)",
    re.IGNORECASE,
)
_WARNING = re.compile(r"\bwarn", re.IGNORECASE)
_DULL = re.compile(
    r"^\s*(?:exit code \d+|error: ?|\$ .*|\d+ (?:pass|fail)\w*|[-=_~^*#. ]+|at .*)$", re.I
)
_LOOKING = re.compile(
    r"^\s*(?:ls|cat|head|tail|grep|rg|find|sed -n|wc|which|test|\[|diff"
    r"|git (?:diff|show|log|status|grep|ls-files|blame))\b"
)


@dataclass(frozen=True, slots=True)
class Failure:
    command: str
    error: str
    mended_by: str  # how it went away; empty when it did not
    works: str  # another command that did instead
    sources: tuple[int, ...]


@dataclass(slots=True)
class Ran:
    tests: dict[str, str] = field(default_factory=dict)  # command -> its last outcome
    commits: list[str] = field(default_factory=list)  # "subject (hash)"
    subjects: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """A failure of which it is not known yet whether it was mended."""

    command: str
    error: str
    id: int
    edited: list[str] = field(default_factory=list)


def look_at_commands(turn: Turn) -> Ran:
    ran = Ran()
    open_failures: list[_Open] = []
    for event in turn.events:
        if event.tool_name in EDITING and event.kind == "PostToolUse":
            for failure in open_failures:
                _note_edit(failure, event, turn.project_dir)
        elif event.tool_name == "Bash" and event.kind in ("PostToolUse", "PostToolUseFailure"):
            _look_at(event, ran, open_failures)
    for failure in open_failures:
        if _TEST.search(failure.command) or _CHECK.search(failure.command):
            ran.failures.append(Failure(failure.command, failure.error, "", "", (failure.id,)))
    return ran


def _note_edit(failure: _Open, event: ToolUse, project_dir: str) -> None:
    path = path_of(event)
    shown = relative(path, project_dir) if path else ""
    if shown and shown not in failure.edited:
        failure.edited.append(shown)


def _look_at(event: ToolUse, ran: Ran, open_failures: list[_Open]) -> None:
    given = event.tool_input if isinstance(event.tool_input, dict) else {}
    whole = given.get("command")
    if not isinstance(whole, str) or event.agent_id:
        return
    command, output = short_command(whole), _output(event)
    failed = event.kind == "PostToolUseFailure" or _shows_failures(command, output)
    if _COMMIT.search(whole):
        if not failed:
            _note_commit(whole, output, event, ran)
        return
    if _TEST.search(command):
        ran.tests[command] = _counts(output) or ("failed" if failed else "passed")
        ran.sources.append(event.id)
    if failed:
        error = telling_line(output)
        if (
            error
            and not _LOOKING.match(command)
            and all(f.command != command for f in open_failures)
        ):
            open_failures.append(_Open(command, error, event.id))
        return
    for failure in [f for f in open_failures if _is_same_work(f.command, command)]:
        open_failures.remove(failure)
        same = failure.command == command
        mended = "after editing " + ", ".join(failure.edited[:3]) if failure.edited else ""
        if mended or not same:
            ran.failures.append(
                Failure(failure.command, failure.error, mended, "" if same else command,
                        (failure.id, event.id))
            )  # fmt: skip


def _note_commit(whole: str, output: str, event: ToolUse, ran: Ran) -> None:
    message = _MESSAGE.search(whole)
    text = (message["here"] or message["double"] or message["single"]) if message else ""
    subject = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if not subject:
        return
    found = _HASH.search(output)
    if subject in ran.subjects:  # tried before, and held up by a hook
        ran.commits[ran.subjects.index(subject)] = f"{subject} ({found[1]})" if found else subject
        return
    ran.subjects.append(subject)
    ran.commits.append(f"{subject} ({found[1]})" if found else subject)
    ran.sources.append(event.id)


def short_command(command: str) -> str:
    """The command itself, without where it ran and what was done with its output."""
    first = command.strip().split("\n", 1)[0]
    bare = " ".join(_TAIL.sub(" ", _PREFIX.sub("", first)).split())
    return shorten(bare or first, LONGEST_COMMAND)


def telling_line(output: str) -> str:
    """The line of an output that says best what went wrong."""
    lines = [line.strip() for line in output.splitlines() if not _DULL.match(line)]
    for pattern, order in ((_FAILED_TEST, 1), (_VERDICT, -1), (_TELLING, 1)):
        for line in lines[::order]:
            if len(line) > 8 and pattern.search(line) and not _WARNING.search(line):
                return shorten(" ".join(line.split()), LONGEST_ERROR)
    return shorten(" ".join(lines[0].split()), LONGEST_ERROR) if lines and len(lines[0]) > 8 else ""


def _output(event: ToolUse) -> str:
    response = event.tool_response
    if isinstance(response, dict):
        parts = [response.get("stdout"), response.get("stderr")]
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    if isinstance(response, str):
        return response
    return event.text or ""


def _counts(output: str) -> str:
    found: dict[str, str] = {}
    for number, what in _COUNTS.findall(output[-4000:]):
        found["passed" if what[0] in "pP" else "failed"] = number
    counted = [(kind, number) for kind, number in found.items() if number != "0"]
    return ", ".join(f"{number} {kind}" for kind, number in sorted(counted, reverse=True))


def _shows_failures(command: str, output: str) -> bool:
    """A pipe hides the exit code; the counts of a test run do not."""
    return bool(_TEST.search(command)) and "failed" in _counts(output)


def _is_same_work(failed: str, worked: str) -> bool:
    if failed == worked:
        return True
    first, second = set(failed.split()), set(worked.split())
    return min(len(first), len(second)) >= 2 and (first <= second or second <= first)
