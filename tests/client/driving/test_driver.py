"""What a driver does, on a simulated cluster: one scene for each promise."""

import asyncio

import pytest

from jobman.client.driving.driver import Driver
from jobman.client.driving.lead import Wishes
from jobman.engines.kubernetes.course import course_of
from tests.client.driving.ground import Died, SimulatedGround, driven, outcomes, plan_of, states, story

ONE = "resources: {type: node, count: 1}"
CHAIN = f"""
version: 1
tasks:
- {{name: a, command: x, {ONE}}}
- {{name: b, command: x, depends_on: [a], {ONE}}}
- {{name: tidy, command: x, when: always, {ONE}}}
"""


def quick(_key, _attempt):
    return 1.0, "", 0


def failing(_key, _attempt):
    return 1.0, "exit", 1


def step(plan, ground, count=1):
    """Let one driver take some steps."""

    async def scenario():
        driver = Driver(plan, course_of(ground.config), 0.0, ground)
        for _ in range(count):
            await driver.step()

    asyncio.run(scenario())


def test_tasks_come_one_after_the_other():
    ground = SimulatedGround(quick)
    assert driven(plan_of(CHAIN), ground) == "succeeded"
    assert ground.created == [("a.0", 1), ("b.0", 1), ("tidy.0", 1)]


def test_what_happens_is_told_in_the_order_in_which_it_did():
    text = f"""
version: 1
tasks:
- {{name: s, service: true, command: x, checks: {{ready: {{exec: [x]}}}}, {ONE}}}
- {{group: g, name: inner, depends_on: [{{name: s, when: ready}}]}}
- {{name: never, command: x, depends_on: [{{name: inner, when: failure}}], {ONE}}}
groups:
- name: g
  resources: {{type: node, count: 1}}
  tasks: [{{name: a, command: x, retries: 1, {ONE}}}]
"""

    def script(key, attempt):
        failed = key == "inner.0/a.0" and attempt == 1
        return 10**6 if key == "s.0" else 1.0, "exit" if failed else "", int(failed)

    ground = SimulatedGround(script)
    ground.ready_after["s"] = 3.0
    assert driven(plan_of(text), ground) == "succeeded"
    assert story(ground) == [
        "s.0 started",
        "s.0 ready",
        "inner.0 started",
        "inner.0/a.0 started",
        "inner.0/a.0 retrying",
        "inner.0/a.0 started",
        "inner.0/a.0 succeeded",
        "inner.0 succeeded",
        "never.0 skipped",
        "s.0 stopping",
        "s.0 succeeded",
    ]


def test_a_retry_is_an_attempt_of_its_own_and_counts_through_deaths():
    text = f"version: 1\ntasks: [{{name: a, command: x, retries: 1, {ONE}}}]"
    for death in range(14):
        ground = SimulatedGround(failing)
        ground.die_at(iter([death]))
        assert driven(plan_of(text), ground) == "failed"
        assert ground.created == [("a.0", 1), ("a.0", 2)]


def test_a_lost_node_never_counts():
    text = f"version: 1\ntasks: [{{name: a, command: x, {ONE}}}]"
    ground = SimulatedGround(lambda _key, attempt: (1.0, "node-lost" if attempt < 4 else "", 0))
    assert driven(plan_of(text), ground) == "succeeded"
    assert states(ground)["a.0"] == ("succeeded", 4)


def test_a_job_that_somebody_deleted_is_not_made_again_but_tried_again():
    plan, ground = plan_of(CHAIN), SimulatedGround(quick)
    step(plan, ground, 2)
    ground.delete(("a.0", 1))
    assert driven(plan, ground) == "succeeded"
    assert ground.created == [("a.0", 1), ("a.0", 2), ("b.0", 1), ("tidy.0", 1)]


def test_what_was_decided_but_never_made_is_stopped_by_taking_its_name():
    """A driver that died may still be on its way to the cluster: nothing it makes may run."""
    plan, ground = plan_of(CHAIN), SimulatedGround(quick, {5.0: Wishes(cancelled=True)})
    ground.die_at(iter([2]))
    with pytest.raises(Died):
        step(plan, ground)
    assert course_of(ground.config).replicas[0].state == "starting"
    assert ground.created == []
    ground.time = 6.0
    assert driven(plan, ground) == "cancelled"
    assert ground.tries["a.0", 1].stopped
    assert states(ground)["a.0"][0] == "cancelled"


