"""The conductor leads jobs to the end their documents ask for."""

import pytest

from jobman.control import happenings as h
from jobman.control.causes import Failure
from tests.control.world import FOR_EVER, World, failing, quick

ONE = "resources: {type: node, count: 1}"


def tasks(*written):
    lines = [f"- {{{task}, {ONE}}}" if "local" not in task else f"- {{{task}}}" for task in written]
    return "version: 1\ntasks:\n" + "\n".join(lines) + "\n"


def group(*written, extra=""):
    inner = "\n".join(f"  - {{{task}}}" for task in written)
    return f"version: 1\ngroups:\n- name: g\n  {ONE}\n{extra}  tasks:\n{inner}\n"


def order(world):
    return [key for key, _ in world.launched]


# -- dependencies and order ---------------------------------------------------------------------------------


def test_a_single_task_runs_once():
    world = World(tasks("name: a, command: x"), quick).run()
    assert (world.finish, world.launched) == ("succeeded", [("a.0", 1)])


def test_a_task_waits_for_the_success_of_all_replicas_of_another():
    world = World(
        tasks("name: a, command: x, replicas: 3", "name: b, command: y, depends_on: [a]"), quick, 1
    ).run()
    assert order(world) == ["a.0", "a.1", "a.2", "b.0"]


def test_what_depends_on_the_success_of_a_failure_is_skipped():
    world = World(tasks("name: a, command: x", "name: b, command: y, depends_on: [a]"), failing("a")).run()
    assert (world.finish, world.state("b.0")) == ("failed", "skipped")


@pytest.mark.parametrize(
    ("when", "fails", "runs"),
    [("any", True, True), ("any", False, True), ("failure", True, True), ("failure", False, False)],
)
def test_a_dependency_has_its_condition(when, fails, runs):
    text = tasks("name: a, command: x", f"name: b, command: y, depends_on: [{{name: a, when: {when}}}]")
    world = World(text, failing("a") if fails else quick).run()
    assert ("b.0" in order(world)) is runs


def test_one_failure_of_several_is_enough():
    text = tasks(
        "name: a, command: x",
        "name: b, command: x",
        "name: alarm, command: y, when: failure, depends_on: [a, b]",
    )
    assert "alarm.0" in order(World(text, failing("a")).run())
    assert "alarm.0" not in order(World(text, quick).run())


def test_a_started_task_is_enough_where_the_document_says_so():
    text = tasks("name: a, command: x", "name: b, command: y, depends_on: [{name: a, when: started}]")
    world = World(text, lambda key, _: (10.0 if key == "a.0" else 1.0, None)).run()
    assert [key for key, _ in world.ended] == ["b.0", "a.0"]


def test_a_local_task_holds_back_what_stands_below_it():
    world = World(group("name: first, local: true, command: x", "name: then, command: y"), quick).run()
    assert order(world) == ["g.0/first.0", "g.0/then.0"]
    assert world.most_at_once == 1


# -- groups and services ------------------------------------------------------------------------------------


SERVED = f"""\
version: 1
groups:
- name: g
  resources: {{type: node, count: 2}}
  tasks:
  - {{name: db, service: true, command: x, checks: {{ready: {{tcp: 80}}}}, {ONE}}}
  - {{name: use, command: y, depends_on: [{{name: db, when: ready}}], {ONE}}}
"""


def test_a_group_is_over_when_its_tasks_are_and_its_service_is_stopped():
    world = World(SERVED, lambda key, _: (FOR_EVER if "db" in key else 1.0, None)).run()
    assert (world.finish, order(world)) == (None, ["g.0/db.0"])
    world.tell(h.BecameReady("g.0/db.0", 1))
    assert world.run().finish == "succeeded"
    assert world.stopped == [("g.0/db.0", "its scope is over")]


def test_every_replica_of_a_group_is_a_run_of_its_own():
    world = World(group("name: a, command: x", extra="  replicas: 3\n"), quick).run()
    assert sorted(order(world)) == ["g.0/a.0", "g.1/a.0", "g.2/a.0"]


