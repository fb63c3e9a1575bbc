"""Facts of a project: proposed by turns, merged, and gone with the turns they come from."""

import asyncio
import io
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.observer.local.observer import distil
from claude_mem.redaction import Redactor
from claude_mem.store import facts
from claude_mem.store.forgetting import Selection
from claude_mem.store.transfer.restore import restore
from claude_mem.types import Distillate, Fact, ProposedFact, Summary
from claude_mem.worker.distil_jobs import TranscriptAdditions
from tests.contents import contents_of
from tests.importing import ImportTarget
from tests.payloads import (
    PROJECT_DIR,
    SESSION,
    bash,
    failure,
    private_prompt,
    prompt,
    stop,
    tool,
)
from tests.story import Story
from tests.transcripts import Chat
from tests.turns import turn, use

COMMITTED = "[fix-lamp 1a2b3c4d] Replace the fuse\n 1 file changed"
URL = "https://github.com/dev/harbor/pull/12"
QUESTION = {"questions": [{"question": "Which lamp?", "options": []}]}


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with Story(tmp_path) as story:
        yield story


def work(story: Story, prompt_id: str = "p1", session_id: str = SESSION) -> None:
    of = {"prompt_id": prompt_id, "session_id": session_id}
    story.tell(
        prompt("Light the lamp", **of),
        failure(tool_input={"command": "wrap make test"}, error="error: no such command", **of),
        bash("make test", "3 passed", **of),
        bash("git checkout -b fix-lamp && git commit -am x", COMMITTED, **of),
        stop("The lamp is lit. The `fuse` in `lamp.py` must still be replaced.", **of),
    )  # fmt: skip
    assert story.distil() == 1


def project_id(story: Story) -> int:
    return int(story.column("SELECT id FROM projects")[0])


def stored(story: Story, *kinds: str) -> list[Fact]:
    found = story.store.facts(project_id(story))
    return [fact for fact in found if not kinds or fact.kind in kinds]


def values(story: Story, *kinds: str) -> list[tuple[str, str, str, int]]:
    return [(f.kind, f.subject, f.value, f.count) for f in stored(story, *kinds)]


def propose(story: Story, prompt_id: str, *proposals: ProposedFact) -> None:
    """A turn whose observer proposes these facts and nothing else."""
    story.tell(prompt("Go on", prompt_id=prompt_id), stop("Done.", prompt_id=prompt_id))
    job, turn = story.claim()
    distillate = Distillate(Summary(), facts=proposals)
    assert story.store.finish_job(job, turn, distillate).result()


# Proposals


def test_a_turn_proposes_its_commands_faults_steps_and_artifacts(story: Story) -> None:
    work(story)
    assert sorted(values(story)) == [
        ("artifact", "branch", "fix-lamp", 1),
        ("artifact", "commit", "1a2b3c4d", 1),
        ("command", "test", "make test", 1),
        ("fault", "wrap make test", "make test", 1),
        ("open", "", "The `fuse` in `lamp.py` must still be replaced.", 1),
    ]
    assert [fact.status for fact in stored(story, "open")] == ["candidate"]  # it only reads so
    notes = {fact.kind: fact.note for fact in stored(story, "command", "fault")}
    assert notes == {"command": "3 passed", "fault": "error: no such command"}
    (commit,) = (fact for fact in stored(story) if fact.subject == "commit")
    assert (commit.note, commit.origin, commit.status) == ("Replace the fuse", "agent", "holds")
    ((turn_id, events),) = story.store.fact_sources(commit.id)
    assert turn_id == 1
    assert story.column(f"SELECT tool_name FROM tool_events WHERE id = {events[0]}") == ["Bash"]


def test_the_folder_of_a_command_is_its_scope(story: Story) -> None:
    story.tell(
        prompt(),
        bash("cd web && npm test", "2 passed"),
        bash("npm test", "4 passed", cwd=f"{PROJECT_DIR}/api"),
        bash(f"cd {PROJECT_DIR} && make test", "1 passed"),
        stop(),
    )
    story.distil()
    scopes = {(fact.value, fact.scope, fact.note) for fact in stored(story, "command")}
    # The same command of a turn is one run, the last.
    assert scopes == {("npm test", "api", "4 passed"), ("make test", "", "1 passed")}


