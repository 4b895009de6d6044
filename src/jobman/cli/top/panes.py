"""A pane of `jobman top`: a table that keeps its place while what it shows changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from jobman.cli.colours import clean
from jobman.cli.tables import Cell
from jobman.cli.top.rows import Row

MOST = 500
"""Rows that a pane shows; nobody scrolls through more, and each costs time."""


class Pane(DataTable[Text]):
    """Rows known by keys; the cursor stays with its row, wherever that goes. Empty columns are left out."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "details"),
        Binding("tab", "app.focus_next", "next pane"),
    ]

    def __init__(self, name: str, titles: Sequence[str], *, right: Sequence[str] = ()) -> None:
        super().__init__(id=name, cursor_type="row")
        self._titles = tuple(titles)
        self._right = frozenset(titles.index(title) for title in right)
        self._shown: list[Row] = []
        self._kept: list[int] = []
        """The numbers of the columns in which something stands."""
        self.border_title = name

    @property
    def chosen(self) -> str | None:
        """The key of the row under the cursor."""
        place = self.cursor_row
        return self._shown[place].key if 0 <= place < len(self._shown) else None

    def fill(self, rows: Sequence[Row], *, all_of_them: int | None = None) -> None:
        """Show these rows; `all_of_them` is how many there are, where these are not all."""
        shown = list(rows[:MOST])
        total = max(all_of_them or 0, len(rows))
        self.border_title = f"{self.id} {total:,}" + (f", {len(shown):,} shown" * (len(shown) < total))
        kept = [n for n in range(len(self._titles)) if any(row.cells[n].text for row in shown)]
        if kept == self._kept and [row.key for row in shown] == [row.key for row in self._shown]:
            self._renew(shown)
        else:
            self._replace(shown, kept)

    def _renew(self, rows: list[Row]) -> None:
        """The same rows: only cells that have changed are drawn anew."""
        before, self._shown = self._shown, rows
        for number, (row, old) in enumerate(zip(rows, before, strict=True)):
            for place, n in enumerate(self._kept):
                if row.cells[n] != old.cells[n]:
                    where = Coordinate(number, place)
                    self.update_cell_at(where, self._drawn(row.cells[n], n), update_width=True)

    def _replace(self, rows: list[Row], kept: list[int]) -> None:
        key, place, scrolled = self.chosen, self.cursor_row, self.scroll_offset
        self.clear(columns=kept != self._kept)
        if kept != self._kept:
            self.add_columns(*(Text(self._titles[n]) for n in kept))
        for row in rows:
            self.add_row(*(self._drawn(row.cells[n], n) for n in kept), key=row.key)
        self._shown, self._kept = rows, kept
        keys = [row.key for row in rows]
        if keys:
            row_now = keys.index(key) if key in keys else min(place, len(keys) - 1)
            self.move_cursor(row=row_now, animate=False, scroll=False)
            self.scroll_to(scrolled.x, scrolled.y, animate=False, force=True)

    def _drawn(self, cell: Cell, number: int) -> Text:
        # Never a plain string: the library would read a name like [red] as a style.
        return Text(clean(cell.text), style=cell.style, justify="right" if number in self._right else "left")
