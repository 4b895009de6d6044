"""What is compiled is taken by a real API server, and runs as the language says."""

import json
import os
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from jobman.engines.kubernetes.compile import CannotCompile, compile_plan, to_yaml
from jobman.settings import load_settings
from tests.engines.kubernetes.objects_of import SMALL, plan_of, target, task
from tests.engines.kubernetes.test_every_key import FILES, KEYS
from tests.engines.kubernetes.test_every_key import document as two_tasks
from tests.plan.test_features import SETTINGS, USES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.component("kubernetes"),
]
EXAMPLES = Path(__file__).parents[3] / "examples"
PATIENCE = 90


class Lab:
    """A namespace of a real cluster."""

    def __init__(self, namespace):
        self.namespace = namespace
        self._words = [
            os.environ.get("JOBMAN_LAB_KUBECTL", "kubectl"),
            f"--kubeconfig={os.environ['JOBMAN_LAB_KUBECONFIG']}",
        ]

    def kubectl(self, *words, text=None):
        done = subprocess.run(
            [*self._words, f"--namespace={self.namespace}", *words],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def text_of(self, document, settings=None, **more):
        given = {
            "namespace": self.namespace,
            "job_id": uuid.uuid4().hex[:12],
            "document": document,
            "default_image": os.environ.get("JOBMAN_LAB_KUBE_IMAGE", "localhost/jobman-busybox:1"),
        }
        return to_yaml(compile_plan(plan_of(document, settings), target(**{**given, **more})))

    def submit(self, document, **more):
        """The names of the Jobs of a document, which have been created."""
        made = self.kubectl("create", "-o", "name", "-f", "-", text=self.text_of(document, **more))
        return [line.partition("/")[2] for line in made.split() if line.startswith("job.batch/")]

    def end_of(self, job):
        """The condition with which a Job ended, and its status."""
        return self.wait(lambda: self._end_of(job))

    def _end_of(self, job):
        status = self.get("job", job)["status"]
        for condition in status.get("conditions", []):
            if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
                return condition["type"], status
        return None

    def wait(self, happened):
        """What comes of something once it has happened."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if found := happened():
                return found
            time.sleep(0.3)
        raise AssertionError(self.kubectl("get", "pods,events"))

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def pods(self, job):
        return self.get("pods", "-l", f"batch.kubernetes.io/job-name={job}")["items"]

    def logs(self, job):
        """The lines of all pods of a Job."""
        lines = []
        for pod in self.pods(job):
            lines += self.kubectl("logs", pod["metadata"]["name"]).splitlines()
        return sorted(lines)

    def outcome(self, document, **more):
        """How the only Job of a document ended, and what it said."""
        (job,) = self.submit(document, **more)
        how, _ = self.end_of(job)
        return how, self.logs(job)


@pytest.fixture(scope="module")
def lab():
    found = Lab(f"test-{uuid.uuid4().hex[:8]}")
    found.kubectl("create", "namespace", found.namespace)
    yield found
    found.kubectl("delete", "namespace", found.namespace, "--wait=false")


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "settings.yaml"
    path.write_text(SETTINGS)
    return load_settings(path)


def test_a_cluster_takes_everything_that_is_not_refused(lab, settings):
    documents = [(path.read_text(), None) for path in sorted(EXAMPLES.glob("*.yaml"))]
    documents += [(text, settings) for name, text in USES.items() if name != "flags.kubernetes"]
    documents += [(two_tasks(with_it), settings) for keys in KEYS.values() for _, with_it in keys.values()]
    texts = []
    for document, known in documents:
        try:
            texts.append(lab.text_of(document, known, files=FILES))
        except CannotCompile:
            continue
    assert len(texts) > 200
    lab.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", text="".join(texts))


def test_a_command_runs_and_what_looks_like_a_variable_of_the_cluster_stays(lab):
    document = task(command='["echo", "$(JOBMAN_TASK)", "$$", "costs $5"]')
    assert lab.outcome(document) == ("Complete", ["$(JOBMAN_TASK) $$ costs $5"])


def test_replicas_know_their_numbers(lab):
    document = task("replicas: 3", command="[sh, -c, 'echo $JOBMAN_REPLICA of $JOBMAN_REPLICAS']")
    assert lab.outcome(document) == ("Complete", ["0 of 3", "1 of 3", "2 of 3"])


def test_a_failure_with_one_code_is_tried_again_and_with_another_is_not(lab):
    script = (
        "echo $JOBMAN_REPLICA attempt $JOBMAN_ATTEMPT; exit $((75 + JOBMAN_REPLICA - JOBMAN_ATTEMPT + 1))"
    )
    (job,) = lab.submit(
        task(
            "replicas: 2, retries: {limit: 1, delay: 1s, on: {exit_codes: [75]}}",
            command=f"[sh, -c, '{script}']",
        )
    )
    how, status = lab.end_of(job)
    assert how == "Failed"
    assert lab.logs(job) == ["0 attempt 1", "0 attempt 2", "1 attempt 1"]
    assert status["failedIndexes"] == "0,1"


def test_a_failure_that_is_ignored_counts_as_success(lab):
    document = task(
        "replicas: 2, on_failure: [{exit_codes: [3-5], replicas: [1], action: ignore}]",
        command="[sh, -c, 'test $JOBMAN_REPLICA = 0 || exit 4; echo fine']",
    )
    assert lab.outcome(document) == ("Complete", ["fine"])


def test_a_rule_that_fails_the_task_stops_the_other_replicas(lab):
    (job,) = lab.submit(
        task(
            "replicas: 2, retries: 5, on_failure: [{exit_codes: 42, action: fail-task}]",
            command="[sh, -c, 'test $JOBMAN_REPLICA = 0 && exit 42; exec sleep 600']",
        )
    )
    how, status = lab.end_of(job)
    assert (how, status.get("succeeded", 0)) == ("Failed", 0)


def test_enough_successes_stop_the_rest(lab):
    (job,) = lab.submit(
        task(
            "replicas: 3, completions: 1",
            command="[sh, -c, 'test $JOBMAN_REPLICA = 1 || exec sleep 600; echo first']",
        )
    )
    assert lab.end_of(job)[0] == "Complete"


def test_copies_know_each_other_and_stand_on_nodes_of_their_own(lab):
    shape = "{type: node, count: 2, with: [{type: memory, count: 32Mi}]}"
    script = "echo $JOBMAN_RANK/$JOBMAN_SIZE on $JOBMAN_NODE_RANK/$JOBMAN_NNODES as $(hostname)"
    (job,) = lab.submit(task(command=f"[sh, -c, '{script}; echo $JOBMAN_NODELIST']", shape=shape))
    assert lab.end_of(job)[0] == "Complete"
    lines = lab.logs(job)
    assert [line for line in lines if " on " in line] == [f"{n}/2 on {n}/2 as {job}-{n}" for n in range(2)]
    assert {line for line in lines if " on " not in line} == {f"{job}-0.{job},{job}-1.{job}"}
    assert len({pod["spec"]["nodeName"] for pod in lab.pods(job)}) == 2


def test_a_replica_has_failed_when_one_of_its_copies_has(lab):
    (job,) = lab.submit(
        task(
            command="[sh, -c, 'test $JOBMAN_RANK = 0 && exit 3; exec sleep 600']",
            shape="{type: slot, count: 2}",
        )
    )
    how, status = lab.end_of(job)
    assert (how, status["failedIndexes"]) == ("Failed", "0")


def test_slots_of_a_node_share_it_and_ranks_go_on_over_nodes(lab):
    shape = "{type: node, count: 2, with: [{type: slot, count: 2, with: [{type: memory, count: 16Mi}]}]}"
    jobs = lab.submit(task(command="[sh, -c, 'echo rank $JOBMAN_RANK node $JOBMAN_NODE_RANK']", shape=shape))
    assert [lab.end_of(job)[0] for job in jobs] == ["Complete", "Complete"]
    assert [lab.logs(job) for job in jobs] == [
        ["rank 0 node 0", "rank 1 node 0"],
        ["rank 2 node 1", "rank 3 node 1"],
    ]
    nodes = [{pod["spec"]["nodeName"] for pod in lab.pods(job)} for job in jobs]
    assert [len(each) for each in nodes] == [1, 1]
    assert nodes[0] != nodes[1]


def test_files_are_there_before_the_command(lab):
    document = f"""
version: 1
tasks:
- name: a
  resources: {SMALL}
  steps:
  - {{name: write, path: say.sh, mode: "0755", content: "#!/bin/sh\\ncat /etc/told $1\\n"}}
  - {{name: write, path: /etc/told, content: "one\\n"}}
  - {{name: write, path: folder/two, content: "two\\n"}}
  command: [./say.sh, folder/two]
"""
    assert lab.outcome(document) == ("Complete", ["one", "two"])


def test_volumes_secrets_and_variables_come_from_the_cluster(lab):
    lab.kubectl("create", "secret", "generic", "portal", "--from-literal=token=hush")
    lab.kubectl("create", "configmap", "defaults", "--from-literal=level=3")
    script = (
        'set -e; df /fast | tail -n 1 | cut -d" " -f1; echo $TOKEN $ALSO_token $level; cat /run/token; echo; '
        "cat $JOBMAN_SECRET_PORTAL/token; echo; ls /conf; echo x > /big/x; echo y > $JOBMAN_SCRATCH/y"
    )
    document = f"""
version: 1
tasks:
- name: a
  resources: {SMALL}
  volumes:
  - {{name: Fast, kind: memory, size: 8Mi, to: /fast}}
  - {{name: big, kind: scratch, size: 8Mi, to: /big}}
  - {{name: conf, kind: config, config: defaults, mode: "0444", to: /conf}}
  secrets:
  - {{name: portal, key: token, variable: TOKEN, path: /run/token}}
  env_from: [{{config: defaults}}, {{secret: portal, prefix: ALSO_}}]
  command: [sh, -c, {json.dumps(script)}]
- name: b
  resources: {SMALL}
  secrets: [portal]
  command: [sh, -c, "cat $JOBMAN_SECRET_PORTAL/token"]
"""
    script_of_a = document.replace("cat $JOBMAN_SECRET_PORTAL/token; echo; ", "")
    first, second = lab.submit(script_of_a)
    assert lab.end_of(first)[0] == lab.end_of(second)[0] == "Complete"
    assert lab.logs(first) == ["hush", "hush hush 3", "level", "tmpfs"]
    assert lab.logs(second) == ["hush"]


def test_hooks_results_and_warnings_stand_around_a_command(lab):
    script = (
        'trap "echo warned; echo saved > $JOBMAN_SCRATCH/result; exit 7" USR1; while :; do sleep 0.1; done'
    )
    (job,) = lab.submit(
        task(
            "attributes: {duration: 30s}, signal: {name: USR1, before: 28s}, "
            "result_file: /jobman/scratch/result, security: {umask: '0027'}, "
            "hooks: {before: [echo, before], after: [sh, -c, 'echo after; umask']}",
            command=f"[sh, -c, '{script}']",
        )
    )
    assert lab.end_of(job)[0] == "Failed"
    assert lab.logs(job) == ["0027", "after", "before", "warned"]
    (pod,) = lab.pods(job)
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["message"]) == (7, "saved\n")


def test_a_command_in_a_shell_is_told_to_stop(lab):
    (job,) = lab.submit(
        task(
            "hooks: {after: [echo, after]}, grace: 20s",
            command="[sh, -c, 'trap \"echo asked; exit 0\" TERM; echo up; while :; do sleep 0.1; done']",
        )
    )
    lab.wait(lambda: lab.get("job", job)["status"].get("ready") and lab.logs(job) == ["up"])
    (pod,) = lab.pods(job)
    name = pod["metadata"]["name"]
    log = subprocess.Popen(
        [*lab._words, f"--namespace={lab.namespace}", "logs", "-f", name], stdout=subprocess.PIPE, text=True
    )
    lab.kubectl("delete", "job", job, "--wait=true")
    assert log.communicate(timeout=PATIENCE)[0].split() == ["up", "asked", "after"]


def test_a_check_makes_a_copy_ready_and_a_time_limit_ends_it(lab):
    (job,) = lab.submit(
        task(
            "ports: [web], attributes: {duration: 12s}, grace: 1s, "
            "checks: {started: {exec: ['true'], every: 200ms}, alive: {tcp: web}, "
            "ready: {http: {port: web, path: /hostname}, every: 1s}}",
            command="[sh, -c, 'exec busybox httpd -f -p $PORT_WEB -h /etc']",
        )
    )
    lab.wait(lambda: lab.get("job", job)["status"].get("ready"))
    assert lab.end_of(job)[0] == "Failed"
    assert lab.pods(job)[0]["status"]["reason"] == "DeadlineExceeded"


def test_a_job_that_is_held_loses_its_gates_one_by_one_and_then_runs(lab):
    (job,) = lab.submit(task("gates: [budget, data], hold: true"))
    held = lab.get("job", job)
    assert held["spec"]["suspend"] is True
    assert held["metadata"]["annotations"]["jobman.io/hold"] == "true"
    left = [gate["name"] for gate in held["spec"]["template"]["spec"]["schedulingGates"]]
    assert left == ["jobman.io/gate-budget", "jobman.io/gate-data"]
    for gates in ([{"name": left[1]}], []):
        change = {"spec": {"template": {"spec": {"schedulingGates": gates}}}}
        lab.kubectl("patch", "job", job, "--type=merge", "-p", json.dumps(change))
    lab.kubectl("patch", "job", job, "--type=merge", "-p", json.dumps({"spec": {"suspend": False}}))
    assert lab.end_of(job)[0] == "Complete"


@pytest.mark.lab("it puts labels on all nodes")
def test_alternatives_that_differ_in_facts_become_a_preference(lab):
    lab.kubectl("label", "node", "--all", "--overwrite", "compile.test/kind=plain")
    document = """
version: 1
resources:
  fine: {type: slot, count: 1, requires: {compile.test/kind: fine}, with: [{type: memory, count: 32Mi}]}
  plain: {type: slot, count: 1, requires: {compile.test/kind: plain}, with: [{type: memory, count: 32Mi}]}
tasks:
- {name: a, resources: fine|plain, command: [echo, hello]}
"""
    try:
        assert lab.outcome(document) == ("Complete", ["hello"])
    finally:
        lab.kubectl("label", "node", "--all", "compile.test/kind-")


def test_each_combination_of_a_matrix_runs_as_it_is_written(lab):
    jobs = lab.submit(task("matrix: {x: [1, 2]}", command='[sh, -c, "echo {{x}} $x $JOBMAN_REPLICA"]'))
    assert [lab.end_of(job)[0] for job in jobs] == ["Complete", "Complete"]
    assert [lab.logs(job) for job in jobs] == [["1 1 0"], ["2 2 1"]]


def test_a_copy_that_restarts_in_place_goes_on_until_it_succeeds(lab):
    script = "test -e $JOBMAN_SCRATCH/mark || { touch $JOBMAN_SCRATCH/mark; exit 1; }; echo fine"
    assert lab.outcome(task("restart: on-failure", command=f"[sh, -c, '{script}']")) == ("Complete", ["fine"])
