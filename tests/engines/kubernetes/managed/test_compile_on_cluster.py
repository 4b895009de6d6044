"""What is compiled is taken by a real API server that looks at it strictly, and counted there as we do."""

import json
import secrets
from pathlib import Path

import pytest

from jobman.engines.kubernetes.managed.compile import compile_order, namespace_objects, shared_objects
from jobman.engines.kubernetes.managed.features import refusals
from jobman.engines.kubernetes.managed.overheads import overhead
from jobman.plan.nodes import COPY
from jobman.settings import load_settings
from tests.engines.kubernetes.cluster import a_namespace, image, kubectl, on_a_real_cluster
from tests.engines.kubernetes.managed.orders_of import ID, order, orders, target
from tests.engines.kubernetes.objects_of import plan_of, task
from tests.engines.kubernetes.test_every_key import KEYS
from tests.engines.kubernetes.test_every_key import document as two_tasks
from tests.plan.test_features import SETTINGS, USES

pytestmark = [pytest.mark.slow, on_a_real_cluster]
EXAMPLES = Path(__file__).parents[4] / "examples"
IDENTITY = "robot"


@pytest.fixture(scope="module")
def namespace():
    with a_namespace() as name:
        kubectl("create", "serviceaccount", IDENTITY, "-n", name)
        yield name


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "settings.yaml"
    path.write_text(SETTINGS)
    return load_settings(path)


def objects_of(text, settings, into):
    """Every object that a document leads to; none where it is refused."""
    plan = plan_of(text, settings)
    if refusals(plan, into):
        return []
    found = shared_objects(plan, ID, into)
    for each in orders(plan):
        release = compile_order(each, into)
        found += [release.job, *release.support, *release.pods]
    return found


def try_out(objects, **words):
    """What the cluster would make of objects."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    flags = ("--dry-run=server", "--validate=strict", "-o", words.get("form", "name"))
    return kubectl("create", *flags, "-f", "-", stdin=text)


def test_a_cluster_takes_everything_that_is_not_refused(namespace, settings):
    into = target(namespace=namespace, default_image=image(), egress="jobs")
    documents = [(path.read_text(), None) for path in sorted(EXAMPLES.glob("*.yaml"))]
    documents += [(text, settings) for name, text in USES.items() if name != "flags.kubernetes"]
    documents += [(two_tasks(with_it), settings) for keys in KEYS.values() for _, with_it in keys.values()]
    found = {}
    for text, known in documents:
        for each in objects_of(text, known, into):
            # Whether a class of the cluster is there is looked at below.
            each["spec"].pop("runtimeClassName", None) if each["kind"] == "Pod" else None
            found[json.dumps(each, sort_keys=True)] = each
    kinds = {each["kind"] for each in found.values()}
    assert kinds >= {"Job", "Pod", "Service", "NetworkPolicy", "ConfigMap", "ResourceClaimTemplate"}
    assert len(found) > 400
    try_out([*found.values(), *namespace_objects(into)])


@pytest.mark.lab("it makes a runtime class")
def test_a_runtime_class_costs_in_the_cluster_what_we_count(namespace):
    name = f"test-{secrets.token_hex(4)}"
    fixed = {"cpu": "250m", "memory": "120Mi"}
    written = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "runc",
        "overhead": {"podFixed": fixed},
    }
    plan = plan_of(task(f"runtime: {name}"))
    release = compile_order(order(plan), target(namespace=namespace))
    kubectl("create", "-f", "-", stdin=json.dumps(written))
    try:
        pod = json.loads(try_out(release.pods, form="json"))
    finally:
        kubectl("delete", "runtimeclass", name, "--wait=false")
    assert pod["spec"]["overhead"] == fixed
    counted = overhead({name: fixed}, plan, plan.unit("a"))
    assert counted == {"core": 250, "memory": 120 * 2**20, COPY: 1}
