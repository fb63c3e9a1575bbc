"""claude-mem doctor: each problem is reported with the command that fixes it."""

import json
import shutil
import socket
import sqlite3
import stat
from contextlib import closing

from claude_mem.install.launcher import write_launcher
from tests.conftest import Home, wait_until
from tests.payloads import prompt, stop


def verdicts(home: Home, *arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
    done = home.command("doctor", "--json", *arguments)
    rows = json.loads(done.stdout)
    return done.returncode, {row["check"]: (row["verdict"], row["mend"]) for row in rows}


def test_a_new_installation_has_no_problems(installed: Home) -> None:
    status, checks = verdicts(installed)
    assert status == 0
    bad = {name: check for name, check in checks.items() if check[0] != "ok"}
    assert set(bad) == {"Claude Code"}
    text = installed.command("doctor").stdout
    assert "launcher:" in text and "runs" in text


def test_missing_hooks_are_found(home: Home) -> None:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    status, checks = verdicts(home)
    assert status == 1
    assert checks["hooks"] == ("wrong", "claude-mem install")


def test_before_an_install_there_is_one_thing_to_do_and_nothing_is_made(home: Home) -> None:
    shutil.rmtree(home.layout.root)
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    status, checks = verdicts(home, "--fix")
    assert status == 1
    assert {remedy for name, (_, remedy) in checks.items() if remedy and name != "Claude Code"} == {
        "claude-mem install"
    }
    assert not home.layout.root.exists()


def test_a_lost_interpreter_is_found_and_fixed(installed: Home) -> None:
    write_launcher(installed.layout, python="/no/such/python")
    assert verdicts(installed)[1]["interpreter"][0] == "wrong"
    status, checks = verdicts(installed, "--fix")
    assert (status, checks["interpreter"][0], checks["launcher"][0]) == (0, "ok", "ok")


def test_a_lost_launcher_is_found_and_fixed(installed: Home) -> None:
    installed.layout.launcher.unlink()
    assert verdicts(installed)[1]["launcher"][0] == "wrong"
    assert verdicts(installed, "--fix")[0] == 0
    installed.layout.mcp_launcher.unlink()
    assert verdicts(installed)[1]["MCP server"][0] == "wrong"
    assert verdicts(installed, "--fix")[0] == 0


def test_files_open_to_others_are_found_and_closed(installed: Home) -> None:
    installed.layout.token.touch()
    installed.layout.token.chmod(0o644)
    assert verdicts(installed)[1]["data directory"][0] == "wrong"
    assert verdicts(installed, "--fix")[1]["data directory"][0] == "ok"
    assert stat.S_IMODE(installed.layout.token.stat().st_mode) == 0o600


def test_a_stopped_worker_is_a_warning_and_started(installed: Home) -> None:
    installed.command("worker", "stop")
    status, checks = verdicts(installed)
    assert (status, checks["worker"]) == (0, ("warning", "claude-mem worker start"))
    assert verdicts(installed, "--fix")[1]["worker"][0] == "ok"


def test_rejected_payloads_and_a_missing_fifo_are_found(installed: Home) -> None:
    installed.hook(b"not a payload", "Stop")
    wait_until(lambda: list(installed.layout.rejected.glob("*.event")), "the rejection")
    installed.layout.wake.unlink()
    checks = verdicts(installed)[1]
    assert checks["rejected"][0] == "warning"
    assert checks["FIFO"] == ("wrong", "claude-mem worker restart")


def test_a_damaged_database_is_fixed_from_a_backup(installed: Home) -> None:
    for payload in (prompt(), stop()):
        installed.hook(payload)
    installed.wait_settled()
    installed.command("worker", "restart")  # a backup is made at start
    wait_until(lambda: list(installed.layout.backups.glob("memory-*.db.gz")), "a backup")
    installed.command("worker", "stop")
    size = installed.layout.database.stat().st_size
    with installed.layout.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 8192))
    assert verdicts(installed)[1]["database"] == ("wrong", "claude-mem doctor --fix")
    assert verdicts(installed, "--fix")[1]["database"][0] == "ok"


