"""From a plan to the objects of a cluster."""

import base64
import re

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.engines.kubernetes import names
from jobman.engines.kubernetes.compile import (
    StagedFile,
    compile_plan,
    owned,
    packed,
    to_yaml,
    unpacked,
)
from jobman.engines.kubernetes.features import refusals
from jobman.plan.model import plan_from_json
from jobman.settings import load_settings
from tests.engines.kubernetes.objects_of import (
    ID,
    SMALL,
    compiled,
    container,
    jobs,
    only_job,
    plan_of,
    pod,
    target,
    task,
    variables,
)
from tests.plan.test_plan_properties import written
from tests.spec import strategies as some

NODES = "{type: node, count: 2, with: [{type: core, count: 1}]}"
PAIR = f"""
version: 1
name: pair
tasks:
- {{name: server, command: [serve], resources: {SMALL}, service: true, ports: [web, 9000]}}
- {{name: client, command: [ask], resources: {SMALL}, replicas: 2}}
"""


def kinds(objects):
    return [each["kind"] for each in objects]


# -- anchors, labels and annotations -------------------------------------------------------------------------


def test_a_single_job_carries_everything_that_is_needed_to_find_it_again():
    plan = plan_of(task())
    found = compile_plan(plan, target(document="the text"))
    (job,) = found.units["a"]
    assert found.anchor is job
    notes = job["metadata"]["annotations"]
    assert notes["jobman.io/document"] == "the text"
    assert plan_from_json(notes["jobman.io/plan"]) == plan
    assert notes["jobman.io/digest"] == plan.digest
    assert notes["jobman.io/submitted-by"] == "ada"
    assert job["metadata"]["name"] == "job-012345"


def test_several_jobs_have_a_config_map_as_their_anchor():
    found = compile_plan(plan_of(PAIR), target())
    assert (found.anchor["kind"], found.anchor["metadata"]["name"]) == ("ConfigMap", "pair-012345")
    assert kinds([each for _, each in found.objects()]) == ["ConfigMap", "Service", "Job", "Job"]
    assert list(found.units) == ["server", "client"]


def test_every_object_and_every_pod_carries_the_id():
    for each in compiled(PAIR):
        assert each["metadata"]["labels"][names.JOB] == ID
        if each["kind"] == "Job":
            assert each["spec"]["template"]["metadata"]["labels"][names.JOB] == ID


def test_an_owner_with_other_letters_is_in_full_in_the_annotation():
    job = only_job(task(), owner="ada@example.org")
    assert job["metadata"]["annotations"][names.SUBMITTED_BY] == "ada@example.org"
    assert job["metadata"]["labels"][names.OWNER].startswith("ada-example.org-")


def test_a_large_plan_is_packed():
    assert unpacked(packed("häuser".encode() * 1000)) == "häuser" * 1000
    text = f"version: 1\ntasks: [{{name: a, command: [echo, '{'x' * 120_000}'], resources: {SMALL}}}]"
    notes = only_job(text)["metadata"]["annotations"]
    assert notes[names.PLAN].startswith("gzip:")
    assert plan_from_json(unpacked(notes[names.PLAN])) == plan_of(text)


def test_an_object_goes_with_its_owner():
    found = compile_plan(plan_of(PAIR), target())
    made = {**found.anchor, "metadata": {**found.anchor["metadata"], "uid": "u1"}}
    (reference,) = owned(found.support[0], made)["metadata"]["ownerReferences"]
    assert reference == {"apiVersion": "v1", "kind": "ConfigMap", "name": "pair-012345", "uid": "u1"}


