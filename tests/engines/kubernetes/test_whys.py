"""Why jobs wait and fail, in words, on what a real cluster told of them."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from jobman.engines.kubernetes.api import Api
from jobman.engines.kubernetes.blockers import Blocker
from jobman.engines.kubernetes.facts import meets, written
from jobman.engines.kubernetes.kinds import CLAIMS, EVENTS, JOBS, NODES, PODS, QUOTAS, Kind
from jobman.engines.kubernetes.objects import (
    Condition,
    Event,
    Involved,
    Requirement,
    Taint,
    Toleration,
    Waiting,
)
from jobman.engines.kubernetes.refusals import why_refused
from jobman.engines.kubernetes.unschedulable import untolerated, why_unschedulable
from jobman.engines.kubernetes.whys import why
from tests.engines.kubernetes.cluster import a_job, a_namespace, on_a_real_cluster, talk
from tests.engines.kubernetes.recorded import NAMES, Situation, changed, node, recorded


def reasons(situation: Situation, *, nodes: bool = True) -> list[Blocker]:
    return why(
        situation.job,
        situation.pods,
        situation.events,
        situation.quotas,
        situation.claims,
        situation.node_objects() if nodes else [],
    )


def reason(name: str, **options) -> Blocker:
    (only,) = reasons(recorded(name), **options)
    return only


def about(pod, kind: str, message: str) -> Event:
    involved = Involved(kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid)
    return Event(involved_object=involved, type="Warning", reason=kind, message=message)


@pytest.mark.parametrize(
    ("name", "kind", "message", "advice"),
    [
        ("suspended", "hold", "it is held: the Job is suspended", "`jobman release 73757370656e`"),
        (
            "gated",
            "gate",
            "it waits at closed gates: data, licence",
            "`jobman gate open 676174656400 data licence`",
        ),
        (
            "turns",
            "parallelism",
            "main: at most 2 run at once",
            "raise `parallelism` to run more at once",
        ),
        ("resting", "retry", "it failed with exit code 4 and is tried again after a pause", ""),
        (
            "crash-loop",
            "retry",
            "container main ended with exit code 7; it was started again 6 times, and soon is once more",
            "`jobman logs` shows what it said",
        ),
        ("init-runs", "start", "its step stage runs, and the command comes after it", ""),
        ("stopping", "start", "it is being stopped and has 900 s for it", ""),
        (
            "unready",
            "health",
            "container main runs, but its check does not pass: Readiness probe failed",
            "look at `checks`, and at what it says in `jobman logs`",
        ),
    ],
)
def test_what_is_under_way_or_up_to_somebody_is_said_so(name, kind, message, advice):
    found = reason(name)
    assert (found.kind, found.message, found.advice) == (kind, message, advice)


@pytest.mark.parametrize(
    ("name", "kind", "message", "advice"),
    [
        (
            "too-large",
            "never",
            "as the nodes are, none will ever take it: both nodes have too little cpu "
            "(it asks for 64, the largest node has 2)",
            "ask for at most 2 cores a copy",
        ),
        (
            "too-much-memory",
            "never",
            "as the nodes are, none will ever take it: both nodes have too little memory "
            "(it asks for 2Ti, the largest node has 23.5Gi)",
            "ask for at most 23.5Gi of memory a copy",
        ),
        (
            "no-gpu-here",
            "never",
            "as the nodes are, none will ever take it: both nodes have no nvidia.com/gpu at all",
            "check the name nvidia.com/gpu, and that the device plugin of the cluster runs",
        ),
        (
            "no-such-label",
            "never",
            "as the nodes are, none will ever take it: "
            "both nodes do not have the label it asks for (none has disk=fast)",
            "change `requires` or `placement`, or have a node labelled",
        ),
        (
            "no-such-fact",
            "never",
            "as the nodes are, none will ever take it: both nodes do not have the label it asks for "
            "(none has io.archspec/cpu.target=sapphirerapids or io.archspec/cpu.target=zen4)",
            "change `requires` or `placement`, or have a node labelled",
        ),
        (
            "not-together",
            "never",
            "as the nodes are, none will ever take it: both nodes are not of the kind it asks for: none is "
            "all of it at once (kubernetes.io/hostname=lab-1 and topology.kubernetes.io/zone=zone-2)",
            "change `requires` or `placement`",
        ),
        (
            "busy",
            "resources",
            "no node can take it now: 1 of 2 nodes has too little cpu free (it asks for 2), "
            "1 of 2 nodes is not of the kind it asks for (kubernetes.io/hostname=lab-1)",
            "wait until others end, which `jobman queue` shows, or ask for less; "
            "or look at `requires` and `placement`",
        ),
        (
            "apart",
            "resources",
            "no node can take it now: both nodes have another from which it must stay apart",
            "wait until that ends, or ask for less in `placement: {apart: …}`",
        ),
        (
            "preemptor",
            "resources",
            "others of lower priority are being stopped on vision-1 to make room for it",
            "",
        ),
        (
            "foreign-scheduler",
            "queue",
            "the scheduler not-there has not looked at it",
            "see that this scheduler runs, or leave out `scheduler`",
        ),
    ],
)
def test_a_pod_without_a_node_says_what_each_node_lacks(name, kind, message, advice):
    found = reason(name)
    assert (found.kind, found.message, found.advice) == (kind, message, advice)


def test_labels_that_nodes_have_instead_are_told():
    situation = recorded("not-together")
    pod = changed(
        situation.pods[0], spec__affinity=None, spec__node_selector={"topology.kubernetes.io/zone": "zone-9"}
    )
    (found,) = why(situation.job, [pod], nodes=situation.node_objects())
    assert (
        "(none has topology.kubernetes.io/zone=zone-9; there is topology.kubernetes.io/zone=zone-1, "
        "topology.kubernetes.io/zone=zone-2)" in found.message
    )


@pytest.mark.parametrize(
    ("operator", "values", "met"),
    [
        ("In", ["zone-1", "zone-7"], True),
        ("In", ["zone-7"], False),
        ("NotIn", ["zone-7"], True),
        ("NotIn", ["zone-1"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["3"], False),
        ("SomethingNew", [], True),
    ],
)
def test_a_node_meets_what_is_asked_of_its_labels(operator, values, met):
    asked = Requirement(key="topology.kubernetes.io/zone", operator=operator, values=values)
    assert meets(node("lab-1"), asked) == met
    assert asked.key in written(asked)


def test_numbers_in_labels_are_compared_as_numbers():
    big = changed(node("lab-1"), metadata__labels={"cores": "128"})
    assert meets(big, Requirement(key="cores", operator="Gt", values=["64"]))
    assert meets(big, Requirement(key="cores", operator="Lt", values=["1000"]))
    assert not meets(big, Requirement(key="cores", operator="Gt", values=["many"]))


def test_a_job_without_pods_says_who_has_to_make_them():
    job = changed(recorded("done").job, status__conditions=[])
    (found,) = why(job, [])
    assert found.message == "the cluster has not made its pods yet"
    (found,) = why(changed(job, spec__managed_by="example.com/batch"), [])
    assert found.message == "the controller example.com/batch has not made its pods yet"


def test_a_taint_is_named_with_how_to_tolerate_it():
    found = reason("tainted")
    assert "1 of 3 nodes has a taint that it does not tolerate: dedicated=vision:NoSchedule" in found.message
    assert "toleration under `flags: {kubernetes: …}`" in found.advice


def test_a_lost_node_is_named_and_who_may_go_on_without_it():
    lost, next_one = reasons(recorded("node-lost"))
    assert lost.message == "its node vision-1 does not answer, so that nobody can tell when its pod has ended"
    assert lost.advice == "once you know that vision-1 is off: `kubectl delete pod node-lost-0-8qvfg --force`"
    assert "1 of 3 nodes is out of reach" in next_one.message


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        (
            "no-image",
            "image",
            "the image localhost:1/nowhere/missing:3 cannot be pulled: "
            "the registry cannot be reached from the node",
        ),
        (
            "never-pulled",
            "image",
            "the image localhost/missing:3 is not on the node, and it may not be pulled",
        ),
        (
            "bad-image-name",
            "image",
            "Localhost/UPPER:3 is not the name of an image: repository name (UPPER) must be lowercase",
        ),
        ("no-claim", "volume", "there is no volume claim results in its namespace"),
        (
            "unbound-claim",
            "volume",
            "there is no volume of class fast for its claim waiting yet: "
            'storageclass.storage.k8s.io "fast" not found',
        ),
        (
            "host-volume",
            "volume",
            "volume h cannot be mounted: hostPath type check failed: /no/such/place is not a directory",
        ),
        ("no-secret-volume", "configuration", "there is no Secret licence in its namespace"),
        ("no-secret-variable", "configuration", "there is no Secret licence in its namespace"),
        ("no-config-volume", "configuration", "there is no ConfigMap settings in its namespace"),
        ("no-config-key", "configuration", "the ConfigMap present has no key absent"),
        ("root-refused", "refused", "the image localhost/jobman-busybox:1 runs as root, and it may not"),
    ],
)
def test_a_pod_that_cannot_start_says_what_it_does_not_find(name, kind, message):
    found = reason(name)
    assert (found.kind, found.message, found.replicas) == (kind, message, (0,))
    assert found.advice


@pytest.mark.parametrize(
    ("name", "kind", "message", "advice"),
    [
        (
            "over-quota",
            "never",
            "the quota share is too small for it: it asks for 2 cores, and 0 of 1 are in use",
            "ask for at most 1 core, or ask for a larger quota",
        ),
        (
            "quota-silent",
            "limit",
            "the quota share of its namespace wants every pod to say its requests.cpu",
            "name them under `resources`, or use a flavor that does",
        ),
        (
            "no-account",
            "refused",
            "there is no service account nobody-knows in its namespace",
            "create it, or leave out `identity`",
        ),
        (
            "no-priority",
            "refused",
            "the cluster has no priority class not-there",
            "use one that `kubectl get priorityclasses` lists as `priority`",
        ),
        (
            "no-runtime",
            "refused",
            "the cluster has no runtime class not-there",
            "use one that `kubectl get runtimeclasses` lists under `runtime: {class: …}`",
        ),
    ],
)
def test_a_job_that_may_not_make_pods_says_what_is_in_the_way(name, kind, message, advice):
    found = reason(name)
    assert (found.kind, found.message, found.advice, found.replicas) == (kind, message, advice, ())


@pytest.mark.parametrize(
    ("name", "message", "advice"),
    [
        ("exit-3", "it failed with exit code 3", "`jobman logs` shows what it said"),
        (
            "oom",
            "it failed: used more than the 24 MiB of memory it was given",
            "ask for more memory under `resources`",
        ),
        (
            "deadline-job",
            "it failed: ran longer than the 3 s it was given",
            "give it more time with `duration`",
        ),
        (
            "no-command",
            'it failed (launch-failed): exec: "no-such-program": executable file not found in $PATH',
            "check the command, and that the image has it",
        ),
        (
            "evicted-disk",
            "it failed: Pod ephemeral local storage usage exceeds the total limit of containers 8Mi",
            "ask for more `storage` under `resources`",
        ),
        ("copies", "it failed: copy 1: ended with exit code 11", "`jobman logs` shows what it said"),
    ],
)
def test_a_job_that_failed_says_how_and_what_helps(name, message, advice):
    found = reason(name)
    assert (found.kind, found.message, found.advice) == ("failed", message, advice)


@pytest.mark.parametrize("name", ["running", "deleted-pod", "restarted", "done", "success-policy"])
def test_nothing_stands_in_the_way_of_what_goes_well(name):
    assert reasons(recorded(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_situation_is_told_also_by_somebody_who_may_not_look_at_nodes(name):
    assert len(reasons(recorded(name), nodes=False)) <= len(reasons(recorded(name)))
    for found in reasons(recorded(name), nodes=False):
        assert found.message
        assert not found.message.endswith(".")


def test_replicas_that_suffer_from_the_same_are_told_once():
    assert reason("fail-index-policy").replicas == (0, 1)


def test_a_refusal_is_forgotten_when_a_pod_was_made_after_it():
    refused, made = recorded("over-quota"), recorded("exit-3")
    pod = changed(
        made.pods[0],
        metadata__owner_references=[
            changed(made.pods[0].metadata.owner_references[0], uid=refused.job.metadata.uid)
        ],
        metadata__creation_timestamp=datetime(2099, 1, 1, tzinfo=UTC),
    )
    assert why(refused.job, [pod], refused.events) != why(refused.job, [], refused.events)
    assert all(found.kind != "limit" for found in why(refused.job, [pod], refused.events))


def test_a_quota_is_told_as_it_is_now_where_one_may_look():
    message = (
        recorded("over-quota")
        .events[-1]
        .message.replace("requested: requests.cpu=2", "requested: requests.cpu=1")
    )
    (quota,) = recorded("over-quota").quotas
    used = changed(quota, status__used={"requests.cpu": "500m"})
    found = why_refused(message, [used])
    assert found.kind == "limit"
    assert found.message == "the quota share is too small for it: it asks for 1 core, and 0.5 of 1 are in use"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
            "the namespace allows pods of the level restricted:latest only: runAsNonRoot != true",
        ),
        (
            'Error creating: admission webhook "images.example.com" denied the request: no tag',
            "the cluster's own check images.example.com does not allow it: no tag",
        ),
        (
            'Error creating: pods "x" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
            "the cluster does not take its pods: maximum cpu usage per Container is 1, but limit is 2",
        ),
    ],
)
def test_what_the_cluster_does_not_allow_is_said_in_its_own_words(said, words):
    assert why_refused(said, []).message == words
    assert why_refused(said, []).kind == "refused"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("pull access denied, repository does not exist", "the registry does not let us have it"),
        ("manifest unknown: manifest unknown", "there is no such image or tag"),
        ("x509: certificate signed by unknown authority", "is not trusted by the node"),
        ("toomanyrequests: rate limit", "the registry wants fewer requests"),
        ("no match for platform in manifest", "there is none for the architecture of the node"),
        ("something else", "something else"),
    ],
)
def test_what_a_registry_refuses_is_put_into_words(said, cause):
    pod = recorded("no-image").pods[0]
    status = changed(
        pod.status.container_statuses[0], state__waiting=Waiting(reason="ErrImagePull", message=said)
    )
    found = why(recorded("no-image").job, [changed(pod, status__container_statuses=[status])])
    assert cause in found[0].message


def test_an_older_cluster_tells_the_cause_of_a_failed_pull_in_an_event():
    pod = recorded("no-image").pods[0]
    waiting = Waiting(reason="ImagePullBackOff", message='Back-off pulling image "x"')
    status = changed(pod.status.container_statuses[0], state__waiting=waiting)
    event = about(pod, "Failed", 'Failed to pull image "x": rpc error: manifest unknown')
    found = why(recorded("no-image").job, [changed(pod, status__container_statuses=[status])], [event])
    assert "there is no such image or tag" in found[0].message


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (
            "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient memory. "
            "preemption: 0/4 nodes are available: 4 No preemption victims found.",
            "resources",
            "1 of 4 nodes is cordoned, 3 of 4 nodes have too little memory free (it asks for 2Ti)",
        ),
        (
            "0/2 nodes are available: 2 node(s) had untolerated taint {gpu: yes}.",
            "node",
            "both nodes have a taint that it does not tolerate: gpu: yes",
        ),
        (
            "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
            "node",
            "the only node is not ready",
        ),
        (
            "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
            "node",
            "all 3 nodes cannot reach its volume",
        ),
        (
            "0/3 nodes are available: 3 Too many pods.",
            "resources",
            "all 3 nodes run as many pods as is allowed",
        ),
        (
            "0/3 nodes are available: 3 node(s) were struck by lightning.",
            "node",
            "all 3 nodes cannot: were struck by lightning",
        ),
    ],
)
def test_what_the_scheduler_says_is_understood_without_the_nodes(said, kind, words):
    found = why_unschedulable(recorded("too-much-memory").pods[0], said, [], [], [])
    assert (found.kind, found.message) == (kind, f"no node can take it now: {words}")


def test_a_sentence_of_the_scheduler_that_nobody_knows_is_passed_on():
    found = why_unschedulable(recorded("busy").pods[0], "running PreBind plugin: timeout", [], [], [])
    assert found.message == "the scheduler says: running PreBind plugin: timeout"


def test_a_pod_for_which_the_cluster_grows_says_so():
    situation = recorded("too-large")
    events = [*situation.events, about(situation.pods[0], "TriggeredScaleUp", "pod triggered scale-up")]
    (found,) = why(situation.job, situation.pods, events)
    assert found.message == "no node can take it now, and the cluster is adding one for it"


@pytest.mark.parametrize(
    ("toleration", "kept_away"),
    [
        (Toleration(operator="Exists"), False),
        (Toleration(key="dedicated", operator="Exists"), False),
        (Toleration(key="dedicated", value="vision", effect="NoSchedule"), False),
        (Toleration(key="dedicated", value="speech"), True),
        (Toleration(key="dedicated", operator="Exists", effect="NoExecute"), True),
    ],
)
def test_a_taint_keeps_away_who_does_not_tolerate_it(toleration, kept_away):
    tainted = changed(
        node("lab-1"),
        spec__taints=[
            Taint(key="dedicated", value="vision", effect="NoSchedule"),
            Taint(key="old", effect="PreferNoSchedule"),
        ],
    )
    pod = changed(recorded("busy").pods[0], spec__tolerations=[toleration])
    assert bool(untolerated(pod, tainted)) == kept_away


def test_a_pod_on_a_node_that_is_not_ready_says_to_wait():
    situation = recorded("unready")
    name = situation.pods[0].spec.node_name
    bad = changed(node(name), status__conditions=[Condition(type="Ready", status="False")])
    (found,) = why(situation.job, situation.pods, [], nodes=[bad])
    assert (found.kind, found.message) == ("node", f"its node {name} is not ready")


async def look(api: Api, namespace: str) -> dict[str, str]:
    """What is said of each Job in a namespace, from what the cluster tells now."""
    kinds: tuple[Kind[Any], ...] = (JOBS, PODS, EVENTS, QUOTAS, CLAIMS)
    jobs, pods, events, quotas, claims = [(await api.list(kind, namespace)).items for kind in kinds]
    nodes = (await api.list(NODES)).items
    return {
        job.metadata.name: "; ".join(found.message for found in why(job, pods, events, quotas, claims, nodes))
        for job in jobs
    }


@on_a_real_cluster
@pytest.mark.slow
def test_a_real_cluster_is_understood():
    with a_namespace() as namespace:
        written = {name: a_job(name, namespace, "exit 3") for name in ("large", "keyless", "fails", "held")}
        pods = {name: job["spec"]["template"]["spec"] for name, job in written.items()}
        pods["large"]["containers"][0]["resources"] = {"requests": {"memory": "900Ti"}}
        pods["keyless"]["containers"][0]["envFrom"] = [{"secretRef": {"name": "absent"}}]
        written["held"]["spec"]["suspend"] = True
        expected = {
            "large": "have too little memory (it asks for 900Ti, the largest node has",
            "keyless": "there is no Secret absent in its namespace",
            "fails": "it failed with exit code 3",
            "held": "it is held: the Job is suspended",
        }

        async def work(api: Api) -> dict[str, str]:
            for job in written.values():
                await api.create(job)
            for _ in range(300):
                said = await look(api, namespace)
                if all(words in said[name] for name, words in expected.items()):
                    break
                await asyncio.sleep(0.2)
            return said

        said = talk(work)
    assert {name: words for name, words in expected.items() if words not in said[name]} == {}, said
