"""Memory files of the clients: searchable, current, never written, whatever lies in their place."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.config.pausing import pause
from claude_mem.intake import client_memory_files
from claude_mem.intake.client_memory_files import claude_directory, read_client_memory
from claude_mem.recall.hints import Prompt, find_hint
from tests.api import Api, open_api
from tests.payloads import PROJECT_DIR, session_start
from tests.story import transactions_of

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
OIL = "---\nname: oil\ndescription: Where the lamp oil is kept\n---\nThe oil is in the north store."


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture
def api(tmp_path: Path, home: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data", HOME=str(home)) as opened:
        yield opened


def memory_dir(home: Path) -> Path:
    directory = claude_directory(home / ".claude", PROJECT_DIR)
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def found(api: Api, query: str) -> list[str]:
    return [row["title"] for row in api.get_json("/api/search", query=query)["results"]]


def start(api: Api) -> str:
    answer = api.start_session(session_start())
    assert answer.status_code == 200
    return str(answer.json().get("hookSpecificOutput", {}).get("additionalContext", ""))


def test_a_memory_file_is_found_in_its_project_and_not_given_in_contexts(
    api: Api, home: Path
) -> None:
    (memory_dir(home) / "oil.md").write_text(OIL)
    start(api)
    assert found(api, "north store") == ["oil.md: Where the lamp oil is kept"]
    row = api.get_json("/api/search", query="north store", project="harbor")["results"][0]
    assert row["file"].endswith("memory/oil.md")
    api.add_sessions(1)
    context = start(api)
    assert context and "oil" not in context
    question = "What did we say about the oil, in which store is the lamp oil of the north kept?"
    assert find_hint(api.worker.store, Prompt(question, 1), api.worker.semantic_index) is None


def test_it_follows_its_file(api: Api, home: Path) -> None:
    file = memory_dir(home) / "oil.md"
    file.write_text(OIL)
    start(api)
    ids = api.column("SELECT id FROM observations")
    file.write_text("# Oil\nThe oil moved to the cellar.")
    start(api)
    assert found(api, "oil cellar") == ["oil.md: Oil"]
    assert found(api, "north store") == []
    assert api.column("SELECT id FROM observations") == ids
    with transactions_of(api.worker.store) as begun:
        start(api)
    assert len(begun) == 1  # of the event itself: nothing has changed
    file.unlink()
    start(api)
    assert found(api, "oil cellar") == []


def test_files_are_never_written(api: Api, home: Path) -> None:
    directory = memory_dir(home)
    (directory / "oil.md").write_text(OIL)
    (directory / "oil.md").chmod(0o400)
    directory.chmod(0o500)
    before = (directory / "oil.md").stat()
    start(api)
    after = (directory / "oil.md").stat()
    assert (before.st_mtime_ns, before.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns)
    assert [path.name for path in directory.iterdir()] == ["oil.md"]


def test_memories_of_codex_are_a_project_of_their_own(api: Api, home: Path) -> None:
    directory = home / ".codex" / "memories"
    directory.mkdir(parents=True)
    (directory / "MEMORY.md").write_text("# Crane\nThe crane lifts nine tons.")
    start(api)
    row = api.get_json("/api/search", query="crane tons")["results"][0]
    assert (row["title"], row["project"]) == ("MEMORY.md: Crane", "codex memories")
    assert api.get_json("/api/search", query="crane tons", project=PROJECT_DIR)["results"] == []


def test_secrets_and_private_text_are_removed(api: Api, home: Path) -> None:
    (memory_dir(home) / "a.md").write_text(f"Key {SECRET} <private>birthday</private> lantern")
    start(api)
    assert found(api, "lantern") == ["a.md"]
    content = api.bytes_on_disk()
    assert SECRET.encode() not in content and b"birthday" not in content


def test_what_was_forgotten_or_edited_stays_so(api: Api, home: Path) -> None:
    for name in ("a", "b"):
        (memory_dir(home) / f"{name}.md").write_text(f"# {name}\nThe lantern of {name} is red.")
    start(api)
    first, second = api.column("SELECT id FROM observations ORDER BY title")
    preview = api.post_json("/api/forget", ids=[first])
    api.post_json("/api/forget", ids=[first], confirm=preview["confirm"])
    edited = api.request("PATCH", f"/api/memories/{second}", json={"narrative": "It is green."})
    assert edited.status_code == 200
    for name in ("a", "b"):
        (memory_dir(home) / f"{name}.md").write_text("The lantern is blue.")
    start(api)
    assert api.column("SELECT narrative FROM observations") == ["It is green."]


def test_nothing_is_read_while_paused_excluded_or_switched_off(tmp_path: Path, home: Path) -> None:
    (memory_dir(home) / "oil.md").write_text(OIL)
    with open_api(tmp_path / "data", HOME=str(home)) as api:
        pause(api.layout, None)
        start(api)
        assert found(api, "north store") == []
    for name, value in (("CLIENT_MEMORY", "no"), ("EXCLUDED_PROJECTS", PROJECT_DIR)):
        environ = {"HOME": str(home), f"CLAUDE_MEM_{name}": value}
        with open_api(tmp_path / name, **environ) as api:
            start(api)
            assert found(api, "north store") == []


def test_what_the_index_of_the_client_says_is_not_repeated(api: Api, home: Path) -> None:
    api.add_turn("s", "Fix the lamp. Never push to the main branch on Fridays.", "Done.")
    assert "on Fridays" in start(api)
    (memory_dir(home) / "MEMORY.md").write_text("- Never push to the main branch on Fridays.\n")
    assert '"Never push to the main branch' not in start(api)


def test_only_small_regular_text_files_are_read(home: Path, tmp_path: Path) -> None:
    directory = memory_dir(home)
    (directory / "good.md").write_text("good")
    os.mkfifo(directory / "fifo.md")
    (directory / "folder.md").mkdir()
    (directory / "huge.md").write_bytes(b"x" * (client_memory_files.LARGEST_FILE + 1))
    (directory / "binary.md").write_bytes(b"\x7fELF\x00\x00")
    (directory / "latin.md").write_bytes(b"caf\xe9")
    (directory / "empty.md").write_bytes(b" \n")
    (directory / "program.py").write_text("import os")
    (directory / ".hidden.md").write_text("hidden")
    (tmp_path / "outside.md").write_text("outside")
    (directory / "link.md").symlink_to(tmp_path / "outside.md")
    (directory / "device.md").symlink_to("/dev/zero")
    (directory / "dangling.md").symlink_to(tmp_path / "nowhere")
    assert [file.text for file in read_client_memory(directory)] == ["good"]


def test_a_directory_that_is_a_link_a_file_or_missing_is_empty(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("outside")
    (home / "link").symlink_to(outside)
    (home / "file").write_text("x")
    os.mkfifo(home / "fifo")
    for name in ("link", "file", "fifo", "missing", "nul\0"):
        assert read_client_memory(home / name) == []


def test_no_more_is_read_than_fits(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = memory_dir(home)
    for number in range(5):
        (directory / f"{number}.md").write_text("x" * 100)
    monkeypatch.setattr(client_memory_files, "MAX_FILES", 3)
    assert len(read_client_memory(directory)) == 3
    monkeypatch.setattr(client_memory_files, "MAX_BYTES", 250)
    assert len(read_client_memory(directory)) == 2


def test_a_memory_file_with_words_that_the_agent_read_is_marked(api: Api, home: Path) -> None:
    read = "The oil is in the north store behind the green ladder."
    (memory_dir(home) / "own.md").write_text("The wick hangs in the south store near the door.")
    about = {"contentSessionId": "s", "project_dir": PROJECT_DIR}
    api.post_json("/api/sessions/init", prompt="Where is the oil?", **about)
    api.post_json(
        "/api/sessions/observations",
        tool_name="WebFetch",
        tool_input={"url": "https://a.example"},
        tool_response={"result": read},
        **about,
    )
    (memory_dir(home) / "oil.md").write_text(f"Note: {read}")
    start(api)
    rows = api.get("/api/search", query="store ladder door", format="text").text.splitlines()
    marks = {name: ", outside" in row for row in rows for name in ("oil.md", "own.md")
             if name in row and row.startswith("#")}  # fmt: skip
    assert marks == {"oil.md": True, "own.md": False}
