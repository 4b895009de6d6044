"""Every feature is in what comes out, or refused: nothing is dropped in silence."""

# ruff: noqa: E501 - a document stands in one line

from typing import Any

import pytest

from jobman.engines.kubernetes.compile import CannotCompile
from jobman.engines.kubernetes.driven import DrivenCompiler
from jobman.engines.kubernetes.driving import DRIVEN, ONLY_DRIVEN, needs_driver
from jobman.engines.kubernetes.features import FEATURES, refusals
from jobman.engines.kubernetes.shell import Around, command
from jobman.engines.kubernetes.target import StagedFile
from jobman.plan.features import CATALOGUE
from jobman.settings import load_settings
from tests.engines.kubernetes.objects_of import SMALL, compiled, plan_of, target, task
from tests.plan.test_features import SETTINGS, USES

FILES = {
    "a": (StagedFile("", b"text"),),
    "data": (StagedFile("x", b"1"), StagedFile("y", b"\xff")),
    "v.env": (StagedFile("", b"A=1\n"),),
}

COMPILED = {
    "labels": ("metadata.labels.a", "b"),
    "annotations": ("metadata.annotations.a", "b"),
    "managed_by": ("metadata.labels.app~kubernetes~io/managed-by", "make"),
    "owner": ("metadata.labels.app~kubernetes~io/part-of", "me"),
    "command": ("pod.containers.0.command", ["echo"]),
    "replicas": ("spec.completions", 2),
    "image": ("pod.containers.0.image", "a:1"),
    "shape.node": ("metadata.labels.jobman~io/task", "task-1"),
    "shape.slot": ("spec.completions", 2),
    "shape.anywhere": ("spec.completions", 2),
    "shape.exclusive": ("pod.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.labelSelector.matchExpressions.0.key", "jobman.io/job"),
    "shape.core": ("pod.containers.0.resources.limits.cpu", "2"),
    "shape.gpu": ("pod.containers.0.resources.limits.nvidia~com/gpu", "2"),
    "shape.memory": ("pod.containers.0.resources.requests.memory", "2Gi"),
    "shape.storage": ("pod.containers.0.resources.requests.ephemeral-storage", "2Gi"),
    "shape.levels": ("pod.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.topologyKey", "topology.jobman.io/rack"),
    "duration": ("pod.activeDeadlineSeconds", 3600),
    "environment": ("pod.containers.0.env.0", {"name": "A", "value": "b"}),
    "cwd": ("pod.containers.0.workingDir", "/a"),
    "stdout": ("pod.containers.0.command.2", command([], Around(stdout="a"))[2]),
    "stderr": ("pod.containers.0.command.2", command([], Around(stderr="a"))[2]),
    "flags.kubernetes": ("pod.a", 1),
    "requires": ("pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0.matchExpressions.0", {"key": "a", "operator": "In", "values": ["b"]}),
    "step.stage": ("pod.containers.0.volumeMounts.2.mountPath", "/jobman/work/a"),
    "step.write": ("pod.containers.0.volumeMounts.2.mountPath", "/jobman/work/a"),
    "retries": ("spec.backoffLimitPerIndex", 1),
    "retries.delay": ("spec.backoffLimitPerIndex", 1),
    "retries.on": ("spec.podFailurePolicy.rules.1.action", "Count"),
    "parallelism": ("spec.parallelism", 1),
    "completions": ("spec.successPolicy.rules.0.succeededCount", 1),
    "max_failed": ("spec.maxFailedIndexes", 1),
    "on_failure.retry": ("spec.podFailurePolicy.rules.1", {"action": "Count", "onExitCodes": {"operator": "In", "values": [3]}}),
    "on_failure.ignore": ("pod.containers.0.command.0", "/bin/sh"),
    "on_failure.fail-task": ("spec.podFailurePolicy.rules.1.action", "FailJob"),
    "on_failure.fail-job": ("spec.podFailurePolicy.rules.1.action", "FailJob"),
    "success": ("spec.successPolicy.rules.0.succeededCount", 1),
    "restart.on-failure": ("pod.restartPolicy", "OnFailure"),
    "replace.failed": ("spec.podReplacementPolicy", "Failed"),
    "hold": ("spec.suspend", True),
    "suspend.requeue": ("metadata.annotations.jobman~io/suspend", "requeue"),
    "hooks.before": ("pod.containers.0.command.0", "/bin/sh"),
    "hooks.after": ("pod.containers.0.command.0", "/bin/sh"),
    "hooks.on_stop": ("pod.containers.0.lifecycle.preStop.exec.command", ["a"]),
    "grace": ("pod.terminationGracePeriodSeconds", 5),
    "signal": ("pod.containers.0.command.0", "/bin/sh"),
    "checks.ready": ("pod.containers.0.readinessProbe.tcpSocket.port", 80),
    "checks.alive": ("pod.containers.0.livenessProbe.tcpSocket.port", 80),
    "checks.started": ("pod.containers.0.startupProbe.tcpSocket.port", 80),
    "checks.exec": ("pod.containers.0.readinessProbe.exec.command", ["a"]),
    "checks.http": ("pod.containers.0.readinessProbe.httpGet.port", 80),
    "checks.tcp": ("pod.containers.0.readinessProbe.tcpSocket.port", 80),
    "gates": ("pod.schedulingGates.0.name", "jobman.io/gate-budget"),
    "placement.labels": ("pod.nodeSelector.a", "b"),
    "placement.near": ("pod.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.labelSelector.matchExpressions.0.values", ["a"]),
    "placement.apart": ("pod.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.1.labelSelector.matchExpressions.0.values", ["a"]),
    "placement.spread": ("pod.topologySpreadConstraints.0.topologyKey", "topology.jobman.io/rack"),
    "placement.exclusive": ("pod.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.topologyKey", "kubernetes.io/hostname"),
    "priority": ("pod.priorityClassName", "high"),
    "scheduler": ("pod.schedulerName", "other"),
    "runtime.class": ("pod.runtimeClassName", "gvisor"),
    "runtime.os": ("pod.os.name", "linux"),
    "identity": ("pod.serviceAccountName", "robot"),
    "secrets": ("pod.containers.0.volumeMounts.1.mountPath", "/jobman/secrets/token"),
    "env_from": ("pod.containers.0.envFrom.0.configMapRef.name", "a"),
    "profiles": ("pod.terminationGracePeriodSeconds", 5),
    "security": ("pod.containers.0.securityContext.runAsUser", 1),
    "security.privileged": ("pod.containers.0.securityContext.privileged", True),
    "devices": ("pod.resourceClaims.0.resourceClaimTemplateName", "a-a-012345-gpu-example-org"),
    "volumes.host": ("pod.volumes.1.hostPath.path", "/a"),
    "volumes.scratch": ("pod.volumes.1.emptyDir", {}),
    "volumes.ephemeral": ("pod.volumes.1.ephemeral.volumeClaimTemplate.spec.resources.requests.storage", "1Gi"),
    "volumes.claim": ("pod.volumes.1.persistentVolumeClaim.claimName", "c"),
    "volumes.csi": ("pod.volumes.1.csi.driver", "d"),
    "volumes.nfs": ("pod.volumes.1.nfs", {"server": "s", "path": "/a"}),
    "volumes.git": ("pod.initContainers.0.command.4", "https://example.org/r.git"),
    "volumes.image": ("pod.volumes.1.image.reference", "a:1"),
    "volumes.secret": ("pod.volumes.1.secret.secretName", "s"),
    "volumes.config": ("pod.volumes.1.configMap.name", "c"),
    "volumes.memory": ("pod.volumes.1.emptyDir", {"medium": "Memory", "sizeLimit": "1Gi"}),
    "ports": ("pod.containers.0.ports.0.containerPort", 80),
    "ports.free": ("pod.containers.0.ports.0", {"name": "web", "containerPort": 8000, "protocol": "TCP"}),
    "result_file": ("pod.containers.0.terminationMessagePath", "/jobman/work/a.json"),
}  # fmt: skip
"""Where each feature is found in the last Job of its document; `pod` is the pod of its template."""
ELSEWHERE: dict[str, Any] = {
    "matrix": lambda objects: len(_jobs(objects)) == 2,
    "shape.both": lambda objects: len(_jobs(objects)) == 2,
    "ports.expose": lambda objects: any(
        each["kind"] == "Service" and each["spec"].get("ports") for each in objects
    ),
    "network.isolated": lambda objects: any(each["kind"] == "NetworkPolicy" for each in objects),
    "coordinator": lambda objects: "JOBMAN_COORDINATOR" in str(objects),
    "shape.site-type": None,
    "shape.either": None,
}
"""What is to be seen in several objects; None where another test looks at it."""
IN_THE_PLAN = (
    "depends_on.success", "depends_on.failure", "depends_on.any", "depends_on.started", "depends_on.ready",
    "local", "service", "when.failure", "when.always", "group", "group.nested", "group.grow", "watch",
)  # fmt: skip
"""What a driver reads from the plan, which the anchor carries."""
OTHER_ENGINES = ("flags.slurm", "flags.flux")
MENDED = {
    "retries.on": task("retries: {limit: 1, on: {exit_codes: 5}}"),
    "shape.exclusive": task(shape="{type: node, count: 1}"),
    "shape.levels": "version: 1\ntasks: [{command: [echo], resources: {type: rack, count: 1, with: [{type: node, count: 2, with: [{type: core, count: 1}]}]}}]\n",
}
"""Documents that ask for no more than a Job can do."""


