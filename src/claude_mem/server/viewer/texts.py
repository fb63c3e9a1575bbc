"""Texts of the viewer: one line of something longer, names of days."""

from datetime import date

from claude_mem.text import one_line, shorten, without_controls


def line(text: object, limit: int = 240) -> str:
    return shorten(one_line(without_controls(str(text or ""))), limit)


def day_name(day: date, today: date) -> str:
    if (days := (today - day).days) in (0, 1):
        return ("Today", "Yesterday")[days]
    name = f"{day:%A}, {day.day} {day:%B}"
    return name if day.year == today.year else f"{name} {day.year}"
