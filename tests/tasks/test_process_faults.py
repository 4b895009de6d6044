"""What goes wrong with real processes has the outcome that the page on short tasks says, and is told there.

A broker, agents and workers as processes of their own: an agent that stands still, workers that fall silent,
die in the middle of many tasks, hang, or complete what nobody asked for.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jobman.cli.app import app
from jobman.tasks import Grid
from jobman.tasks.leases import DEATHS
from tests.tasks.crowd import GATED, Crowd, children, crowd, kill, wait_until
from tests.tasks.entry import PINGS
from tests.tasks.test_agent import url_of
from tests.tasks.told import all_results, counters, events, held_by

pytestmark = pytest.mark.slow

POISONED = """
import os, signal
from jobman.tasks.worker import serve, this_task

book = os.open(os.environ["BOOK"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def square(payload: bytes) -> bytes:
    os.write(book, f"{this_task().id} {payload.decode()}\\n".encode())
    if payload == b"666":
        os.kill(os.getpid(), signal.SIGKILL)
    return str(int(payload) ** 2).encode()

serve(square)
"""
"""Squares numbers, many in one call, and dies of one of them."""

ODD = """
import os, signal, threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

pinged, cancelled = threading.Semaphore(0), threading.Event()

def complete(id_, body):
    agent = HTTPConnection("127.0.0.1", int(os.environ["JOBMAN_AGENT_PORT"]))
    agent.request("POST", f"/complete?id={id_}&status=completed", body)
    note(body, agent.getresponse().status)

def note(word, status):
    with open(os.environ["BOOK"] + ".told", "a") as book:
        book.write(f"{word} {status}\\n")

def freeze():
    # The second ping from now on was sent and answered in the middle of this.
    while pinged.acquire(blocking=False):
        pass
    for _ in range(3):
        pinged.acquire()
    os.kill(os.getpid(), signal.SIGSTOP)
    # The signal may stop another thread first.
    threading.Event().wait()

class Worker(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536

    def do_GET(self):
        self.answer(200, b"")
        pinged.release()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if self.path == "/cancel":
            self.answer(*self.cancel())
        elif self.path == "/execute":
            self.answer(*getattr(self, body, self.pid)(self.headers["x-jobman-task"]))
        else:
            self.answer(404, b"")

    def cancel(self):
        cancelled.set()
        return 200, b""

    def pid(self, id_):
        return 200, str(os.getpid()).encode()

    def freezes_once(self, id_):
        if self.headers["x-jobman-attempt"] == "1":
            freeze()
        return 200, b"thawed"

    def freezes_and_dies(self, id_):
        if self.headers["x-jobman-attempt"] == "1":
            freeze()
        os._exit(3)

    def hangs(self, id_):
        threading.Event().wait()

    def twice(self, id_):
        return self.later(lambda: (complete(id_, "first"), complete(id_, "second")))

    def another(self, id_):
        return self.later(lambda: (complete("1-0-1-1", "anothers"), complete(id_, "own")))

    def late(self, id_):
        note("late", 202)
        return self.later(lambda: (cancelled.wait(), complete(id_, "late")))

    def later(self, work):
        # Not before the agent has heard of it.
        self.then = work
        return 202, b""

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        if then := self.__dict__.pop("then", None):
            threading.Thread(target=then).start()

    def log_message(self, *words):
        pass

ThreadingHTTPServer(("127.0.0.1", int(os.environ["JOBMAN_WORKER_PORT"])), Worker).serve_forever()
"""
"""Does what it is told, with the standard library alone; otherwise it says who it is."""


# -- agents --------------------------------------------------------------------------------------------------


def test_an_agent_that_stands_still_loses_its_tasks_and_is_a_member_again_when_it_goes_on(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    with (
        crowd(tmp_path, url_of(tmp_path), GATED, environment={"GATE": str(gate)}, lease=2.0) as them,
        Grid(them.url) as grid,
    ):
        them.start_broker()
        them.wait_for_broker()
        them.start_agent("still", id="still")
        batch = grid.submit_many("square", [b"0", b"1", b"2"], estimate=0.01)
        wait_until(lambda: them.executed() and held_by(grid, "still") == 3)
        them.freeze("still")
        # Its worker goes on, and what that says is not heard yet.
        gate.touch()
        wait_until((tmp_path / "executed.ended").read_text)
        them.start_agent("other", id="other")
        before = all_results(grid, 3)
        assert {each.result for each in before.values()} == {b"0", b"1", b"4"}
        assert {(each.status, each.attempts > 1) for each in before.values()} == {("completed", True)}
        lost = events(grid, "agent-lost", agent="still")[-1]
        assert (lost["count"], lost["words"]) == (3, "nothing was heard of it for 2 s")
        kill(them.agents["still"].pid, signal.SIGCONT)
        wait_until(lambda: events(grid, "late-report", agent="still"))
        late = events(grid, "late-report", agent="still")[0]
        assert (late["batch"], late["index"], late["words"]) == (
            batch,
            0,
            "what it says of them is not taken",
        )
        assert all_results(grid, 3) == before
        wait_until(lambda: held_by(grid, "still") == 0)
        # The other leaves, so that what comes now is done by the one that stood still.
        them.end(them.agents["other"])
        grid.submit_many("square", [b"3", b"4"], estimate=0.01)
        after = all_results(grid, 5)
        assert {each.result for key, each in after.items() if key not in before} == {b"9", b"16"}
        assert counters(grid) == {"open": 0, "completed": 5}


# -- workers -------------------------------------------------------------------------------------------------


def test_a_worker_that_falls_silent_is_ended_and_its_task_is_tried_alone_or_given_up(tmp_path: Path) -> None:
    with crowd(tmp_path, url_of(tmp_path), ODD, environment={PINGS: "0.1 1"}) as them, Grid(them.url) as grid:
        them.start_broker()
        them.wait_for_broker()
        them.start_agent("one", id="one", on_port=True)
        batch = grid.submit_many("square", [b"freezes_once", b"freezes_and_dies"], estimate=0.1)
        found = all_results(grid, 2)
        thawed, dead = found[batch, 0], found[batch, 1]
        assert (thawed.status, thawed.result, thawed.attempts) == ("completed", b"thawed", 2)
        assert (dead.status, dead.reason, dead.attempts) == ("failed", "worker-died", DEATHS)
        # It was ended for its silence twice, and no worker while it started.
        wait_until(lambda: len(events(grid, "worker-ended")) == 4)
        endings = Counter(line["words"] for line in events(grid, "worker-ended"))
        assert endings == {"by signal 9": 2, "with exit code 3": 2}
        assert len(events(grid, "worker-silent", agent="one")) == 2
        died = [(line["index"], line["words"]) for line in events(grid, "worker-died", batch=batch)]
        assert Counter(died) == {(0, "each is tried alone"): 1, (1, "each is tried alone"): 2}
        (given_up,) = events(grid, "dead-letter")
        assert (given_up["batch"], given_up["index"]) == (batch, 1)
        assert counters(grid) == {"open": 0, "completed": 1, "failed": 1}


def test_of_many_tasks_in_one_call_the_one_that_kills_workers_is_given_up_and_all_others_are_done(
    tmp_path: Path,
) -> None:
    poison = 2  # In the first call, of which the size depends on no clock yet.
    payloads = [b"666" if index == poison else str(index).encode() for index in range(60)]
    with crowd(tmp_path, url_of(tmp_path), POISONED) as them, Grid(them.url) as grid:
        them.start_broker()
        them.wait_for_broker()
        batch = grid.submit_many("square", payloads, estimate=0.001)
        them.start_agent("one")
        found = all_results(grid, len(payloads))
        dead = found.pop((batch, poison))
        assert (dead.status, dead.reason, dead.attempts) == ("failed", "worker-died", DEATHS)
        assert {index: each.result for (_, index), each in found.items()} == {
            index: str(index**2).encode() for index in range(60) if index != poison
        }
        # It took others of its call with it once, and then nobody.
        first, second = events(grid, "worker-died", batch=batch)
        assert first["index"] == 0
        assert first["count"] > poison
        assert (second["index"], second["count"]) == (poison, 1)
        (given_up,) = events(grid, "dead-letter", batch=batch)
        assert (given_up["index"], given_up["words"]) == (poison, "3 workers died over it")
        wait_until(lambda: len(events(grid, "worker-ended")) == DEATHS)
        assert {line["words"] for line in events(grid, "worker-ended")} == {"by signal 9"}
        times = Counter(number for _, number in them.executed())
        assert times.pop(666) == DEATHS
        # Those before it were done by the worker that it killed, and done again.
        assert times == {index: 2 if index < poison else 1 for index in range(60) if index != poison}
        assert counters(grid) == {"open": 0, "completed": 59, "failed": 1}
        (letter,) = dead_letters(them)
        assert {
            name: letter[name] for name in ("batch", "index", "attempts", "deaths", "reason", "payload")
        } == {
            "batch": batch,
            "index": poison,
            "attempts": DEATHS,
            "deaths": DEATHS,
            "reason": "worker-died",
            "payload": "666",
        }


def dead_letters(them: Crowd) -> list[dict[str, Any]]:
    """As a person is told."""
    words = ["task", "dead", "list", "--broker", them.url, "-o", "json"]
    answer = CliRunner().invoke(app, words, prog_name="jobman")
    assert answer.exit_code == 0, answer.output
    found: list[dict[str, Any]] = json.loads(answer.stdout)["items"]
    return found


def test_a_worker_that_completes_twice_late_or_another_task_is_not_heard_and_works_on(tmp_path: Path) -> None:
    with crowd(tmp_path, url_of(tmp_path), ODD) as them, Grid(them.url) as grid:
        them.start_broker()
        them.wait_for_broker()
        them.start_agent("one", id="one", on_port=True)
        batch = grid.submit_many("square", [b"twice", b"another"], estimate=0.01)
        all_results(grid, 2)
        pids = set(children(them.agents["one"].pid))
        late = grid.submit_many("square", [b"late"], estimate=0.01)
        told = tmp_path / "executed.told"
        wait_until(lambda: "late 202" in told.read_text())
        grid.cancel(late)
        wait_until(lambda: "late 409" in told.read_text())
        after = grid.submit_many("square", [b"who"], estimate=0.01)
        found = all_results(grid, 4)
        assert [found[batch, index].result for index in (0, 1)] == [b"first", b"own"]
        assert (found[late, 0].status, found[late, 0].reason) == ("killed", "cancelled")
        assert {int(found[after, 0].result)} == pids
        assert sorted(told.read_text().splitlines()) == [
            "anothers 409",
            "first 200",
            "late 202",
            "late 409",
            "own 200",
            "second 409",
        ]
        wait_until(lambda: len(events(grid, "stray-answer", agent="one")) == 3)
        ids = [f"{batch:x}-0-1-1", "1-0-1-1", f"{late:x}-0-1-1"]
        assert sorted(line["words"] for line in events(grid, "stray-answer")) == sorted(
            f"of the task {id_}, for which nobody waits" for id_ in ids
        )
        assert len(events(grid, "cancelled", batch=late)) == 1
        assert counters(grid) == {"open": 0, "completed": 3, "killed": 1}


def test_a_worker_that_hangs_is_killed_after_the_deadline_and_the_next_one_works_on(tmp_path: Path) -> None:
    with crowd(tmp_path, url_of(tmp_path), ODD) as them, Grid(them.url) as grid:
        them.start_broker()
        them.wait_for_broker()
        them.start_agent("one", id="one", on_port=True)
        first = grid.submit_many("square", [b"who"], estimate=0.01)
        all_results(grid, 1)
        hung = grid.submit_many("square", [b"hangs"], estimate=0.01, deadline=3.0)
        after = grid.submit_many("square", [b"who"], estimate=0.01)
        found = all_results(grid, 3)
        assert (found[hung, 0].status, found[hung, 0].reason, found[hung, 0].attempts) == (
            "killed",
            "deadline",
            1,
        )
        assert found[first, 0].result != found[after, 0].result
        assert len(events(grid, "deadline", batch=hung)) == 1
        wait_until(lambda: events(grid, "worker-ended"))
        (killed,) = events(grid, "worker-killed", agent="one")
        assert killed["words"] == f"it did not let go of the task {hung:x}-0-1-1"
        # Nothing is known against what it executed.
        assert not events(grid, "worker-died")
        assert counters(grid) == {"open": 0, "completed": 2, "killed": 1}
