"""The commands of a turn that say something later: tests, checks, commits, and what failed.

A failure counts when it was about the work, not about a tool that was held wrong; what made it go
away is the edits, or the command, that came before the same work succeeded.
"""

import re
from dataclasses import dataclass, field

from claude_mem.observer.local.files import EDITING, path_of, relative
from claude_mem.observer.local.passages import shorten
from claude_mem.types import ToolUse, Turn

LONGEST_COMMAND, LONGEST_ERROR = 120, 200
LOOKED_AT_COMMAND, LOOKED_AT_OUTPUT, LOOKED_AT_LINE = 10_000, 20_000, 400
COUNTS_AT_END = 4_000

_RUNNERS = (
    r"py\.?test", "unittest", "nosetests", "jest", "vitest", "mocha", "ava", "rspec", "phpunit",
    "ctest", "tox", "nox", "playwright",
)  # fmt: skip
_TOOLS = (
    "npm", "npx", "pnpm", "yarn", "bun", "deno", "go", "cargo", "dotnet", "swift", "mix", "rake",
    "make", "gradlew?", "mvnw?", "bazel", "just", "rails", "composer", "flutter", "dart", "zig",
    "sbt", "lein", "stack", "cabal", "uv", "poetry", "task", "meson", "nx", "turbo",
)  # fmt: skip
_CHECKS = (
    "lint", "eslint", "biome", "ruff", "flake8", "mypy", "pyright", "tsc", "type-?check", "clippy",
    "vet", "golangci-lint", "prettier", "black", "build", "compile", "check", "assemble", "plan",
    "validate", "apply",
)  # fmt: skip
_TEST = re.compile(
    rf"\b(?:(?:{'|'.join(_RUNNERS)})\b|(?:{'|'.join(_TOOLS)})\b[^|;&]{{0,40}}\btests?\b)"
)
_CHECK = re.compile(rf"\b(?:{'|'.join(_CHECKS)})\b")
_LOOKING = re.compile(
    r"(?:ls|cat|head|tail|grep|rg|find|sed -n|wc|which|test|\[|diff|echo|pwd|git)\b"
)
# What may set right what a check or a test complained of.
_MENDING = re.compile(
    r"\b(?:fix|format|fmt|install|add|update|upgrade|migrate|generate|codegen|clean|rm|sync|build"
    r"|start|up|init|create|mkdir|chmod|export|download|pull|write|restart|reset)\b"
)

_COMMIT = re.compile(r"\bgit\b[^|;&]{0,80}?\bcommit\b")
_HEREDOC = re.compile(
    r"<<-?\s{0,3}['\"]?(\w{1,40})['\"]?[^\n]{0,80}\n(.*?)\n\s{0,40}\1\b", re.DOTALL
)
_MESSAGE = re.compile(
    r"(?:-[a-z]*m|--message)[= ]\s{0,3}(?:\"((?:[^\"\\]|\\.)+)\"|'([^']+)')", re.DOTALL
)
_HASH = re.compile(r"^\[[^\]\n]{0,120}?([0-9a-f]{7,12})\]", re.MULTILINE)

_PREFIX = re.compile(r"(?:cd \S+ ?(?:&&|;) ?|[A-Z_]+=\S* |sudo |time |timeout \S+ )+")
_TAIL = re.compile(
    r" ?(?:2>&1|\d?> ?/dev/null|\| ?(?:tail|head|grep|cat|less|tee|sed|wc)\b.*"
    r"|(?:;|&&) ?echo\b.*|\|\| ?true) ?"
)
_COUNTS = re.compile(
    r"(?:^|[,;:=(|]|\bresult: \w{1,8}\.)[ \t]*(\d[\d,]*) (?:tests? |examples? )?"
    r"(pass(?:ed|ing)?|fail(?:ed|ing|ures?)?)\b"
    r"|\b(failures|failed)[=:] ?(\d+)",
    re.IGNORECASE,
)

