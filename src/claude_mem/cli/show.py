"""claude-mem show: memories in full, or the passages of their turns that answer a question."""

from collections.abc import Sequence
from datetime import datetime

import click

from claude_mem import params
from claude_mem.cli.open_store import open_reader
from claude_mem.cli.output import json_option, print_heading, print_json
from claude_mem.cli.team_recall import is_of_team, memories_of_team
from claude_mem.config import Settings
from claude_mem.errors import BadInput, NotFound
from claude_mem.index.vectors.lazy_index import open_semantic_index
from claude_mem.recall.answers import Answer, find_answers
from claude_mem.recall.fence import OUTSIDE_KINDS, OUTSIDE_MARK, marked_lines
from claude_mem.recall.formatting import ORIGINS, answers_text
from claude_mem.recall.full_memories import NOUNS, get_memories, get_memory
from claude_mem.recall.memory_ids import MemoryId, parse_any_id
from claude_mem.recall.search import MARKS, OutsideWords, outside_words_of
from claude_mem.recall.team_interface import TEAM
from claude_mem.store import StoreReader
from claude_mem.store.memories import column_texts
from claude_mem.store.memory_rows import JsonRow
from claude_mem.store.turn_records import record_data
from claude_mem.text import NO_MEMORIES, local_time, one_line, pluralize, shorten, without_controls
from claude_mem.types import Json

FACTS = "facts"
LONGEST_TITLE = 120


@click.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--record", "with_record", is_flag=True, help="Also show the full text of the turn.")
@click.option(
    "--words",
    metavar="QUESTION",
    default="",
    help="Show only the passages most likely to answer this question.",
)
@json_option
@click.pass_obj
def show(
    settings: Settings, ids: tuple[str, ...], with_record: bool, words: str, as_json: bool
) -> None:
    """Show memories in full.

    \b
    claude-mem show 12           an observation
    claude-mem show S3           a summary
    claude-mem show P4           a prompt
    claude-mem show F5           a fact, with the memories that it comes from
    claude-mem show T6           a turn that another machine of your team recorded
    claude-mem show session 5    a session with all its memories, by its id from
                                 `claude-mem sessions` or the agent's session id
    """
    with open_reader(settings) as store:
        if store is None:
            raise NotFound(NO_MEMORIES)
        if ids == ("session",):
            raise BadInput("session id missing: `claude-mem sessions` lists them")
        if words.strip():
            if with_record:
                raise BadInput("set only one of --record and --words")
            if any(map(is_of_team, ids)):
                raise BadInput("--words needs ids of memories of this machine: 12, S3 or P4")
            _show_answers(store, settings, ids, words.strip(), as_json)
            return
        if ids[0] == "session":
            matches = {text: _session_records(store, text, with_record) for text in ids[1:]}
        else:
            matches = {text: _find(store, text) for text in ids if not is_of_team(text)}
            if with_record:
                matches = {text: _with_records(store, rows) for text, rows in matches.items()}
        shown = [_memory_id(kind, record) for rows in matches.values() for kind, record in rows]
        outside = _outside_words(store, shown)
    if of_team := [text for text in ids if is_of_team(text)]:
        rows = memories_of_team(settings, of_team, with_record)
        by_id = {f"T{row['id']}": row for row in rows}
        matches |= {t: [(TEAM, by_id[t.upper()])] if t.upper() in by_id else [] for t in of_team}
    records = [record for text in ids for record in matches.get(text, ())]
    if as_json:
        print_json([{"kind": kind, **record} for kind, record in records])
    else:
        for position, (kind, record) in enumerate(records):
            if position:
                click.echo()
            _print_record(kind, record, outside.get(_memory_id(kind, record), frozenset()))
    if missing := [text for text, match in matches.items() if not match]:
        raise NotFound(
            f"no memory with id {', '.join(missing)}: `claude-mem search` and `claude-mem facts`"
            " show ids"
        )


