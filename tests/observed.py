"""Drafts and the models that revise them, against a scripted API on loopback.

Everything goes the way it goes in the worker: events into the store, jobs that store drafts, and
the refiner that asks a model.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from claude_mem.config import Layout, load_settings, record_consent
from claude_mem.observer.models.active_observer import address_of
from claude_mem.observer.models.apis import AnthropicModel, OpenAIModel
from claude_mem.observer.models.claude import ClaudeModel, ClaudeOptions
from claude_mem.observer.models.claude_files import ClaudeFiles
from claude_mem.observer.models.model import Model
from claude_mem.store import memories, turns
from claude_mem.store.spending import Caps
from claude_mem.types import Distillate, Json, Turn
from claude_mem.worker.distil_jobs import JobRunner
from claude_mem.worker.refiner import Policy, Refiner
from tests.conftest import Home
from tests.fake_api import Body, FakeApi, Reply, mentions
from tests.live_files import paths_below
from tests.payloads import Payload, edit, prompt, stop, tool
from tests.real_client import bundled_client
from tests.rows import CommittedRows
from tests.story import DAY, Story

T = TypeVar("T")
KINDS = ["anthropic", "openai", "claude"]
MODEL = "claude-haiku-4-5"
TOPIC = re.compile(r"topic-\w+")
for_observer = mentions("You keep the memory of a coding agent")


def answer(title: str, more: str = "") -> str:
    return (
        f"<observation><type>feature</type><title>{title}</title><narrative>Revised by the model."
        f"</narrative>{more}</observation><summary><request>{title}</request>"
        "<completed>Revised</completed></summary>"
    )


def says(text: str, **options: Any) -> Reply:
    return Reply(text, when=for_observer, **options)


def by_topic(body: Body) -> Reply:
    """Names what the turn in the last message is about."""
    text = last_message(body).rpartition("The turn:")[2]
    return Reply(answer(f"About {(TOPIC.findall(text) or ['nothing'])[0]}"))


def last_message(body: Body) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else " ".join(part["text"] for part in content)


def client_environment(api: FakeApi, home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "ANTHROPIC_API_KEY": "test-key",
        "ANTHROPIC_BASE_URL": api.url,
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def make_model(kind: str, api: FakeApi, directory: Path, **options: Any) -> Model:
    seconds = options.pop("seconds", 60.0)
    if kind == "anthropic":
        return AnthropicModel(api.url, MODEL, "secret-key", seconds)
    if kind == "openai":
        return OpenAIModel(f"{api.url}/v1", MODEL, "secret-key", seconds)
    return ClaudeModel(
        ClaudeOptions(
            command=str(bundled_client()),
            files=claude_files(directory),
            model=MODEL,
            seconds=seconds,
            environment=client_environment(api, directory / "client"),
            **options,
        )
    )


def claude_files(directory: Path) -> ClaudeFiles:
    return ClaudeFiles(directory / "observer", directory / "client" / ".claude")


def policy(**changes: Any) -> Policy:
    values: dict[str, Any] = {"caps": Caps(1000, 10_000_000), "backoff": lambda failures: 1000}
    return Policy(**{**values, **changes})


TURN = [prompt(), tool(), edit(), stop("The light blinks twice now, since topic-one.")]
LATER_EVENTS = [
    edit("/srv/late.py"),
    stop("The cause was a relay in late.py that stuck when it was cold."),
]


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not happened():
            await asyncio.sleep(0.005)


class Observed(CommittedRows):
    """A story whose drafts a model revises."""

    def __init__(self, story: Story, api: FakeApi, kind: str) -> None:
        self.story, self.api, self.kind = story, api, kind
        self.policy = policy()
        self.options: dict[str, Any] = {}
        self.announced: list[dict[str, Json]] = []  # by refinements

    @property
    def layout(self) -> Layout:
        return self.story.layout

    @property
    def directory(self) -> Path:
        return self.layout.root

    def model(self) -> Model:
        return make_model(self.kind, self.api, self.directory, **self.options)

    def tell(self, *payloads: Payload) -> None:
        """And have them drafted."""
        self.story.tell(*payloads)
        self.draft()

    def draft(self) -> None:
        story = self.story
        runner = JobRunner(story.layout, story.store, story.announcer, story.contexts)
        runner.queues_refinements = True
        asyncio.run(runner.run_due())

    def refine(self) -> None:
        """What is due, once."""
        self.with_refiner(lambda refiner: refiner.run_due())

    def refine_all(self) -> None:
        """Day after day, until nothing waits."""
        for _ in range(12):
            self.refine()
            if not self.waiting():
                return
            self.story.now += DAY
        raise AssertionError(f"still waiting: {self.rows('SELECT * FROM refinements')}")

    def with_refiner(self, work: Callable[[Refiner], Awaitable[T]]) -> T:
        async def run() -> T:
            story = self.story
            refiner = Refiner(story.layout, story.store, lambda: story.now, story.announcer,
                              story.contexts, story.reader, claude_files(self.directory),
                              lambda: None)  # fmt: skip
            with story.announcer.live_events.subscribe() as subscription:
                try:
                    await refiner.use(self.model(), self.policy)
                    return await work(refiner)
                finally:
                    await refiner.close()
                    await asyncio.sleep(0)  # a listener is told in the next round of the loop
                    self.announced += subscription.take_all()

        return asyncio.run(run())

    def memory(self, turn_id: int = 1) -> tuple[Turn, Distillate]:
        return stored_memory(self.story, turn_id)

    def waiting(self) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM refinements WHERE status IN ('pending', 'processing')")

    def kept(self) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM refinements WHERE status = 'kept'")

    def titles(self) -> list[str]:
        rows = self.rows("SELECT title FROM observations ORDER BY turn_id, ordinal")
        return [str(row["title"]) for row in rows]

    def observers(self) -> list[str]:
        rows = self.rows("SELECT observer FROM session_summaries ORDER BY turn_id")
        return [str(row["observer"]) for row in rows]

    def asked(self) -> int:
        return len([body for body in self.api.requests if for_observer(body)])


def draft_sessions(observed: Observed, *names: str) -> None:
    """A session of each name, with one drafted turn about the topic of that name."""
    for name in names:
        observed.tell(prompt(f"Work on topic-{name}", session_id=name),
                      stop(f"topic-{name} is done.", session_id=name))  # fmt: skip


def stored_memory(story: Story, turn_id: int = 1) -> tuple[Turn, Distillate]:
    """A turn and its memories as the store has them."""
    turn = story.store.read(lambda connection: turns.load_turn(connection, turn_id))
    distillate = story.store.read(lambda connection: memories.load_distillate(connection, turn_id))
    assert turn is not None and distillate is not None
    return turn, distillate


def client_pids(directory: Path) -> list[int]:
    pids = []
    for path in paths_below(directory, "client-*.pid"):
        with contextlib.suppress(OSError, ValueError):
            pids.append(int(path.read_bytes()))
    return pids


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in ("Z", "X")


def children() -> list[str]:
    """Commands of the clients that this process still runs, by the path of the client."""
    client = str(bundled_client())
    commands = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except (OSError, ValueError):
            continue
        if parent == os.getpid() and client in words and is_alive(int(entry.name)):
            commands.append(" ".join(words))
    return commands


def use(home: Home, api: FakeApi, kind: str) -> None:
    """This observer, agreed to, against the fake API."""
    home.environment["CLAUDE_MEM_OBSERVER"] = kind
    if kind == "claude":
        home.environment["CLAUDE_CODE_PATH"] = str(wrapped_client(home, api))
    else:
        home.environment["CLAUDE_MEM_API_URL"] = api.url + ("/v1" if kind == "openai" else "")
        home.environment["CLAUDE_MEM_API_KEY"] = "sk-never-to-be-seen"
        home.environment["CLAUDE_MEM_MODEL"] = "some-model"
    settings = load_settings(home.env())
    record_consent(home.layout, kind, address_of(settings))


def wrapped_client(home: Home, api: FakeApi) -> Path:
    """The worker's environment holds no key: here the command brings it along."""
    path = home.path / "claude"
    environment = client_environment(api, home.path)
    exports = "".join(f"export {name}='{value}'\n" for name, value in environment.items())
    path.write_text(f'#!/bin/sh\n{exports}exec "{bundled_client()}" "$@"\n')
    path.chmod(0o700)
    return path