def _jobs(objects):
    return [each for each in objects if each["kind"] == "Job"]


def at(written, path):
    """The value at a path; `~` stands for a dot in a key."""
    written = {**written, "pod": written["spec"]["template"]["spec"]}
    for step in path.split("."):
        written = written[int(step)] if isinstance(written, list) else written[step.replace("~", ".")]
    return written


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "settings.yaml"
    path.write_text(SETTINGS)
    return load_settings(path)


def test_the_table_has_every_feature_in_the_order_of_the_catalogue():
    assert list(FEATURES) == [feature.id for feature in CATALOGUE]


def test_what_is_not_native_is_explained():
    assert [name for name, each in FEATURES.items() if each.how != "native" and not each.note] == []


def test_every_feature_is_compiled_or_refused_or_left_to_a_driver():
    refused = {name for name, each in FEATURES.items() if each.how == "refused"}
    seen = {*COMPILED, *ELSEWHERE, *IN_THE_PLAN, *OTHER_ENGINES}
    assert seen | refused | {*ONLY_DRIVEN} == set(FEATURES)
    assert seen & refused == seen & {*ONLY_DRIVEN} == refused & {*ONLY_DRIVEN} == set()


@pytest.mark.parametrize("feature", list(COMPILED))
def test_a_feature_is_found_in_its_place(feature, settings):
    objects = compiled(MENDED.get(feature, USES[feature]), settings, files=FILES)
    path, expected = COMPILED[feature]
    job = _jobs(objects)[0 if feature.startswith("on_failure") else -1]
    assert at(job, path) == expected


