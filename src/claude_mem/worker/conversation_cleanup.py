"""Ends and deletes the conversations that providers keep for sessions that are over."""

import asyncio

from claude_mem.observer.models.claude import ClaudeModel
from claude_mem.observer.models.claude_files import ClaudeFiles
from claude_mem.observer.models.model import Model
from claude_mem.store import Store


class ConversationCleanup:
    def __init__(self, store: Store, claude: ClaudeFiles) -> None:
        self._store, self._claude = store, claude

    async def begin(self) -> None:
        """Before any client runs. A conversation of an earlier worker or observer is not resumed:
        a new one gets the session's memories instead."""
        self._claude.delete_pid_files()
        await asyncio.wrap_future(self._store.drop_all_conversations())

    async def end_finished(self, model: Model | None) -> None:
        """Of sessions that are over and have no work left."""
        if not self._store.has_finished_conversation():
            return
        sessions = await asyncio.wrap_future(self._store.drop_finished_conversations())
        if model is not None:
            for session in sessions:
                await model.end_conversation(session)

    def delete_leftovers(self) -> None:
        """Only while no request runs: a conversation that just began is not recorded yet.

        Claude Code's transcripts are deleted also while another provider is in use.
        """
        if self._claude.has_transcripts():
            self._claude.delete_transcripts(self._store.resumable_conversations(ClaudeModel.name))
