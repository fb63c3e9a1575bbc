"""`claude-mem show --words`: the passages of turns that answer a question."""

from collections.abc import Sequence
from datetime import datetime

import click

from claude_mem import params
from claude_mem.cli.output import print_heading, print_json
from claude_mem.config import Settings
from claude_mem.errors import BadInput, NotFound
from claude_mem.index.vectors.semantic import open_semantic_index
from claude_mem.recall.answers import Answer, find_answers
from claude_mem.recall.formatting import answers_text
from claude_mem.store import StoreReader
from claude_mem.text import without_controls


def show_answers(
    store: StoreReader, settings: Settings, ids: Sequence[str], words: str, as_json: bool
) -> None:
    if ids[0] == "session":
        raise BadInput("--words needs ids of memories: 12, S3 or P4")
    memory_ids = params.memory_ids({"ids": list(ids)})
    now = datetime.now().astimezone()
    semantic_index = open_semantic_index(settings.embedder)
    answers = find_answers(store, memory_ids, words, now, semantic_index)
    if as_json:
        print_json([answer.record() for answer in answers])
    else:
        _print(answers)
    existing = {answer.id for answer in answers}
    if missing := [str(memory_id) for memory_id in memory_ids if memory_id not in existing]:
        raise NotFound(f"no memory with id {', '.join(missing)}")


def _print(answers: Sequence[Answer]) -> None:
    for position, answer in enumerate(answers):
        if position:
            click.echo()
        head, _, text = without_controls(answers_text([answer])).partition("\n")
        print_heading(head)
        click.echo(text)