@pytest.mark.parametrize("feature", [name for name, look in ELSEWHERE.items() if look])
def test_a_feature_is_found_among_the_objects(feature, settings):
    assert ELSEWHERE[feature](compiled(USES[feature], settings))


@pytest.mark.parametrize("feature", IN_THE_PLAN)
def test_what_needs_a_driver_is_in_the_plan_that_goes_with_the_job(feature, settings):
    plan = plan_of(USES[feature], settings)
    assert feature in plan.features
    assert FEATURES[feature].how == "emulated"
    anchor = compiled(USES[feature], settings)[0]
    assert anchor["metadata"]["annotations"]["jobman.io/plan"] == plan.to_json().decode()


@pytest.mark.parametrize("feature", DRIVEN)
def test_what_needs_a_driver_is_told(feature, settings):
    plan = plan_of(USES[feature], settings)
    assert feature in [each.feature for each in needs_driver(plan, target())]


@pytest.mark.parametrize("feature", [*DRIVEN, *ONLY_DRIVEN])
def test_what_somebody_drives_is_written_down_as_attempts(feature, settings):
    plan = plan_of(USES[feature], settings)
    driven = target(driven=True, files=FILES)
    assert refusals(plan, driven) == []
    samples = DrivenCompiler(plan, driven).samples()
    assert list(samples) == [unit.id for unit in plan.units if unit.kind == "task"]
    assert all(_jobs(jobs) for jobs in samples.values())


