"""install, uninstall and doctor over settings files of every kind, without the client."""

import json
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.config import Layout
from claude_mem.errors import BadInput
from claude_mem.install import jsonc
from claude_mem.install.claude_settings import apply, has_hooks, with_hooks, without_hooks
from claude_mem.install.hooks import EVENTS
from claude_mem.install.launcher import disarm_launcher, launcher_parts, write_launcher
from claude_mem.install.plugin import SHIPPED, shipped_files, write_plugin
from tests.conftest import Home, wait_until
from tests.payloads import prompt, stop, tool
from tests.rights import give_up_overriding

LAUNCHER = Path("/home/dev/.claude-mem/hook")
OTHER = {"hooks": [{"type": "command", "command": "notify-send done"}]}

SETTINGS = {
    "empty": "",
    "an empty object": "{}",
    "on one line": '{"model": "opus", "hooks": {"Stop": []}}',
    "other hooks": json.dumps({"hooks": {"Stop": [OTHER], "PreToolUse": [OTHER]}}, indent=2),
    "unknown keys": json.dumps({"x": {"y": [1, {"z": None}]}, "hooks": {}}, indent=4) + "\n",
    "comments": '// mine\n{\n  // why\n  "hooks": {\n    "Stop": [ // keep\n      '
    '{"hooks": [{"type": "command", "command": "x"}]} // last\n    ]\n  } /* end */\n}\n',
    "trailing commas": '{\n\t"model": "opus",\n\t"hooks": {\n\t\t"Stop": [\n\t\t],\n\t},\n}\n',
    "windows line ends": '{\r\n  "model": "opus"\r\n}\r\n',
    "odd strings": '{"a\\"}]": "{[\\\\\\"// not a comment /* */", "é": "\\u00e9"}',
}


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    return tmp_path / "claude" / "settings.json"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("name", SETTINGS)
def test_hooks_come_and_everything_else_stays(settings_file: Path, name: str) -> None:
    path = written(settings_file, SETTINGS[name])
    apply(with_hooks(path, LAUNCHER))
    before, after = jsonc.parse(SETTINGS[name] or "{}").value, jsonc.parse(read(path)).value
    assert isinstance(before, dict) and isinstance(after, dict)
    assert set(has_hooks(path, LAUNCHER)) == {event.name for event in EVENTS}
    assert {k: v for k, v in after.items() if k != "hooks"} == {
        k: v for k, v in before.items() if k != "hooks"
    }
    for event, entries in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(entries)] == entries


def read(path: Path) -> str:
    return path.read_bytes().decode()


@pytest.mark.parametrize("name", SETTINGS)
def test_installing_again_changes_nothing(settings_file: Path, name: str) -> None:
    path = written(settings_file, SETTINGS[name])
    apply(with_hooks(path, LAUNCHER))
    assert with_hooks(path, LAUNCHER).is_empty


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - {"comments", "trailing commas"}))
def test_what_strict_json_accepted_before_it_accepts_after(settings_file: Path, name: str) -> None:
    path = written(settings_file, SETTINGS[name])
    apply(with_hooks(path, LAUNCHER))
    json.loads(read(path))
    apply(without_hooks(path, LAUNCHER))
    json.loads(read(path))


@pytest.mark.parametrize("name", SETTINGS)
def test_uninstall_by_the_command_gives_the_bytes_back(home: Home, name: str) -> None:
    path = written(home.path / ".claude" / "settings.json", SETTINGS[name])
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    assert home.command("install", "--scope", "user", "--yes").returncode == 0
    assert read(path) != SETTINGS[name]
    done = home.command("uninstall")
    assert done.returncode == 0, done.stderr
    assert read(path) == SETTINGS[name]


def test_a_settings_file_that_was_not_there_is_gone_again(home: Home) -> None:
    path = home.path / ".claude" / "settings.json"
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    assert home.command("install", "--scope", "user", "--yes").returncode == 0
    assert path.exists()
    home.command("uninstall")
    assert not path.exists()


@pytest.mark.parametrize("name", SETTINGS)
def test_after_other_changes_only_our_entries_go(home: Home, name: str) -> None:
    path = written(home.path / ".claude" / "settings.json", SETTINGS[name])
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    assert home.command("install", "--scope", "user", "--yes").returncode == 0
    node = jsonc.parse(read(path))
    path.write_bytes(jsonc.add_member(read(path), node, "added", "since").encode())
    home.command("uninstall")
    left = jsonc.parse(read(path)).value
    before = jsonc.parse(SETTINGS[name] or "{}").value
    assert isinstance(before, dict)
    assert left == {**before, "added": "since"}
    assert read(path).count("//") == SETTINGS[name].count("//")


