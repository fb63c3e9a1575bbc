"""The plugin and the launchers as files."""

import json
from pathlib import Path

from claude_mem.config import Layout
from claude_mem.install.hooks import EVENTS
from claude_mem.install.launcher import disarm_launcher, launcher_parts, write_launcher
from claude_mem.install.plugin import MARKETPLACE_FILE, SHIPPED, shipped_files, write_plugin


def test_the_plugin_in_the_wheel_is_what_the_code_says() -> None:
    for name, content in shipped_files().items():
        assert json.loads((SHIPPED / name).read_text()) == content


def test_the_repository_is_a_marketplace_of_the_same_plugin() -> None:
    root = Path(__file__).parent.parent
    content = json.loads((root / MARKETPLACE_FILE).read_text())
    shipped = json.loads((SHIPPED / MARKETPLACE_FILE).read_text())
    (entry,), (shipped_entry,) = content.pop("plugins"), shipped.pop("plugins")
    assert content == shipped
    source, shipped_source = entry.pop("source"), shipped_entry.pop("source")
    assert entry == shipped_entry
    assert (root / source).resolve() == (SHIPPED / shipped_source).resolve()
    assert (root / source / ".claude-plugin" / "plugin.json").is_file()


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
