"""claude-mem pause and resume: they change a file that hooks look at, and need no worker."""

import click

from claude_mem.cli.output import json_option, print_json
from claude_mem.config import Settings
from claude_mem.config.pausing import Pause, parse_duration
from claude_mem.config.pausing import pause as pause_capture
from claude_mem.config.pausing import resume as resume_capture
from claude_mem.text import local_time


@click.command()
@click.option("--for", "duration", help="How long, such as 30m, 2h or 1d (default: until resume).")
@json_option
@click.pass_obj
def pause(settings: Settings, duration: str | None, as_json: bool) -> None:
    """Pause recording: hooks drop every event before it reaches the disk.

    Existing memories are kept, and new sessions still get them. To resume: `claude-mem resume`.
    """
    seconds = None if duration is None else parse_duration(duration)
    paused = pause_capture(settings.layout, seconds)
    if as_json:
        print_json({"paused": True, "until_epoch": paused.until_epoch})
    else:
        click.echo(f"{pause_text(paused)}. To resume: claude-mem resume")


@click.command()
@json_option
@click.pass_obj
def resume(settings: Settings, as_json: bool) -> None:
    """Resume recording after `claude-mem pause`."""
    was_paused = resume_capture(settings.layout)
    if as_json:
        print_json({"paused": False, "was_paused": was_paused})
    else:
        click.echo("Recording resumed." if was_paused else "Recording was not paused.")


def pause_text(paused: Pause) -> str:
    if paused.until_epoch is None:
        return "Recording is paused"
    return f"Recording is paused until {local_time(paused.until_epoch)}"


commands = [pause, resume]