def test_a_command_that_the_person_put_beside_ours_stays(settings_file: Path) -> None:
    path = written(settings_file, "{}")
    apply(with_hooks(path, LAUNCHER))
    content = json.loads(read(path))
    content["hooks"]["Stop"][0]["hooks"].insert(0, {"type": "command", "command": "say done"})
    path.write_text(json.dumps(content))
    apply(with_hooks(path, LAUNCHER))
    apply(without_hooks(path, LAUNCHER))
    assert json.loads(read(path)) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    }


def test_what_the_person_changed_between_two_installs_outlives_the_uninstall(home: Home) -> None:
    path = written(home.path / ".claude" / "settings.json", '{"model": "old"}')
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    home.command("install", "--scope", "user", "--yes")
    content = json.loads(read(path))
    content["model"] = "new"
    del content["hooks"]["PreCompact"]
    path.write_text(json.dumps(content))
    assert home.command("install", "--scope", "user", "--yes").returncode == 0
    home.command("uninstall")
    assert json.loads(read(path)) == {"model": "new"}


def test_an_older_form_of_our_entry_is_replaced(settings_file: Path) -> None:
    old = {"hooks": [{"type": "command", "command": f"{LAUNCHER} claude Stop"}]}
    path = written(settings_file, json.dumps({"hooks": {"Stop": [old, OTHER]}}))
    apply(with_hooks(path, LAUNCHER))
    stops = json.loads(read(path))["hooks"]["Stop"]
    assert len(stops) == 2 and stops[1] == OTHER
    assert stops[0]["hooks"][0]["args"] == ["claude", "Stop"]


BROKEN = {
    "not json": "{broken",
    "a list": "[1, 2]",
    "cut off": '{"hooks": {"Stop": [',
    "hooks is a list": '{"hooks": []}',
    "an event is an object": '{"hooks": {"Stop": {}}}',
    "two values": "{} {}",
    "bad escape": '{"a": "\\x"}',
    "deep": "[" * 5000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_makes_no_sense_is_a_clear_error_and_stays(home: Home, name: str) -> None:
    path = written(home.path / ".claude" / "settings.json", BROKEN[name])
    done = home.command("install", "--scope", "user", "--yes")
    assert done.returncode == 1
    assert "left as it is" in done.stderr and "Traceback" not in done.stderr
    assert read(path) == BROKEN[name]


def test_not_utf8_is_a_clear_error(home: Home) -> None:
    path = written(home.path / ".claude" / "settings.json", "{}")
    path.write_bytes(b'{"a": "\xff"}')
    done = home.command("install", "--scope", "user", "--yes")
    assert done.returncode == 1 and "not UTF-8" in done.stderr
    assert path.read_bytes() == b'{"a": "\xff"}'


def test_a_directory_in_the_files_place_is_a_clear_error(home: Home) -> None:
    (home.path / ".claude" / "settings.json").mkdir(parents=True)
    done = home.command("install", "--scope", "user", "--yes")
    assert done.returncode == 1 and "cannot be read" in done.stderr


def as_anyone(home: Home, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "claude_mem", *arguments], env=home.env(), text=True,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60, preexec_fn=give_up_overriding,
    )  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="rights are given up in Linux's way")
@pytest.mark.parametrize("what", ["the file", "its directory", "no file in its directory"])
def test_what_is_read_only_is_a_clear_error_and_nothing_changes(home: Home, what: str) -> None:
    shutil.rmtree(home.layout.root)
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    path = written(home.path / ".claude" / "settings.json", '{"model": "opus"}')
    if what == "no file in its directory":
        path.unlink()
    locked = path if what == "the file" else path.parent
    locked.chmod(0o555)
    done = as_anyone(home, "install", "--scope", "user", "--yes")
    assert done.returncode == 1 and f"{locked} is read-only" in done.stderr
    assert not path.exists() or read(path) == '{"model": "opus"}'
    assert not home.layout.root.exists()

    locked.chmod(0o755)
    assert as_anyone(home, "install", "--scope", "user", "--yes").returncode == 0
    with_us = read(path)
    locked.chmod(0o555)
    done = as_anyone(home, "uninstall")
    assert done.returncode == 1
    assert "is read-only" in done.stdout and read(path) == with_us
    locked.chmod(0o755)
    assert "Took our hooks out" in as_anyone(home, "uninstall").stdout
    assert not path.exists() or read(path) == '{"model": "opus"}'


