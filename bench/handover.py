"""Writes contexts for review, each next to how the session that it was for really began.

    python -m bench.handover --sessions DIR --out DIR [--points 3] [--weights FILE]

DIR has the transcripts of a project. For points of its time line (sessions evenly spaced over its
second half) everything before that session is imported, and the context that the session would
have got on its branch is written to OUT/N.context.txt, the hint for its first prompt to
OUT/N.hint.txt (empty if there is none), and its beginning to OUT/N.session.txt.
A reader judges each line: useful, neutral, meaningless or misleading. `--weights` takes other
weights of the observer than those of the package, for example trained without these sessions.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from bench.semantic import embed_all
from bench.transcripts import import_options
from claude_mem.agents.agent import TranscriptEvent
from claude_mem.cli.imports import find_transcripts, processes
from claude_mem.index import indexing
from claude_mem.intake.projects import Projects
from claude_mem.intake.transcripts.importer import import_transcripts
from claude_mem.intake.transcripts.missing_directories import known_projects
from claude_mem.intake.transcripts.transcript import Transcript
from claude_mem.observer.local import learned_trees
from claude_mem.recall.context import build_context
from claude_mem.recall.hints import Prompt, find_hint
from claude_mem.recall.tokens import estimate_tokens
from claude_mem.store import Store
from claude_mem.text import one_line, shorten
from claude_mem.types import BRANCH, STATEMENT, Project

POINTS, MOMENTS, LONGEST_MOMENT = 3, 14, 400
SHORTEST_SESSION = 12  # events; shorter ones give nothing to judge a context by
DEFAULT_BUDGET = 1_000


@dataclass(frozen=True, slots=True)
class Session:
    path: Path
    id: str
    directory: str
    began_ms: int
    branch: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--budget", type=int, default=DEFAULT_BUDGET, help="tokens of a context")
    parser.add_argument("--weights", type=Path, help="a table that training/observer.py wrote")
    options = parser.parse_args()
    if options.weights:
        learned_trees.use(learned_trees.load(options.weights))
    files = find_transcripts([options.sessions])
    sessions = select_points(files, options.points)
    if not sessions:
        print(f"{options.sessions} has too few sessions to judge a context by")
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    for number, session in enumerate(sessions, 1):
        context, hint = given_to(session, files, options.budget)
        (options.out / f"{number}.context.txt").write_text(context + "\n")
        (options.out / f"{number}.hint.txt").write_text(hint + "\n" if hint else "")
        (options.out / f"{number}.session.txt").write_text(beginning(session))
        print(f"{number}: session {session.id[:8]} of {_date(session.began_ms)}: "
              f"{len(context.splitlines())} lines, {estimate_tokens(context)} tokens")  # fmt: skip
    return 0


def select_points(files: list[Path], count: int) -> list[Session]:
    """Sessions evenly spaced over the second half of the time line, the last one included."""
    sessions = sorted(
        (s for path in files if (s := _session(path))), key=lambda s: (s.began_ms, s.id)
    )
    half = len(sessions) // 2
    later = sessions[half:]
    positions = [round((n + 1) * len(later) / count) - 1 for n in range(count)]
    return [later[position] for position in sorted(set(positions)) if position >= 0]


def _session(path: Path) -> Session | None:
    events = list(islice(Transcript(path).events(), SHORTEST_SESSION))
    times = [event.at_ms for event in events if event.at_ms is not None]
    if len(events) < SHORTEST_SESSION or not times:
        return None
    payload = events[0].payload
    branches = (str(e.payload["statement"]) for e in events if e.kind == BRANCH)
    return Session(
        path, str(payload["session_id"]), str(payload["cwd"]), times[0], next(branches, "")
    )


def given_to(session: Session, files: list[Path], budget: int) -> tuple[str, str]:
    """The context that a session would have got, and the hint for its first prompt."""
    with tempfile.TemporaryDirectory(prefix="claude-mem-bench-") as temporary:
        directory = Path(temporary)
        earlier = directory / "earlier"
        earlier.mkdir()
        copies = [copy for path in files if (copy := _copy_before(path, session, earlier))]
        with _store(directory / "before", copies) as store:
            project = store.project_by_key(_project(session, store).key)
            if project is None:
                return "", ""
            context = build_context(store, project, budget, branch=session.branch)
            prompt = Prompt(
                first_prompt(session), project_id=project, context=context, branch=session.branch
            )
            hint = find_hint(store, prompt, embed_all(store))
            return context, hint.text if hint else ""


def first_prompt(session: Session) -> str:
    events = Transcript(session.path).events()
    prompts = (e.payload.get("prompt") for e in events if e.kind == "UserPromptSubmit")
    return str(next(prompts, "") or "")


def _project(session: Session, store: Store) -> Project:
    """Returns the project as an import would find it: its directory may not exist on this
    machine."""
    known = known_projects([session.path], store.project_directories(), None)
    return Projects(None, known).of(session.directory)


def _store(directory: Path, files: list[Path]) -> Store:
    directory.mkdir()
    store = Store.open(directory / "memory.db", directory / "backups")
    store.run_before_commit(indexing.refresh)
    import_transcripts(store, files, import_options(), processes=processes())
    return store


def _copy_before(path: Path, session: Session, directory: Path) -> Path | None:
    """The lines of another session's transcript that were written before this session began."""
    if path == session.path:
        return None
    limit = datetime.fromtimestamp(session.began_ms / 1000, UTC).isoformat()[:19]
    lines = []
    for line in path.read_bytes().splitlines(keepends=True):
        if (at := _timestamp(line)) and at >= limit:
            break
        lines.append(line)
    if not lines:
        return None
    copy = directory / path.name
    copy.write_bytes(b"".join(lines))
    return copy


def _timestamp(line: bytes) -> str:
    """Writes a time as the client does: ISO 8601 in UTC, so that it sorts as text."""
    start = line.find(b'"timestamp":"')
    return line[start + 13 : start + 32].decode("ascii", "replace") if start >= 0 else ""


def beginning(session: Session) -> str:
    lines = [f"session {session.id}, {_date(session.began_ms)}"]
    moments = (line for event in Transcript(session.path).events() for line in _moment(event))
    lines += islice(moments, MOMENTS)
    return "\n".join(lines) + "\n"


def _moment(event: TranscriptEvent) -> Iterator[str]:
    payload = event.payload
    if event.kind == "UserPromptSubmit":
        yield _line("PROMPT", payload.get("prompt"))
    elif event.kind == STATEMENT:
        yield _line("SAYS", payload.get("statement"))
    elif event.kind in ("PostToolUse", "PostToolUseFailure"):
        yield _line(f"{payload.get('tool_name')}", payload.get("tool_input"))


def _line(label: str, value: object) -> str:
    return f"{label}: {shorten(one_line(str(value)), LONGEST_MOMENT)}"


def _date(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()[:16]


if __name__ == "__main__":
    sys.exit(main())
