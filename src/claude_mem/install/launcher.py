"""The launcher: the few lines of sh that an agent's hooks run, and that of its MCP server.

It lies in the data directory, outside site-packages, and is rewritten by install and upgrade.
Python exits with 2 when the package is gone, and 2 blocks the user's prompt; the launcher ends
with 0 whatever happened, and says once what did. A package that is just being replaced is back
within a second: until it has failed for good once, the launcher tries again. Its stdin is still
unread then, since only a hook that never began ends with another code than 0.
"""

import re
import shlex
import sys
from pathlib import Path

from claude_mem import __version__, hook, mcp
from claude_mem.config import Layout, write_private
from claude_mem.versions import parse_version

_TEMPLATE = """\
#!/bin/sh
# claude-mem: what the agent's hooks run. Always ends with 0, since 2 would block the prompt.
# Written by claude-mem; made anew by every install and upgrade.
case "$CLAUDE_MEM_DATA_DIR" in /* | "~/"*) ;; *) CLAUDE_MEM_DATA_DIR="{data_dir}" ;; esac
export CLAUDE_MEM_DATA_DIR
{python} -I -S {script} "$@" 2>/dev/null && exit 0
status=$?
told="$CLAUDE_MEM_DATA_DIR/.launcher-told"
tries=0
while [ $status -lt 128 ] && [ $tries -lt 8 ] && [ ! -d "$told" ]; do
  sleep 0.25
  {python} -I -S {script} "$@" 2>/dev/null && exit 0
  status=$?
  tries=$((tries + 1))
done
echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) hook $2: {python_plain} ended with $status" \\
  >>"$CLAUDE_MEM_DATA_DIR/logs/hook.log" 2>/dev/null
if [ $status -lt 128 ] && mkdir "$told" 2>/dev/null; then
  echo '{{"systemMessage":"claude-mem: its program cannot be run any more, so nothing is \
remembered. Install it again, or run claude-mem uninstall."}}'
fi
exit 0
"""

_MCP_TEMPLATE = """\
#!/bin/sh
# claude-mem: the MCP server that an agent runs.
# Written by claude-mem; made anew by every install and upgrade.
case "$CLAUDE_MEM_DATA_DIR" in /* | "~/"*) ;; *) CLAUDE_MEM_DATA_DIR="{data_dir}" ;; esac
export CLAUDE_MEM_DATA_DIR
exec {python} -I -S {script}
"""

_STUB = """\
#!/bin/sh
# claude-mem was uninstalled. Sessions that were open may still run this; it does nothing.
exit 0
"""


def launcher_text(layout: Layout, python: str = sys.executable) -> str:
    return _TEMPLATE.format(
        data_dir=_inside_quotes(str(layout.root)),
        python=shlex.quote(python),
        python_plain=_inside_quotes(python),
        script=shlex.quote(str(hook_script())),
    )


def mcp_launcher_text(layout: Layout, python: str = sys.executable) -> str:
    return _MCP_TEMPLATE.format(
        data_dir=_inside_quotes(str(layout.root)),
        python=shlex.quote(python),
        script=shlex.quote(str(Path(mcp.__file__).with_name("__main__.py"))),
    )


def hook_script() -> Path:
    return Path(hook.__file__).with_name("__main__.py")


def write_launcher(layout: Layout, python: str = sys.executable) -> Path:
    """Puts the launchers of this installation in place, atomically; never over a newer one's."""
    if not runs_newer(layout):
        write_private(layout.launcher, launcher_text(layout, python).encode(), mode=0o700)
        write_private(layout.mcp_launcher, mcp_launcher_text(layout, python).encode(), mode=0o700)
    told = layout.root / ".launcher-told"
    if told.is_dir():
        told.rmdir()
    return layout.launcher


def disarm_launcher(layout: Layout) -> None:
    """Sessions that are open keep calling it: it stays, and does nothing."""
    if layout.root.is_dir():
        write_private(layout.launcher, _STUB.encode(), mode=0o700)
    layout.mcp_launcher.unlink(missing_ok=True)  # no server is better than one that ends at once


def launcher_parts(layout: Layout) -> tuple[Path, Path] | None:
    """Interpreter and script that the launcher in place names."""
    try:
        text = layout.launcher.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    command = re.search(r'^(.+) -I -S (.+) "\$@" 2>/dev/null && exit 0$', text, re.MULTILINE)
    if command is None:
        return None
    python, script = (shlex.split(part)[0] for part in command.groups())
    return Path(python), Path(script)


def launcher_version(layout: Layout) -> str | None:
    """The version that the launcher would run, as its package says now; None if it is gone."""
    parts = launcher_parts(layout)
    if parts is None or not all(part.exists() for part in parts):
        return None
    try:
        text = (parts[1].parents[1] / "__init__.py").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    match = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    return match[1] if match else None


def runs_newer(layout: Layout) -> bool:
    """Whether the launcher belongs to a newer installation than this."""
    version = launcher_version(layout)
    return version is not None and parse_version(version) > parse_version(__version__)


def _inside_quotes(text: str) -> str:
    for special in ("\\", '"', "$", "`"):
        text = text.replace(special, "\\" + special)
    return text
