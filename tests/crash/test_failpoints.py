"""What people do to jobs while the service dies at every point on the way; a small model knows the truth."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from jobman.client import Client, Refused
from jobman.control.answers import FINAL_STATES, Attempt, Job
from tests.control.conftest import new_postgres
from tests.crash.conftest import POSTGRES
from tests.crash.entry import DATABASE
from tests.crash.ledger import Ledger
from tests.crash.machine import Machine, until

pytestmark = pytest.mark.slow

POINTS = (
    "director.before-commit",
    "director.after-commit",
    "director.before-acts",
    "director.after-acts",
    "store.before-commit",
    "store.after-commit",
)
STEPS = 14
EXAMPLES = {"sqlite": 25, "postgres": 8}
GATE = "data"


def quick(ledger: Ledger, go: Path) -> dict[str, Any]:
    return {"tasks": [ledger.task("echo done; end 0")]}


def flaky(ledger: Ledger, go: Path) -> dict[str, Any]:
    return {"tasks": [ledger.task("[ $JOBMAN_ATTEMPT = 2 ] || end 75; end 0", retries=1)]}


def chain(ledger: Ledger, go: Path) -> dict[str, Any]:
    first = ledger.task("end 0", name="a", replicas=2)
    return {"tasks": [first, ledger.task("end 3", name="b", depends_on=["a"])]}


def waiting(ledger: Ledger, go: Path) -> dict[str, Any]:
    return {"tasks": [ledger.task(f"until_told {go}; end 5", suspend="freeze")]}


def requeued(ledger: Ledger, go: Path) -> dict[str, Any]:
    return {"tasks": [ledger.task(f"until_told {go}; end 0", suspend="requeue")]}


def gated(ledger: Ledger, go: Path) -> dict[str, Any]:
    return {"gates": [GATE], "tasks": [ledger.task("end 0")]}


ENDS = {quick: "succeeded", flaky: "succeeded", chain: "failed", waiting: "failed", requeued: "succeeded"}
ENDS[gated] = "succeeded"


class Known:
    """What the model knows of a job whose submission was acknowledged."""

    def __init__(self, key: str, kind: Any, go: Path, request: Any) -> None:
        self.key = key
        self.kind = kind
        self.go = go
        self.request = request
        self.id = ""
        self.is_held = False
        self.is_open = False
        self.is_cancelled = False
        self.end: str | None = None
        self.attempts: dict[tuple[str, int], Attempt] = {}


class Life(RuleBasedStateMachine):
    """One service that dies again and again."""

    database: str = "sqlite"
    jobs: Bundle[Known] = Bundle("jobs")

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="crash-"))
        self.own: AbstractContextManager[str | None] = nullcontext()
        if self.database == "postgres":
            self.own = new_postgres()
        url = self.own.__enter__()
        self.monkey = pytest.MonkeyPatch()
        if url is not None:
            self.monkey.setenv(DATABASE, url)
        self.machine = Machine(self.folder, url)
        self.known: list[Known] = []
        self.machine.start()

    # -- what people do --------------------------------------------------------------------------------

    @rule(target=jobs, kind=st.sampled_from(list(ENDS)), hold=st.booleans())
    def submit(self, kind: Any, hold: bool) -> Known:
        number = len(self.known)
        go = self.folder / f"go-{number}"
        document = kind(self.machine.ledger, go)
        request = self.machine.submission(hold=hold, virtual="1x2", **document)
        known = Known(f"key-{number}", kind, go, request)
        known.is_held = hold
        known.id = self._submit(known)
        self.known.append(known)
        return known

    @rule(known=jobs)
    def submit_again(self, known: Known) -> None:
        assert self._submit(known) == known.id

    @rule(known=jobs)
    def cancel(self, known: Known) -> None:
        known.is_cancelled |= self._act(lambda client: client.cancel(known.id))

    @rule(known=jobs)
    def hold(self, known: Known) -> None:
        known.is_held |= self._act(lambda client: client.hold(known.id))

    @rule(known=jobs)
    def release(self, known: Known) -> None:
        known.is_held &= not self._act(lambda client: client.release(known.id))

    @rule(known=jobs)
    def open_gate(self, known: Known) -> None:
        if known.kind is gated:
            known.is_open |= self._act(lambda client: client.open_gate(known.id, GATE))

    @rule(known=jobs)
    def let_go(self, known: Known) -> None:
        known.go.touch()

    # -- what happens to the service -------------------------------------------------------------------

    @rule(point=st.sampled_from(POINTS), hit=st.integers(1, 3))
    def die_at(self, point: str, hit: int) -> None:
        self._arm(f"{point}=kill@{hit}")

    @rule(point=st.sampled_from(("store.before-commit", "store.after-commit")), last=st.integers(1, 2))
    def have_no_room_at(self, point: str, last: int) -> None:
        self._arm(f"{point}=disk-full@1-{last}")

    @rule()
    def die(self) -> None:
        self.machine.kill_service()

    @rule()
    def lose_the_launcher(self) -> None:
        self.machine.kill_launcher()

    # -- what must be true -----------------------------------------------------------------------------

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        found = {job.id: job for job in self._all_jobs()}
        assert set(found) == {known.id for known in self.known}
        for known in self.known:
            self._check(known, found[known.id])
        assert self.machine.ledger.twice() == []

    def _check(self, known: Known, job: Job) -> None:
        if known.end is not None:
            assert job.state == known.end, "what is over stays as it is"
        elif job.state in FINAL_STATES:
            known.end = job.state
            assert job.state == "cancelled" or not known.is_cancelled
        else:
            assert job.held == known.is_held
            assert not known.is_open or self.machine.details(known.id).gates == {GATE: True}
        self._check_attempts(known)

    def _check_attempts(self, known: Known) -> None:
        attempts = {(one.replica, one.attempt): one for one in self.machine.attempts(known.id)}
        assert known.attempts.keys() <= attempts.keys(), "an attempt is never forgotten"
        for key, before in known.attempts.items():
            assert before.granted_at == attempts[key].granted_at, "nor its number given to another"
            assert before.ended_at is None or before == attempts[key]
        for replica in {replica for replica, _ in attempts}:
            numbers = sorted(number for each, number in attempts if each == replica)
            assert numbers == list(range(1, len(numbers) + 1))
        known.attempts = attempts

    def teardown(self) -> None:
        if not hasattr(self, "machine"):
            return
        try:
            self._end_well()
        finally:
            self.machine.close()
            self.monkey.undo()
            self.own.__exit__(None, None, None)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _end_well(self) -> None:
        """Whatever happened, every job comes to the end that it should have."""
        self._arm("")
        for known in self.known:
            known.go.touch()
            self.release(known)
            self.open_gate(known)
        for known in self.known:
            job = self.machine.wait(known.id)
            if known.end is None:
                assert job.state == ("cancelled" if known.is_cancelled else ENDS[known.kind])
        self.what_was_acknowledged_is_there()
        self.machine.leaves_nothing()

    # -- asking ----------------------------------------------------------------------------------------

    def _submit(self, known: Known) -> str:
        """Submit under its key until it is acknowledged."""

        def taken() -> str:
            try:
                answer = self.machine.ask(lambda client: client.submit(known.request, key=known.key))
            except Refused as refused:
                if refused.code != "store":
                    raise
                return ""
            return answer.jobs[0].id

        return until(taken, "an acknowledgement")

    def _act(self, call: Any) -> bool:
        """Do something to a job, surely; whether it was done, and not too late."""

        def done() -> list[bool]:
            try:
                self.machine.ask(call)
            except Refused as refused:
                if refused.code not in ("store", "wrong-state"):
                    raise
                return [False] if refused.code == "wrong-state" else []
            return [True]

        return until(done, "an answer")[0]

    def _all_jobs(self) -> list[Job]:
        def found(client: Client) -> list[Job]:
            return list(client.jobs())

        return self.machine.ask(found)

    def _arm(self, failpoints: str) -> None:
        self.machine.ask(lambda client: client.health())
        self.machine.arm(failpoints)


@pytest.mark.parametrize("database", ["sqlite", POSTGRES])
def test_what_people_were_told_stays_true_wherever_the_service_dies(database: str) -> None:
    class Here(Life):
        pass

    Here.database = database
    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=EXAMPLES[database],
            stateful_step_count=STEPS,
            suppress_health_check=list(HealthCheck),
            # An example takes seconds: what is found is worth more than a smaller one that takes an hour.
            phases=[Phase.generate],
            database=None,
        ),
    )
