"""`Model`: what every provider implements, and all that the worker knows of one."""

from dataclasses import dataclass
from typing import Protocol

from claude_mem.observer.models.prompts import ModelRequest


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    model: str
    tokens: int | None = None  # input and output, if the provider reports them
    provider_session_id: str | None = None  # resumes the conversation
    requests: int = 1  # a client may send more than one by itself


class Model(Protocol):
    """`session` is the id of our session: a conversation never mixes two of them."""

    name: str

    async def ask(self, request: ModelRequest, session: int, resume: str | None) -> Reply:
        """Raises ObserverError. Leaves nothing running when it is cancelled."""
        ...

    def has_conversation(self, session: int) -> bool:
        """Whether a conversation with the earlier turns of this session is open."""
        ...

    def conversation_tokens(self, session: int, resume: str | None) -> int:
        """Estimates the tokens of the earlier conversation that the next request sends again."""
        ...

    async def end_conversation(self, session: int) -> None: ...

    async def close(self) -> None: ...


class StatelessModel:
    """A model without conversations."""

    def has_conversation(self, session: int) -> bool:
        return False

    def conversation_tokens(self, session: int, resume: str | None) -> int:
        return 0

    async def end_conversation(self, session: int) -> None:
        pass

    async def close(self) -> None:
        pass
