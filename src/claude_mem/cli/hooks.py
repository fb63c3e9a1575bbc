"""The old names of the hooks: `claude-mem new < payload.json` does what the launcher does."""

import os
import sys
import tempfile

import click

from claude_mem.config import load_settings
from claude_mem.hook.scanner import strip_private

_EVENTS = {
    "new": ("UserPromptSubmit", "A prompt was submitted."),
    "save": ("PostToolUse", "A tool was used."),
    "summary": ("Stop", "The agent finished its turn."),
    "cleanup": ("SessionEnd", "The session ended."),
}
NAMES = (*_EVENTS, "context")


def _command(name: str, event: str, text: str) -> click.Command:
    def run() -> None:
        if sys.stdin.isatty():
            raise click.UsageError(f"a hook payload is expected on stdin ({event})")
        run_hook(event)

    help_text = f"{text} Hook payload as JSON on stdin ({event})."
    return click.Command(name, callback=run, help=help_text, short_help=text, hidden=True)


def run_hook(event: str) -> None:
    from claude_mem.hook.capture import run

    sys.stdout.flush()
    run(["claude", event])


@click.command(short_help="What the next session here will be given.")
@click.option("--project", help="Name or key of another project than the one of this directory.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def context(project: str | None, as_json: bool) -> None:
    """What the next session in this directory will be given.

    With a hook payload on stdin (SessionStart) it answers as the hook does.
    """
    if project is None and not as_json and _has_payload():
        payload = sys.stdin.buffer.read()
        if payload.strip():
            _run_hook_on(payload)
            return
    from claude_mem.cli.status import show_context

    show_context(load_settings(os.environ), project, as_json)


def _run_hook_on(payload: bytes) -> None:
    """The hook reads its descriptor 0: what was read is laid ready there again."""
    with tempfile.TemporaryFile() as again:
        again.write(strip_private(payload))
        again.seek(0)
        os.dup2(again.fileno(), 0)
        run_hook("SessionStart")


def _has_payload() -> bool:
    """Something is piped in; a terminal, /dev/null or a closed stdin is not a payload."""
    import stat

    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


commands = [context, *(_command(name, *rest) for name, rest in _EVENTS.items())]