@pytest.mark.parametrize(
    "feature", [*ONLY_DRIVEN, *(name for name, each in FEATURES.items() if each.how == "refused")]
)
def test_what_is_refused_is_refused(feature, settings):
    with pytest.raises(CannotCompile) as refused:
        compiled(USES[feature], settings, files=FILES)
    assert feature in [each.feature for each in refused.value.refused]
    assert feature in str(refused.value)


def refused_values(text, **more):
    return [(each.feature, each.units) for each in refusals(plan_of(text), target(**more))]


@pytest.mark.parametrize(
    ("more", "feature"),
    [
        ("attributes: {cwd: here}", "cwd"),
        ("attributes: {flags: {kubernetes: {nodeName: n1}}}", "flags.kubernetes"),
        ("retries: {limit: 2, delay: 11s}", "retries.delay"),
        ("retries: {limit: 3, delay: 10s, factor: 3}", "retries.delay"),
        ("retries: {limit: 1, on: {reasons: out-of-memory}}", "retries.on"),
        ("on_failure: [{reasons: preempted, action: fail-job}]", "on_failure.fail-job"),
        ("on_failure: [{reasons: signal, action: ignore}]", "on_failure.ignore"),
        ("replicas: 3, on_failure: [{exit_codes: 1, replicas: 1, action: fail-task}]", "on_failure.fail-task"),
        ("restart: on-failure, retries: 2", "restart.on-failure"),
        ("secrets: [{name: s, variable: S}]", "secrets"),
        ("secrets: [Portal]", "secrets"),
        ("identity: The_Robot", "identity"),
        ("priority: High_One", "priority"),
        ("checks: {alive: {tcp: 80, successes: 2}}", "checks.alive"),
        ("signal: INT, attributes: {duration: 1h}", "signal"),
        ("placement: {spread: row}", "placement.spread"),
        ("placement: {apart: {by: row}}", "placement.apart"),
        ("security: {uid: 1}, runtime: {os: windows}", "security"),
        ("security: {no_new_privileges: true, capabilities: {add: [SYS_ADMIN]}}", "security"),
        ("security: {seccomp: /profiles/strict.json}", "security"),
        ("requires: {'two words': x}", "requires"),
        ("replicas: 100001", "replicas"),
        ("steps: [{name: stage, path: nowhere}]", "step.stage"),
        ("env_from: [{file: nowhere.env}]", "env_from"),
        ("devices: [{class: 'a.example.org/b'}]", "devices"),
        ("devices: [{class: a, name: x.y}, {class: a, name: x-y}]", "devices"),
        ("ports: [A_b, a-b]", "ports"),
        ("volumes: [{name: a, kind: scratch, to: '/x:y'}]", "volumes.scratch"),
        ("volumes: [{name: a, kind: host, path: /x/../y, to: /x}]", "volumes.host"),
        ("volumes: [{name: a, kind: scratch, to: /jobman/scratch/}]", "volumes.scratch"),
        ("secrets: [{name: a, key: k, path: /x}, {name: b, key: k, path: /x}]", "secrets"),
    ],
)  # fmt: skip
def test_some_values_ask_for_too_much(more, feature):
    assert refused_values(task(more)) == [(feature, ("a",))]


