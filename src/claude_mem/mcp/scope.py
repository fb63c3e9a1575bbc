"""What a session may reach whose directory claims a project but does not get its memory.

Such a directory may be a copy that somebody else prepared: until the user joins it, its sessions
read and change the memories of this directory only.
"""

from claude_mem import params
from claude_mem.errors import BadInput
from claude_mem.recall.memory_ids import parse_any_id
from claude_mem.store import StoreReader
from claude_mem.types import Json
from claude_mem.worker.worker import Worker

OF_OTHERS = -1  # no id of a project here
_REFUSED = (
    "this directory gets only its own memories until the user runs `claude-mem project join` in it"
)


def check_scope(worker: Worker, directory: str, arguments: dict[str, Json]) -> None:
    """Raises BadInput if the arguments name what another project has."""
    decision = worker.projects.decision(directory) if directory else None
    if decision is None or decision.claimed is None:
        return
    store = worker.store
    own = store.project_by_key(decision.project.key)
    name, session = params.text(arguments, "project"), params.text(arguments, "session")
    if name and name != decision.project.key:
        raise BadInput(_REFUSED, "project")
    for field in ("id", "anchor", "ids"):
        values = arguments.get(field)
        for value in values if isinstance(values, list) else [values]:
            if value is not None and _project_of(store, str(value)) not in (None, own):
                raise BadInput(_REFUSED, field)
    if session and store.project_of_session(store.find_session(session)) != own:
        raise BadInput(_REFUSED, "session")


def _project_of(store: StoreReader, text: str) -> int | None:
    memory_id = parse_any_id(text)
    if memory_id is not None and memory_id.kind == "team":
        return OF_OTHERS
    return store.project_of_memory(memory_id.kind, memory_id.number) if memory_id else None
