"""What is made in a cluster for an image, and how many pods of it there should be."""

from __future__ import annotations

from typing import Any

import pytest

from jobman.engines.kubernetes.errors import ConfigError
from jobman.tasks.cluster import Way, size
from jobman.tasks.cluster_process import connect, settings_of
from jobman.tasks.departures import costs
from jobman.tasks.mapper import Executor
from jobman.tasks.pods import Place, autoscaler, deployment, name_of, scaled_object, short
from jobman.tasks.scaling import Limits

IMAGE = "registry.example/pricing/worker:2.1"
PLACE = Place(namespace="work", broker="http://broker:7080", agent_image="jobman:1", token_secret="agents")
EXECUTOR = Executor(
    image=IMAGE, resources={"cpu": "2", "memory": "1Gi"}, environment={"MODEL": "heston", "A": "b"}
)


def pod(place: Place = PLACE) -> dict[str, Any]:
    spec: dict[str, Any] = deployment(EXECUTOR, Limits(slots=4), place)["spec"]["template"]["spec"]
    return spec


def test_the_image_of_a_worker_is_untouched():
    (worker,) = pod()["initContainers"]
    assert worker["image"] == IMAGE
    assert not worker.keys() & {"command", "args", "securityContext", "lifecycle"}


def test_a_worker_has_its_environment_and_the_ports():
    (worker,) = pod()["initContainers"]
    given = {each["name"]: each["value"] for each in worker["env"]}
    assert given == {"MODEL": "heston", "A": "b", "JOBMAN_WORKER_PORT": "7101", "JOBMAN_AGENT_PORT": "7102"}


def test_a_worker_reserves_all_and_may_use_idle_cores():
    (worker,) = pod()["initContainers"]
    assert worker["resources"] == {
        "requests": {"cpu": "2", "memory": "1Gi"},
        "limits": {"memory": "1Gi"},
    }


def test_a_worker_is_ended_behind_its_agent():
    (worker,) = pod()["initContainers"]
    assert worker["restartPolicy"] == "Always"
    assert pod()["terminationGracePeriodSeconds"] == 900
    assert pod()["shareProcessNamespace"]


def test_an_agent_knows_its_broker_its_worker_and_its_token():
    (agent,) = pod()["containers"]
    assert " ".join(agent["args"]) == (
        f"task agent --broker http://broker:7080 --image {IMAGE} --slots 4"
        " --worker 127.0.0.1:7101 --listen 127.0.0.1:7102"
    )
    assert agent["env"][-1]["valueFrom"] == {"secretKeyRef": {"name": "agents", "key": "token"}}


def test_without_a_secret_an_agent_has_no_token():
    (agent,) = pod(Place(namespace="work", broker="http://b", agent_image="jobman:1"))["containers"]
    assert "JOBMAN_TOKEN" not in [each["name"] for each in agent["env"]]


@pytest.mark.parametrize("image", [IMAGE, "a", "UPPER/Case:1", "x" * 300, "host:5000/" + "é" * 30, "-"])
def test_names_and_labels_are_such_as_a_cluster_takes(image):
    assert len(name_of(image)) <= 52
    assert name_of(image).replace("-", "").isalnum()
    assert name_of(image) == name_of(image).lower()
    assert 0 < len(short(image)) <= 63
    assert short(image).strip("-._") == short(image)


def test_two_images_never_share_a_name_or_a_label():
    images = ["a/x:1", "b/x:1", "x:1", "x-1", "X-1"]
    assert len({name_of(image) for image in images}) == len({short(image) for image in images}) == 5


def test_an_hpa_aims_at_the_seconds_and_the_tasks_of_one_pod():
    spec = autoscaler(IMAGE, Limits(most=30, slots=4, target=2.5, calm=90), PLACE, "uid")["spec"]
    targets = {
        each["external"]["metric"]["name"]: each["external"]["target"]["averageValue"]
        for each in spec["metrics"]
    }
    assert targets == {"jobman_outstanding_seconds": "10", "jobman_slots_busy": "4"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 30)
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 90


def test_keda_asks_prometheus_for_the_same_and_goes_down_to_none():
    spec = scaled_object(IMAGE, Limits(most=30, slots=4), PLACE, "uid", "http://prometheus:9090")["spec"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (0, 30)
    first = spec["triggers"][0]["metadata"]
    assert first["query"] == f'sum(jobman_workable_seconds{{image="{IMAGE}"}})'
    assert (first["threshold"], first["serverAddress"]) == ("40", "http://prometheus:9090")


@pytest.mark.parametrize(
    ("way", "wanted", "there", "number"),
    [
        (Way.OWN, 5, 2, 5),
        (Way.OWN, 2, 5, 2),
        (Way.OWN, 2, 2, None),
        (Way.HPA, 5, 0, 1),
        (Way.HPA, 5, 2, None),
        (Way.HPA, 2, 5, None),
        (Way.HPA, 0, 5, None),
        (Way.HPA, 0, 1, 0),
        (Way.HPA, 0, 0, None),
        (Way.HPA, 1, 1, None),
        (Way.KEDA, 5, 0, None),
        (Way.KEDA, 0, 5, None),
    ],
)
def test_an_hpa_is_helped_from_none_to_one_and_back_and_keda_needs_no_help(way, wanted, there, number):
    assert size(way, wanted, there) == number


def test_a_pod_costs_as_much_as_it_is_busy():
    assert costs({"idle": 0, "little": 1, "half": 4, "full": 8, "more": 80}, 8) == {
        "idle": 0,
        "little": 25,
        "half": 50,
        "full": 100,
        "more": 100,
    }


def test_the_settings_name_images_and_how_they_are_scaled():
    found = settings_of(f"""
types: [{{type: price, image: "{IMAGE}", resources: {{cpu: "2"}}}}]
scaling: {{"*": {{most: 20}}}}
tokens: {{secret: desk}}
""")
    assert found.executors == {IMAGE: Executor(image=IMAGE, resources={"cpu": "2"})}
    assert found.scaling == {"*": Limits(most=20)}


@pytest.mark.parametrize(
    "text",
    [
        "scaling: {a: {most: 0}}",
        "scaling: {a: {least: 3, most: 2}}",
        "scaling: {a: {slots: x}}",
        "types: [{image: a}]",
        "types: [",
    ],
)
def test_settings_that_cannot_be_are_refused(text):
    with pytest.raises(ConfigError, match="The settings are wrong"):
        settings_of(text)


@pytest.mark.parametrize("url", ["broker", "ftp://broker", "http://"])
def test_a_broker_has_an_address(url):
    with pytest.raises(ConfigError, match=r"--broker: .* is no address"):
        connect(url, "")
