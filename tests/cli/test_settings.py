"""`jobman settings`: what is in force and where it came from, and what a wrong file does to a command."""

# ruff: noqa: E501 - a document stands in one line

import pytest
import yaml

WRONG = "flavors:\n- {name: small, resources: {requests: {cpu: 1}}, colour: blue}\n"


def at_home(home, text, name="settings.yaml"):
    (home / ".jobman").mkdir(exist_ok=True)
    (home / ".jobman" / name).write_text(text)


def rows(text):
    head, *lines = text.splitlines()
    assert head.split() == ["setting", "value", "from"]
    return {line.split()[0]: line.split()[-1] for line in lines}


def test_without_a_file_everything_comes_from_the_template(jobman):
    answer = jobman("settings")
    assert (answer.code, answer.err) == (0, "")
    assert set(rows(answer.out).values()) == {"template"}
    assert "flavors.no-gpu" in rows(answer.out)


def test_a_value_of_the_home_file_says_so(jobman, bare_home):
    at_home(bare_home, "flavors: [{name: small, resources: {requests: {cpu: 3}}}]\nuser: {name: ada}\n")
    origins = jobman("settings", "-o", "json").data["origins"]
    file = str(bare_home / ".jobman" / "settings.yaml")
    assert (origins["flavors.small"], origins["user.name"]) == (file, file)
    assert origins["flavors.no-gpu"] == "template"


def test_a_named_file_replaces_both(jobman, write, bare_home):
    at_home(bare_home, "user: {name: ada}\n")
    name = write("default_image: example.org/base:1\n", "mine.yaml")
    assert jobman("-s", name, "settings", "-o", "json").data == {
        "settings": {"default_image": "example.org/base:1"},
        "origins": {"default_image": "mine.yaml"},
    }


def test_the_settings_in_force_can_be_used_as_settings(jobman, write, bare_home):
    at_home(
        bare_home,
        "user: {name: ada, id: 7}\nresource_types: [rack]\ndefault_flavor: tiny\n"
        "flavors: [{name: tiny, shape: {type: slot, count: 1, with: [{type: core, count: 1}]}}]\n"
        "profiles: [{name: p, labels: {team: ''}, grace: 5s, attributes: {duration: 1h}, requires: {a.b: c},\n"
        "  volumes: [{name: v, kind: scratch, to: /v}]}]\n",
    )
    data = jobman("settings", "-o", "json").data["settings"]
    again = write(yaml.safe_dump(data), "again.yaml")
    assert jobman("-s", again, "settings", "-o", "json").data["settings"] == data


def test_json_and_yaml_say_the_same(jobman):
    assert yaml.safe_load(jobman("-o", "yaml", "settings").out) == jobman("settings", "-o", "json").data


@pytest.mark.parametrize("text", ["[bold]x", "[/x]", ":smile:", "漢字"])
def test_a_value_is_shown_as_it_is(jobman, bare_home, text):
    at_home(bare_home, f"user: {{name: '{text}'}}\n")
    assert text in jobman("settings").out


def test_a_wrong_file_is_told_with_place_code_and_advice(jobman, bare_home):
    at_home(bare_home, WRONG)
    answer = jobman("settings")
    assert (answer.code, answer.out) == (3, "")
    head, line, carets, advice = answer.err.splitlines()
    assert head == f"{bare_home}/.jobman/settings.yaml:2:50: error JS101: a flavor has no key `colour`"
    assert line.startswith("    2 | - {name: small")
    assert carets.strip(" |") == "^^^^^^"
    assert advice.startswith("      help: ")


@pytest.mark.parametrize("command", ["settings", "check", "explain", "satisfy"])
def test_a_wrong_file_ends_every_command_that_needs_it(jobman, bare_home, write, good, command):
    at_home(bare_home, WRONG)
    write("- {name: n1, cores: 1}\n", "nodes.yaml")
    arguments = {"settings": (), "satisfy": (good, "--nodes", "nodes.yaml")}.get(command, (good,))
    answer = jobman(command, *arguments)
    assert (answer.code, answer.out) == (3, "")
    assert "JS101" in answer.err


@pytest.mark.parametrize("command", ["features", "schema", "help"])
def test_a_wrong_file_does_not_disturb_a_command_that_does_not_need_it(jobman, bare_home, command):
    at_home(bare_home, WRONG)
    assert jobman(command).code == 0


def test_a_wrong_file_is_told_as_data_where_data_is_asked_for(jobman, bare_home):
    at_home(bare_home, WRONG)
    answer = jobman("-o", "json", "settings")
    assert (answer.code, answer.err, answer.codes) == (3, "", ["JS101"])


def test_a_wrong_file_is_told_as_data_also_where_the_command_asks_for_it(jobman, bare_home):
    at_home(bare_home, WRONG)
    answer = jobman("settings", "-o", "json")
    assert (answer.code, answer.err, answer.codes) == (3, "", ["JS101"])


def test_a_named_file_that_is_missing_is_told(jobman, good):
    answer = jobman("-s", "nowhere.yaml", "check", good)
    assert (answer.code, answer.out) == (3, "")
    assert "JS001: there is no file nowhere.yaml" in answer.err


def test_a_flavor_of_the_settings_is_a_shape_of_a_document(jobman, write, bare_home):
    at_home(bare_home, "flavors: [{name: small, resources: {requests: {cpu: 6}}}]\n")
    name = write("version: 1\ntasks: [{command: a, resources: small}]\n")
    assert jobman("explain", name, "-o", "json").data["at_once"]["amounts"] == {"core": 6}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("flavors: [{name: a}]\n", "JS421"),
        ("flavors: [{name: a, resources: {requests: {cpu: many}}}]\n", "JS422"),
        ("flavors: [{name: a, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]\n", "JS423"),
        ("default_flavour: small\n", "JS101"),
        ('{"flavors": [}', "JS020"),
        ("- a\n", "JS113"),
        ("flavors: {small: 1}\n", "JS103"),
    ],
)
def test_every_way_to_be_wrong_has_its_code_and_advice(jobman, write, text, code):
    answer = jobman("-s", write(text, "mine.yaml"), "-o", "json", "settings")
    assert answer.code == 3
    assert code in answer.codes
    assert all(
        problem["advice"] and problem["place"]["file"] == "mine.yaml" for problem in answer.data["problems"]
    )
