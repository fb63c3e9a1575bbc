"""A sh script in the data directory that removes what install added, for when the package is gone.

It asks the client to remove the plugin and the MCP server, restores the settings files in which
nothing else has changed since, and replaces the launcher by one that does nothing. So what it
cannot remove has no effect.
"""

import base64
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from claude_mem.config import Layout, write_private

PLUGIN = MARKETPLACE = "claudemem"  # Claude Code reserves plugin names that begin with "claude-"
SERVER = "claude-mem"  # the MCP server without the plugin

STUB = """\
#!/bin/sh
# claude-mem was uninstalled. Sessions that are still open may run this; it does nothing.
exit 0
"""

_TEMPLATE = """\
#!/bin/sh
# claude-mem: removes its hooks where the package cannot be run any more; memories are kept.
# Written by claude-mem; every install replaces it. With the package, use claude-mem uninstall.
data={data}
# Sets a file to what it was before the install, unless something else has changed since.
restore() {{
  if [ "$(base64 <"$1" 2>/dev/null | tr -d '\\n')" != "$2" ]; then
    if grep -qF "$data/" "$1" 2>/dev/null; then
      echo "$1 has changed since the install: delete what names $data, which does nothing now."
    fi
  elif [ "$3" = - ]; then
    rm -f "$1" && echo "Removed $1, which install had made."
  else
    printf %s "$3" | base64 -d >"$1.claude-mem" && cat "$1.claude-mem" >"$1" && echo "Restored $1."
    rm -f "$1.claude-mem"
  fi
}}
PATH="$PATH:$HOME/.local/bin:$HOME/.claude/local:$HOME/.npm-global/bin"
if command -v claude >/dev/null; then
  export CLAUDE_MEM_INTERNAL=1
  claude plugin uninstall {plugin} 2>/dev/null
  claude plugin marketplace remove {marketplace} 2>/dev/null
  claude mcp get {server} 2>/dev/null | grep -qF "$data/mcp" && claude mcp remove {server}
fi
{files}cat >"$data/hook" <<'end'
{stub}end
rm -rf "$data/mcp" "$data/plugin" "$data/installed.json" "$data/.launcher-told"
echo "The hooks of claude-mem are removed. The memories are kept in $data"
rm -f "$data/remove-hooks"
"""


@dataclass(frozen=True, slots=True)
class Restorable:
    """A file as it was before install changed it, and as install left it."""

    path: Path
    before: bytes | None
    after: bytes


def write_remover(layout: Layout, files: Iterable[Restorable]) -> None:
    text = _TEMPLATE.format(
        data=shlex.quote(str(layout.root)),
        plugin=shlex.quote(f"{PLUGIN}@{MARKETPLACE}"),
        marketplace=shlex.quote(MARKETPLACE),
        server=shlex.quote(SERVER),
        files="".join(map(_restore_line, files)),
        stub=STUB,
    )
    write_private(layout.remover, text.encode())


def _restore_line(file: Restorable) -> str:
    before = "-" if file.before is None else _encoded(file.before)
    return shlex.join(("restore", str(file.path), _encoded(file.after), before)) + "\n"


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
