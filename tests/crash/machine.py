"""A service that a test may kill in any way, with clients that do not give up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from jobman.client import Client, Unreachable
from jobman.control.answers import FINAL_STATES, Attempt, Details, Job, Submission
from jobman.control.embedded import ensure_service, wait_until_gone
from jobman.control.places import Places
from jobman.control.store.store import Store
from jobman.engines.failpoints import VARIABLE
from jobman.engines.local.trees import Process, process_alive
from tests.control.conftest import new_postgres
from tests.crash.entry import ARMED, DATABASE
from tests.crash.ledger import Ledger
from tests.crash.victims import Victims, kill

PATIENCE = 60.0
"""For one thing to happen, on a machine that has much else to do."""
_ENTRY = (str(Path(__file__).parent / "entry.py"),)
T = TypeVar("T")


def until(look: Callable[[], T | None], what: str = "what was waited for", seconds: float = PATIENCE) -> T:
    """What a look finds, as soon as it finds something."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not happen in {seconds:.0f} s"
        time.sleep(0.02)


class Machine:
    """A state folder, its service, and all that service starts; the store is in the folder by default."""

    def __init__(self, folder: Path, database: str | None = None, ledger: Ledger | None = None) -> None:
        folder.mkdir(exist_ok=True, parents=True)
        self.folder = folder
        self.places = Places(folder / "state")
        self.ledger = ledger or Ledger(folder)
        self.victims = Victims(self.places.state, f"LEDGER={self.ledger.path}")
        self._database = database
        self.client = self.new_client()

    @property
    def database(self) -> str:
        return self._database or f"sqlite:///{self.places.database}"

    def new_client(self) -> Client:
        """A client that starts the service where there is none."""
        return Client.embedded(self.places, program=_ENTRY)

    # -- life and death --------------------------------------------------------------------------------

    def start(self, failpoints: str = "") -> None:
        """Start the service; where it is started again later, the failpoints are forgotten."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, failpoints)
            ensure_service(self.places, _ENTRY)

    def arm(self, failpoints: str) -> None:
        """Set failpoints of the service that runs, or is started for this."""
        armed = self.places.state / ARMED
        draft = armed.with_suffix(".draft")

        def taken() -> bool:
            self.ask(lambda client: client.health())  # one that was armed before may just be dying
            return not armed.exists()

        self.places.make()
        draft.write_text(failpoints)
        draft.rename(armed)
        until(taken, "the arming of failpoints")

    @contextmanager
    def dies_at(self, point: str, hit: int = 1) -> Iterator[None]:
        """What is done meanwhile has to bring the service to a point, where it dies."""
        self.arm(f"{point}=kill@{hit}")
        [armed] = self.victims.services()
        yield
        until(lambda: not process_alive(*armed), f"the death at {point}")

    def restart(self, failpoints: str = "") -> None:
        """kill -9, and another."""
        self.kill_service()
        self.start(failpoints)

    def kill_service(self) -> None:
        kill_all(self.victims.services())
        # Its threads may hold the socket for a moment longer.
        assert wait_until_gone(self.places)

    def kill_launcher(self) -> None:
        kill_all(self.victims.launchers())

    def kill_shims(self) -> None:
        kill_all(self.victims.shims())

    def kill_everybody(self) -> None:
        """What happens when the power fails, but for the files."""

        def gone() -> bool:
            found = self.victims.everybody()
            kill_all(found)
            return not found

        until(gone, "the end of everybody")

    # -- asking ----------------------------------------------------------------------------------------

    def ask(self, call: Callable[[Client], T], client: Client | None = None, seconds: float = PATIENCE) -> T:
        """Ask the service, as often as it takes while it is killed and started."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return call(client or self.client)
            except Unreachable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def submit(self, *tasks: dict[str, Any], client: Client | None = None, **keys: Any) -> str:
        """Submit tasks under one key, however often it takes; returns the id of the job."""
        key = keys.pop("key", None) or os.urandom(8).hex()
        wanted = self.submission(*tasks, **keys)
        return self.ask(lambda client: client.submit(wanted, key=key), client).jobs[0].id

    def submission(self, *tasks: dict[str, Any], **keys: Any) -> Submission:
        """A request; keys of a submission and of its document may be given alike."""
        options = {name: keys.pop(name) for name in list(keys) if name in ("virtual", "hold", "environment")}
        return Submission(document=self.ledger.document(*tasks, **keys), cwd=str(self.folder), **options)

    def details(self, job: str) -> Details:
        return self.ask(lambda client: client.details(job))

    def state(self, job: str) -> str:
        return self.details(job).state

    def states(self, job: str) -> dict[str, str]:
        """The state of every replica."""
        return {one.key: one.state for one in self.ask(lambda client: list(client.replicas(job)))}

    def attempts(self, job: str, replica: str | None = None) -> list[Attempt]:
        return self.ask(lambda client: list(client.attempts(job, replica=replica)))

    def codes(self, job: str) -> dict[str, list[int | None]]:
        """The exit codes of all attempts, in order, by replica."""
        found: dict[str, list[int | None]] = {}
        for attempt in self.attempts(job):
            found.setdefault(attempt.replica, []).append(attempt.exit_code)
        return found

    def output(self, job: str, **filters: Any) -> list[str]:
        """The lines that copies of a job wrote."""
        return [line.text for line in self.ask(lambda client: list(client.logs(job, **filters)))]

    # -- waiting ---------------------------------------------------------------------------------------

    def wait(self, job: str, seconds: float = PATIENCE) -> Job:
        """A job when it is over."""

        def over() -> Job | None:
            found = self.details(job)
            return found if found.state in FINAL_STATES else None

        return until(over, f"the end of {job}", seconds)

    def wait_for_start(self, job: str, copies: int = 1) -> list[int]:
        """Wait until copies of a job say so in the ledger; returns their processes."""

        def started() -> list[int]:
            self.details(job)  # whoever asks starts a service that was killed
            found = [one.pid for one in self.ledger.entries(job=job)]
            return found if len(found) >= copies else []

        return until(started, f"the start of {copies} copies")

    def wait_until_running(self, job: str, copies: int = 1) -> bool:
        """Wait until the service knows that replicas of a job run."""
        self.wait_for_start(job, copies)
        return until(
            lambda: list(self.states(job).values()).count("running") >= copies, f"that {job} is running"
        )

    # -- the end ---------------------------------------------------------------------------------------

    def leaves_nothing(self) -> None:
        """Check that nothing ran twice, and that nothing is held and nobody left when all jobs are over."""
        assert self.ledger.twice() == []
        until(lambda: not self.victims.shims() and not self.victims.copies(), "the end of all copies")
        nodes = self.ask(lambda client: client.nodes())
        assert [node.jobs for node in nodes] == [[]]
        assert not any(any(node.used.values()) for node in nodes)
        with self.store() as store:
            assert store.allocations(open_only=True) == []
            found = store.unfinished()
            assert not found.jobs
            assert not found.attempts

    @contextmanager
    def store(self) -> Iterator[Store]:
        """What is written down, for those who only look."""
        store = Store.open(self.database)
        try:
            yield store
        finally:
            store.close()

    def close(self) -> None:
        self.client.close()
        self.kill_everybody()


@contextmanager
def machine_on(database: str, folder: Path) -> Iterator[Machine]:
    """A machine whose store is on `sqlite` or `postgres`, and which is gone afterwards."""
    with ExitStack() as stack:
        url = None if database == "sqlite" else stack.enter_context(new_postgres())
        yield stack.enter_context(machine_at(url, folder))


@contextmanager
def machine_at(url: str | None, folder: Path, ledger: Ledger | None = None) -> Iterator[Machine]:
    """A machine whose store is at a URL, or in its folder, and which is gone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        if url is not None:
            patch.setenv(DATABASE, url)
        machine = Machine(folder, url, ledger)
        try:
            yield machine
        finally:
            machine.close()


def kill_all(processes: list[Process]) -> None:
    """kill -9, and wait for their end."""
    for process in processes:
        kill(process)
    until(lambda: not any(process_alive(*each) for each in processes), "the end of those that were killed")
