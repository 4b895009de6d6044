"""A job that somebody drives, as objects: attempts with names of their own, and doors that stay."""

# ruff: noqa: E501 - a document stands in one line

import msgspec

from jobman.engines.kubernetes.course import Course, ReplicaStands, course_data, course_of, new_course
from jobman.engines.kubernetes.driven import DrivenCompiler, kept_target, spot_of, target_from
from jobman.engines.kubernetes.features import refusals
from jobman.engines.kubernetes.objects import ConfigMap
from jobman.engines.kubernetes.target import StagedFile
from tests.engines.kubernetes.objects_of import SMALL, plan_of, target, task

GRAPH = f"""
version: 1
name: graph
tasks:
- {{name: db, service: true, command: [serve], ports: [{{name: sql, port: 5432}}], resources: {SMALL}}}
- {{name: use, command: [use], depends_on: [{{name: db, when: started}}], replicas: 2, resources: {SMALL}}}
"""
GROUPS = f"""
version: 1
name: sweep
tasks:
- {{group: fold, name: folds}}
groups:
- name: fold
  replicas: 2
  resources: {{type: node, count: 1}}
  tasks:
  - {{name: feed, service: true, command: [serve], ports: [{{name: data, port: 80}}], resources: {SMALL}}}
  - {{name: train, command: [train], depends_on: [{{name: feed, when: started}}], resources: {SMALL}}}
"""


def compiler(text, **more):
    return DrivenCompiler(plan_of(text), target(driven=True, **more))


def container(job):
    return job["spec"]["template"]["spec"]["containers"][0]


def environment(job):
    return {each["name"]: each.get("value") for each in container(job)["env"]}


def names_of(compiled, kind):
    return [each["metadata"]["name"] for _, each in compiled.objects() if each["kind"] == kind]


def test_an_attempt_is_a_job_whose_name_says_which_one_it_is():
    jobs = [compiler(GRAPH).attempt("use.1", number)[0] for number in (1, 2)]
    first, second = (job["metadata"]["name"] for job in jobs)
    assert first.endswith("-r1-a1")
    assert second.endswith("-r1-a2")
    assert compiler(GRAPH).attempt("use.1", 1) == [jobs[0]]


def test_names_of_attempts_are_never_the_same_and_fit_into_those_of_pods():
    text = GROUPS.replace("train,", f"{'a-very-long-name-of-a-task' * 2},")
    made = compiler(text)
    keys = [f"folds.{n}/{'a-very-long-name-of-a-task' * 2}.0" for n in (0, 1)]
    names = [made.attempt(key, n)[0]["metadata"]["name"] for key in keys for n in (1, 2, 11, 111)]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 50


def test_an_attempt_tries_nothing_again_by_itself():
    text = task("retries: 3, restart: on-failure, on_failure: [{exit_codes: 1, action: ignore}]")
    (job,) = compiler(text).attempt("a.0", 3)
    spec = job["spec"]
    assert spec["backoffLimit"] == 0
    assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["FailJob", "FailJob"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert container(job)["command"] == ["echo", "hello"]
    assert environment(job)["JOBMAN_ATTEMPT"] == "3"


def test_what_the_document_holds_back_is_held_back_by_whoever_drives():
    (job,) = compiler(task("hold: true, gates: [go]")).attempt("a.0", 1)
    assert "suspend" not in job["spec"]
    assert "schedulingGates" not in job["spec"]["template"]["spec"]


def test_who_listens_is_reached_by_a_name_that_stays():
    made = compiler(GRAPH)
    host = environment(made.attempt("use.0", 1)[0])["JOBMAN_HOST_DB"]
    assert host in names_of(made.compiled(), "Service")
    assert environment(made.attempt("use.1", 7)[0])["JOBMAN_HOST_DB"] == host
    (door,) = [each for _, each in made.compiled().objects() if each["metadata"]["name"] == host]
    labels = made.attempt("db.0", 4)[0]["spec"]["template"]["metadata"]["labels"]
    assert door["spec"]["selector"].items() - labels.items() == {
        ("batch.kubernetes.io/job-completion-index", "0")
    }


def test_a_replica_of_a_group_reaches_its_own_neighbours():
    made = compiler(GROUPS)
    hosts = [environment(made.attempt(f"folds.{n}/train.0", 1)[0])["JOBMAN_HOST_FEED"] for n in (0, 1)]
    assert hosts[0] != hosts[1]
    assert set(hosts) <= set(names_of(made.compiled(), "Service"))


def test_parts_of_a_replica_are_jobs_that_know_each_other():
    text = task(
        shape="{type: node, count: 2, with: [{type: slot, count: 2, with: [{type: core, count: 1}]}]}"
    )
    jobs = compiler(text).attempt("a.0", 2)
    assert [job["metadata"]["name"][-5:] for job in jobs] == ["a2-p0", "a2-p1"]
    assert len({environment(job)["JOBMAN_NODELIST"] for job in jobs}) == 1


def test_a_driver_elsewhere_makes_the_same_jobs_without_the_files():
    text = task(
        "steps: [{name: stage, path: data}, {name: write, path: a, content: b}], env_from: [{file: v.env}]"
    )
    files = {"data": (StagedFile("x", b"1" * 1000, 0o755),), "v.env": (StagedFile("", b"A=1\n"),)}
    here = target(driven=True, files=files)
    there = target_from(kept_target(here))
    assert "1111" not in kept_target(here)
    plan = plan_of(text)
    assert DrivenCompiler(plan, here).attempt("a.0", 1) == DrivenCompiler(plan, there).attempt("a.0", 1)


def test_only_the_jobs_are_made_later():
    made = compiler(GRAPH).compiled()
    assert names_of(made, "Job") == []
    assert made.anchor["kind"] == "ConfigMap"
    assert new_course(made.anchor)["metadata"]["labels"] == made.anchor["metadata"]["labels"]


def test_a_key_names_its_unit_and_its_place():
    plan = plan_of(GROUPS)
    spot = spot_of(plan, "folds.1/train.0")
    assert (spot.unit.id, spot.indices, spot.key) == ("folds/train", (1, 0), "folds.1/train.0")


def test_more_replicas_than_a_course_can_hold_are_refused():
    found = refusals(plan_of(task("replicas: 5000, depends_on: []")), target(driven=True))
    assert [each.feature for each in found] == ["replicas"]


def test_a_course_of_the_largest_job_fits_into_an_object():
    replicas = [
        ReplicaStands(
            key=f"folds.{n}/train.{n * 7919 % 4000}", unit="folds/train", index=n, state="failed", attempt=n % 9,
            since=1.7e9 + n * 1.61803, exit_code=n % 256, reason="exit", message=f"container main ended with {n * 31}",
            life={"retries": n % 4, "due": 1.7e9 + n / 3}, made=True,
        )
        for n in range(4000)
    ]  # fmt: skip
    data = course_data(Course(replicas=replicas))
    assert sum(map(len, data.values())) < 500_000
    assert course_of(ConfigMap(data=data)) == Course(replicas=replicas)


def test_the_same_course_is_the_same_text():
    course = Course(job={"b": 1, "a": [2]}, state="running")
    again = msgspec.json.decode(msgspec.json.encode(course), type=Course)
    assert course_data(course) == course_data(again)
