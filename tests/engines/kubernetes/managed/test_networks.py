"""Walls and doors: who may reach whom, as the cluster's network reads it."""

import pytest

from jobman.engines.kubernetes.managed.compile import compile_order
from jobman.engines.kubernetes.managed.networks import is_alone, namespace_objects, shared_objects
from tests.engines.kubernetes.managed.orders_of import ID, order, target
from tests.engines.kubernetes.managed.policy import Network, Visitor
from tests.engines.kubernetes.objects_of import plan_of, task

PARTNER = "abcdefabcdef"
OTHER = "999999999999"
OUTSIDE = Visitor({"app": "anything"}, "elsewhere")
PROXY = Visitor({"app.kubernetes.io/name": "jobman"}, "lab")
EXPOSING = "ports: [{port: 80, expose: true}, 90]"


def visitor(job, *connected, more="", task_name="a"):
    """A pod of a job, by its labels."""
    made = order(plan_of(task(more).replace("name: a,", f"name: {task_name},")), job=job, connected=connected)
    return Visitor(compile_order(made, target()).pods[0]["metadata"]["labels"], "lab")


def network(*jobs, top="", more="", **into):
    """The walls of a cluster where these jobs run."""
    plan = plan_of(task(more, top))
    found = namespace_objects(target(**into))
    for job in jobs:
        found += shared_objects(plan, job, target(**into))
    return Network([each for each in found if each["kind"] == "NetworkPolicy"])


def services(top="", more=""):
    found = shared_objects(plan_of(task(more, top)), ID, target())
    return [each for each in found if each["kind"] == "Service"]


# -- who gets in ---------------------------------------------------------------------------------------------


def test_the_copies_of_a_job_reach_each_other():
    assert network(ID).lets(visitor(ID), visitor(ID), 1234)


def test_a_pod_of_another_job_is_kept_out():
    assert not network(ID, OTHER).lets(visitor(OTHER), visitor(ID), 1234)


def test_a_pod_is_shut_before_anything_is_known_of_its_job():
    assert not network().lets(visitor(OTHER), visitor(ID), 1234)


def test_connected_jobs_reach_each_other_both_ways():
    walls = network(ID, PARTNER)
    one, other = visitor(ID, PARTNER), visitor(PARTNER, ID)
    assert walls.lets(one, other, 1)
    assert walls.lets(other, one, 1)


def test_the_partner_of_a_partner_is_kept_out():
    walls = network(ID, PARTNER, OTHER)
    assert not walls.lets(visitor(OTHER, PARTNER), visitor(ID, PARTNER), 1)


def test_the_proxy_gets_in_everywhere_and_somebody_who_only_looks_like_it_does_not():
    for walls in (network(), network(ID), network(ID, top="network: {isolated: true}")):
        assert walls.lets(PROXY, visitor(ID), 1234)
        assert not walls.lets(Visitor(PROXY.labels, "elsewhere"), visitor(ID), 1234)


def test_a_proxy_may_be_at_home_in_another_namespace():
    walls = network(ID, proxy_namespace="jobman-system")
    assert walls.lets(Visitor(PROXY.labels, "jobman-system"), visitor(ID), 1)
    assert not walls.lets(PROXY, visitor(ID), 1)


def test_others_of_the_cluster_are_kept_out():
    assert not network(ID).lets(OUTSIDE, visitor(ID), 80)


def test_an_exposed_port_is_open_to_everybody_and_no_other_is():
    walls = network(ID, more=EXPOSING)
    inside = visitor(ID, more=EXPOSING)
    for guest in (OUTSIDE, visitor(OTHER)):
        assert walls.lets(guest, inside, 80)
        assert not walls.lets(guest, inside, 90)
        assert not walls.lets(guest, inside, 80, "UDP")


def test_a_port_that_one_task_exposes_stays_shut_at_the_others():
    assert not network(ID, more=EXPOSING).lets(OUTSIDE, visitor(ID, task_name="b"), 80)