def test_a_flavor_passes_as_the_site_wrote_it(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text(
        "flavors: [{name: small-gpu, resources: {requests: {cpu: 500m, memory: 1G, amd.com/gpu: 1}, "
        "limits: {memory: 2G}}}]"
    )
    (job,) = jobs(compiled(task(shape="small-gpu"), load_settings(path)))
    assert job["metadata"]["labels"][names.FLAVOR] == "small-gpu"
    main = job["spec"]["template"]["spec"]["containers"][0]
    assert main["resources"] == {
        "requests": {"cpu": "500m", "memory": "1G", "amd.com/gpu": "1"},
        "limits": {"memory": "2G"},
    }
    assert variables(main)["JOBMAN_GPUS"] == "1"


# -- what a copy finds ---------------------------------------------------------------------------------------

PROMISED = (
    "JOB_ID", "JOB_NAME", "TASK", "REPLICA", "REPLICAS", "ATTEMPT", "NODE_RANK", "NNODES", "NODELIST", "RANK",
    "SIZE", "CORES", "GPUS", "SCRATCH",
)  # fmt: skip


@pytest.mark.parametrize("shape", [SMALL, NODES, "{type: node, count: 1}"])
def test_a_copy_finds_all_that_is_promised(shape):
    found = variables(container(task(shape=shape)))
    assert [name for name in PROMISED if f"JOBMAN_{name}" not in found] == []


def test_retries_let_the_shell_count_attempts():
    main = container(task("retries: 2"))
    assert "JOBMAN_ATTEMPT=$$((1 + JOBMAN_FAILURES))" in main["command"][2]
    assert "JOBMAN_ATTEMPT" not in variables(main)


def test_a_copy_finds_those_that_listen():
    client = jobs(compiled(PAIR))[1]
    found = variables(client["spec"]["template"]["spec"]["containers"][0])
    assert found["JOBMAN_HOST_SERVER"] == "pair-server-012345-0.pair-012345"
    assert (found["JOBMAN_PORT_SERVER_WEB"], found["JOBMAN_PORT_SERVER_9000"]) == ("8000", "9000")
    assert client["spec"]["template"]["spec"]["subdomain"] == "pair-012345"


def test_the_coordinator_is_a_copy_by_its_name():
    text = task("replicas: 3", top="coordinator: a/2")
    assert variables(container(text))["JOBMAN_COORDINATOR"] == "job-012345-2.job-012345"
    text = task("replicas: 3", top="coordinator: a/2", shape=NODES)
    found = variables(jobs(compiled(text))[0]["spec"]["template"]["spec"]["containers"][0])
    assert found["JOBMAN_COORDINATOR"] == "job-a-012345-2-0.job-012345"


def test_one_pod_alone_needs_no_service():
    assert kinds(compiled(task())) == ["Job"]
    assert "subdomain" not in pod(task())


def test_what_looks_like_a_variable_of_the_cluster_is_escaped():
    main = container(task("attributes: {environment: {A: 'x $(B) $$ $C'}}", command='[echo, "$(A)"]'))
    assert main["command"] == ["echo", "$$(A)"]
    assert variables(main)["A"] == "x $$(B) $$$$ $C"


def test_a_site_puts_its_registry_before_plain_names():
    text = task("image: 'tools/fit:1'")
    assert (
        container(text, image_prefix="registry.example.org/")["image"] == "registry.example.org/tools/fit:1"
    )
    text = task("image: 'other.example.org/fit:1'")
    assert container(text, image_prefix="registry.example.org/")["image"] == "other.example.org/fit:1"


def test_copies_get_no_token_and_gain_no_rights():
    assert pod(task())["automountServiceAccountToken"] is False
    assert container(task())["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert pod(task("identity: robot"))["automountServiceAccountToken"] is True


def test_flags_displace_what_is_written():
    flags = "{terminationGracePeriodSeconds: 7, hostNetwork: true, containers: [{name: main, tty: true}]}"
    spec = pod(task(f"grace: 1s, attributes: {{flags: {{kubernetes: {flags}}}}}"))
    assert (spec["terminationGracePeriodSeconds"], spec["hostNetwork"]) == (7, True)
    assert spec["containers"][0]["tty"] is True
    assert spec["containers"][0]["command"] == ["echo", "hello"]


# -- copies --------------------------------------------------------------------------------------------------


def test_nodes_are_one_job_whose_pods_avoid_each_other():
    job = only_job(task(shape=NODES))
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (2, 2)
    assert job["spec"]["maxFailedIndexes"] == 0
    (apart,) = job["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"].values()
    assert apart[0]["topologyKey"] == "kubernetes.io/hostname"
    assert apart[0]["labelSelector"]["matchLabels"][names.REPLICA] == "0"


def test_each_replica_of_several_copies_has_a_job():
    found = jobs(compiled(task("replicas: 2", shape=NODES)))
    assert [job["metadata"]["name"] for job in found] == ["job-a-012345-0", "job-a-012345-1"]
    assert [job["metadata"]["labels"][names.REPLICA] for job in found] == ["0", "1"]


def test_ranks_go_on_over_the_parts_of_a_shape():
    text = f"""
version: 1
name: play
resources: {{lead: {SMALL}, crowd: {{type: slot, count: 3}}}}
tasks: [{{name: a, command: [echo], resources: lead&crowd}}]
"""
    lead, crowd = jobs(compiled(text))
    mains = [job["spec"]["template"]["spec"]["containers"][0] for job in (lead, crowd)]
    assert variables(mains[0])["JOBMAN_RANK"] == "0"
    assert "JOBMAN_RANK=$$((1 + JOBMAN_INDEX))" in mains[1]["command"][2]
    assert {variables(main)["JOBMAN_SIZE"] for main in mains} == {"4"}
    assert len(set(variables(mains[0])["JOBMAN_NODELIST"].split(","))) == 4


def test_a_local_task_asks_for_nothing():
    text = f"""
version: 1
groups:
- name: g
  resources: {NODES}
  tasks:
  - {{name: first, command: [echo], local: true}}
  - {{name: second, command: [echo]}}
"""
    first, second = jobs(compiled(text))
    assert "resources" not in first["spec"]["template"]["spec"]["containers"][0]
    assert [job["spec"]["completions"] for job in (first, second)] == [1, 2]


# -- files ---------------------------------------------------------------------------------------------------


def test_staged_files_travel_as_they_are():
    files = {"data": (StagedFile("x", b"1"), StagedFile("deep/y", b"\xff", 0o755))}
    config, job = compiled(task("steps: [{name: stage, path: data, to: /in}]"), files=files)
    assert config["data"] == {"file-0": "1"}
    assert base64.b64decode(config["binaryData"]["file-1"]) == b"\xff"
    spec = job["spec"]["template"]["spec"]
    mounted = {each["mountPath"]: each.get("subPath") for each in spec["containers"][0]["volumeMounts"]}
    assert (mounted["/in/x"], mounted["/in/deep/y"]) == ("file-0", "file-1")
    modes = [item["mode"] for item in spec["volumes"][-1]["configMap"]["items"]]
    assert modes == [0o644, 0o755]


def test_each_combination_has_files_of_its_own():
    text = task("matrix: {x: [1, 2]}, steps: [{name: write, path: /f, content: 'is {{x}}'}]")
    configs = [each["data"]["file-0"] for each in compiled(text) if "data" in each]
    assert configs == ["is 1", "is 2"]


def test_variables_of_a_file_travel_in_a_config_map():
    files = {"v.env": (StagedFile("", b"# mine\nA=1\nB=x=y\n"),)}
    config, job = compiled(task("env_from: [{file: v.env, prefix: P_}]"), files=files)
    assert config["data"] == {"A": "1", "B": "x=y"}
    (origin,) = job["spec"]["template"]["spec"]["containers"][0]["envFrom"]
    assert origin == {"prefix": "P_", "configMapRef": {"name": config["metadata"]["name"]}}


# -- everything ----------------------------------------------------------------------------------------------

HOST = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


def check(compilation):
    """What holds for every compilation."""
    seen = set()
    for _, each in compilation.objects():
        meta = each["metadata"]
        assert (each["kind"], meta["name"]) not in seen
        seen.add((each["kind"], meta["name"]))
        assert all(map(names.is_label_key, meta["labels"]))
        assert all(map(names.is_label_value, meta["labels"].values()))
        if each["kind"] == "Job":
            assert HOST.fullmatch(meta["name"])
            assert len(f"{meta['name']}-{each['spec']['completions']}-abcde") <= 63
            spec = each["spec"]["template"]["spec"]
            assert "nodeName" not in spec
            found = [entry["name"] for entry in spec["containers"][0]["env"]]
            assert len(found) == len(set(found))
            mounted = {mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
            assert mounted == {volume["name"] for volume in spec["volumes"]}
    documents = [each for each in yaml.load_all(to_yaml(compilation), Loader=yaml.CSafeLoader) if each]
    assert documents == [each for _, each in compilation.objects()]


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), some.documents())
def test_every_plan_is_compiled_or_refused(data, document):
    plan = plan_of(written(data, document))
    if refused := refusals(plan, target()):
        assert all(each.note for each in refused)
    else:
        check(compile_plan(plan, target()))


@given(st.text(max_size=40))
def test_any_text_survives_the_manifest(text):
    found = compile_plan(plan_of(task()), target(document=text))
    (job,) = yaml.safe_load_all(to_yaml(found))
    assert job["metadata"]["annotations"]["jobman.io/document"] == text


@pytest.mark.parametrize(
    "text", ["1e3", "012", "yes", "1:30", "0x1", ".5", "null", "~", "", "-", "2001-01-01"]
)
def test_a_text_that_looks_like_something_else_is_quoted(text):
    found = to_yaml(compile_plan(plan_of(task(command=f"[echo, '{text}']")), target()))
    assert f'- "{text}"' in found


def test_a_mount_that_a_document_adds_leaves_those_of_the_same_volume():
    steps = "[{name: write, path: /a, content: x}, {name: write, path: /b, content: y}]"
    mount = "{name: jobman-files, mountPath: /c, subPath: file-0}"
    flags = f"{{kubernetes: {{containers: [{{name: main, volumeMounts: [{mount}]}}]}}}}"
    found = container(task(f"steps: {steps}, attributes: {{flags: {flags}}}"))
    places = [each["mountPath"] for each in found["volumeMounts"] if each["name"] == "jobman-files"]
    assert places == ["/a", "/b", "/c"]
