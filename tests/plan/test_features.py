"""The catalogue of features: each is used by some document, and a plain one uses only what it should."""

# ruff: noqa: E501 - a document stands in one line

import pytest

from jobman.api import loads
from jobman.plan.features import CATALOGUE, FEATURES
from jobman.settings import load_settings
from jobman.spec.failures import ACTIONS
from jobman.spec.volumes import VOLUME_KINDS

ONE = "resources: {type: node, count: 1}"
SETTINGS = "resource_types: [rack, fpga]\nprofiles: [{name: tools, grace: 5s}]\n"


def job(top="", task="", more=""):
    """A document of one task with something on the document or on the task."""
    return f"version: 1\n{top}\ntasks:\n- {{name: a, command: [echo], {ONE}{', ' if task else ''}{task}}}\n{more}"


def shape(tree):
    return f"version: 1\ntasks:\n- {{command: [echo], resources: {tree}}}\n"


def after(when, **first):
    extra = "".join(f", {key}: {value}" for key, value in first.items())
    return job(
        task=extra.lstrip(", "),
        more=f"- {{name: b, command: [echo], {ONE}, depends_on: [{{name: a, when: {when}}}]}}\n",
    )


def group(on_group="", task="command: [echo]", more=""):
    return f"version: 1\ngroups:\n- name: g\n  {ONE}\n  {on_group}\n  tasks:\n  - {{{task}}}\n  - {{command: [echo]}}\n{more}"


VOLUMES = {
    "host": "path: /a",
    "scratch": "",
    "ephemeral": "size: 1Gi",
    "claim": "claim: c",
    "csi": "driver: d",
    "nfs": "server: s, path: /a",
    "git": "repository: 'https://example.org/r.git'",
    "image": "image: 'a:1'",
    "secret": "secret: s",
    "config": "config: c",
    "memory": "size: 1Gi",
}
USES = {
    "queue": job("queue: batch"),
    "account": job("account: physics"),
    "start.earliest": job("start: {earliest: +2h}"),
    "start.latest": job("start: {latest: +2h}"),
    "labels": job("labels: {a: b}"),
    "annotations": job("annotations: {a: b}"),
    "managed_by": job("managed_by: make"),
    "owner": job("owner: me"),
    "command": job(),
    "steps-only": f"version: 1\ntasks: [{{{ONE}, steps: [{{name: stage, path: data}}]}}]\n",
    "replicas": job(task="replicas: 2"),
    "matrix": job(task="matrix: {x: [1, 2]}"),
    "depends_on.success": after("success"),
    "depends_on.failure": after("failure"),
    "depends_on.any": after("any"),
    "depends_on.started": after("started"),
    "depends_on.ready": after("ready", checks="{ready: {tcp: 80}}"),
    "local": group(task="command: [echo], local: true"),
    "service": group(task=f"command: [echo], service: true, {ONE}"),
    "when.failure": job(more=f"- {{command: [echo], {ONE}, when: failure}}\n"),
    "when.always": job(more=f"- {{command: [echo], {ONE}, when: always}}\n"),
    "image": job(task="image: 'a:1'"),
    "group": group(),
    "group.nested": group(task="group: h", more=f"- name: h\n  {ONE}\n  tasks: [{{command: [echo]}}]\n"),
    "group.replicas": group("replicas: 2"),
    "group.grow": group(task="command: [echo], resources: {type: node, count: 2}"),
    "shape.node": shape("{type: node, count: 1}"),
    "shape.slot": shape("{type: node, count: 1, with: [{type: slot, count: 2}]}"),
    "shape.anywhere": shape("{type: slot, count: 2}"),
    "shape.exclusive": shape("{type: node, count: 1, exclusive: true, with: [{type: core, count: 1}]}"),
    "shape.socket": shape("{type: node, count: 1, with: [{type: socket, count: 2}]}"),
    "shape.core": shape("{type: core, count: 2}"),
    "shape.gpu": shape("{type: gpu, count: 2}"),
    "shape.memory": shape("{type: node, count: 1, with: [{type: memory, count: 2Gi}]}"),
    "shape.storage": shape("{type: node, count: 1, with: [{type: storage, count: 2Gi}]}"),
    "shape.site-type": shape("{type: node, count: 1, with: [{type: fpga, count: 2}]}"),
    "shape.levels": shape("{type: rack, count: 1, with: [{type: node, count: 2}]}"),
    "shape.either": "version: 1\nresources: {x: {type: node, count: 1}, y: {type: node, count: 2}}\n" + shape("x|y").partition("\n")[2],
    "shape.both": "version: 1\nresources: {x: {type: node, count: 1}, y: {type: core, count: 2}}\n" + shape("x&y").partition("\n")[2],
    "duration": job(task="attributes: {duration: 1h}"),
    "environment": job(task="attributes: {environment: {A: b}}"),
    "cwd": job(task="attributes: {cwd: /a}"),
    "watch": job(task="attributes: {watch: true}"),
    "stdout": job(task="attributes: {stdout: a}"),
    "stderr": job(task="attributes: {stderr: a}"),
    "flags.slurm": job(task="attributes: {flags: {slurm: [--x]}}"),
    "flags.flux": job(task="attributes: {flags: {flux: [--x]}}"),
    "flags.kubernetes": job(task="attributes: {flags: {kubernetes: {a: 1}}}"),
    "requires": job(task="requires: {a: b}"),
    "step.stage": job(task="steps: [{name: stage, path: a}]"),
    "step.write": job(task="steps: [{name: write, path: a, content: b}]"),
    "retries": job(task="retries: 1"),
    "retries.delay": job(task="retries: {limit: 1, delay: 5s}"),
    "retries.on": job(task="retries: {limit: 1, on: {reasons: timeout}}"),
    "parallelism": job(task="replicas: 2, parallelism: 1"),
    "completions": job(task="replicas: 2, completions: 1"),
    "max_failed": job(task="replicas: 2, max_failed: 1"),
    **{f"on_failure.{action}": group(task=f"command: [echo], on_failure: [{{exit_codes: 3, action: {action}}}]") for action in ACTIONS},
    "success": job(task="replicas: 2, success: {count: 1}"),
    "restart.on-failure": job(task="restart: on-failure"),
    "restart.always": group(task=f"command: [echo], restart: always, service: true, {ONE}"),
    "replace.failed": job(task="replace: failed"),
    "replace.terminating": job(task="replace: terminating"),
    "hold": job("hold: true"),
    "suspend.requeue": job("suspend: requeue"),
    "suspend.freeze": job("suspend: freeze"),
    "hooks.before": job(task="hooks: {before: a}"),
    "hooks.after": job(task="hooks: {after: a}"),
    "hooks.on_stop": job(task="hooks: {on_stop: a}"),
    "grace": job(task="grace: 5s"),
    "signal": job(task="signal: USR1, attributes: {duration: 1h}"),
    "checks.ready": job(task="checks: {ready: {tcp: 80}}"),
    "checks.alive": job(task="checks: {alive: {tcp: 80}}"),
    "checks.started": job(task="checks: {started: {tcp: 80}}"),
    "checks.exec": job(task="checks: {ready: {exec: a}}"),
    "checks.http": job(task="checks: {ready: {http: {port: 80}}}"),
    "checks.tcp": job(task="checks: {ready: {tcp: 80}}"),
    "gates": job("gates: budget"),
    "placement.labels": job(task="placement: {labels: {a: b}}"),
    "placement.near": job(more=f"- {{command: [echo], {ONE}, placement: {{near: a}}}}\n"),
    "placement.apart": job(more=f"- {{command: [echo], {ONE}, placement: {{apart: a}}}}\n"),
    "placement.spread": job(task="placement: {spread: rack}"),
    "placement.exclusive": job(task="placement: {exclusive: true}"),
    "priority": job("priority: high"),
    "scheduler": job("scheduler: other"),
    "runtime.class": job("runtime: gvisor"),
    "runtime.os": job("runtime: {os: linux}"),
    "identity": job("identity: robot"),
    "secrets": job("secrets: [token]"),
    "env_from": job("env_from: [{config: a}]"),
    "profiles": job("profiles: tools"),
    "security": job("security: {uid: 1}"),
    "security.privileged": job("security: {privileged: true}"),
    "devices": job("devices: [gpu.example.org]"),
    **{
        f"volumes.{kind}": job(task=f"volumes: [{{name: v, kind: {kind}, to: /v{', ' if keys else ''}{keys}}}]")
        for kind, keys in VOLUMES.items()
    },
    "ports": job(task="ports: 80"),
    "ports.free": job(task="ports: web"),
    "ports.expose": job(task="ports: [{port: 80, expose: true}]"),
    "result_file": job(task="result_file: a.json"),
    "coordinator": job("coordinator: a"),
    "network.connect": job("network: {connect: other}"),
    "network.isolated": job("network: {isolated: true}"),
}  # fmt: skip


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "settings.yaml"
    path.write_text(SETTINGS)
    return load_settings(path)


