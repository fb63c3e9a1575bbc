"""What the tools of a turn did: commands that matter later (tests, commits, failures), and files.

A failure ends when the same command succeeds, or a similar one does. Edits and commands in between
are recorded as its fix.
"""

import posixpath
import re
from dataclasses import dataclass, field
from functools import lru_cache

from claude_mem.observer.local.here_documents import here_document_of, without_here_documents
from claude_mem.text import one_line, shorten
from claude_mem.types import CommandOutcome, CommandPurpose, CommandRun, Json, Turn, TurnEvent

LONGEST_COMMAND, LONGEST_ERROR = 120, 200
# Limits on what is read, for commands and outputs of any size.
READ_COMMAND, READ_OUTPUT, READ_LINE = 10_000, 20_000, 400
READ_COUNTS = 4_000  # test runners print their counts last

_RUNNERS = (
    r"py\.?test", "unittest", "nosetests", "jest", "vitest", "mocha", "ava", "rspec", "phpunit",
    "ctest", "tox", "nox", "playwright",
)  # fmt: skip
_TOOLS = (
    "npm", "npx", "pnpm", "yarn", "bun", "deno", "go", "cargo", "dotnet", "swift", "mix", "rake",
    "make", "gradlew?", "mvnw?", "bazel", "just", "rails", "composer", "flutter", "dart", "zig",
    "sbt", "lein", "stack", "cabal", "uv", "poetry", "task", "meson", "nx", "turbo", "mise",
    "hatch", "pdm", "pixi", "rye", "invoke", "moon", "pants", "earthly", "devbox", "lerna", "ninja",
    "dune", "rebar3", "ant", "bundle exec", "artisan", "docker compose (?:run|exec)", "xcodebuild",
)  # fmt: skip
_CHECKS = (
    "lint", "eslint", r"[a-z]{2,20}lint(?:-cli\d?)?", "biome", "ruff", "flake8", "mypy", "pyright",
    "tsc", "type-?check", "clippy",
    "vet", "golangci-lint", "prettier", "black", "build", "compile", "check", "assemble", "plan",
    "validate", "apply",
)  # fmt: skip
_TEST = re.compile(
    rf"\b(?:(?:{'|'.join(_RUNNERS)})\b|(?:{'|'.join(_TOOLS)})\b[^|;&]{{0,40}}\btests?\b)"
)
_CHECK = re.compile(rf"\b(?:{'|'.join(_CHECKS)})\b")
# As a word of its own among the first: `npm run lint:fix`, not `vim src/build/main.c`.
_CHECK_COMMAND = re.compile(rf"(?:[^\s:]+[\s:]+){{0,3}}(?:{'|'.join(_CHECKS)})(?:[\s:]|$)")
# A program of the project that is started, or a version that is published.
_RUN = re.compile(
    rf"(?:{'|'.join(_TOOLS)})(?: run)?(?: -\S+)* "
    r"(?:dev|start|serve|server|preview|watch|up)(?=\s|$|:)"
    r"|(?:cargo|go|dotnet|make|just|task) run(?=\s|$)|docker[ -]compose up\b"
    r"|(?:flask|rails|artisan) (?:run|s|server|serve)\b"
    r"|(?:uvicorn|gunicorn|vite|next dev|streamlit run|python3? manage\.py runserver)\b"
)
_RELEASE = re.compile(
    rf"(?:{'|'.join(_TOOLS)})(?: run)?(?: -\S+)* (?:release|publish|deploy)(?=\s|$|:)"
    r"|(?:goreleaser|twine upload|semantic-release|vsce publish|changeset publish)\b"
)
_INSPECTION = re.compile(
    r"(?:ls|cat|head|tail|grep|rg|find|sed -n|wc|which|test|\[|diff|echo|pwd|git)\b"
)
# Commands that may fix what a check or a test reported.
_REPAIR = re.compile(
    r"\b(?:fix|format|fmt|install|add|update|upgrade|migrate|generate|codegen|clean|rm|sync|build"
    r"|start|up|init|create|mkdir|chmod|export|download|pull|write|restart|reset)\b"
)

