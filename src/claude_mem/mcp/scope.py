"""What the tools of a session may reach.

They change the memories of their own project only: an agent may follow orders of the repository
that it works on. They read other projects too, unless the directory claims a project whose memory
it does not get. It may be a copy that somebody else prepared: until the user joins it, its sessions
read the memories of this directory only.
"""

from claude_mem import params
from claude_mem.errors import BadInput
from claude_mem.intake.project_access import Decision
from claude_mem.recall.memory_ids import parse_any_id
from claude_mem.store import StoreReader
from claude_mem.types import Json
from claude_mem.worker.worker import Worker

OF_OTHERS = -1  # no id of a project here
_REFUSED = (
    "this directory gets only its own memories until the user runs `claude-mem project join` in it"
)
_OWN_ONLY = (
    "a session changes only memories of its own project; the user can change others with the"
    " command claude-mem or in the viewer"
)


def check_scope(
    worker: Worker, directory: str, arguments: dict[str, Json], *, changes: bool = False
) -> None:
    """Raises BadInput if the arguments name what another project has."""
    decision = worker.projects.decision(directory) if directory else None
    if decision is None or (decision.claimed is None and not changes):
        return
    refused = _OWN_ONLY if decision.claimed is None else _REFUSED
    store = worker.store
    own = store.project_by_key(decision.project.key)
    name, session = params.text(arguments, "project"), params.text(arguments, "session")
    if name and name != decision.project.key and not _names_own(store, name, own, decision):
        raise BadInput(refused, "project")
    for field in ("id", "anchor", "ids"):
        values = arguments.get(field)
        for value in values if isinstance(values, list) else [values]:
            if value is not None and _project_of(store, str(value)) not in (None, own):
                raise BadInput(refused, field)
    if session and store.project_of_session(store.find_session(session)) != own:
        raise BadInput(refused, "session")


def _names_own(store: StoreReader, name: str, own: int | None, decision: Decision) -> bool:
    """A directory may have the name of any project."""
    if decision.claimed is not None or name != decision.project.name or own is None:
        return False
    return store.find_project(name) == own


def _project_of(store: StoreReader, text: str) -> int | None:
    memory_id = parse_any_id(text)
    if memory_id is not None and memory_id.kind == "team":
        return OF_OTHERS
    return store.project_of_memory(memory_id.kind, memory_id.number) if memory_id else None
