"""Pages of the viewer in process, and what a browser would see in them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.api import Api, open_api

TOKEN = "a-token-of-this-installation-0123456789"
HOST = "127.0.0.1:37777"
BEARER = {"authorization": f"Bearer {TOKEN}"}
# Each in a field of its own, so that the one that is not escaped is known by its number.
ATTACKS = (
    '<script>window.hacked={n}</script>', '"><img src=x onerror=window.hacked={n}>',
    "'><svg onload=window.hacked={n}>", "javascript:window.hacked={n}", "{{{{ {n} * 7 }}}}",
    "</template><script>window.hacked={n}</script>", "]]><b onclick=hacked={n}>",
    "\u202edekcah\u2066{n}\u200b\U000e0041",
)  # fmt: skip


@dataclass(frozen=True)
class Page:
    text: str
    status: int
    headers: dict[str, str]

    def has(self, *words: str) -> bool:
        return all(word in self.visible for word in words)

    @property
    def visible(self) -> str:
        parser = _Text()
        parser.feed(self.text)
        return re.sub(r"\s+", " ", " ".join(parser.parts))

    def attributes(self, tag: str, name: str) -> list[str]:
        parser = _Text()
        parser.feed(self.text)
        return [value for t, n, value in parser.attributes if (t, n) == (tag, name)]

    @property
    def tags(self) -> set[str]:
        parser = _Text()
        parser.feed(self.text)
        return {tag for tag, _, _ in parser.attributes} | parser.tags

    @property
    def event_handlers(self) -> list[str]:
        parser = _Text()
        parser.feed(self.text)
        return [n for _, n, _ in parser.attributes if n.startswith("on") or n == "style"]


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


@dataclass
class Viewer:
    api: Api

    def get(self, path: str, cookies: str = "", **params: Any) -> Page:
        headers = {**BEARER, "accept": "text/html", **({"cookie": cookies} if cookies else {})}
        answer = self.api.request("GET", path, params=params or None, headers=headers)
        return Page(answer.text, answer.status_code, dict(answer.headers))

    def post(self, path: str, **fields: Any) -> dict[str, Any]:
        answer = self.api.request("POST", path, json=fields, headers=BEARER)
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body


@contextmanager
def open_viewer(directory: Path, **environ: str) -> Iterator[Viewer]:
    with open_api(directory, token=TOKEN, **environ) as api:
        api.client.headers.update(BEARER)
        yield Viewer(api)