def used(text, settings):
    spec = loads(text, settings=settings)
    assert [problem for problem in spec.problems if problem.severity == "error"] == []
    return spec.plan().features


def test_the_table_has_every_feature_and_no_other():
    assert list(USES) == [feature.id for feature in CATALOGUE]
    assert set(VOLUMES) == set(VOLUME_KINDS)


@pytest.mark.parametrize("feature", list(USES))
def test_a_feature_is_used_by_its_document(feature, settings):
    assert feature in used(USES[feature], settings)


@pytest.mark.parametrize("feature", [name for name in USES if USES[name] != job()])
def test_a_feature_is_not_used_by_a_plain_document(feature, settings):
    plain = used(job(), settings)
    assert feature not in plain or feature in ("command", "shape.node", "shape.exclusive")


def test_a_plain_document_uses_only_what_it_should(settings):
    assert used(job(), settings) == ("command", "shape.node", "shape.exclusive")
    assert used(shape("{type: core, count: 1}"), settings) == ("command", "shape.anywhere", "shape.core")


def test_what_is_written_as_the_default_is_no_use(settings):
    text = job(
        "hold: false\nnetwork: {isolated: false}",
        "restart: never, replicas: 1, service: false, attributes: {watch: false}",
    )
    assert used(text, settings) == used(job(), settings)


def test_features_stand_in_the_order_of_the_catalogue(settings):
    order = list(FEATURES)
    found = used(job("queue: batch\nhold: true", "replicas: 2, retries: 1, image: 'a:1'"), settings)
    assert list(found) == sorted(found, key=order.index)


def test_every_feature_has_a_title_and_a_section_of_the_reference():
    assert [
        feature.id for feature in CATALOGUE if not feature.title or feature.section not in range(1, 8)
    ] == []
    assert len(FEATURES) == len(CATALOGUE)


def test_a_policy_of_the_document_counts_even_if_no_task_inherits_it(settings):
    assert "retries" in used(job("retries: 2"), settings)