def test_a_link_is_followed_and_the_mode_kept(home: Home) -> None:
    real = written(home.path / "dotfiles" / "claude.json", "{}\n")
    real.chmod(0o640)
    link = home.path / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    assert home.command("install", "--scope", "user", "--yes").returncode == 0
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "SessionStart" in real.read_text()


def test_the_projects_own_settings_are_another_scope(home: Home, tmp_path: Path) -> None:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert home.command("install", "--scope", "project", "--yes").returncode == 0
        assert (tmp_path / ".claude" / "settings.json").exists()
        assert home.command("uninstall").returncode == 0
        assert not (tmp_path / ".claude" / "settings.json").exists()
    finally:
        os.chdir(before)


def test_a_dry_run_shows_the_difference_and_changes_nothing(home: Home) -> None:
    path = written(home.path / ".claude" / "settings.json", '{\n  "model": "opus"\n}\n')
    done = home.command("install", "--scope", "user", "--dry-run")
    assert done.returncode == 0
    assert '+  "hooks": {' in done.stdout or '+  "hooks"' in done.stdout
    assert read(path) == '{\n  "model": "opus"\n}\n'
    assert home.worker_pid() is None


def test_a_backup_of_what_was_there_is_kept(home: Home) -> None:
    written(home.path / ".claude" / "settings.json", '{"model": "opus"}')
    done = home.command("install", "--scope", "user", "--yes")
    (backup,) = home.layout.backups.glob("claude-settings-*.json")
    assert str(backup) in done.stdout
    assert backup.read_text() == '{"model": "opus"}'


def test_without_claude_code_the_way_on_is_told(home: Home) -> None:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    done = home.command("install")
    assert done.returncode == 1
    assert "claude-mem install --scope user" in done.stderr


def test_uninstall_keeps_the_memory_and_purge_deletes_it(home: Home) -> None:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    for payload in (prompt(), stop()):
        home.hook(payload)
    home.wait_settled()
    assert home.command("uninstall").returncode == 0
    assert home.layout.database.exists()
    assert home.hook(tool()).stdout == b""
    assert list(home.layout.spool.glob("*.event")) == []
    # A session is still open: the launcher that it calls stays, and does nothing.
    assert home.command("uninstall", "--purge", "--yes").returncode == 0
    assert [path.name for path in home.layout.root.iterdir()] == ["hook"]
    assert home.hook(tool()).returncode == 0


def test_purge_leaves_what_is_not_ours(home: Home) -> None:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    home.start_worker()
    (home.layout.root / "claude-mem.db").write_text("of another claude-mem")
    (home.layout.root / "vector-db").mkdir()
    done = home.command("uninstall", "--purge", "--yes")
    assert done.returncode == 0, done.stderr
    assert "claude-mem.db, vector-db" in done.stdout
    assert sorted(p.name for p in home.layout.root.iterdir()) == ["claude-mem.db", "vector-db"]


def test_uninstall_works_whatever_state_things_are_in(home: Home) -> None:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    home.layout.database.write_bytes(b"rubbish" * 1000)
    home.layout.settings.write_text("{broken")
    assert home.command("uninstall").returncode == 0
    assert home.command("uninstall", "--purge", "--yes").returncode == 0
    home.layout.launcher.unlink(missing_ok=True)
    home.layout.root.rmdir()
    assert home.command("uninstall", "--purge", "--yes").returncode == 0


def test_purge_without_open_sessions_leaves_nothing(home: Home) -> None:
    from tests.payloads import session_end

    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    for payload in (prompt(), stop(), session_end()):
        home.hook(payload)
    home.wait_settled()
    assert home.command("uninstall", "--purge", "--yes").returncode == 0
    assert not home.layout.root.exists()


def test_the_plugin_in_the_wheel_is_what_the_code_says() -> None:
    for name, content in shipped_files().items():
        assert json.loads((SHIPPED / name).read_text()) == content


