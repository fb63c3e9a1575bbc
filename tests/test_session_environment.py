"""The environment of a session decides nothing in a worker that its hooks start."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from claude_mem.config import environment_for_worker, record_environment, recorded_environment
from claude_mem.config.layout import Layout
from claude_mem.hook.worker_start import worker_environment
from claude_mem.install.launcher import launcher_text, mcp_launcher_text
from claude_mem.server import client
from tests.conftest import Home
from tests.payloads import prompt, session_start

OWN = {
    "HOME": "/home/dev",
    "PATH": "/usr/bin",
    "HTTPS_PROXY": "http://proxy.example:3128",
    "CLAUDE_MEM_RECORD_DAYS": "90",
    "LANG": "C.UTF-8",
    "TZ": "Europe/Berlin",
}
OF_A_PROJECT = {
    "HOME": "/repository/home",
    "PATH": "/repository/bin:/usr/bin",
    "CLAUDE_CONFIG_DIR": "/repository/.claude",
    "CLAUDE_CODE_PATH": "/repository/claude",
    "HTTPS_PROXY": "http://192.0.2.1:3128",
    "https_proxy": "http://192.0.2.1:3128",
    "SSL_CERT_FILE": "/repository/certificate.pem",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/repository/bus",
    "CLAUDE_MEM_RECORD_DAYS": "0",
    "CLAUDE_MEM_API_KEY": "sk-of-somebody-else",
    "CLAUDE_MEM_API_URL": "https://elsewhere.example",
    "CLAUDE_MEM_REDACT_ALLOW": "my-password",
    "CLAUDE_MEM_EXCLUDED_PROJECTS": "*",
    "LANG": "de_DE.UTF-8",
    "TZ": ":/repository/fifo",
}
# That an interpreter, its libraries, a program or the launcher itself would use, and multi-line
# values that look like the output of `export -p`.
NOT_PASSED = {
    "TZ": ":/dev/stdin", "TZDIR": "/repository", "LOCPATH": "/repository", "PYTHONHOME": "/x",
    "PYTHONPATH": "/repository", "PYTHONINSPECT": "1", "LD_LIBRARY_PATH": "/repository",
    "GCONV_PATH": "/repository", "OPENSSL_CONF": "/x", "MALLOC_TRACE": "/x", "TOKEN": "secret",
    "name": "x", "status": "x", "tries": "x", "IFS": "EPX", "A": "x\nexport HOME=/x\n",
    "B": "export TZ='", "C": "'\nexport -n TZ\nunset 1\n\n*",
    "BASH_FUNC_command%%": "() { echo not JSON; }",
    **{f"LONG{number}": "x\n" + "y" * 120_000 for number in range(8)},
}  # fmt: skip
PASSED = {
    "HOME": "/home/dev", "CLAUDE_PROJECT_DIR": "/srv/a b\n'c\"", "COPILOT_CLI": "",
    "CLAUDE_MEM_RAW_DAYS": "7", "LC_ALL": "C.UTF-8", "https_proxy": "http://127.0.0.1:9",
}  # fmt: skip
SHELLS = [[path] for shell in ("dash", "bash", "busybox") if (path := shutil.which(shell))]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "data")
    layout.create()
    return layout


def passed_on(session: dict[str, str], layout: Layout) -> dict[str, str]:
    """What the hook hands over, as text."""
    encoded = {name.encode(): value.encode() for name, value in session.items()}
    passed = worker_environment(encoded, str(layout.root).encode())
    return {name.decode(): value.decode() for name, value in passed.items()}


def test_a_worker_uses_the_environment_that_the_user_recorded(layout: Layout) -> None:
    record_environment(layout, OWN)
    environment = environment_for_worker(passed_on(OF_A_PROJECT, layout), layout)
    expected = {**OWN, "CLAUDE_MEM_DATA_DIR": str(layout.root)}
    assert environment.variables == expected
    assert set(environment.ignored) == {
        "CLAUDE_CODE_PATH", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE",
        "CLAUDE_MEM_RECORD_DAYS", "CLAUDE_MEM_API_KEY", "CLAUDE_MEM_API_URL",
        "CLAUDE_MEM_REDACT_ALLOW", "CLAUDE_MEM_EXCLUDED_PROJECTS",
    }  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: Path(shell[0]).name)
@pytest.mark.parametrize("text", [launcher_text, mcp_launcher_text])
def test_the_interpreter_gets_only_the_variables_that_are_used(
    layout: Layout, shell: list[str], text: Callable[[Layout, str], str]
) -> None:
    python = layout.root / "python"
    python.write_text(
        f"#!{sys.executable} -IS\nimport posix\n"
        "print({n.decode(): v.decode() for n, v in posix.environ.items()})\n"
    )
    python.chmod(0o700)
    shell_named_sh = layout.root / "sh"
    shell_named_sh.symlink_to(shell[0])
    launcher = layout.root / "launcher"
    launcher.write_text(text(layout, str(python)))
    done = subprocess.run(
        [shell_named_sh, launcher, "claude", "Stop"], env={**NOT_PASSED, **PASSED},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    received = ast.literal_eval(done.stdout.decode())
    of_the_shell = {"PWD", "OLDPWD", "SHLVL", "_"}
    expected = {**PASSED, "CLAUDE_MEM_DATA_DIR": str(layout.root)}
    assert {n: v for n, v in received.items() if n not in of_the_shell} == expected
    assert not done.stderr


def test_a_time_zone_that_names_a_file_takes_no_event_and_blocks_no_hook(home: Home) -> None:
    fifo = home.path / "fifo"
    os.mkfifo(fifo)
    with home.without_worker():
        for zone in (":/dev/stdin", f":{fifo}", "../../../../dev/stdin"):
            home.hook(prompt("Which lamp is on the pier?"), TZ=zone)
        spooled = [file.read_bytes() for file in home.layout.spool.glob("*.event")]
    assert [b"Which lamp" in record for record in spooled] == [True] * 3


def test_only_a_worker_that_the_user_starts_gets_the_time_zone_of_its_shell() -> None:
    shell = {b"TZ": b"Europe/Berlin", b"PATH": b"/usr/bin"}
    assert b"TZ" not in worker_environment(shell, b"/data")
    assert worker_environment(shell, b"/data", is_own=True)[b"TZ"] == b"Europe/Berlin"


def test_a_session_with_the_same_environment_has_nothing_ignored(layout: Layout) -> None:
    record_environment(layout, OWN)
    assert environment_for_worker(passed_on(OWN, layout), layout).ignored == ()


@pytest.mark.parametrize("content", [None, "", "[]", "{", '{"PATH": 3}'])
def test_without_a_record_a_session_sets_no_address_program_or_setting(
    layout: Layout, content: str | None
) -> None:
    if content is not None:
        layout.environment.write_text(content)
    session = passed_on({**OWN, **OF_A_PROJECT}, layout)
    del session["CLAUDE_MEM_EXCLUDED_PROJECTS"]
    variables = environment_for_worker(session, layout).variables
    has_basics = content != '{"PATH": 3}'
    assert variables.get("HOME") == ("/repository/home" if has_basics else None)
    decisive = ("CLAUDE_CODE_PATH", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE")
    assert not set(variables) & set(decisive)
    assert [name for name in variables if name.startswith("CLAUDE_MEM_")] == ["CLAUDE_MEM_DATA_DIR"]


def test_without_a_record_an_excluded_project_stays_excluded(layout: Layout) -> None:
    session = passed_on({"HOME": "/home/dev", "CLAUDE_MEM_EXCLUDED_PROJECTS": "secret-*"}, layout)
    variables = environment_for_worker(session, layout).variables
    assert variables["CLAUDE_MEM_EXCLUDED_PROJECTS"] == "secret-*"


def test_a_record_is_private_and_has_no_key(layout: Layout) -> None:
    record_environment(layout, {**OWN, "CLAUDE_MEM_API_KEY": "sk-mine", "AWS_SECRET": "x"})
    assert recorded_environment(layout) == OWN
    assert layout.environment.stat().st_mode & 0o077 == 0


def test_a_shell_of_an_agent_is_not_recorded(layout: Layout) -> None:
    record_environment(layout, {**OF_A_PROJECT, "CLAUDECODE": "1"})
    assert recorded_environment(layout) is None


def test_a_hook_of_a_project_starts_a_worker_without_its_settings_and_the_user_is_told(
    home: Home,
) -> None:
    home.record_environment()
    session = {"CLAUDE_MEM_RAW_DAYS": "1", "HTTPS_PROXY": "http://127.0.0.1:9"}
    home.hook(session_start(), "Wake", **session)
    home.start_worker()
    settings = client.ask_worker(home.layout, "/api/settings")
    assert isinstance(settings, dict) and isinstance(settings["settings"], list)
    days = next(s for s in settings["settings"] if s["name"] == "CLAUDE_MEM_RAW_DAYS")  # type: ignore[index,call-overload]
    assert (days["value"], days["source"]) == ("30", "default")  # type: ignore[index,call-overload]
    message = json.loads(home.hook(session_start()).stdout)["systemMessage"]
    assert "ignored from the environment of a session: CLAUDE_MEM_RAW_DAYS, HTTPS_PROXY" in message
    assert "claude-mem worker restart" in message


def test_what_the_users_own_command_starts_has_the_environment_of_its_shell(home: Home) -> None:
    done = home.command("worker", "start", CLAUDE_MEM_RAW_DAYS="7")
    assert done.returncode == 0, done.stderr
    recorded = recorded_environment(home.layout)
    assert recorded is not None and recorded["CLAUDE_MEM_RAW_DAYS"] == "7"
    assert "7" in home.command("settings", CLAUDE_MEM_RAW_DAYS="7").stdout


def test_an_agent_that_starts_the_worker_does_not_choose_its_settings(home: Home) -> None:
    home.record_environment()
    environment = {"CLAUDECODE": "1", "CLAUDE_MEM_RAW_DAYS": "1"}
    assert home.command("worker", "start", **environment).returncode == 0
    settings = client.ask_worker(home.layout, "/api/settings")
    assert isinstance(settings, dict)
    assert '"CLAUDE_MEM_RAW_DAYS", "value": "30"' in json.dumps(settings)
