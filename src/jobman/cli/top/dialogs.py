"""What opens above the panes: an explanation to read, and a question before something is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

_REFRESH = 2.0


class Reading(ModalScreen[None]):
    """A text that is read anew while it is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "close"),
        Binding("k", "cancel", "cancel the job"),
    ]
    DEFAULT_CSS = """
    Reading { align: center middle; }
    Reading > VerticalScroll {
        width: 90%; height: auto; max-height: 90%; border: round $accent; background: $surface; padding: 0 1;
    }
    """

    def __init__(self, title: str, read: Callable[[int], str], cancel: Callable[[], None] | None) -> None:
        super().__init__()
        self._title = title
        self._read = read
        self._cancel = cancel

    def compose(self) -> ComposeResult:
        box = VerticalScroll(Static("…", id="words"))
        box.border_title = self._title
        box.border_subtitle = "esc closes" + (", k cancels the job" if self._cancel is not None else "")
        yield box

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self._again()
        self.set_interval(_REFRESH, self._again)

    def _again(self) -> None:
        self.run_worker(self._fetch, thread=True, exclusive=True, group="reading")

    def _fetch(self) -> None:
        """In a thread: the service may take its time."""
        words = self._read(max(self.app.size.width * 9 // 10 - 4, 20))
        self.app.call_from_thread(self._show, words)

    def _show(self, words: str) -> None:
        if self.is_attached:
            self.query_one("#words", Static).update(Text.from_ansi(words))

    def action_cancel(self) -> None:
        if self._cancel is not None:
            self._cancel()


class Question(ModalScreen[bool]):
    """Yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q", "answer(False)", "no"),
    ]
    DEFAULT_CSS = """
    Question { align: center middle; }
    Question > Vertical {
        width: auto; max-width: 80%; height: auto; border: round $warning; background: $surface; padding: 1 2;
    }
    Question Static { width: auto; }
    """

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        yield Vertical(Static(Text(self._words)), Static(Text("\ny  yes      n  no", style="bold")))

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