def _find(store: StoreReader, text: str) -> list[tuple[str, JsonRow]]:
    memory_id = parse_any_id(text)
    if memory_id is None:
        raise BadInput(f"{text!r} is not an id such as 12, S3, P4, F5 or `session 5`")
    if memory_id.kind == "fact":
        fact = get_memory(store, memory_id)
        return [(FACTS, {**fact, "memories": _sources(store, fact)})] if fact else []
    noun = NOUNS[memory_id.kind]
    return [(noun, record) for record in store.get_many(noun, [memory_id.number])]


def _sources(store: StoreReader, fact: JsonRow) -> list[Json]:
    """The memories that a fact comes from, by their titles."""
    ids = params.memory_ids({"ids": fact["sources"]})
    return [
        {
            "id": str(memory_id),
            "title": _title(memory),
            "created_at": memory["created_at"],
            "origin": memory["origin"],
        }
        for memory_id, memory in get_memories(store, ids)
    ]


def _title(memory: JsonRow) -> str:
    texts = (memory.get(name) for name in ("title", "request", "prompt_text"))
    return shorten(_flat(next((text for text in texts if text), "")), LONGEST_TITLE)


def _with_records(
    store: StoreReader, memories: list[tuple[str, JsonRow]]
) -> list[tuple[str, JsonRow]]:
    return [(noun, {**memory, **_record_of(store, noun, memory)}) for noun, memory in memories]


def _record_of(store: StoreReader, noun: str, memory: JsonRow) -> JsonRow:
    identity = memory["id"]
    if noun not in NOUNS.values() or not isinstance(identity, int):
        return {}
    return {"record": record_data(store.records_of(noun, [identity]).get(identity, ()))}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def _session_records(store: StoreReader, text: str, with_record: bool) -> list[tuple[str, JsonRow]]:
    session = store.session_by_content_id(text)
    if session is None and _is_number(text):
        session = store.session(int(text))
    if session is None:
        raise NotFound(f"no session {text!r}: `claude-mem sessions` lists them")
    session_id = session["id"]
    assert isinstance(session_id, int)
    result: list[tuple[str, JsonRow]] = [("sessions", session)]
    for kind, records in store.memories_of_session(session_id).items():
        assert isinstance(records, list)
        memories = [(kind, record) for record in records if isinstance(record, dict)]
        # Once for each turn: with its prompt, or with its summary if it continues another turn.
        carrying = [memory for memory in memories if kind == "prompts" or _is_continuation(*memory)]
        with_words = _with_records(store, carrying) if with_record else carrying
        replaced = {memory["id"]: (noun, memory) for noun, memory in with_words}
        result += [replaced.get(memory["id"], (kind, memory)) for _, memory in memories]
    return result


def _is_continuation(kind: str, memory: JsonRow) -> bool:
    return kind == "summaries" and memory["continues"] is not None


_LABELS = {
    "observations": ("continues", "title", "subtitle", "narrative", "facts", "concepts",
                     "files_read", "files_modified"),
    "summaries": ("continues", "request", "investigated", "learned", "completed", "next_steps",
                  "files_read", "files_edited", "commands", "faults", "notes"),
    "prompts": ("prompt_text",),
    TEAM: ("owner", "title", "prompt_text", "narrative", "completed", "learned", "next_steps",
           "files_edited"),
    "sessions": ("title", "subtitle", "status", "content_session_id", "project_dir",
                 "prompt_counter"),
    FACTS: ("subject", "value", "scope", "note", "status"),
}  # fmt: skip
_TYPES = {"observations": "type", FACTS: "kind"}
_MARKS = {"observations": "#", "summaries": "S", "prompts": "P", "sessions": "session ", TEAM: "T",
          FACTS: "F"}  # fmt: skip


def _memory_id(noun: str, record: JsonRow) -> MemoryId:
    kind = next((kind for kind, name in NOUNS.items() if name == noun), noun)
    return MemoryId(kind, int(str(record["id"])))


