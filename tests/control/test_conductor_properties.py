"""Laws of the conductor, over random documents, random outcomes and interruptions at random moments."""

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from jobman.api import loads
from jobman.control import happenings as h
from jobman.control.causes import Failure
from jobman.control.conductor import Conductor
from jobman.control.keeping import cleared_record, job_state, replica_record, restore, task_record
from jobman.control.states import FINAL
from jobman.control.store.records import JobRecord
from tests.control.world import World

pytestmark = pytest.mark.slow

ONE = "resources: {type: node, count: 1}"
CONDITIONS = st.sampled_from(["success", "failure", "any", "started"])
POLICIES = st.sampled_from(
    [
        "",
        "retries: 2",
        "retries: {limit: 1, delay: 5s}",
        "max_failed: 0",
        "replicas: 3, parallelism: 1",
        "replicas: 4, completions: 2",
        "replicas: 3, success: {replicas: [1]}",
        "on_failure: [{exit_codes: [1-3], action: ignore}]",
        "on_failure: [{exit_codes: [2], action: fail-task}, {exit_codes: [3], action: fail-job}]",
        "on_failure: [{reasons: [exit], action: retry}]",
        "attributes: {duration: 3s}",
        "when: always",
        "when: failure",
        "hold: true",
        "gates: [go]",
    ]
)


@st.composite
def scopes(draw, indent, *, inside):
    """Tasks of a scope: each may wait for those above it."""
    lines = []
    for number in range(draw(st.integers(1, 4))):
        policy = draw(POLICIES)
        above = [f"t{n}" for n in range(number)]
        waits = draw(st.lists(st.sampled_from(above), unique=True, max_size=2)) if above else []
        depends = ", ".join(f"{{name: {name}, when: {draw(CONDITIONS)}}}" for name in waits)
        extra = ["watch"] if draw(st.booleans()) and "attributes" not in policy else []
        parts = [f"name: t{number}", "command: x", ONE, policy, f"depends_on: [{depends}]" if depends else ""]
        parts += ["attributes: {watch: true}"] if extra else []
        if inside and draw(st.integers(0, 4)) == 0 and not policy:
            parts[2], parts = "local: true", [*parts]
        lines.append(f"{indent}- {{{', '.join(filter(None, parts))}}}")
    return lines


@st.composite
def documents(draw):
    lines = ["version: 1"]
    lines += draw(
        st.sampled_from([[], ["retries: 1"], ["parallelism: 2"], ["max_failed: 1"], ["hold: true"]])
    )
    lines += ["tasks:", *draw(scopes("", inside=False))]
    if draw(st.booleans()):
        lines.append("- {group: g, name: inner}")
        policy = draw(st.sampled_from(["retries: 1", "replicas: 2", "gates: [go]"]))
        rule = "on_failure: [{exit_codes: [1], action: restart-group}]"
        lines += ["groups:", "- name: g", "  resources: {type: node, count: 4}"]
        lines += [f"  {draw(st.sampled_from([policy, rule]))}", "  tasks:", *draw(scopes("  ", inside=True))]
    return "\n".join(lines) + "\n"


class Recorder(World):
    """A world that also keeps everything it told the conductor, and what it was asked for."""

    def __init__(self, text, script, slots):
        super().__init__(text, script, slots)
        self.told = []
        self.answers = []

    def tell(self, happening):
        self.told.append((happening, self.now))
        requests = self.conductor.take(happening, self.now)
        self.answers.append(requests)
        for request in requests:
            self._do(request)


@st.composite
def worlds(draw):
    text = draw(documents())
    assume(loads(text).ok)
    seed = draw(st.randoms(use_true_random=False))
    ends: dict[tuple[str, int], tuple[float, Failure | None]] = {}

    def script(key, attempt):
        if (key, attempt) not in ends:
            failure = seed.choice([None, None, Failure("exit", 1), Failure("exit", 3), Failure("node-lost")])
            ends[key, attempt] = (seed.choice([0.0, 1.0, 2.5, 10.0]), failure if attempt < 5 else None)
        return ends[key, attempt]

    return Recorder(text, script, draw(st.integers(1, 6)))


