"""A plan as a picture: one self-contained SVG for light and dark surroundings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from jobman.plan.drawing.captions import COMMAND_SIZE, FACTS_SIZE, INSET, NAME_SIZE, Caption
from jobman.plan.drawing.labels import LABEL_SIZE, label_width
from jobman.plan.drawing.layout import layout
from jobman.plan.drawing.model import STACK, TITLE_BAR, Arrow, Box, Drawing, Run
from jobman.plan.drawing.routes import bend
from jobman.plan.drawing.text import plain, text_width
from jobman.plan.model import Plan, Unit

_LIGHT_AND_DARK = {
    "page": ("#ffffff", "#0d1117"),
    "ink": ("#1f2937", "#e6edf3"),
    "faint": ("#5b6676", "#9aa5b1"),
    "line": ("#7b8797", "#8b96a5"),
    "task": ("#f4f7fc", "#18212e"),
    "task-line": ("#8aa4cf", "#4f6c9c"),
    "service": ("#e5f6ef", "#10291f"),
    "service-line": ("#35a27b", "#38a67f"),
    "local": ("#fdf3d8", "#2e2611"),
    "local-line": ("#cf9a1f", "#bb8d25"),
    "cleanup-line": ("#b0529a", "#c877b4"),
    "group": ("#8aa4cf14", "#8aa4cf12"),
    "group-bar": ("#8aa4cf2b", "#8aa4cf26"),
    "group-line": ("#b9c6dc", "#39465a"),
    "failure": ("#c2413b", "#f0776f"),
}
_SANS = "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,'DejaVu Sans',sans-serif"
_MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_RULES = (
    (".page", "fill:{page}"),
    ("text", f"fill:{{ink}};font-family:{_SANS}"),
    (".name", f"font-size:{NAME_SIZE:g}px;font-weight:600"),
    (".facts", f"fill:{{faint}};font-size:{FACTS_SIZE:g}px"),
    (".command", f"fill:{{faint}};font-family:{_MONO};font-size:{COMMAND_SIZE:g}px;white-space:pre"),
    (".label", f"fill:{{faint}};font-size:{LABEL_SIZE:g}px"),
    (".box", "fill:{task};stroke:{task-line};stroke-width:1.3"),
    (".service .box", "fill:{service};stroke:{service-line}"),
    (".local .box", "fill:{local};stroke:{local-line}"),
    (".more .box", "fill:none;stroke:{group-line}"),
    (".frame", "fill:{group};stroke:{group-line};stroke-width:1.3"),
    (".bar", "fill:{group-bar}"),
    (".card", "fill:{page}"),
    (".cleanup>.box,.cleanup>.frame", "stroke:{cleanup-line};stroke-dasharray:6 3"),
    (".curve", "fill:none;stroke:{line};stroke-width:1.5"),
    (".head", "fill:{line}"),
    (".early .curve", "stroke-dasharray:5 4"),
    (".failure .curve", "stroke:{failure}"),
    (".failure .head,.label.failure", "fill:{failure}"),
    (".tag", "fill:{page};stroke:{group-line}"),
)
_EARLY = ("started", "ready")
_HEAD = 8.0
_LEGEND_HEIGHT = 30.0
_LEGEND_LEFT = 24.0
_SWATCH = 22.0
_TOOLTIP = 300


class _Style(NamedTuple):
    """A way to draw a box that the legend explains."""

    css: str
    words: str


_SERVICE = _Style("service", "service, ends with its scope")
_LOCAL = _Style("local", "local, what follows waits")
_CLEANUP = _Style("cleanup", "cleanup, runs in the case named")
_WAITS = _Style("early", "waits for the start or readiness")
_STYLES = (_SERVICE, _LOCAL, _CLEANUP, _WAITS)


def svg(plan: Plan) -> str:
    """The picture of a plan."""
    drawing = layout(plan)
    legend, legend_width = _legend(drawing)
    width = max(drawing.width, legend_width)
    height = drawing.height + (_LEGEND_HEIGHT if legend else 0)
    title = plain(plan.name or "job")
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="jobman-plan" role="img" width="{width:.0f}"'
        f' height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{escape(title)}</title>",
        f"<style>{_style()}</style>",
        f'<rect class="page" width="{width:.0f}" height="{height:.0f}" rx="10"/>',
        *(_group(box) for box in drawing.boxes if _is_group(box)),
        *(_edge(arrow) for arrow in drawing.arrows),
        *(_task(box) for box in drawing.boxes if not _is_group(box)),
        *(label for arrow in drawing.arrows for label in _label(arrow)),
        *legend,
        "</svg>",
    )
    return "\n".join(lines) + "\n"


def _style() -> str:
    light, dark = (
        ";".join(f"--{name}:{colors[mode]}" for name, colors in _LIGHT_AND_DARK.items()) for mode in (0, 1)
    )
    rules = "".join(
        ",".join(f".jobman-plan {part}" for part in selector.split(",")) + f"{{{_colored(body)}}}"
        for selector, body in _RULES
    )
    return f".jobman-plan{{{light}}}@media (prefers-color-scheme:dark){{.jobman-plan{{{dark}}}}}{rules}"


def _colored(body: str) -> str:
    """Each colour twice: as it is for what knows no variables, then as a variable."""
    return ";".join(
        f"{declaration.format_map(_FIXED)};{declaration.format_map(_VARIABLE)}"
        if "{" in declaration
        else declaration
        for declaration in body.split(";")
    )


_FIXED = {name: light for name, (light, _) in _LIGHT_AND_DARK.items()}
_VARIABLE = {name: f"var(--{name})" for name in _LIGHT_AND_DARK}


def _is_group(box: Box) -> bool:
    return box.unit is not None and box.unit.kind == "group"


def _styles(unit: Unit) -> Iterator[_Style]:
    if unit.service:
        yield _SERVICE
    elif unit.local:
        yield _LOCAL
    if unit.when != "success":
        yield _CLEANUP


def _opening(box: Box, kind: str) -> str:
    if box.unit is None:
        return f'<g class="{kind} more">'
    classes = " ".join([kind, *(style.css for style in _styles(box.unit))])
    return f'<g class="{classes}" data-unit={_attribute(box.unit.id)}><title>{_tooltip(box.unit)}</title>'


def _tooltip(unit: Unit) -> str:
    words = plain(" ".join(unit.command)[:_TOOLTIP])
    return escape(plain(unit.id) + (f": {words}" if words else ""))


def _attribute(text: str) -> str:
    return quoteattr(plain(text))


def _group(box: Box) -> str:
    name, facts, _ = box.caption
    bar = TITLE_BAR
    corner = 10
    middle = box.y + bar / 2 + 4.5
    parts = [
        _opening(box, "group"),
        *_card(box, "frame", corner),
        _rect(box, "frame", corner),
        f'<path class="bar" d="M{_n(box.x)},{_n(box.y + bar)}v{_n(corner - bar)}a{corner},{corner} 0 0 1'
        f" {corner},-{corner}h{_n(box.width - 2 * corner)}a{corner},{corner} 0 0 1 {corner},{corner}"
        f'v{_n(bar - corner)}z"/>',
        _text("name", box.x + INSET, middle, name),
    ]
    if facts:
        parts.append(_text("facts", box.x + box.width - INSET, middle, facts, anchor="end"))
    return "".join([*parts, "</g>"])


def _task(box: Box) -> str:
    name, facts, command = box.caption
    corner = 16 if box.unit and box.unit.service else 7
    x = box.x + INSET
    lines = [("name", name, 0.0), ("facts", facts, 18.0), ("command", command, 16.0)]
    heights = sum(extra for _, text, extra in lines if text)
    y = box.y + (box.height - heights) / 2 + 4.5
    parts = [_opening(box, "task"), *_card(box, "box", corner), _rect(box, "box", corner)]
    for css, text, extra in lines:
        if text:
            y += extra
            parts.append(_text(css, x, y, text))
    return "".join([*parts, "</g>"])


def _card(box: Box, css: str, corner: int) -> Iterator[str]:
    """A second card behind what runs several times."""
    if box.unit is not None and box.unit.replicas > 1:
        behind = box._replace(x=box.x + STACK, y=box.y + STACK)
        yield _rect(behind, css, corner)
        yield _rect(box, "card", corner)


def _rect(box: Box, css: str, corner: int) -> str:
    return (
        f'<rect class="{css}" x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}"'
        f' height="{_n(box.height)}" rx="{corner}"/>'
    )


def _text(css: str, x: float, y: float, text: str, anchor: str = "") -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{css}" x="{_n(x)}" y="{_n(y)}"{where}>{escape(text)}</text>'


def _edge(arrow: Arrow) -> str:
    classes = ["edge", arrow.when, *(["early"] if arrow.when in _EARLY else [])]
    ends = "".join(
        f" data-{name}={_attribute(end)}"
        for name, end in (("after", arrow.after), ("unit", arrow.unit))
        if end is not None
    )
    tip = arrow.runs[-1]
    return (
        f'<g class="{" ".join(classes)}"{ends}><path class="curve" d="{_curve(arrow.runs)}"/>'
        f'<path class="head" d="M{_n(tip.end)},{_n(tip.y)}l-{_HEAD:g},-4v8z"/></g>'
    )


def _curve(runs: tuple[Run, ...]) -> str:
    first = runs[0]
    path = [f"M{_n(first.start)},{_n(first.y)}H{_n(first.end)}"]
    for one, other in pairwise(runs):
        _, *points = bend(one, other)
        path.append("C" + " ".join(f"{_n(x)},{_n(y)}" for x, y in points))
        path.append(f"H{_n(other.end)}")
    # The line ends inside the head, or its blunt end would look out at the tip.
    path[-1] = f"H{_n(runs[-1].end - _HEAD / 2)}"
    return "".join(path)


def _label(arrow: Arrow) -> Iterator[str]:
    if arrow.label is None:
        return
    x, y = arrow.label
    width = label_width(arrow.when)
    yield _rect(Box(None, None, Caption(""), x - width / 2, y - 8, width, 16.0), "tag", 8)
    yield _text(f"label {arrow.when}", x, y + 3.5, arrow.when, anchor="middle")


def _legend(drawing: Drawing) -> tuple[list[str], float]:
    """The styles that occur, below the drawing, and how far they reach."""
    found = {style for box in drawing.boxes if box.unit for style in _styles(box.unit)}
    if any(arrow.when in _EARLY for arrow in drawing.arrows):
        found.add(_WAITS)
    x, y = _LEGEND_LEFT, drawing.height + 4
    parts: list[str] = []
    for style in (style for style in _STYLES if style in found):
        parts.append(
            f'<g class="legend {style.css}">{_swatch(style, x, y)}'
            f"{_text('facts', x + _SWATCH + 7, y + 4, style.words)}</g>"
        )
        x += _SWATCH + 7 + text_width(style.words, FACTS_SIZE) + _LEGEND_LEFT
    return parts, x if parts else 0.0


def _swatch(style: _Style, x: float, y: float) -> str:
    if style is _WAITS:
        return f'<path class="curve" d="M{_n(x)},{_n(y)}h{_SWATCH:g}"/>'
    return _rect(Box(None, None, Caption(""), x, y - 7, _SWATCH, 14.0), "box", 7 if style is _SERVICE else 4)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
