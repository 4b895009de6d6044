"""Scheduling: who waits for the nodes is told when it starts, and starts by then; nobody's turn is taken.

The node is one of the engine's own: emulated ones belong to one job, and nobody waits for them.
"""

from __future__ import annotations

import os
import time

import pytest

from jobman.client import Refused
from tests.conformance.engines import Engine, Handle
from tests.conformance.outcome import Outcome

TWO_CORES = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a node of one core is full at once")
pytestmark = pytest.mark.usefixtures("one_node")
WAIT = "until test -e {go}; do sleep 0.02; done"


@pytest.fixture
def one_node(engine: Engine) -> None:
    engine.alone()


def whole(seconds: int, command: str = "true", **keys: object) -> str:
    """A job that needs a whole node, for so many seconds at most."""
    return job("{type: node, count: 1}", seconds, command, **keys)


def core(seconds: int, command: str = "true", **keys: object) -> str:
    return job("{type: core, count: 1}", seconds, command, **keys)


def job(shape: str, seconds: int, command: str, **keys: object) -> str:
    more = "".join(f"{name}: {value}\n" for name, value in keys.items())
    return f"""version: 1
grace: 0s
{more}tasks:
- name: work
  resources: {shape}
  attributes: {{duration: {seconds}s}}
  command: [sh, -c, "{command}"]
"""


def waiting_with(engine: Engine, document: str) -> tuple[Handle, float]:
    """A job that waits, and by when it starts."""
    handle = engine.submit(document)
    deadline = time.monotonic() + 20
    while True:
        estimate = handle.why().estimate
        if estimate is not None and estimate.guaranteed_by is not None:
            return handle, estimate.guaranteed_by
        assert time.monotonic() < deadline, f"nothing is promised: {handle.why()}"
        time.sleep(0.02)


def started(outcome: Outcome) -> float:
    return outcome.attempts("work.0")[0].started_at or 0.0


def test_who_waits_is_promised_a_start_and_starts_by_then(engine: Engine) -> None:
    first = engine.submit(whole(30, WAIT.format(go="go")))
    first.until("work.0 started")
    second, second_by = waiting_with(engine, whole(60))
    third, third_by = waiting_with(engine, whole(60))
    assert 30 <= second_by - started(first.look()) <= 45
    assert 60 <= third_by - second_by <= 75
    assert [handle.why().position for handle in (second, third)] == [1, 2]
    (engine.folder / "go").touch()
    assert started(second.wait()) <= second_by
    assert started(third.wait()) <= third_by
    assert started(second.look()) <= started(third.look())


def test_a_limit_that_is_used_up_breaks_no_promise(engine: Engine) -> None:
    first = engine.submit(whole(2, "exec sleep 600"))
    first.until("work.0 started")
    second, by = waiting_with(engine, whole(60))
    outcome = second.wait()
    assert outcome.state == "succeeded"
    assert started(outcome) <= by
    assert first.wait().reasons("work.0") == ["timeout"]
    assert "promise-moved" not in outcome.story


@TWO_CORES
def test_a_short_job_passes_a_large_one_that_is_blocked_and_a_long_one_does_not(engine: Engine) -> None:
    running = engine.submit(core(120, WAIT.format(go="go")))
    running.until("work.0 started")
    large, by = waiting_with(engine, whole(30))
    short = engine.run(core(20))
    long, _ = waiting_with(engine, core(3600))
    assert large.why().estimate.guaranteed_by == by  # type: ignore[union-attr]
    assert large.look().state == "waiting"
    (engine.folder / "go").touch()
    assert started(short) < started(large.wait()) <= started(long.wait())


def test_an_interactive_queue_keeps_the_order_of_submission(engine: Engine) -> None:
    running = engine.submit(whole(60, WAIT.format(go="go"), queue="interactive"))
    running.until("work.0 started")
    handles = [
        waiting_with(engine, whole(20, queue="interactive", priority=priority))[0]
        for priority in ("low", "normal", "high")
    ]
    assert [handle.why().queue for handle in handles] == ["interactive"] * 3
    (engine.folder / "go").touch()
    starts = [started(handle.wait()) for handle in handles]
    assert starts == sorted(starts)


def test_more_time_is_granted_only_as_far_as_nobody_is_delayed(engine: Engine) -> None:
    running = engine.submit(whole(30, WAIT.format(go="go")))
    running.until("work.0 started")
    running.extend(60)
    _, by = waiting_with(engine, whole(30))
    assert 90 <= by - started(running.look()) <= 105
    with pytest.raises(Refused) as refused:
        running.extend(60)
    assert refused.value.code == "would-delay"
    (engine.folder / "go").touch()
    assert running.wait().state == "succeeded"


def test_behind_something_without_a_limit_nothing_is_promised(engine: Engine) -> None:
    endless = engine.submit("""
        version: 1
        tasks:
        - {name: work, resources: {type: node, count: 1}, command: [sleep, "600"]}
    """)
    endless.until("work.0 started")
    waiting = engine.submit(whole(30))
    waiting.until("submitted")
    why = waiting.why()
    assert why.blockers
    assert why.estimate is None or why.estimate.guaranteed_by is None
    endless.cancel()
    assert waiting.wait().state == "succeeded"


def test_a_cancelled_job_makes_room_in_the_plan(engine: Engine) -> None:
    running = engine.submit(whole(60, WAIT.format(go="go")))
    running.until("work.0 started")
    first, by = waiting_with(engine, whole(600))
    second, later = waiting_with(engine, whole(30))
    assert later >= by + 600
    first.cancel()
    first.wait()
    deadline = time.monotonic() + 20
    while (second.why().estimate.guaranteed_by or later) > by + 1:  # type: ignore[union-attr]
        assert time.monotonic() < deadline, second.why()
        time.sleep(0.02)
    (engine.folder / "go").touch()
    assert second.wait().state == "succeeded"


def test_every_factor_of_a_priority_is_told(engine: Engine) -> None:
    running = engine.submit(whole(60, WAIT.format(go="go")))
    running.until("work.0 started")
    handle, _ = waiting_with(engine, whole(30, priority="high"))
    why = handle.why()
    assert why.priority == pytest.approx(sum(factor.contribution for factor in why.factors))
    assert {factor.name for factor in why.factors} >= {"priority", "age", "fair share"}
    (engine.folder / "go").touch()
    handle.wait()
