"""The screen of `jobman top`, used as a person would: by keys."""

import asyncio
import threading
import time
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("textual")

from textual.widgets import Input, Static

from jobman import Play, Rehearsal
from jobman.cli.top import looks, panes
from jobman.cli.top.dialogs import Question, Reading
from jobman.cli.top.looks import Look, Watch
from jobman.cli.top.panes import Pane
from jobman.cli.top.screen import Top
from jobman.client import Client, Refused, Unreachable
from jobman.control.answers import Details, Estimate, Event, Failure, Job, Node, Page, Status, Task, Why

pytestmark = pytest.mark.slow

FAR = time.time() + 400 * 86_400


def job(name, state="waiting", **fields):
    now = time.time()
    if state == "running":
        fields = {"started_at": now - 60, "ends_by": now + 60, **fields}
    return Job(id=f"{name}-id", name=name, owner="ada", state=state, submitted_at=now - 90, **fields)


class Service(Client):
    """A client of a service that is not there: it answers what it was given."""

    def __init__(self):
        self.all = [
            job(
                "next", estimate=Estimate(guaranteed_by=time.time() + 86_400 * 400, position=1, queue="batch")
            ),
            job("later", estimate=Estimate(position=2, queue="batch")),
            job("busy", "running"),
        ]
        self.there = [
            Node(name="n1", amounts={"core": 8}, used={"core": 4}, jobs=["busy-id"]),
            Node(name="n2", amounts={"core": 8}, state="draining"),
        ]
        self.cancelled = []
        self.trouble = None
        self.happened = threading.Event()
        self.over = threading.Event()

    def _answer(self, found):
        if self.trouble is not None:
            raise self.trouble
        return found

    def jobs_page(self, *, limit=100, cursor=None, **filters):
        return self._answer(Page(items=[each for each in self.all if each.state == filters["state"]]))

    def nodes(self):
        return self.there

    def status(self):
        counts = {state: sum(each.state == state for each in self.all) for state in ("waiting", "running")}
        return Status(version="1", pid=1, mode="embedded", since=0, database="", jobs=counts)

    def events(self, ref=None, *, follow=False, after=None):
        while not self.over.is_set():
            if self.happened.wait(0.05):
                self.happened.clear()
                yield Event(number=1, job="", at=0.0, kind="submitted")

    def cancel(self, ref):
        self._answer(None)
        self.cancelled.append(ref)
        found = next(each for each in self.all if each.id == ref)
        self.all.remove(found)
        return found

    def why(self, ref):
        return self._answer(Why(job=ref, state="waiting", summary=f"it waits: {ref} waits for its turn"))

    def details(self, ref):
        return Details(
            id=ref, name=ref, owner="ada", state="waiting", tasks=[Task(unit="train", name="train")]
        )


@pytest.fixture
def service(monkeypatch):
    monkeypatch.setattr(looks, "_AFTER_TROUBLE", 0.05)
    service = Service()
    yield service
    service.over.set()


@asynccontextmanager
async def shown(client, size=(120, 40)):
    """The screen, when it has shown something."""
    app = Top(client)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: bool(keys(app, "nodes")))
        yield pilot


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


