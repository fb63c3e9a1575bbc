"""claude-mem demo: a recorded session through the real launcher and hooks, in a temporary home."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from claude_mem.agents.agent import Payload
from claude_mem.cli.output import print_heading
from claude_mem.config import Layout
from claude_mem.errors import BadInput, ClaudeMemError
from claude_mem.hook import response, spooling
from claude_mem.hook.capture import CLAUDE
from claude_mem.install.launcher import write_launcher
from claude_mem.intake.transcripts.transcript import Transcript
from claude_mem.server import client
from claude_mem.text import one_line, pluralize, shorten
from claude_mem.types import FROM_TRANSCRIPT, Json

QUERY = "why was the cookie not sent"
PROMPT = (
    "Before I change the sign-in view again: why did the browser not send the session cookie after"
    " the redirect from the identity provider?"
)
ANSWER_SECONDS = 10.0  # a hook waits for less; here, the worker loads what it needs for hints first
LONGEST_QUERY, LONGEST_PROMPT = 90, 300
SAMPLE_SESSION = Path(__file__).with_name("demo_session.jsonl")


@click.command()
@click.option(
    "--transcript",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Replay this Claude Code transcript instead of the sample session.",
)
@click.pass_obj
def demo(_: object, transcript: Path | None) -> None:
    """Replay a recorded session through the real hooks, and show what the next session gets:
    its context, a search and a hint.

    Everything happens in a temporary directory.
    """
    source = transcript or SAMPLE_SESSION
    project_dir = str(next(payloads(source))[1]["cwd"])
    with tempfile.TemporaryDirectory(prefix="claude-mem-demo-") as home:
        layout = Layout(Path(home) / ".claude-mem")
        layout.create()
        launcher = write_launcher(layout)
        try:
            hook = _Hook(launcher, layout, project_dir, home)
            _replay(hook, layout, source, project_dir)
            query, prompt = (QUERY, PROMPT) if transcript is None else _first_prompt(source)
            _search(hook, query)
            _hint(hook, layout, project_dir, prompt)
            _show_next_steps()
        finally:
            client.stop(layout)


def _replay(hook: "_Hook", layout: Layout, source: Path, project_dir: str) -> None:
    client.start(layout, hook.environment)
    print_heading(f"1. A session in {project_dir}, replayed through the hooks")
    for event, payload in payloads(source):
        hook.run(event, payload)
        click.echo(f"   {event:<19} {_describe(payload)}")
    click.echo(
        f"   {pluralize(hook.count, 'hook')}, {hook.seconds / hook.count * 1000:.0f} ms each\n"
    )
    print_heading("2. The context of the next session in that directory")
    start: dict[str, Json] = {
        "session_id": "the-next-session",
        "cwd": project_dir,
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    answer = json.loads(hook.run("SessionStart", start))
    context = answer.get("hookSpecificOutput", {}).get("additionalContext")
    if not context:
        raise ClaudeMemError("the next session got no context: the transcript has no turns")
    click.echo(context)


def _first_prompt(source: Path) -> tuple[str, str]:
    """The query and the prompt: what the user asked first in another transcript."""
    prompts = (str(payload["prompt"]) for _, payload in payloads(source) if payload.get("prompt"))
    prompt = next(prompts, "")
    return shorten(one_line(prompt), LONGEST_QUERY).rstrip("…"), prompt


def _search(hook: "_Hook", query: str) -> None:
    print_heading("\n3. A search")
    click.echo(f"$ claude-mem search {shlex.quote(query)}")
    command = [sys.executable, "-m", "claude_mem", "search", "--", query]
    done = subprocess.run(command, env=hook.environment, capture_output=True, text=True, check=True)
    click.echo(done.stdout, nl=False)


def _hint(hook: "_Hook", layout: Layout, project_dir: str, prompt: str) -> None:
    """What the hook of a prompt prints, asked of the worker as the hook does."""
    print_heading("\n4. The hint with a prompt, in a session whose context does not say it already")
    click.echo(f"> {shorten(one_line(prompt), LONGEST_PROMPT)}")
    payload = {
        "session_id": "a-later-session",
        "cwd": project_dir,
        "hook_event_name": "UserPromptSubmit",
        "prompt": prompt,
    }
    header = spooling.header(CLAUDE, b"UserPromptSubmit", time.time_ns(), os.fsencode(project_dir))
    body = header + json.dumps(payload).encode()
    here = os.open(".", os.O_RDONLY)
    try:
        line = response.ask(os.fsencode(layout.root), response.PROMPT_ROUTE, body, ANSWER_SECONDS)
    finally:
        os.fchdir(here)
        os.close(here)
    answer = json.loads(line or b"{}")
    hint = answer.get("hookSpecificOutput", {}).get("additionalContext")
    click.echo(hint or "No hint: nothing in memory is likely enough to help with it.")


def _show_next_steps() -> None:
    print_heading("\n5. What to type next")
    steps = [
        ("claude-mem install --dry-run", "shows what would change"),
        ("claude-mem install", "adds claude-mem to Claude Code; offers to import past sessions"),
        ("claude-mem open", "shows everything in a browser, after your next session"),
    ]
    if shutil.which("claude-mem") is None:  # as in make demo, which installs nothing
        steps.insert(0, ("pipx install .", "or: pip install . or: uv tool install ."))
    for command, meaning in steps:
        click.echo(f"   {command:<30} {meaning}")


def payloads(transcript: Path) -> Iterator[tuple[str, Payload]]:
    """The hook payloads of a transcript with their event names, in order.

    Statements have no hook; the worker reads them itself.
    """
    is_empty = True
    try:
        for event in Transcript(transcript).events():
            is_empty = False
            if event.kind not in FROM_TRANSCRIPT:
                yield event.kind, event.payload
    except OSError as error:
        raise BadInput(f"{transcript} cannot be read: {error.strerror}") from None
    if is_empty:
        raise BadInput(f"{transcript} contains no session: is it a Claude Code transcript?")


class _Hook:
    """Runs the launcher with a payload on stdin, as Claude Code does."""

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
        started = time.perf_counter()
        done = subprocess.run(
            [self._launcher, "claude", event],
            input=json.dumps(payload).encode(),
            stdout=subprocess.PIPE,
            env=self.environment,
            check=True,
        )
        self.count += 1
        self.seconds += time.perf_counter() - started
        return done.stdout


def _describe(payload: dict[str, Json]) -> str:
    tool = payload.get("tool_input")
    target = tool.get("file_path") or tool.get("command") if isinstance(tool, dict) else None
    text = payload.get("prompt") or target or payload.get("last_assistant_message") or ""
    return shorten(one_line(f"{payload.get('tool_name') or ''} {text}"), 90)


commands = [demo]
