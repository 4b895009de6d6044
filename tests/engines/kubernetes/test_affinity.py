"""Where copies may go, as a cluster's scheduler reads it."""

from jobman.engines.kubernetes import names
from jobman.settings import load_settings
from tests.engines.kubernetes.objects_of import ID, SMALL, compiled, jobs, pod, task

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WHOLE = "{type: node, count: 1}"


def affinity(text, **more):
    return pod(text, **more)["affinity"]


def of_last(text):
    return jobs(compiled(text))[-1]["spec"]["template"]["spec"]["affinity"]


def two(placement):
    other = f"- {{name: b, command: [echo], resources: {SMALL}, placement: {placement}}}\n"
    return task() + other


def is_task(*tasks):
    return {"key": names.TASK, "operator": "In", "values": list(tasks)}


def test_a_plain_task_may_go_anywhere():
    assert "affinity" not in pod(task())


def test_near_means_near_each_of_the_tasks():
    (one, other) = of_last(two("{near: [a, b]}"))["podAffinity"][REQUIRED]
    assert one["labelSelector"] == {"matchLabels": {names.JOB: ID}, "matchExpressions": [is_task("a")]}
    assert other["labelSelector"]["matchExpressions"] == [is_task("b")]


def test_apart_means_away_from_all_of_them():
    (term,) = of_last(two("{apart: {tasks: [a, b], by: zone}}"))["podAntiAffinity"][REQUIRED]
    assert term["labelSelector"]["matchExpressions"] == [is_task("a", "b")]
    assert term["topologyKey"] == "topology.kubernetes.io/zone"


def test_a_preference_is_no_requirement():
    (term,) = of_last(two("{near: {tasks: a, required: false}}"))["podAffinity"][PREFERRED]
    assert (term["weight"], term["podAffinityTerm"]["topologyKey"]) == (100, "kubernetes.io/hostname")


def test_a_level_may_be_the_label_of_a_node():
    text = task("placement: {spread: {by: example.org/row, skew: 2}}")
    (spread,) = pod(text)["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["maxSkew"]) == ("example.org/row", 2)
    assert spread["whenUnsatisfiable"] == "DoNotSchedule"


def test_a_group_stands_for_its_tasks():
    group = f"groups: [{{name: g, tasks: [{{name: x, command: [echo], resources: {SMALL}}}]}}]"
    text = task("placement: {apart: g}", top=group)
    (term,) = jobs(compiled(text))[0]["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    assert term["labelSelector"]["matchExpressions"] == [is_task("g-x-" + names.label_value("g/x")[-6:])]


def test_a_whole_node_is_shared_with_no_other_copy_of_any_job():
    (term,) = affinity(task(shape=WHOLE))["podAntiAffinity"][REQUIRED]
    assert term["labelSelector"] == {"matchExpressions": [{"key": names.JOB, "operator": "Exists"}]}
    assert term["namespaceSelector"] == {}


def test_copies_of_a_replica_may_share_what_is_theirs_alone():
    shape = "{type: node, count: 1, exclusive: true, with: [{type: slot, count: 2}]}"
    found = affinity(task(shape=shape))
    alone = found["podAntiAffinity"][REQUIRED][0]["labelSelector"]["matchExpressions"]
    assert alone[1] == {"key": names.ALLOCATION, "operator": "NotIn", "values": ["012345-a-0"]}
    (together,) = found["podAffinity"][REQUIRED]
    assert together["labelSelector"]["matchLabels"][names.NODE] == "0"


def test_one_level_holds_a_whole_replica(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("resource_types: [rack]\n")
    shape = "{type: rack, count: 1, with: [{type: node, count: 2, with: [{type: core, count: 1}]}]}"
    (job,) = jobs(compiled(task(shape=shape), load_settings(path)))
    (term,) = job["spec"]["template"]["spec"]["affinity"]["podAffinity"][REQUIRED]
    assert term["topologyKey"] == "topology.jobman.io/rack"


EITHER = """
version: 1
resources:
  first: {type: slot, count: 1, requires: {disk: nvme}}
  second: {type: slot, count: 1, requires: {disk: ssd}}
  any: {type: slot, count: 1}
tasks:
- {name: a, command: [echo], resources: SHAPES}
"""


def test_of_alternatives_in_facts_one_is_enough_and_the_first_is_liked():
    found = affinity(EITHER.replace("SHAPES", "first|second"))["nodeAffinity"]
    terms = found[REQUIRED]["nodeSelectorTerms"]
    assert [term["matchExpressions"][0]["values"] for term in terms] == [["nvme"], ["ssd"]]
    (liked,) = found[PREFERRED]
    assert liked["preference"] == terms[0]


def test_an_alternative_without_facts_leaves_only_a_preference():
    found = affinity(EITHER.replace("SHAPES", "first|any"))["nodeAffinity"]
    assert list(found) == [PREFERRED]


def test_labels_and_facts_of_the_same_key_are_both_asked_for():
    spec = pod(task("placement: {labels: {disk: ssd}}, requires: {disk: nvme}"))
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]["matchExpressions"] == [
        {"key": "disk", "operator": "In", "values": ["nvme"]}
    ]