def test_a_group_that_failed_is_started_over_and_attempts_go_on_counting():
    text = group("name: a, command: x", "name: b, command: y, depends_on: [a]", extra="  retries: 1\n")
    world = World(text, failing("b", until=1)).run()
    assert world.finish == "succeeded"
    assert world.launched == [("g.0/a.0", 1), ("g.0/b.0", 1), ("g.0/a.0", 2), ("g.0/b.0", 2)]


# -- failures -----------------------------------------------------------------------------------------------


def test_a_retry_waits_longer_each_time():
    text = tasks("name: a, command: x, retries: {limit: 3, delay: 10s, factor: 2}")
    world = World(text, failing("a", until=3)).run()
    assert (world.finish, len(world.launched)) == ("succeeded", 4)
    assert world.now == 4 * 1 + 10 + 20 + 40


def test_a_retry_is_for_the_failures_it_names():
    text = tasks("name: a, command: x, retries: {limit: 3, on: {exit_codes: [75]}}")
    assert len(World(text, failing("a", code=1)).run().launched) == 1
    assert len(World(text, failing("a", code=75)).run().launched) == 4


def test_failures_that_are_not_the_task_s_own_never_count():
    def script(_key, attempt):
        return 1.0, Failure("node-lost") if attempt < 6 else None

    world = World(tasks("name: a, command: x, retries: 0"), script).run()
    assert (world.finish, len(world.launched)) == ("succeeded", 6)


@pytest.mark.parametrize(
    ("action", "finish"),
    [("ignore", "succeeded"), ("fail-task", "failed"), ("fail-job", "failed"), ("retry", "failed")],
)
def test_a_rule_says_what_follows_a_failure(action, finish):
    rule = f"on_failure: [{{exit_codes: [3], action: {action}}}]"
    text = tasks(
        f"name: a, command: x, replicas: 2, parallelism: 1, {rule}",
        "name: b, command: y, depends_on: [{name: a, when: any}]",
    )
    world = World(text, failing("a.0", code=3)).run()
    assert world.finish == finish
    assert ("b.0" in order(world)) is (action != "fail-job")
    assert order(world).count("a.0") == (4 if action == "retry" else 1)
    assert ("a.1" in order(world)) is (action in ("ignore", "retry"))


def test_a_rule_of_the_group_restarts_the_group():
    extra = "  on_failure: [{exit_codes: [9], action: restart-group}]\n"
    world = World(
        group("name: a, command: x", "name: b, command: y", extra=extra), failing("a", code=9, until=2)
    ).run()
    assert (world.finish, [attempt for key, attempt in world.launched if "a.0" in key]) == (
        "succeeded",
        [1, 2, 3],
    )


def test_a_time_limit_ends_an_attempt_and_counts_as_a_failure():
    text = tasks("name: a, command: x, retries: 1, attributes: {duration: 5s}")
    world = World(text, lambda _key, attempt: (FOR_EVER if attempt == 1 else 1.0, None)).run()
    assert (world.finish, world.stopped) == ("succeeded", [("a.0", "timeout")])


@pytest.mark.parametrize(("failure", "finish"), [(None, "succeeded"), (Failure("exit", 7), "failed")])
def test_what_ended_in_time_is_no_timeout_though_nobody_knew_in_time(failure, finish):
    late = World(tasks("name: a, command: x, attributes: {duration: 5s}"), lambda *_: (FOR_EVER, None))
    late.tell(h.Tick())
    while not late.stopped:
        assert late.step()
    late.tell(h.Ended("a.0", 1, failure, in_time=True))
    assert late.finish == finish
    assert late.conductor.replica("a.0").reason == (failure.reason if failure else "")


def test_the_document_s_retries_start_the_whole_job_over():
    text = tasks("name: a, command: x", "name: b, command: y, depends_on: [a]").replace(
        "tasks:", "retries: 2\ntasks:", 1
    )
    world = World(text, failing("b", until=2)).run()
    assert (world.finish, world.conductor.restarts) == ("succeeded", 2)
    assert world.launched == [("a.0", 1), ("b.0", 1), ("a.0", 2), ("b.0", 2), ("a.0", 3), ("b.0", 3)]


