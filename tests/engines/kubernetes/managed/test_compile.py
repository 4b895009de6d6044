"""An order becomes a Job with gated pods, each pinned to its node, that say all the language promises."""

import msgspec
import pytest

from jobman.engines.base import Peer
from jobman.engines.kubernetes.managed import names
from jobman.engines.kubernetes.managed.compile import compile_order, ports_of
from jobman.plan.nodes import ClusterNode
from jobman.sched.placement import Pool
from jobman.settings import load_settings
from tests.engines.kubernetes.managed.orders_of import (
    ID,
    container,
    key_of,
    order,
    pod,
    release,
    target,
    variables,
)
from tests.engines.kubernetes.objects_of import plan_of, task

GANG = (
    "{type: node, count: 2, with: [{type: slot, count: 2, with: [{type: core, count: 1},"
    " {type: memory, count: 1Gi}]}]}"
)
NODE_NAME = "metadata.name"


def pinned_to(spec):
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    (field,) = term["matchFields"]
    assert (field["key"], field["operator"]) == (NODE_NAME, "In")
    return field["values"]


# -- the protocol --------------------------------------------------------------------------------------------


def test_every_pod_of_a_gang_waits_behind_a_gate_for_its_planned_node():
    pods = release(task(shape=GANG)).pods
    assert [each["spec"]["schedulingGates"] for each in pods] == [[{"name": "jobman.io/gang"}]] * 4
    assert [pinned_to(each["spec"]) for each in pods] == [["n0"], ["n0"], ["n1"], ["n1"]]
    assert all("nodeName" not in each["spec"] for each in pods)


def test_a_single_pod_waits_for_nobody():
    single = pod(task())
    assert "schedulingGates" not in single
    assert pinned_to(single) == ["n0"]


def test_the_job_is_left_alone_by_the_clusters_own_controller():
    job = release(task(shape=GANG), attempt=2).job
    spec = job["spec"]
    assert spec["managedBy"] == "jobman.io/controller"
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 4, 4)
    assert spec["backoffLimit"] == 0
    assert job["metadata"]["name"] == f"a-0-{ID}-2"


def test_nothing_vanishes_behind_our_back():
    found = release(task(shape=GANG))
    kept = [each["metadata"]["finalizers"] for each in (found.job, *found.pods)]
    assert kept == [["jobman.io/attempt"]] * 5


def test_the_selector_of_the_job_finds_its_pods():
    found = release(task(shape=GANG))
    ((key, value),) = found.job["spec"]["selector"]["matchLabels"].items()
    assert all(each["metadata"]["labels"][key] == value for each in found.pods)
    assert found.job["spec"]["template"]["metadata"]["labels"][key] == value


def test_the_same_order_gives_the_same_objects():
    first = order(plan_of(task(shape=GANG)))
    assert compile_order(first, target()) == compile_order(first, target())


def test_labels_say_what_a_pod_is():
    labels = release(task(shape=GANG), attempt=3).pods[2]["metadata"]["labels"]
    assert {key: value for key, value in labels.items() if key.startswith("jobman.io/")} == {
        "jobman.io/job": ID,
        "jobman.io/name": "job",
        "jobman.io/owner": "ada",
        "jobman.io/task": "a",
        "jobman.io/replica": "0",
        "jobman.io/attempt": "3",
        "jobman.io/copy": "2",
        "jobman.io/service": "test",
    }


def test_annotations_keep_what_a_label_cannot_say():
    found = release(task(), key="train.0/test.3", owner="ada@example.org").pods[0]["metadata"]
    assert found["annotations"]["jobman.io/key"] == "train.0/test.3"
    assert found["annotations"]["jobman.io/submitted-by"] == "ada@example.org"


def test_a_pod_carries_the_jobs_it_is_connected_with():
    labels = release(task(), connected=("abcdefabcdef",)).pods[0]["metadata"]["labels"]
    assert labels["connect.jobman.io/abcdefabcdef"] == "yes"


