"""The screen of `jobman top`: totals, those who wait, those who run, the nodes; and what keys do."""

from __future__ import annotations

import time
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable, Footer, Input, Static

from jobman.cli.tables import Cell
from jobman.cli.top import rows
from jobman.cli.top.dialogs import Question, Reading
from jobman.cli.top.looks import Look, Watch, words_of
from jobman.cli.top.pages import job_page, node_page
from jobman.cli.top.panes import Pane
from jobman.client import Client, Refused, Unreachable

_JOBS = ("waiting", "running")


class Seen(Message):
    """There is a new look."""

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look


class Top(App[None]):
    """The queue and the nodes of one service, live."""

    TITLE = "jobman top"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("k", "cancel", "cancel job"),
        Binding("escape", "unfilter", "no filter", show=False),
    ]
    CSS = """
    #totals, #trouble { height: 1; padding: 0 1; }
    #trouble { background: $error; color: $text; display: none; }
    Pane { border: round $panel; height: 1fr; }
    Pane:focus { border: round $accent; }
    #waiting { height: 2fr; }
    #filter { display: none; height: 1; border: none; padding: 0 1; }
    """

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._look = Look(at=time.time())
        self._words = ""
        self._watch = Watch(client, lambda look: self.post_message(Seen(look)))

    def compose(self) -> ComposeResult:
        yield Static(id="totals")
        yield Static(id="trouble")
        yield Pane("waiting", rows.WAITING, right=("#",))
        yield Pane("running", rows.RUNNING, right=("done", "used", "limit"))
        yield Pane("nodes", rows.NODES, right=("cores", "gpus", "memory", "jobs"))
        yield Input(placeholder="filter: parts of names, ids, owners, queues, states, labels", id="filter")
        yield Footer()

    def on_mount(self) -> None:
        self._pane("waiting").focus()
        self._watch.start()

    def on_unmount(self) -> None:
        self._watch.stop()

    # -- what is shown --------------------------------------------------------------------------------------

    def on_seen(self, message: Seen) -> None:
        self._look = message.look
        self._draw()

    def _draw(self) -> None:
        look, counts = self._look, {} if self._words else self._look.counts
        with self.batch_update():
            self._pane("waiting").fill(rows.waiting(look, self._words), all_of_them=counts.get("waiting"))
            self._pane("running").fill(rows.running(look, self._words), all_of_them=counts.get("running"))
            self._pane("nodes").fill(rows.nodes(look, self._words))
            clock = Cell(time.strftime("%H:%M:%S", time.localtime(look.at)), "dim")
            only = [Cell(f"only {self._words}", "magenta")] if self._words else []
            self._static("totals").update(_line([*rows.totals(look), *only, clock]))
            self._static("trouble").display = bool(look.trouble)
            self._static("trouble").update(Text(look.trouble))

    def _pane(self, name: str) -> Pane:
        return self.screen_stack[0].query_one(f"#{name}", Pane)

    def _static(self, name: str) -> Static:
        return self.screen_stack[0].query_one(f"#{name}", Static)

    # -- filter ---------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def action_unfilter(self) -> None:
        self.query_one("#filter", Input).value = ""
        self._close_filter()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._words = event.value
        self._draw()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        self._close_filter()

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).display = False
        if not isinstance(self.focused, Pane):
            self._pane("waiting").focus()

    # -- looking closer -------------------------------------------------------------------------------------

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        key = str(event.row_key.value)
        if event.data_table.id in _JOBS:
            self.push_screen(
                Reading(
                    key,
                    lambda width: job_page(self._client, key, time.time(), width),
                    lambda: self._ask_to_cancel(key),
                )
            )
        else:
            self.push_screen(Reading(key, lambda width: node_page(self._look, key, width), None))

    # -- cancelling -----------------------------------------------------------------------------------------

    def action_cancel(self) -> None:
        pane = self.focused
        if not isinstance(pane, Pane) or pane.id not in _JOBS or pane.chosen is None:
            self.notify("choose a job that waits or runs", severity="warning")
            return
        self._ask_to_cancel(pane.chosen)

    def _ask_to_cancel(self, job_id: str) -> None:
        jobs = [*self._look.waiting, *self._look.running]
        name = next((job.name for job in jobs if job.id == job_id), "this job")

        def act(answer: bool | None) -> None:
            if answer:
                self.run_worker(lambda: self._cancel(job_id, name), thread=True)

        self.push_screen(Question(f"Cancel {name} ({job_id})?"), act)

    def _cancel(self, job_id: str, name: str) -> None:
        """In a thread: the service may take its time."""
        try:
            self._client.cancel(job_id)
        except (Refused, Unreachable) as error:
            self.call_from_thread(self.notify, words_of(error), severity="error", markup=False)
        else:
            self.call_from_thread(self.notify, f"{name} is cancelled", markup=False)
        self._watch.look_now()


def _line(cells: list[Cell]) -> Text:
    return Text("   ").join(Text(cell.text, style=cell.style) for cell in cells)