# -- replicas -----------------------------------------------------------------------------------------------


def test_parallelism_bounds_what_runs_at_once():
    world = World(tasks("name: a, command: x, replicas: 7, parallelism: 2"), quick).run()
    assert (world.finish, len(world.launched), world.most_at_once) == ("succeeded", 7, 2)


def test_completions_are_enough_and_the_rest_is_stopped():
    text = tasks("name: a, command: x, replicas: 5, completions: 2, parallelism: 2")
    world = World(text, quick).run()
    assert world.finish == "succeeded"
    assert sum(world.state(f"a.{i}") == "succeeded" for i in range(5)) == 2


def test_too_many_failures_end_a_task_early_and_few_are_forgiven():
    text = tasks("name: a, command: x, replicas: 6, parallelism: 1, max_failed: 1")
    world = World(text, failing("a")).run()
    assert (world.finish, len(world.launched)) == ("failed", 2)
    assert World(text, failing("a.3")).run().finish == "succeeded"


def test_a_success_policy_looks_at_the_replicas_it_names():
    text = tasks("name: a, command: x, replicas: 3, success: {replicas: [0]}")
    world = World(text, lambda key, _: (1.0 if key == "a.0" else 100.0, None)).run()
    assert (world.finish, world.now) == ("succeeded", 1.0)
    assert sorted(world.stopped) == [("a.1", "cancelled"), ("a.2", "cancelled")]


def test_the_document_s_parallelism_counts_all_its_tasks_and_lets_those_in_a_group_pass():
    text = f"""\
version: 1
parallelism: 2
tasks:
- {{name: many, command: x, replicas: 4, {ONE}}}
- {{group: g, name: inner}}
groups:
- name: g
  {ONE}
  tasks: [{{name: a, command: y}}]
"""
    world = World(text, quick, slots=1)
    world.tell(h.Tick())
    world.asked.sort(key=lambda key: key != "inner.0")  # The group is given the only slot.
    world.run()
    assert world.finish == "succeeded"
    assert world.most_at_once <= 2


# -- people -------------------------------------------------------------------------------------------------


def test_a_gate_keeps_a_task_waiting_until_it_is_opened():
    world = World(tasks("name: a, command: x, gates: [data]", "name: b, command: y"), quick).run()
    assert (world.finish, order(world)) == (None, ["b.0"])
    world.tell(h.GateOpened("data"))
    assert world.run().finish == "succeeded"


def test_a_job_that_is_held_starts_nothing_until_it_is_released():
    world = World(tasks("name: a, command: x").replace("tasks:", "hold: true\ntasks:", 1), quick).run()
    assert world.launched == []
    world.tell(h.Released())
    assert world.run().finish == "succeeded"


def test_a_cancelled_job_stops_and_still_cleans_up():
    text = tasks(
        "name: a, command: x",
        "name: b, command: y, depends_on: [a]",
        "name: sweep, command: z, when: always",
        "name: alarm, command: z, when: failure",
    )
    world = World(text, lambda key, _: (FOR_EVER if key == "a.0" else 1.0, None))
    world.tell(h.Tick())
    world.step()
    world.tell(h.Cancelled())
    world.run()
    assert (world.finish, order(world), world.stopped) == (
        "cancelled",
        ["a.0", "sweep.0"],
        [("a.0", "cancelled")],
    )


def test_cleanup_runs_after_the_rest_and_in_the_case_it_is_for():
    text = tasks(
        "name: sweep, command: z, when: always",
        "name: alarm, command: z, when: failure",
        "name: a, command: x",
    )
    assert order(World(text, quick).run()) == ["a.0", "sweep.0"]
    assert order(World(text, failing("a")).run()) == ["a.0", "sweep.0", "alarm.0"]


def test_news_of_an_attempt_that_is_history_changes_nothing():
    world = World(tasks("name: a, command: x, retries: 1"), failing("a", until=1)).run()
    before = world.conductor.outcome
    assert world.conductor.take(h.Ended("a.0", 1, Failure("exit", 1)), 99.0) == []
    assert world.conductor.outcome == before
