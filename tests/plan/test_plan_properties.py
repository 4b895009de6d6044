"""Laws of plans: what is printed is read back, and the digest is that of the meaning alone."""

import copy

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.plan.build import build
from jobman.plan.model import PlanError, plan_from_json
from jobman.spec.load import load_jobs
from jobman.spec.problems import Problems
from jobman.spec.site import Site
from jobman.spec.source import Source
from tests.spec import strategies as some

GOOD = "version: 1\ntasks: [{name: a, command: [echo], resources: {type: node, count: 1}}]\n"


def plan_of(text):
    problems = Problems()
    (job,) = load_jobs(Source("f.yaml", text), Site(), problems)
    assert [each for each in problems if each.severity == "error"] == []
    assert job is not None
    return build(job)


def written(data, document):
    return data.draw(some.texts(data.draw(some.spoken(document))))


@pytest.mark.slow
@given(st.data(), some.documents())
@settings(max_examples=100, deadline=None)
def test_a_plan_is_read_back_as_it_was_printed(data, document):
    plan = plan_of(written(data, document))
    assert plan_from_json(plan.to_json()) == plan
    assert plan_from_json(plan.to_json()).to_json() == plan.to_json()


@pytest.mark.slow
@given(st.data(), some.documents())
@settings(max_examples=100, deadline=None)
def test_one_meaning_has_one_digest_however_it_is_written(data, document):
    assert plan_of(written(data, document)).digest == plan_of(written(data, document)).digest


def _more_words(document):
    document["tasks"][0]["command"].append("more")


def _more_nodes(document):
    document["tasks"][-1]["resources"]["count"] += 1


def _another_name(document):
    document["name"] = document.get("name", "") + "x"


def _another_variable(document):
    document["tasks"][0].setdefault("attributes", {}).setdefault("environment", {})["A_NEW_VARIABLE"] = "1"


def _another_fact(document):
    document["tasks"][0].setdefault("requires", some.Facts())["a.new.fact.of.some.kind"] = "yes"


def _another_duration(document):
    attributes = document.setdefault("attributes", {})
    attributes["duration"] = some.Seconds(attributes.get("duration", 0) + 1)


def _more_replicas(document):
    document["tasks"][0]["replicas"] = document["tasks"][0].get("replicas", 1) + 1


def _another_task(document):
    document["tasks"].append({**copy.deepcopy(document["tasks"][0]), "name": "another", "depends_on": []})


CHANGES = [
    _more_words,
    _more_nodes,
    _another_name,
    _another_variable,
    _another_fact,
    _another_duration,
    _more_replicas,
    _another_task,
]


@pytest.mark.slow
@given(st.data(), some.documents(), st.sampled_from(CHANGES))
@settings(max_examples=100, deadline=None)
def test_another_meaning_has_another_digest(data, document, change):
    other = copy.deepcopy(document)
    change(other)
    assert plan_of(written(data, document)).digest != plan_of(written(data, other)).digest


@pytest.mark.slow
@given(st.data(), some.documents())
@settings(max_examples=50, deadline=None)
def test_a_plan_that_was_changed_by_hand_is_refused(data, document):
    plan = plan_of(written(data, document))
    changed = msgspec.structs.replace(plan, name="changed")
    with pytest.raises(PlanError):
        plan_from_json(changed.to_json())


@given(st.text(max_size=50) | st.binary(max_size=50))
def test_nothing_but_a_plan_is_read_as_one(text):
    with pytest.raises(PlanError):
        plan_from_json(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("+1234567s", "+1234568s", id="seconds after submission"),
        pytest.param("2030-01-01T00:00:00Z", "2030-01-01T00:00:00.5Z", id="moments"),
    ],
)
def test_another_start_has_another_digest(one, other):
    plans = [plan_of(f'{GOOD}start: {{earliest: "{moment}"}}\n') for moment in (one, other)]
    assert plans[0].digest != plans[1].digest


def test_half_a_second_later_is_later():
    window = 'start: {earliest: "2030-01-01T00:00:00Z", latest: "2030-01-01T00:00:00.5Z"}\n'
    plan_of(GOOD + window)


def test_a_large_number_in_a_parameter_is_passed_as_it_was_typed():
    text = GOOD.replace("[echo]", "[echo, '{{size}}']") + "parameters: {size: 1234567.0}\n"
    assert float(plan_of(text).units[0].command[1]) == 1234567.0


def test_a_large_number_in_flags_is_read_back_as_it_was_printed():
    plan = plan_of(f"{GOOD}attributes: {{flags: {{kubernetes: {{a: 99999999999999999999999}}}}}}\n")
    assert plan_from_json(plan.to_json()) == plan
