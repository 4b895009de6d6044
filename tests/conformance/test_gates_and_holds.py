"""Gates and holds: nothing starts before somebody says so."""

import pytest

from jobman.client import Refused
from tests.conformance.engines import Engine


def test_a_held_job_waits_for_its_release(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        hold: true
        tasks:
        - {name: work, command: [echo, done]}
    """)
    held = job.look()
    assert held.state == "waiting"
    assert held.job.held
    assert held.conditions["Held"].status
    assert "held" in job.why().summary
    assert job.why().suggestion == f"jobman release {job.id}"
    job.release()
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.tells("submitted", "released", "work.0 started")


def test_a_job_may_be_held_as_it_is_submitted(engine: Engine) -> None:
    job = engine.submit(
        """
        version: 1
        tasks:
        - {name: work, command: [echo, done]}
    """,
        hold=True,
    )
    assert job.look().state == "waiting"
    job.release()
    assert job.wait().state == "succeeded"


def test_a_held_task_lets_the_others_run(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: free, command: [echo, free]}
        - {name: kept, hold: true, command: [echo, kept]}
    """)
    before = job.until("free.0 succeeded")
    assert "kept.0 started" not in before.story
    assert [(blocker.kind, blocker.message) for blocker in job.why().blockers] == [("hold", "kept is held")]
    job.release()
    assert job.wait().lines() == ["free", "kept"]


def test_a_job_that_waits_can_be_held_and_released(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: first, command: [sh, -c, "until test -e go; do sleep 0.02; done"]}
        - {name: second, depends_on: first, command: [echo, second]}
    """)
    job.until("first.0 started")
    job.hold()
    (engine.folder / "go").touch()
    held = job.until("first.0 succeeded")
    assert held.state == "running"
    assert held.job.held
    assert "second.0 started" not in held.story
    job.release()
    assert job.wait().tells("held", "first.0 succeeded", "released", "second.0 started")


def test_a_hold_reaches_what_waits_for_resources(engine: Engine) -> None:
    job = engine.submit(
        """
        version: 1
        resources: {one: {type: core, count: 1}}
        tasks:
        - {name: first, resources: one, command: [sh, -c, "until test -e go; do sleep 0.02; done"]}
        - {name: second, resources: one, command: [echo, second]}
        - {name: third, hold: true, command: [echo, third]}
    """,
        virtual="1x1",
    )
    job.until("first.0 started")
    job.hold()
    (engine.folder / "go").touch()
    job.until("first.0 succeeded")
    other = engine.run("""
        version: 1
        tasks:
        - {name: clock, command: [sleep, "0.2"]}
    """)
    assert other.state == "succeeded"
    assert "second.0 started" not in job.look().story
    job.release()
    assert job.wait().tells("held", "first.0 succeeded", "released", "second.0 started")


def test_a_closed_gate_keeps_the_job_from_starting(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        gates: [budget, input-data]
        tasks:
        - {name: work, command: [echo, done]}
    """)
    assert job.look().conditions["GatesClosed"].status
    assert job.details().gates == {"budget": False, "input-data": False}
    job.open_gate("budget")
    assert job.details().gates == {"budget": True, "input-data": False}
    assert job.look().state == "waiting"
    assert [blocker.message for blocker in job.why().blockers] == ["the gate input-data is closed"]
    assert job.why().suggestion == f"jobman gate open {job.id} input-data"
    job.open_gate("input-data")
    outcome = job.wait()
    assert outcome.state == "succeeded"
    assert outcome.tells("gate-opened", "gate-opened", "work.0 started")


def test_a_gate_on_a_task_holds_back_that_task_only(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: free, command: [echo, free]}
        - {name: gated, gates: approval, command: [echo, gated]}
        - {name: after, depends_on: gated, command: [echo, after]}
    """)
    before = job.until("free.0 succeeded")
    assert before.lines() == ["free"]
    assert "gated: the gate approval is closed" in [blocker.message for blocker in job.why().blockers]
    job.open_gate("approval")
    assert job.wait().lines() == ["free", "gated", "after"]


def test_a_gate_on_a_group_holds_back_the_whole_group(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        groups:
        - name: batch
          gates: approval
          resources: tiny
          tasks:
          - {name: work, command: [echo, done]}
        tasks:
        - {name: beside, command: ["true"]}
    """)
    before = job.until("beside.0 succeeded")
    assert "batch.0 started" not in before.story
    job.open_gate("approval")
    assert job.wait().lines() == ["done"]


def test_a_gate_that_the_job_does_not_have_is_refused_with_those_it_has(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        gates: budget
        tasks:
        - {name: work, command: ["true"]}
    """)
    with pytest.raises(Refused) as refused:
        job.open_gate("bugdet")
    assert refused.value.code == "no-such-gate"
    assert "budget" in refused.value.failure.advice


def test_a_hold_and_a_gate_must_both_be_lifted(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: work, hold: true, gates: approval, command: [echo, done]}
    """)
    job.release()
    assert "work.0 started" not in job.look().story
    job.open_gate("approval")
    assert job.wait().tells("released", "gate-opened", "work.0 started")


def test_a_released_job_that_is_over_refuses_more(engine: Engine) -> None:
    job = engine.submit("""
        version: 1
        tasks:
        - {name: work, command: ["true"]}
    """)
    job.wait()
    for act in (job.hold, job.release, job.cancel, lambda: job.extend(1)):
        with pytest.raises(Refused) as refused:
            act()
        assert refused.value.code == "wrong-state"