def test_the_service_decides_so_the_cluster_starts_nothing_again_and_stops_nothing():
    found = release(
        task(
            "retries: 3, restart: on-failure, on_failure: [{exit_codes: 3, action: ignore}], "
            "attributes: {duration: 1h}"
        )
    )
    spec = found.pods[0]["spec"]
    assert spec["restartPolicy"] == "Never"
    assert "activeDeadlineSeconds" not in spec
    assert variables(spec["containers"][0])["JOBMAN_ATTEMPT"] == "1"
    assert spec["containers"][0]["command"] == ["echo", "hello"]
    assert found.job["spec"].keys().isdisjoint({"podFailurePolicy", "successPolicy", "suspend"})


def test_an_order_without_its_plan_is_an_error():
    with pytest.raises(ValueError, match="without its plan"):
        compile_order(msgspec.structs.replace(order(plan_of(task())), plan=None), target())


# -- what a copy finds ---------------------------------------------------------------------------------------


def test_a_copy_knows_its_place():
    found = variables(release(task(shape=GANG), attempt=7).pods[3]["spec"]["containers"][0])
    hosts = f"a-0-0.jobman-{ID},a-0-2.jobman-{ID}"
    assert found == {
        "JOBMAN_JOB_ID": ID,
        "JOBMAN_JOB_NAME": "job",
        "JOBMAN_TASK": "a",
        "JOBMAN_REPLICA": "0",
        "JOBMAN_REPLICAS": "1",
        "JOBMAN_ATTEMPT": "7",
        "JOBMAN_NODE_RANK": "1",
        "JOBMAN_NNODES": "2",
        "JOBMAN_NODELIST": hosts,
        "JOBMAN_RANK": "3",
        "JOBMAN_SIZE": "4",
        "JOBMAN_CORES": "1",
        "JOBMAN_GPUS": "0",
        "JOBMAN_SCRATCH": "/jobman/scratch",
    }


def test_a_copy_is_called_by_the_name_that_others_know():
    spec = release(task(shape=GANG)).pods[3]["spec"]
    assert f"{spec['hostname']}.{spec['subdomain']}" == names.host_name(ID, "a.0", 3)


def test_a_pod_that_is_alone_is_told_the_name_it_has_without_a_service():
    assert variables(container(task()))["JOBMAN_NODELIST"] == "a-0-0"
    connected = variables(container(task(), connected=("abcdefabcdef",)))
    assert connected["JOBMAN_NODELIST"] == f"a-0-0.jobman-{ID}"


def test_replicas_know_their_numbers_and_the_values_of_their_axes():
    plan = plan_of(task("matrix: {x: [1, 2]}", command='[echo, "{{x}}"]'))
    second = compile_order(order(plan, replica=1), target()).pods[0]["spec"]["containers"][0]
    assert second["command"] == ["echo", "2"]
    assert variables(second)["JOBMAN_REPLICA"] == "1"
    assert variables(second)["x"] == "2"


def test_others_are_told_where_to_reach_a_task():
    peers = (
        Peer("web", 0, "web-0-0.jobman-x", {"http": 8000}),
        Peer("web", 1, "web-1-0.jobman-x", {"http": 8000}),
        Peer("data base", 0, "db-0-0.jobman-x", {"5432": 5432}),
    )
    found = variables(container(task(), peers=peers, coordinator="web-0-0.jobman-x"))
    told = {key: value for key, value in found.items() if "HOST" in key or "PORT" in key}
    assert told == {
        "JOBMAN_HOST_WEB": "web-0-0.jobman-x",
        "JOBMAN_PORT_WEB_HTTP": "8000",
        "JOBMAN_HOST_WEB_0": "web-0-0.jobman-x",
        "JOBMAN_PORT_WEB_HTTP_0": "8000",
        "JOBMAN_HOST_WEB_1": "web-1-0.jobman-x",
        "JOBMAN_PORT_WEB_HTTP_1": "8000",
        "JOBMAN_HOST_DATA_BASE": "db-0-0.jobman-x",
        "JOBMAN_PORT_DATA_BASE_5432": "5432",
    }
    assert found["JOBMAN_COORDINATOR"] == "web-0-0.jobman-x"