# Which line of an output says best what went wrong: a test's name, a verdict, a telling word.
_FAILED_TEST = re.compile(
    r"(?:\(fail\)|FAIL(?:ED)?:? +\S*[/:.]\S|✗|✕|×|●|--- FAIL|not ok |\d+\) \w|test .{1,120} FAILED)"
)
_VERDICT = re.compile(
    r"(?:E\s{2,}|[\w.]{0,100}(?:Error|Exception):|error(?:\[\w+\])?:|fatal:|panic:|npm ERR!"
    r"|thread '.{0,60}' panicked|\S{1,200}:\d+(?::\d+)?:? .*error)",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"error|exception|fail(?:ed|ure|s)?\b|not found|cannot|can't|undefined|unexpected|unrecogni"
    r"|denied|refused|invalid|missing|no such|assert|panic|expected",
    re.IGNORECASE,
)
_WARNING = re.compile(r"warn", re.IGNORECASE)
# Says that it failed, and not what.
_DULL_LINES = (
    r"exit (?:code|status) \d+", r"error: ?", r"at .*", r"\$ .*", r"[-=_~^*#. ]+", r"=+ .* =+",
    r"\d+ (?:pass|fail)\w*", r"\d+ examples?, .*", r"FAIL(?:ED)?",
    r"(?:error: )?script .{0,60} exited with code \d+", r"command failed with exit code.*",
    r"make(?:\[\d+\])?: \*\*\* .*", r"npm ERR! (?:code|errno|A compl).*", r".{0,40}ELIFECYCLE.*",
    r"error: test failed, to rerun.*", r"error: could not compile .*",
    r"FAILURE: Build failed with an exception\.", r"BUILD FAILED.*", r"\* What went wrong:",
)  # fmt: skip
_DULL = re.compile(f"(?:{'|'.join(_DULL_LINES)})$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Failure:
    command: str
    error: str
    mended_by: str  # how it went away; empty when it did not
    works: str  # another command that did instead
    sources: tuple[int, ...]


@dataclass(slots=True)
class CommandLog:
    tests: dict[str, str] = field(default_factory=dict)  # command -> its last outcome
    commits: dict[str, str] = field(default_factory=dict)  # subject -> hash, where it is known
    failures: list[Failure] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)

    @property
    def subjects(self) -> list[str]:
        return list(self.commits)


@dataclass(slots=True)
class _Open:
    """A failure of which it is not known yet whether it was mended."""

    command: str
    error: str
    ran_tests: bool  # they ran, and failed: it was not the command that was wrong
    id: int
    edited: list[str] = field(default_factory=list)
    between: str = ""  # the last command since that may have mended it


def look_at_commands(turn: Turn) -> CommandLog:
    ran = CommandLog()
    still_open: list[_Open] = []
    for event in turn.events:
        if event.tool_name in EDITING and event.kind == "PostToolUse":
            _note_edit(still_open, event, turn.project_dir)
        elif event.tool_name == "Bash" and event.kind in ("PostToolUse", "PostToolUseFailure"):
            _look_at(event, ran, still_open)
    mended = {failure.error for failure in ran.failures}
    for one in still_open:
        if one.error not in mended and (_TEST.search(one.command) or _CHECK.search(one.command)):
            ran.failures.append(Failure(one.command, one.error, "", "", (one.id,)))
    return ran


def reads_output_of(command: str) -> bool:
    """Whether what a command printed says something here even though it succeeded."""
    whole = command[:LOOKED_AT_COMMAND]
    return bool(_COMMIT.search(whole) or _TEST.search(short_command(whole)))


def _note_edit(still_open: list[_Open], event: ToolUse, project_dir: str) -> None:
    path = path_of(event)
    shown = relative(path, project_dir) if path else ""
    for failure in still_open:
        if shown and shown not in failure.edited:
            failure.edited.append(shown)


def _look_at(event: ToolUse, ran: CommandLog, still_open: list[_Open]) -> None:
    given = event.tool_input if isinstance(event.tool_input, dict) else {}
    whole = given.get("command")
    if not isinstance(whole, str) or event.agent_id:
        return
    whole = whole[:LOOKED_AT_COMMAND]
    command, output = short_command(whole), _output(event)
    is_test = bool(_TEST.search(command))
    counts = _counts(output) if is_test else ""
    # A pipe hides the exit code; the counts of a test run do not.
    failed = event.kind == "PostToolUseFailure" or "failed" in counts
    if _COMMIT.search(whole):
        if not failed:
            _note_commit(whole, output, event.id, ran)
        return
    if is_test:
        ran.tests[command] = counts or ("failed" if failed else "passed")
        ran.sources.append(event.id)
    if failed:
        _note_failure(_Open(command, telling_line(output), bool(counts), event.id), still_open)
    else:
        _note_success(command, event.id, ran, still_open)


