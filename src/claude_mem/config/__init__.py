"""Configuration: the data directory and the settings, read at entry points only."""

from claude_mem.config.layout import Layout, find_layout
from claude_mem.config.private_file import write_private
from claude_mem.config.settings import (
    API_KEY,
    DATA_DIR,
    OBSERVER,
    SETTINGS,
    CaptureSettings,
    ContextSettings,
    EmbedderSettings,
    ObserverSettings,
    RecordSettings,
    RetentionSettings,
    SessionSettings,
    Setting,
    Settings,
    WorkerSettings,
    find_setting,
    section_of,
)
from claude_mem.config.sources import (
    change_setting,
    load_settings,
    load_usable_settings,
    read_settings_file,
    retired_settings,
)

__all__ = [
    "API_KEY",
    "DATA_DIR",
    "OBSERVER",
    "SETTINGS",
    "CaptureSettings",
    "ContextSettings",
    "EmbedderSettings",
    "Layout",
    "ObserverSettings",
    "RecordSettings",
    "RetentionSettings",
    "SessionSettings",
    "Setting",
    "Settings",
    "WorkerSettings",
    "change_setting",
    "find_layout",
    "find_setting",
    "load_settings",
    "load_usable_settings",
    "read_settings_file",
    "retired_settings",
    "section_of",
    "write_private",
]