def test_a_free_port_is_known_beforehand():
    text = task("ports: [web, {name: db, port: 8000}]")
    assert ports_of(order(plan_of(text)).unit) == {"web": 8001, "db": 8000}
    assert variables(container(text))["PORT_WEB"] == "8001"


def test_a_copy_gets_no_token_of_the_cluster_unless_it_has_an_identity():
    assert pod(task())["automountServiceAccountToken"] is False
    named = pod(task("identity: robot"))
    assert (named["automountServiceAccountToken"], named["serviceAccountName"]) == (True, "robot")


def test_shared_memory_is_as_large_as_the_memory_of_the_copy():
    spec = pod(task())
    (volume,) = [each for each in spec["volumes"] if each["name"] == "jobman-shm"]
    assert volume["emptyDir"] == {"medium": "Memory"}
    assert {"name": "jobman-shm", "mountPath": "/dev/shm"} in spec["containers"][0]["volumeMounts"]


@pytest.mark.parametrize("place", ["/dev/shm", "/dev/shm/"])
def test_shared_memory_can_be_of_a_chosen_size(place):
    spec = pod(task(f"volumes: [{{name: v, kind: memory, size: 1Gi, to: {place}}}]"))
    (volume,) = [each for each in spec["volumes"] if each.get("emptyDir", {}).get("medium")]
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}


def test_files_travel_whole_and_cannot_be_changed():
    found = release(task("steps: [{name: write, path: /etc/x.conf, content: hello}]"))
    (config,) = found.support
    assert (config["data"], config["immutable"]) == ({"file-0": "hello"}, True)
    (volume,) = [each for each in found.pods[0]["spec"]["volumes"] if "configMap" in each]
    assert volume["configMap"]["name"] == config["metadata"]["name"] == f"a-0-{ID}-1-files"


def test_claims_on_devices_stand_beside_the_job():
    devices = "devices: [{class: gpu.example.org, name: fast}, {class: nic.example.org, shared: true}]"
    found = release(task(devices))
    assert [(each["kind"], each["metadata"]["name"]) for each in found.support] == [
        ("ResourceClaimTemplate", f"a-0-{ID}-1-fast"),
        ("ResourceClaim", f"a-0-{ID}-1-nic-example-org"),
    ]
    assert found.pods[0]["spec"]["resourceClaims"] == [
        {"name": "fast", "resourceClaimTemplateName": f"a-0-{ID}-1-fast"},
        {"name": "nic-example-org", "resourceClaimName": f"a-0-{ID}-1-nic-example-org"},
    ]


def test_the_warning_before_the_end_knows_of_time_that_was_added():
    text = task("attributes: {duration: 100s}, signal: {name: USR1, before: 10s}")
    assert "sleep 90;" in container(text)["command"][2]
    assert "sleep 150;" in container(text, extra=60.0)["command"][2]


def test_a_priority_is_the_queues_and_not_the_clusters():
    assert "priorityClassName" not in pod(task(top="priority: high"))


def test_taints_that_guard_the_pool_are_tolerated():
    taint = {"key": "pool", "operator": "Exists"}
    found = compile_order(order(plan_of(task())), target(tolerations=(taint,)))
    assert found.pods[0]["spec"]["tolerations"] == [taint]


def test_only_a_gang_comes_to_a_node_that_was_closed_since_it_was_released():
    closed = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
    assert "tolerations" not in pod(task())
    assert [each["spec"]["tolerations"] for each in release(task(shape=GANG)).pods] == [[closed]] * 4


def test_what_a_document_says_verbatim_is_laid_over_the_pod():
    spec = pod(task("attributes: {flags: {kubernetes: {dnsPolicy: Default}}}"))
    assert spec["dnsPolicy"] == "Default"


def test_a_local_task_runs_on_the_first_node_of_its_group_and_asks_for_nothing():
    plan = plan_of(
        "version: 1\ngroups:\n- name: g\n  resources: {type: node, count: 1}\n"
        "  tasks: [{name: d, command: [echo], local: true}, {name: t, command: [echo]}]\n"
    )
    (found,) = compile_order(order(plan, "g/d"), target()).pods
    assert pinned_to(found["spec"]) == ["n0"]
    assert "resources" not in found["spec"]["containers"][0]
    assert found["metadata"]["name"] == f"g-0-d-0-{ID}-1-0"


