"""The files in deploy/: what they start exists, with these options."""

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from claude_mem.cli.team import team

DEPLOY = Path(__file__).parent.parent / "deploy"
UNIT = DEPLOY / "claude-mem-team.service"
MAINTENANCE = DEPLOY / "claude-mem-team-maintain.service"
PROGRAM = "/opt/claude-mem/bin/claude-mem"


def check_command(words: list[str]) -> None:
    """Fails for a command or an option that does not exist."""
    group, name, *arguments = words
    assert group == "team"
    team.commands[name].make_context(name, arguments, parent=click.Context(team))


@pytest.mark.parametrize(("unit", "command"), [(UNIT, "serve"), (MAINTENANCE, "maintain")])
def test_a_systemd_unit_starts_a_command(unit: Path, command: str) -> None:
    settings = dict(
        line.split("=", 1)
        for line in unit.read_text().splitlines()
        if "=" in line and line[0] != "#"
    )
    program, *words = shlex.split(settings["ExecStart"])
    assert program == PROGRAM and words[1] == command
    check_command(words)


def test_the_timer_starts_its_unit() -> None:
    assert MAINTENANCE.with_suffix(".timer").exists()


@pytest.mark.parametrize("unit", [UNIT, MAINTENANCE])
def test_systemd_accepts_the_unit(tmp_path: Path, unit: Path) -> None:
    verifier = shutil.which("systemd-analyze")
    if verifier is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace(PROGRAM, "/bin/true"))
    done = subprocess.run([verifier, "verify", copy], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_compose_file_starts_a_database_and_a_server() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    content: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    database, server = content["services"]["database"], content["services"]["server"]
    assert set(content["volumes"]) == {v.split(":")[0] for v in database["volumes"]}
    assert server["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert database["healthcheck"]["test"][0] == "CMD"
    user = database["environment"]["POSTGRES_USER"]
    name = database["environment"]["POSTGRES_DB"]
    url = server["environment"]["CLAUDE_MEM_TEAM_DATABASE_URL"]
    assert url.startswith(f"postgresql://{user}:") and url.endswith(f"@database/{name}")
    shell, flag, script = server["command"]
    assert (shell, flag) == ("sh", "-c")
    _, _, started = script.partition("exec claude-mem ")
    words = shlex.split(started)
    assert words[1] == "serve"
    check_command(words)
    port = started.partition("--listen 0.0.0.0:")[2].split()[0]
    # Only this machine can reach it: the proxy with TLS is in front.
    assert server["ports"] == [f"127.0.0.1:{port}:{port}"]
