"""A table of ours in a TOML file: appended to its text and removed from it."""

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from claude_mem.errors import SettingsError


@dataclass(frozen=True, slots=True)
class TomlTable:
    """`[parent.name]` with a command; it is ours if the command is."""

    path: Path
    parent: str
    name: str
    command: Path

    def with_table(self, text: str) -> str:
        existing = self._existing(text)
        if existing is not None:
            if existing.get("command") == str(self.command):
                return text
            raise SettingsError(
                f"{self.path} has another {self.parent}.{self.name}; rename it and run the command"
                " again"
            )
        gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        longer = (
            f"{text}{gap}[{self.parent}.{self.name}]\ncommand = {json.dumps(str(self.command))}\n"
        )
        try:
            tomllib.loads(longer)
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{self.path}: the table cannot be added ({error})") from None
        return longer

    def without_table(self, text: str) -> str:
        existing = self._existing(text)
        if existing is None or existing.get("command") != str(self.command):
            return text
        header = re.escape(f"[{self.parent}.{self.name}")
        # With its values, and the empty line that was added before it.
        block = re.compile(
            rf"(?:(?<=\n)\n)?^{header}(?:\.[^\]\n]*)?\]\s*\n(?:[^\n\[#][^\n]*(?:\n|\Z))*", re.M
        )
        return block.sub("", text)

    def has_table(self, text: str) -> bool:
        existing = self._existing(text)
        return existing is not None and existing.get("command") == str(self.command)

    def _existing(self, text: str) -> dict[str, object] | None:
        try:
            parent = tomllib.loads(text).get(self.parent)
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{self.path}: {error}; the file was not changed") from None
        table = parent.get(self.name) if isinstance(parent, dict) else None
        return table if isinstance(table, dict) else None
