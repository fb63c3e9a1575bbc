"""claude-mem open: the viewer in a browser."""

import os
import webbrowser

import click

from claude_mem.config import Settings
from claude_mem.server import client


@click.command("open")
@click.option("--print", "print_only", is_flag=True, help="Print the link; do not open it.")
@click.pass_obj
def open_viewer(settings: Settings, print_only: bool) -> None:
    """Open the viewer in a browser: see, search and change memories.

    The link works once, within two minutes. After that the browser stays signed in until the
    worker ends, for 12 hours at most.
    For a remote machine, forward the port: ssh -L 37777:127.0.0.1:37777 HOST (if `claude-mem worker
    status` shows another port there, use that one).
    """
    link = client.request(settings.layout, os.environ, "/viewer/link", {})
    url, seconds = str(link["url"]), link["seconds"]
    if not print_only and webbrowser.open(url):
        click.echo(f"Opened http://127.0.0.1:{link['port']} in your browser.")
        return
    click.echo(url)
    click.echo(f"It works once, within {seconds} seconds.", err=True)


commands = [open_viewer]
