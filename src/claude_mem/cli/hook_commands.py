"""The former hook commands: `claude-mem new < payload.json` does what the launcher does."""

import os
import sys
import tempfile

import click

from claude_mem.config import load_settings
from claude_mem.hook.private_text import strip_private

_EVENTS = {
    "new": ("UserPromptSubmit", "Record a submitted prompt."),
    "save": ("PostToolUse", "Record a tool use."),
    "summary": ("Stop", "Record the end of a turn."),
    "cleanup": ("SessionEnd", "Record the end of a session."),
}
NAMES = (*_EVENTS, "context")


def _command(name: str, event: str, text: str) -> click.Command:
    def run() -> None:
        if sys.stdin.isatty():
            raise click.UsageError(f"expected a {event} hook payload on stdin")
        run_hook(event)

    help_text = f"{text} Reads the {event} payload as JSON from stdin."
    return click.Command(name, callback=run, help=help_text, short_help=text, hidden=True)


def run_hook(event: str) -> None:
    from claude_mem.hook.capture import run

    sys.stdout.flush()
    run(["claude", event])


@click.command(short_help="Show the context of the next session in this directory.")
@click.option("--project", help="Project name or key (default: that of this directory).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def context(project: str | None, as_json: bool) -> None:
    """Show the context that the next session in this directory gets.

    With a SessionStart hook payload on stdin, print the hook's response instead.
    """
    if project is None and not as_json and _has_payload():
        payload = sys.stdin.buffer.read()
        if payload.strip():
            _run_hook_on(payload)
            return
    from claude_mem.cli.inspect import show_context

    show_context(load_settings(os.environ), project, as_json)


def _run_hook_on(payload: bytes) -> None:
    """The hook reads file descriptor 0, so the payload is put back there."""
    with tempfile.TemporaryFile() as stdin:
        stdin.write(strip_private(payload))
        stdin.seek(0)
        os.dup2(stdin.fileno(), 0)
        run_hook("SessionStart")


def _has_payload() -> bool:
    """Whether stdin is a pipe, file or socket; not a terminal, /dev/null or closed."""
    import stat

    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


commands = [context, *(_command(name, *rest) for name, rest in _EVENTS.items())]