def test_the_installed_plugin_names_the_launcher_itself(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "data")
    layout.create()
    directory = write_plugin(layout)
    assert not [path for path in (directory, *directory.rglob("*")) if path.stat().st_mode & 0o077]
    hooks = json.loads((directory / "claudemem/hooks/hooks.json").read_text())["hooks"]
    assert set(hooks) == {event.name for event in EVENTS}
    for name, (entry,) in hooks.items():
        (command,) = entry["hooks"]
        assert command["command"] == str(layout.launcher)
        assert command["args"] == ["claude", name]
        assert command["timeout"] >= 10 and "async" not in command


def test_the_launcher_names_interpreter_and_script_and_can_be_disarmed(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "it's here")
    layout.create()
    write_launcher(layout, python="/opt/odd name/python")
    parts = launcher_parts(layout)
    assert parts is not None and parts[0] == Path("/opt/odd name/python")
    disarm_launcher(layout)
    assert launcher_parts(layout) is None


# doctor


def verdicts(home: Home, *arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
    done = home.command("doctor", "--json", *arguments)
    rows = json.loads(done.stdout)
    return done.returncode, {row["check"]: (row["verdict"], row["mend"]) for row in rows}


@pytest.fixture
def sound(home: Home) -> Home:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    # Whoever runs the tests may have a claude-mem of their own.
    home.environment["PATH"] = os.pathsep.join(
        place
        for place in os.environ["PATH"].split(os.pathsep)
        if not (Path(place) / "claude-mem").exists()
    )
    assert home.command("install", "--scope", "user", "--yes").returncode == 0
    return home


def test_a_sound_installation_passes(sound: Home) -> None:
    status, found = verdicts(sound)
    assert status == 0
    bad = {name: what for name, what in found.items() if what[0] != "ok"}
    assert set(bad) == {"Claude Code"}
    text = sound.command("doctor").stdout
    assert "launcher:" in text and "runs" in text


def test_missing_hooks_are_found(home: Home) -> None:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    status, found = verdicts(home)
    assert status == 1
    assert found["hooks"] == ("wrong", "claude-mem install")


def test_before_an_install_there_is_one_thing_to_do_and_nothing_is_made(home: Home) -> None:
    shutil.rmtree(home.layout.root)
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    status, found = verdicts(home, "--fix")
    assert status == 1
    assert {mend for name, (_, mend) in found.items() if mend and name != "Claude Code"} == {
        "claude-mem install"
    }
    assert not home.layout.root.exists()


def test_a_lost_interpreter_is_found_and_mended(sound: Home) -> None:
    write_launcher(sound.layout, python="/no/such/python")
    assert verdicts(sound)[1]["interpreter"][0] == "wrong"
    status, found = verdicts(sound, "--fix")
    assert (status, found["interpreter"][0], found["launcher"][0]) == (0, "ok", "ok")


def test_a_lost_launcher_is_found_and_mended(sound: Home) -> None:
    sound.layout.launcher.unlink()
    assert verdicts(sound)[1]["launcher"][0] == "wrong"
    assert verdicts(sound, "--fix")[0] == 0
    sound.layout.mcp_launcher.unlink()
    assert verdicts(sound)[1]["MCP server"][0] == "wrong"
    assert verdicts(sound, "--fix")[0] == 0


def test_files_open_to_others_are_found_and_closed(sound: Home) -> None:
    sound.layout.token.touch()
    sound.layout.token.chmod(0o644)
    assert verdicts(sound)[1]["data directory"][0] == "wrong"
    assert verdicts(sound, "--fix")[1]["data directory"][0] == "ok"
    assert stat.S_IMODE(sound.layout.token.stat().st_mode) == 0o600


def test_a_stopped_worker_is_a_warning_and_started(sound: Home) -> None:
    sound.command("worker", "stop")
    status, found = verdicts(sound)
    assert (status, found["worker"]) == (0, ("warning", "claude-mem worker start"))
    assert verdicts(sound, "--fix")[1]["worker"][0] == "ok"


def test_rejected_payloads_and_a_missing_fifo_are_found(sound: Home) -> None:
    sound.hook(b"not a payload", "Stop")
    wait_until(lambda: list(sound.layout.rejected.glob("*.event")), "the rejection")
    sound.layout.wake.unlink()
    found = verdicts(sound)[1]
    assert found["rejected"][0] == "warning"
    assert found["FIFO"] == ("wrong", "claude-mem worker restart")


def test_a_damaged_database_is_mended_from_a_backup(sound: Home) -> None:
    for payload in (prompt(), stop()):
        sound.hook(payload)
    sound.wait_settled()
    sound.command("worker", "restart")  # it keeps house when it starts
    wait_until(lambda: list(sound.layout.backups.glob("memory-*.db")), "a backup")
    sound.command("worker", "stop")
    size = sound.layout.database.stat().st_size
    with sound.layout.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 8192))
    assert verdicts(sound)[1]["database"] == ("wrong", "claude-mem doctor --fix")
    assert verdicts(sound, "--fix")[1]["database"][0] == "ok"


