"""The launchers: short sh scripts that an agent runs as hooks and as MCP server.

They are in the data directory, outside site-packages, and are rewritten by install and upgrade.
Python exits with 2 if the package is gone, and 2 blocks the user's prompt; so the hook launcher
always exits with 0, and reports a failure once a day to a session with a user. A package that is
being replaced is back within a second, so the launcher retries until a hook has failed. A retry can
still read stdin, because a hook exits with another code than 0 only if it never started.

The environment of a session may come from the repository that it works on. So each uses the data
directory that it was written for, and the interpreter gets only the variables that are used.
"""

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from claude_mem import __version__, hook, mcp
from claude_mem.config import Layout, write_private
from claude_mem.distribution import install_command, own_passing_place, passing_place
from claude_mem.hook import capture, worker_start
from claude_mem.install import changed_files
from claude_mem.install.remover import STUB
from claude_mem.versions import parse_version

_ENVIRONMENT = """\
# A project can set variables. One can make the interpreter read another file (TZ=:/dev/stdin).
set -f
IFS='
'
unset -f command
for name in $(export -p); do
  case $name in
    'export '*) name=${{name#export }} ;;
    'declare -x '*) name=${{name#declare -x }} ;;
    'typeset -x '*) name=${{name#typeset -x }} ;;
    *) continue ;; # a line of a value, which may be long
  esac
  name=${{name%%=*}}
  case $name in
    {passed}) ;;
    '' | [0-9]* | *[!A-Za-z0-9_]*) ;;
    *) command unset "$name" ;;
  esac
done 2>/dev/null
unset name
CLAUDE_MEM_DATA_DIR="{data_dir}"
export CLAUDE_MEM_DATA_DIR
"""

_OF_THE_LAUNCHER = (
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_ENTRYPOINT",
)  # it reads them itself

_TEMPLATE = """\
#!/bin/sh
# claude-mem: run by the agent's hooks. Always exits with 0, because 2 would block the prompt.
# Written by claude-mem; every install and upgrade replaces it.
{environment}\
{python} -I -S {script} "$@" 2>/dev/null && exit 0
status=$?
reported="$CLAUDE_MEM_DATA_DIR/.launcher-told"
tries=0
while [ $status -lt 128 ] && [ $tries -lt 8 ] && [ ! -d "$reported" ]; do
  sleep 0.25
  {python} -I -S {script} "$@" 2>/dev/null && exit 0
  status=$?
  tries=$((tries + 1))
done
echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) hook $2: {python_plain} exited with $status" \\
  >>"$CLAUDE_MEM_DATA_DIR/logs/hook.log" 2>/dev/null
[ $status -lt 128 ] || exit 0
mkdir "$reported" 2>/dev/null
# Nobody reads a message in a session without a user, such as that of claude -p.
case "$CLAUDE_CODE_SESSION_ATTENDED $CLAUDE_CODE_ENTRYPOINT" in "0 "*|*" sdk"*) exit 0 ;; esac
if mkdir "$reported/$(date +%Y-%m-%d)" 2>/dev/null; then
  printf '%s\\n' {message}
fi
exit 0
"""

_MCP_TEMPLATE = """\
#!/bin/sh
# claude-mem: the MCP server, started by the agent.
# Written by claude-mem; every install and upgrade replaces it.
{environment}\
exec {python} -I -S {script}
"""


def launcher_text(layout: Layout, python: str = sys.executable) -> str:
    message = (
        "claude-mem: its program can no longer be run, so nothing is remembered. To install it"
        f" again: {install_command()} and then claude-mem install. To remove its hooks:"
        f" sh {shlex.quote(str(layout.remover))}"
    )
    return _TEMPLATE.format(
        environment=_environment(layout),
        message=shlex.quote(json.dumps({"systemMessage": message})),
        python=shlex.quote(python),
        python_plain=_inside_quotes(python),
        script=shlex.quote(str(hook_script())),
    )


def mcp_launcher_text(layout: Layout, python: str = sys.executable) -> str:
    return _MCP_TEMPLATE.format(
        environment=_environment(layout),
        python=shlex.quote(python),
        script=shlex.quote(str(Path(mcp.__file__).with_name("__main__.py"))),
    )


def _environment(layout: Layout) -> str:
    """Writes the part of the script that lets only the variables pass that are used, whatever the
    shell is: it removes the others itself, since another process would take longer, and show
    secrets among its arguments."""
    names = [name.decode() for name in (*capture.VARIABLES, *worker_start.PASSED)]
    prefixes = (f"{prefix.decode()}*" for prefix in worker_start.PASSED_PREFIXES)
    return _ENVIRONMENT.format(
        passed=" | ".join((*names, *prefixes, *_OF_THE_LAUNCHER)),
        data_dir=_inside_quotes(str(layout.root)),
    )


def hook_script() -> Path:
    return Path(hook.__file__).with_name("__main__.py")


def write_launcher(layout: Layout, python: str = sys.executable) -> Path:
    """Write the launchers atomically, unless those of a newer installation are there, or of one
    that stays while this one is in a cache."""
    if not (runs_newer(layout) or _would_not_last(layout)):
        write_private(layout.launcher, launcher_text(layout, python).encode(), mode=0o700)
        write_private(layout.mcp_launcher, mcp_launcher_text(layout, python).encode(), mode=0o700)
        changed_files.renew_remover(layout)
    shutil.rmtree(layout.root / ".launcher-told", ignore_errors=True)
    return layout.launcher


def _would_not_last(layout: Layout) -> bool:
    parts = launcher_parts(layout)
    if parts is None or not all(part.exists() for part in parts):
        return False
    return own_passing_place(layout.root) is not None and not passing_place(*parts, layout.root)


def disarm_launcher(layout: Layout) -> None:
    """Replaces the launcher with one that does nothing, for the sessions that are still open."""
    if layout.root.is_dir():
        write_private(layout.launcher, STUB.encode(), mode=0o700)
    layout.mcp_launcher.unlink(missing_ok=True)  # better no server than one that exits at once
    layout.remover.unlink(missing_ok=True)


def launcher_parts(layout: Layout) -> tuple[Path, Path] | None:
    """The interpreter and the script in the existing launcher."""
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
    """The version of the package that the launcher runs; None if it is gone."""
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
    """Whether the launcher belongs to a newer installation than this one, which then replaces the
    worker. A file that others can read was not written by an installation."""
    if not _is_private(layout.launcher):
        return False
    version = launcher_version(layout)
    return version is not None and parse_version(version) > parse_version(__version__)


def _is_private(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _inside_quotes(text: str) -> str:
    for special in ("\\", '"', "$", "`"):
        text = text.replace(special, "\\" + special)
    return text
