"""A model behind the observer's seam: what it must answer, and the observer made of it."""

from dataclasses import dataclass
from typing import Protocol

from claude_mem.observer.local import observer
from claude_mem.observer.models.failures import UnusableReply
from claude_mem.observer.models.prompts import PROMPT_VERSION, Ask, system_prompt, turn_prompt
from claude_mem.observer.models.replies import go_on, parse_reply, revise
from claude_mem.types import Distillate, Turn


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    model: str
    tokens: int | None = None  # sent and answered together, where the provider says it
    provider_session_id: str | None = None  # what it needs to go on
    requests: int = 1  # that it took: a client may ask again by itself


class Model(Protocol):
    name: str

    async def ask(self, ask: Ask, session: int, resume: str | None) -> Reply:
        """Raises an ObserverError. When cancelled it leaves nothing running."""
        ...

    def knows(self, session: int) -> bool:
        """Whether it has this session's turns before in a conversation that is still open."""
        ...

    def carries(self, session: int, resume: str | None) -> int:
        """How many tokens of a conversation so far are sent along, about."""
        ...

    async def end(self, session: int) -> None:
        """The session is over: its conversation is closed."""
        ...

    def sweep(self, known: set[str]) -> None:
        """Deletes what the provider keeps here of conversations that are not among these."""
        ...

    async def close(self) -> None: ...


class Stateless:
    """A model that keeps nothing between two requests."""

    def knows(self, session: int) -> bool:
        return False

    def carries(self, session: int, resume: str | None) -> int:
        return 0

    async def end(self, session: int) -> None:
        pass

    def sweep(self, known: set[str]) -> None:
        pass

    async def close(self) -> None:
        pass


class ModelObserver:
    """Has a model correct what the local observer drafts."""

    def __init__(self, model: Model, verbosity: str = "normal") -> None:
        self.model, self.name = model, model.name
        self._system = system_prompt(verbosity)

    def prepare(
        self, turn: Turn, *, continues: bool, most: int | None = None
    ) -> tuple[Distillate, Ask]:
        draft = observer.distil(turn)
        if turn.standing is not None:
            draft = go_on(turn.standing, draft)
        text = turn_prompt(turn, draft, continues=continues, most=most)
        return draft, Ask(self._system, text)

    def read(self, draft: Distillate, reply: Reply) -> tuple[Distillate, str | None]:
        """The draft revised, and the answer where it says more than the memories hold of it."""
        parsed = parse_reply(reply.text)
        if not parsed.is_usable:
            said = "an empty answer" if not reply.text.strip() else "an answer without a memory"
            raise UnusableReply(said, reply.text)
        made = revise(draft, parsed, observer=self.name, model=reply.model,
                      prompt_version=PROMPT_VERSION)  # fmt: skip
        return made, reply.text if parsed.left_out else None

    async def distil(self, turn: Turn) -> Distillate:
        continues = self.model.knows(turn.session_db_id)
        draft, ask = self.prepare(turn, continues=continues)
        return self.read(draft, await self.model.ask(ask, turn.session_db_id, None))[0]
