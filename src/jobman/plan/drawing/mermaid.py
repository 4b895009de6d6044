"""A plan as a Mermaid flowchart, for documents that draw such text themselves."""

from __future__ import annotations

from collections.abc import Iterator

from jobman.plan.drawing.captions import caption
from jobman.plan.drawing.model import MOST_UNITS
from jobman.plan.drawing.text import plain
from jobman.plan.model import Plan, Unit

_SHAPES = {"task": ('["', '"]'), "service": ('(["', '"])'), "local": ('[["', '"]]')}
_CLASSES = {
    "service": "fill:#e5f6ef,stroke:#35a27b,color:#1f2937",
    "local": "fill:#fdf3d8,stroke:#cf9a1f,color:#1f2937",
    "cleanup": "stroke:#b0529a,stroke-dasharray:6 3",
    "more": "fill:none,stroke-dasharray:2 2",
}
_ARROWS = {"started": "-.->", "ready": "-.->"}
# What Mermaid or the HTML in its labels would take for its own; the numbers are those of the characters.
_TAKEN = {character: f"#{ord(character)};" for character in '#&;<>"`\\$%*_~'}


def mermaid(plan: Plan) -> str:
    """The flowchart of a plan."""
    chart = _Chart(plan)
    lines = ["flowchart LR", *chart.units(), *chart.edges(), *chart.classes()]
    return "\n".join(lines) + "\n"


class _Chart:
    """Names every drawn unit by its number, for ids may be words of Mermaid's own."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names: dict[str | None, str] = {}
        self.styled: dict[str, list[str]] = {}
        self.drawn: dict[str | None, list[Unit]] = {}
        self.left_out: dict[str | None, int] = {}
        self._choose()

    def _choose(self) -> None:
        """The first units of each scope; one node stands for the others and all that is in them."""
        for number, unit in enumerate(self.plan.units):
            scope = self.drawn.setdefault(unit.parent, [])
            if unit.parent is not None and self.names[unit.parent].startswith("more"):
                self.names[unit.id] = self.names[unit.parent]
            elif len(scope) < MOST_UNITS:
                scope.append(unit)
                self.names[unit.id] = f"u{number}"
            else:
                self.left_out[unit.parent] = self.left_out.get(unit.parent, 0) + 1
                self.names[unit.id] = self._more(unit.parent)

    def _more(self, scope: str | None) -> str:
        return f"more_{self.names[scope]}" if scope is not None else "more"

    def units(self) -> Iterator[str]:
        # A stack instead of recursion: groups may be nested deeper than Python likes.
        waiting: list[Iterator[str | Unit]] = [self._scope(None)]
        while waiting:
            line = next(waiting[-1], None)
            if line is None:
                waiting.pop()
                if waiting:
                    yield "  " * len(waiting) + "end"
            elif isinstance(line, str):
                yield "  " * len(waiting) + line
            else:
                yield "  " * len(waiting) + self._opening(line)
                waiting.append(self._scope(line.id))

    def _scope(self, scope: str | None) -> Iterator[str | Unit]:
        for unit in self.drawn.get(scope, ()):
            yield unit if unit.kind == "group" else self._task(unit)
        if count := self.left_out.get(scope):
            self.styled.setdefault("more", []).append(self._more(scope))
            yield f'{self._more(scope)}["… and {count} more"]'

    def _opening(self, unit: Unit) -> str:
        self._style(unit)
        return f'subgraph {self.names[unit.id]} ["{" · ".join(_lines(unit))}"]'

    def _task(self, unit: Unit) -> str:
        self._style(unit)
        opening, closing = _SHAPES["service" if unit.service else "local" if unit.local else "task"]
        return f"{self.names[unit.id]}{opening}{'<br>'.join(_lines(unit))}{closing}"

    def _style(self, unit: Unit) -> None:
        marks = {"service": unit.service, "local": unit.local, "cleanup": unit.when != "success"}
        for name in (name for name, holds in marks.items() if holds):
            self.styled.setdefault(name, []).append(self.names[unit.id])

    def edges(self) -> Iterator[str]:
        seen: set[str] = set()
        for edge in self.plan.edges:
            source, target = self.names[edge.after], self.names[edge.unit]
            label = "" if edge.when == "success" else f"|{edge.when}|"
            line = f"  {source} {_ARROWS.get(edge.when, '-->')}{label} {target}"
            if source != target and line not in seen:
                seen.add(line)
                yield line

    def classes(self) -> Iterator[str]:
        for name, style in _CLASSES.items():
            if name in self.styled:
                yield f"  classDef {name} {style}"
                yield f"  class {','.join(self.styled[name])} {name}"


def _lines(unit: Unit) -> Iterator[str]:
    name, facts, command = caption(unit)
    return (escaped(line) for line in (name, facts, command) if line)


def escaped(text: str) -> str:
    """A text that stands in a label as it is."""
    return "".join(_TAKEN.get(character, character) for character in plain(text))
