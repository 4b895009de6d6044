"""Settings: the template, the user's file over it, one file instead of both, and what a site is made of them."""

# ruff: noqa: E501 - a document stands in one line

import pytest

from jobman.api import loads
from jobman.plan.explanation import explain
from jobman.settings import load_settings
from jobman.spec.problems import SpecError

TASK = "tasks: [{name: a, command: [echo], resources: {type: node, count: 1}}]\n"


@pytest.fixture
def home(tmp_path):
    """Write the user's file; returns the home folder."""

    def write(text="", name="settings.yaml"):
        folder = tmp_path / ".jobman"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        return tmp_path

    return write


@pytest.fixture
def named(tmp_path):
    """Settings from a file that was named."""

    def load(text, name="mine.yaml"):
        (tmp_path / name).write_text(text)
        return load_settings(tmp_path / name)

    return load


def problems(load, text, *more):
    with pytest.raises(SpecError) as raised:
        load(text, *more)
    return [
        (problem.code, problem.place.line, problem.place.column)
        for problem in raised.value.problems
        if problem.place
    ]


# -- layers -------------------------------------------------------------------------------------------------


def test_the_template_alone(tmp_path):
    settings = load_settings(home=tmp_path)
    assert set(settings.origins.values()) == {"template"}
    site = settings.site()
    assert list(site.flavors) == ["no-gpu", "small", "small-gpu", "large-gpu"]
    assert (site.queues, site.priorities) == (("interactive", "batch"), ("low", "normal", "high"))
    assert (site.default_flavor, site.default_image, site.user, site.profiles) == (None, None, {}, {})


def test_a_flavor_of_the_template_counts_cores_memory_and_gpus(tmp_path):
    part = load_settings(home=tmp_path).site().flavors["large-gpu"]
    assert part.each == {"core": 4, "memory": 16 * 10**9, "gpu": 1}
    assert part.flavor is not None
    assert part.flavor.requests == {"cpu": "4000m", "memory": "16G", "nvidia.com/gpu": "1"}


def test_the_users_flavor_replaces_the_one_of_the_same_name_and_leaves_the_others(home):
    settings = load_settings(
        home=home(
            "flavors: [{name: small, resources: {requests: {cpu: 3}}}, {name: own, shape: {type: node, count: 1}}]\n"
        )
    )
    site = settings.site()
    assert site.flavors["small"].each == {"core": 3}
    assert list(site.flavors) == ["no-gpu", "small", "small-gpu", "large-gpu", "own"]
    assert settings.origins["flavors.no-gpu"] == "template"
    assert settings.origins["flavors.small"].endswith("settings.yaml")


@pytest.mark.parametrize(
    ("key", "text", "names"),
    [
        (
            "queues",
            "queues: [{name: night}, {name: batch, description: all day}]",
            ["interactive", "batch", "night"],
        ),
        ("priorities", "priorities: [{name: urgent, value: 5}]", ["low", "normal", "high", "urgent"]),
    ],
)
def test_lists_of_named_things_are_merged_by_name(home, key, text, names):
    assert list(getattr(load_settings(home=home(text)).site(), key)) == names


def test_values_of_the_user_are_merged_by_key(tmp_path, named):
    settings = named("user: {name: ada, id: 7}\n---\nuser: {id: 8, fast: true}\n")
    assert settings.site().user == {"name": "ada", "id": 8, "fast": True}


def test_other_values_are_replaced_as_a_whole(home):
    settings = load_settings(home=home("resource_types: [rack]\n---\nresource_types: [cabinet]\n"))
    assert settings.values["resource_types"] == ("cabinet",)


def test_a_named_file_replaces_both(home, named):
    home("user: {name: ada}\n")
    settings = named("default_image: example.org/a:1\n")
    assert settings.as_data() == {"default_image": "example.org/a:1"}
    assert settings.site().flavors == {}


def test_the_users_file_may_be_json(home):
    settings = load_settings(home=home('{"user": {"name": "ada"}, "flavors": []}', "settings.json"))
    assert settings.site().user == {"name": "ada"}


def test_json_is_taken_before_yaml(home):
    home("user: {name: yaml}\n")
    assert load_settings(home=home('{"user": {"name": "json"}}', "settings.json")).site().user == {
        "name": "json"
    }


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_an_empty_file_of_the_user_changes_nothing(home, text):
    assert load_settings(home=home(text)).origins.keys() == load_settings(home=home("")).origins.keys()


