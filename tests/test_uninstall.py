"""claude-mem uninstall: what it deletes and what stays."""

import subprocess

from tests.conftest import Home
from tests.payloads import prompt, session_end, stop, tool


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
    home.environment["CLAUDE_CODE_PATH"] = "/no/such/claude"
    for payload in (prompt(), stop(), session_end()):
        home.hook(payload)
    home.wait_settled()
    assert home.command("uninstall", "--purge", "--yes").returncode == 0
    assert not home.layout.root.exists()


def test_a_dry_run_names_what_uninstall_removes_and_changes_nothing(installed: Home) -> None:
    codex = installed.path / ".codex"
    codex.mkdir()
    assert installed.command("install", "--agent", "codex", "--scope", "user").returncode == 0
    installed.start_worker()
    ours = {
        p: p.read_bytes() for p in (codex, installed.path / ".claude") for p in p.rglob("*.json")
    }
    shown = installed.command("uninstall", "--dry-run", "--purge")
    assert shown.returncode == 0, shown.stderr
    for line in (
        f"Would remove our hooks in {installed.path}/.claude/settings.json",
        f"Would remove the entries of Codex in {codex}/hooks.json",
        f"Would delete the memories in {installed.layout.root}",
        "Would stop the worker",
    ):
        assert line in shown.stdout
    assert {path: path.read_bytes() for path in ours} == ours
    assert installed.worker_pid() and installed.layout.database.exists()
    assert installed.command("uninstall").returncode == 0
    after = installed.command("uninstall", "--dry-run").stdout
    assert "there is nothing to remove" in after and "Would keep the memories" in after


def remove_hooks(home: Home) -> str:
    """Removes the hooks by the script that does not need the package."""
    command = ["sh", str(home.layout.remover)]
    done = subprocess.run(command, env=home.env(), text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_script_restores_what_install_changed_and_nothing_else(home: Home) -> None:
    home.environment |= {"CLAUDE_CODE_PATH": "/no/such/claude", "PATH": "/usr/bin:/bin"}
    settings, codex = home.path / ".claude" / "settings.json", home.path / ".codex" / "config.toml"
    for path, text in ((settings, '{"it\'s": "$(mine)"}\n\n'), (codex, 'model = "x"\n')):
        path.parent.mkdir()
        path.write_text(text)
    for arguments in (["--scope", "user"], ["--agent", "codex"]):
        done = home.command("install", *arguments, "--yes")
        assert done.returncode == 0, done.stderr
    assert str(home.layout.launcher) in settings.read_text()
    said = remove_hooks(home)
    assert f"Restored {settings}." in said and str(home.layout.root) in said
    assert settings.read_text() == '{"it\'s": "$(mine)"}\n\n'
    assert codex.read_text() == 'model = "x"\n'
    assert not (home.path / ".codex" / "hooks.json").exists()
    assert home.hook(prompt()).stdout == b"" and not list(home.layout.spool.glob("*.event"))
    assert not home.layout.remover.exists()


def test_the_script_names_a_file_that_has_changed_since(home: Home) -> None:
    home.environment |= {"CLAUDE_CODE_PATH": "/no/such/claude", "PATH": "/usr/bin:/bin"}
    settings = home.path / ".claude" / "settings.json"
    assert home.command("install", "--scope", "user", "--yes").returncode == 0
    changed = settings.read_text() + "\n"
    settings.write_text(changed)
    assert f"{settings} has changed since the install" in remove_hooks(home)
    assert settings.read_text() == changed
    assert home.hook(prompt()).stdout == b""
