"""Real code, and the events of sessions that work on it; the same in every run.

The code is Python's standard library: available everywhere, and it has `<` and the word "private".
"""

import random
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.payloads import Payload, edit, prompt, read, stop, tool

_SOURCES = ("html/parser.py", "http/server.py", "argparse.py", "difflib.py", "logging/__init__.py")
TURN = 20  # events of a turn: its prompt, 18 tools, its Stop
TOOLS = {"Read": 40, "Bash": 35, "Edit": 25}  # of a hundred
LARGE, LARGE_SHARE = 12_000, 0.1


@cache
def _corpus() -> str:
    library = Path(sysconfig.get_paths()["stdlib"])
    return "\n".join((library / name).read_text("utf-8") for name in _SOURCES)


def code(size: int, number: int = 0) -> str:
    """That many characters of code, different for each number."""
    start = number * 7919 % (len(_corpus()) - size)
    return _corpus()[start : start + size]


def reading(content: str, **changes: str) -> Payload:
    path = "/home/dev/harbor/src/light.py"
    file = {"filePath": path, "content": content, "numLines": 90, "startLine": 1, "totalLines": 90}
    return read(path, tool_response={"type": "text", "file": file}, **changes)


def traffic(sessions: int, turns: int) -> Iterator[Payload]:
    """The events of concurrent sessions."""
    rng = random.Random(1)
    for turn in range(turns):
        for step in range(TURN):
            for session in range(sessions):
                ids = {"session_id": f"session-{session}", "prompt_id": f"{session}-{turn}"}
                yield _event(rng, step, ids)


def _event(rng: random.Random, step: int, ids: dict[str, str]) -> Payload:
    number = rng.randrange(10_000)
    if step == 0:
        return prompt(f"Have a look at case {number}: {code(200, number)}", **ids)
    if step == TURN - 1:
        return stop(f"Case {number} is done. {code(800, number)}", **ids)
    kind = rng.choices(list(TOOLS), list(TOOLS.values()))[0]
    if kind == "Read":
        return reading(code(_size(rng, 2_500), number), **ids)
    if kind == "Bash":
        output = code(_size(rng, 1_000), number)
        return tool(tool_response={"stdout": output, "stderr": "", "interrupted": False}, **ids)
    path = f"/home/dev/harbor/src/part_{number % 300}.py"
    payload = edit(path, code(150, number), code(200, number + 1), **ids)
    payload["tool_response"]["originalFile"] = code(_size(rng, 2_500), number)
    return payload


def _size(rng: random.Random, usual: int) -> int:
    return LARGE if rng.random() < LARGE_SHARE else int(usual * rng.uniform(0.5, 1.5))