@pytest.mark.parametrize(
    ("command", "cwd", "directory", "scope"),
    [
        ("cd web && npm test", "/src/lamp", "/src/lamp", "web"),
        ("cd web && npm test", "/src/lamp/web", "/src/lamp", "web"),
        ("cd web/ui; npm test", "/src/lamp/web/ui", "/src/lamp", "web/ui"),
        ("cd .. && npm test", "/src/lamp/web", "/src/lamp", ""),
        ("cd /elsewhere && npm test", "/src/lamp", "/src/lamp", ""),
        ("cd '/src/lamp/the web' && npm test", "/src/lamp", "/src/lamp", "the web"),
        ("npm test", "D:\\lamp\\web", "D:\\lamp", "web"),
        ("cd web && npm test", "D:\\lamp\\web", "D:\\lamp", "web"),
        ("cd /d/lamp/web && npm test", "D:\\lamp", "D:\\lamp", "web"),
        ("cd /d/lamp && npm test", "D:\\lamp", "D:\\lamp", ""),
    ],
)
def test_a_scope_is_a_folder_below_the_project(
    command: str, cwd: str, directory: str, scope: str
) -> None:
    event = use(1, tool_name="Bash", tool_input={"command": command}, cwd=cwd)
    (run,) = distil(turn(event, project_dir=directory)).summary.commands
    assert run.scope == scope


def test_an_announced_step_holds(story: Story) -> None:
    story.tell(prompt(), stop("Done. Next: replace the fuse"))
    story.distil()
    (step,) = stored(story, "open")
    assert (step.value, step.status, step.note) == ("Replace the fuse", "holds", "announced")


def test_a_pull_request_and_an_answer_of_the_user_are_facts(story: Story) -> None:
    story.tell(
        prompt(),
        tool("AskUserQuestion", tool_input=QUESTION,
             tool_response={"answers": {"Which lamp?": "Both"}}),
        bash("gh pr create --title 'Light the lamp' --body x", f"Creating\n{URL}\n"),
        bash("git push -u origin x", "To github.com:dev/harbor\n * [new branch]      x -> x\n"),
        stop(),
    )  # fmt: skip
    story.distil()
    assert sorted((f.kind, f.subject, f.value, f.origin, f.note) for f in stored(story)) == [
        ("artifact", "branch", "x", "agent", ""),
        ("artifact", "pull request", URL, "agent", "Light the lamp"),
        ("artifact", "push", "x", "agent", ""),
        ("decision", "Which lamp?", "Both", "person", ""),
    ]


def test_a_pull_request_that_only_the_client_noted_is_a_fact(story: Story, tmp_path: Path) -> None:
    chat = Chat(SESSION).prompt("Publish it").line("pr-link", prUrl=URL).agent("It is published.")
    file = chat.save(tmp_path / "live.jsonl")
    prompt_id = json.loads(chat.lines[0])["promptId"]
    of = {"prompt_id": prompt_id, "transcript_path": str(file)}
    story.tell(prompt("Publish it", **of), stop("It is published.", **of))
    job, turn = story.claim()
    turn = asyncio.run(TranscriptAdditions(story.store, story.reader).add_to(turn))
    assert story.store.finish_job(job, turn, distil(turn)).result()
    (request,) = stored(story)
    assert (request.kind, request.subject, request.value) == ("artifact", "pull request", URL)
    target = ImportTarget(tmp_path / "import")
    target.run(file)
    assert URL in str(target.contents["facts"])


