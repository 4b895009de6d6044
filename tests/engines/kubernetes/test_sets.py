"""A graph as one JobSet: what it can say, what it would do in another way, and the object."""

# ruff: noqa: E501 - a document stands in one line

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.names import LONGEST_NAME
from jobman.engines.kubernetes.sets import Graph, SetCompiler, beyond_a_set
from tests.engines.kubernetes.objects_of import ID, SMALL, plan_of, target

FAIL_ALL = "on_failure: [{exit_codes: [1-255], action: fail-job}]"


def graph(*tasks, top="name: chain"):
    lines = [f"- {{command: [run], resources: {SMALL}, {each}}}" for each in tasks]
    return "\n".join(["version: 1", top, "tasks:", *lines])


CHAIN = graph(
    "name: train, replicas: 3, depends_on: prepare", "name: prepare", "name: report, depends_on: train"
)


def written(text, **more):
    return SetCompiler(plan_of(text), target(**more)).compiled()


def members(text):
    return {each["name"]: each for each in written(text).anchor["spec"]["replicatedJobs"]}


def refused(text):
    return [(each.feature, each.units) for each in beyond_a_set(plan_of(text), target())]


# -- the object ----------------------------------------------------------------------------------------------


def test_tasks_come_in_turn_whatever_the_order_they_are_written_in():
    found = members(CHAIN)
    assert list(found) == ["prepare", "train", "report"]
    assert "dependsOn" not in found["prepare"]
    assert found["train"]["dependsOn"] == [{"name": "prepare", "status": "Complete"}]
    assert found["report"]["dependsOn"] == [{"name": "train", "status": "Complete"}]
    assert found["train"]["template"]["spec"]["completions"] == 3


def test_the_set_holds_what_is_needed_to_show_the_job_and_to_run_it_again():
    anchor = written(CHAIN).anchor
    assert (anchor["kind"], anchor["metadata"]["name"]) == ("JobSet", f"chain-{ID[:6]}")
    notes = anchor["metadata"]["annotations"]
    assert {names.DOCUMENT, names.PLAN, names.DIGEST} <= set(notes)


