"""Bar plots as SVG, readable on a light and on a dark page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, BAR, GAP, LABELS, HEAD = 760, 16, 14, 250, 46
COLOURS = ("#2f7ed8", "#7cb5ec", "#e07b39")
_TEXT = 'font-family="sans-serif" font-size="12" fill="#808080"'


@dataclass(frozen=True, slots=True)
class Group:
    label: str
    values: tuple[float | None, ...]  # one for each series


def bars(title: str, series: Sequence[str], groups: Sequence[Group], unit: str) -> str:
    """Horizontal bars on a logarithmic scale, with the value behind each bar."""
    values = [value for group in groups for value in group.values if value]
    low = 10 ** math.floor(math.log10(min(values)))
    decades = max(1.0, math.log10(max(values) / low))
    room = WIDTH - LABELS - 90
    height = HEAD + len(groups) * (len(series) * BAR + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">',
        f'<text x="0" y="14" {_TEXT} font-weight="bold">{escape(title)}'
        f" ({escape(unit)}, logarithmic)</text>",
        *_legend(series),
    ]
    y = HEAD
    for group in groups:
        middle = y + len(series) * BAR / 2 + 4
        parts.append(
            f'<text x="{LABELS - 8}" y="{middle:.0f}" text-anchor="end" {_TEXT}>'
            f"{escape(group.label)}</text>"
        )
        for value, colour in zip(group.values, COLOURS, strict=False):
            if value:
                length = max(2.0, room * math.log10(value / low) / decades)
                parts.append(
                    f'<rect x="{LABELS}" y="{y}" width="{length:.0f}" height="{BAR - 2}"'
                    f' fill="{colour}"/>'
                )
                x = LABELS + length + 5
                parts.append(f'<text x="{x:.0f}" y="{y + 12}" {_TEXT}>{_label(value)}</text>')
            y += BAR
        y += GAP
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(series: Sequence[str]) -> list[str]:
    parts, x = [], 0
    for name, colour in zip(series, COLOURS, strict=False):
        parts.append(f'<rect x="{x}" y="24" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 17}" y="34" {_TEXT}>{escape(name)}</text>')
        x += 40 + 7 * len(name)
    return parts


def _label(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