# -- who gets out --------------------------------------------------------------------------------------------


def test_copies_reach_the_world_unless_somebody_says_otherwise():
    assert network(ID).lets(visitor(ID), OUTSIDE, 443)


@pytest.mark.parametrize("how", [{"top": "network: {isolated: true}"}, {"egress": "jobs"}])
def test_shut_in_copies_reach_their_own_job_their_partners_and_names(how):
    walls = network(ID, PARTNER, **how)
    one = visitor(ID, PARTNER)
    assert not walls.lets(one, OUTSIDE, 443)
    assert walls.lets(one, visitor(ID), 443)
    assert walls.lets(one, visitor(PARTNER, ID), 443)
    assert walls.lets(one, OUTSIDE, 53, "UDP")
    assert walls.lets(one, OUTSIDE, 53)


def test_where_only_jobs_are_reached_a_pod_is_shut_in_from_the_first_moment():
    assert not network(egress="jobs").lets(visitor(ID), OUTSIDE, 443)


# -- names ---------------------------------------------------------------------------------------------------


def test_every_copy_of_a_job_has_a_name():
    (headless,) = services()
    assert headless["metadata"]["name"] == f"jobman-{ID}"
    assert headless["spec"]["clusterIP"] == "None"
    assert headless["spec"]["publishNotReadyAddresses"] is True
    assert headless["spec"]["selector"].items() <= visitor(ID).labels.items()


def test_an_exposed_port_has_a_service_of_its_own():
    _, exposed = services(more=EXPOSING)
    assert exposed["metadata"]["name"] == f"jobman-{ID}-a"
    assert [port["port"] for port in exposed["spec"]["ports"]] == [80]


def test_only_tasks_listen_whoever_says_it_for_them():
    text = (
        "version: 1\nports: [{port: 80, expose: true}]\ngroups:\n"
        "- {name: g, resources: {type: node, count: 1}, tasks: [{name: t, command: [echo]}]}\n"
    )
    found = shared_objects(plan_of(text), ID, target())
    exposed = [each["metadata"]["name"] for each in found if "jobman.io/task" in each["metadata"]["labels"]]
    assert len(exposed) == 2
    assert all(name.startswith(f"jobman-{ID}-g-t-") for name in exposed)


def test_everything_is_known_by_its_service_and_job():
    found = shared_objects(plan_of(task(EXPOSING, "labels: {team: blue}")), ID, target(), owner="ada")
    for each in found:
        labels = each["metadata"]["labels"]
        assert (labels["jobman.io/service"], labels["jobman.io/job"]) == ("test", ID)
        assert (labels["jobman.io/owner"], labels["team"]) == ("ada", "blue")


def test_two_services_have_walls_of_their_own():
    (one,), (other,) = (namespace_objects(target(service=name)) for name in ("a", "b"))
    assert one["metadata"]["name"] != other["metadata"]["name"]
    assert one["spec"]["podSelector"] != other["spec"]["podSelector"]


# -- jobs that need nothing ----------------------------------------------------------------------------------


def test_a_single_pod_that_nobody_talks_with_needs_nothing_of_its_own():
    plan = plan_of(task())
    assert is_alone(plan, target())
    assert shared_objects(plan, ID, target(), connected=False) == []
    assert len(shared_objects(plan, ID, target())) == 2


@pytest.mark.parametrize(
    ("more", "top"),
    [
        ("replicas: 2", ""),
        ("ports: 80", ""),
        ("", "coordinator: a"),
        ("", "network: {isolated: true}"),
        ("", "network: {connect: other}"),
    ],
)
def test_whoever_talks_with_somebody_is_not_alone(more, top):
    assert shared_objects(plan_of(task(more, top)), ID, target(), connected=False)


def test_copies_are_not_alone():
    assert not is_alone(plan_of(task(shape="{type: slot, count: 2}")), target())