def test_copies_are_told_the_names_that_the_controller_gives_to_pods():
    text = graph(
        "name: serve, ports: [80]", "name: use, depends_on: serve", top="name: x\ncoordinator: serve"
    )
    compiled = written(text)
    (_, use) = compiled.anchor["spec"]["replicatedJobs"]
    variables = {
        one["name"]: one.get("value")
        for one in use["template"]["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    host = f"x-{ID[:6]}-serve-0-0.x-{ID[:6]}"
    assert variables["JOBMAN_HOST_SERVE"] == variables["JOBMAN_COORDINATOR"] == host
    assert compiled.anchor["spec"]["coordinator"] == {"replicatedJob": "serve", "jobIndex": 0, "podIndex": 0}
    assert compiled.anchor["spec"]["network"] == {"enableDNSHostnames": True}


def test_the_coordinator_is_a_copy_of_the_replica_that_is_named():
    text = graph("name: a, replicas: 2", "name: b, depends_on: a", top="name: x\ncoordinator: a/1")
    assert written(text).anchor["spec"]["coordinator"]["podIndex"] == 1
    split = graph(
        f"name: a, replicas: 2, matrix: {{k: [p, q]}}, {FAIL_ALL}",
        "name: b, depends_on: a",
        top="name: x\ncoordinator: a/1",
    )
    split = split.replace("replicas: 2, ", "")
    found = written(split).anchor["spec"]["coordinator"]
    assert (found["replicatedJob"], found["podIndex"]) == ("a-1", 0)


def test_a_hold_is_that_of_the_whole_set():
    anchor = written(CHAIN.replace("name: chain", "name: chain\nhold: true", 1)).anchor
    assert anchor["spec"]["suspend"] is True
    assert anchor["metadata"]["annotations"][names.HOLD] == "true"
    for member in anchor["spec"]["replicatedJobs"]:
        assert "suspend" not in member["template"]["spec"]
        assert names.HOLD not in member["template"]["metadata"]["annotations"]


def test_readiness_is_what_a_start_is_without_a_check():
    text = graph("name: a", "name: b, depends_on: [{name: a, when: started}]", top=f"name: x\n{FAIL_ALL}")
    assert refused(text) == []
    assert members(text)["b"]["dependsOn"] == [{"name": "a", "status": "Ready"}]


def test_a_group_stands_for_its_tasks():
    inner = f"{{name: c, command: [run], resources: {SMALL}}}"
    text = graph("name: first", "name: last, depends_on: middle")
    text += f"\ngroups:\n- {{name: middle, resources: {{type: node, count: 1}}, depends_on: first, tasks: [{inner}]}}"
    assert refused(text) == []
    assert [(name, one.get("dependsOn")) for name, one in members(text).items()] == [
        ("first", None),
        ("middle-c", [{"name": "first", "status": "Complete"}]),
        ("last", [{"name": "middle-c", "status": "Complete"}]),
    ]


@given(st.text("abcXY_-.", min_size=1, max_size=60), st.text("abcXY_-.", min_size=1, max_size=60))
def test_names_fit_into_those_of_pods(job, name):
    safe = "n" + name.strip("-._") + "n"
    text = graph(f"name: {safe}", f"name: {safe}x, depends_on: {safe}", top=f"name: j{job.strip('-._')}j")
    anchor = written(text).anchor
    called = [f"{anchor['metadata']['name']}-{each['name']}-0" for each in anchor["spec"]["replicatedJobs"]]
    assert len(set(called)) == 2
    assert all(len(each) <= LONGEST_NAME for each in called)


# -- what it would do in another way -------------------------------------------------------------------------


def test_a_chain_fits():
    assert refused(CHAIN) == []


def test_parts_of_one_replica_fail_together_anyway():
    shape = "{type: node, count: 1, with: [{type: core, count: 1}]}"
    text = f"version: 1\nname: x\nresources:\n  small: {shape}\n  large: {{type: node, count: 2, with: [{{type: core, count: 2}}]}}\ntasks:\n- {{name: a, command: [run], resources: small&large}}"
    assert refused(text) == []
    assert len(members(text)) == 2
    assert ("retries", ("a",)) in refused(text.replace("command: [run]", "command: [run], retries: 1"))


@pytest.mark.parametrize(
    ("tasks", "feature"),
    [
        (["name: a", "name: b", "name: c, depends_on: [a, b]"], "depends_on.success"),
        (["name: a", "name: b, depends_on: [{name: a, when: any}]"], "depends_on.any"),
        (["name: a", "name: b, depends_on: [{name: a, when: failure}]"], "depends_on.failure"),
        (["name: a", "name: b, when: always"], "when.always"),
        (["name: a", "name: b, depends_on: a, gates: [go]"], "gates"),
        (["name: a", "name: b, depends_on: a, hold: true"], "hold"),
        (["name: a, replicas: 3, max_failed: 1", "name: b, depends_on: a"], "max_failed"),
        (["name: a, replicas: 3, completions: 2", "name: b, depends_on: a"], "completions"),
        (["name: a, matrix: {k: [p, q]}", "name: b, depends_on: a"], "matrix"),
        (["name: a, service: true", "name: b, depends_on: [{name: a, when: started}]"], "service"),
        (["name: a", "name: b, depends_on: [{name: a, when: started}]"], "depends_on.success"),
        (
            ["name: a, checks: {ready: {tcp: 80}}", "name: b, depends_on: [{name: a, when: started}]"],
            "depends_on.started",
        ),
    ],
)
def test_what_a_set_cannot_say_is_refused(tasks, feature):
    assert feature in [name for name, _ in refused(graph(*tasks))]


def test_side_by_side_is_well_where_the_first_failure_ends_the_job():
    tasks = ("name: a", "name: b", "name: c, depends_on: [a, b]")
    assert refused(graph(*tasks, top=f"name: x\n{FAIL_ALL}")) == []
    some = "on_failure: [{exit_codes: [1-9], action: fail-job}]"
    assert refused(graph(*tasks, top=f"name: x\n{some}")) != []


def test_of_two_side_by_side_both_must_let_the_job_fail():
    assert refused(graph(f"name: a, {FAIL_ALL}", "name: b", "name: c, depends_on: [a, b]")) != []


def test_more_than_five_are_not_waited_for_at_once():
    many = [f"name: t{number}" for number in range(6)]
    text = graph(*many, "name: z, depends_on: [t0, t1, t2, t3, t4, t5]", top=f"name: x\n{FAIL_ALL}")
    assert ("depends_on.success", ("z",)) in refused(text)
    six = graph(
        "name: a, matrix: {k: [1, 2, 3, 4, 5, 6]}", "name: z, depends_on: a", top=f"name: x\n{FAIL_ALL}"
    )
    assert refused(six) == [("depends_on.success", ("z",))]
    assert refused(six.replace(", 6]", "]")) == []


@pytest.mark.parametrize("key", ["parallelism: 1", "max_failed: 1", "completions: 1"])
def test_what_counts_over_the_whole_document_is_refused(key):
    assert refused(graph("name: a", "name: b, depends_on: a", top=f"name: x\n{key}")) != []


@given(st.integers(2, 7), st.data())
def test_everything_stands_behind_what_it_waits_for(count, data):
    tasks = []
    for number in range(count):
        earlier = data.draw(st.sets(st.integers(0, number - 1))) if number else set()
        waits = f", depends_on: [{', '.join(f't{one}' for one in sorted(earlier))}]" if earlier else ""
        tasks.append(f"name: t{number}{waits}")
    plan = plan_of(graph(*data.draw(st.permutations(tasks))))
    found = Graph(plan)
    seen: set[str] = set()
    for unit in found.in_turn():
        assert {edge.after for edge in found.awaited(unit)} <= found.before(unit.id) <= seen
        seen.add(unit.id)
    assert len(seen) == count