# -- what a copy asks for ------------------------------------------------------------------------------------


def resources(shape, **more):
    return [
        each["spec"]["containers"][0].get("resources") for each in release(task(shape=shape, **more)).pods
    ]


def both(**amounts):
    return {"requests": amounts, "limits": amounts}


def test_a_copy_asks_for_what_its_slot_holds():
    assert resources(GANG) == [both(cpu="1", memory="1Gi")] * 4


def test_a_flavor_passes_as_the_site_wrote_it(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text(
        "flavors: [{name: small, resources: {requests: {cpu: 500m, memory: 1G}, limits: {memory: 2G}}}]"
    )
    (found,) = release(task(shape="small"), load_settings(path)).pods
    main = found["spec"]["containers"][0]
    assert main["resources"] == {"requests": {"cpu": "500m", "memory": "1G"}, "limits": {"memory": "2G"}}
    assert found["metadata"]["labels"]["jobman.io/flavor"] == "small"
    assert variables(main)["JOBMAN_CORES"] == "1"


def test_what_a_node_holds_beside_its_slots_is_divided_and_never_exceeds_what_is_held():
    beside = "{type: core, count: 1}, {type: memory, count: 1000}"
    shape = f"{{type: node, count: 1, with: [{{type: slot, count: 3}}, {beside}]}}"
    assert resources(shape) == [both(cpu="333m", memory="333")] * 3


def test_a_copy_that_has_a_node_whole_has_its_gpus_too():
    shape = "{type: node, count: 1, exclusive: true, with: [{type: core, count: 2}]}"
    (found,) = resources(shape)
    assert found == both(**{"cpu": "2", "nvidia.com/gpu": "8"})
    assert variables(container(task(shape=shape)))["JOBMAN_GPUS"] == "8"


def test_whoever_has_a_whole_node_is_told_of_all_its_cores():
    assert variables(container(task(shape="{type: node, count: 1}")))["JOBMAN_CORES"] == "64"


def test_gpus_are_called_as_the_site_calls_them():
    plan = plan_of(task(shape="{type: gpu, count: 2}"))
    found = compile_order(order(plan), target(gpu_resource="amd.com/gpu")).pods[0]["spec"]["containers"][0]
    assert found["resources"]["limits"] == {"amd.com/gpu": "2"}
    assert variables(found)["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_the_parts_of_a_shape_keep_their_own_amounts():
    text = (
        "version: 1\nresources: {x: {type: core, count: 1}, y: {type: core, count: 2}}\n"
        "tasks: [{name: a, command: [echo], resources: x&y}]\n"
    )
    pods = release(text).pods
    assert [each["spec"]["containers"][0]["resources"]["limits"] for each in pods] == [
        {"cpu": "1"},
        {"cpu": "2"},
    ]
    assert [variables(each["spec"]["containers"][0])["JOBMAN_RANK"] for each in pods] == ["0", "1"]


def test_the_alternative_that_was_placed_is_the_one_that_is_asked_for():
    text = (
        "version: 1\nresources: {x: {type: core, count: 8}, y: {type: core, count: 2}}\n"
        "tasks: [{name: a, command: [echo], resources: x|y}]\n"
    )
    plan = plan_of(text)
    small = Pool([ClusterNode(name="n0", amounts={"core": 4})]).place(plan.units[0].alternatives)
    (found,) = compile_order(order(plan, allocation=small), target()).pods
    assert found["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2"}


def test_replicas_of_a_group_are_different_attempts():
    plan = plan_of(
        "version: 1\ngroups: [{name: g, replicas: 2, resources: {type: node, count: 1}, "
        "tasks: [{name: t, command: [echo]}]}]\n"
    )
    first = order(plan, "g/t")
    assert first.key == key_of(plan.unit("g/t"), 0) == "g.0/t.0"
    second = msgspec.structs.replace(first, key="g.1/t.0")
    assert names.attempt_name(first) != names.attempt_name(second)
