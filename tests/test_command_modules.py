"""What a command loads: a list is the same on every machine, milliseconds are not."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

import claude_mem.cli
from claude_mem.cli import commands
from tests.conftest import Home, temporary_home
from tests.payloads import PROJECT_DIR, Payload, as_bytes, session_start

ASKING = {
    "claude_mem",
    "claude_mem.__main__",
    "claude_mem.paths",
    "claude_mem.quick_commands",
    "claude_mem.hook",
    "claude_mem.hook.response",
}
_PRINTING = """
import sys
from claude_mem.__main__ import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with temporary_home(tmp_path_factory.mktemp("home")) as home:
        home.start_worker()
        saved = home.command("remember", "The lamp of the harbour flickers: the relay is loose")
        assert saved.returncode == 0, saved.stderr
        yield home


def run(home: Home, *arguments: str, **environment: str) -> tuple[str, set[str]]:
    """What the command prints, and the modules of its process."""
    done = subprocess.run(
        [sys.executable, "-c", _PRINTING, *arguments],
        capture_output=True,
        text=True,
        env=home.env(**environment),
        stdin=subprocess.DEVNULL,
        cwd=home.path,
        timeout=60,
    )
    return done.stdout, set(done.stderr.splitlines()[-1].split())


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "claude_mem"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("status", "--json"),
        ("context",),
        ("context", "--json"),
        ("search", "relay", "lamp"),
        ("search", "--json", "why does it flicker", "--limit=3"),
        ("search", "lamp", "-quay", "--type", "discovery"),
        ("search", "lamp", "--type", "discoveries"),
        ("search", "lamp", "-v"),
        ("search", "--verbose", "lamp", "--limit", "1"),
    ],
)
def test_a_running_worker_answers_as_the_command_itself_does(
    running: Home, arguments: tuple[str, ...]
) -> None:
    answered, modules = run(running, *arguments)
    assert ours(modules) == ASKING
    assert not modules & {"click", "numpy", "sqlite3", "json", "rich", "dataclasses"}
    itself, modules = run(running, *arguments, TZ="UTC")  # a variable that the worker lacks
    assert "click" in modules and "claude_mem.cli" in modules
    assert "lamp" in answered or arguments[0] == "status"
    assert answered == itself


@pytest.mark.parametrize("payload", [session_start(session_id="piped"), None])
def test_a_payload_on_stdin_is_answered_as_a_hook(running: Home, payload: Payload | None) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "claude_mem", "context"],
        input=as_bytes(payload) if payload else b"",
        capture_output=True,
        env=running.env(),
        timeout=60,
    )
    assert b"lamp" in done.stdout
    assert (b"hookSpecificOutput" in done.stdout) == (payload is not None)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("search", "lamp", "--limit", "none"), "--limit"),
        (("search", "lamp", "--no-such"), "no such option"),
        (("search", "lamp", "--project", "nowhere"), "there is no project"),
        (("context", "--project", "nowhere"), "there is no project"),
    ],
)
def test_what_the_worker_refuses_is_reported_by_the_command(
    running: Home, arguments: tuple[str, ...], reason: str
) -> None:
    done = running.command(*arguments)
    assert done.returncode != 0 and reason in done.stderr


@pytest.mark.parametrize("command", ["search", "timeline", "related", "context", "status"])
@pytest.mark.parametrize("before", [(), ("lamp",)])
def test_h_shows_the_help(running: Home, command: str, before: tuple[str, ...]) -> None:
    done = running.command(command, *before, "-h")
    assert done.returncode == 0, done.stderr
    assert done.stdout == running.command(command, "--help").stdout
    assert re.search(r"^  -h, --help +Show", done.stdout, re.M)


@pytest.mark.parametrize("environment", [{}, {"TZ": "UTC"}], ids=["worker", "command"])
@pytest.mark.parametrize(("query", "matches"), [("lamp -hello", True), ("lamp -harbour", False)])
def test_an_excluded_word_with_h_is_no_option(
    running: Home, query: str, matches: bool, environment: dict[str, str]
) -> None:
    text, _ = run(running, "search", *query.split(), **environment)
    assert "Usage:" not in text
    assert ("relay is loose" in text) == matches


def test_settings_that_the_worker_does_not_have_count(running: Home) -> None:
    text, _ = run(running, "context", CLAUDE_MEM_CONTEXT_TOKENS="0")
    assert "CLAUDE_MEM_CONTEXT_TOKENS is 0" in text


def test_without_a_worker_the_command_searches_itself(home: Home) -> None:
    assert "No memories yet" in home.command("search", "lamp").stdout
    assert home.worker_pid() is None


def test_help_loads_no_command(home: Home) -> None:
    text, modules = run(home, "--help")
    assert "Search memories." in text
    assert ours(modules) == {"claude_mem", "claude_mem.__main__", "claude_mem.cli",
                             "claude_mem.cli.groups", "claude_mem.errors"}  # fmt: skip
    assert not modules & {"numpy", "sqlite3", "rich", "asyncio", "httpx"}


@pytest.mark.parametrize("command", ["settings", "sessions", "stats", "pause", "show", "context"])
def test_no_command_loads_what_others_need(home: Home, command: str) -> None:
    _, modules = run(home, command, "--help")
    assert not modules & {"numpy", "rich", "starlette", "uvicorn", "mcp", "httpx"}


def test_the_directory_of_the_command_decides_about_its_context(running: Home) -> None:
    elsewhere = Path(PROJECT_DIR) / "nowhere"
    text, _ = run(running, "context", CLAUDE_PROJECT_DIR=str(elsewhere))
    assert "No memories of this project yet." in text


def test_every_module_of_a_command_is_registered() -> None:
    directory = Path(str(claude_mem.cli.__file__)).parent
    modules = [
        import_module(f"claude_mem.cli.{path.stem}") for path in sorted(directory.glob("[a-z]*.py"))
    ]
    defined = {c.name for module in modules for c in getattr(module, "commands", [])}
    assert defined == set(commands.list_commands(click.Context(commands)))
