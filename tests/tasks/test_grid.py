"""A grid as a program sees it: results stream, failures are told, a broker that restarts loses nothing."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobman import tasks
from jobman.tasks import BrokerAway, Grid, GridError, TaskFailed
from jobman.tasks.courier import Courier
from jobman.tasks.mapping import Mapping
from jobman.tasks.quotas import Quota
from tests.tasks.site import Site


def numbers(count: int) -> list[int]:
    return list(range(count))


def squares(count: int) -> list[bytes]:
    return [str(number**2).encode() for number in range(count)]


def test_results_come_in_their_order(tmp_path: Path) -> None:
    with Site(tmp_path) as site, Grid(site.url) as grid:
        assert list(grid.map("square", numbers(300))) == squares(300)


def test_results_come_as_they_are_ready(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def execute(payload: bytes) -> bytes:
        if payload == b"0":
            await gate.wait()
        return payload

    with Site(tmp_path, execute) as site, Grid(site.url) as grid:
        found = grid.map("square", numbers(4), ordered=False, estimate=0.001)
        assert sorted(itertools.islice(found, 3)) == [b"1", b"2", b"3"]
        site.do(_set(gate))
        assert list(found) == [b"0"]


async def _set(gate: asyncio.Event) -> None:
    gate.set()


def test_payloads_may_have_no_end_and_are_taken_as_there_is_room(tmp_path: Path) -> None:
    taken = 0

    def endless() -> Any:
        nonlocal taken
        for number in itertools.count():
            taken += 1
            yield str(number).encode()

    with Site(tmp_path) as site, Grid(site.url) as grid:
        template, _, decode = grid._kind("square", {"estimate": 0.001})
        mapping = iter(Mapping(grid._courier(None)[0], template, endless(), decode, chunk=10, window=40))
        assert list(itertools.islice(mapping, 200)) == squares(200)
        assert taken <= 240


def test_payloads_may_be_places_that_the_worker_reads(tmp_path: Path) -> None:
    async def read(reference: bytes) -> bytes:
        return Path(reference.decode().removeprefix("file:")).read_bytes()

    (tmp_path / "one").write_bytes(b"x" * 300_000)
    with Site(tmp_path, read) as site, Grid(site.url) as grid:
        place = f"file:{tmp_path}/one"
        assert list(grid.map("square", [place], by_reference=True)) == [b"x" * 300_000]
        assert grid.submit("square", place, by_reference=True).result(60) == b"x" * 300_000
        with pytest.raises(GridError, match="no reference"):
            grid.submit("square", "nowhere", by_reference=True)
        with pytest.raises(GridError, match="by_reference"):
            grid.submit("square", b"x" * 300_000)


def test_who_waits_when_a_grid_is_closed_is_told(tmp_path: Path) -> None:
    async def never(_: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    with Site(tmp_path, never) as site:
        grid = Grid(site.url)
        handles = [grid.submit("square", b"1", priority=number) for number in range(20)]
        grid.close()
        for handle in handles:
            with pytest.raises(GridError, match="closed"):
                handle.result(60)


def test_a_failure_is_raised_in_its_turn(tmp_path: Path) -> None:
    with Site(tmp_path) as site, Grid(site.url) as grid:
        found = grid.map("square", [2, "many", 3])
        assert next(found) == b"4"
        with pytest.raises(TaskFailed, match="ValueError: invalid literal") as caught:
            next(found)
        assert (caught.value.status, caught.value.attempts) == ("failed", 1)
        assert caught.value.id.endswith("/1")


def test_failures_are_told_among_the_results_where_that_is_wanted(tmp_path: Path) -> None:
    with Site(tmp_path) as site, Grid(site.url) as grid:
        first, failed, last = grid.map("square", [2, "many", 3], errors="yield", retries=2)
        assert (first, last) == (b"4", b"9")
        assert isinstance(failed, TaskFailed)
        assert failed.attempts == 3
        assert str(failed).startswith(f"task {failed.id} failed after 3 attempts: ")
        assert str(pickle.loads(pickle.dumps(failed))) == str(failed)


def test_who_stops_in_the_middle_ends_the_rest(tmp_path: Path) -> None:
    async def execute(payload: bytes) -> bytes:
        if payload != b"0":
            await asyncio.Event().wait()
        return payload

    with Site(tmp_path, execute) as site, Grid(site.url) as grid:
        found = grid.map("square", numbers(30), estimate=0.001)
        assert next(found) == b"0"
        found.close()  # type: ignore[attr-defined]
        wait_until(lambda: grid.ask("GET", "/healthz")["open"] == 0)


def test_a_single_task_has_a_handle(tmp_path: Path) -> None:
    with Site(tmp_path) as site, Grid(site.url) as grid:
        handles = [grid.submit("square", number, priority="high") for number in range(50)]
        assert [handle.result(60) for handle in handles] == squares(50)
        assert handles[0].done()
        assert not handles[0].cancel()
        assert handles[0].id is not None


def test_a_task_that_is_cancelled_ends(tmp_path: Path) -> None:
    running = threading.Event()

    async def execute(payload: bytes) -> bytes:
        running.set()
        await asyncio.Event().wait()
        return payload

    with Site(tmp_path, execute) as site, Grid(site.url) as grid:
        handle = grid.submit("square", 1)
        assert running.wait(60)
        assert handle.cancel()
        assert handle.cancelled()
        wait_until(lambda: grid.ask("GET", "/healthz")["open"] == 0)


def test_tasks_that_are_cancelled_together_are_told_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_there = threading.Event()
    told: list[Sequence[int]] = []

    def hold_up() -> None:
        all_there.wait(60)

    def end(courier: Courier, batch: int, indexes: Sequence[int]) -> asyncio.Task[None]:
        told.append(indexes)
        return really_end(courier, batch, indexes)

    really_end = Courier.end
    monkeypatch.setattr(Courier, "end", end)
    with Site(tmp_path) as site, Grid(site.url) as grid:
        grid._courier(None)[0].soon(hold_up)
        handles = [grid.submit("square", number) for number in range(300)]
        assert all(handle.cancel() for handle in handles[1:])
        all_there.set()
        assert handles[0].result(60) == b"0"
        grid.wait()
        assert told == [list(range(1, 300))]


def test_leaving_the_grid_waits_for_what_was_submitted(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        with Grid(site.url) as grid:
            handle = grid.submit("square", 9)
        assert handle.done()


def test_what_is_here_is_forgotten_there(tmp_path: Path) -> None:
    """With the next question for results, or after a moment, or at the latest when the grid is closed."""
    with Site(tmp_path) as site:
        with Grid(site.url) as grid:
            for number in range(5):
                assert grid.submit("square", number).result(60) == str(number**2).encode()
            assert list(grid.map("square", numbers(20))) == squares(20)
        assert not site.service.broker.batches


def test_a_quota_that_is_full_is_waited_for(tmp_path: Path) -> None:
    with Site(tmp_path, quotas={"default": Quota(tasks=60)}) as site, Grid(site.url) as grid:
        assert list(grid.map("square", numbers(150), estimate=0.001)) == squares(150)


def test_what_became_of_tasks_can_be_read_from_any_place_on(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        with Grid(site.url) as grid:
            first = grid.submit_many("square", [2, 3])
            second = grid.submit_many("square", ["no"], key="once")
            assert grid.submit_many("square", ["no"], key="once") == second
            seen = list(itertools.islice(grid.results(follow=True), 3))
        with Grid(site.url) as grid:
            assert list(grid.results(after=seen[-1].place)) == []
            by_batch = {(each.batch, each.index): each for each in grid.results()}
            assert by_batch[first, 1].result == b"9"
            assert by_batch[second, 0].status == "failed"
            assert "invalid literal" in by_batch[second, 0].reason
            assert {each.batch for each in grid.results(batch=first)} == {first}


def test_tenants_do_not_see_each_other(tmp_path: Path) -> None:
    with Site(tmp_path) as site, Grid(site.url) as grid:
        assert grid.submit("square", 4, tenant="desk-a").result(60) == b"16"
        batch = grid.submit_many("square", [1], tenant="desk-a")
        assert list(grid.results(batch=batch, tenant="desk-b")) == []


def test_a_function_at_a_site_is_a_task_of_its_name(tmp_path: Path) -> None:
    with Site(tmp_path) as site, Grid(site.url) as grid:

        @grid.task(version="2")
        def square(number: int) -> int:
            raise AssertionError("this is done elsewhere")

        assert list(square.map(numbers(4))) == [0, 1, 4, 9]
        assert square.submit(5).result(60) == 25


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (lambda grid: list(grid.map("cube", [1])), "unmappable", "the known types are: square"),
        (lambda grid: list(grid.map("square", [1], version="7")), "unmappable", "1.x, 2.x"),
        (lambda grid: grid.submit("cube", 1).result(60), "unmappable", "cube"),
        (lambda grid: grid.submit("square", b"x" * 300_000), "too-large", "262,144"),
        (lambda grid: grid.submit("square", 1, priority="huge"), "wrong", "low, normal, high"),
        (lambda grid: grid.map("square", [1], errors="no"), "wrong", "raise or yield"),
        (lambda grid: grid.cancel(99), "unknown", "no batch 99"),
        (lambda grid: Grid("gopher://x"), "wrong-address", "HOST:PORT"),
    ],
)
def test_what_is_wrong_is_refused_with_advice(tmp_path: Path, call: Any, code: str, words: str) -> None:
    with Site(tmp_path) as site, Grid(site.url) as grid:
        with pytest.raises(GridError, match=words) as caught:
            call(grid)
        assert caught.value.code == code
        assert caught.value.advice


def test_nobody_who_answers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobman.tasks.courier._FIRST_PATIENCE", 0.1)
    with Grid(str(tmp_path / "nobody")) as grid, pytest.raises(BrokerAway, match="is it running"):
        grid.ask("GET", "/healthz")


def test_what_is_exported_is_there() -> None:
    assert sorted(tasks.__all__) == tasks.__all__
    assert all(getattr(tasks, name) is not None for name in tasks.__all__)


def wait_until(condition: Any) -> None:
    waiting = threading.Event()
    for _ in range(6000):
        if condition():
            return
        waiting.wait(0.01)
    raise AssertionError("it did not happen")