INTERRUPTIONS = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.sampled_from([h.Cancelled(), h.Held(), h.Released(), h.GateOpened("go"), h.Tick()]),
    ),
    max_size=3,
)


def lead(world, interruptions):
    """Run a job with interruptions at given steps, then lift every hold and open every gate."""
    world.tell(h.Tick())
    for step in range(60):
        for _, happening in [pair for pair in interruptions if pair[0] == step]:
            world.tell(happening)
        if not world.step():
            break
    world.tell(h.GateOpened("go"))
    world.tell(h.Released())
    return world.run()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(worlds(), INTERRUPTIONS)
def test_every_job_comes_to_an_end_and_leaves_nothing_behind(world, interruptions):
    lead(world, interruptions)
    assert world.finish is not None
    assert world.is_settled
    assert (world.holding, world.asked, world.ends) == (set(), [], {})
    assert world.conductor.due() is None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(worlds(), INTERRUPTIONS)
def test_the_same_record_leads_to_the_same_requests(world, interruptions):
    lead(world, interruptions)
    again = Conductor(world.conductor.plan)
    assert [again.take(happening, now) for happening, now in world.told] == world.answers


class Forgetful(Recorder):
    """A world whose conductor dies now and then and is brought back from its records."""

    def __init__(self, text, script, slots, deaths):
        super().__init__(text, script, slots)
        self.deaths = deaths
        self.tasks, self.replicas = {}, {}

    def tell(self, happening):
        if len(self.told) in self.deaths:
            job = JobRecord(id="j", number=1, name="j", owner="me", submitted_at=0.0)
            job.conductor = msgspec.json.decode(msgspec.json.encode(job_state(self.conductor)))
            job.state = str(self.conductor.outcome or "running")
            plan = self.conductor.plan
            self.conductor = restore(plan, job, self.tasks.values(), self.replicas.values())
        super().tell(happening)
        conductor = self.conductor
        for replica in conductor.touched.values():
            self.replicas[replica.key] = replica_record(replica, "j")
        for key, unit in conductor.cleared.items():
            self.replicas[key] = cleared_record(key, unit, conductor.attempts.get(key, 0), "j")
        for run in conductor.touched_runs.values():
            record = task_record(run, "j")
            self.tasks[record.scope, record.unit] = record
        for prefix, unit in conductor.cleared_runs:
            self.tasks.pop((prefix.rstrip("/"), unit), None)
        conductor.touched, conductor.touched_runs = {}, {}
        conductor.cleared, conductor.cleared_runs = {}, {}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(worlds(), INTERRUPTIONS, st.sets(st.integers(1, 60), max_size=6))
def test_a_conductor_brought_back_from_its_records_goes_on_as_if_nothing_had_happened(
    world, interruptions, deaths
):
    forgetful = Forgetful(world.text, world.script, world.slots, deaths)
    lead(world, interruptions)
    lead(forgetful, interruptions)
    assert forgetful.launched == world.launched
    assert forgetful.answers == world.answers
    assert forgetful.finish == world.finish


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(worlds(), INTERRUPTIONS)
def test_nothing_is_asked_of_the_world_after_a_cancellation_but_cleanup(world, interruptions):
    lead(world, [*interruptions, (5, h.Cancelled())])
    cancelled = next((n for n, (what, _) in enumerate(world.told) if isinstance(what, h.Cancelled)), None)
    if cancelled is None:
        return
    asked = [r.replica for answer in world.answers[cancelled:] for r in answer if isinstance(r, h.Ask)]
    units = {replica.key: replica.run.unit for replica in world.conductor.root.walk()}
    assert all(units[key].when == "always" for key in asked)
    assert world.finish in ("cancelled", "succeeded", "failed")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(worlds())
def test_a_replica_that_is_over_stays_as_it_is(world):
    """But for a job or a group that is started over, whose replicas are new ones."""
    final: dict[int, tuple[object, str]] = {}
    world.tell(h.Tick())
    world.tell(h.GateOpened("go"))
    world.tell(h.Released())
    while world.step():
        for replica in world.conductor.root.walk():
            before = final.get(id(replica))
            assert before is None or before[1] == replica.state
            if replica.state in FINAL:
                final[id(replica)] = (replica, replica.state)
