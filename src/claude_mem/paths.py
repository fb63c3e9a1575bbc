"""Names in the data directory. Nothing here touches the disk.

The hook uses the byte names, everything else the Path properties of `Layout`.
"""

DATA_DIR_VARIABLE = b"CLAUDE_MEM_DATA_DIR"
DEFAULT_DATA_DIR = b".claude-mem"

SPOOL = b"spool"
REJECTED = b"spool/rejected"
SET_ASIDE = b"spool/set-aside"
INTAKE_MARK = b"intake.mark"  # the record that is being processed
UNDELETABLE = b"undeletable.json"
INTAKE_SUSPECTS = b"intake.suspects"  # records whose worker died, and how often
CONTEXTS = b"contexts"
LOGS = b"logs"
HOOK_LOG = b"logs/hook.log"
WORKER_LOG = b"logs/worker.log"
TROUBLE = b"trouble"
LOST = b"lost-events"  # a byte for each event that could not be written, after the first byte
PAUSED = b"paused"  # its modification time: until when no event is captured
WAKE = b"wake"
LOCK = b"worker.lock"
SOCKET = b"worker.sock"
WORKER_STATE = b"worker.json"
LAST_WORKER_STATE = b"worker.json.last"  # of a worker that did not shut down cleanly
LAUNCHER = b"hook"
MCP_LAUNCHER = b"mcp"
REMOVER = b"remove-hooks"  # a script that does not need the package
DATABASE = b"memory.db"
BACKUPS = b"backups"
TOKEN = b"token"
SETTINGS = b"settings.json"
ENVIRONMENT = b"environment.json"  # of the user's own shell, for workers that hooks start
ACTIVITY_FLAG = b"activity.flag"
OBSERVER = b"observer"  # working directory of Claude Code as observer
HINTS = b"hints.on"  # exists while prompts are given hints
FILE_HINTS = b"file-hints.on"  # exists while tools are given hints about their file
TEAM = b"team.json"  # the team that this machine joined
AGREED = b"observer.json"  # the models that the user agreed to


def data_dir(environ: dict[bytes, bytes]) -> bytes:
    """The data directory according to this environment; empty if it has no home directory."""
    configured = environ.get(DATA_DIR_VARIABLE)
    home = environ.get(b"HOME") or environ.get(b"USERPROFILE")
    if configured:
        return home + configured[1:] if home and configured[:2] == b"~/" else configured
    return home + b"/" + DEFAULT_DATA_DIR if home else b""


def context_name(project_dir: bytes) -> bytes:
    """The file name of a project's rendered context: the end of its path and a 64-bit FNV-1a hash.

    Importing hashlib would take the hook longer than all of its other work.
    """
    digest = 0xCBF29CE484222325
    for byte in project_dir:
        digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    tail = bytes(b if _plain(b) else 0x2D for b in project_dir[-60:])
    return b"%s-%016x" % (tail, digest)


def _plain(byte: int) -> bool:
    return 0x30 <= byte <= 0x39 or 0x41 <= byte <= 0x5A or 0x61 <= byte <= 0x7A or byte in b"._"
