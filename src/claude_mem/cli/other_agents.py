"""The part of install and uninstall that is about agents other than Claude Code."""

import difflib
import os
import sys
from pathlib import Path

import click

from claude_mem.agents import CLAUDE, find_agent, installable_agents
from claude_mem.agents.agent import Agent
from claude_mem.config import Layout
from claude_mem.errors import ClaudeMemError
from claude_mem.install import other_agents
from claude_mem.install.changed_files import Outcome
from claude_mem.install.other_agents import Attachment
from claude_mem.install.settings_files import Change

ALL = "all"
CHOICES = (CLAUDE, *(agent.name for agent in installable_agents()), ALL)


def chosen_agents(names: tuple[str, ...]) -> list[Agent]:
    """Returns the chosen agents without Claude Code, which is installed in other ways."""
    if ALL in names:
        return other_agents.present_agents(os.environ)
    return [
        agent
        for name in dict.fromkeys(names)
        if name != CLAUDE and (agent := find_agent(name)) is not None
    ]


def preview(agents: list[Agent], layout: Layout, scope: str, rules: bool) -> bool:
    """Prints the changes; returns whether there are any."""
    changes = [
        change for agent in agents for change in _attachment(agent, layout, scope, rules).changes()
    ]
    for change in changes:
        print_diff(change)
    return bool(changes)


def install_agents(
    agents: list[Agent], layout: Layout, scope: str, *, rules: bool = False, yes: bool = True
) -> None:
    """A file that cannot be changed does not keep the other agents from being attached."""
    failed = False
    for agent in agents:
        try:
            attachment = _attachment(agent, layout, scope, rules)
            if not yes and not _confirm(attachment.changes(), agent):
                continue
            outcomes = attachment.install()
        except ClaudeMemError as error:
            outcomes = [Outcome(f"{agent.title}: {error}", True)]
        failed |= _print(outcomes)
        if agent.advice:
            click.echo(agent.advice)
    if failed:
        raise SystemExit(1)


def offer_agents(layout: Layout, *, interactive: bool) -> None:
    """Offers to attach the agents that are on this machine and have no memory yet."""
    missing = [
        agent
        for agent in other_agents.present_agents(os.environ)
        if not other_agents.attachments(agent, layout, os.environ)
    ]
    if not interactive:
        for agent in missing:
            click.echo(f"To add it to {agent.title}: claude-mem install --agent {agent.name}")
        return
    accepted = [a for a in missing if click.confirm(f"Add it to {a.title} as well?", default=True)]
    install_agents(accepted, layout, "user")


def uninstall_agents(agents: list[Agent], layout: Layout) -> list[Outcome]:
    return [
        outcome
        for agent in agents
        for outcome in other_agents.detach_agent(agent, layout, os.environ)
    ]


def print_diff(change: Change) -> None:
    before = (change.before or b"").decode("utf-8", "replace").splitlines(keepends=True)
    after = (change.after or b"").decode("utf-8", "replace").splitlines(keepends=True)
    path = str(change.path)
    click.echo("".join(difflib.unified_diff(before, after, path, path)))


def _attachment(agent: Agent, layout: Layout, scope: str, rules: bool) -> Attachment:
    return Attachment(agent, scope, layout, os.environ, Path.cwd(), rules)


def _confirm(changes: list[Change], agent: Agent) -> bool:
    if not changes or not sys.stdin.isatty():
        return True
    for change in changes:
        print_diff(change)
    return click.confirm(f"Change these files of {agent.title}?", default=True)


def _print(outcomes: list[Outcome]) -> bool:
    for outcome in outcomes:
        click.echo(outcome.text, err=outcome.failed)
    return any(outcome.failed for outcome in outcomes)
