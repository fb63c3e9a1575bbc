"""claude-mem install and uninstall over settings files of every kind, without the client."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from claude_mem.install import jsonc
from claude_mem.install.hooks import EVENTS, hooked_events, hooks_in
from claude_mem.install.settings_files import apply
from tests.conftest import Home
from tests.rights import drop_file_privileges
from tests.variants import mostly_extra

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
    apply(hooks_in(path, LAUNCHER).with_ours())
    before, after = jsonc.parse(SETTINGS[name] or "{}").value, jsonc.parse(read(path)).value
    assert isinstance(before, dict) and isinstance(after, dict)
    assert set(hooked_events(path, LAUNCHER)) == {event.name for event in EVENTS}
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
    apply(hooks_in(path, LAUNCHER).with_ours())
    assert hooks_in(path, LAUNCHER).with_ours().is_empty


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - {"comments", "trailing commas"}))
def test_what_strict_json_accepted_before_it_accepts_after(settings_file: Path, name: str) -> None:
    path = written(settings_file, SETTINGS[name])
    apply(hooks_in(path, LAUNCHER).with_ours())
    json.loads(read(path))
    apply(hooks_in(path, LAUNCHER).without_ours())
    json.loads(read(path))


@pytest.mark.parametrize("name", mostly_extra(reversed(SETTINGS), 2))
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


# The command reads all of them in the test above; the editing of each is tested in test_jsonc.
@pytest.mark.parametrize("name", ["on one line", "trailing commas", "odd strings"])
def test_after_other_changes_only_our_entries_go(home: Home, name: str) -> None:
    path = written(home.path / ".claude" / "settings.json", SETTINGS[name])
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    assert home.command("install", "--scope", "user", "--yes").returncode == 0
    node = jsonc.parse(read(path))
    path.write_bytes(jsonc.add_member(read(path), node, "added", "since").encode())
    home.command("uninstall")
    after = jsonc.parse(read(path)).value
    before = jsonc.parse(SETTINGS[name] or "{}").value
    assert isinstance(before, dict)
    assert after == {**before, "added": "since"}
    assert read(path).count("//") == SETTINGS[name].count("//")


def test_comments_next_to_our_entry_stay_when_it_is_removed(settings_file: Path) -> None:
    original = SETTINGS["comments"]
    path = written(settings_file, original)
    apply(hooks_in(path, LAUNCHER).with_ours())
    text = read(path)
    hooks = (jsonc.parse(text).members or {})["hooks"]
    entry = ((hooks.members or {})["Stop"].elements or [])[-1]
    path.write_text(
        f"{text[: entry.start]}// mine, above\n{text[entry.start : entry.end]}"
        f" /* mine, behind */{text[entry.end :]}"
    )
    apply(hooks_in(path, LAUNCHER).without_ours(original.encode()))
    assert "// mine, above\n" in read(path) and "/* mine, behind */" in read(path)
    assert all(comment in read(path) for comment in ("// why", "// keep", "// last", "/* end */"))
    assert jsonc.parse(read(path)).value == jsonc.parse(original).value


def test_a_command_that_the_user_put_next_to_ours_stays(settings_file: Path) -> None:
    path = written(settings_file, "{}")
    apply(hooks_in(path, LAUNCHER).with_ours())
    content = json.loads(read(path))
    content["hooks"]["Stop"][0]["hooks"].insert(0, {"type": "command", "command": "say done"})
    path.write_text(json.dumps(content))
    apply(hooks_in(path, LAUNCHER).with_ours())
    apply(hooks_in(path, LAUNCHER).without_ours())
    assert json.loads(read(path)) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    }


def test_what_the_user_changed_between_two_installs_outlives_the_uninstall(home: Home) -> None:
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
    apply(hooks_in(path, LAUNCHER).with_ours())
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
    assert "the file was not changed" in done.stderr and "Traceback" not in done.stderr
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
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60, preexec_fn=drop_file_privileges,
    )  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are specific to Linux")
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
    assert "Removed our hooks from" in as_anyone(home, "uninstall").stdout
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


def test_install_starts_a_running_worker_anew_since_its_code_may_have_changed(home: Home) -> None:
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    home.start_worker()
    before = home.worker_pid()
    done = home.command("install", "--scope", "user", "--yes")
    assert done.returncode == 0, done.stderr
    assert home.worker_pid() not in (None, before)