def test_whatever_is_wrong_has_a_way_out(installed: Home) -> None:
    cannot_run = installed.path / "claude"
    cannot_run.write_text("#!/bin/sh\nexit 1\n")
    cannot_run.chmod(0o700)
    installed.environment["CLAUDE_CODE_PATH"] = str(cannot_run)
    (installed.path / ".claude" / "settings.json").write_text("{broken")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        installed.environment["CLAUDE_MEM_WORKER_PORT"] = str(listener.getsockname()[1])
        installed.command("worker", "restart")
        status, checks = verdicts(installed)
    assert status == 1
    bad = {name: remedy for name, (verdict, remedy) in checks.items() if verdict != "ok"}
    assert set(bad) == {"Claude Code", "hooks", "port"} and all(bad.values())


def test_a_dead_letter_is_found_with_the_way_back(installed: Home) -> None:
    for payload in (prompt(), stop()):
        installed.hook(payload)
    installed.wait_settled()
    with closing(sqlite3.connect(installed.layout.database)) as connection, connection:
        connection.execute(
            "INSERT INTO pending_messages (session_id, turn_id, status, available_at_epoch,"
            " created_at_epoch) VALUES (1, 1, 'dead', 0, 0)"
        )
    assert verdicts(installed)[1]["dead letters"] == ("warning", "claude-mem retry")


def test_a_missing_hook_is_found(installed: Home) -> None:
    path = installed.path / ".claude" / "settings.json"
    content = json.loads(path.read_text())
    del content["hooks"]["Stop"]
    path.write_text(json.dumps(content))
    assert verdicts(installed)[1]["hooks"][0] == "wrong"


def test_a_damaged_database_and_another_claude_mem_are_found(installed: Home) -> None:
    installed.command("worker", "stop")
    installed.layout.database.write_bytes(b"rubbish" * 1000)
    (installed.layout.root / "claude-mem.db").touch(mode=0o600)
    status, checks = verdicts(installed)
    assert status == 1
    assert checks["database"][0] == "wrong"
    assert checks["another claude-mem"][0] == "warning"


def test_each_wrong_setting_is_reported_with_a_command_that_fixes_it(installed: Home) -> None:
    path = installed.layout.settings
    path.write_text('{"CLAUDE_MEM_CONTEXT_TOKENS": "many", "CLAUDE_MEM_HINTS": "maybe"}')
    path.chmod(0o600)
    checks = json.loads(installed.command("doctor", "--json").stdout)
    remedies = [row["mend"] for row in checks if row["check"] == "settings"]
    assert remedies == [
        "claude-mem settings CONTEXT_TOKENS --unset",
        "claude-mem settings HINTS --unset",
    ]
    assert remedies[0] in installed.command("status").stderr
    for remedy in remedies:
        assert installed.command(*remedy.split()[1:]).returncode == 0
    assert verdicts(installed)[0] == 0
    done = installed.command("doctor", CLAUDE_MEM_HINTS="maybe")
    assert "-> unset CLAUDE_MEM_HINTS" in done.stdout


def test_a_settings_file_that_cannot_be_read_is_moved_aside(installed: Home) -> None:
    path = installed.layout.settings
    path.write_text("{broken")
    path.chmod(0o644)
    for command in (["status"], ["settings", "CONTEXT_TOKENS", "9"], ["settings"]):
        assert "claude-mem doctor --fix" in installed.command(*command).stderr
    assert "claude-mem doctor --fix" in verdicts(installed)[1]["settings"][1]
    status, checks = verdicts(installed, "--fix")
    assert (status, checks["settings"][0]) == (0, "ok")
    aside = path.with_name("settings.json.invalid")
    assert aside.read_text() == "{broken" and not path.exists()
    assert installed.command("settings", "CONTEXT_TOKENS", "9").returncode == 0