def test_whatever_is_wrong_has_a_way_out(sound: Home) -> None:
    cannot_run = sound.path / "claude"
    cannot_run.write_text("#!/bin/sh\nexit 1\n")
    cannot_run.chmod(0o700)
    sound.environment["CLAUDE_CODE_PATH"] = str(cannot_run)
    (sound.path / ".claude" / "settings.json").write_text("{broken")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        sound.environment["CLAUDE_MEM_WORKER_PORT"] = str(taken.getsockname()[1])
        sound.command("worker", "restart")
        status, found = verdicts(sound)
    assert status == 1
    bad = {name: mend for name, (verdict, mend) in found.items() if verdict != "ok"}
    assert set(bad) == {"Claude Code", "hooks", "port"} and all(bad.values())


def test_a_dead_letter_is_found_with_the_way_back(sound: Home) -> None:
    for payload in (prompt(), stop()):
        sound.hook(payload)
    sound.wait_settled()
    with closing(sqlite3.connect(sound.layout.database)) as connection, connection:
        connection.execute(
            "INSERT INTO pending_messages (session_id, turn_id, status, available_at_epoch,"
            " created_at_epoch) VALUES (1, 1, 'dead', 0, 0)"
        )
    assert verdicts(sound)[1]["dead letters"] == ("warning", "claude-mem retry")


def test_a_missing_hook_is_found(sound: Home) -> None:
    path = sound.path / ".claude" / "settings.json"
    content = json.loads(path.read_text())
    del content["hooks"]["Stop"]
    path.write_text(json.dumps(content))
    assert verdicts(sound)[1]["hooks"][0] == "wrong"


def test_a_damaged_database_and_another_claude_mem_are_found(sound: Home) -> None:
    sound.command("worker", "stop")
    sound.layout.database.write_bytes(b"rubbish" * 1000)
    (sound.layout.root / "claude-mem.db").touch(mode=0o600)
    status, found = verdicts(sound)
    assert status == 1
    assert found["database"][0] == "wrong"
    assert found["another claude-mem"][0] == "warning"


# another claude-mem


def others(home: Home, **environment: str) -> list[tuple[str, str | None]]:
    """What doctor found of another claude-mem, and what mends it."""
    rows = json.loads(home.command("doctor", "--json", **environment).stdout)
    found = [row for row in rows if row["check"] == "another claude-mem"]
    assert {row["verdict"] for row in found} <= {"warning"}
    return [(row["found"], row["mend"]) for row in found]


def script(path: Path, first_line: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"{first_line}\n")
    path.chmod(0o755)
    return path


def on_path(home: Home, *commands: Path) -> str:
    return os.pathsep.join([*(str(c.parent) for c in commands), home.environment["PATH"]])


def test_a_command_of_another_claude_mem_is_found_with_what_removes_it(sound: Home) -> None:
    module = script(sound.path / "lib/node_modules/claude-mem/cli.js", "#!/usr/bin/env node")
    link = sound.path / "npm" / "claude-mem"
    link.parent.mkdir()
    link.symlink_to(module)
    snake = script(sound.path / "bin" / "claude-mem", "#!/opt/other/bin/python3.12")
    strange = script(sound.path / "strange" / "claude-mem", "#!/bin/sh")
    assert others(sound, PATH=on_path(sound, link, snake, strange)) == [
        (f"{link} is another claude-mem, and it is the one that you type",
         "npm uninstall --global claude-mem"),
        (f"{snake} is another claude-mem", "/opt/other/bin/python3.12 -m pip uninstall claudemem"),
        (f"{strange} is another claude-mem",
         f"export PATH={Path(sys.executable).parent}:$PATH"),
    ]  # fmt: skip