def test_every_row_has_an_origin(home):
    settings = load_settings(home=home("user: {name: ada}\ndefault_flavor: small\nresource_types: [rack]\n"))
    rows = dict(settings.rows())
    assert rows.keys() == settings.origins.keys()
    assert (rows["user.name"], rows["default_flavor"], rows["resource_types"]) == ("ada", "small", '["rack"]')
    assert rows["priorities.low"] == '{"value":-1000}'


# -- wrong files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "flavor", "column"),
    [
        ("JS421", "{name: a}", 11),
        ("JS421", "{name: a, resources: {requests: {cpu: 1}}, shape: {type: node, count: 1}}", 11),
        ("JS422", "{name: a, resources: {requests: {cpu: many}}}", 49),
        ("JS422", "{name: a, resources: {requests: {cpu: 0}}}", 49),
        ("JS422", "{name: a, resources: {requests: {memory: 1GB}}}", 52),
        ("JS422", "{name: a, resources: {requests: {nvidia.com/gpu: 0.5}}}", 60),
        ("JS423", "{name: a, resources: {requests: {cpu: 2}, limits: {cpu: 1500m}}}", 67),
        ("JS101", "{name: a, shape: {type: node, count: 1}, colour: blue}", 52),
        ("JS105", "{shape: {type: node, count: 1}}", 11),
        ("JS406", "{name: a, shape: {type: node, count: 0}}", 48),
    ],
)
def test_a_wrong_flavor_has_one_message_in_its_place(named, code, flavor, column):
    found = problems(named, f"flavors: [{flavor}]\n")
    assert found == [(code, 1, column)]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("JS101", "default_flavour: small\n"),
        ("JS103", "flavors: small\n"),
        ("JS113", "- flavors\n"),
        ("JS113", "just a text\n"),
        ("JS012", "user: {a: 1}\nuser: {a: 2}\n"),
        ("JS201", "default_image: 'not an image'\n"),
        ("JS105", "priorities: [{name: x}]\n"),
        ("JS104", "user:\n"),
    ],
)
def test_a_wrong_file_is_refused(named, code, text):
    assert [found[0] for found in problems(named, text)] == [code]


def test_bad_json_is_refused_where_it_is_bad(named):
    found = problems(named, '{"user": {"name": "ada"},\n "flavors": [}\n', "settings.json")
    assert [line for _, line, _ in found] == [2]


def test_every_problem_of_a_file_is_reported(named):
    text = "colour: blue\nuser: {1a: x}\nresource_types: [rack, rack]\n"
    assert [line for _, line, _ in problems(named, text)] == [1, 2, 3]


def test_a_missing_named_file_is_refused(tmp_path):
    with pytest.raises(SpecError, match="JS001"):
        load_settings(tmp_path / "nowhere.yaml")


def test_a_shape_that_is_wrong_in_itself_is_refused_when_the_file_is_read(named):
    with pytest.raises(SpecError, match="JS412"):
        named("flavors: [{name: a, shape: {type: core, count: 1, with: [{type: node, count: 1}]}}]\n")


# -- what documents make of them ----------------------------------------------------------------------------


def values_of(spec, unit=0):
    return {value.key: value for value in explain(spec.job, spec.plan()).units[unit].values}


def test_the_default_flavor_serves_tasks_without_resources(named):
    settings = named("default_flavor: tiny\nflavors: [{name: tiny, resources: {requests: {cpu: 500m}}}]\n")
    spec = loads("version: 1\ntasks: [{command: [echo]}]\n", settings=settings)
    assert spec.plan().units[0].totals[0].amounts == {"core": 0.5}


def test_an_unknown_default_flavor_is_a_problem_of_every_document(named):
    spec = loads(
        f"version: 1\n{TASK}",
        settings=named("default_flavor: tyni\nflavors: [{name: tiny, resources: {requests: {cpu: 1}}}]\n"),
    )
    (problem,) = spec.problems
    assert problem.code == "JS810"
    assert "`tiny`" in problem.advice


def test_the_default_image_serves_tasks_without_one(named):
    settings = named("default_image: example.org/base:1\n")
    spec = loads(f"version: 1\n{TASK}", settings=settings)
    assert spec.plan().units[0].image == "example.org/base:1"
    assert values_of(spec)["image"].level == "settings"


def test_a_flavor_of_a_shape_keeps_its_tree(named):
    settings = named(
        "flavors: [{name: pair, shape: {type: node, count: 2, with: [{type: slot, count: 4}]}}]\n"
    )
    unit = loads("version: 1\ntasks: [{command: a, resources: pair}]\n", settings=settings).plan().units[0]
    assert (unit.copies, unit.totals[0].nodes) == ((8,), 2)