def test_what_is_not_let_in_now_is_tried_again_later():
    ground = SimulatedGround(quick)
    ground.refused["a"] = 3
    assert driven(plan_of(CHAIN), ground) == "succeeded"
    assert ground.time > 15


def test_a_cancelled_job_still_tidies_up():
    ground = SimulatedGround(lambda _key, _attempt: (100.0, "", 0), {2.0: Wishes(cancelled=True)})
    assert driven(plan_of(CHAIN), ground) == "cancelled"
    assert ground.tries["a.0", 1].stopped
    assert outcomes(ground)["", "tidy"] == "succeeded"
    assert ("b.0", 1) not in ground.created


def test_a_held_job_starts_nothing_new_until_it_is_released():
    wishes = {0.5: Wishes(held=True), 50.0: Wishes(held=False)}
    ground = SimulatedGround(quick, wishes)
    assert driven(plan_of(CHAIN), ground) == "succeeded"
    assert ground.tries["b.0", 1].made == 50.0


def test_a_gate_of_a_task_is_waited_for():
    text = f"version: 1\ntasks: [{{name: a, command: x, gates: [go], {ONE}}}]"
    ground = SimulatedGround(quick, {30.0: Wishes(gates=frozenset({"go"}))})
    assert driven(plan_of(text), ground) == "succeeded"
    assert ground.tries["a.0", 1].made == 30.0


def test_a_task_that_ended_before_it_was_seen_to_run_had_started_all_the_same():
    text = f"""
version: 1
tasks:
- {{name: a, command: x, {ONE}}}
- {{name: b, command: x, depends_on: [{{name: a, when: started}}], {ONE}}}
"""
    plan, ground = plan_of(text), SimulatedGround(quick)
    step(plan, ground)
    ground.time = 1000.0
    assert driven(plan, ground) == "succeeded"
    assert outcomes(ground)["", "b"] == "succeeded"


def test_a_time_limit_stops_an_attempt():
    text = f"version: 1\ntasks: [{{name: a, command: x, attributes: {{duration: 5s}}, {ONE}}}]"
    ground = SimulatedGround(lambda _key, _attempt: (100.0, "", 0))
    assert driven(plan_of(text), ground) == "failed"
    assert course_of(ground.config).failure == ("a.0", "timeout", 143)
    assert ground.halted == {("a.0", 1): "timeout"}, "the attempt itself is told why"


def test_a_service_runs_until_the_work_is_over():
    text = f"""
version: 1
tasks:
- {{name: s, service: true, command: x, restart: always, {ONE}}}
- {{name: a, command: x, depends_on: [{{name: s, when: started}}], {ONE}}}
"""
    ground = SimulatedGround(lambda key, _attempt: (1.0 if key == "s.0" else 4.0, "", 0))
    assert driven(plan_of(text), ground) == "succeeded"
    assert states(ground)["s.0"][1] > 1
    assert all(one.ends <= ground.time for one in ground.tries.values())


def test_a_start_window_is_kept():
    text = f"version: 1\nstart: {{earliest: +1m}}\ntasks: [{{name: a, command: x, {ONE}}}]"
    ground = SimulatedGround(quick)
    assert driven(plan_of(text), ground) == "succeeded"
    assert ground.tries["a.0", 1].made == 60.0


def test_what_ran_before_the_whole_job_started_over_is_told_as_it_is_now():
    text = f"""
version: 1
retries: 1
tasks:
- {{name: a, command: x, {ONE}}}
- {{name: b, command: x, depends_on: [{{name: a, when: failure}}], {ONE}}}
"""
    ground = SimulatedGround(
        lambda key, attempt: (1.0, *(("exit", 1) if (key, attempt) == ("a.0", 1) else ("", 0)))
    )
    assert driven(plan_of(text), ground) == "succeeded"
    assert states(ground) == {"a.0": ("succeeded", 2), "b.0": ("skipped", 1)}