def test_without_any_image_nothing_runs():
    assert refused_values(task(), default_image=None) == [("image", ("a",))]


@pytest.mark.parametrize(
    ("shape", "feature"),
    [
        ("{type: node, count: 2000, with: [{type: core, count: 1}]}", "shape.node"),
        ("{type: slot, count: 2000}", "shape.slot"),
        ("{type: node, count: 1, with: [{type: slot, count: 2}, {type: gpu, count: 1}]}", "shape.gpu"),
    ],
)
def test_some_shapes_ask_for_too_much(shape, feature):
    assert refused_values(task(shape=shape)) == [(feature, ("a",))]


def test_a_replica_of_several_copies_is_not_tried_again():
    shape = "{type: slot, count: 2}"
    assert refused_values(task("retries: 1", shape=shape)) == [("retries", ("a",))]
    rule = "on_failure: [{exit_codes: 1, action: retry}]"
    assert refused_values(task(rule, shape=shape)) == [("on_failure.retry", ("a",))]


@pytest.mark.parametrize("key", ["retries: 1", "parallelism: 1", "completions: 1", "max_failed: 1"])
def test_policies_of_the_whole_document_are_written_on_the_task(key):
    assert refused_values(task(top=key, more="replicas: 2")) == [(key.partition(":")[0], ())]


def test_rules_of_the_document_hold_for_its_tasks():
    job = _jobs(compiled(task(top="on_failure: [{exit_codes: 9, action: fail-job}]")))[0]
    assert job["spec"]["podFailurePolicy"]["rules"][1]["onExitCodes"]["values"] == [9]


def test_labels_and_annotations_that_a_cluster_would_not_take_are_refused():
    found = refused_values(task(top="labels: {jobman.io/job: x}\nannotations: {'two words': x}"))
    assert found == [("labels", ()), ("annotations", ())]


def test_a_site_type_with_a_full_name_is_asked_for_as_it_is(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("resource_types: [example.org/fpga]\n")
    shape = "{type: slot, count: 1, with: [{type: example.org/fpga, count: 2}]}"
    job = _jobs(compiled(task(shape=shape), load_settings(path)))[0]
    assert at(job, "pod.containers.0.resources.limits") == {"example.org/fpga": "2"}


EITHER = f"""
version: 1
resources:
  big: {{type: slot, count: 2}}
  small: {SMALL}
tasks:
- {{name: a, command: [echo], resources: big|small}}
"""


def test_alternatives_of_different_size_are_chosen_by_whoever_sees_the_nodes():
    assert refused_values(EITHER) == [("shape.either", ("a",))]
    assert _jobs(compiled(EITHER, chosen={"a": 1}))[0]["spec"]["completions"] == 1
    assert _jobs(compiled(EITHER, chosen={"a": 0}))[0]["spec"]["completions"] == 2


def needed(text):
    return [each.feature for each in needs_driver(plan_of(text), target())]


def test_a_single_job_needs_no_driver():
    assert needed(task("replicas: 3, parallelism: 1, retries: 2, max_failed: 1")) == []


def test_a_graph_needs_a_driver():
    assert needed(USES["depends_on.any"]) == ["depends_on.any"]
    assert needed(USES["service"]) == ["service"]


def test_what_counts_over_several_jobs_needs_a_driver():
    assert needed(task("matrix: {x: [1, 2]}, parallelism: 1")) == ["parallelism"]
    assert needed(task("matrix: {x: [1, 2]}")) == []
    slots = "{type: node, count: 2, with: [{type: slot, count: 2}]}"
    assert needed(task(shape=slots)) == ["shape.slot"]