def test_a_shape_of_the_document_goes_before_a_flavor(named):
    settings = named("flavors: [{name: x, shape: {type: node, count: 2}}]\n")
    text = "version: 1\nresources: {x: {type: node, count: 5}}\ntasks: [{command: a, resources: x}]\n"
    assert loads(text, settings=settings).plan().units[0].totals[0].nodes == 5


def test_a_type_of_the_site_may_be_asked_for(named):
    text = "version: 1\ntasks: [{command: a, resources: {type: rack, count: 1, with: [{type: node, count: 4}]}}]\n"
    assert [problem.code for problem in loads(text, settings=named("user: {}\n")).problems] == ["JS410"]
    assert loads(text, settings=named("resource_types: [rack]\n")).ok


def test_a_device_of_a_flavor_is_a_type_of_the_site(named):
    settings = named("flavors: [{name: f, resources: {requests: {cpu: 1, example.org/fpga: 2}}}]\n")
    text = "version: 1\ntasks: [{command: a, resources: {type: node, count: 1, with: [{type: example.org/fpga, count: 1}]}}]\n"
    assert loads(text, settings=settings).ok


@pytest.mark.parametrize(("value", "shown"), [("ada", "ada"), ("7", "7"), ("true", "true"), ("1.5", "1.5")])
def test_values_of_the_user_stand_in_documents(named, value, shown):
    settings = named(f"user: {{x: {value}}}\n")
    text = 'version: 1\ntasks: [{command: [echo, "{{user.x}}"], resources: {type: node, count: 1}}]\n'
    assert loads(text, settings=settings).plan().units[0].command == ("echo", shown)


PROFILES = """\
profiles:
- name: tools
  attributes: {duration: 1h, environment: {PATH: /tools}}
  requires: {fabric: infiniband}
  grace: 5s
  volumes: [{name: tools, kind: host, path: /opt/tools, to: /tools}]
- name: licensed
  labels: {licence: ""}
  secrets: [token]
- name: ocean
  labels: {team: ocean}
  priority: high
"""


def test_a_profile_is_brought_by_its_name(named):
    spec = loads(f"version: 1\nprofiles: tools\n{TASK}", settings=named(PROFILES))
    unit = spec.plan().units[0]
    assert (unit.duration, unit.environment) == (3600.0, {"PATH": "/tools"})
    assert unit.alternatives[0][0].requires == {"fabric": "infiniband"}
    assert (unit.policies.grace, [volume.name for volume in unit.policies.volumes]) == (5.0, ["tools"])
    assert (values_of(spec)["duration"].level, values_of(spec)["duration"].name) == ("profile", "tools")


def test_what_a_document_says_itself_goes_before_a_profile(named):
    spec = loads(
        f"version: 1\nprofiles: tools\ngrace: 1m\nattributes: {{duration: 2h}}\n{TASK}",
        settings=named(PROFILES),
    )
    unit = spec.plan().units[0]
    assert (unit.duration, unit.policies.grace, unit.environment) == (7200.0, 60.0, {"PATH": "/tools"})


def test_a_profile_without_a_value_is_brought_by_any_value_of_the_label(named):
    spec = loads(f"version: 1\nlabels: {{licence: matlab}}\n{TASK}", settings=named(PROFILES))
    assert [secret.name for secret in spec.plan().units[0].policies.secrets] == ["token"]


@pytest.mark.parametrize(("team", "priority"), [("ocean", "high"), ("ice", None)])
def test_a_profile_with_a_value_is_brought_by_that_value_alone(named, team, priority):
    spec = loads(f"version: 1\nlabels: {{team: {team}}}\n{TASK}", settings=named(PROFILES))
    assert spec.plan().units[0].policies.priority == priority


def test_an_unknown_profile_is_a_problem(named):
    spec = loads(f"version: 1\nprofiles: tols\n{TASK}", settings=named(PROFILES))
    assert [(problem.code, problem.advice) for problem in spec.problems] == [
        ("JS805", "did you mean `tools`?")
    ]


def test_an_unknown_queue_or_priority_is_a_warning_only_where_the_site_lists_them(named, tmp_path):
    text = f"version: 1\nqueue: nightly\npriority: urgent\n{TASK}"
    assert [problem.code for problem in loads(text, settings=load_settings(home=tmp_path)).problems] == [
        "JS806",
        "JS807",
    ]
    assert loads(text, settings=named("user: {}\n")).problems == []