def _note_failure(failure: _Open, still_open: list[_Open]) -> None:
    if not failure.error or _LOOKING.match(failure.command):
        return
    if all(one.command != failure.command for one in still_open):
        still_open.append(failure)


def _note_success(command: str, event_id: int, ran: CommandLog, still_open: list[_Open]) -> None:
    for failure in list(still_open):
        again = _parts(failure.command) <= _parts(command)
        if not again and (failure.ran_tests or not _is_alike(failure.command, command)):
            continue
        still_open.remove(failure)
        mended = _mended_by(failure)
        if mended or not again:
            works = "" if again else command
            ids = (failure.id, event_id)
            ran.failures.append(Failure(failure.command, failure.error, mended, works, ids))
    if _MENDING.search(command) and not _LOOKING.match(command):
        for failure in still_open:
            failure.between = command


def _mended_by(failure: _Open) -> str:
    if failure.edited:
        return "after editing " + ", ".join(failure.edited[:3])
    return f"after `{failure.between}`" if failure.between else ""


def _parts(command: str) -> set[str]:
    return {part.strip() for part in re.split(r"&&|;", command)}


def _is_alike(failed: str, worked: str) -> bool:
    """The same command with more or fewer words."""
    first, second = set(failed.split()), set(worked.split())
    return min(len(first), len(second)) >= 2 and (first <= second or second <= first)


def _note_commit(whole: str, output: str, event_id: int, ran: CommandLog) -> None:
    lines = [line.strip() for line in _commit_message(whole).splitlines()]
    subject = next((line for line in lines if line), "")
    if not subject:
        return
    found = _HASH.search(output)
    if subject not in ran.commits:  # otherwise tried before, and held up by a hook
        ran.sources.append(event_id)
    ran.commits[subject] = found[1] if found else ""


def _commit_message(command: str) -> str:
    if here := _HEREDOC.search(command):
        return here[2]
    message = _MESSAGE.search(command)
    return (message[1] or message[2]) if message else ""


def short_command(command: str) -> str:
    """The command itself, without where it ran and what was done with its output."""
    first = " ".join(command.strip().split("\n", 1)[0][: 4 * LOOKED_AT_LINE].split())
    bare = " ".join(_TAIL.sub(" ", _PREFIX.sub("", first, count=1)).split())
    return shorten(bare or first, LONGEST_COMMAND)


def telling_line(output: str) -> str:
    """The line of an output that says best what went wrong."""
    given = [line.strip()[:LOOKED_AT_LINE] for line in output[-LOOKED_AT_OUTPUT:].splitlines()]
    lines = [line for line in given if len(line) > 8 and not _DULL.match(line)]
    for find, order in ((_FAILED_TEST.match, 1), (_VERDICT.match, -1), (_TELLING.search, 1)):
        for line in lines[::order]:
            if find(line) and not _WARNING.search(line):
                return _flat(line)
    return _flat(lines[0]) if lines else ""


def _flat(line: str) -> str:
    return shorten(" ".join(line.split()), LONGEST_ERROR)


def _output(event: ToolUse) -> str:
    response = event.tool_response
    if isinstance(response, dict):
        parts = [response.get("stdout"), response.get("stderr")]
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    if isinstance(response, str):
        return response
    return event.text or ""


def _counts(output: str) -> str:
    """How many passed and failed, by the last lines that say so."""
    found: dict[str, str] = {}
    for line in output[-COUNTS_AT_END:].splitlines():
        if "pass" in line or "fail" in line or "Fail" in line:
            for number, what, _, count in _COUNTS.findall(line):
                found["passed" if what[:1] in ("p", "P") else "failed"] = number or count
    counted = [(kind, number) for kind, number in found.items() if int(number.replace(",", ""))]
    return ", ".join(f"{number} {kind}" for kind, number in sorted(counted, reverse=True))
