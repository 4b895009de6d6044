"""A model of what people were told about their jobs, beside the service that told them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from jobman.client import Client, Refused
from jobman.control.answers import FINAL_STATES, Attempt, Job, Submission
from tests.crash.ledger import Ledger
from tests.crash.machine import Machine, until

GATE = "data"


class Kind(NamedTuple):
    """A kind of job: its tasks, which may wait for a file, and its end."""

    name: str
    tasks: Callable[[Ledger, Path], list[dict[str, Any]]]
    end: str
    waits: bool = False
    gates: tuple[str, ...] = ()


def quick(ledger: Ledger, _: Path) -> list[dict[str, Any]]:
    return [ledger.task("echo done; end 0")]


def flaky(ledger: Ledger, _: Path) -> list[dict[str, Any]]:
    return [ledger.task("[ $JOBMAN_ATTEMPT = 2 ] || end 75; end 0", retries=1)]


def chain(ledger: Ledger, _: Path) -> list[dict[str, Any]]:
    first = ledger.task("end 0", name="a", replicas=2)
    return [first, ledger.task("end 3", name="b", depends_on=["a"])]


def frozen(ledger: Ledger, go: Path) -> list[dict[str, Any]]:
    return [ledger.task(f"until_told {go}; end 5", suspend="freeze")]


def requeued(ledger: Ledger, go: Path) -> list[dict[str, Any]]:
    return [ledger.task(f"until_told {go}; end 0", suspend="requeue")]


KINDS = (
    Kind("quick", quick, "succeeded"),
    Kind("flaky", flaky, "succeeded"),
    Kind("chain", chain, "failed"),
    Kind("frozen", frozen, "failed", waits=True),
    Kind("requeued", requeued, "succeeded", waits=True),
    Kind("gated", quick, "succeeded", gates=(GATE,)),
)


class Known:
    """What the model knows of a job whose submission was acknowledged."""

    def __init__(self, key: str, kind: Kind, go: Path, request: Submission) -> None:
        self.key = key
        self.kind = kind
        self.go = go
        self.request = request
        self.id = ""
        self.is_held = False
        self.is_cancelled = False
        self.is_open = not kind.gates
        self.end: str | None = None
        self.attempts: dict[tuple[str, int], Attempt] = {}

    @property
    def can_end(self) -> bool:
        return self.is_cancelled or not (self.is_held or (self.kind.waits and not self.go.exists()))


class Life:
    """One service that dies again and again, and those who use it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.known: list[Known] = []
        self.services: set[int] = set()
        """Their processes, so that it is known how many there were."""

    def meet(self) -> None:
        """Note which service it is that answers now."""
        self.services.add(self.machine.ask(lambda client: client.status()).pid)

    # -- what people do --------------------------------------------------------------------------------

    def submit(self, kind: Kind, *, hold: bool = False) -> None:
        number = len(self.known)
        go = self.machine.folder / f"go-{number}"
        request = self.machine.submission(
            *kind.tasks(self.machine.ledger, go), gates=kind.gates, hold=hold, virtual="1x2"
        )
        known = Known(f"key-{number}", kind, go, request)
        known.is_held = hold
        known.id = self._submit(known)
        self.known.append(known)

    def submit_again(self, known: Known) -> None:
        assert self._submit(known) == known.id

    def cancel(self, known: Known) -> None:
        known.is_cancelled |= self._act(lambda client: client.cancel(known.id))

    def hold(self, known: Known) -> None:
        known.is_held |= self._act(lambda client: client.hold(known.id))

    def release(self, known: Known) -> None:
        known.is_held &= not self._act(lambda client: client.release(known.id))

    def open_gates(self, known: Known) -> None:
        for gate in known.kind.gates:
            known.is_open |= self._act(lambda client: client.open_gate(known.id, gate))  # noqa: B023

    def let_go(self, known: Known) -> None:
        known.go.touch()

    def await_the_end(self, known: Known) -> None:
        if known.can_end and known.is_open:
            self.machine.wait(known.id)

    def lose_the_launcher(self, _: Known) -> None:
        self.machine.kill_launcher()

    # -- what must be true -----------------------------------------------------------------------------

    def check(self) -> None:
        """What was acknowledged is there, and what was once true of it still is."""
        started = {
            (one.job, f"{one.task}.{one.replica}", one.attempt) for one in self.machine.ledger.entries()
        }
        assert self.machine.ledger.twice() == []
        jobs = {job.id: job for job in self.machine.ask(_all_jobs)}
        self.meet()
        assert set(jobs) == {known.id for known in self.known}
        for known in self.known:
            self._check_state(known, jobs[known.id])
            self._check_attempts(known)
        attempts = {(known.id, *attempt) for known in self.known for attempt in known.attempts}
        assert started <= attempts, "nothing runs that was not written down before"

    def _check_state(self, known: Known, job: Job) -> None:
        if known.end is not None:
            assert job.state == known.end, "what is over stays as it is"
        elif job.state in FINAL_STATES:
            known.end = job.state
            assert job.state == ("cancelled" if known.is_cancelled else known.kind.end)
            self._check_events(known)
        else:
            assert job.held == known.is_held
            assert known.is_open == all(self.machine.details(known.id).gates.values())

    def _check_events(self, known: Known) -> None:
        kinds = [event.kind for event in self.machine.ask(lambda client: list(client.events(known.id)))]
        assert kinds.count("submitted") == 1
        assert kinds.count(f"job-{known.end}") == 1
        assert kinds[-1] == f"job-{known.end}"

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

    def end_well(self) -> None:
        """Whatever happened, every job comes to the end that it should have."""
        self.machine.arm("")
        for known in self.known:
            known.go.touch()
            self.release(known)
            self.open_gates(known)
        for known in self.known:
            self.machine.wait(known.id)
        self.check()
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

    def _act(self, call: Callable[[Client], Job]) -> bool:
        """Do something to a job, surely; false where it was too late for that."""

        def done() -> list[bool]:
            try:
                self.machine.ask(call)
            except Refused as refused:
                if refused.code not in ("store", "wrong-state"):
                    raise
                return [False] if refused.code == "wrong-state" else []
            return [True]

        return until(done, "an answer")[0]


def _all_jobs(client: Client) -> list[Job]:
    return list(client.jobs())