def test_the_branch_that_a_turn_began_on_is_a_fact_unless_it_is_a_main_branch(
    story: Story, tmp_path: Path
) -> None:
    chat = Chat(SESSION).prompt("Light it", gitBranch="lamps/oil").agent("It burns.")
    chat.prompt("And the pier?", gitBranch="main").agent("As well.")
    target = ImportTarget(tmp_path / "import")
    target.run(chat.save(tmp_path / "live.jsonl"))
    branches = [fact for fact in target.contents["facts"] if "branch" in str(fact)]
    assert len(branches) == 1 and "lamps/oil" in str(branches)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git push origin v1", "To github.com:dev/harbor\n * [new tag]         v1 -> v1\n"),
        ("gh pr view 7", f"Light the lamp\n{URL}\n"),
    ],
)
def test_a_tag_is_no_branch_and_a_pull_request_that_is_looked_at_is_no_result(
    story: Story, command: str, output: str
) -> None:
    story.tell(prompt(), bash(command, output), stop())
    story.distil()
    assert stored(story) == []


@pytest.mark.parametrize(
    ("command", "output", "artifact"),
    [
        ('git commit -q -m "Light the lamp"', "", ("Light the lamp", "Light the lamp")),
        ("wrap git commit -m 'Light the lamp'", "ok", ("Light the lamp", "Light the lamp")),
        ('git commit -m "Light the lamp"', "[main 1a2b3c4] Light the lamp\n",
         ("1a2b3c4", "Light the lamp")),
    ],
)  # fmt: skip
def test_a_commit_that_tells_no_hash_is_known_by_its_subject(
    story: Story, command: str, output: str, artifact: tuple[str, str]
) -> None:
    story.tell(prompt(), bash(command, output), stop())
    story.distil()
    commits = [(f.value, f.note) for f in stored(story) if f.subject == "commit"]
    assert commits == [artifact]


@pytest.mark.parametrize(
    ("options", "output", "hashes"),
    [
        ("--amend --no-edit", "[main 5e6f7a8] Light the lamp\n", ["0a1b2c3", "5e6f7a8"]),
        ("--amend -m 'Light the lamp'", "[main 5e6f7a8] Light the lamp\n", ["0a1b2c3", "5e6f7a8"]),
        ("--amend -m 'Dim it'", "[dim 5e6f7a8] Dim it\n", ["0a1b2c3", "1a2b3c4", "5e6f7a8"]),
        ("--amend --no-edit -q", "", ["0a1b2c3", "1a2b3c4"]),
        ("-m 'Light the lamp'", "[main 5e6f7a8] Light the lamp\n",
         ["0a1b2c3", "1a2b3c4", "5e6f7a8"]),
    ],
)  # fmt: skip
def test_an_amended_commit_takes_the_place_of_the_one_with_its_subject(
    story: Story, options: str, output: str, hashes: list[str]
) -> None:
    """Of another one nobody knows which it replaced: it may be of another branch or repository."""
    first = "[main (root-commit) 0a1b2c3] Paint the pier\n[main 1a2b3c4] Light the lamp\n"
    story.tell(
        prompt(),
        bash("make commits", first, tool_use_id="t1"),
        bash(f"git commit {options}", output, tool_use_id="t2"),
        stop(),
    )
    story.distil()
    assert sorted(f.value for f in stored(story) if f.subject == "commit") == hashes


# Merging


def test_the_same_fact_of_two_turns_is_stored_once_and_counts_twice(story: Story) -> None:
    work(story, "p1")
    work(story, "p2")
    (command,) = stored(story, "command")
    assert command.count == 2
    assert command.first_seen_ms < command.last_seen_ms
    assert [turn for turn, _ in story.store.fact_sources(command.id)] == [2, 1]


def test_a_turn_that_is_distilled_again_counts_once_and_replaces_its_facts(story: Story) -> None:
    work(story)
    story.tell(bash("npm run lint", prompt_id="p1"), stop("Nothing is left.", prompt_id="p1"))
    story.distil()
    assert all(fact.count == 1 for fact in stored(story))
    assert [fact.value for fact in stored(story, "command")] == ["make test", "npm run lint"]
    assert stored(story, "open") == []


