"""Every feature is in what comes out, or done by the service, or refused: nothing is dropped in silence."""

# ruff: noqa: E501 - a document stands in one line

import pytest

from jobman.engines.kubernetes.managed.compile import compile_order, shared_objects
from jobman.engines.kubernetes.managed.features import _BY_THE_SERVICE, FEATURES, refusals
from jobman.plan.features import CATALOGUE
from jobman.settings import load_settings
from jobman.spec.failures import Condition, FailureRule, Retries, Success
from jobman.spec.networks import Network
from jobman.spec.placement import Placement, Relation, Spread
from jobman.spec.policies import Bonds, Policies
from tests.engines.kubernetes.managed.orders_of import ID, orders, target
from tests.engines.kubernetes.objects_of import SMALL, plan_of, task
from tests.engines.kubernetes.test_every_key import KEYS, document
from tests.plan.test_features import SETTINGS, USES

PLANNED = (Placement, Relation, Spread)
"""What the planner looks at; the node that it chose is all that is left of it."""
DECIDED: dict[tuple[type, str], str] = {
    **{(record, key): "by the service" for record in (Retries, Condition, FailureRule, Success, *PLANNED) for key in record.__struct_fields__},
    **{(Policies, key): "by the service" for key in ("retries", "parallelism", "completions", "max_failed", "on_failure", "success", "hold", "gates", "restart", "suspend", "placement", "priority")},
    (Bonds, "coordinator"): "told with the order",
    (Network, "connect"): "told with the order",
}  # fmt: skip
"""Keys that change no object by themselves, and who does what they ask for."""


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "settings.yaml"
    path.write_text(SETTINGS)
    return load_settings(path)


def objects(text, settings=None):
    """All objects of a document, without the digest of its plan."""
    plan = plan_of(text, settings)
    found = [*shared_objects(plan, ID, target())]
    for order in orders(plan):
        release = compile_order(order, target())
        found += [release.job, *release.support, *release.pods]
    for each in found:
        each["metadata"].get("annotations", {}).pop("jobman.io/digest", None)
    return found


def refused(text, settings=None, **more):
    return [(each.feature, each.units) for each in refusals(plan_of(text, settings), target(**more))]


def flags(text):
    return task(f"attributes: {{flags: {{kubernetes: {text}}}}}")


# -- the table -----------------------------------------------------------------------------------------------


def test_the_table_has_every_feature():
    assert list(FEATURES) == [feature.id for feature in CATALOGUE]


@pytest.mark.parametrize("feature", list(USES))
def test_a_feature_is_refused_as_the_table_says(feature, settings):
    found = {name for name, _ in refused(USES[feature], settings)}
    # A type needs its full name; a relative path and a field of no pod are other matters.
    also = {"shape.site-type"} if feature == "shape.site-type" else set()
    expected = ({feature} if FEATURES[feature].how == "refused" else set()) | also
    if feature == "steps-only":
        expected |= {"step.stage"}
    assert found == expected


@pytest.mark.parametrize("feature", [name for name in USES if FEATURES[name].how != "refused"])
def test_what_is_not_refused_can_be_compiled(feature, settings):
    assert objects(USES[feature], settings)


def test_what_the_service_does_is_native():
    assert {FEATURES[name].how for name in _BY_THE_SERVICE} == {"native"}


# -- every key -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "key"), [pytest.param(record, key, id=f"{record.__name__}.{key}") for record in KEYS for key in KEYS[record]]
)  # fmt: skip
def test_a_key_changes_what_comes_out_or_is_refused_or_done_by_the_service(record, key, settings):
    without, with_it = KEYS[record][key]
    if refused(document(with_it), settings):
        return
    is_other = objects(document(with_it), settings) != objects(document(without or ""), settings)
    assert is_other or (record, key) in DECIDED


# -- values that ask for too much ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "field",
    ["{nodeName: n1}", "{affinity: {}}", "{nodeSelector: {a: b}}", "{schedulingGates: []}", "{hostNetwork: true}", "{hostname: x}", "{restartPolicy: Always}", "{containers: [{name: main, resources: {limits: {cpu: 2}}}]}", "{initContainers: [{name: x, image: y, resources: {}}]}"],
)  # fmt: skip
def test_what_the_service_plans_with_is_not_for_a_document_to_say(field):
    assert refused(flags(field)) == [("flags.kubernetes", ("a",))]


def test_other_fields_of_a_pod_are_for_a_document_to_say():
    assert refused(flags("{dnsPolicy: Default, containers: [{name: main, tty: true}]}")) == []


@pytest.mark.parametrize(
    "label", ["connect.jobman.io/abcdefabcdef", "app.kubernetes.io/name", "jobman.io/job"]
)
def test_nobody_opens_doors_with_a_label(label):
    assert refused(task(top=f"labels: {{{label}: 'yes'}}")) == [("labels", ())]


def test_without_a_default_image_a_task_needs_one():
    assert refused(task(), default_image=None) == [("image", ("a",))]
    assert refused(task("image: x"), default_image=None) == []


def test_without_a_default_image_nothing_runs_in_the_driver_of_a_group():
    text = f"version: 1\ngroups: [{{name: g, resources: {SMALL}, image: x, tasks: [{{name: d, command: [echo], local: true}}, {{name: t, command: [echo]}}]}}]\n"
    assert refused(text, default_image=None) == [("local", ("g/d",))]
    assert refused(text) == []


def test_a_gang_is_tried_again_as_often_as_one_likes():
    text = task(
        "retries: {limit: 50, delay: 1h}, on_failure: [{reasons: timeout, action: retry}]",
        shape="{type: slot, count: 4}",
    )
    assert refused(text) == []


def test_there_is_no_end_to_replicas():
    assert refused(task("replicas: 1000000")) == []


def test_copies_that_cannot_know_each_other_are_refused():
    assert refused(task(shape="{type: slot, count: 1001}")) == [("shape.slot", ("a",))]
    assert refused(task(shape="{type: node, count: 1001}")) == [("shape.node", ("a",))]


def test_files_of_the_submitter_are_refused():
    assert refused(task("env_from: [{file: v.env}]")) == [("env_from", ("a",))]
    assert refused(task("steps: [{name: stage, path: data}]")) == [("step.stage", ("a",))]


def test_large_files_are_refused():
    content = "x" * 900_001
    assert refused(task(f"steps: [{{name: write, path: /x, content: {content}}}]")) == [
        ("step.write", ("a",))
    ]


def test_only_a_whole_job_is_isolated():
    text = f"version: 1\ngroups: [{{name: g, resources: {SMALL}, network: {{isolated: true}}, tasks: [{{command: [echo]}}]}}]\n"
    assert refused(text) == [("network.isolated", ("g",))]


def test_windows_is_refused():
    assert refused(task("runtime: {os: windows}")) == [("runtime.os", ("a",))]


@pytest.mark.parametrize(
    "text",
    [
        task(top="hooks: {before: x}"),
        f"version: 1\ngroups: [{{name: g, resources: {SMALL}, hooks: {{before: x}}, tasks: [{{command: [echo]}}]}}]\n",
    ],
)
def test_hooks_of_something_larger_than_a_task_are_refused(text):
    assert [feature for feature, _ in refused(text)] == ["hooks.before"]
