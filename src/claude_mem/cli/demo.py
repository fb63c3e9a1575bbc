"""claude-mem demo: a session through the real launcher and hooks, into a home that then goes."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import click

from claude_mem.cli.output import heading
from claude_mem.cli.replay import payloads, session_and_directory
from claude_mem.config import Layout
from claude_mem.errors import ClaudeMemError
from claude_mem.install.launcher import write_launcher
from claude_mem.server import client
from claude_mem.text import one_line, shorten
from claude_mem.types import Json

OWN_SESSION = Path(__file__).with_name("demo_session.jsonl")


@click.command()
@click.option(
    "--transcript",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A Claude Code transcript to play instead of the session that comes along.",
)
@click.pass_obj
def demo(_: object, transcript: Path | None) -> None:
    """See it work: a recorded session goes through the real hooks, and the memory that the next
    session would be given is printed. Everything happens in a temporary home."""
    source = transcript or OWN_SESSION
    _, project_dir = session_and_directory(source)
    with tempfile.TemporaryDirectory(prefix="claude-mem-demo-") as home:
        layout = Layout(Path(home) / ".claude-mem")
        layout.create()
        launcher = write_launcher(layout)
        try:
            _play(launcher, layout, source, project_dir, home)
        finally:
            client.stop(layout)


def _play(launcher: Path, layout: Layout, source: Path, project_dir: str, home: str) -> None:
    hook = _Hook(launcher, layout, project_dir, home)
    client.start(layout, hook.environment)
    heading(f"1. A session in {project_dir}, through the hooks as Claude Code runs them")
    for event, payload in payloads(source):
        hook.run(event, payload)
        click.echo(f"   {event:<19} {_gist(payload)}")
    click.echo(f"   {hook.count} hooks, {hook.seconds / hook.count * 1000:.0f} ms each\n")
    heading("2. What the next session in that directory is given")
    start: dict[str, Json] = {
        "session_id": "the-next-session",
        "cwd": project_dir,
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    answer = json.loads(hook.run("SessionStart", start))
    given = answer.get("hookSpecificOutput", {}).get("additionalContext")
    if not given:
        raise ClaudeMemError("the next session was given nothing; the session had no turn in it")
    click.echo(given)


class _Hook:
    """Runs the launcher with a payload on stdin, as the agent does."""

    def __init__(self, launcher: Path, layout: Layout, project_dir: str, home: str) -> None:
        self._launcher = launcher
        self.environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": home,
            "CLAUDE_MEM_DATA_DIR": str(layout.root),
            "CLAUDE_MEM_WORKER_PORT": "0",
            "CLAUDE_PROJECT_DIR": project_dir,
        }
        self.count, self.seconds = 0, 0.0

    def run(self, event: str, payload: dict[str, Json]) -> bytes:
        begun = time.perf_counter()
        done = subprocess.run(
            [self._launcher, "claude", event],
            input=json.dumps(payload).encode(),
            stdout=subprocess.PIPE,
            env=self.environment,
            check=True,
        )
        self.count += 1
        self.seconds += time.perf_counter() - begun
        return done.stdout


def _gist(payload: dict[str, Json]) -> str:
    given = payload.get("tool_input")
    what = given.get("file_path") or given.get("command") if isinstance(given, dict) else None
    text = payload.get("prompt") or what or payload.get("last_assistant_message") or ""
    return shorten(one_line(f"{payload.get('tool_name') or ''} {text}"), 90)


commands = [demo]