_COMMIT = re.compile(r"\bgit\b[^|;&]{0,80}?\bcommit\b")
_NO_COMMIT = re.compile(r"\s--(?:dry-run|help)\b")
_MESSAGE = re.compile(
    r"(?:-[a-z]*m|--message)[= ]\s{0,3}(?:\"((?:[^\"\\]|\\.)+)\"|'([^']+)')", re.DOTALL
)
# Their outputs name branches, remotes, pull requests, and commits without a message of their own.
_PUBLISHES = re.compile(
    r"\b(?:git\b[^|;&\n]{0,80}?\b(?:push|remote|clone|fetch|pull|revert|cherry-pick)|gh\s+(?:pr|repo)|glab\s+mr"
    r"|hub\s+pull-request)\b"
)
_CHANGES_DIRECTORY = re.compile(r"\s*cd\s+(?:\"([^\"]+)\"|'([^']+)'|([^\s;&|]+))\s*(?:&&|;)")
_DRIVE = re.compile(r"/?([a-zA-Z]):?(?=/|$)")
_HASH = re.compile(r"^\[[^\]\n]{0,120}?([0-9a-f]{7,12})\]", re.MULTILINE)
_PRINTED_COMMIT = re.compile(rf"{_HASH.pattern} ([^\n]{{1,300}})", re.MULTILINE)
AMENDS = "--amend"

_PREFIX = re.compile(r"(?<!\S)(?:cd \S+ ?(?:&&|;) ?|[A-Z_]++=\S*+ |sudo |time |timeout \S+ )+")
_OTHER_CHAINS = re.compile(r"[;\n\"'`$]|\|\|")
_DIRECTORY = re.compile(r"(?:cd|pushd|export|source|set)\b")
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