async def until(pilot, condition, seconds=20):
    """Wait for something to come true on the screen."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        await pilot.pause(0.02)


def pane(app, name):
    return app.screen_stack[0].query_one(f"#{name}", Pane)


def keys(app, name):
    return [str(key.value) for key in pane(app, name).rows]


def row(app, name, key):
    return " ".join(cell.plain for cell in pane(app, name).get_row(key) if cell.plain)


def words(app, name):
    return str(app.screen_stack[-1].query_one(f"#{name}", Static).render())


def scene(act):
    """Play a scene on the screen of a service that is not there."""

    def test(service):
        async def play():
            async with shown(service) as pilot:
                await act(pilot, pilot.app, service)

        asyncio.run(play())

    test.__name__ = act.__name__
    return test


@scene
async def test_everything_is_on_the_screen(pilot, app, service):
    assert keys(app, "waiting") == ["next-id", "later-id"]
    assert row(app, "waiting", "later-id") == "2 later-id later ada batch no promise"
    used, _, rest = row(app, "running", "busy-id").removeprefix("busy-id busy ada ").partition("2 min ")
    assert (used.strip().startswith("1 min"), rest) == (True, "█████░░░░░ running")
    assert row(app, "nodes", "n1") == "n1 up █████░░░░░ 4/8 1"
    assert row(app, "nodes", "n2") == "n2 draining ░░░░░░░░░░ 0/8"
    assert words(app, "totals").startswith(
        "2 waiting   1 running   ██░░░░░░░░ 4/16 cores   2 nodes   1 not up"
    )


@scene
async def test_an_event_is_seen_without_delay_and_the_cursor_stays_with_its_job(pilot, app, service):
    await pilot.press("down")
    assert pane(app, "waiting").chosen == "later-id"
    service.all.insert(0, job("first", estimate=Estimate(position=0, queue="a")))
    service.all[0].estimate.position = 1
    service.happened.set()
    await until(pilot, lambda: len(keys(app, "waiting")) == 3)
    assert keys(app, "waiting") == ["first-id", "next-id", "later-id"]
    assert pane(app, "waiting").chosen == "later-id"


@scene
async def test_what_changes_of_a_job_changes_in_its_row(pilot, app, service):
    service.all[1].estimate = Estimate(starts_now=True)
    service.happened.set()
    await until(pilot, lambda: "now" in row(app, "waiting", "later-id"))
    assert "no promise" not in row(app, "waiting", "later-id")


@scene
async def test_tab_goes_from_pane_to_pane(pilot, app, service):
    visited = [app.focused.id]
    for _ in range(3):
        await pilot.press("tab")
        visited.append(app.focused.id)
    assert visited == ["waiting", "running", "nodes", "waiting"]


@scene
async def test_a_filter_narrows_every_pane_until_it_is_taken_away(pilot, app, service):
    await pilot.press("slash", *"busy")
    await until(pilot, lambda: keys(app, "waiting") == [])
    assert (keys(app, "running"), keys(app, "nodes")) == (["busy-id"], ["n1"])
    assert "only busy" in words(app, "totals")
    await pilot.press("enter")
    assert isinstance(app.focused, Pane)
    assert keys(app, "running") == ["busy-id"]
    await pilot.press("escape")
    await until(pilot, lambda: len(keys(app, "waiting")) == 2)
    assert app.query_one("#filter", Input).value == ""


@scene
async def test_keys_in_the_filter_are_letters_and_no_acts(pilot, app, service):
    await pilot.press("slash", *"qk")
    assert app.query_one("#filter", Input).value == "qk"
    assert app.is_running


@scene
async def test_enter_explains_a_job(pilot, app, service):
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, Reading) and "train" in words(app, "words"))
    assert "next-id waits for its turn" in words(app, "words")
    await pilot.press("escape")
    assert not isinstance(app.screen, Reading)


@scene
async def test_enter_tells_more_of_a_node(pilot, app, service):
    await pilot.press("tab", "tab", "enter")
    await until(pilot, lambda: isinstance(app.screen, Reading) and "4 of 8 in use" in words(app, "words"))
    assert "busy (busy-id)" in words(app, "words")


@scene
async def test_a_job_is_cancelled_after_a_question(pilot, app, service):
    await pilot.press("k")
    assert isinstance(app.screen, Question)
    await pilot.press("y")
    await until(pilot, lambda: keys(app, "waiting") == ["later-id"])
    assert service.cancelled == ["next-id"]


@pytest.mark.parametrize("answer", ["n", "escape"])
def test_a_job_is_not_cancelled_without_a_yes(service, answer):
    async def play():
        async with shown(service) as pilot:
            await pilot.press("k", answer)
            assert not isinstance(pilot.app.screen, Question)
            await pilot.press("q")

    asyncio.run(play())
    assert service.cancelled == []


@scene
async def test_a_job_can_be_cancelled_while_it_is_explained(pilot, app, service):
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, Reading))
    await pilot.press("k", "y")
    await until(pilot, lambda: service.cancelled == ["next-id"])


@scene
async def test_there_is_nothing_to_cancel_among_the_nodes(pilot, app, service):
    await pilot.press("tab", "tab", "k")
    assert not isinstance(app.screen, Question)
    assert [note.message for note in app._notifications] == ["choose a job that waits or runs"]


@scene
async def test_a_refused_cancel_is_told(pilot, app, service):
    failure = Failure(code="wrong-state", message="next [is] over")
    await pilot.press("k")
    service.trouble = Refused(409, failure)
    await pilot.press("y")
    await until(pilot, lambda: any(note.message == "next [is] over" for note in app._notifications))


@scene
async def test_a_service_that_does_not_answer_is_told_and_what_was_known_stays(pilot, app, service):
    service.trouble = Unreachable("The service cannot be reached.", "Look into its log.")
    service.happened.set()
    await until(pilot, lambda: app.query_one("#trouble").display)
    assert words(app, "trouble") == "The service cannot be reached. Look into its log."
    assert keys(app, "waiting") == ["next-id", "later-id"]
    service.trouble = None
    await until(pilot, lambda: not app.query_one("#trouble").display)


@scene
async def test_names_are_never_read_as_styles(pilot, app, service):
    service.all.append(job("[red]x[/]\x1b[31m"))
    service.happened.set()
    await until(pilot, lambda: len(keys(app, "waiting")) == 3)
    assert "[red]x[/]" in row(app, "waiting", keys(app, "waiting")[2])
    assert "\x1b" not in row(app, "waiting", keys(app, "waiting")[2])


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_it_is_left_by_a_key(service, key):
    async def play():
        async with shown(service) as pilot:
            await pilot.press(key)
            await until(pilot, lambda: not pilot.app.is_running)

    asyncio.run(play())


@scene
async def test_it_is_left_even_while_somebody_is_asked(pilot, app, service):
    await pilot.press("k", "ctrl+c")
    await until(pilot, lambda: not app.is_running)
    assert service.cancelled == []


def test_of_very_many_rows_some_are_shown_and_all_are_counted(service, monkeypatch):
    monkeypatch.setattr(panes, "MOST", 10)
    service.all = [job(f"j{number}") for number in range(30)]

    async def play():
        async with shown(service) as pilot:
            await until(pilot, lambda: len(keys(pilot.app, "waiting")) == 10)
            assert pane(pilot.app, "waiting").border_title == "waiting 30, 10 shown"

    asyncio.run(play())


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (200, 60)])
def test_it_fits_terminals_of_any_size(service, size):
    async def play():
        async with shown(service, size) as pilot:
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, Reading))

    asyncio.run(play())


def test_a_watch_that_was_stopped_shows_nothing_more(service):
    seen: list[Look] = []
    looked = threading.Event()

    def show(look):
        seen.append(look)
        looked.set()

    watch = Watch(service, show)
    watch.start()
    assert looked.wait(20)
    watch.stop()
    before = len(seen)
    service.happened.set()
    wait_for(lambda: not any(thread.is_alive() for thread in watch.threads))
    assert len(seen) <= before + 1


DOCUMENT = """\
version: 1
name: NAME
attributes: {duration: 1h}
tasks:
- {name: t, command: [x], resources: {type: slot, count: 2, with: [{type: core, count: 1}]}}
"""


def test_a_real_service_is_watched_and_a_job_of_it_cancelled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def play(rehearsal):
        async with shown(rehearsal.client) as pilot:
            app = pilot.app
            for name in ("first", "second"):
                (tmp_path / f"{name}.yaml").write_text(DOCUMENT.replace("NAME", name))
                await asyncio.to_thread(rehearsal.submit, tmp_path / f"{name}.yaml")
            await until(pilot, lambda: len(keys(app, "waiting")) == len(keys(app, "running")) == 1)
            (first,), (second,) = keys(app, "running"), keys(app, "waiting")
            # A look is not one moment, and a place is known after the next pass: all of it comes in the end.
            await until(pilot, lambda: row(app, "waiting", second).startswith(f"1 {second} second"))
            await until(pilot, lambda: "1 h" in row(app, "running", first))
            await until(pilot, lambda: "██████████ 2/2" in row(app, "nodes", "node-0"))
            await pilot.press("enter")
            await until(
                pilot, lambda: isinstance(app.screen, Reading) and "at the latest" in words(app, "words")
            )
            await pilot.press("escape", "tab", "k", "y")
            await until(pilot, lambda: keys(app, "running") == [second])

    with Rehearsal(lambda order: Play(seconds=None), cores=2) as rehearsal:
        asyncio.run(play(rehearsal))
