"""When a newer command is the same step of work as an older one, or replaces its tool.

A project has several commands of a purpose (unit and end-to-end tests, a linter and a type
checker), so two that differ in what they run on, or in the job of their tool, both stay.
"""

import re
from functools import lru_cache

from claude_mem.store.fact_comparison.comparison_words import QUALIFIERS

_WRAPPERS = (("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("npx",),
             ("bunx",), ("python", "-m"), ("python3", "-m"), ("bundle", "exec"),
             ("bash",), ("sh",))  # fmt: skip
_PREFIXES = tuple(tuple(word for word in wrapper if word != "run") for wrapper in _WRAPPERS)
_NODE_RUNNERS = ("npm", "pnpm", "yarn", "bun")
_RUNNERS = (
    frozenset((*_NODE_RUNNERS, "npx", "bunx")),
    frozenset(("make", "just", "task", "rake", "invoke", "nox", "tox")),
)
# Tools of one job in one language: a project has one of them.
_JOBS = {
    "Python tests": "pytest unittest nose2",
    "Node tests": "jest vitest mocha jasmine ava",
    "Ruby tests": "rspec minitest",
    "Python lint": "flake8 pylint ruff",
    "Python format": "black yapf autopep8",
    "Python types": "mypy pyright basedpyright pyre",
    "Node lint": "eslint tslint oxlint biome",
    "Node format": "prettier dprint",
    "Node build": "webpack vite rollup esbuild parcel rspack tsup",
}
_JOB_OF = {tool: job for job, tools in _JOBS.items() for tool in tools.split()}
_JOBS_OF_STEPS = {
    "ruff format": ("Python format",),
    "biome format": ("Node format",),
    "biome check": ("Node lint", "Node format"),
}
_VERBS = frozenset(("run", "build", "check", "format", "lint"))  # of such a tool, no operand
# A command with one of these does other work than without it.
_CHANGES_WORK = frozenset(
    ("fix", "write", "watch", "w", "coverage", "cov", "debug", "release", "dry-run", "list",
     "bench", "u", "update", "lf", "last-failed", "changed", "collect-only", "short",
     "doc", "lib", "ignored", *QUALIFIERS)
)  # fmt: skip
_SETTING = re.compile(r"\d+%?|auto")  # as in `-n auto`
_JOINED = re.compile(r"&&|;|\|\|?")


def is_replaced_by(purpose: str, older: str, newer: str) -> bool:
    """Whether two commands of one purpose are one step, of which the newer is how it is done."""
    old, new = _bare(older), _bare(newer)
    if not old or not new:
        return False
    if old == new:
        return True  # with another wrapper
    if old[1:] == new[1:] and any({old[0], new[0]} <= runners for runners in _RUNNERS):
        return True
    return _is_same_with_options(purpose, old, new) or _is_other_tool(older, newer)


@lru_cache(maxsize=512)  # a command is compared with each of the same purpose
def _bare(command: str) -> tuple[str, ...]:
    command = command.replace("docker-compose ", "docker compose ")  # its first version
    words = tuple(word.removeprefix("./") for word in command.split() if word != "run")
    for prefix in _PREFIXES:
        if words[: len(prefix)] == prefix and len(words) > len(prefix):
            return words[len(prefix) :]
    return words


def _is_same_with_options(purpose: str, old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    changed = {_name(word) for word in {*old} ^ {*new} if word.startswith("-")}
    # A program that is run or tested is the same one when it is built with optimizations.
    distinct = _CHANGES_WORK - {"release"} if purpose in ("run", "test") else _CHANGES_WORK
    return _operands(old) == _operands(new) and changed.isdisjoint(distinct)


def _name(option: str) -> str:
    return option.lstrip("-").partition("=")[0]


def _operands(words: tuple[str, ...]) -> list[str]:
    """An option's value is one, as it may select what to run on; numbers do not."""
    values = (word.rpartition("=")[2] if word.startswith("-") else word for word in words)
    return [
        value for value in values if not value.startswith("-") and not _SETTING.fullmatch(value)
    ]


def _is_other_tool(older: str, newer: str) -> bool:
    old, new = _jobs(older), _jobs(newer)
    return bool(old) and old <= new


@lru_cache(maxsize=512)
def _jobs(command: str) -> frozenset[tuple[str, tuple[str, ...]]]:
    """The jobs of all steps and what they are done on; none if a step is of no known tool."""
    steps = [_jobs_of_step(_bare(step)) for step in _JOINED.split(command)]
    return frozenset().union(*steps) if all(steps) else frozenset()


def _jobs_of_step(words: tuple[str, ...]) -> set[tuple[str, tuple[str, ...]]]:
    if words and words[0] in _NODE_RUNNERS:
        words = words[1:]
        if words == ("test",):
            return {("Node tests", ())}
    if not words or words[0] not in _JOB_OF:
        return set()
    if any(_name(word) in _CHANGES_WORK for word in words[1:] if word.startswith("-")):
        return set()
    operands = tuple(word for word in _operands(words[1:]) if word not in _VERBS)
    jobs = _JOBS_OF_STEPS.get(" ".join(words[:2]), (_JOB_OF[words[0]],))
    return {(job, operands) for job in jobs}
