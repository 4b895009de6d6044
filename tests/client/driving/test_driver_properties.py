"""Laws of the driver, over random documents and outcomes, and drivers that die at random moments."""

import hashlib

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from jobman.api import loads
from jobman.client.driving.lead import Wishes
from jobman.engines.kubernetes.course import course_of
from tests.client.driving.ground import SimulatedGround, driven, outcomes, plan_of, states
from tests.control.test_conductor_properties import documents

pytestmark = pytest.mark.slow

_RELAXED = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
_ENDS = [("", 0), ("", 0), ("exit", 1), ("exit", 3), ("node-lost", 0), ("", 0)]
_LENGTHS = [0.0, 1.0, 2.5, 10.0]
_LATE = 40.0
"""By then everybody has released the job, and opened its gates."""


def scripted(seed):
    """How attempts go: by chance, and always in the same way."""

    def script(key, attempt):
        number = int(hashlib.sha256(f"{seed} {key} {attempt}".encode()).hexdigest()[:8], 16)
        reason, code = _ENDS[number % len(_ENDS)] if attempt < 5 else ("", 0)
        return _LENGTHS[number // 64 % len(_LENGTHS)], reason, code

    return script


_WISHES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, 1.0, 3.0, 7.0]),
        st.sampled_from(
            [Wishes(held=True), Wishes(held=False), Wishes(cancelled=True), Wishes(gates=frozenset({"go"}))]
        ),
    ),
    max_size=2,
)


def in_turn(wishes):
    """Wishes by their time; what was wished for once stays, and in the end everything may go on."""
    found, now = {}, Wishes()
    end = (_LATE, Wishes(held=False, gates=frozenset({"go"})))
    for moment, wish in [*sorted(wishes, key=lambda pair: pair[0]), end]:
        held = wish.held if wish.held is not None else now.held
        now = Wishes(held=held, cancelled=now.cancelled or wish.cancelled, gates=now.gates | wish.gates)
        found[moment] = now
    return found


def the_whole_course(text, seed, wishes, deaths=()):
    ground = SimulatedGround(scripted(seed), in_turn(wishes))
    ground.die_at(iter(deaths))
    outcome = driven(plan_of(text), ground)
    return outcome, outcomes(ground), states(ground), sorted(ground.created), stories(ground), ground


def stories(ground):
    """What happened to each replica that began.

    Of what happens at once somebody new may hear in another order, and may tell of one that never began that
    it is cancelled, too.
    """
    told: dict[str, list[str]] = {}
    for each in course_of(ground.config).story:
        own = told.setdefault(each.replica, [])
        if each.kind != "cancelled" or own[-1:] in (["started"], ["stopping"], ["retrying"]):
            own.append(each.kind)
    return {replica: kinds for replica, kinds in told.items() if kinds}


@_RELAXED
@given(documents(), st.integers(0, 10**6), _WISHES, st.lists(st.integers(0, 60), max_size=12))
def test_a_job_whose_drivers_die_ends_as_one_whose_driver_lives(text, seed, wishes, deaths):
    assume(loads(text).ok)
    *undisturbed, ground = the_whole_course(text, seed, wishes)
    *disturbed, other = the_whole_course(text, seed, wishes, sorted(set(deaths)))
    assert disturbed == undisturbed
    assert other.time == ground.time


@_RELAXED
@given(documents(), st.integers(0, 10**6), _WISHES)
def test_nothing_runs_any_more_when_a_driven_job_is_over(text, seed, wishes):
    assume(loads(text).ok)
    *_, ground = the_whole_course(text, seed, wishes)
    assert all(one.ends <= ground.time for one in ground.tries.values())


GRAPH = """
version: 1
tasks:
- {name: first, command: x, retries: 2, replicas: 2, resources: {type: node, count: 1}}
- {name: helper, service: true, command: x, resources: {type: node, count: 1},
   checks: {ready: {exec: [x]}}}
- {name: second, command: x, depends_on: [first, {name: helper, when: ready}],
   resources: {type: node, count: 1}}
- {name: third, command: x, depends_on: [second], resources: {type: node, count: 1}}
- {name: mended, command: x, depends_on: [{name: third, when: failure}], resources: {type: node, count: 1}}
- {name: never, command: x, depends_on: [third], resources: {type: node, count: 1}}
- {name: tidy, command: x, when: always, resources: {type: node, count: 1}}
- {group: g, name: inner, depends_on: [{name: third, when: any}]}
groups:
- name: g
  replicas: 2
  resources: {type: node, count: 1}
  on_failure: [{exit_codes: [9], action: restart-group}]
  tasks:
  - {name: a, command: x, resources: {type: node, count: 1}}
  - {name: b, command: x, depends_on: [a], resources: {type: node, count: 1}}
"""


def graph_script(key, attempt):
    if key.startswith("helper"):
        return 10**6, "", 0
    if key == "third.0":
        return 1.0, "exit", 3
    if key == "first.1":
        return 1.0, *(("exit", 1) if attempt == 1 else ("", 0))
    if key == "inner.1/b.0" and attempt == 1:
        return 1.0, "exit", 9
    return 1.0, "", 0


def test_wherever_the_driver_of_a_graph_dies_it_ends_the_same_and_nothing_is_made_twice():
    whole = SimulatedGround(graph_script)
    whole.ready_after["helper"] = 2.0
    outcome = driven(plan_of(GRAPH), whole)
    assert outcome == "failed"
    expected = outcomes(whole), states(whole), sorted(whole.created)
    assert states(whole)["inner.1/b.0"] == ("succeeded", 2)
    assert states(whole)["never.0"][0] == "skipped" if "never.0" in states(whole) else True
    for death in range(whole.effects + 1):
        ground = SimulatedGround(graph_script)
        ground.ready_after["helper"] = 2.0
        ground.die_at(iter([death]))
        assert driven(plan_of(GRAPH), ground) == outcome
        assert (outcomes(ground), states(ground), sorted(ground.created)) == expected


def test_a_driver_that_dies_at_every_step_still_gets_there():
    ground = SimulatedGround(graph_script)
    ground.ready_after["helper"] = 2.0
    ground.die_at(iter(range(0, 400, 2)))
    assert driven(plan_of(GRAPH), ground) == "failed"