def test_another_value_or_scope_is_another_fact(story: Story) -> None:
    port = ProposedFact("place", "server", "port 80", scope="api")
    propose(story, "p1", port, ProposedFact("place", "server", "port 80", scope="web"))
    propose(story, "p2", ProposedFact("place", "server", "port 81", scope="api"), port)
    found = {(f.value, f.scope): f.count for f in stored(story)}
    assert found == {("port 80", "api"): 2, ("port 80", "web"): 1, ("port 81", "api"): 1}


def test_the_users_word_and_a_sure_status_win_in_a_merge(story: Story) -> None:
    doubtful = ProposedFact("decision", "Which lamp?", "Both", origin="outside", status="candidate")
    propose(story, "p1", doubtful)
    sure = ProposedFact("decision", "Which lamp?", "Both", origin="person")
    propose(story, "p2", sure)
    propose(story, "p3", doubtful)
    (fact,) = stored(story)
    assert (fact.origin, fact.status, fact.count) == ("person", "holds", 3)


def test_what_the_user_marked_as_wrong_stays_wrong_when_it_is_said_again(story: Story) -> None:
    work(story)
    story.store.write(lambda c: c.execute("UPDATE facts SET status = 'wrong'")).result()
    work(story, "p2")
    assert {fact.status for fact in stored(story)} == {"wrong"}


def test_only_the_users_words_make_a_rule(story: Story) -> None:
    rule = ProposedFact("rule", "", "Never push to main.", origin="agent")
    propose(story, "p1", rule)
    assert stored(story) == []
    with pytest.raises(sqlite3.IntegrityError):
        story.store.write(
            lambda c: c.execute(
                "INSERT INTO facts (project_id, kind, subject, value, origin, status,"
                " first_seen_epoch, last_seen_epoch)"
                " VALUES (1, 'rule', '', 'x', 'outside', 'holds', 0, 0)"
            )
        ).result()


def test_facts_of_a_model_are_kept_apart_from_those_of_the_draft(story: Story) -> None:
    work(story)
    before = values(story)
    decided = ProposedFact("decision", "lamp", "green")
    for proposals in ((decided,), (ProposedFact("decision", "lamp", "red"),)):
        revised = Distillate(Summary(), observer="claude", model="m", facts=proposals)
        story.store.write(
            lambda c, revised=revised: facts.save_proposals(c, 1, revised)  # type: ignore[misc]
        ).result()
    assert set(values(story)) == {*before, ("decision", "lamp", "red", 1)}


# The turns they come from


def test_forgetting_a_turn_takes_its_facts_and_undo_restores_them(story: Story) -> None:
    work(story, "p1", "one")
    work(story, "p2", "two")
    story.tell(prompt(session_id="two", prompt_id="p3"),
               bash("npm run lint", session_id="two", prompt_id="p3"),
               stop(session_id="two", prompt_id="p3"))  # fmt: skip
    story.distil()
    story.store.write(
        lambda c: c.execute(
            "UPDATE facts SET status = 'past', superseded_by = (SELECT id FROM facts"
            " WHERE value = 'npm run lint') WHERE value = 'make test' AND kind = 'command'"
        )
    ).result()
    before = contents_of(story.layout.database)
    selection = Selection(session=story.session_db_id("two"))
    token = story.store.preview_forgetting(selection).token
    story.store.forget(selection, token).result()
    assert [(f.value, f.count) for f in stored(story, "command")] == [("make test", 1)]
    assert all(fact.count == 1 for fact in stored(story))
    story.store.undo_forgetting().result()
    assert contents_of(story.layout.database) == before


def test_a_forgotten_fact_that_comes_back_by_another_turn_is_one_after_undo(story: Story) -> None:
    work(story, "p1", "one")
    selection = Selection(session=story.session_db_id("one"))
    story.store.forget(selection, story.store.preview_forgetting(selection).token).result()
    assert stored(story) == []
    work(story, "p2", "two")
    story.store.undo_forgetting().result()
    assert {fact.count for fact in stored(story)} == {2}


