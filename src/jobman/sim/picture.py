"""SVG pictures: a page with a title, panels with axes, and a legend; for light and dark surroundings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from jobman.sim.axes import Mark

WIDTH, LEFT, RIGHT = 1120.0, 72.0, 24.0
TOP, GAP, FOOT = 64.0, 34.0, 44.0
_COLOURS = {
    "page": ("#ffffff", "#0d1117"),
    "ink": ("#1f2937", "#e6edf3"),
    "faint": ("#5b6676", "#9aa5b1"),
    "grid": ("#e3e8ef", "#222b37"),
    "frame": ("#b9c6dc", "#39465a"),
}
SHADES = ("#4878b8", "#d97b29", "#3f9b6c", "#b0529a", "#8a6d3b", "#5aa7b5", "#c2413b", "#7b6fc4")
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,'DejaVu Sans',sans-serif"
_RULES = (
    (".page", "fill:var(--page)"),
    ("text", f"fill:var(--ink);font:12px {_FONT}"),
    (".title", "font-size:15px;font-weight:600"),
    (".faint", "fill:var(--faint);font-size:11px"),
    (".grid", "stroke:var(--grid);fill:none"),
    (".frame", "stroke:var(--frame);fill:none"),
    (".mid", "text-anchor:middle"),
    (".end", "text-anchor:end"),
    (".line", "fill:none;stroke-width:1.3;stroke-linejoin:round;stroke-opacity:.85"),
    (".job", "stroke:var(--page);stroke-width:.4"),
)


class Panel(NamedTuple):
    """A rectangle of the page with scales; `y` grows upwards."""

    top: float
    height: float
    begin: float
    end: float
    most: float

    def x(self, at: float) -> float:
        return LEFT + (at - self.begin) / (self.end - self.begin) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return self.top + self.height * (1 - value / self.most)


def page(title: str, subtitle: str, height: float, parts: Iterable[str]) -> str:
    """A whole picture."""
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="jobman-sim" role="img" width="{WIDTH:.0f}"'
            f' height="{height:.0f}" viewBox="0 0 {WIDTH:.0f} {height:.0f}">',
            f"<title>{escape(title)}</title>",
            f"<style>{_style()}</style>",
            f'<rect class="page" width="{WIDTH:.0f}" height="{height:.0f}" rx="10"/>',
            f'<text class="title" x="{LEFT:.0f}" y="26">{escape(title)}</text>',
            f'<text class="faint" x="{LEFT:.0f}" y="44">{escape(subtitle)}</text>',
            *parts,
            "</svg>\n",
        )
    )


def _style() -> str:
    light, dark = (";".join(f"--{name}:{pair[mode]}" for name, pair in _COLOURS.items()) for mode in (0, 1))
    rules = "".join(f".jobman-sim {selector}{{{body}}}" for selector, body in _RULES)
    return f".jobman-sim{{{light}}}@media (prefers-color-scheme:dark){{.jobman-sim{{{dark}}}}}{rules}"


def axes(
    panel: Panel, times: Sequence[Mark], values: Sequence[Mark], caption: str, *, dated: bool
) -> list[str]:
    """The frame of a panel with its grid; moments are written below where it is the last one."""
    bottom = panel.top + panel.height
    parts = []
    for mark in times:
        x = panel.x(mark.at)
        parts.append(f'<path class="grid" d="M{x:.1f} {panel.top:.1f}V{bottom:.1f}"/>')
        if dated:
            parts.append(
                f'<text class="faint mid" x="{x:.1f}" y="{bottom + 16:.1f}">{escape(mark.words)}</text>'
            )
    for mark in values:
        y = panel.y(mark.at)
        parts.append(f'<path class="grid" d="M{LEFT:.1f} {y:.1f}H{WIDTH - RIGHT:.1f}"/>')
        parts.append(
            f'<text class="faint end" x="{LEFT - 6:.1f}" y="{y + 4:.1f}">{escape(mark.words)}</text>'
        )
    width = WIDTH - LEFT - RIGHT
    parts.append(
        f'<rect class="frame" x="{LEFT:.1f}" y="{panel.top:.1f}" width="{width:.1f}"'
        f' height="{panel.height:.1f}"/>'
    )
    parts.append(f'<text class="faint" x="{LEFT:.1f}" y="{panel.top - 6:.1f}">{escape(caption)}</text>')
    return parts


def legend(entries: Sequence[tuple[str, str]], y: float) -> list[str]:
    """Colours and words in one row."""
    parts, x = [], LEFT
    for colour, words in entries:
        parts.append(f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="12" height="10" rx="2" fill="{colour}"/>')
        parts.append(f'<text class="faint" x="{x + 17:.1f}" y="{y:.1f}">{escape(words)}</text>')
        x += 40 + 6.3 * len(words)
    return parts
