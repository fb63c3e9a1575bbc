"""The tools as a model sees them: what clients read at the start of a session.

Every session pays for every word of a description, so they are short.
"""

from dataclasses import dataclass, field

from claude_mem.parameter_table import properties_of, required_of
from claude_mem.types import Json

INSTRUCTIONS = (
    "Memory of past sessions of this and other projects: search, then timeline, then"
    " get_observations for the few that matter."
)


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    changes: bool = False
    deferred: bool = False  # so rarely used that clients may load its schema on demand
    annotations: dict[str, Json] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Json]:
        return properties_of(self.name)

    def definition(self) -> dict[str, Json]:
        """The entry for `tools/list`."""
        schema: dict[str, Json] = {"type": "object", "properties": self.parameters}
        if required := required_of(self.name):
            schema["required"] = list(required)
        schema["additionalProperties"] = False
        definition: dict[str, Json] = {
            "name": self.name,
            "description": self.description,
            "inputSchema": schema,
            "annotations": self.annotations if self.changes else {"readOnlyHint": True},
        }
        if self.deferred:
            definition["_meta"] = {"anthropic/alwaysLoad": False}
        return definition


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "search",
            "Step 1: search memory of past sessions (what was done, decided, learned, asked)."
            " Returns turns, best first: id, time, type, title, tokens, what matches."
            " Then get_observations with ids and words.",
        ),
        Tool(
            "timeline",
            "Step 2: what happened before and after a memory, in order. Set anchor or query.",
        ),
        Tool(
            "get_observations",
            "Step 3: full text of memories, all that you need in one call; with words, what was"
            " said in their turns about them, in fewer tokens.",
        ),
        Tool(
            "facts",
            "What is known of the project: rules of the user, decisions, commands, faults, open"
            " work, places; with status, count and sources.",
            deferred=True,
        ),
        Tool(
            "save_memory",
            "Save something for later sessions that the code does not show: a decision and its"
            " reason, a preference of the user, something that was hard to find out. One"
            " self-contained statement; never secrets.",
            changes=True,
            annotations={"destructiveHint": False, "idempotentHint": True},
        ),
        Tool(
            "edit_memory",
            "Correct a memory that proved outdated or false: new texts, pinned (shown in contexts)"
            " or wrong (left out). Only the user can change what the user said or changed.",
            changes=True,
            deferred=True,
            annotations={"destructiveHint": False, "idempotentHint": True},
        ),
        Tool(
            "forget",
            "Forget memories when the user asks for it: by ids, session, file, query, or a whole"
            " project. The first call is a preview; show it to the user, then repeat the call with"
            " confirm.",
            changes=True,
            deferred=True,
            annotations={"destructiveHint": True, "idempotentHint": True},
        ),
    )
}  # fmt: skip