def test_forgetting_one_memory_of_a_turn_takes_its_facts_too_even_pinned(story: Story) -> None:
    work(story)
    story.store.write(lambda c: c.execute("UPDATE facts SET pinned = 1")).result()
    selection = Selection(summaries=(1,))
    story.store.forget(selection, story.store.preview_forgetting(selection).token).result()
    assert stored(story) == []


def test_a_pinned_fact_stays_when_its_turn_no_longer_reveals_it(story: Story) -> None:
    work(story)
    story.store.write(
        lambda c: c.execute("UPDATE facts SET pinned = 1 WHERE kind = 'open'")
    ).result()
    story.tell(stop("Nothing is left.", prompt_id="p1"))
    story.distil()
    assert [fact.count for fact in stored(story, "open")] == [0]


def test_a_prompt_that_turns_out_to_be_private_takes_its_facts(story: Story) -> None:
    of = {"prompt_id": "p1"}
    story.tell(bash("make test", "3 passed", **of), stop("Done.", **of))
    story.distil()
    assert len(stored(story)) == 1
    story.tell(private_prompt(**of))
    assert stored(story) == []


# Export, restore


def exported(story: Story, path: Path) -> Path:
    lines = io.BytesIO()
    story.store.export(lines.write)
    path.write_bytes(lines.getvalue())
    return path


def test_an_export_restores_facts_with_sources_counts_and_links(
    story: Story, tmp_path: Path
) -> None:
    work(story, "p1", "one")
    work(story, "p2", "two")
    propose(story, "p3", ProposedFact("command", "test", "make all"))
    story.store.write(
        lambda c: c.execute(
            "UPDATE facts SET status = 'past', pinned = 1, superseded_by = (SELECT id FROM facts"
            " WHERE value = 'make all') WHERE value = 'make test' AND kind = 'command'"
        )
    ).result()
    file = exported(story, tmp_path / "export.jsonl")
    with Story(tmp_path / "other") as other:
        for _ in range(2):
            report = restore(other.store, file, Redactor())
            assert report.refused == 0
            assert contents_of(other.layout.database) == contents_of(story.layout.database)


def test_a_restored_fact_of_forgotten_turns_does_not_come_back(
    story: Story, tmp_path: Path
) -> None:
    work(story, "p1", "one")
    file = exported(story, tmp_path / "export.jsonl")
    selection = Selection(session=story.session_db_id("one"))
    story.store.forget(selection, story.store.preview_forgetting(selection).token).result()
    restore(story.store, file, Redactor())
    assert story.column("SELECT count(*) FROM facts") == [0]


def test_a_secret_in_an_edited_export_is_redacted_in_facts(story: Story, tmp_path: Path) -> None:
    propose(story, "p1", ProposedFact("place", "registry", "token SECRETHERE"))
    file = exported(story, tmp_path / "export.jsonl")
    secret = "ghp_" + "a1B2c3D4e5" * 4
    file.write_bytes(file.read_bytes().replace(b"SECRETHERE", secret.encode()))
    with Story(tmp_path / "other") as other:
        restore(other.store, file, Redactor())
        (fact,) = stored(other)
        assert secret not in fact.value and fact.value.startswith("token ")


@pytest.mark.parametrize(
    ("column", "bad"), [("kind", '"gossip"'), ("events", '"[null]"'), ("origin", '"agent"')]
)
def test_a_fact_of_an_export_is_checked(
    story: Story, tmp_path: Path, column: str, bad: str
) -> None:
    propose(story, "p1", ProposedFact("rule", "", "Never push.", origin="person"))
    file = exported(story, tmp_path / "export.jsonl")
    good = {"kind": '"rule"', "events": '"[]"', "origin": '"person"'}[column]
    text = file.read_text()
    assert f'"{column}":{good}' in text
    file.write_text(text.replace(f'"{column}":{good}', f'"{column}":{bad}'))
    with Story(tmp_path / "other") as other:
        assert restore(other.store, file, Redactor()).refused
        assert other.column("SELECT count(*) FROM facts") == [0]
