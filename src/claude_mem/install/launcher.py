"""The launcher: the few lines of sh that an agent's hooks run.

It lies in the data directory, outside site-packages, and is rewritten by install and upgrade.
Python exits with 2 when the package is gone, and 2 blocks the user's prompt; the launcher ends
with 0 whatever happened, and says once what did.
"""

import shlex
import sys
from pathlib import Path

from claude_mem import hook
from claude_mem.config import Layout, write_private

_TEMPLATE = """\
#!/bin/sh
# claude-mem: what the agent's hooks run. Always ends with 0, since 2 would block the prompt.
# Written by claude-mem; made anew by every install and upgrade.
export CLAUDE_MEM_DATA_DIR="${{CLAUDE_MEM_DATA_DIR:-{data_dir}}}"
{python} -I -S {script} "$@" 2>/dev/null && exit 0
status=$?
[ "$CLAUDE_MEM_INTERNAL" ] && exit 0
echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) hook $2: {python_plain} ended with $status" \\
  >>"$CLAUDE_MEM_DATA_DIR/logs/hook.log" 2>/dev/null
if mkdir "$CLAUDE_MEM_DATA_DIR/.launcher-told" 2>/dev/null; then
  echo '{{"systemMessage":"claude-mem: its program cannot be run any more, so nothing is \
remembered. Install it again, or run claude-mem uninstall."}}'
fi
exit 0
"""


def launcher_text(layout: Layout, python: str = sys.executable) -> str:
    script = Path(hook.__file__).with_name("__main__.py")
    return _TEMPLATE.format(
        data_dir=_inside_quotes(str(layout.root)),
        python=shlex.quote(python),
        python_plain=_inside_quotes(python),
        script=shlex.quote(str(script)),
    )


def write_launcher(layout: Layout, python: str = sys.executable) -> Path:
    """Puts the launcher of this installation in place, atomically."""
    write_private(layout.launcher, launcher_text(layout, python).encode(), mode=0o700)
    told = layout.root / ".launcher-told"
    if told.is_dir():
        told.rmdir()
    return layout.launcher


def _inside_quotes(text: str) -> str:
    for special in ("\\", '"', "$", "`"):
        text = text.replace(special, "\\" + special)
    return text
