"""Filters of the templates: times, numbers, and what an agent wrote in Markdown, escaped.

Only the templates import it: markupsafe is loaded with jinja2.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

from claude_mem.server.viewer.texts import line
from claude_mem.text import plural, without_controls

_FENCE = re.compile(r"^ {0,3}(```|~~~)[^\n]*\n(.*?)(?:^ {0,3}\1[^\n]*$|\Z)", re.M | re.S)
_CODE = re.compile(r"`([^`\n]+)`")
_BOLD = re.compile(r"\*\*(\S(?:[^*\n]{0,400}\S)?)\*\*")
_HEADING = re.compile(r"#{1,6} +(.+)")
_BULLET = re.compile(r"(\s*)(?:[-*•]|\d{1,3}[.)]) +(.*)")
MAX_PROSE = 200_000


def prose(text: object) -> Markup:
    """Renders code blocks, headings, lists, `code` and **bold**; everything else is text."""
    source = without_controls(str(text or ""))
    cut = Markup("") if len(source) <= MAX_PROSE else Markup("<p>…</p>")
    source = source[:MAX_PROSE]
    parts: list[Markup] = []
    end = 0
    for match in _FENCE.finditer(source):
        parts += [*_blocks(source[end : match.start()])]
        parts.append(Markup("<pre><code>{}</code></pre>").format(match[2].rstrip("\n")))
        end = match.end()
    parts += [*_blocks(source[end:]), cut]
    return Markup("\n").join(parts)


def _blocks(text: str) -> list[Markup]:
    blocks: list[Markup] = []
    lines: list[str] = []
    items: list[Markup] = []

    def end_paragraph() -> None:
        if lines:
            blocks.append(Markup("<p>{}</p>").format(inline("\n".join(lines))))
            lines.clear()

    def end_list() -> None:
        if items:
            blocks.append(Markup("<ul>{}</ul>").format(Markup("").join(items)))
            items.clear()

    for row in text.split("\n"):
        bullet, heading = _BULLET.fullmatch(row), _HEADING.fullmatch(row)
        if not row.strip() or heading or bullet:
            end_paragraph()
        if bullet:
            level = Markup(' class="deep"') if len(bullet[1]) > 1 else Markup("")
            items.append(Markup("<li{}>{}</li>").format(level, inline(bullet[2])))
        elif heading:
            end_list()
            blocks.append(Markup('<p class="heading">{}</p>').format(inline(heading[1])))
        elif row.strip():
            end_list()
            lines.append(row)
    end_paragraph()
    end_list()
    return blocks


def inline(text: object) -> Markup:
    """Renders one paragraph: `code` and **bold**."""
    source = without_controls(str(text or ""))
    parts: list[Markup] = []
    end = 0
    for match in _CODE.finditer(source):
        parts.append(_bold(source[end : match.start()]))
        parts.append(Markup("<code>{}</code>").format(match[1]))
        end = match.end()
    parts.append(_bold(source[end:]))
    return Markup("").join(parts)


def _bold(text: str) -> Markup:
    parts: list[Markup] = []
    end = 0
    for match in _BOLD.finditer(text):
        parts.append(escape(text[end : match.start()]))
        parts.append(Markup("<strong>{}</strong>").format(match[1]))
        end = match.end()
    parts.append(escape(text[end:]))
    return Markup("").join(parts)


def clock(moment: datetime) -> Markup:
    """The browser shows it in its own zone and language."""
    shown = f"{moment:%H:%M}"
    return Markup('<time datetime="{}" data-show="time">{}</time>').format(_iso(moment), shown)


def stamp(moment: datetime) -> Markup:
    shown = f"{moment.day} {moment:%b %Y}, {moment:%H:%M}"
    return Markup('<time datetime="{}" data-show="moment">{}</time>').format(_iso(moment), shown)


def short_day(moment: datetime) -> Markup:
    shown = f"{moment.day} {moment:%b %Y}"
    return Markup('<time datetime="{}" data-show="day">{}</time>').format(_iso(moment), shown)


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def number(value: int) -> str:
    return f"{value:,}"


def size(count: int) -> str:
    for unit, limit in (("B", 1024), ("KB", 1024**2), ("MB", 1024**3)):
        if count < limit:
            return f"{count * 1024 / limit:.3g} {unit}"
    return f"{count / 1024**3:.3g} GB"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def dict_without(values: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in values.items() if key != name}


FILTERS: dict[str, Callable[..., Any]] = {
    "prose": prose, "inline": inline, "line": line, "clock": clock, "stamp": stamp,
    "short_day": short_day, "number": number, "size": size, "plural": counted,
    "file_name": file_name, "dict_without": dict_without,
}  # fmt: skip