# Lines that explain a failure, most specific first: a test's name, an error, a word for one.
_FAILED_TEST = re.compile(
    r"(?:\(fail\)|FAIL(?:ED)?:? +\S*[/:.]\S|✗|✕|×|●|--- FAIL|not ok |\d+\) \w|test .{1,120} FAILED)"
)
_ERROR = re.compile(
    r"(?:E\s{2,}|[\w.]{0,100}(?:Error|Exception):|error(?:\[\w+\])?:|fatal:|panic:|npm ERR!"
    r"|thread '.{0,60}' panicked|\S{1,200}:\d+(?::\d+)?:? .*error)",
    re.IGNORECASE,
)
_ERROR_WORD = re.compile(
    r"error|exception|fail(?:ed|ure|s)?\b|not found|cannot|can't|undefined|unexpected|unrecogni"
    r"|denied|refused|invalid|missing|no such|assert|panic|expected",
    re.IGNORECASE,
)
_WARNING = re.compile(r"warn", re.IGNORECASE)
# Lines that report a failure without its cause.
_UNINFORMATIVE_LINES = (
    r"exit (?:code|status) \d+", r"error: ?", r"at .*", r"\$ .*", r"[-=_~^*#. ]+", r"=+ .* =+",
    r"\d+ (?:pass|fail)\w*", r"\d+ examples?, .*", r"FAIL(?:ED)?",
    r"(?:error: )?script .{0,60} exited with code \d+", r"command failed with exit code.*",
    r"make(?:\[\d+\])?: \*\*\* .*", r"npm ERR! (?:code|errno|A compl).*", r".{0,40}ELIFECYCLE.*",
    r"error: test failed, to rerun.*", r"error: could not compile .*",
    r"FAILURE: Build failed with an exception\.", r"BUILD FAILED.*", r"\* What went wrong:",
)  # fmt: skip
_UNINFORMATIVE = re.compile(f"(?:{'|'.join(_UNINFORMATIVE_LINES)})$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Failure:
    command: str
    error: str
    fixed_by: str = ""  # the edits or the command before it passed; empty: not fixed
    alternative: str = ""  # a similar command that succeeded instead
    sources: tuple[int, ...] = ()

    @property
    def is_environment_fault(self) -> bool:
        """Whether the command does not work here: another one did, without a fix in between."""
        return bool(self.alternative) and not self.fixed_by


@dataclass(slots=True)
class CommandLog:
    runs: dict[str, CommandRun] = field(default_factory=dict)  # by command
    commits: dict[str, str] = field(default_factory=dict)  # subject -> hash, or "" if unknown
    failures: list[Failure] = field(default_factory=list)

    @property
    def subjects(self) -> list[str]:
        return list(self.commits)


@dataclass(slots=True)
class _OpenFailure:
    """A failure that no later command has resolved yet."""

    command: str
    error: str
    has_test_counts: bool  # tests ran and failed: the command itself was right
    event_id: int
    edited: list[str] = field(default_factory=list)
    last_repair: str = ""  # the last command since then that may have fixed it


def read_commands(turn: Turn) -> CommandLog:
    log = CommandLog()
    unresolved: list[_OpenFailure] = []
    for event in turn.events:
        if event.tool_name in EDITING and event.kind == "PostToolUse":
            _add_edit(unresolved, event, turn.project_dir)
        elif event.tool_name == "Bash" and event.kind in ("PostToolUse", "PostToolUseFailure"):
            _read_command(event, log, unresolved, turn.project_dir)
    resolved_errors = {failure.error for failure in log.failures}
    for failure in unresolved:
        if failure.error not in resolved_errors and _is_test_or_check(failure.command):
            log.failures.append(
                Failure(failure.command, failure.error, sources=(failure.event_id,))
            )
    return log


def reads_output_of(command: str) -> bool:
    """Whether the output of a successful command matters here."""
    full = command[:READ_COMMAND]
    return bool(_commits(full) or _PUBLISHES.search(full) or _TEST.search(short_command(full)))


def _commits(command: str) -> bool:
    return "commit" in command and _COMMIT.search(command) is not None


def _is_test_or_check(command: str) -> bool:
    return bool(_TEST.search(command) or _CHECK.search(command))


def _purpose(command: str) -> CommandPurpose | None:
    if _TEST.search(command):
        return "test"
    if _INSPECTION.match(command):
        return None
    if _CHECK_COMMAND.match(command):
        return "check"
    if _RELEASE.match(command):
        return "release"
    return "run" if _RUN.match(command) else None


def _add_edit(unresolved: list[_OpenFailure], event: TurnEvent, project_dir: str) -> None:
    path = path_of(event)
    shown = relative(path, project_dir) if path else ""
    for failure in unresolved:
        if shown and shown not in failure.edited:
            failure.edited.append(shown)


def _read_command(
    event: TurnEvent, log: CommandLog, unresolved: list[_OpenFailure], project_dir: str
) -> None:
    params = event.tool_input if isinstance(event.tool_input, dict) else {}
    full = params.get("command")
    if not isinstance(full, str) or event.agent_id:
        return
    full = full[:READ_COMMAND]
    command, output = short_command(full), output_of(event)
    purpose = _purpose(command)
    counts = _counts(output) if purpose == "test" else ""
    # A pipe hides the exit code; the counts of a test run do not.
    failed = event.kind == "PostToolUseFailure" or "failed" in counts
    if not failed and not counts and is_outcome_unknown(event.tool_response):
        return
    if _commits(full):
        if not failed:
            _add_commit(full, output, log)
        return
    scope = _scope(full, event.cwd or project_dir, project_dir)
    steps = [] if failed else command_steps(full)
    for step in steps if len(steps) > 1 else [command]:
        if (step_purpose := _purpose(step)) is not None:
            sources = log.runs[step].sources if step in log.runs else ()
            outcome: CommandOutcome = "failed" if failed else "passed"
            log.runs[step] = CommandRun(
                step, step_purpose, outcome, counts if step_purpose == "test" else "",
                (*sources, event.id), scope,
            )  # fmt: skip
    if failed:
        error = error_line(output)
        _add_failure(_OpenFailure(command, error, bool(counts), event.id), unresolved)
    else:
        _add_success(command, event.id, log, unresolved)


def _scope(command: str, cwd: str, project_dir: str) -> str:
    """The folder it runs in, if that is below the project's directory; else empty."""
    change = _CHANGES_DIRECTORY.match(command)
    target = _as_posix(next(filter(None, change.groups()), "") if change else "")
    current, root = _as_posix(cwd), _as_posix(project_dir)
    # The working directory is that after the command: it may have moved there already.
    is_there = target != "" and f"{current}/".endswith(f"/{target.strip('/')}/")
    is_absolute = target[1:2] == ":"
    joined = target if is_absolute else posixpath.normpath(posixpath.join(current, target))
    directory = current if is_there else joined
    folder = relative(directory, root)
    return "" if folder == directory else folder


def _as_posix(path: str) -> str:
    """Shells on Windows write D:\\lamp as /d/lamp."""
    slashed = path.replace("\\", "/").rstrip("/")
    drive = _DRIVE.match(slashed) if slashed[1:2] == ":" or slashed[:1] == "/" else None
    return f"{drive[1].lower()}:{slashed[2:]}" if drive else slashed


def _add_failure(failure: _OpenFailure, unresolved: list[_OpenFailure]) -> None:
    if not failure.error or _INSPECTION.match(failure.command):
        return
    if all(other.command != failure.command for other in unresolved):
        unresolved.append(failure)


def _add_success(
    command: str, event_id: int, log: CommandLog, unresolved: list[_OpenFailure]
) -> None:
    for failure in list(unresolved):
        is_same = _parts(failure.command) <= _parts(command)
        if not is_same and (failure.has_test_counts or not _are_similar(failure.command, command)):
            continue
        unresolved.remove(failure)
        fixed_by = _fix_of(failure)
        if fixed_by or not is_same:
            alternative = "" if is_same else command
            ids = (failure.event_id, event_id)
            log.failures.append(Failure(failure.command, failure.error, fixed_by, alternative, ids))
    if _REPAIR.search(command) and not _INSPECTION.match(command):
        for failure in unresolved:
            failure.last_repair = command


def file_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _fix_of(failure: _OpenFailure) -> str:
    """Describes the fix by the names of files: the summary has their paths."""
    if failure.edited:
        return "after editing " + ", ".join(map(file_name, failure.edited[:3]))
    return f"after `{failure.last_repair}`" if failure.last_repair else ""


def _parts(command: str) -> set[str]:
    return {part.strip() for part in re.split(r"&&|;", command)}


def _are_similar(failed: str, succeeded: str) -> bool:
    """The same command with more or fewer words."""
    first, second = set(failed.split()), set(succeeded.split())
    return min(len(first), len(second)) >= 2 and (first <= second or second <= first)


def commit_subject(command: str) -> str:
    """Returns the subject of the message in the command; empty if it has none."""
    if not _commits(command) or _NO_COMMIT.search(command):
        return ""
    lines = [line.strip() for line in _commit_message(command).splitlines()]
    return next((line for line in lines if line), "")


def _add_commit(full: str, output: str, log: CommandLog) -> None:
    if subject := commit_subject(full):
        match = _HASH.search(output)
        log.commits[subject] = match[1] if match else ""
    elif AMENDS in full:  # with the same message: the hash is new
        for commit_hash, printed in _PRINTED_COMMIT.findall(output):
            if printed.strip() in log.commits:
                log.commits[printed.strip()] = commit_hash


def _commit_message(command: str) -> str:
    if (text := here_document_of(command, _COMMIT)) is not None:
        return text
    message = _MESSAGE.search(without_here_documents(command))
    return (message[1] or message[2]) if message else ""


@lru_cache(maxsize=256)  # it is asked whether the output is read, and then for what
def short_command(command: str) -> str:
    """The command itself, without its directory, environment and output filters."""
    first = " ".join(command.strip().split("\n", 1)[0][: 4 * READ_LINE].split())
    bare = " ".join(_TAIL.sub(" ", _PREFIX.sub("", first, count=1)).split())
    return shorten(bare or first, LONGEST_COMMAND)


def command_steps(command: str) -> list[str]:
    """The commands of a chain of which each ran because the one before succeeded."""
    first = " ".join(command.strip().split("\n", 1)[0][: 4 * READ_LINE].split())
    if _OTHER_CHAINS.search(_TAIL.sub(" ", first)):
        return []
    steps = (short_command(step) for step in first.split("&&"))
    return [step for step in steps if step and not _DIRECTORY.match(step)]


def error_line(output: str) -> str:
    """The line of an output that best explains a failure."""
    stripped = [line.strip()[:READ_LINE] for line in output[-READ_OUTPUT:].splitlines()]
    lines = [line for line in stripped if len(line) > 8 and not _UNINFORMATIVE.match(line)]
    for find, order in ((_FAILED_TEST.match, 1), (_ERROR.match, -1), (_ERROR_WORD.search, 1)):
        for line in lines[::order]:
            if find(line) and not _WARNING.search(line):
                return _flat(line)
    return _flat(lines[0]) if lines else ""


def _flat(line: str) -> str:
    return shorten(one_line(line), LONGEST_ERROR)


def is_outcome_unknown(response: Json) -> bool:
    """Whether the agent of a command does not report exit codes."""
    return isinstance(response, dict) and response.get("outcome") == "unknown"


def output_of(event: TurnEvent) -> str:
    response = event.tool_response
    if isinstance(response, dict):
        parts = [response.get("stdout"), response.get("stderr")]
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    if isinstance(response, str):
        return response
    return event.text or ""


def _counts(output: str) -> str:
    """How many tests passed and failed, from the last lines with counts."""
    counts: dict[str, str] = {}
    for line in output[-READ_COUNTS:].splitlines():
        if "pass" in line or "fail" in line or "Fail" in line:
            for number, verb, _, count in _COUNTS.findall(line):
                counts["passed" if verb[:1] in ("p", "P") else "failed"] = number or count
    positive = [(verb, number) for verb, number in counts.items() if int(number.replace(",", ""))]
    return ", ".join(f"{number} {verb}" for verb, number in sorted(positive, reverse=True))


# The files that a turn changed, and those it read.

# The client's own files: plans and todos are no work on the project.
CLIENT_FILES = re.compile(r"[/\\]\.claude[/\\](?:plans|projects|todos)[/\\]")
SHORTEST_REPLACEMENT, LONGEST_REPLACEMENT = 5, 80  # the shortest: of both sides
READ_EDIT = 20_000
_REMOVED_VALUE = "REDACTED"  # what other tools put in place of a value is no name
_DEFINITION = re.compile(
    r"^(?:[ \t]{1,8}(?!const|type))?"  # within a class or a function these are details
    r"(?:(?:export|default|pub|public|private|static|async|abstract)[ \t]+){0,4}"
    r"(?:func|function|def|class|interface|struct|enum|fn|type|const)[ \t]+"
    r"(?:\([^()\n]{0,80}\)[ \t]*)?([A-Za-z_]\w{2,60})",
    re.MULTILINE,
)
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S[^\n#]{3,70})$", re.MULTILINE)
EDITING = ("Edit", "Write", "MultiEdit", "NotebookEdit")


@dataclass(slots=True)
class FileWork:
    """The edits of one file in a turn."""

    path: str
    created: bool = False
    replacements: list[tuple[str, str]] = field(default_factory=list)  # short lines: old and new
    added: list[str] = field(default_factory=list)  # symbols that the edits define
    removed: list[str] = field(default_factory=list)  # and those that they delete
    added_headings: list[str] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)


def files_changed(turn: Turn) -> dict[str, FileWork]:
    files: dict[str, FileWork] = {}
    for event in turn.events:
        if event.kind != "PostToolUse" or event.tool_name not in EDITING:
            continue
        path = path_of(event)
        if path is None or CLIENT_FILES.search(path):
            continue
        shown = relative(path, turn.project_dir)
        work = files.setdefault(shown, FileWork(shown))
        work.sources.append(event.id)
        _add_replacement(work, event)
        response = event.tool_response
        work.created |= isinstance(response, dict) and response.get("type") == "create"
    return files


def _add_replacement(work: FileWork, event: TurnEvent) -> None:
    params = event.tool_input if isinstance(event.tool_input, dict) else {}
    edits = params.get("edits")
    for edit in (params, *(edits if isinstance(edits, list) else ())):
        texts = edit if isinstance(edit, dict) else {}
        old, new = texts.get("old_string"), texts.get("new_string")
        if isinstance(old, str) and isinstance(new, str):
            _add_names(work, old[:READ_EDIT], new[:READ_EDIT])
            before, after = _changed_line(old[:READ_EDIT], new[:READ_EDIT])
            is_telling = len(before) + len(after) >= SHORTEST_REPLACEMENT
            if is_telling and _is_short(before) and _is_short(after) and before != after:
                work.replacements.append((before, after))


def _changed_line(old: str, new: str) -> tuple[str, str]:
    """What differs, without the lines around it that an edit quotes to find its place."""
    before, after = old.strip().splitlines(), new.strip().splitlines()
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    return "\n".join(before).strip(), "\n".join(after).strip()


def _add_names(work: FileWork, before: str, after: str) -> None:
    """What the edit brought or took: definitions and headings that only one of both texts has."""
    is_text = work.path.lower().endswith((".md", ".mdx", ".markdown"))
    pattern, names = (_HEADING, work.added_headings) if is_text else (_DEFINITION, work.added)
    of_old, of_new = pattern.findall(before), pattern.findall(after)
    known = {*of_old, *names, _REMOVED_VALUE}
    names += [name for name in dict.fromkeys(of_new) if name not in known]
    if not is_text:
        work.removed += [name for name in dict.fromkeys(of_old) if name not in of_new]


def _is_short(text: str) -> bool:
    return 0 < len(text) <= LONGEST_REPLACEMENT and "\n" not in text and "`" not in text


def files_read(turn: Turn) -> list[str]:
    read: dict[str, None] = {}
    for event in turn.events:
        if event.kind == "PostToolUse" and event.tool_name == "Read" and (path := path_of(event)):
            read[relative(path, turn.project_dir)] = None
    return list(read)


def path_of(event: TurnEvent) -> str | None:
    for source in (event.tool_input, event.tool_response):
        for name in ("file_path", "filePath", "notebook_path"):
            value = source.get(name) if isinstance(source, dict) else None
            if isinstance(value, str) and value:
                return value
    return None


def relative(path: str, project_dir: str) -> str:
    for root in (project_dir.rstrip("/") + "/", project_dir.rstrip("\\") + "\\"):
        if len(root) > 1 and path.startswith(root):
            return path.removeprefix(root)
    return path