def _outside_words(store: StoreReader, ids: Sequence[MemoryId]) -> OutsideWords:
    return store.read(lambda connection: outside_words_of(connection, ids))


def _print_record(kind: str, record: JsonRow, outside: frozenset[str] = frozenset()) -> None:
    moments = ("created_at_epoch", "updated_at_epoch", "last_seen_epoch")
    when = local_time(next((record[name] for name in moments if record.get(name)), None))
    type_ = f" {_flat(record[name])}" if (name := _TYPES.get(kind)) else ""
    marks = "".join(f"  {mark}" for mark in MARKS if record.get(mark))
    if origin := ORIGINS.get(str(record.get("origin"))):
        marks += f"  {origin}"
    print_heading(f"{_MARKS[kind]}{record['id']}{type_}  {_flat(record['project'])}  {when}{marks}")
    for name in _LABELS[kind]:
        value = column_texts(record, name) or record.get(name)
        if isinstance(value, list):
            single = len(value) == 1
            value = str(value[0]) if single else "\n".join(f"- {item}" for item in value)
        if value is None or value == "":
            continue
        text = "\n".join(marked_lines(without_controls(str(value)), outside))
        label = name.replace("_", " ")
        click.echo(f"{label}:\n{_indented(text)}" if _has_lines(text) else f"{label}: {text}")
    if kind == FACTS:
        _print_sources(record)
    parts = record.get("record")
    for part in parts if isinstance(parts, list) else ():
        assert isinstance(part, dict)
        click.echo()
        mark = OUTSIDE_MARK if part["kind"] in OUTSIDE_KINDS else ""
        kind_text = _flat(part["kind"]).replace("_", " ")
        print_heading(f"{_flat(part['speaker'])}, {kind_text}{mark}")
        lines = marked_lines(without_controls(str(part["text"])), outside)
        click.echo(_indented("\n".join(lines)))


def _print_sources(fact: JsonRow) -> None:
    if replacement := fact["superseded_by"]:
        click.echo(f"replaced by: F{replacement}")
    turns = pluralize(fact["count"], "turn")
    click.echo(f"seen in {turns}, first {local_time(fact['first_seen_epoch'])}")
    memories = fact["memories"]
    assert isinstance(memories, list)
    for memory in memories:
        assert isinstance(memory, dict)
        mark = OUTSIDE_MARK if memory["origin"] == "outside" else ""
        click.echo(f"from {memory['id']}: {memory['title']}{mark}")


def _flat(value: Json) -> str:
    return one_line(without_controls(str(value)))


def _has_lines(text: str) -> bool:
    return len(text.splitlines()) > 1


def _indented(text: str) -> str:
    """Indents the text so that no line of it can be taken for the heading of another memory."""
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _show_answers(
    store: StoreReader, settings: Settings, ids: Sequence[str], words: str, as_json: bool
) -> None:
    if ids[0] == "session":
        raise BadInput("--words needs ids of memories: 12, S3 or P4")
    memory_ids = params.memory_ids({"ids": list(ids)})
    now = datetime.now().astimezone()
    semantic_index = open_semantic_index(settings)
    answers = find_answers(store, memory_ids, words, now, semantic_index)
    if as_json:
        print_json([answer.as_json() for answer in answers])
    else:
        _print_answers(answers, _outside_words(store, memory_ids))
    existing = {answer.id for answer in answers}
    if missing := [str(memory_id) for memory_id in memory_ids if memory_id not in existing]:
        raise NotFound(f"no memory with id {', '.join(missing)}")


def _print_answers(answers: Sequence[Answer], outside: OutsideWords) -> None:
    for position, answer in enumerate(answers):
        if position:
            click.echo()
        head, _, text = without_controls(answers_text([answer], outside)).partition("\n")
        print_heading(head)
        click.echo(text)


commands = [show]
