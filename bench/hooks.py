"""The time that a hook takes, compared with the smallest process that this Python can start.

Every command is started the same way; the payload of a tool has 12 KB. A prompt is looked up in
10,000 turns; on a machine that is too busy to answer in time, the hook stops waiting.
"""

import shlex
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from tests.payloads import Payload, as_bytes, prompt, session_start

from bench.home import FinishedProcess, Home, spawn, temporary_home
from bench.material import code, reading
from bench.measure import Figure, in_turns, median, p90, run, table
from bench.memories import fill
from bench.turns import fill_turns, shared_pool
from claude_mem.store import Store
from claude_mem.worker.contexts import Contexts
from claude_mem.worker.lock import is_held

ROUNDS = 60
OBSERVATIONS = 400
BASELINE, IN_SHELL = "python -I -S -c pass", "the same, run by sh"
TOOL_WARM, TOOL_COLD = "PostToolUse, worker up", "PostToolUse, no worker"
START_WARM, START_COLD = "SessionStart, worker up", "SessionStart, no worker"
PROMPT_WARM, PROMPT_COLD = "UserPromptSubmit, hint", "UserPromptSubmit, no worker"
TARGETS = {
    TOOL_WARM: 1.6,
    TOOL_COLD: 3.0,
    START_WARM: 3.0,
    START_COLD: 3.0,
    PROMPT_WARM: 3.0,
    PROMPT_COLD: 3.0,
}
TURNS = 10_000
WARM_UP_ROUNDS = 50

_PYTHON = [sys.executable, "-I", "-S", "-c", "pass"]
_SHELL = ["/bin/sh", "-c", f"{shlex.join(_PYTHON)} 2>/dev/null && exit 0"]


def timings_of(rounds: int) -> dict[str, list[float]]:
    """Returns the timings of each command, in seconds."""
    with _cases() as cases:
        return in_turns(cases, rounds)


def measure() -> list[Figure]:
    timings = timings_of(ROUNDS)
    base = timings[BASELINE]
    ratios = {name: median(seconds) / median(base) for name, seconds in timings.items()}
    print(f"  {ROUNDS} rounds in turns; ratios to the first line")
    table(
        ("command", "median ms", "median ratio", "p90 ratio"),
        [
            (
                name,
                f"{median(seconds) * 1000:.2f}",
                f"{ratios[name]:.2f}x",
                f"{p90(seconds) / p90(base):.2f}x",
            )
            for name, seconds in timings.items()
        ],
    )
    return [Figure(name, ratios[name], target=target) for name, target in TARGETS.items()]


@contextmanager
def _cases() -> Iterator[dict[str, Callable[[], float]]]:
    """Each hook has its own home, so that none does the work of another."""
    with ExitStack() as homes:
        home = {name: homes.enter_context(temporary_home()) for name in TARGETS}
        for name in (START_WARM, START_COLD):
            _add_memories(home[name])
        questions = _add_turns(home[PROMPT_WARM])
        for name in (TOOL_WARM, START_WARM, PROMPT_WARM):
            home[name].hook(_tool())
            home[name].worker_pid()
        _warm_up(home[PROMPT_WARM], questions)
        environment = home[TOOL_WARM].environment
        yield {
            BASELINE: lambda: spawn(_PYTHON, as_bytes(_tool()), environment).seconds,
            IN_SHELL: lambda: spawn(_SHELL, as_bytes(_tool()), environment).seconds,
            TOOL_WARM: lambda: _with_worker(home[TOOL_WARM], _tool()).seconds,
            TOOL_COLD: lambda: _without_worker(home[TOOL_COLD], _tool()).seconds,
            START_WARM: lambda: _with_context(_with_worker(home[START_WARM], _start())),
            START_COLD: lambda: _with_context(_without_worker(home[START_COLD], _start())),
            PROMPT_WARM: lambda: _with_worker(home[PROMPT_WARM], _prompt(next(questions))).seconds,
            PROMPT_COLD: lambda: (
                _without_worker(home[PROMPT_COLD], _prompt(next(questions))).seconds
            ),
        }


def _with_worker(home: Home, payload: Payload) -> FinishedProcess:
    ended = home.hook(payload)
    home.wait_until_quiet()
    return ended


def _without_worker(home: Home, payload: Payload) -> FinishedProcess:
    """The worker that the hook starts finishes its work and is then killed."""
    assert not is_held(home.layout)
    ended = home.hook(payload)
    home.worker_pid()
    home.wait_until_quiet()
    home.kill_worker()
    return ended


def _with_context(ended: FinishedProcess) -> float:
    if b'"additionalContext"' not in ended.output:
        raise RuntimeError(f"the hook printed no context: {ended.output[:200]!r}")
    return ended.seconds


def _tool() -> Payload:
    content = code(12_000)
    assert "<" in content
    return reading(content)


def _start() -> Payload:
    return session_start(session_id=str(uuid.uuid4()))


def _prompt(question: str) -> Payload:
    return prompt(question, session_id=str(uuid.uuid4()))


def _add_turns(home: Home) -> Iterator[str]:
    """Returns prompts that each have half of the words of a passage."""
    pool = shared_pool()
    with Store.open(home.layout.database, home.layout.backups) as store:
        fill_turns(store, pool, home.project_dir, TURNS)
    return (
        f"Why does the {' '.join(passage.text.rstrip('.').split()[::2])} not work?"
        for passage in pool.passages
    )


def _warm_up(home: Home, questions: Iterator[str]) -> None:
    """Waits until a hint comes in time: none does before the model and the vectors are loaded."""
    for _ in range(WARM_UP_ROUNDS):
        if b'"additionalContext"' in _with_worker(home, _prompt(next(questions))).output:
            return
    raise RuntimeError("no prompt was given a hint")


def _add_memories(home: Home) -> None:
    layout, settings = home.layout, home.settings
    with Store.open(layout.database, layout.backups) as store:
        project = fill(layout.database, home.project_dir, home.project_dir, OBSERVATIONS)
        Contexts(layout, store, "", settings.context.tokens).render(project)


if __name__ == "__main__":
    sys.exit(run({"hooks": measure}))
