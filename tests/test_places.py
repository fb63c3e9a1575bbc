"""Where things are: what servers, commands, the user and new files tell."""

import pytest

from claude_mem.observer.local.observer import distil
from claude_mem.observer.local.proposed_facts import propose_places
from claude_mem.recall.context import build_context
from claude_mem.types import ProposedFact, Turn
from tests.payloads import PROJECT_DIR, bash, prompt, stop
from tests.story import Story
from tests.turns import turn, use


def told(of: Turn) -> list[tuple[str, str]]:
    return [(fact.subject, fact.value) for fact in propose_places(of)]


def ran(command: str, output: str = "") -> Turn:
    return turn(
        use(1, tool_name="Bash", tool_input={"command": command}, tool_response={"stdout": output})
    )


@pytest.mark.parametrize(
    ("command", "output", "places"),
    [
        ("npm run dev", "  Local:   http://localhost:5173/\n", [("npm run dev", "http://localhost:5173")]),
        ("uvicorn harbor:app &", "Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)",
         [("uvicorn harbor:app", "http://localhost:8000")]),
        ("npm run dev", "web ready on localhost:3000\napi ready on localhost:3001\n", []),
        ("npm run dev", "connection to localhost:5432 refused", []),
        ("cat notes.txt", "the server listens on localhost:9999, running", []),
        ("docker run -d --name db -p 5433:5432 -e A=b postgres:16", "",
         [("postgres", "localhost:5433")]),
        ("docker run -d postgres", "", []),
        ("ssh -p 2222 keeper@lamp.example.org 'uptime'", "",
         [("lamp.example.org", "ssh keeper@lamp.example.org")]),
        ("git log | grep ssh keeper", "", []),
    ],
)  # fmt: skip
def test_what_a_command_tells(command: str, output: str, places: list[tuple[str, str]]) -> None:
    assert told(ran(command, output)) == places


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("The staging API runs at https://staging.harbor.example/api, use it.",
         [("staging api", "https://staging.harbor.example/api")]),
        ("our metrics server listens on port 9101", [("metrics server", "port 9101")]),
        ("the test lamps are in `fixtures/lamps`", [("test lamps", "fixtures/lamps")]),
        ("it runs on localhost:3000", []),
        ("The bug is in src/lamp.py", []),
        ("```\nthe API runs at https://pasted.example/api\n```\nexplain", []),
    ],
)  # fmt: skip
def test_what_the_user_tells(text: str, places: list[tuple[str, str]]) -> None:
    facts = propose_places(turn(prompt=text))
    assert [(fact.subject, fact.value) for fact in facts] == places
    assert all(fact.origin == "person" for fact in facts)


def test_a_new_document_and_a_new_script_are_remembered() -> None:
    def written(path: str, text: str, kind: str = "create") -> Turn:
        params = {"file_path": path, "content": text}
        return turn(use(1, tool_name="Write", tool_input=params, tool_response={"type": kind}))

    guide = f"{PROJECT_DIR}/docs/keeper.md"
    heading = "The keeper's guide"
    assert propose_places(written(guide, f"# {heading}\n\nText")) == (
        ProposedFact("artifact", "document", "docs/keeper.md", note=heading, sources=(1,)),
    )
    script = f"{PROJECT_DIR}/scripts/light.sh"
    assert told(written(script, "#!/bin/sh")) == [("script", "scripts/light.sh")]
    assert told(written(guide, "# The keeper's guide", kind="update")) == []
    assert told(written(f"{PROJECT_DIR}/src/lamp.py", "x = 1")) == []
    assert told(written("/home/dev/.claude/plans/a.md", "# Plan")) == []
    assert told(written("/elsewhere/notes.md", "# Notes")) == []


def test_a_place_is_told_once_with_all_its_events() -> None:
    dev, line = {"command": "npm run dev"}, {"stdout": "Local: http://localhost:5173/"}
    twice = turn(*(use(n, tool_name="Bash", tool_input=dev, tool_response=line) for n in (1, 2)))
    assert [fact.sources for fact in propose_places(twice)] == [(1, 2)]
    assert propose_places(twice)[0] in distil(twice).facts


def test_the_context_has_places_of_the_user_and_those_that_were_met_again(story: Story) -> None:
    texts = "The staging API runs at https://staging.example/api", "Look at the lamp"
    for number, text in enumerate(texts):
        ids = {"session_id": f"s{number}", "prompt_id": f"p{number}"}
        story.tell(
            prompt(text, **ids),
            bash("npm run dev", "ready on localhost:5173", **ids),
            stop("The lamp is dark because `fuse.py` is bent.", **ids),
        )
        story.distil()
        context = build_context(story.store, story.store.find_project(PROJECT_DIR), 1_000)
        assert "staging api: https://staging.example/api" in context
        assert ("npm run dev: http://localhost:5173" in context) == (number == 1)
