"""The documents match the code, and their links work."""

import re
import tomllib
from dataclasses import fields
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from claude_mem.config import SETTINGS, Layout, RecordSettings, RetentionSettings, Setting
from claude_mem.intake import rejected_events
from claude_mem.parameter_table import OPERATIONS
from claude_mem.server.app import public_routes
from claude_mem.store import given_hints
from claude_mem.store.refinements import REPLY_BYTES
from claude_mem.worker import contexts
from tests.api import open_api

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*(\S+)", re.M)
CODE_BLOCK = re.compile(r"^```.*?^```", re.M | re.S)
OUTSIDE = ("https://", "http://", "mailto:")


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def rows_under(name: str, *heads: str) -> list[list[str]]:
    """The rows of all tables of a document whose heads begin with these, without marks of code."""
    rows: list[list[str]] = []
    inside = False
    for line in text_of(name).splitlines():
        cells = [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif tuple(cells[: len(heads)]) == heads:
            inside = True
        elif inside and not line.startswith("|--"):
            rows.append(cells)
    return rows


def anchors(text: str) -> set[str]:
    """The places in a document that a link can name."""
    headings = re.findall(r"^#+\s+(.+?)\s*$", CODE_BLOCK.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


def test_the_settings_page_is_the_table_of_settings() -> None:
    rows = rows_under("docs/settings.md", "setting", "default", "meaning")
    assert rows == [[s.name, s.default_text or "empty", s.help] for s in SETTINGS]


def test_the_api_page_describes_the_parameters_of_a_search_as_the_table_does() -> None:
    parameters = {p.name: p for name in ("timeline", "search") for p in OPERATIONS[name]}
    rows = rows_under("docs/api.md", "parameter", "meaning")
    assert {row[0]: row[1] for row in rows} == {
        name: parameter.meaning.replace("`", "")
        for name, parameter in parameters.items()
        if name not in ("anchor", "query")  # the tables of routes describe them
    }


def test_the_settings_page_says_which_value_wins_and_the_command() -> None:
    text = text_of("docs/settings.md")
    assert text.index("environment") < text.index("settings.json") < text.index("this table")
    assert "`claude-mem settings`" in text


def test_the_retention_page_names_every_limit_with_its_default(tmp_path: Path) -> None:
    rows = rows_under("docs/retention.md", "what", "where")
    kinds = (RetentionSettings, RecordSettings)
    limits = [field.metadata[Setting] for kind in kinds for field in fields(kind)]
    named = {name for row in rows for name in row[3].split(", ") if name}
    assert named == {setting.name for setting in limits}
    defaults = " ".join(row[2] for row in rows)
    for setting in limits:
        texts = [row[2] for row in rows if setting.name in row[3].split(", ")]
        assert any(re.search(rf"\b{setting.default_text}\b", text) for text in texts), setting.name
    assert f"{rejected_events.MAX_FILES} files" in defaults
    assert f"the last {contexts.MAX_FILES} directories" in defaults
    assert f"at most {REPLY_BYTES // 1024**2} MB" in defaults
    assert (
        f"{given_hints.KEEP_MS // 86_400_000} days, at most {given_hints.KEEP_ROWS:,} lines"
        in defaults
    )
    layout = Layout(tmp_path / "data")
    layout.create()
    places = {row[1].strip("/") for row in rows}
    directories = {str(d.relative_to(layout.root)) for d in layout.root.rglob("*") if d.is_dir()}
    assert directories <= places


def test_the_api_page_names_every_route_and_no_other() -> None:
    routes = sorted(
        (method, route.path)
        for route in public_routes
        for method in (route.methods or set()) - {"HEAD"}
    )
    rows = rows_under("docs/api.md", "method", "path")
    assert sorted((row[0], row[1]) for row in rows) == routes


def stored_events(directory: Path, action: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events in the database after this request, without times."""
    with open_api(directory) as api:
        for prompt in ("first", "second"):
            api.post_json("/api/sessions/init", contentSessionId="numbered", prompt=prompt)
        api.post_json(f"/api/sessions/{action}", **body)
        return api.rows(
            "SELECT s.content_session_id, s.project_dir, p.name, t.prompt_id, t.prompt_text,"
            " e.tool_name, e.tool_input, e.tool_response, e.text FROM tool_events e"
            " JOIN sdk_sessions s ON s.id = e.session_id JOIN projects p ON p.id = s.project_id"
            " LEFT JOIN user_prompts t ON t.id = e.turn_id ORDER BY e.id"
        )


FIELDS: dict[str, tuple[str, dict[str, Any]]] = {
    "contentSessionId": ("init", {"contentSessionId": "s", "prompt": "x"}),
    "prompt": ("init", {"contentSessionId": "s", "prompt": "x"}),
    "tool_name": ("observations", {"contentSessionId": "s", "tool_name": "Bash"}),
    "tool_input": ("observations", {"contentSessionId": "s", "tool_name": "B", "tool_input": 1}),
    "tool_response": (
        "observations",
        {"contentSessionId": "s", "tool_name": "Bash", "tool_response": 1},
    ),
    "last_assistant_message": (
        "summarize",
        {"contentSessionId": "s", "last_assistant_message": "x"},
    ),
    "last_user_message": ("summarize", {"contentSessionId": "s", "last_user_message": "x"}),
    "project_dir": ("init", {"contentSessionId": "s", "prompt": "x", "project_dir": "/harbor"}),
    "prompt_id": ("init", {"contentSessionId": "s", "prompt": "x", "prompt_id": "p"}),
    "prompt_number": ("summarize", {"contentSessionId": "numbered", "prompt_number": 1}),
}


@pytest.mark.parametrize(
    ("field", "name"),
    [
        (row[0], name)
        for row in rows_under("docs/api.md", "field", "other names")
        for name in row[1].split(", ")
        if name
    ],
)
def test_the_other_names_of_a_field_on_the_api_page_mean_the_same(
    tmp_path: Path, field: str, name: str
) -> None:
    action, body = FIELDS[field]
    renamed = {name if key == field else key: value for key, value in body.items()}
    assert stored_events(tmp_path / "first", action, body) == stored_events(
        tmp_path / "other", action, renamed
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", CODE_BLOCK.sub("", document.read_text("utf-8")))
    for inline, reference in LINK.findall(text):
        link = inline or reference
        if link.startswith(OUTSIDE):
            continue
        name, _, place = link.partition("#")
        target = document.parent / name if name else document
        assert target.exists(), link
        assert not place or place in anchors(target.read_text("utf-8")), link


def test_the_readme_names_the_commands_to_try_it_and_to_test_it() -> None:
    text = text_of("README.md")
    assert "make demo" in text
    assert "make test" in text


def test_the_text_of_the_readme_has_the_figures_of_the_benchmarks() -> None:
    hooks = rows_under("docs/benchmarks.md", "hook", "ours, ms")
    searches = rows_under("docs/benchmarks.md", "memory", "ours, MB")
    idle = rows_under("docs/benchmarks.md", "", "ours, MB")
    rows = {row[0]: row for row in (*hooks, *searches, *idle)}

    def figure(name: str, column: int) -> int:
        return round(float(rows[name][column]))

    text = " ".join(text_of("README.md").split())
    after = "private memory after 400 searches"
    assert f"hook, {figure('PostToolUse, worker running', 4)} ms CPU" in text
    assert f"{figure('private memory when idle', 1)} MB of private memory when idle" in text
    assert f"{figure(f'{after}, 1,000', 2)} MB with 1,000 observations" in text
    assert f"{figure(f'{after}, 10,000', 2)} MB with 10,000." in text


def test_every_module_that_the_architecture_page_names_exists() -> None:
    names = re.findall(r"`([\w/]+\.py)`", text_of("ARCHITECTURE.md"))
    roots = (ROOT, ROOT / "src" / "claude_mem")
    missing = {name for name in names if not any((root / name).is_file() for root in roots)}
    assert len(names) > 30 and not missing


def test_every_function_on_the_path_of_a_memory_exists() -> None:
    rows = rows_under("ARCHITECTURE.md", "", "in", "function")
    assert len(rows) > 10
    for _, module, function in rows:
        names = module.removesuffix(".py").replace("/", ".")
        assert callable(attrgetter(function)(import_module(f"claude_mem.{names}")))


def test_the_architecture_page_shows_every_package_in_its_map() -> None:
    packages = ROOT / "src" / "claude_mem"
    shown = text_of("ARCHITECTURE.md").split("```")[1]
    for path in packages.glob("*/__init__.py"):
        assert f"{path.parent.name}/" in shown, path.parent.name
    for path in packages.glob("*.py"):
        assert path.stem.startswith("__") or path.name in shown, path.name


def test_the_architecture_page_has_the_layers_that_are_checked() -> None:
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = " -> ".join(contracts[0]["layers"])
    assert layers in " ".join(text_of("ARCHITECTURE.md").split())
