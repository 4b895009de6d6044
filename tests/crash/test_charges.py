"""kill -9 between a charge and its commit, and a job that loses what it needs to run, on the real engine."""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import fsum
from pathlib import Path
from typing import Any

import pytest

from jobman.control.accounting.ledger import OUR_FAULT
from jobman.control.store.records import SliceRecord
from jobman.engines.local.trees import facts, process_alive
from tests.crash.machine import Machine, until

pytestmark = pytest.mark.slow

ME = pwd.getpwuid(os.geteuid()).pw_name
SECOND = "accounting: {slice: 1s}\n"
POINTS = ("director.before-commit", "director.after-commit", "store.before-commit", "store.after-commit")


def decree(tmp_path: Path, text: str) -> None:
    """Write the settings of whoever runs the service."""
    file = tmp_path / ".jobman" / "settings.yaml"
    file.parent.mkdir(exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(file)


def slices(machine: Machine, job: str) -> list[SliceRecord]:
    with machine.store() as store:
        return store.slices(job)


def wait_for_slices(machine: Machine, job: str, more: int) -> None:
    before = len(slices(machine, job))
    until(lambda: machine.details(job) and len(slices(machine, job)) >= before + more, f"{more} slices")


def check(machine: Machine, job: str) -> None:
    """That everything that was held of a job is charged once, from its beginning to its end."""
    with machine.store() as store:
        attempts = {(one.key, one.attempt): one for one in store.attempts(job).items}
        held = [one for one in store.allocations(job) if "/" not in one.key]
        balances = store.balances()
    charged = slices(machine, job)
    assert held
    for one in held:
        mine = [each for each in charged if (each.key, each.attempt) == (one.key, one.attempt)]
        used = sorted((each for each in mine if each.kind == "use"), key=lambda each: each.number)
        attempt = attempts.get((one.key, one.attempt))
        inside = [each.ended_at or 0 for (key, _), each in attempts.items() if key.startswith(f"{one.key}/")]
        ends = [end for end in inside if one.given_at <= end <= (one.returned_at or 0)]
        end = max(ends) if attempt is None else attempt.ended_at
        is_ours = any(each.reason in OUR_FAULT for each in mine)
        assert end is not None
        assert fsum(each.seconds for each in mine) == (0.0 if is_ours else max(0.0, end - one.given_at))
        assert [each.number for each in used] == list(range(len(used)))
        assert all(each.end == after.start for each, after in pairwise(used))
        assert not used or used[0].start == one.given_at
    assert fsum(each.units for each in balances) == fsum(each.units for each in charged)


@contextmanager
def death(machine: Machine, point: str) -> Iterator[None]:
    """The service dies at a point; it comes there by itself, and may have done so as soon as it is armed."""
    [service] = machine.victims.services()
    machine.arm(f"{point}=kill@1")
    yield
    until(lambda: not process_alive(*service), f"the death at {point}")


@pytest.mark.parametrize("point", POINTS)
def test_no_slice_is_charged_twice_or_left_out_when_the_service_dies_at(
    either: Machine, tmp_path: Path, point: str
) -> None:
    decree(tmp_path, SECOND)
    job = either.submit(either.ledger.task(f"until_told {either.folder}/go; end 0"))
    either.wait_until_running(job)
    for _ in range(2):
        wait_for_slices(either, job, 1)
        with death(either, point):
            pass  # nothing else happens than that slices are charged
    wait_for_slices(either, job, 1)
    with death(either, point):
        (either.folder / "go").touch()
    assert either.wait(job).state == "succeeded"
    check(either, job)
    either.leaves_nothing()


def test_what_is_held_while_no_service_lives_is_charged_and_so_is_a_group(
    machine: Machine, tmp_path: Path
) -> None:
    decree(tmp_path, SECOND)
    inside = machine.ledger.task(f"until_told {machine.folder}/go; end 0", name="inside")
    job = machine.submit(groups=[{"name": "pair", "tasks": [inside]}])
    machine.wait_until_running(job)
    machine.kill_service()
    (machine.folder / "go").touch()
    until(lambda: machine.ledger.entries("end"), "its end")
    assert machine.wait(job).state == "succeeded"
    check(machine, job)
    assert {one.key for one in slices(machine, job)} == {"pair.0"}


def test_a_group_that_starts_over_because_a_copy_was_lost_is_refunded_once(
    machine: Machine, tmp_path: Path
) -> None:
    decree(tmp_path, SECOND)
    script = f"until_told {machine.folder}/go; end 0"
    rule = {"reasons": ["node-lost"], "action": "restart-group"}
    group = {"name": "pair", "tasks": [machine.ledger.task(script, name="inside")], "on_failure": [rule]}
    job = machine.submit(groups=[group])
    machine.wait_until_running(job)
    wait_for_slices(machine, job, 2)
    machine.kill_service()
    machine.kill_launcher()
    machine.kill_shims()
    (machine.folder / "go").touch()
    [ended] = until(lambda: machine.ledger.entries("end"), "the end of the copy")
    until(lambda: facts(ended.pid) is None, "the end of its process")
    assert machine.wait(job).state == "succeeded"
    refunds = [(one.key, one.attempt, one.reason) for one in slices(machine, job) if one.kind == "refund"]
    assert refunds == [("pair.0", 1, "node-lost")]
    machine.restart()
    machine.details(job)
    check(machine, job)


# -- what a job may lose


def polite(machine: Machine) -> dict[str, Any]:
    """A task that says that it was asked to end, and takes a moment for it."""
    script = "trap 'say asked; sleep 0.2; end 0' TERM; while :; do sleep 0.05; done"
    return machine.ledger.task(script)


def lose(machine: Machine, job: str, words: str) -> None:
    """Check that a job is stopped with grace, and told why."""
    assert machine.wait(job).state == "cancelled"
    events = machine.ask(lambda client: list(client.events(job)))
    assert [event.message for event in events if event.kind == "permission-lost"] == [words]
    kinds = [event.kind for event in events]
    assert kinds.index("permission-lost") < kinds.index("stopping") < kinds.index("job-cancelled")
    assert len(machine.ledger.entries("asked", job)) == len(machine.ledger.entries("end", job)) >= 1
    check(machine, job)


ACCOUNTS = f"accounts: [{{name: physics, users: [{ME}]}}, {{name: biology, users: [{ME}]}}]\n"


def test_a_job_whose_account_is_deactivated_is_stopped_with_grace(machine: Machine, tmp_path: Path) -> None:
    decree(tmp_path, SECOND + ACCOUNTS)
    lost = machine.submit(polite(machine), account="physics")
    kept = machine.submit(polite(machine), account="biology")
    machine.wait_until_running(lost)
    machine.wait_until_running(kept)
    decree(tmp_path, SECOND + ACCOUNTS.replace("name: physics", "name: physics, active: false"))
    lose(machine, lost, "account physics is not active")
    assert machine.state(kept) == "running"
    machine.ask(lambda client: client.cancel(kept))
    machine.wait(kept)
    machine.leaves_nothing()


def test_settings_are_read_again_at_a_signal(machine: Machine, tmp_path: Path) -> None:
    decree(tmp_path, ACCOUNTS)
    job = machine.submit(polite(machine), account="physics")
    machine.wait_until_running(job)
    deactivated = ACCOUNTS.replace("name: physics", "name: physics, active: false")
    decree(tmp_path, deactivated + "queues: [{name: batch, depth: 1}]\n")
    [service] = machine.victims.services()
    os.kill(service.pid, signal.SIGHUP)
    lose(machine, job, "account physics is not active")
    notes = machine.ask(lambda client: client.status()).notes
    assert notes == ["settings that were changed count when the service starts again: queues"]
    assert machine.victims.services() == [service]


def test_a_job_whose_budget_is_used_up_is_stopped_with_grace(machine: Machine, tmp_path: Path) -> None:
    prices = "accounting: {slice: 1s, price: 3600}\n"
    decree(tmp_path, prices + ACCOUNTS.replace("name: physics", "name: physics, limits: {budget: 2.5}"))
    job = machine.submit(polite(machine), account="physics")
    assert machine.wait(job).state == "cancelled"
    [words] = [
        event.message
        for event in machine.ask(lambda client: list(client.events(job)))
        if event.kind == "permission-lost"
    ]
    assert words.startswith("the budget of physics is used up: 3")
    lose(machine, job, words)


def test_a_service_that_dies_before_it_has_stopped_a_job_does_so_afterwards(
    machine: Machine, tmp_path: Path
) -> None:
    decree(tmp_path, SECOND + ACCOUNTS)
    job = machine.submit(polite(machine), account="physics")
    machine.wait_until_running(job)
    machine.arm("director.before-acts=kill@1")
    decree(tmp_path, SECOND + ACCOUNTS.replace("name: physics", "name: physics, active: false"))
    assert machine.wait(job).state == "cancelled"
    assert machine.ledger.entries("asked", job)
    events = machine.ask(lambda client: list(client.events(job)))
    assert [event.kind for event in events].count("permission-lost") == 1
    machine.leaves_nothing()