def test_our_own_command_is_no_other_wherever_it_lies_or_is_linked(sound: Home) -> None:
    ours = Path(sys.executable).parent / "claude-mem"
    assert ours.exists()
    link = sound.path / "linked" / "claude-mem"
    link.parent.mkdir()
    link.symlink_to(ours)
    copied = script(sound.path / "copied" / "claude-mem", f"#!{sys.executable}")
    shim = script(sound.path / "shims" / "claude-mem", "#!/usr/bin/env bash")
    assert others(sound, PATH=on_path(sound, ours, link, copied, shim)) == []


@pytest.mark.parametrize("moved", [False, True], ids=["~/.claude", "CLAUDE_CONFIG_DIR"])
def test_a_plugin_of_another_claude_mem_is_found(sound: Home, moved: bool) -> None:
    directory = sound.path / ("elsewhere" if moved else ".claude")
    environment = {"CLAUDE_CONFIG_DIR": str(directory)} if moved else {}
    names = ("claude-mem@thedotmack", "claudemem@claudemem", "memo@claude-mem")
    installed = directory / "plugins" / "installed_plugins.json"
    installed.parent.mkdir(parents=True)
    installed.write_text(json.dumps({"version": 2, "plugins": {name: [] for name in names}}))
    assert others(sound, **environment) == [
        ("the plugin claude-mem@thedotmack remembers, too",
         "claude plugin uninstall claude-mem@thedotmack")
    ]  # fmt: skip
    settings = directory / "settings.json"
    content = json.loads(settings.read_text()) if settings.exists() else {}
    settings.write_text(json.dumps(content | {"enabledPlugins": {"claude-mem@thedotmack": False}}))
    assert others(sound, **environment) == []
    installed.unlink()
    settings.write_text(json.dumps(content | {"enabledPlugins": {"claude-mem@fork": True}}))
    assert [mend for _, mend in others(sound, **environment)] == [
        "claude plugin uninstall claude-mem@fork"
    ]


def test_hooks_of_another_claude_mem_are_found_and_ours_and_the_persons_are_not(
    sound: Home,
) -> None:
    path = sound.path / ".claude" / "settings.json"
    content = json.loads(path.read_text())
    assert others(sound) == []
    root = "/home/dev/.claude/plugins/marketplaces/thedotmack/claude-mem"
    for event, command in (
        ("Stop", {"command": f"bun {root}/plugin/scripts/worker-service.cjs hook summarize"}),
        ("PreToolUse", {"command": "node", "args": [f"{root}/plugin/scripts/save-hook.js"]}),
        ("Notification", {"command": "cat ~/claude-mem-notes.txt"}),
        ("Notification", {"command": "node /home/dev/tools/plugin/scripts/notify.js"}),
    ):
        content["hooks"].setdefault(event, []).append({"hooks": [{"type": "command", **command}]})
    path.write_text("// mine\n" + json.dumps(content))
    ((found, mend),) = others(sound)
    assert found.startswith(f"2 hooks in {path} run another claude-mem: bun {root}")
    assert mend == f"delete them from {path}"


@pytest.mark.parametrize("text", ["{broken", "[]", '{"plugins": 3}', '{"plugins": {"x": 1}}', ""])
def test_a_list_of_plugins_that_makes_no_sense_names_nobody(sound: Home, text: str) -> None:
    written(sound.path / ".claude" / "plugins" / "installed_plugins.json", text)
    assert others(sound) == []


# the editor itself


_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=6), _json, max_size=4), st.sampled_from([None, 2, "\t"]))
def test_any_object_is_read_and_takes_a_member(value: dict[str, object], indent: int | str) -> None:
    text = json.dumps(value, indent=indent)
    node = jsonc.parse(text)
    assert node.value == value
    longer = jsonc.add_member(text, node, "our key", {"a": [1]})
    assert json.loads(longer) == {**value, "our key": {"a": [1]}}
    members = jsonc.parse(longer).members
    assert members is not None
    ours = members["our key"]
    before = [m.node.end for m in members.values() if m.node.end <= ours.start]
    back = jsonc.remove(longer, ours.start, ours.node.end, max(before, default=None))
    assert json.loads(back) == value


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        jsonc.parse(text)
    except BadInput as error:
        assert str(error).startswith("line ")
